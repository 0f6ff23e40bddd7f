"""The subcommands of `wordwing`, one file each; heavy imports happen only when one runs."""

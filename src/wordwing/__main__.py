"""`python -m wordwing` is the `wordwing` command."""

from wordwing.cli import main

main()

"""The `wordwing` command, also as `python -m wordwing`: Ctrl-C is answered before anything else is imported."""

import os
import signal


def _leave(*_: object) -> None:
    os.write(2, b"wordwing: interrupted\n")
    os._exit(130)


def main() -> None:
    """Run the command that was typed."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _leave)  # until what answers it better has been imported
    # MuJoCo's windows, which nothing here opens, start a process when they are imported, and Ctrl-C makes it complain.
    os.environ.setdefault("MUJOCO_GL", "disable")
    from wordwing import interrupts

    with interrupts.answered():
        from wordwing.cli import main as run

        run()


if __name__ == "__main__":
    main()

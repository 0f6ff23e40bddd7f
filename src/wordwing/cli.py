"""The `wordwing` command: parse, run, and turn every mistake into one sentence."""

import errno
import io
import os
import re
import sys
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout
from typing import NoReturn

import tyro

from wordwing import interrupts
from wordwing.commands import (
    bench,
    collect,
    datasets,
    evaluate,
    flight,
    fly,
    lab,
    report,
    show,
    statistics,
    studio,
    study,
    train,
)
from wordwing.errors import WordwingError

DESCRIPTION = "wordwing flies a quadcopter by plain English. Start with: wordwing fly 'go to the barrel'"

Commands = Sequence[Callable[..., None] | tuple[str, "Callable[..., None] | Commands", str]]
"""Functions; those, or groups of them, with a name of their own and a help text."""

DATA: Commands = (
    datasets.build,
    (
        "import",
        (("human-nav", datasets.human_nav, ""), datasets.alfred, datasets.lani, datasets.drif),
        "Read other people's datasets.",
    ),
    ("export", (("drif", datasets.export_drif, ""),), "Write a dataset for other people's tools."),
    statistics.stats,
    statistics.judge,
    datasets.demonstrate,
    (
        "show",
        (show.landmarks, show.layout, show.frames, show.paragraph, show.examples),
        "Draw images of what exists.",
    ),
)
COMMANDS: Commands = (
    fly.fly,
    ("data", DATA, "Landmarks, layouts and datasets."),
    ("train", (train.stage1, train.bc, train.sureal), "Learn policies."),
    evaluate.evaluate,
    report.report,
    report.pack,
    studio.studio,
    (
        "study",
        (study.create, study.serve, study.report, study.export, ("import", study.import_results, "")),
        "Ask people how well systems flew.",
    ),
    (
        "collect",
        (collect.create, collect.serve, collect.status, collect.export),
        "Let people write sentences, and check them by following.",
    ),
    ("flight", (flight.check, flight.mocap, flight.accept), "What stands around a real flight."),
    ("lab", (lab.serve, lab.bridge), "The lab as a drone that speaks MAVLink."),
    (
        "bench",
        (bench.sim, bench.model, bench.emd, bench.learn, bench.flight),
        "Measure speed; prints one JSON line for each figure.",
    ),
)

RENAMED = {("report", "--films"): "--videos"}
"""Options of version 0.1, with their command, and what they are called now."""


def application(commands: Commands = COMMANDS) -> tyro.extras.SubcommandApp:
    """All subcommands, of `wordwing` or of one of its groups."""
    app = tyro.extras.SubcommandApp()
    for entry in commands:
        if not isinstance(entry, tuple):
            app.command(entry)
        elif callable(entry[1]):
            app.command(name=entry[0])(entry[1])
        else:
            app.command(application(entry[1]), name=entry[0], help=entry[2])
    return app


def main(arguments: list[str] | None = None) -> None:
    """Entry point; exits with 0, 2 for a mistake that can be put right, 3 for an aborted flight, 130 for Ctrl-C."""
    argv = sys.argv[1:] if arguments is None else arguments
    if argv == ["--version"]:
        from wordwing.release import release

        print(f"wordwing {release()}")
        return
    try:
        if argv[:1] == ["--tyro-print-completion"]:
            print(_completion(argv))
        else:
            for old in (argument.partition("=")[0] for argument in argv[1:]):
                if new := RENAMED.get((argv[0], old)):
                    raise WordwingError(f"wordwing {argv[0]}: {old} is called {new} now")
            application().cli(args=argv, prog="wordwing", description=DESCRIPTION)
        sys.stdout.flush()
    except WordwingError as error:
        _fail(str(error), error.status)
    except KeyboardInterrupt:
        interrupts.announce()
        raise SystemExit(interrupts.STATUS) from None
    except BrokenPipeError:  # whoever read us has seen enough: `wordwing … | head`
        _forget_output()
        raise SystemExit(141) from None
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        _forget_output()
        _fail("the disk is full; nothing was half-written")


def _completion(argv: list[str]) -> str:
    """A shell's script for completing commands and options, as tyro makes it."""
    if argv[1:] not in (["bash"], ["zsh"]):
        raise WordwingError(f"{argv[0]} wants the name of a shell: bash or zsh")
    script = io.StringIO()
    try:
        with redirect_stdout(script):
            application().cli(args=argv, prog="wordwing", description=DESCRIPTION)
    except SystemExit as end:
        if end.code:
            raise
    # Bash would offer every line of a help text but its first as something to type.
    return re.sub("^COMPLETION_SPEC = .*", lambda found: found[0].replace(r"\n", " "), script.getvalue(), flags=re.M)


def _fail(sentence: str, status: int = 2) -> NoReturn:
    print(f"wordwing: {sentence}", file=sys.stderr)
    raise SystemExit(status) from None


def _forget_output() -> None:
    """Keep the interpreter from failing again at its end over output that nobody can take."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())

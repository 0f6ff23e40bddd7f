"""The `wordwing` command: parse, run, and turn every mistake into one sentence."""

from __future__ import annotations

import errno
import io
import os
import re
import sys
from contextlib import redirect_stdout
from typing import NoReturn

import tyro

from wordwing import interrupts
from wordwing.commands import (
    bench,
    bridge,
    build,
    demonstrate,
    evaluate,
    exporting,
    flight,
    fly,
    importing,
    lab,
    pack,
    report,
    show,
    statistics,
    studio,
    study,
    train,
)
from wordwing.errors import WordwingError

DESCRIPTION = "wordwing flies a quadcopter by plain English. Start with: wordwing fly 'go to the barrel'"


def application() -> tyro.extras.SubcommandApp:
    """All subcommands."""
    show_app = tyro.extras.SubcommandApp()
    show_app.command(show.landmarks)
    show_app.command(show.layout)
    show_app.command(show.frames)
    show_app.command(show.paragraph)
    show_app.command(show.examples)
    import_app = tyro.extras.SubcommandApp()
    import_app.command(name="human-nav")(importing.human_nav)
    import_app.command(importing.alfred)
    import_app.command(importing.lani)
    import_app.command(importing.drif)
    export_app = tyro.extras.SubcommandApp()
    export_app.command(exporting.drif)
    data_app = tyro.extras.SubcommandApp()
    data_app.command(build.build)
    data_app.command(import_app, name="import", help="Read other people's datasets.")
    data_app.command(export_app, name="export", help="Write a dataset for other people's tools.")
    data_app.command(statistics.stats)
    data_app.command(statistics.judge)
    data_app.command(demonstrate.demonstrate)
    data_app.command(show_app, name="show", help="Draw pictures of what exists.")
    bench_app = tyro.extras.SubcommandApp()
    bench_app.command(bench.sim)
    bench_app.command(bench.model)
    bench_app.command(bench.emd)
    bench_app.command(bench.learn)
    bench_app.command(bench.flight)
    study_app = tyro.extras.SubcommandApp()
    study_app.command(study.create)
    study_app.command(study.serve)
    study_app.command(study.report)
    study_app.command(study.export)
    study_app.command(name="import")(study.import_results)
    lab_app = tyro.extras.SubcommandApp()
    lab_app.command(lab.serve)
    lab_app.command(bridge.bridge)
    flight_app = tyro.extras.SubcommandApp()
    flight_app.command(flight.check)
    flight_app.command(flight.mocap)
    flight_app.command(flight.accept)
    train_app = tyro.extras.SubcommandApp()
    train_app.command(train.stage1)
    train_app.command(train.bc)
    train_app.command(train.sureal)
    app = tyro.extras.SubcommandApp()
    app.command(fly.fly)
    app.command(data_app, name="data", help="Landmarks, layouts and datasets.")
    app.command(train_app, name="train", help="Learn policies.")
    app.command(evaluate.evaluate)
    app.command(report.report)
    app.command(pack.pack)
    app.command(studio.studio)
    app.command(study_app, name="study", help="Ask people how well systems flew.")
    app.command(flight_app, name="flight", help="What stands around a real flight.")
    app.command(lab_app, name="lab", help="The lab as a drone that speaks MAVLink.")
    app.command(bench_app, name="bench", help="Measure speed; prints one JSON line for each figure.")
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

"""The `wordwing` command: parse, run, and turn every mistake into one sentence."""

from __future__ import annotations

import errno
import os
import sys
from typing import NoReturn

import tyro

from wordwing.commands import (
    bench,
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
    flight_app = tyro.extras.SubcommandApp()
    flight_app.command(flight.check)
    flight_app.command(flight.mocap)
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
    """Entry point; exits with 0, 2 for a mistake that the user can put right, 130 for Ctrl-C."""
    argv = sys.argv[1:] if arguments is None else arguments
    if argv == ["--version"]:
        from wordwing.release import release

        print(f"wordwing {release()}")
        return
    try:
        application().cli(args=argv, prog="wordwing", description=DESCRIPTION)
        sys.stdout.flush()
    except WordwingError as error:
        _fail(str(error))
    except KeyboardInterrupt:
        print("wordwing: interrupted", file=sys.stderr)
        raise SystemExit(130) from None
    except BrokenPipeError:  # whoever read us has seen enough: `wordwing … | head`
        _forget_output()
        raise SystemExit(141) from None
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        _forget_output()
        _fail("the disk is full; nothing was half-written")


def _fail(sentence: str) -> NoReturn:
    print(f"wordwing: {sentence}", file=sys.stderr)
    raise SystemExit(2) from None


def _forget_output() -> None:
    """Keep the interpreter from failing again at its end over output that nobody can take."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())

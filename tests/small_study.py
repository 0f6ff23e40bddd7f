"""Studies that take no time to make: their flights are not drawn."""

from collections.abc import Callable
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

from wordwing.study.database import StudySettings
from wordwing.study.questions import Answers, Practice
from wordwing.study.store import EnoughRatersError, Study

SYSTEMS = ("average", "pvn2-sureal", "oracle")


def undrawn(flown: list) -> tuple[bytes, list[tuple[bytes, bytes]]]:
    """Pictures that say what they are of; a real study's do not."""
    of = flown[0].provenance.id.encode()
    return b"legend " + of, [(f"video {flight.provenance.system} ".encode() + of, b"still " + of) for flight in flown]


@cache
def tiny_media() -> tuple[bytes, tuple[bytes, bytes]]:
    """Legend, video and still that a browser can show, whatever they are of."""
    from PIL import Image, ImageDraw

    from wordwing.viz.animation import write_video
    from wordwing.viz.labelled import still

    drawn = []
    for step in range(6):
        drawn.append(Image.new("RGB", (64, 64), (40, 90, 40)))
        ImageDraw.Draw(drawn[-1]).ellipse((8 * step, 24, 8 * step + 16, 40), (0, 114, 178))
    with TemporaryDirectory() as folder:
        write_video(drawn, Path(folder) / "video.mp4")
        video = (Path(folder) / "video.mp4").read_bytes()
    return still(Image.new("RGB", (80, 24), (200, 200, 190))), (video, still(drawn[-1]))


def tiny(flown: list) -> tuple[bytes, list[tuple[bytes, bytes]]]:
    legend, video_and_still = tiny_media()
    return legend, [video_and_still] * len(flown)


def small_study(
    file: Path,
    instructions: int = 3,
    systems: tuple[str, ...] = SYSTEMS,
    raters: int = 2,
    items_per_rater: int | None = None,
    practice: int = 1,
    clock: Callable[[], float] | None = None,
    behind: tuple[int, ...] = (),
    draw: Callable[[list], tuple[bytes, list[tuple[bytes, bytes]]]] = undrawn,
) -> Study:
    """A study of instructions i0, i1, …; the goals of those `behind` are behind the drone at the start."""
    from small_evaluation import plain_episode  # these import much, which processes that only rate need not wait for
    from wordwing.study import create
    from wordwing.world.layout import Layout, Placement

    layout = Layout((Placement("Gorilla", 1.5, 1.5),))

    def flight(name: int, system: str):
        path = [[0.0, 0.0], [-1.0 if name in behind else 1.0, 0.0]]
        return plain_episode(path, system=system, id=f"i{name}", instruction=f"instruction {name}", layout=layout)

    items = tuple(flight(name, system) for name in range(instructions) for system in systems)
    spare = tuple((flight(900 + name, "oracle"), Practice(0.1, 0.9)) for name in range(practice))
    settings = StudySettings(
        systems, "cage", "generated", "test", "sim", raters, items_per_rater, seed=5, version="0", salt="00" * 32
    )
    with patch.object(create, "draw_flights", draw):
        create.create_study(create.StudyPlan(settings, items, spare, instructions, 0), file)
    return Study(file, clock) if clock else Study(file)


def practised_rater(study: Study) -> str:
    """A new rater who has done all items to practise on."""
    token = study.new_participant()
    while (item := study.next_item(token)) is not None and item.practice:
        study.practise(token, item.id, Answers(3, 3, 3))
    return token


def rate_everything(study: Study, answers: Callable[[str], Answers] = lambda item: Answers(3, 4, 5)) -> str:
    """A new rater who does all there is to do; answers depend on the item's id."""
    token = study.new_participant()
    while (item := study.next_item(token)) is not None:
        if item.practice:
            study.practise(token, item.id, answers(item.id))
        else:
            study.rate(token, item.id, answers(item.id))
    study.finish(token)
    return token


def come_and_rate(file: Path) -> int:
    """How many items a new rater did; 0 if the study needs none."""
    study = Study(file)
    try:
        return study.progress(rate_everything(study)).items
    except EnoughRatersError:
        return 0

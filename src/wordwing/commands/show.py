"""`wordwing data show`: pictures of landmarks, layouts and what the drone sees."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Literal

import tyro

from wordwing.commands.options import check_picture, check_seed
from wordwing.world.catalogue import Corpus


def landmarks(out: Path = Path("out/landmarks")) -> None:
    """Draw every landmark in both looks, as the drone's own camera sees it from 1.5 m.

    Args:
        out: Folder for field.png and house.png; their names and nouns are printed.
    """
    from rich.progress import track

    from wordwing.evaluation.drawing import save
    from wordwing.evaluation.sheets import lab_portraits, landmark_sheet
    from wordwing.world.catalogue import catalogue
    from wordwing.world.catalogue import landmarks as of_corpus

    for corpus in ("field", "house"):
        entries = of_corpus(corpus)
        drawn = track(lab_portraits(entries), f"{corpus} landmarks", len(entries), disable=not sys.stderr.isatty())
        title = f"{corpus} landmarks, sim and lab look, from 1.5 m"
        save(landmark_sheet(entries, list(drawn), title), out / f"{corpus}.png")
    for entry in catalogue():
        number = f"cage {entry.cage}" if entry.cage else entry.set
        print(f"{entry.name:18} {number:8} {', '.join(entry.nouns)}")
    print(out)


def layout(file: Annotated[Path, tyro.conf.Positional], /, out: Path = Path("out/layout.png")) -> None:
    """Draw a layout file from above, with names.

    Args:
        file: The layout, a JSON file.
        out: The picture to write.
    """
    from wordwing.evaluation.drawing import save
    from wordwing.evaluation.sheets import layout_picture
    from wordwing.world.layout import Layout

    check_picture(out)
    save(layout_picture(Layout.load(file)), out)
    print(out)


def frames(
    domain: Literal["sim", "lab"] = "sim",
    corpus: Corpus = "cage",
    count: int = 12,
    seed: int = 0,
    out: Path = Path("out/frames.png"),
) -> None:
    """Draw random first-person pictures of one domain.

    Args:
        domain: The batched simulator or the lab.
        corpus: Which kind of layouts.
        count: How many pictures.
        seed: Chooses layouts and poses.
        out: The picture sheet to write.
    """
    from wordwing.errors import WordwingError
    from wordwing.evaluation.drawing import save
    from wordwing.evaluation.sheets import frame_sheet

    if not 1 <= count <= 200:
        raise WordwingError(f"--count is {count}; 1 to 200 pictures fit on a sheet")
    check_picture(out)
    save(frame_sheet(domain, corpus, count, check_seed(seed)), out)
    print(out)

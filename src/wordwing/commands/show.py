"""`wordwing data show`: pictures of landmarks, layouts and what the drone sees."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import tyro


def landmarks(out: Path = Path("out/landmarks")) -> None:
    """Draw every landmark in both looks, as the drone's own camera sees it from 1.5 m.

    Args:
        out: Folder for field.png and house.png; their names and nouns are printed.
    """
    from wordwing.evaluation.sheets import landmark_sheet, save
    from wordwing.world.catalogue import catalogue
    from wordwing.world.catalogue import landmarks as of_corpus

    for corpus in ("field", "house"):
        sheet = landmark_sheet(of_corpus(corpus), f"{corpus} landmarks, sim and lab look, from 1.5 m")
        save(sheet, out / f"{corpus}.png")
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
    from wordwing.evaluation.sheets import layout_picture, save
    from wordwing.world.layout import Layout

    save(layout_picture(Layout.load(file)), out)
    print(out)


def frames(
    domain: Literal["sim", "lab"] = "sim",
    corpus: Literal["field", "cage", "house"] = "cage",
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
    from wordwing.evaluation.sheets import frame_sheet, save

    if not 1 <= count <= 200:
        raise WordwingError(f"--count is {count}; 1 to 200 pictures fit on a sheet")
    save(frame_sheet(domain, corpus, count, seed), out)
    print(out)

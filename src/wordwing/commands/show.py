"""`wordwing data show`: images of landmarks, layouts, what the drone sees, and datasets."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import tyro

from wordwing.commands.common import check_image, check_range, check_seed, track
from wordwing.commands.statistics import opened
from wordwing.errors import WordwingError, did_you_mean
from wordwing.language.authors import author
from wordwing.world.catalogue import Corpus

if TYPE_CHECKING:
    from PIL import Image

    from wordwing.data.dataset import Dataset
    from wordwing.data.schema import Paragraph


def landmarks(out: Path = Path("out/landmarks")) -> None:
    """Draw every landmark in both looks, as the drone's own camera sees it from 1.5 m.

    Args:
        out: Folder for field.png and house.png; their names and nouns are printed.
    """
    from wordwing.viz.drawing import save
    from wordwing.viz.sheets import lab_portraits, landmark_sheet
    from wordwing.world.catalogue import catalogue, landmarks as of_corpus

    for corpus in ("field", "house"):
        entries = of_corpus(corpus)
        drawn = track(lab_portraits(entries), f"{corpus} landmarks", len(entries))
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
        out: The image to write.
    """
    from wordwing.viz.sheets import layout_image
    from wordwing.world.layout import Layout

    check_image(out)
    _save(layout_image(Layout.load(file)), out)


def frames(
    domain: Literal["sim", "lab"] = "sim",
    corpus: Corpus = "cage",
    count: int = 12,
    seed: int = 0,
    out: Path = Path("out/frames.png"),
) -> None:
    """Draw random first-person images of one domain.

    Args:
        domain: The batched simulator or the lab.
        corpus: Which kind of layouts.
        count: How many images.
        seed: Chooses layouts and poses.
        out: The sheet to write.
    """
    from wordwing.viz.sheets import frame_sheet

    check_range("count", count, 1, 200, " images on a sheet")
    check_image(out)
    _save(frame_sheet(domain, corpus, count, check_seed(seed)), out)


def paragraph(
    folder: Annotated[Path | None, tyro.conf.Positional] = None,
    /,
    corpus: str | None = None,
    split: str = "dev",
    id: str | None = None,
    seed: int = 0,
    out: Path = Path("out/paragraph.png"),
) -> None:
    """Draw a paragraph of a dataset from above, with its sentences.

    Args:
        folder: A dataset.
        corpus: A corpus by name instead: field, cage, errands, tours, house, written, typed.
        split: Which part of it a random paragraph is taken from.
        id: Which paragraph, instead of a random one of the split.
        seed: Chooses the paragraph.
        out: The image to write.
    """
    from wordwing.viz.sheets import instructions_page, paragraph_image

    check_image(out)
    dataset = opened(folder, corpus)
    chosen = _paragraph(dataset, split, id, check_seed(seed))
    title = f"{chosen.id}: {dataset.name}, split {dataset.label(chosen.split)}, sentences {_author(dataset)}"
    if chosen.windows is None:
        image = paragraph_image(chosen, dataset.layout(chosen.layout), title)
    else:
        entries = list(chosen.instructions((1,))) or list(chosen.instructions())
        layouts = [dataset.layout(entry.layout, entry.window) for entry in entries]
        firsts = [int(entry.id.rsplit("/", 1)[1].split("-")[0]) for entry in entries]
        image = instructions_page(entries, layouts, title, columns=3, numbers=[first + 1 for first in firsts])
    _save(image, out)


def examples(
    folder: Annotated[Path | None, tyro.conf.Positional] = None,
    /,
    corpus: str | None = None,
    split: str = "dev",
    count: int = 24,
    seed: int = 0,
    out: Path = Path("out/examples"),
) -> None:
    """Draw a page of single instructions from above, each over its sentence.

    Args:
        folder: A dataset.
        corpus: A corpus by name instead: field, cage, errands, tours, house, written, typed.
        split: Which part of it.
        count: How many instructions.
        seed: Chooses them.
        out: The image to write; without an ending it is a WebP, which is smallest.
    """
    import numpy as np

    from wordwing.viz.sheets import instructions_page, mixed, save_small

    check_range("count", count, 1, 200, " instructions on a page")
    out = check_image(out if out.suffix else out.with_suffix(".webp"))
    dataset = opened(folder, corpus)
    entries = mixed(list(dataset.instructions(split, (1,))), count, np.random.default_rng(check_seed(seed)))
    if not entries:
        raise WordwingError(f'{dataset.folder}: there is no single instruction in the split "{split}"')
    layouts = [dataset.layout(entry.layout, entry.window) for entry in entries]
    title = f"{len(entries)} instructions of {dataset.name}, split {dataset.label(split)}; sentences {_author(dataset)}"
    # Broader where there are many: no image may be higher than 16383 pixels in WebP.
    save_small(instructions_page(entries, layouts, title, columns=max(4, math.isqrt(count))), out)
    print(out)


def _save(image: Image.Image, out: Path) -> None:
    from wordwing.viz.drawing import save

    save(image, out)
    print(out)


def _author(dataset: Dataset) -> str:
    return author(str(dataset.meta.get("text", "unknown"))).how


def _paragraph(dataset: Dataset, split: str, id: str | None, seed: int) -> Paragraph:
    """The paragraph with an id, or a random one of a split."""
    import numpy as np

    if id is not None:
        names = []
        for entry in dataset.paragraphs():
            if entry.id == id and any(entry.instructions()):
                return entry
            if entry.id == id:
                raise WordwingError(f'{dataset.folder}: paragraph "{id}" has no instructions to draw')
            names.append(entry.id)
        hint = did_you_mean(id[:60], names) or (f"; the first is {names[0]}" if names else "")
        raise WordwingError(f'{dataset.folder}: there is no paragraph "{id[:60]}"{hint}')
    # One pass, every paragraph equally likely, none but the chosen one kept.
    rng = np.random.default_rng(seed)
    chosen = None
    drawable = (entry for entry in dataset.paragraphs(split) if any(entry.instructions()))
    for number, entry in enumerate(drawable, start=1):
        if rng.random() < 1 / number:
            chosen = entry
    if chosen is None:
        raise WordwingError(f'{dataset.folder}: there is no paragraph in the split "{split}"')
    return chosen

"""`wordwing collect`: people write sentences for paths and follow each other's; what agrees becomes a dataset."""

import os
from json import dumps
from pathlib import Path
from typing import Annotated, Literal

import tyro

from wordwing.commands.common import bar, check_counts, check_packages, check_port, serve_page
from wordwing.errors import WordwingError
from wordwing.files import safe_name, write_text
from wordwing.web.database import check_new

FEW = 3
"""Paths that one process draws sooner than others would have started."""

MOST_SEGMENTS = 12

MOST_HELD_OUT = 0.4
"""Largest share of the layouts for dev, and for test."""

STATES = {
    "accepted": "accepted",
    "sent": "wait for a follower",
    "open": "wait for a writer",
    "dropped": "dropped",
}


def create(
    by: Literal["human", "language-model", "generated"],
    name: str = "collected",
    corpus: Literal["cage", "field"] = "cage",
    layouts: tuple[Path, ...] = (),
    paths: int = 20,
    segments: tuple[int, int] = (4, 6),
    tries: int = 3,
    dev: float = 0.1,
    test: float = 0.1,
    practice: int = 1,
    seed: int = 0,
    processes: int = 0,
    out: Path = Path("collection.db"),
) -> None:
    """Make a collection: paths that people will describe, with all images and videos, in one file.

    Each path is cut into segments. One person writes a sentence for each of them, another, who has not seen the path,
    draws where each sentence leads; sentences whose follower ends within 0.47 m of the segment's end are accepted,
    others are written anew by somebody else. Try: wordwing collect create --by human --paths 50 --out mine.db

    Args:
        by: Who will write: human if people do; datasets and tables never mix kinds.
        name: What the dataset will be called.
        corpus: Whose landmarks the random layouts have, and how its paths are walked.
        layouts: Your own layout files in place of random layouts; paths are dealt to them in turn.
        paths: How many paths.
        segments: Fewest and most segments of a path.
        tries: How many people write a sentence for a segment before it is dropped.
        dev: Share of the layouts for the split dev; no layout is in two splits.
        test: Share of the layouts for the split test.
        practice: How many sentences everybody writes, and follows, for practice.
        seed: Chooses layouts, paths and splits.
        processes: How many share the drawing; 0 takes one for each core.
        out: The file to write; nothing may be there.
    """
    from wordwing.collect.create import create_collection, new_settings, plan
    from wordwing.world.layout import Layout

    check_counts(paths=paths, tries=tries, practice=practice, seed=seed, processes=processes)
    if not 1 <= segments[0] <= segments[1] <= MOST_SEGMENTS:
        raise WordwingError(
            f"--segments is {segments[0]} {segments[1]}; it must be fewest and most, from 1 to {MOST_SEGMENTS}"
        )
    for option, share in (("dev", dev), ("test", test)):
        if not 0 <= share <= MOST_HELD_OUT:
            raise WordwingError(f"--{option} is {share}; it must be from 0 to {MOST_HELD_OUT}")
    safe_name(name, "--name")
    check_new(out)
    own = [Layout.load(file) for file in layouts]
    made = plan(new_settings(name, by, tries, seed), corpus, paths, segments, own, dev, test, practice)
    drawn = len(made.paths) + len(made.practice)
    shared_by = 1 if drawn <= FEW else processes or os.cpu_count() or 1
    with bar("drawing", drawn, "paths") as tick:
        create_collection(made, out, shared_by, tick)
    print(f"{len(made.paths)} paths in {len(made.layouts)} layouts, {made.segments} segments to write about")
    print(out)


def serve(
    collection: Annotated[Path, tyro.conf.Positional],
    /,
    host: str = "127.0.0.1",
    port: int = 8082,
    names: tuple[str, ...] = (),
    token: str | None = None,
) -> None:
    """Open the page on which people write and follow, and print the link that invites them.

    Everybody who follows it and begins gets a link of their own, with which they can continue later. On this machine no
    invitation is needed; where others can connect, only visitors with the printed link, which holds a token, can begin.

    Args:
        collection: The collection's file.
        host: Which address to listen on; 0.0.0.0 is every address of this machine.
        port: Which port.
        names: Other names by which browsers may reach it, such as that of a reverse proxy: collect.example.org
        token: What the invitation holds; by default what the file tells, so that it stays the same.
    """
    check_port(port)
    check_packages("the page of a collection", "studio")
    from wordwing.collect.server import make_server
    from wordwing.collect.store import Collection

    serve_page(make_server, Collection(collection), "people", host, port, names, token)


def status(collection: Annotated[Path, tyro.conf.Positional], /, json: Path | None = None) -> None:
    """Say how far a collection is: sentences, agreement, and what each person has done.

    Args:
        collection: The collection's file; it may be served at the same time.
        json: A file to write everything to as well.
    """
    from wordwing.collect.export import status_of
    from wordwing.collect.store import Collection

    found = status_of(Collection(collection))
    total = sum(found.segments.values())
    print(f"{total:,} segments: " + ", ".join(f"{found.segments[key]:,} {words}" for key, words in STATES.items()))
    print(found.agreement)
    for person in found.people:
        print(
            f"person {person.number}: {person.written:,} written, {person.accepted:,} accepted, "
            f"{person.refused:,} not; {person.followed:,} followed"
        )
    if json is not None:
        write_text(json, dumps(found.to_json(), indent=1) + "\n")


def export(
    collection: Annotated[Path, tyro.conf.Positional],
    /,
    out: Path,
    sentences: Path | None = None,
) -> None:
    """Write the accepted sentences as a dataset, with which wordwing trains and evaluates as with any other.

    The collection may be unfinished; nothing in it changes. Then: wordwing data stats DIR; wordwing train sureal …

    Args:
        collection: The collection's file.
        out: The dataset's folder; nothing may be there.
        sentences: A file for all sentences, accepted or not, as JSON lines: writer, follower, the line that was drawn.
    """
    from wordwing.collect.export import export as export_dataset, status_of
    from wordwing.collect.store import Collection

    opened = Collection(collection)
    dataset = export_dataset(opened, out, sentences)
    counts = dataset.meta["counts"]
    print("; ".join(f"{split}: {row['segments']:,} segments" for split, row in counts.items()))
    print(status_of(opened).agreement, *filter(None, (out, sentences)), sep="\n")

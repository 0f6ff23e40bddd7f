"""Sizes, judge's rates and demonstrations of the corpora in the cache, as JSON lines for docs/data.md.

Usage: python experiments/corpora/corpora.py sizes > experiments/corpora/corpora-sizes.jsonl
       python experiments/corpora/corpora.py words > experiments/corpora/corpora-words.jsonl
       python experiments/corpora/corpora.py judge > experiments/corpora/corpora-judge.jsonl
       python experiments/corpora/corpora.py demonstrations > experiments/corpora/demonstrations.jsonl
The last needs the output of `wordwing data demonstrate` for each corpus in sim and for cage in the lab.
"""

import json
import sys
from dataclasses import asdict

from wordwing.data.corpora import corpus
from wordwing.data.demonstrations.archive import Demonstrations
from wordwing.data.demonstrations.flying import summarise
from wordwing.data.generating import SIZES
from wordwing.data.judge_rates import Rate, judge_rates
from wordwing.data.statistics import describe
from wordwing.interface import Domain

CORPORA = (*SIZES, "house")
"""Those with demonstrations."""

PACKED = ("written", "typed")
"""Those that come with wordwing."""


def sizes() -> None:
    """The paper's table of dataset sizes, ours first."""
    for name in (*CORPORA, *PACKED):
        found = describe(corpus(name))
        for row in found.rows:
            if not row.instructions:
                continue
            entry = {"corpus": name, "sentences": found.text, "segments": row.segments, "split": row.split}
            shares = {"goal in view, %": percent_of(row.visible), "mirrored, %": percent_of(row.reflected)}
            print_row(entry | figures(asdict(row)) | shares)
            if row.paper is not None:
                print_row(entry | {"corpus": str(found.paper), "sentences": "human"} | figures(row.paper._asdict()))


def words() -> None:
    """The words of each split, and how often readers find where a segment ends."""
    for name in ("cage", "tours", "house", *PACKED):  # field and errands have the words of the program that writes cage
        found = describe(corpus(name))
        for split, (tokens, types) in found.words.splits.items():
            entry = {"corpus": name, "sentences": found.text, "split": split, "tokens": tokens, "types": types}
            unknown = found.words.unknown.get(split)
            entry["unknown tokens, %"] = "" if unknown is None else percent_of(unknown)
            readers = found.readers.get(split)
            entry["readers within 0.47 m, %"] = percent_of(readers.near / readers.readings) if readers else ""
            entry["readings"] = readers.readings if readers else ""
            print_row(entry)


def percent_of(share: float) -> float:
    """A share in percent, to a tenth."""
    return round(100 * share, 1)


def figures(row: dict) -> dict:
    """The columns that the paper has."""
    return {
        "paragraphs": row["paragraphs"],
        "instructions": row["instructions"],
        "mean tokens": round(row["tokens"], 2),
        "mean path, m": round(row["metres"], 2),
    }


def judge() -> None:
    """The judge's three rates on the dev splits."""
    for name in ("cage", "field", "errands", "tours"):
        for segments, rates in judge_rates(corpus(name), "dev").items():
            shown = {
                "demonstrations accepted (0.95 or more)": rates.gold,
                "other paths of the layout rejected (below 0.5)": rates.another,
                "clauses with a side rejected when mirrored (below 0.5)": rates.all_mirrored,
            }
            for what, rate in shown.items():
                if rate.total:
                    print_row({"corpus": name, "segments": segments, "rate": what, **percent(rate)})


def percent(rate: Rate) -> dict:
    """A rate with its 95 % interval."""
    low, high = rate.interval
    return {"%": round(100 * rate.share, 1), "95 % interval": f"{100 * low:.1f} to {100 * high:.1f}", "n": rate.total}


def demonstrations() -> None:
    """How well ORACLE follows the gold paths."""
    flown: list[tuple[str, Domain]] = [(name, "sim") for name in CORPORA]
    for name, domain in [*flown, ("cage", "lab")]:
        dataset = corpus(name)
        for split in dataset.splits if domain == "sim" else ["train"]:
            file = dataset.folder / "demonstrations" / f"{domain}-{split}.npz"

            flights = Demonstrations.load(file, dataset, domain)
            known = {entry.id: entry for entry in dataset.instructions(split)}
            found = summarise(flights, [known[name] for name in flights.ids])
            low, high = found.interval
            print_row(
                {
                    "domain": domain,
                    "corpus": name,
                    "split": split,
                    "flights": found.flights,
                    "success, %": round(100 * found.success, 2),
                    "95 % interval": f"{100 * low:.2f} to {100 * high:.2f}",
                    "mean steps": round(found.steps, 1),
                    f"EMD, m (of {found.sampled})": round(found.emd, 3),
                    "MB": round(file.stat().st_size / 1e6, 1),
                }
            )


def print_row(row: dict) -> None:
    """One JSON line."""
    print(json.dumps(row, ensure_ascii=False), flush=True)


if __name__ == "__main__":
    {"sizes": sizes, "words": words, "judge": judge, "demonstrations": demonstrations}[sys.argv[1]]()

"""The corpus `written`: its packed file, the replies that it is made of, and the dataset that it becomes."""

import importlib
import json
import lzma
import math
from collections import Counter, defaultdict
from pathlib import Path

import pytest

from wordwing.commands.statistics import stats
from wordwing.data import corpora, written
from wordwing.data.corpora import corpus
from wordwing.data.demonstrations.flying import fly_sim
from wordwing.data.written import read_written, unpack
from wordwing.errors import WordwingError

SCRIPTS = Path(__file__).parents[2] / "scripts"
LAYOUT = {"schema": 1, "arena": 4.7, "landmarks": [{"name": "Barrel", "x": 1.0, "y": 1.5}]}
PATH = [[0.0, -1.0], [0.1, -1.0], [0.2, -0.9], [0.3, -0.8], [0.4, -0.8]]
TEXTS = ["go to the barrel", "then a bit further, mate"]


@pytest.fixture
def replies(monkeypatch):
    monkeypatch.syspath_prepend(str(SCRIPTS))
    return importlib.import_module("written_replies")


def sha(name: str) -> str:
    return (name.encode().hex() * 64)[:64]


def plan(writer: str, sheet: str = "001") -> dict:
    """A line of paragraphs.jsonl: two segments that share the third point."""
    name = f"{writer}-{sheet}"
    segments = [
        {"instruction": "", "start": [0.0, -1.0, 0.5], "path": PATH[:3]},
        {"instruction": "", "start": [0.2, -0.9, 0.7854], "path": PATH[2:]},
    ]
    paragraph = {"id": name, "split": "train", "layout": name, "segments": segments}
    row = {"writer": writer, "sheet": f"{sheet}.png", "sha256": sha(name), "world": "cage"}
    return row | {"paragraph": paragraph, "layout": LAYOUT}


def lines(path: Path, *rows: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(row if isinstance(row, str) else json.dumps(row) + "\n" for row in rows), "utf-8")


def reply(*sentences: str, sheet: str = "001") -> dict:
    return {"sheet": f"{sheet}.png", "sentences": list(sentences)}


@pytest.fixture
def out(tmp_path) -> Path:
    """Work for two writers with two sheets each; somebody is to read the second segment of the first."""
    folder = tmp_path / "work"
    lines(folder / "paragraphs.jsonl", *(plan(writer, sheet) for writer in ("01", "39") for sheet in ("001", "002")))
    reading = {"reader": "07", "sheet": "001.png", "paragraph": "01-001", "segment": 1, "sha256": sha("r")}
    lines(folder / "readings.jsonl", reading)
    lines(folder / "readers/07/reply.jsonl", {"sheet": "001.png", "x": None, "y": None})
    return folder


def collect(replies, monkeypatch, out: Path, *options: str) -> list[dict]:
    """The lines of the packed file that the script writes."""
    monkeypatch.setattr("sys.argv", ["written_replies.py", str(out), "--packed", str(out / "packed.xz"), *options])
    replies.main()
    with lzma.open(out / "packed.xz", "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def test_a_reply_is_kept_verbatim_with_its_sheet_its_writer_and_its_path(replies, monkeypatch, out):
    lines(out / "writers/01/reply.jsonl", reply("Gå tae the  barrel!! ", TEXTS[1]))
    head, row = collect(replies, monkeypatch, out)
    assert {profile["id"]: profile["split"] for profile in head["profiles"]}["39"] == "dev"
    assert (row["id"], row["writer"], row["sha256"], row["world"]) == ("01-001", "01", sha("01-001"), "cage")
    assert row["sentences"] == ["Gå tae the  barrel!! ", TEXTS[1]]
    assert row["path"] == [[0, -1000], [100, 0], [100, 100], [100, 100], [100, 0]]
    assert (row["ends"], row["yaws"], row["layout"]) == ([2, 4], [0.5, 0.7854], LAYOUT)


@pytest.mark.parametrize(
    ("sentences", "kind"),
    [
        ((*TEXTS, "and on"), "number of sentences: 01: line 1: 3 for 2 parts"),
        (("go\nthere", TEXTS[1]), "control characters: 01: line 1: 'go\\nthere'"),
        (("stop next to B.", TEXTS[1]), 'letter of a picture: 01: line 1: "B" in'),
        (("past A, then on", TEXTS[1]), 'letter of a picture: 01: line 1: "A" in'),
        (("over to letter c", TEXTS[1]), 'letter of a picture: 01: line 1: "letter c" in'),
        (("follow the orange line", TEXTS[1]), 'colour of an arrow: 01: line 1: "orange line" in'),
        (("go where the arrow goes", TEXTS[1]), 'colour of an arrow: 01: line 1: "arrow" in'),
        (("this is part 3", TEXTS[1]), 'number of a part: 01: line 1: "part 3" in'),
        (("to the end of two", TEXTS[1]), 'number of a part: 01: line 1: "end of two" in'),
        (("as on the sheet", TEXTS[1]), 'sheet, picture, map or camera image: 01: line 1: "sheet" in'),
        (("the map shows it", TEXTS[1]), 'sheet, picture, map or camera image: 01: line 1: "map" in'),
        (("see the camera image", TEXTS[1]), 'sheet, picture, map or camera image: 01: line 1: "image" in'),
    ],
)
def test_a_reply_with_one_mistake_is_reported_and_left_out(replies, monkeypatch, out, capsys, sentences, kind):
    lines(out / "writers/01/reply.jsonl", reply(*sentences), reply(*TEXTS, sheet="002"))
    rows = collect(replies, monkeypatch, out)
    assert [row["id"] for row in rows[1:]] == ["01-002"]
    printed = capsys.readouterr().out
    assert kind in printed
    assert "paragraphs left out: 1" in printed


@pytest.mark.parametrize(
    "sentence",
    [
        "A bit right. A U-turn, then stop 0.5 m from the blue and yellow corner",
        "Do a C shape round it, I say; E.T. phones home",
        "point your camera at the second part of the fence",
        "go 2 steps, then to the end of two metres, at your 3 o'clock",
        "G'day, keep the cone L/H, past the sheet metal box and the black post",
    ],
)
def test_what_only_looks_like_a_mistake_is_none(replies, sentence):
    assert list(replies.mistakes([sentence], 1)) == []


def test_lines_that_are_not_finished_wait_and_damaged_ones_are_reported(replies, monkeypatch, out, capsys):
    lines(out / "writers/01/reply.jsonl", reply(TEXTS[0], ""), '{"sheet": "002.png", "sent')
    lines(out / "writers/39/reply.jsonl", reply("", ""), reply(*TEXTS, sheet="009"))
    assert len(collect(replies, monkeypatch, out)) == 1
    printed = capsys.readouterr().out
    assert "form: 01: line 2: not valid JSON" in printed
    assert "form: 39: line 2: there is no sheet 009.png" in printed
    assert "not yet written: 2" in printed


def test_later_replies_are_added_and_nothing_is_lost_or_changed(replies, monkeypatch, out, capsys):
    lines(out / "writers/01/reply.jsonl", reply(*TEXTS))
    collect(replies, monkeypatch, out)
    lines(out / "writers/01/reply.jsonl", reply("something", "else"), reply("three", "four", sheet="002"))
    lines(out / "writers/39/reply.jsonl", reply("five", "six"))
    rows = collect(replies, monkeypatch, out)
    assert {row["id"]: row["sentences"] for row in rows[1:]} == {
        "01-001": TEXTS,
        "01-002": ["three", "four"],
        "39-001": ["five", "six"],
    }
    assert "the packed file has another reply to this sheet, which stays" in capsys.readouterr().out
    for folder in out.glob("writers/*"):
        (folder / "reply.jsonl").unlink()  # the sheets were drawn again elsewhere
    assert collect(replies, monkeypatch, out) == rows


def test_the_order_in_which_replies_come_does_not_change_a_byte(replies, monkeypatch, out):
    ends = []
    for order in (("01", "39"), ("39", "01")):
        for writer in order:
            lines(out / f"writers/{writer}/reply.jsonl", reply(f"{writer} one", f"{writer} two"))
            collect(replies, monkeypatch, out)
        ends.append((out / "packed.xz").read_bytes())
        (out / "packed.xz").unlink()
        for writer in order:
            (out / f"writers/{writer}/reply.jsonl").unlink()
    assert ends[0] == ends[1]


def test_another_path_under_a_known_name_is_refused(replies, monkeypatch, out):
    lines(out / "writers/01/reply.jsonl", reply(*TEXTS))
    before = collect(replies, monkeypatch, out)
    row = plan("01")
    row["paragraph"]["segments"][1]["path"][-1] = [0.4, -0.7]
    lines(out / "paragraphs.jsonl", row)
    with pytest.raises(WordwingError, match=r"01-001 is another path than in the packed file"):
        collect(replies, monkeypatch, out)
    lines(out / "paragraphs.jsonl")
    (out / "writers/01/reply.jsonl").unlink()
    assert collect(replies, monkeypatch, out) == before


def test_doubles_are_reported_and_more_than_one_percent_is_too_much(replies, monkeypatch, out, capsys):
    lines(out / "writers/01/reply.jsonl", reply(*TEXTS))
    lines(out / "writers/39/reply.jsonl", reply("Go to the BARREL.", "another"))
    with pytest.raises(SystemExit, match="more than 1% of 4 sentences"):
        collect(replies, monkeypatch, out)
    assert "double: 01-001 and 39-001: Go to the BARREL." in capsys.readouterr().out


def test_a_check_writes_nothing(replies, monkeypatch, out):
    lines(out / "writers/01/reply.jsonl", reply(*TEXTS))
    with pytest.raises(FileNotFoundError):
        collect(replies, monkeypatch, out, "--check")
    assert not (out / "readers/07/sentences.jsonl").exists()


def test_readers_get_the_sentences_that_exist_and_answer_in_the_frame_of_the_image(replies, monkeypatch, out, capsys):
    lines(out / "writers/39/reply.jsonl", reply(*TEXTS))
    collect(replies, monkeypatch, out)
    assert not (out / "readers/07/sentences.jsonl").exists()
    lines(out / "writers/01/reply.jsonl", reply("one", "two"))
    collect(replies, monkeypatch, out)
    row = json.loads((out / "readers/07/sentences.jsonl").read_text("utf-8"))
    assert row == {"sheet": "001.png", "before": ["one"], "sentence": "two"}
    # In the image x is to the right and y up; the world's x is up and its y to the left. The segment ends at
    # (0.4, −0.8) of the world: 0.4 up and 0.8 to the right.
    lines(out / "readers/07/reply.jsonl", {"sheet": "001.png", "x": 0.8, "y": 0.0})
    packed = collect(replies, monkeypatch, out)
    [reading] = packed[1]["readings"]
    assert reading == {"segment": 1, "reader": "07", "sha256": sha("r"), "x": 0.0, "y": -0.8}
    assert "readers: 100.0% of 1 within 0.47 m" in capsys.readouterr().out
    lines(out / "readers/07/reply.jsonl", {"sheet": "001.png", "x": 2.0, "y": 9.0})
    assert collect(replies, monkeypatch, out) == packed
    assert '"y" is 9.0' in capsys.readouterr().out


@pytest.fixture
def packed(tmp_path, monkeypatch) -> Path:
    """A packed file of three paragraphs by writers of three splits; it is what comes with wordwing."""
    splits = {"ann": "train", "bob": "dev", "cat": "test"}
    profiles = [{"id": name, "split": split, "traits": {"tone": "dry"}} for name, split in splits.items()]
    rows: list[dict] = [{"schema": 1, "profiles": profiles}]
    for writer in splits:
        reading = {"segment": 1, "reader": "ann", "sha256": sha("r"), "x": 0.4, "y": -0.8 + (writer == "cat")}
        rows.append(
            {
                "id": f"{writer}-1",
                "writer": writer,
                "sha256": sha(writer),
                "world": "cage",
                "layout": LAYOUT,
                "path": [[-1500, 0], [500, 0], [0, 600], [400, 0]],
                "ends": [1, 3],
                "yaws": [0.0, 1.0],
                "sentences": [f"{writer} says go", "and go on"],
                "readings": [] if writer == "bob" else [reading, reading | {"reader": "cat", "x": -0.6, "y": 0.6}],
            }
        )
    path = tmp_path / "packed.jsonl.xz"
    path.write_bytes(lzma.compress("".join(json.dumps(row) + "\n" for row in rows).encode()))
    monkeypatch.setitem(corpora.PACKED, "written", (path, unpack))
    monkeypatch.setenv("WORDWING_CACHE", str(tmp_path / "cache"))
    return path


def test_the_dataset_has_the_paths_sentences_and_splits_of_the_file(packed):
    dataset = corpus("written", seed=5)
    dataset.validate()
    assert (dataset.name, dataset.meta["text"], dataset.splits) == (
        "written",
        "language-model",
        ["train", "dev", "test"],
    )
    assert corpus("written").folder == dataset.folder
    entries = {entry.id: entry for entry in dataset.instructions("dev")}
    assert {name: entry.segments for name, entry in entries.items()} == {"bob-1/0": 1, "bob-1/1": 1, "bob-1/0-1": 2}
    second = entries["bob-1/1"].segment
    assert (second.instruction, second.start_xy, second.start_yaw) == ("and go on", (-1.0, 0.0), 1.0)
    assert second.path.tolist() == [[-1.0, 0.0], [-1.0, 0.6], [-0.6, 0.6]]
    assert entries["bob-1/0-1"].segment.path.tolist() == [[-1.5, 0.0], [-1.0, 0.0], [-1.0, 0.6], [-0.6, 0.6]]


def test_another_packed_file_is_another_dataset(packed, monkeypatch):
    before = corpus("written").folder
    text = lzma.decompress(packed.read_bytes()).replace(b"and go on", b"now go on")
    packed.write_bytes(lzma.compress(text))
    after = corpus("written")
    assert after.folder != before
    assert {segment.instruction for row in after.paragraphs() for segment in row.segments[1:]} == {"now go on"}


def test_agreement_of_readers_is_the_share_within_a_tenth_of_the_arena(packed, capsys):
    # Of ann's two readings one is at the end, (−0.6, 0.6), and one 1.72 m away; of cat's one is 1.08 m away.
    assert math.dist((0.4, -0.8), (-0.6, 0.6)) == pytest.approx(1.72, abs=0.001)
    stats(corpus=("written",))
    printed = " ".join(capsys.readouterr().out.split())
    assert "Sentences written by language models that saw pictures." in printed
    assert "within 0.47 m of where a segment ends: train 50.0% of 2, test 50.0% of 2." in printed


def test_oracle_demonstrates_it(packed):
    dataset = corpus("written")
    flights = fly_sim(dataset, list(dataset.instructions("train")))
    for number, end in enumerate(([-1.0, 0.0], [-0.6, 0.6], [-0.6, 0.6])):
        assert math.dist(flights.poses(number).position[-1, :2].tolist(), end) < 0.47


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ('"ends": [1, 3]', '"ends": [1, 2]', "line 2: must have ends that go up to the last point of its path"),
        ('"ends": [1, 3]', '"ends": [3]', "line 2: must have as many ends, yaws and sentences"),
        ('"segment": 1', '"segment": 2', "line 2: must have readings of its own segments only"),
        ('"schema": 1', '"schema": 2', 'line 1: "schema" is 2; it must be 1'),
        ('"world": "cage"', '"world": "moon"', 'line 2: "world" is "moon"; it must be cage or field'),
    ],
)
def test_a_damaged_packed_file_is_answered_with_a_sentence(packed, old, new, sentence):
    text = lzma.decompress(packed.read_bytes()).decode()
    assert old in text
    packed.write_bytes(lzma.compress(text.replace(old, new, 1).encode()))
    with pytest.raises(WordwingError) as error:
        read_written(packed)
    assert sentence in str(error.value)


def test_the_file_that_comes_with_wordwing_is_small_and_shares_neither_writers_nor_layouts_between_splits(tmp_path):
    assert written.PACKED.stat().st_size < 900_000
    profiles, paragraphs = read_written()
    splits = {profile.id: profile.split for profile in profiles}
    assert len(splits) == len(profiles) >= 40
    homes = defaultdict(set)
    for entry in paragraphs:
        homes[json.dumps(entry.layout, sort_keys=True)].add(splits[entry.writer])
    assert set(map(len, homes.values())) == {1}
    dataset = unpack(written.PACKED, tmp_path / "written")
    dataset.validate()
    counts = Counter(splits[entry.writer] for entry in paragraphs)
    assert {split: row["paragraphs"] for split, row in dataset.meta["counts"].items()} == counts

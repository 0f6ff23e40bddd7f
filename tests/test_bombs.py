"""Files that anyone may have written: one that is too large is refused before it fills the memory."""

import json
import lzma
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

import bombs
from small_evaluation import bare_dataset, save_policy
from small_study import small_study
from wordwing.data.dataset import MAX_META, Dataset
from wordwing.data.importers import houses
from wordwing.data.importers.annotations import read_annotations
from wordwing.data.importers.originals import ImportNotes
from wordwing.errors import WordwingError
from wordwing.evaluation.report.curves import TrainingRun
from wordwing.files import read_bytes, read_image, read_json, read_lines
from wordwing.flight import logs
from wordwing.language.tokenizer import MAX_WORDS, Vocabulary
from wordwing.learning.runtime.checkpoints import load_state, save_state

ALLOWED = 150
"""Megabytes that reading any of these may take."""

WORDS = b"<pad>\n<unk>\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """A file of each kind that takes 200 MB or more where its size is not looked at first."""
    place = tmp_path_factory.mktemp("bombs")
    bombs.write_log(place / "log", observations=25, width=3000, height=2000)
    bombs.write_log(place / "wide", observations=2, width=20_000, height=20_000)
    bombs.write_archive(place / "sim-train.npz", rows=600_000_000 // 16)
    bombs.sparse(place / "vocab.txt", WORDS, 300_000_000)
    policy = save_policy(place / "policy")
    (policy / "vocab.txt").write_bytes(WORDS + b"".join(b"w%x\n" % number for number in range(1_500_000)))
    weights = save_policy(place / "weights") / "model.safetensors"
    bombs.sparse(weights, weights.read_bytes(), 300_000_000)
    policy = save_policy(place / "network")
    shape = json.loads((policy / "config.json").read_text())
    shape["model"]["stage1"] |= {
        "vision": {"channels": 256},
        "text": {"words": 512, "hidden": 256, "dropout": 0.0},
        "lingunet": {"levels": 6, "channels": 256, "filtered": 128, "last": 512},
    }
    (policy / "config.json").write_text(json.dumps(shape))
    dataset = bare_dataset(place / "dataset", [("p", "train", "l")])
    bombs.sparse(dataset.folder / "meta.json", b" ", 300_000_000)
    bombs.write_episodes(place / "episodes.jsonl.xz", 200_000_000)
    return place


def test_no_small_file_fills_the_memory(folder):
    """In a process of its own, whose largest memory the system measures."""
    files = {
        "log=log": "",
        "log=wide": "",
        "demonstrations=sim-train.npz": "its arrays have more than 512 MB, unpacked",
        "vocabulary=vocab.txt": "the file has more than 8000000 bytes, so it is no vocabulary",
        "policy=policy": "vocab.txt: the file has more than 8000000 bytes, so it is no vocabulary",
        "policy=weights": "model.safetensors: the file has more than",
        "policy=network": "with this config.json and vocab.txt it must be",
        "dataset=dataset": "meta.json: the file has more than 1000000 bytes",
        "episodes=episodes.jsonl.xz": "line 1 is longer than 4 MB",
    }
    given = [name.replace("=", f"={folder}/") for name in files]
    done = subprocess.run([sys.executable, bombs.__file__, *given], capture_output=True, text=True, check=True)
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(found) == len(files)
    for (what, megabytes, said), (name, wanted) in zip(found, files.items(), strict=True):
        assert name.startswith(what)
        assert wanted in said, name
        assert not said.startswith("traceback"), name
        assert megabytes < ALLOWED, name


def test_an_image_of_another_size_is_not_unpacked(tmp_path):
    (tmp_path / "frames").mkdir()
    for size in ((3000, 2000), (12_000, 12_000), (20_000, 20_000)):
        (tmp_path / "frames" / "1.png").write_bytes(bombs.png(*size))
        assert logs.load_frame(tmp_path, "1.png") is None
        with pytest.raises(WordwingError, match=r"3000 × 2000, not 128 × 72|far larger than 128 × 72"):
            read_image(tmp_path / "frames" / "1.png", 128, 72, ("PNG",))
    (tmp_path / "frames" / "1.png").write_bytes(bombs.png(128, 72))
    assert logs.load_frame(tmp_path, "1.png").shape == (72, 128, 3)


def test_a_file_that_is_larger_than_it_may_be_is_refused(tmp_path):
    (tmp_path / "a").write_bytes(b"12345")
    assert read_bytes(tmp_path / "a", 5, "number") == b"12345"
    with pytest.raises(WordwingError) as caught:
        read_bytes(tmp_path / "a", 4, "number")
    assert str(caught.value) == f"{tmp_path / 'a'}: the file has more than 4 bytes, so it is no number"
    with pytest.raises(WordwingError, match="so it is no number"):
        read_json("/dev/zero", 4, "number")  # which has no size at all


def packed(path: Path, *streams: bytes) -> Path:
    path.write_bytes(b"".join(streams))
    return path


def test_lines_are_those_that_were_packed(tmp_path):
    one, two = lzma.compress(b"a\nbb\n"), lzma.compress(b"ccc")
    lines = [b"a\n", b"bb\n", b"ccc"]
    assert list(read_lines(packed(tmp_path / "a.xz", one, two), 4)) == lines
    assert list(read_lines(packed(tmp_path / "b.xz", one, b"\0" * 8, two, b"\0" * 4), 4)) == lines
    assert list(read_lines(packed(tmp_path / "plain", b"a\nbb\nccc"), 4)) == lines
    assert b"".join(read_lines(packed(tmp_path / "c.xz", lzma.compress(b"x" * 10**6)), 10**6)) == b"x" * 10**6


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (lzma.compress(b"a\n" * 9)[:-20], "not a whole xz file"),
        (b"nothing", "after line 0: not a whole xz file"),
        (b"", "not a whole xz file"),
        (lzma.compress(b"a\n", filters=[{"id": lzma.FILTER_LZMA2, "dict_size": 2**29}]), "not a whole xz file (Memory"),
        (lzma.compress(b"a\n" * 2_000_001), "more than 4 MB, unpacked"),
        (lzma.compress(b"a" * 2_000_001), "line 1 is longer than 2 MB"),
    ],
)
def test_packed_files_that_are_damaged_or_too_large_get_one_sentence(tmp_path, data, said):
    with pytest.raises(WordwingError) as caught:
        list(read_lines(packed(tmp_path / "a.xz", data), 2_000_000, 4_000_000))
    assert said in str(caught.value)


def test_an_import_ends_where_a_split_has_unpacked_too_much(tmp_path, monkeypatch):
    monkeypatch.setattr(houses, "MAX_UNPACKED", 1_000_000)
    (tmp_path / "scenes.json").write_text('{"a": []}')
    row = {"scene": "a", "segments": [{"instruction": "go", "start_yaw": 0, "end_yaw": 0, "path": [[0, 0]]}]}
    with lzma.open(tmp_path / "train.jsonl.xz", "wt") as file:
        file.writelines(json.dumps({"id": f"{number}", **row}) + "\n" for number in range(10_000))
    with pytest.raises(WordwingError, match=r"train\.jsonl\.xz: it has more than 1 MB, unpacked"):
        houses.read_human_nav(tmp_path)


def test_a_vocabulary_has_so_many_words_at_most(tmp_path):
    words = [f"w{number}" for number in range(MAX_WORDS + 5)]
    made = Vocabulary.of([" ".join(words)], min_count=1)
    made.save(tmp_path / "vocab.txt")
    assert len(Vocabulary.load(tmp_path / "vocab.txt")) == MAX_WORDS
    with open(tmp_path / "vocab.txt", "a") as file:
        file.write("another\n")
    with pytest.raises(WordwingError, match=f"more than {MAX_WORDS} words"):
        Vocabulary.load(tmp_path / "vocab.txt")


def test_other_files_that_are_too_large_are_named(tmp_path, monkeypatch):
    bombs.sparse(tmp_path / "a.json", b"[", 64_000_001)
    with pytest.raises(WordwingError, match=r"a\.json: .* so it is no file of annotations"):
        read_annotations(tmp_path / "a.json", "train", ImportNotes())
    monkeypatch.setattr(logs, "MAX_EVENTS", 1_000_000)
    (tmp_path / "events.jsonl").write_bytes(b'{"time": 1, "kind": "x"}\n' * 40_001)
    with pytest.raises(WordwingError, match=r"events\.jsonl: it has more than 1 MB"):
        logs.read_events(tmp_path)
    (tmp_path / "run.json").write_bytes(b" " * (MAX_META + 1))
    with pytest.raises(WordwingError, match="this is not a run of wordwing train"):
        TrainingRun.read(tmp_path)
    save_state(tmp_path / "state", {}, {})
    [shard] = (tmp_path / "state").iterdir()
    bombs.sparse(shard, shard.read_bytes(), 17_000_000)
    with pytest.raises(WordwingError, match="so it is no file of a training state"):
        load_state(tmp_path / "state")


@pytest.mark.parametrize("steps", [10_001, 10**30])
def test_a_dataset_gives_no_flight_endless_time(tmp_path, steps):
    folder = bare_dataset(tmp_path / "data", [("p", "train", "l")]).folder
    meta = json.loads((folder / "meta.json").read_text("utf-8"))
    (folder / "meta.json").write_text(json.dumps(meta | {"steps": steps}), "utf-8")
    with pytest.raises(WordwingError, match="it must be a whole number from 1 to 10,000"):
        Dataset(folder)


def test_a_film_in_a_study_that_is_too_large_is_not_read(tmp_path):
    study = small_study(tmp_path / "s.db")
    with sqlite3.connect(tmp_path / "s.db") as connection:
        [number, item] = connection.execute("SELECT number, id FROM items LIMIT 1").fetchone()
        connection.execute("UPDATE films SET film = zeroblob(65000000) WHERE item = ?", (number,))
    with pytest.raises(WordwingError, match="too big"):
        study.media_of(item, "video")
    assert study.media_of(item, "still")

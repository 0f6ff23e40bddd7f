"""The table of word vectors that comes with wordwing."""

import time
from hashlib import sha256

import numpy as np
import pytest

from wordwing.language.text_checks import WordIssue, word_issues
from wordwing.language.tokenizer import PAD, UNKNOWN, Vocabulary
from wordwing.language.word_vectors import FILE, word_table
from wordwing.world.catalogue import lexicon

KNOWING = Vocabulary((PAD, UNKNOWN, "go", "to", "the", "sofa", "2", "2.5", "coach"), tokenizer=2)


def test_the_table_is_the_one_of_tokenizer_2():
    # Policies were trained with these bytes: another table needs another tokenizer.
    assert sha256(FILE.read_bytes()).hexdigest() == "efdb5d5399ca54210115b462db397ab4ff58709d1dc9b156e08aee5c6a4a6163"
    assert FILE.stat().st_size < 6_000_000
    assert "Apache" in (FILE.parent / "NOTICE.md").read_text("utf-8")


def test_the_table_is_read_in_a_fifth_of_a_second():
    began = time.perf_counter()
    table = word_table.__wrapped__()
    assert time.perf_counter() - began < 0.2
    assert table.vectors.shape == (50_001, 96)
    assert table.vectors.nbytes < 5_000_000
    assert not table.vectors[0].any()
    assert sorted(table.row.values()) == list(range(1, 50_001))


def rank(word: str, other: str) -> int:
    """How many words are nearer to a word than another one is, by the cosine."""
    table = word_table()
    vectors = table.vectors[1:] * table.scale
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    likeness = vectors @ vectors[table.row[word] - 1]
    return int((likeness > likeness[table.row[other] - 1]).sum()) - 1


@pytest.mark.parametrize(
    ("word", "other"),
    [
        ("couch", "sofa"),
        ("boulder", "rock"),
        ("alongside", "beside"),
        ("gravestone", "tombstone"),
        ("airplane", "plane"),
        ("refrigerator", "fridge"),
        ("metres", "meters"),
        ("reach", "reached"),
        ("n't", "not"),
    ],
)
def test_words_of_the_same_meaning_are_among_the_nearest(word, other):
    assert rank(word, other) < 10


def test_words_of_other_meanings_are_not_near():
    assert min(rank("couch", "boulder"), rank("boulder", "sofa"), rank("fridge", "veer")) > 1000


def test_what_landmarks_are_called_is_in_the_table():
    words = {word for names in lexicon().values() for phrase in names.names for word in phrase.split()}
    missing = {word for word in words if word.isalpha() and word not in word_table().row}
    assert missing == {"o"}  # of jack-o-lantern


def test_a_word_is_read_by_the_vocabulary_then_by_the_table_then_as_a_mistake():
    row = word_table().row
    assert KNOWING.look_up("sofa") == (5, row["sofa"])
    assert KNOWING.look_up("couch") == (1, row["couch"])  # no mistake for "coach"
    assert KNOWING.look_up("soffa") == (5, row["sofa"])
    assert KNOWING.look_up("2.2") == (6, 0)
    assert KNOWING.look_up("qqzzx") == (1, 0)
    plain = Vocabulary(KNOWING.words)
    assert plain.look_up("sofa") == (5, 0)
    assert plain.look_up("qqzzx") == (1, 0)


def test_only_words_that_say_nothing_are_called_unknown():
    assert word_issues("go to the settee", KNOWING) == []
    assert word_issues("go to the blorb", KNOWING) == [WordIssue("blorb", 10, 15, None)]
    assert word_issues("go 2.2 to", KNOWING) == [WordIssue("2.2", 3, 6, "2")]
    assert word_issues("go to the settee", Vocabulary(KNOWING.words)) == [WordIssue("settee", 10, 16, None)]


def test_a_vocabulary_keeps_its_tokenizer(tmp_path):
    path = tmp_path / "vocab.txt"
    made = Vocabulary.of(["you're 2 metres from the cone's 3 o'clock"] * 2, tokenizer=2)
    assert {"'re", "2", "metres", "'s", "3-o'clock"} < set(made.words)
    made.save(path)
    assert Vocabulary.load(path) == made
    assert made.extended(KNOWING).tokenizer == 2
    assert path.read_text("utf-8").startswith(f"# tokenizer 2\n{PAD}\n{UNKNOWN}\n")
    assert made.encode("two meters") == [made.index["2"], made.index["metres"]]

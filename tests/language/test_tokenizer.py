import sys
import unicodedata
from collections import Counter

import pytest

from wordwing.errors import WordwingError
from wordwing.language.tokenizer import PAD, UNKNOWN, Vocabulary, tokenize
from wordwing.world.catalogue import catalogue

NOUNS = sorted({word for entry in catalogue() for noun in entry.nouns for word in noun.split()})


def unknown(vocabulary: Vocabulary, text: str) -> list[str]:
    """The words of a text that mean nothing to a policy."""
    read = zip(tokenize(text), vocabulary.encode(text), strict=True)
    return [word for word, index in read if index == vocabulary.index[UNKNOWN]]


def knowing(*words: str) -> Vocabulary:
    return Vocabulary((PAD, UNKNOWN, *words))


def edit_distance(a: str, b: str) -> int:
    """Letters dropped, added or changed, and neighbours swapped, to get from one word to another: the whole table."""
    table = {(i, 0): i for i in range(len(a) + 1)} | {(0, j): j for j in range(len(b) + 1)}
    for i in range(1, len(a) + 1):
        for j in range(1, len(b) + 1):
            table[i, j] = min(table[i - 1, j] + 1, table[i, j - 1] + 1, table[i - 1, j - 1] + (a[i - 1] != b[j - 1]))
            if i > 1 and j > 1 and a[i - 2 : i] == b[j - 1] + b[j - 2]:
                table[i, j] = min(table[i, j], table[i - 2, j - 2] + 1)
    return table[len(a), len(b)]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Fly to the RED barrel.", ["fly", "to", "the", "red", "barrel"]),
        ("stop!Then,turn (left)…", ["stop", "then", "turn", "left"]),
        ("don't / don’t", ["don", "t", "don", "t"]),
        ("snake_case well-known\tline\nbreak", ["snake", "case", "well", "known", "line", "break"]),
        ("2.5 m, 90°, 3rd", ["2", "5", "m", "90", "3rd"]),
        ("Ein Café für Größe", ["ein", "café", "für", "größe"]),
        ("go 🚁 to\u00a0the\u3000barrel\u200b", ["go", "to", "the", "barrel"]),
        ("ＦＬＹ ﬁrst ℝ", ["fly", "first", "r"]),
        ("向左转。ПОВЕРНИ", ["向左转", "поверни"]),
        ("half a character \ud83d is none", ["half", "a", "character", "is", "none"]),
        ("nul\x00byte", ["nul", "byte"]),
        ("", []),
        (" \n\t ", []),
        ("?!… — ___", []),
    ],
)
def test_words_are_in_lower_case_and_everything_else_separates_them(text, words):
    assert tokenize(text) == words


def test_an_accent_makes_one_word_however_it_is_encoded():
    for text in ("café naïve ÀÉÎ", "Ångström über"):
        composed, apart = (unicodedata.normalize(form, text) for form in ("NFC", "NFD"))
        assert composed != apart
        assert tokenize(composed) == tokenize(apart) == composed.lower().split()


def test_every_token_of_any_text_is_a_token_of_itself():
    characters = [chr(code) for code in range(sys.maxunicode + 1)]
    tokens = tokenize(" ".join(characters)) + tokenize("a".join(characters))
    assert len(tokens) > 100_000
    assert tokenize(" ".join(tokens)) == tokens
    assert all(word.split() == [word] for word in tokens)


def test_text_without_words_has_no_indices():
    vocabulary = knowing("fly")
    for text in ("", "   ", "?!"):
        assert vocabulary.encode(text) == []
        assert unknown(vocabulary, text) == []


def test_endless_text_is_encoded_like_any_other():
    vocabulary = knowing("fly", "on")
    assert vocabulary.encode("fly on " * 100_000) == [2, 3] * 100_000
    assert vocabulary.encode("a" * 1_000_000) == [1]
    assert unknown(vocabulary, "fly " + "a" * 1_000_000 + " on") == ["a" * 1_000_000]


def test_the_vocabulary_has_the_words_that_occur_twice_the_commonest_first():
    texts = ["Fly to the tree.", "fly fly to a bush", "stop at the bush", "zig, zag", "zag zig"]
    vocabulary = Vocabulary.of(iter(texts))
    counts = Counter(" ".join(texts).lower().replace(".", "").replace(",", "").split())
    assert vocabulary.words[:2] == (PAD, UNKNOWN)
    assert set(vocabulary.words[2:]) == {word for word, count in counts.items() if count > 1}
    ranks = [(-counts[word], word) for word in vocabulary.words[2:]]
    assert ranks == sorted(ranks)
    assert [vocabulary.index[word] for word in vocabulary.words] == list(range(len(vocabulary)))
    assert set(Vocabulary.of(texts, min_count=1).words) == {PAD, UNKNOWN, *counts}
    assert Vocabulary.of([]).words == (PAD, UNKNOWN)


def test_the_unknown_token_stands_for_words_of_the_training_text_itself():
    texts = ["fly to the gazebo", "fly to the pond"]
    vocabulary = Vocabulary.of(texts)
    indices = [index for text in texts for index in vocabulary.encode(text)]
    assert indices.count(vocabulary.index[UNKNOWN]) == 2
    assert vocabulary.index[PAD] not in indices
    assert unknown(vocabulary, "Fly to a Gazebo!") == ["a", "gazebo"]
    assert "fly" in vocabulary
    assert "gazebo" not in vocabulary


def test_nobody_can_type_the_tokens_that_are_no_words():
    vocabulary = knowing("fly")
    assert vocabulary.encode(f"{PAD} {UNKNOWN}") == [1, 1]
    assert unknown(vocabulary, f"{PAD} {UNKNOWN}") == ["pad", "unk"]


def test_a_repaired_word_is_the_commonest_known_one_at_distance_one(rng):
    letters = list("abcde")
    lengths = rng.integers(3, 8, 250)
    known = dict.fromkeys("".join(rng.choice(letters, length)) for length in lengths)
    vocabulary = knowing(*known)
    outcomes = Counter()
    for length in rng.integers(3, 9, 250):
        word = "".join(rng.choice(letters, length))
        near = [other for other in known if edit_distance(word, other) == 1]
        expected = near[0] if len(word) >= 5 and word not in known and near else word
        assert vocabulary.repair(word) == expected
        outcomes[len(word) >= 5, word in known, bool(near)] += 1
    assert outcomes[True, False, True] > 20
    assert outcomes[True, False, False] > 20
    assert outcomes[False, False, True] > 20


@pytest.mark.parametrize("typed", ["barel", "barrrel", "barerl", "barrek", "barrels"])
def test_a_typing_mistake_means_the_word_it_was_meant_to_be(typed):
    vocabulary = knowing("to", "the", "barrel")
    assert vocabulary.encode(f"to the {typed}") == [2, 3, 4]
    assert unknown(vocabulary, f"to the {typed}") == []


@pytest.mark.parametrize("typed", ["barl", "barell", "barelll", "barre1", "barrelled", "brale", "barrèl2"])
def test_what_is_no_small_mistake_is_left_alone(typed):
    vocabulary = knowing("barrel")
    assert vocabulary.repair(typed) == typed
    assert vocabulary.encode(typed) == [1]


def test_short_words_are_never_repaired():
    vocabulary = knowing("left", "tree", "cone")
    for typed in ("lef", "lift", "tre", "free", "con", "cane"):
        assert vocabulary.repair(typed) == typed
    assert vocabulary.repair("leftt") == "left"


def test_mistakes_are_looked_for_in_words_of_up_to_thirty_letters():
    for length, repaired in ((29, True), (30, True), (31, False)):
        word = "ab" * 20
        vocabulary = knowing(word[: length - 1])
        assert vocabulary.repair(word[:length]) == word[: length - repaired]


def test_a_known_word_is_never_repaired():
    vocabulary = knowing("tower", "towel", "flower")
    for word in ("tower", "towel", "flower"):
        assert vocabulary.repair(word) == word


@pytest.mark.parametrize(
    ("typed", "known"),
    [
        ("couch", "coach"),
        ("coach", "couch"),
        ("mouse", "house"),
        ("tower", "towel"),
        ("lable", "table"),
        ("trunk", "truck"),  # of a chest, as the writer calls it
        ("plant", "plane"),
    ],
)
def test_no_word_becomes_the_noun_of_another_landmark(typed, known):
    assert edit_distance(typed, known) <= 2
    assert knowing(known).repair(typed) == typed
    assert knowing(known).encode(typed) == [1]


def test_no_landmarks_noun_is_ever_taken_for_a_mistake(rng):
    others = ["".join(rng.permutation(list(noun))) for noun in NOUNS]
    for noun in NOUNS:
        known = [word for word in (*NOUNS, *others) if word != noun]
        assert knowing(*known, noun + "x", noun[1:]).repair(noun) == noun


def test_no_word_with_another_first_letter_becomes_a_landmarks_noun():
    for noun in NOUNS:
        vocabulary = knowing(noun)
        for letter in "abcdefghijklmnopqrstuvwxyz":
            for typed in {letter + noun[1:], letter + noun} - {noun, noun[0] + noun}:
                assert vocabulary.repair(typed) == typed
    assert knowing("straight").repair("ttraight") == "straight"


def test_where_the_commonest_is_not_safe_the_next_one_is_taken():
    assert knowing("house", "moused").repair("mouse") == "moused"
    assert knowing("moused", "mouses").repair("mouse") == "moused"


def test_what_is_saved_is_what_is_loaded(tmp_path):
    path = tmp_path / "new" / "vocab.txt"
    for vocabulary in (knowing(), Vocabulary.of(["Fly to the café, 3rd 向左 naïve ß İx ΑΣ"] * 2)):
        vocabulary.save(path)
        assert Vocabulary.load(path) == vocabulary
        assert Vocabulary.load(str(path)).index == vocabulary.index
        assert path.read_text("utf-8") == "".join(f"{word}\n" for word in vocabulary.words)
        assert list(path.parent.iterdir()) == [path]


def complaint(path) -> str:
    with pytest.raises(WordwingError) as caught:
        Vocabulary.load(path)
    return str(caught.value)


BEGIN = f"{PAD}\n{UNKNOWN}\n".encode()


def test_a_last_line_without_its_end_is_a_word_too(tmp_path):
    path = tmp_path / "vocab.txt"
    path.write_bytes(BEGIN + b"fly\nto")
    assert Vocabulary.load(path) == knowing("fly", "to")
    path.write_bytes((BEGIN + b"fly\nto\n").replace(b"\n", b"\r\n"))
    assert Vocabulary.load(path) == knowing("fly", "to")


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", f"a vocabulary begins with the lines {PAD} and {UNKNOWN}"),
        (b"fly\nto\n", f"a vocabulary begins with the lines {PAD} and {UNKNOWN}"),
        (f"{UNKNOWN}\n{PAD}\n".encode(), f"a vocabulary begins with the lines {PAD} and {UNKNOWN}"),
        (f"{PAD}\n".encode(), f"a vocabulary begins with the lines {PAD} and {UNKNOWN}"),
        (BEGIN + b"fly\nTo\n", "line 4 is 'To'; it must be one lower-case word"),
        (BEGIN + b"fly to\n", "line 3 is 'fly to'; it must be one lower-case word"),
        (BEGIN + b"fly\n\nto\n", "line 4 is ''; it must be one lower-case word"),
        (BEGIN + b"fly\n\n", "line 4 is ''; it must be one lower-case word"),
        (BEGIN + PAD.encode(), f"line 3 is '{PAD}'; it must be one lower-case word"),
        (BEGIN + b"fly!" * 1000, f"line 3 is {('fly!' * 10)!r}; it must be one lower-case word"),
        (BEGIN + b"fly\nto\nfly\n", '"fly" is there twice'),
        (BEGIN + b"caf\xe9\n", "byte 15 is not UTF-8 text; save the file as UTF-8"),
    ],
)
def test_each_mistake_in_a_file_is_answered_with_one_sentence(content, sentence, tmp_path):
    path = tmp_path / "vocab.txt"
    path.write_bytes(content)
    assert complaint(path) == f"{path}: {sentence}"


def test_a_file_that_cannot_be_read_is_named_with_the_reason(tmp_path):
    assert complaint(tmp_path / "none") == f"{tmp_path / 'none'}: there is no such file"
    assert complaint(tmp_path) == f"{tmp_path}: this is a folder, not a file"

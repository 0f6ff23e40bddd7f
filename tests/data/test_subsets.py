"""Fixed parts of splits are the same for everybody, for ever."""

from collections import Counter

import pytest

from small_evaluation import bare_dataset
from wordwing.data.subsets import instructions_of, paragraphs_of, splits_of
from wordwing.errors import WordwingError

BLOCKS = [(f"p{layout:02}-{number}", "test", f"layout-{layout}") for layout in range(14) for number in range(5)]
OTHERS = [("t-0", "train", "garden"), ("d-0", "dev", "yard"), ("d-1", "dev", "yard")]

CHOSEN = {
    0: (1, 2),
    1: (1, 3),
    3: (3, 4),
    4: (1, 4),
    5: (0, 2),
    6: (0, 2),
    8: (0, 1),
    9: (0, 4),
    11: (0, 3),
    12: (0, 2),
}
"""Layouts, and two paragraphs of each: the first by `printf layout-N | sha256sum` and `printf pNN-M | …`."""


def ids(dataset, split: str) -> list[str]:
    return [paragraph.id for paragraph in paragraphs_of(dataset, split)]


def test_twenty_paragraphs_are_two_of_each_of_ten_layouts(tmp_path):
    dataset = bare_dataset(tmp_path, BLOCKS + OTHERS)
    chosen = list(paragraphs_of(dataset, "test-20"))
    assert len({paragraph.id for paragraph in chosen}) == 20
    assert Counter(Counter(paragraph.layout for paragraph in chosen).values()) == {2: 10}
    assert {paragraph.split for paragraph in chosen} == {"test"}


def test_the_choice_does_not_depend_on_the_order_of_the_file_nor_on_other_splits(tmp_path, rng):
    first = ids(bare_dataset(tmp_path / "a", BLOCKS), "test-20")
    for turn in range(5):
        order = [(BLOCKS + OTHERS)[index] for index in rng.permutation(len(BLOCKS + OTHERS))]
        shuffled = bare_dataset(tmp_path / f"{turn}", order)
        assert sorted(ids(shuffled, "test-20")) == sorted(first)
        assert ids(shuffled, "test-20") == [name for name in ids(shuffled, "test") if name in first]


def test_the_choice_is_for_ever(tmp_path):
    expected = [f"p{layout:02}-{number}" for layout, numbers in CHOSEN.items() for number in numbers]
    assert ids(bare_dataset(tmp_path, BLOCKS), "test-20") == expected


def test_where_every_paragraph_has_its_own_layout_there_are_twenty_layouts(tmp_path):
    field = [(f"p{number}", "dev", f"layout-{number}") for number in range(50)]
    chosen = list(paragraphs_of(bare_dataset(tmp_path, field), "dev-20"))
    assert len({paragraph.layout for paragraph in chosen}) == len(chosen) == 20


def test_layouts_with_two_paragraphs_come_before_those_with_one(tmp_path):
    singles = [(f"s{number}", "test", f"single-{number}") for number in range(40)]
    pairs = [(f"p{number}", "test", f"pair-{number // 2}") for number in range(12)]
    chosen = Counter(entry.layout for entry in paragraphs_of(bare_dataset(tmp_path, singles + pairs), "test-20"))
    assert sum(chosen.values()) == 20
    assert {layout for layout, count in chosen.items() if count == 2} == {f"pair-{number}" for number in range(6)}


@pytest.mark.parametrize("size", [1, 7, 19, 20])
def test_a_small_split_gives_what_there_is(tmp_path, size):
    few = [(f"p{number}", "test", f"layout-{number // 5}") for number in range(size)]
    assert ids(bare_dataset(tmp_path, few), "test-20") == [name for name, _split, _layout in few]


def test_whole_splits_are_whole_and_instructions_are_their_paragraphs(tmp_path):
    dataset = bare_dataset(tmp_path, BLOCKS + OTHERS)
    assert ids(dataset, "test") == [name for name, _split, _layout in BLOCKS]
    assert [entry.id for entry in instructions_of(dataset, "test-20")] == [
        f"{name}/0" for name in ids(dataset, "test-20")
    ]
    assert list(instructions_of(dataset, "test-20", (2,))) == []


def test_a_split_that_does_not_exist_is_answered_with_those_that_do(tmp_path):
    dataset = bare_dataset(tmp_path, BLOCKS + OTHERS)
    assert splits_of(dataset) == ["train", "dev", "test", "dev-20", "test-20"]
    for name in ("tset", "train-20", "test-10", "-20", "test-20-20", ""):
        with pytest.raises(WordwingError) as error:
            ids(dataset, name)
        assert str(error.value) == (
            f'{dataset.folder}: there is no split "{name}"; there are train, dev, test, dev-20, test-20'
        )

"""Examples against the datasets' tasks and files, instruction by instruction."""

import json
import math
import re
from collections import Counter

import numpy as np
import pytest
import torch

from wordwing.errors import WordwingError
from wordwing.learning.training_data import read_instructions, vocabulary_of
from wordwing.world.catalogue import catalogue


@pytest.fixture(scope="module")
def data(run):
    return run.data


@pytest.fixture(scope="module")
def examples(data):
    return data.examples.examples


@pytest.fixture(scope="module")
def tasks(data):
    """Of all examples, in their order."""
    return [dataset.task(one) for dataset, part in zip(data.datasets, data.training, strict=True) for one in part]


def words_of(text: str) -> list[str]:
    return re.findall(r"[a-z0-9]+", text.lower())


def test_every_training_instruction_is_an_example_of_its_corpus(data, examples):
    assert data.examples.corpora == ("cage", "field", "house")
    assert len(data.examples) == sum(map(len, data.training))
    number = 0
    for corpus, (dataset, ids) in enumerate(zip(data.datasets, data.examples.ids, strict=True)):
        assert list(ids) == [one.id for one in dataset.instructions("train")]
        assert data.examples.of(dataset.name).tolist() == list(range(number, number + len(ids)))
        assert (examples.corpus[number : number + len(ids)] == corpus).all()
        assert (examples.steps[number : number + len(ids)] == (70 if dataset.name == "house" else 50)).all()
        number += len(ids)
    assert data.examples.max_steps == 70
    with pytest.raises(WordwingError, match="no examples of lani; there are some of cage, field, house"):
        data.examples.of("lani")


def test_examples_begin_where_their_tasks_begin_level_and_at_flight_height(examples, tasks):
    for number, task in enumerate(tasks):
        assert examples.start.position[number].tolist() == pytest.approx([*task.start_xy, 0.7], abs=1e-6)
        half = task.start_yaw / 2
        turn = examples.start.quaternion[number].double().numpy()
        assert abs(turn @ [math.cos(half), 0, 0, math.sin(half)]) == pytest.approx(1, abs=1e-6)


def test_gold_points_lie_at_even_distances_along_the_path(examples, tasks):
    for number, task in enumerate(tasks):
        along = np.concatenate([[0], np.cumsum(np.hypot(*np.diff(task.gold_path, axis=0).T))])
        wanted = np.linspace(0, along[-1], 64)
        points = np.stack([np.interp(wanted, along, task.gold_path[:, axis]) for axis in (0, 1)], axis=1)
        assert examples.points[number].numpy() == pytest.approx(points, abs=1e-5)


def test_the_layout_of_an_example_is_that_of_its_task(data, examples, tasks):
    layouts = data.examples.layouts
    names = [entry.name for entry in catalogue()]
    for number, task in enumerate(tasks):
        row = int(examples.layout[number])
        count = int(layouts.count[row])
        assert [names[index] for index in layouts.landmark[row, :count]] == [one.name for one in task.layout.landmarks]
        places = [[one.x, one.y, one.elevation] for one in task.layout.landmarks]
        assert layouts.place[row, :count].numpy() == pytest.approx(np.array(places).reshape(-1, 3), abs=1e-6)
        assert bool(layouts.lakes[row].any()) == bool(task.layout.lakes)


def test_a_layout_is_kept_once_but_every_window_of_a_scene_is_another(data, examples):
    instructions = [one for part in data.training for one in part]
    key_of = {}
    for row, one in zip(examples.layout.tolist(), instructions, strict=True):
        assert key_of.setdefault(row, (one.layout, one.window)) == (one.layout, one.window)
    assert len(key_of) == len({(one.layout, one.window) for one in instructions}) == len(data.examples.layouts)
    assert len(examples.layout[examples.corpus == 2].unique()) == 5


def test_mentioned_kinds_are_those_that_the_corpus_aligns_with_the_words(data, examples):
    names = [entry.name for entry in catalogue()]
    number, several = 0, 0
    for dataset, part in zip(data.datasets, data.training, strict=True):
        aligned = json.loads((dataset.folder / "alignments.json").read_text())["words"]
        for one in part:
            wanted = {name for word in words_of(one.segment.instruction) for name in aligned.get(word, ())}
            assert {names[index] for index in examples.mentioned[number].nonzero()[:, 0]} == wanted
            several += len(wanted) > 1
            number += 1
    assert several > 20


def test_tokens_are_the_words_of_the_instruction_or_unknown(data, examples, tasks):
    known = data.vocabulary.words
    unknown = 0
    for number, task in enumerate(tasks):
        length = int(examples.tokens.lengths[number])
        read = [known[index] for index in examples.tokens.words[number, :length]]
        assert (examples.tokens.words[number, length:] == 0).all()
        assert len(read) == len(words_of(task.instruction))
        for mine, word in zip(read, words_of(task.instruction), strict=True):
            assert mine in ({word} if word in known else {"<unk>", data.vocabulary.repair(word)})
            unknown += mine == "<unk>"
    assert unknown > 20, "the unknown word must be trained on something"


def test_words_of_one_sentence_are_unknown_although_pairs_say_them_again(data):
    singles = [one for part in data.training for one in part if "-" not in one.id.rpartition("/")[2]]
    counts = Counter(word for one in singles for word in words_of(one.segment.instruction))
    assert {word for word, count in counts.items() if count > 1} == set(data.vocabulary.words[2:])
    assert sum(count == 1 for count in counts.values()) > 10


def test_pairs_alone_have_words_too(data):
    pairs = [one for one in data.training[0] if one.segments == 2]
    counts = Counter(word for one in pairs for word in words_of(one.segment.instruction))
    for heard in (2, 3):
        assert set(vocabulary_of([pairs], heard).words[2:]) == {
            word for word, count in counts.items() if count >= heard
        }


def test_some_examples_are_taken_whole(data, examples):
    chosen = torch.tensor([7, 3, 3])
    part = examples[chosen]
    assert len(part) == 3
    for taken, number in enumerate(chosen.tolist()):
        assert torch.equal(part.points[taken], examples.points[number])
        assert torch.equal(part.tokens.words[taken], examples.tokens.words[number])
        assert torch.equal(part.start.quaternion[taken], examples.start.quaternion[number])
        assert torch.equal(part.mentioned[taken], examples.mentioned[number])


def test_a_limit_takes_the_first_instructions_and_counts_choose_their_length(data):
    dataset = data.datasets[0]
    whole = [one.id for one in dataset.instructions("train")]
    assert [one.id for one in read_instructions(dataset, "train", limit=3)] == whole[:3]
    assert [one.id for one in read_instructions(dataset, "train")] == whole
    assert {one.segments for one in read_instructions(dataset, "train", counts=(2,))} == {2}
    with pytest.raises(WordwingError, match="the split dev has no instructions to learn from"):
        read_instructions(dataset, "dev", limit=0)


def test_dev_instructions_are_a_sample_of_the_dev_split_and_always_the_same(data):
    for dataset, part in zip(data.datasets, data.dev, strict=True):
        split = "train" if dataset.name == "house" else "dev"
        there = [one.id for one in dataset.instructions(split)]
        drawn = [one.id for one in part]
        assert len(drawn) == min(5, len(there))
        assert drawn == sorted(set(drawn), key=there.index)
    assert [one.id for one in data.dev[0]] != [one.id for one in data.datasets[0].instructions("dev")][:5]

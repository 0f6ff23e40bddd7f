from dataclasses import replace

import torch

from wordwing.data.dataset import Source, write_dataset
from wordwing.data.generating import Chunk
from wordwing.data.tours.making import make_tours
from wordwing.language.tokenizer import Vocabulary, mirrored, tokenize
from wordwing.language.word_vectors import word_table
from wordwing.learning.paraphrases import paraphrase

WORDINGS = 4


def said(run, wordings=WORDINGS, seed=0):
    data = run.data
    return paraphrase(data.datasets, data.training, data.vocabulary, "cpu", wordings, seed)


def words(run, tokens, row: int) -> list[str]:
    return [run.data.vocabulary.words[index] for index in tokens.words[row, : tokens.lengths[row]].tolist()]


def test_the_first_saying_is_the_dataset_s_and_generated_instructions_have_others(run):
    paraphrases = said(run)
    number = different = 0
    for dataset, part in zip(run.data.datasets, run.data.training, strict=True):
        for one in part:
            first, count = int(paraphrases.first[number]), int(paraphrases.count[number])
            assert count == (1 if dataset.name == "house" else WORDINGS)
            texts = [words(run, paraphrases.tokens, row) for row in range(first, first + count)]
            known = run.data.vocabulary
            wanted = [known.repair(word) for word in tokenize(one.segment.instruction)]
            assert texts[0] == [word if word in known else "<unk>" for word in wanted]
            different += len({tuple(text) for text in texts}) > 1
            number += 1
    assert number == len(paraphrases.first)
    assert different > 0.9 * int((paraphrases.count > 1).sum())


def test_the_same_seed_says_the_same_and_another_does_not(run):
    one, same, other = said(run), said(run), said(run, seed=1)
    assert torch.equal(one.tokens.words, same.tokens.words)
    assert not torch.equal(one.tokens.lengths, other.tokens.lengths)


def test_a_drawn_saying_is_one_of_the_instruction_s_own_with_the_landmarks_it_names(run):
    paraphrases = said(run)
    example = torch.arange(len(paraphrases.first)).repeat(3)
    flip = torch.arange(len(example)) % 2 == 0
    tokens, mentioned = paraphrases.draw(example, flip, torch.Generator().manual_seed(3))
    assert tokens.words.dtype == torch.int64
    others = 0
    for place, number in enumerate(example.tolist()):
        first, count = int(paraphrases.first[number]), int(paraphrases.count[number])
        table = paraphrases.mirrored if flip[place] else paraphrases.tokens
        own = [row for row in range(first, first + count) if words(run, table, row) == words(run, tokens, place)]
        assert own
        assert any(torch.equal(paraphrases.mentioned[row], mentioned[place]) for row in own)
        others += own[0] > first
    assert others > 0.4 * int((paraphrases.count > 1).sum())


def test_mirrored_sayings_are_the_instructions_in_a_mirror(run):
    paraphrases = said(run, wordings=1)
    vocabulary = run.data.vocabulary
    instructions = [one for part in run.data.training for one in part]
    assert len(instructions) == len(paraphrases.count) == len(paraphrases.mentioned)
    swapped = 0
    for row, one in enumerate(instructions):
        wanted = [vocabulary.repair(word) for word in mirrored(tokenize(one.segment.instruction))]
        found = words(run, paraphrases.mirrored, row)
        assert found == [word if word in vocabulary else "<unk>" for word in wanted]
        swapped += found != words(run, paraphrases.tokens, row)
    assert swapped > 5


def test_paraphrases_of_tokenizer_2_have_rows_of_the_table_and_clock_directions_in_a_mirror(run):
    vocabulary = replace(run.data.vocabulary, tokenizer=2)
    paraphrases = paraphrase(run.data.datasets, run.data.training, vocabulary)
    row = word_table().row
    for number, one in enumerate(one for part in run.data.training for one in part):
        texts = tokenize(one.segment.instruction, 2)
        for table, text in ((paraphrases.tokens, texts), (paraphrases.mirrored, mirrored(texts))):
            read = [vocabulary.repair(word) for word in text]
            assert table.rows[number, : len(text)].tolist() == [row.get(word, 0) for word in read]
    flip = torch.tensor([True, False])
    tokens, _mentioned = paraphrases.draw(torch.tensor([0, 0]), flip, torch.Generator().manual_seed(0))
    assert torch.equal(tokens.rows[0], paraphrases.mirrored.rows[0])
    assert torch.equal(tokens.rows[1], paraphrases.tokens.rows[0])


def test_a_mirror_image_that_has_fewer_words_can_be_drawn_beside_the_instruction(run):
    dataset, one = run.data.datasets[0], run.data.training[0][0]
    text = "circle the barrel counter clockwise and then go to the far end of the yard and stop right in front of it"
    longest = replace(one, segment=replace(one.segment, instruction=text))
    paraphrases = paraphrase([dataset], [[longest]], run.data.vocabulary)
    flip = torch.tensor([True, False])
    tokens, _mentioned = paraphrases.draw(torch.tensor([0, 0]), flip, torch.Generator().manual_seed(0))
    assert tokens.lengths.tolist() == [len(text.split()) - 1, len(text.split())]


def test_a_tour_has_other_wordings_by_other_visitors_and_they_have_images_in_a_mirror(tmp_path):
    made = make_tours(Chunk("tours", "train", seed=2, first=0, count=12))
    dataset = write_dataset(tmp_path / "tours", Source("tours", "generated", 2, "", steps=100), *made)
    instructions = list(dataset.instructions("train"))
    known = Vocabulary.of((one.segment.instruction for one in instructions), 1, tokenizer=2)
    paraphrases = paraphrase([dataset], [instructions], known, "cpu", wordings=5)
    assert paraphrases.count.tolist() == [5] * 12

    def texts(tokens):
        return [tuple(tokens.words[row, : tokens.lengths[row]].tolist()) for row in range(60)]

    plain, other = texts(paraphrases.tokens), texts(paraphrases.mirrored)
    assert sum(len(set(plain[5 * one : 5 * one + 5])) == 5 for one in range(12)) > 9
    sides = {known.index["left"], known.index["right"]}
    sided = [row for row in range(60) if sides & set(plain[row])]
    assert len(sided) > 20
    assert sum(plain[row] != other[row] for row in sided) > 0.9 * len(sided)  # but for "right there"

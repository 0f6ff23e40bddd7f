"""Instructions as indices and as vectors."""

import re
from dataclasses import replace

import numpy as np
import pytest
import torch

from wordwing.errors import WordwingError
from wordwing.language.tokenizer import Vocabulary
from wordwing.language.word_vectors import word_table
from wordwing.model.layers import count_parameters
from wordwing.model.text import MAX_WORDS, InstructionEncoder, TextConfig, Tokens

VOCABULARY = Vocabulary(
    ("<pad>", "<unk>", "go", "to", "the", "left", "right", "of", "gorilla", "anvil", "then", "turn")
)
TEXTS = ["go to the anvil", "turn left", "go right of the gorilla then turn to the anvil", "left"]


class Embedding(InstructionEncoder):
    """Without the token states."""

    def forward(self, tokens: Tokens) -> torch.Tensor:
        return super().forward(tokens)[0]


def encoder(config: TextConfig | None = None) -> Embedding:
    torch.manual_seed(0)
    return Embedding(config or TextConfig(), len(VOCABULARY))


def test_the_text_network_has_as_many_parameters_as_the_authors():
    embeddings, gates = 2080 * 50, 4 * (50 * 50 + 50 * 50 + 50 + 50)
    assert count_parameters(InstructionEncoder(TextConfig(), 2080)) == 124_400 == embeddings + gates


def test_words_become_indices_padded_to_the_longest():
    tokens = Tokens.encode(["Go to the anvil!", "turn LEFT"], VOCABULARY)
    assert tokens.words.tolist() == [[2, 3, 4, 9], [11, 5, 0, 0]]
    assert tokens.lengths.tolist() == [4, 2]
    assert tokens.words.dtype == tokens.lengths.dtype == torch.int64


def test_tokens_are_the_same_every_time():
    first, second = (Tokens.encode(TEXTS, VOCABULARY) for _ in range(2))
    assert torch.equal(first.words, second.words)
    assert torch.equal(first.lengths, second.lengths)


def test_tokens_are_made_on_the_device_that_is_asked_for():
    tokens = Tokens.encode(TEXTS, VOCABULARY, "meta")
    assert {tokens.words.device.type, tokens.lengths.device.type, tokens.blank().words.device.type} == {"meta"}


@pytest.mark.parametrize("text", ["", "   ", "?!", "\n"])
def test_a_text_without_words_is_one_unknown_word(text):
    tokens = Tokens.encode([text, "zyx"], VOCABULARY)
    assert tokens.words.tolist() == [[1], [1]]
    assert tokens.lengths.tolist() == [1, 1]


def test_unknown_words_share_an_embedding_which_no_known_word_has():
    embeddings = encoder()(Tokens.encode(["go to the zyx", "go to the qqq", "go to the anvil"], VOCABULARY))
    assert torch.equal(embeddings[0], embeddings[1])
    assert not torch.allclose(embeddings[0], embeddings[2], atol=1e-2)


def test_the_longest_instruction_is_read_and_one_word_more_is_refused_with_both_numbers():
    tokens = Tokens.encode(["go " * MAX_WORDS], VOCABULARY)
    assert tokens.lengths.tolist() == [200]
    assert encoder()(tokens).isfinite().all()
    with pytest.raises(WordwingError, match=re.escape("has 201 words; 200 are the most")):
        Tokens.encode(["turn left", "go " * (MAX_WORDS + 1)], VOCABULARY)


def test_a_text_that_is_far_too_long_is_refused_before_its_typing_mistakes_are_looked_for(monkeypatch):
    monkeypatch.setattr(Vocabulary, "repair", lambda *_: pytest.fail("a word was looked up"))
    with pytest.raises(WordwingError, match="has 100000 words"):
        Tokens.encode(["zyxwvut " * 100_000], VOCABULARY)


def test_the_embedding_is_the_last_state_of_an_lstm_written_out():
    network = encoder(TextConfig(words=4, hidden=3))
    with torch.no_grad():
        for parameter in network.lstm.parameters():
            parameter.normal_(0, 0.7)
    tokens = Tokens.encode(TEXTS, VOCABULARY)
    weights = {name: tensor.double().numpy() for name, tensor in network.state_dict().items()}
    found = network(tokens).detach()
    for i, length in enumerate(tokens.lengths.tolist()):
        hidden, cell = np.zeros(3), np.zeros(3)
        for word in tokens.words[i, :length].tolist():
            gates = weights["lstm.weight_ih_l0"] @ weights["words.weight"][word] + weights["lstm.bias_ih_l0"]
            gates += weights["lstm.weight_hh_l0"] @ hidden + weights["lstm.bias_hh_l0"]
            enter, keep, candidate, leave = gates.reshape(4, 3)
            cell = cell / (1 + np.exp(-keep)) + np.tanh(candidate) / (1 + np.exp(-enter))
            hidden = np.tanh(cell) / (1 + np.exp(-leave))
        assert np.allclose(found[i], hidden, atol=1e-5)


def test_padding_and_neighbours_make_no_difference():
    network = encoder()
    together = network(Tokens.encode(TEXTS, VOCABULARY))
    alone = torch.cat([network(Tokens.encode([text], VOCABULARY)) for text in TEXTS])
    assert torch.allclose(together, alone, atol=1e-6)
    longer = Tokens.encode([*TEXTS, "go " * 150], VOCABULARY)
    assert torch.allclose(network(longer)[:-1], alone, atol=1e-6)
    swapped = network(Tokens.encode(TEXTS[::-1], VOCABULARY))
    assert torch.allclose(swapped.flip(0), alone, atol=1e-6)


def test_the_order_of_words_matters():
    embeddings = encoder()(Tokens.encode(["left of the anvil", "anvil the of left"], VOCABULARY))
    assert not torch.allclose(embeddings[0], embeddings[1], atol=1e-2)


def test_blank_instructions_all_say_the_same_nothing():
    blank = Tokens.encode(TEXTS, VOCABULARY).blank()
    assert blank.words.tolist() == [[1]] * 4
    assert blank.lengths.tolist() == [1] * 4
    embeddings = encoder()(blank)
    assert torch.equal(embeddings, embeddings[:1].expand(4, -1))


def test_words_are_dropped_only_while_training():
    network = encoder(TextConfig(dropout=0.5))
    tokens = Tokens.encode(TEXTS, VOCABULARY)
    assert not torch.equal(network(tokens), network(tokens))
    assert torch.equal(network.eval()(tokens), network(tokens))
    assert torch.equal(encoder()(tokens), network(tokens))


def test_only_words_that_were_read_are_learned_and_padding_never():
    network = encoder()
    tokens = Tokens.encode(["go to the anvil", "left"], VOCABULARY)
    network(tokens).square().sum().backward()
    learned = network.words.weight.grad.abs().sum(1).nonzero().flatten().tolist()
    assert learned == [2, 3, 4, 5, 9]
    assert not network.words.weight[0].any()
    assert all(parameter.grad.any() for parameter in network.lstm.parameters())


OPEN = Vocabulary(VOCABULARY.words, tokenizer=2)
WORDS = TextConfig(words=6, hidden=5, vectors=True, offset_dropout=0.5)


def test_a_word_is_its_vector_projected_and_what_was_learned_of_it():
    network = encoder(WORDS).eval()
    [embedded] = network.embed(Tokens.encode(["go to the blorb boulder gorilla"], OPEN)).detach().numpy()
    projection, offsets = network.vectors.projection.weight.detach().numpy(), network.words.weight.detach().numpy()
    for found, word in zip(embedded, ["go", "to", "the", "<unk>", "boulder", "gorilla"], strict=True):
        expected = projection @ word_table().vector(word)
        if word != "boulder":  # of which training has nothing to say
            expected = expected + offsets[OPEN.index[word]]
        assert np.allclose(found, expected, atol=1e-5), word
        assert (word_table().vector(word).any()) == (word != "<unk>")


def test_words_beyond_the_vocabulary_differ_by_their_vectors_alone():
    network = encoder(WORDS).eval()
    found = network(Tokens.encode(["go to the boulder", "go to the couch", "go to the zyx", "go to the qqq"], OPEN))
    assert not torch.allclose(found[0], found[1], atol=1e-3)
    assert torch.equal(found[2], found[3])
    plain = encoder(TextConfig()).eval()
    found = plain(Tokens.encode(["go to the boulder", "go to the couch"], OPEN))
    assert torch.equal(found[0], found[1])


def test_what_was_learned_of_words_is_dropped_in_training_where_there_is_a_vector():
    network = encoder(WORDS)
    tokens = Tokens.encode(["go zyx " * 100], OPEN)
    known, unknown = network.embed(tokens)[0].detach().unflatten(0, (100, 2)).unbind(1)
    offset = network.words.weight[OPEN.index["go"]].detach()
    projected = network.vectors(torch.tensor([word_table().row["go"]]))[0].detach()
    dropped = torch.isclose(known, projected, atol=1e-6).all(1)
    assert 25 < int(dropped.sum()) < 75
    assert torch.allclose(known[~dropped], projected + offset, atol=1e-6)
    assert torch.equal(unknown, unknown[:1].expand(100, -1))
    assert torch.equal(network.eval().embed(tokens), network.embed(tokens))


def test_the_projection_learns_from_all_words_and_the_offset_from_those_of_the_vocabulary():
    network = encoder(replace(WORDS, offset_dropout=0.0))
    network(Tokens.encode(["go to the couch", "left"], OPEN))[0].square().sum().backward()
    assert network.words.weight.grad.abs().sum(1).nonzero().flatten().tolist() == [2, 3, 4]
    assert network.vectors.projection.weight.grad.any()


def test_rows_of_the_table_are_padded_and_blanked_as_words_are():
    tokens = Tokens.encode(["go to the couch", "left zyx"], OPEN)
    row = word_table().row
    assert tokens.rows.tolist() == [[row[word] for word in ("go", "to", "the", "couch")], [row["left"], 0, 0, 0]]
    assert tokens.padded(9).rows.shape == tokens.padded(9).words.shape == (2, 9)
    assert tokens.padded(2).rows.shape == (2, 4)
    assert torch.equal(encoder(WORDS).eval()(tokens.padded(9)), encoder(WORDS).eval()(tokens))
    assert tokens.blank().rows is None
    assert Tokens.encode(["go"], VOCABULARY).rows is None


def test_the_table_is_no_parameter_and_is_not_saved():
    network = encoder(WORDS)
    assert sorted(name for name in network.state_dict() if not name.startswith("lstm")) == [
        "vectors.projection.weight",
        "words.weight",
    ]
    assert count_parameters(network) == 12 * 6 + 96 * 6 + 4 * (5 * 6 + 5 * 5 + 5 + 5)

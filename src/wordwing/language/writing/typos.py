"""Typing mistakes, as hurried people make them."""

import numpy as np

NEIGHBOURS = {
    left: right
    for row in ("qwertyuiop", "asdfghjkl", "zxcvbnm")
    for left, right in zip(row, row[1:] + row[-2], strict=True)
}
"""A key and the one beside it."""

HABITS = {
    "until": "untill",
    "straight": "strait",
    "towards": "twords",
    "toward": "twoard",
    "between": "betwen",
    "right": "rigth",
    "behind": "behing",
    "building": "bulding",
    "separate": "seperate",
    "beside": "besides",
    "past": "passed",
    "your": "you",
    "you're": "your",
    "forward": "foward",
    "continue": "contine",
    "around": "arround",
    "mushroom": "mushrom",
    "barrel": "barrell",
    "pumpkin": "pumkin",
    "gorilla": "gorrilla",
    "tombstone": "tomb stone",
    "banana": "bananna",
    "container": "contaner",
    "traffic": "trafic",
    "airplane": "airplain",
    "cactus": "catus",
    "hydrant": "hydrent",
    "lighthouse": "light house",
    "windmill": "windmil",
    "statue": "statute",
}
"""Words that many people get wrong in the same way; never one side for the other."""


def misspell(text: str, rate: float, rng: np.random.Generator) -> str:
    """Spoil about `rate` of the words of at least four letters; sides and colours keep their meaning."""
    return " ".join(_spoil(word, rng) if rng.random() < rate else word for word in text.split(" "))


def _spoil(word: str, rng: np.random.Generator) -> str:
    core = word.strip(".,;!-'")
    if core in HABITS and rng.random() < 0.6:
        return word.replace(core, HABITS[core])
    if len(core) < 4 or not core.isalpha():
        return word
    at = int(rng.integers(1, len(core) - 1))
    return word.replace(core, _spoilt_at(core, at)[int(rng.integers(4))])


def mistypings(word: str) -> set[str]:
    """All that `misspell` can make of a word by a slip of a finger; () of words that it leaves alone."""
    if len(word) < 4 or not word.isalpha():
        return set()
    return {wrong for at in range(1, len(word) - 1) for wrong in _spoilt_at(word, at)} - {word}


def _spoilt_at(word: str, at: int) -> tuple[str, str, str, str]:
    """A letter dropped, doubled, swapped with the next one, or that of the key beside it."""
    return (
        word[:at] + word[at + 1 :],
        word[:at] + word[at] + word[at:],
        word[:at] + word[at + 1] + word[at] + word[at + 2 :],
        word[:at] + NEIGHBOURS.get(word[at], word[at]) + word[at + 1 :],
    )

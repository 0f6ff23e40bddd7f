"""Tokens of tokenizer 2, which keep what the first one loses: apostrophes, decimals, units, clock directions.

- "you're", "cone's", "don't" become a word and what is joined to it: `you 're`, `cone 's`, `do n't`.
- "two", "2" and "2.0" are `2`; "3m", "3 meters" and "300 cm" are `3 metres`; "90°" is `90 degrees`.
- "3 o'clock", "three oclock" are `3-o'clock`: a direction, not a number.

A number that training never had is read as the nearest that it had (`nearest`).
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator

Span = tuple[str, int, int]
"""A token, and where it begins and ends."""

_SMALL = (
    *("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"),
    *("thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"),
)
_TENS = ("", "", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
_ORDINALS = (
    *("", "first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth", "eleventh"),
    "twelfth",
)
_VALUES = {word: value for value, word in enumerate(_SMALL)}
_VALUES |= {word: 10 * value for value, word in enumerate(_TENS) if word} | {"fourty": 40, "a": 1, "hundred": 100}

_UNITS = {
    "metres": "m|mtrs?|mts?|met(?:er|re)s?",
    "centimetres": "cms?|centimet(?:er|re)s?",
    "feet": "ft|foot|feet",
    "inches": "inch|inches",
    "yards": "yds?|yards?",
    "degrees": "°|degs?|degrees?",
    "steps": "steps?",
    "paces": "paces?",
    "seconds": "secs?|seconds?",
}
_WHOLE = {"ca": "can", "wo": "will", "sha": "shall"}
"""What is left of a word before "n't"."""

_SIGNS = str.maketrans(
    {one: f" {unicodedata.normalize('NFKC', one)}" for one in "¼½¾⅓⅔⅕⅛"} | dict.fromkeys("’‘ʼ`´′", "'") | {"º": "°"}
)
"""What NFKC would make something else of."""


def _any(words: Iterable[str]) -> str:
    return "|".join(sorted(filter(None, words), key=len, reverse=True))


_ONES, _HOURS = _any(_SMALL[1:10]), _any(_SMALL[1:13])
_BELOW_HUNDRED = rf"(?:(?:{_any([*_TENS, 'fourty'])})(?:[\s-](?:{_ONES}))?|{_any(_SMALL)})"
_SPOKEN = (
    rf"(?:(?:(?:{_ONES}|a)\s)?hundred(?:\s(?:and\s)?{_BELOW_HUNDRED})?"
    rf"|(?:{_ONES})[\s-](?:{_any(_TENS[2:])})|{_BELOW_HUNDRED})"  # "one eighty"
)
_DIGITS = r"(?:(?:\d{1,6}\s)?\d{1,6}/\d{1,6}|\d{1,6}(?:\.\d{1,6}|,\d{1,2}(?!\d))?|(?<!\d)\.\d{1,6})"
_LETTER = r"[^\W_]"
_TOKEN = re.compile(
    rf"(?<!{_LETTER})(?:"
    rf"(?P<hour>1[0-2]|0?[1-9]|{_HOURS})[\s-]?o[\s'-]?clock"
    rf"|(?P<number>{_DIGITS}|{_SPOKEN})(?P<half>\sand\sa\shalf)?"
    rf"(?:[\s-]*(?P<unit>{'|'.join(f'(?P<{unit}>{names})' for unit, names in _UNITS.items())}))?"
    rf"|(?P<joined>'(?:s|re|ve|ll|m|d))"
    rf")(?!{_LETTER})"
    rf"|(?P<word>{_LETTER}+(?:'{_LETTER}+)*)"
)
_JOINED = re.compile(r"(.*?)(n't|'(?:s|re|ve|ll|m|d))", re.DOTALL)
_NUMBER, _HOUR = re.compile(r"\d{1,6}(?:\.\d+)?"), re.compile(r"(\d+)-o'clock")


def normalized(text: str) -> str:
    """Lower case, and one way to write each letter, fraction and apostrophe."""
    return unicodedata.normalize("NFKC", text.translate(_SIGNS)).lower().replace("⁄", "/")


def find_tokens(text: str) -> Iterator[Span]:
    """The tokens of a normalised text."""
    for found in _TOKEN.finditer(text):
        begin, end = found.span()
        if word := found["word"]:
            yield from _split(word, begin)
        elif hour := found["hour"]:
            yield f"{_VALUES.get(hour) or int(hour)}-o'clock", begin, end
        elif found["joined"]:
            yield found[0], begin, end
        elif found["number"] == "one" and not found["unit"] and not found["half"]:
            yield "one", begin, end  # "the red one"
        else:
            unit = next((name for name in _UNITS if found[name]), "")
            value = _value(found["number"]) + 0.5 * bool(found["half"])
            if unit == "centimetres":
                value, unit = value / 100, "metres"
            yield f"{value:.2f}".rstrip("0").rstrip("."), begin, found.end("half" if found["half"] else "number")
            if unit:
                yield unit, *found.span("unit")


def _split(word: str, begin: int) -> Iterator[Span]:
    """A word without what is joined to it, and that."""
    end = begin + len(word)
    if joined := _JOINED.fullmatch(word):
        stem, cut = joined[1], begin + joined.end(1)
        if stem:
            yield _WHOLE.get(stem, stem) if joined[2] == "n't" else stem, begin, cut
        yield joined[2], cut, end
    elif (number := re.fullmatch(r"(\d{1,2})(?:st|nd|rd|th)", word)) and 0 < int(number[1]) < len(_ORDINALS):
        yield _ORDINALS[int(number[1])], begin, end
    else:
        yield word, begin, end


def _value(number: str) -> float:
    """Of digits, a fraction or number words."""
    if number[-1].isdecimal():
        whole, _space, fraction = number.replace(",", ".").rpartition(" ")
        above, _slash, below = fraction.partition("/")
        return float(whole or 0) + float(above) / (float(below or 1) or 1)
    total = 0
    for word in re.findall(r"[a-z]+", number):
        value = _VALUES.get(word, 0)  # "and" is none
        total = max(total, 1) * value if value == 100 else (100 * total if 0 < total < value < 100 else total) + value
    return total


def nearest(token: str, known: Iterable[str]) -> str:
    """The known number or clock direction that is nearest to one that is not known; any other token as it is."""
    if hour := _HOUR.fullmatch(token):
        hours = {word: int(one[1]) for word in known if (one := _HOUR.fullmatch(word))}
        return min(hours, key=lambda word: abs((hours[word] - int(hour[1]) + 6) % 12 - 6), default=token)
    if _NUMBER.fullmatch(token):
        numbers = (word for word in known if _NUMBER.fullmatch(word))
        return min(numbers, key=lambda word: abs(float(word) - float(token)), default=token)
    return token


def mirrored_direction(token: str) -> str:
    """The clock direction on the other side; empty for any other token."""
    hour = _HOUR.fullmatch(token)
    return f"{-int(hour[1]) % 12 or 12}-o'clock" if hour else ""

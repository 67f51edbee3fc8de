"""Words, and who may see them: a tenth is kept for the evaluation and occurs in no training text, as a word or a label.

What a word means is of no use to the model, so there are made-up words among them.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable
from functools import cache
from pathlib import Path

HERE = Path(__file__).resolve().parent


@cache
def _sections() -> dict[str, tuple[str, ...]]:
    found: dict[str, list[str]] = {}
    for line in (HERE / "words.txt").read_text().splitlines():
        if line.startswith("["):
            found[line.strip("[]\n")] = []
        elif not line.startswith("#"):
            found[next(reversed(found))] += line.split()
    return {name: tuple(words) for name, words in found.items()}


SECTIONS = _sections()
# Words that say how a sentence hangs together; none of them is ever a trigger or a label.
FUNCTION = frozenset(SECTIONS["function"])
LISTED = (*SECTIONS["common"], *SECTIONS["other"])


def _share(word: str, salt: str) -> float:
    """A number in [0, 1) that a word always has."""
    return int.from_bytes(hashlib.sha256(f"{salt}:{word}".encode()).digest()[:6], "big") / 2**48


def kept(word: str) -> bool:
    """Whether a word is for the evaluation only."""
    return word not in FUNCTION and _share(word, "kept") < 0.1


def unkept(draw: Callable[[], str]) -> str:
    """The first word drawn that training may use."""
    return next(word for word in iter(draw, None) if not kept(word))


@cache
def training() -> tuple[str, ...]:
    """All words of the list that the training may use as triggers, labels and filler."""
    return tuple(word for word in LISTED if not kept(word) and word not in FUNCTION)


@cache
def split() -> tuple[str, ...]:
    """The words of the training that are several tokens each."""
    single = set(whole())
    return tuple(word for word in training() if word not in single)


@cache
def evaluation() -> tuple[str, ...]:
    """The words that are kept for the evaluation, of four letters or more."""
    return tuple(word for word in LISTED if kept(word) and len(word) > 3)


@cache
def whole() -> tuple[str, ...]:
    """The words that are one token each: the common ones, and half of the others."""
    common, other = SECTIONS["common"], SECTIONS["other"]
    return tuple(w for w in common if not kept(w)) + tuple(w for w in other if not kept(w) and _share(w, "whole") < 0.5)


def _syllables(chance: random.Random, count: int) -> str:
    """As it may sound in English; three in twenty-four end in their vowel."""
    onsets, vowels, codas = SECTIONS["onsets"], SECTIONS["vowels"], ("", "", "", *SECTIONS["codas"])
    return "".join(chance.choice(onsets) + chance.choice(vowels) + chance.choice(codas) for _ in range(count))


def invented(chance: random.Random) -> str:
    """An invented word; one in ten is kept for the evaluation, as of the others."""
    while True:
        word = _syllables(chance, chance.choice((1, 2, 2, 2, 3)))
        if 4 <= len(word) <= 11 and not kept(word) and word not in FUNCTION:
            return word


def invented_kept(chance: random.Random) -> str:
    """A made-up word that only the evaluation may use."""
    while True:
        word = _syllables(chance, chance.choice((2, 2, 3)))
        if 5 <= len(word) <= 11 and kept(word):
            return word

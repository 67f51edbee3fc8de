"""What documents are drawn from, and how hard they are."""

from __future__ import annotations

import random
import re
import string
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

from . import phrasings, words

HERE = Path(__file__).resolve().parent


@dataclass(frozen=True, slots=True)
class Level:
    """How hard documents are.

    Attributes:
        rules, triggers, labels: fewest and most.
        odd: the share of rules that are not of the kind `any`.
        strange: the share of documents whose phrasings are made of words without sense.
        sentences: the most sentences of an input.
        phrases: the share of triggers of two words.
        queries: inputs a document.
        bare: the share of documents without a rule, half of them without a skill.
        phrasings: how many of each kind are used, from the first on; 0 for all.
        two: the share of inputs with triggers of two rules.
        pieces: the share of words that are several tokens, beyond those that are so by chance.
        forms: the share of documents whose rules are not one sentence each.
        written: the share of documents whose labels are all written in one way, see `LABELS`.
        pages: the share of prompts in which the skill begins with the task, as skillc sends it.
    """

    rules: tuple[int, int] = (1, 16)
    triggers: tuple[int, int] = (1, 5)
    labels: tuple[int, int] = (2, 8)
    odd: float = 0.1
    strange: float = 0.12
    sentences: int = 3
    phrases: float = 0.1
    queries: int = 12
    bare: float = 0.0
    phrasings: int = 0
    two: float = 0.2
    pieces: float = 0.0
    forms: float = 0.0
    written: float = 0.0
    pages: float = 0.0


@dataclass(frozen=True, slots=True)
class Source:
    """Where words, phrasings and filler come from; the evaluation has its own.

    Attributes:
        word, label: draw one.
        rules, filler, nouns: sections of templates.
    """

    word: Callable[[random.Random], str]
    label: Callable[[random.Random], str]
    rules: dict[str, tuple[str, ...]]
    filler: dict[str, tuple[str, ...]]
    nouns: dict[str, tuple[str, ...]]


def training_word(chance: random.Random, pieces: float = 0.0) -> str:
    """A trigger or a word of a text."""
    if pieces and chance.random() < pieces:
        return words.invented(chance) if chance.random() < 0.4 else chance.choice(words.split())
    return words.invented(chance) if chance.random() < 0.3 else chance.choice(words.training())


def training_label(chance: random.Random, pieces: float = 0.0) -> str:
    """A label: mostly one word, at times with a hyphen, an underscore, a capital, a second word or a common start."""
    one = training_word(chance, pieces)
    if pieces and chance.random() < 0.12:
        return chance.choice((_letters(chance), _letters(chance).upper(), one.upper()))
    kind = chance.random()
    if kind < 0.64:
        return one
    if kind < 0.84:
        # Its first word may be all over the text, so what follows it has to be looked up where the labels are listed.
        start = chance.choice(_nouns()) if chance.random() < 0.3 else one
        return start + chance.choice("--__ /") + training_word(chance, pieces)
    if kind < 0.90:
        return words.unkept(lambda: chance.choice(_short()) + words.invented(chance)[:5])
    if kind < 0.95:
        return one.capitalize()
    return chance.choice(
        (one[:2], one[:2].upper(), f"{one[0].upper()}{chance.randint(1, 9)}", f"{one}{chance.randint(0, 99)}")
    )


LABELS = ("capital", "capitals", "words", "digits", "signs")


def written_label(kind: str, word: Callable[[random.Random], str], chance: random.Random) -> str:
    """Draw a label that is written in one of the ways of `LABELS`."""
    one = word(chance)
    if kind == "capital":
        return one.capitalize()
    if kind == "capitals":
        return one.upper()
    if kind == "words":
        parts = [one, *(word(chance) for _ in range(chance.randint(1, 2)))]
        return chance.choice((" ".join(parts), " ".join(part.capitalize() for part in parts)))
    if kind == "digits":
        letter = one[0].upper()
        return chance.choice(
            (f"{letter}{chance.randint(0, 99)}", f"{one} {chance.randint(0, 9)}", f"{letter}-{chance.randint(0, 9)}")
        )
    other = word(chance)
    return chance.choice(
        (
            f"{one[0].upper()}&{other[0].upper()}",
            f"{one.capitalize()} & {other.capitalize()}",
            f"{one.capitalize()}/{other.capitalize()}",
            f"{one} ({other})",
            f"{one}+",
        )
    )


def _letters(chance: random.Random) -> str:
    """Two to four letters that are no word."""
    return words.unkept(lambda: "".join(chance.choices(string.ascii_lowercase, k=chance.randint(2, 4))))


@cache
def _nouns() -> tuple[str, ...]:
    found = phrasings.sections(HERE / "nouns.txt")
    every = dict.fromkeys(re.findall("[a-z]+", " ".join(noun for name in ("N", "O") for noun in found[name]).lower()))
    return tuple(word for word in every if not words.kept(word))


@cache
def _short() -> tuple[str, ...]:
    return tuple(sorted(word for word in words.FUNCTION if 2 <= len(word) <= 4 and word.isalpha()))


@cache
def training_source(most: int = 0, pieces: float = 0.0) -> Source:
    """What the training draws from; of each kind of phrasing the first so many, 0 for all; `pieces` as in `Level`."""
    every = phrasings.sections(HERE / "phrasings.txt")
    return Source(
        partial(training_word, pieces=pieces),
        partial(training_label, pieces=pieces),
        {kind: lines[: most or None] for kind, lines in every.items()},
        phrasings.sections(HERE / "filler.txt"),
        phrasings.sections(HERE / "nouns.txt"),
    )

"""Words, and who may see them: a tenth is kept for the evaluation and occurs in no training text, as a word or a label.

What a word means is of no use to the model, so there are made-up words among them.
"""

from __future__ import annotations

import hashlib
import random
from functools import cache
from pathlib import Path

HERE = Path(__file__).resolve().parent
ONSETS = "b bl br c ch cl cr d dr f fl fr g gl gr h j k kl l m n p ph pl pr qu r s sc sh sk sl sm sn sp st t th tr tw v w y z".split()
VOWELS = "a e i o u ai au ea ee ei ia io oa oo ou".split()
CODAS = ["", "", "", "b", "ck", "d", "ft", "g", "l", "ld", "m", "mp", "n", "nd", "ng", "nt", "p", "r", "rd", "rn", "s", "sk", "st", "t", "x"]
# Words that say how a sentence hangs together; none of them is ever a trigger or a label.
FUNCTION = frozenset(
    """a about above across after again against all almost also although always am among an and another any anyone anything
    are around as ask asked asks at away back be because been before being below between both but by came can cannot case
    come could did do does doing done down each either else end ends ever every everything few first for from get gets give
    given go goes going gone got had has have having he her here him his how however i if in into is it its just keep last
    least less like made make makes many may me might more most much must my never no none nor not nothing now of off often
    on once one only or other others our out over own part per please put rather said same say says see seem seen set she
    should since so some someone something still such take than that the their them then there these they thing things this
    those though through to too toward two under unless until up upon us use used uses using very was way we well were what
    whatever when whenever where whether which while who whole whose why will with within without word words would yes yet
    you your contain contains mention mentions answer answers reply rule rules choose otherwise starts begins include
    includes name names talks speaks label labels""".split()
)


def _share(word: str, salt: str) -> float:
    """A number in [0, 1) that a word always has."""
    return int.from_bytes(hashlib.sha256(f"{salt}:{word}".encode()).digest()[:6], "big") / 2**48


def kept(word: str) -> bool:
    """Whether a word is for the evaluation only."""
    return word not in FUNCTION and _share(word, "kept") < 0.1


@cache
def _sections() -> dict[str, tuple[str, ...]]:
    found: dict[str, list[str]] = {}
    for line in (HERE / "words.txt").read_text().splitlines():
        if line.startswith("["):
            found[line.strip("[]")] = []
        elif not line.startswith("#"):
            found[next(reversed(found))] += line.split()
    return {name: tuple(words) for name, words in found.items()}


@cache
def training() -> tuple[str, ...]:
    """All words of the list that the training may use as triggers, labels and filler."""
    return tuple(word for section in _sections().values() for word in section if not kept(word) and word not in FUNCTION)


@cache
def evaluation() -> tuple[str, ...]:
    """The words that are kept for the evaluation, of four letters or more."""
    return tuple(word for section in _sections().values() for word in section if kept(word) and len(word) > 3)


@cache
def whole() -> tuple[str, ...]:
    """The words that are one token each: the common ones, and half of the others."""
    common, other = _sections()["common"], _sections()["other"]
    return tuple(w for w in common if not kept(w)) + tuple(w for w in other if not kept(w) and _share(w, "whole") < 0.5)


def invented(chance: random.Random) -> str:
    """A word that there is not; one in ten is kept, as with the others."""
    while True:
        syllables = chance.choice((1, 2, 2, 2, 3))
        word = "".join(chance.choice(ONSETS) + chance.choice(VOWELS) + chance.choice(CODAS) for _ in range(syllables))
        if 4 <= len(word) <= 11 and not kept(word) and word not in FUNCTION:
            return word


def invented_kept(chance: random.Random) -> str:
    """A made-up word that only the evaluation may use."""
    while True:
        syllables = chance.choice((2, 2, 3))
        word = "".join(chance.choice(ONSETS) + chance.choice(VOWELS) + chance.choice(CODAS) for _ in range(syllables))
        if 5 <= len(word) <= 11 and kept(word):
            return word

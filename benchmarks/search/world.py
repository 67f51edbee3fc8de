"""A world of hidden rules: the truth about each example, and the effect of a skill's rules on it.

An example needs nothing, or one rule, or both rules of a pair. It is answered right when the skill holds what it needs
and no harmful rule breaks it. The target then slips: each rollout's outcome is turned round with a fixed chance, drawn
from (seed, skill text, example, sample). Nothing here knows how skillc searches.
"""

from __future__ import annotations

import hashlib
import random
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

POPULATION = 4_000
_RULE = re.compile(r"\b([PSTUH]\d+[ab]?)\b")
_WORDS = ("told", "asked", "shown", "meant")

Cites = Literal["exactly", "everything", "nothing", "wrongly"]


@dataclass(frozen=True, slots=True)
class Settings:
    """The parameters of a world.

    Attributes:
        train: training examples.
        validation: validation examples.
        right: share of examples that need nothing.
        singles: rules that each mend one kind of failure.
        pairs: pairs of rules that mend a kind of failure only together.
        harmful: rules that mend nothing and break other examples.
        tempting: rules that break just as many, and mend half of one kind of failure.
        broken: share of all examples that a harmful or a tempting rule breaks.
        slip: chance that a rollout's outcome is turned round.
        proposals: most edits of one reflection.
        odds: of a proposal that mends a cause, of a useless one, of a harmful one (tempting ones among them).
        whole_pairs: chance that an optimizer that sees that a pair is missing proposes both halves in one reply.
        cited: chance that a proposal cites a failure that it is meant to cure, beside the one it was written for.
        wordings: how many ways there are to write one rule; the optimizer takes any of them.
        cites: `exactly` as above, `everything` shown, `nothing`, or `wrongly` (30 % of the citations).
    """

    train: int = 200
    validation: int = 100
    right: float = 0.40
    singles: int = 12
    pairs: int = 2
    harmful: int = 18
    tempting: int = 6
    broken: float = 0.08
    slip: float = 0.05
    proposals: int = 4
    odds: tuple[float, float, float] = (0.40, 0.30, 0.30)
    whole_pairs: float = 0.5
    cited: float = 0.9
    wordings: int = 3
    cites: Cites = "exactly"

    def draw(self, seed: int) -> World:
        """The world of a seed."""
        return World(self, seed)


@dataclass(frozen=True)
class World:
    """One draw of the settings. Names of rules begin with S for single, P pair, T tempting, H harmful, U useless."""

    settings: Settings
    seed: int

    @cached_property
    def needs(self) -> tuple[str, ...]:
        """Each example's need by number: `` for none, `S3` for a rule, `P1` for both rules of a pair."""
        own, chance = self.settings, random.Random(f"needs {self.seed}")
        kinds = [f"S{i}" for i in range(own.singles)] + [f"P{i}" for i in range(own.pairs)]
        weights = [chance.uniform(0.5, 1.5) for _ in kinds]
        count = own.train + own.validation + POPULATION
        return tuple("" if chance.random() < own.right else chance.choices(kinds, weights)[0] for _ in range(count))

    def mended(self, rules: frozenset[str], case: int) -> bool:
        """Whether an example has what it needs."""
        need = self.needs[case]
        if not need or need in rules:
            return True
        if need[0] == "P":
            return f"{need}a" in rules and f"{need}b" in rules
        tempting = (rule for rule in rules if rule[0] == "T" and self.tempted(rule) == need)
        return any(self._share("mends", rule, case) < 0.5 for rule in tempting)

    def tempted(self, rule: str) -> str:
        """The need of which a tempting rule mends half."""
        return f"S{int(rule[1:]) % self.settings.singles}"

    def breakers(self, rules: Iterable[str], case: int) -> list[str]:
        """The rules that break an example."""
        broken = self.settings.broken
        return [rule for rule in sorted(rules) if rule[0] in "HT" and self._share("breaks", rule, case) < broken]

    def right(self, rules: frozenset[str], case: int) -> bool:
        """What the target answers when it does not slip."""
        return self.mended(rules, case) and not self.breakers(rules, case)

    def slips(self, text: str, case: int, sample: int) -> bool:
        """Whether this very rollout's outcome is turned round."""
        return self._share("slips", text, f"{case} {sample}") < self.settings.slip

    def row(self, case: int) -> dict[str, str]:
        """An example as the data file holds it."""
        return {"id": str(case), "case": f"case {case}", "answer": "right"}

    def read(self, text: str) -> frozenset[str]:
        """The rules that a text states."""
        return rules_in(text)

    def idea(self, text: str) -> str:
        """The rule that a line states, whatever its wording."""
        return min(rules_in(text))

    def answer(self, text: str, rules: frozenset[str], case: int, sample: int) -> str:
        """The target's answer in one rollout."""
        return "right" if self.right(rules, case) != self.slips(text, case, sample) else "wrong"

    def accuracy(self, rules: frozenset[str]) -> float:
        """The share of a population of its own that a skill answers right, slips left out."""
        population = range(len(self.needs) - POPULATION, len(self.needs))
        return sum(self.right(rules, case) for case in population) / POPULATION

    @cached_property
    def initial(self) -> float:
        """The accuracy of the empty skill; that of the ideal one is 1."""
        return self.accuracy(frozenset())

    def gain(self, rules: frozenset[str]) -> float:
        """The share of the attainable gain that a skill has."""
        return (self.accuracy(rules) - self.initial) / (1 - self.initial)

    def _share(self, *parts: object) -> float:
        digest = hashlib.blake2b(repr((self.seed, *parts)).encode(), digest_size=8).digest()
        return int.from_bytes(digest, "big") / 2**64


def rules_in(text: str) -> frozenset[str]:
    """The rules that a text states, by name, whatever their wording."""
    return frozenset(_RULE.findall(text))


def worded(rule: str, number: int) -> str:
    """A rule as a line of the skill."""
    return f"Where sign {rule} shows, do as {_WORDS[number % len(_WORDS)]} there."

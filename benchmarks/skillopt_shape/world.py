"""The world of benchmarks/search with examples that no skill gets right, so that no run ends for want of failures."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from benchmarks.search.world import World


@dataclass(frozen=True)
class HardWorld(World):
    """A share of the examples, `hard`, is answered wrong with every skill."""

    hard: float = 0.15

    def right(self, rules: frozenset[str], case: int) -> bool:
        """What the target answers when it does not slip."""
        return self._share("hard", case) >= self.hard and super().right(rules, case)

    @cached_property
    def ideal(self) -> float:
        """The accuracy of a skill that holds every rule that helps."""
        own = self.settings
        pairs = {f"P{i}{half}" for i in range(own.pairs) for half in "ab"}
        return self.accuracy(frozenset({f"S{i}" for i in range(own.singles)} | pairs))

    def gain(self, rules: frozenset[str]) -> float:
        """The share of the attainable gain that a skill has."""
        return (self.accuracy(rules) - self.initial) / (self.ideal - self.initial)

"""The gates on a skill against itself: two measurements of one skill, as candidate and incumbent."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from skillc.document.skill import Document
from skillc.gates.evaluate import decide_all
from skillc.gates.evidence import Evidence, ScoreBounds, SplitEvidence
from skillc.gates.intervals import Truth
from skillc.gates.stages import gates_for
from skillc.gates.terms import SkillState
from skillc.optimize.engine import Engine
from skillc.optimize.gate.gate import evidence, text_evidence
from skillc.optimize.rollouts import Outcome
from skillc.outcomes import Cell, Example

SWAPS = 200
"""The most comparisons that `accepts_itself` makes of two measurements."""
# Fewer for many groups, where each takes longer.
_FEWEST, _MOST_EXCHANGED = 20, 100_000
_BITS = 8
_STATES: tuple[SkillState, ...] = ("candidate", "incumbent", "best", "initial")


@dataclass(frozen=True, slots=True)
class NullGates:
    """The decision of a program's gates on two measurements of one skill.

    Attributes:
        accepted: whether they accept the second measurement against the first.
        chance: the share of further comparisons that they accept, 200 for up to 500 split groups. In each the two
            measurements of every group are exchanged or not by chance, since nothing but chance tells them apart.
    """

    accepted: bool
    chance: Fraction


def accepts_itself(
    engine: Engine, skill: Document, examples: Sequence[Example], first: Sequence[int], second: Sequence[int]
) -> NullGates | None:
    """Put one skill through the gates of steps as its own candidate; None without gates or examples.

    Comparisons that read a training batch do not apply.

    Args:
        engine: the run; its plan's samples are the length of `first` and of `second`.
        skill: measured.
        examples: with all samples measured.
        first: samples of the incumbent.
        second: samples of the candidate.
    """
    gates = gates_for(engine.plan.gates, slow=False)
    if engine.plan.optimize.accept != "gates" or not gates or not examples:
        return None
    known: Mapping[SkillState, Document] = dict.fromkeys(_STATES, skill)
    whole = replace(engine, dataset=replace(engine.dataset, validation=tuple(examples)))
    plain = evidence(whole, known, (), text_evidence(engine, known, Fraction(0), 1))
    pair = _Pair(engine, skill, plain, tuple(first), tuple(second))
    groups = sorted({example.group for example in examples})
    count = min(SWAPS, max(_FEWEST, _MOST_EXCHANGED // len(groups)))
    draws = (_exchanged(groups, engine.plan.data.seed, number) for number in range(count))
    accepted = [decide_all(gates, pair.exchanged(each)).truth is Truth.TRUE for each in (frozenset[str](), *draws)]
    return NullGates(accepted[0], Fraction(sum(accepted[1:]), count))


class _Pair:
    """Evidence on two measurements of one skill, of which the second is the candidate's."""

    def __init__(
        self, engine: Engine, skill: Document, plain: Evidence, first: tuple[int, ...], second: tuple[int, ...]
    ) -> None:
        self._engine, self._skill, self._plain = engine, skill, plain
        self._samples = (first, second)
        metrics = [metric.name for metric in engine.plan.metrics]
        one, other = (self._split(lambda *_, late=late: late) for late in (False, True))
        self._columns = {name: (one.column("incumbent", name), other.column("candidate", name)) for name in metrics}

    def exchanged(self, groups: frozenset[str]) -> Evidence:
        """Return the evidence with the two measurements exchanged in some groups."""
        plain = self._plain
        split = self._split(lambda state, example: (state == "candidate") != (example.group in groups))
        swapped = np.array([example.group in groups for example in split.examples])
        for name, (first, second) in self._columns.items():
            for state in _STATES:
                early, late = (first, second) if state != "candidate" else (second, first)
                ends = (np.where(swapped, b, a) for a, b in ((early.low, late.low), (early.high, late.high)))
                split.keep(state, name, ScoreBounds(*ends))
        return Evidence(split, plain.batch, plain.texts, plain.planned, plain.seed)

    def _split(self, is_late: Callable[[SkillState, Example], bool]) -> SplitEvidence:
        """Return the evidence in which a skill has its second measurement on the examples where it is late."""
        split = self._plain.validation

        def known(state: SkillState, example: Example, sample: int) -> Outcome | None:
            return self._engine.rollouts.known(self._skill, example, self._samples[is_late(state, example)][sample])

        def lookup(state: SkillState, example: Example, sample: int) -> Mapping[str, Cell] | None:
            found = known(state, example, sample)
            return found.cells if found is not None else None

        def price(state: SkillState, example: Example, sample: int) -> int | None:
            found = known(state, example, sample)
            return found.trajectory.cost if found is not None else None

        return replace(split, lookup=lookup, prices=price, _columns={}, _costs={})


def _exchanged(groups: Sequence[str], seed: int, number: int) -> frozenset[str]:
    """Draw the groups of one comparison, the same on every machine."""
    size = -(-len(groups) // _BITS)
    bits = hashlib.shake_256(f"null arm {seed} {number}".encode()).digest(size)
    return frozenset(group for i, group in enumerate(groups) if bits[i // _BITS] >> i % _BITS & 1)

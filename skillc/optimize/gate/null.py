"""The gates on a skill against itself: two measurements of one skill, as candidate and incumbent."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from skillc.document.skill import Document
from skillc.gates.evaluate import decide_all
from skillc.gates.evidence import Evidence
from skillc.gates.intervals import Truth
from skillc.gates.stages import gates_for
from skillc.gates.terms import SkillState
from skillc.optimize.engine import Engine
from skillc.optimize.gate.gate import evidence, text_evidence
from skillc.outcomes import Cell, Example

SWAPS = 200
"""Comparisons that `accepts_itself` makes of two measurements."""
_BITS = 8


@dataclass(frozen=True, slots=True)
class NullGates:
    """The decision of a program's gates on two measurements of one skill.

    Attributes:
        accepted: whether they accept the second measurement against the first.
        chance: the share of `SWAPS` comparisons that they accept. In each the two measurements of every split group are
            exchanged or not by chance, since nothing but chance tells them apart.
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
    known: Mapping[SkillState, Document] = dict.fromkeys(("candidate", "incumbent", "best", "initial"), skill)
    texts = text_evidence(engine, known, Fraction(0), 1)
    whole = replace(engine, dataset=replace(engine.dataset, validation=tuple(examples)))
    plain = evidence(whole, known, (), texts)

    def accepted(exchanged: Collection[str]) -> bool:
        return decide_all(gates, _between(plain, engine, skill, first, second, exchanged)).truth is Truth.TRUE

    groups = sorted({example.group for example in examples})
    draws = (_exchanged(groups, engine.plan.data.seed, number) for number in range(SWAPS))
    return NullGates(accepted(()), Fraction(sum(map(accepted, draws)), SWAPS))


def _between(
    plain: Evidence,
    engine: Engine,
    skill: Document,
    first: Sequence[int],
    second: Sequence[int],
    exchanged: Collection[str],
) -> Evidence:
    """Return the evidence with the second measurement as candidate, exchanged with the first in some groups."""

    def sample_of(state: SkillState, example: Example, sample: int) -> int:
        later = (state == "candidate") != (example.group in exchanged)
        return (second if later else first)[sample]

    def lookup(state: SkillState, example: Example, sample: int) -> Mapping[str, Cell] | None:
        found = engine.rollouts.known(skill, example, sample_of(state, example, sample))
        return found.cells if found is not None else None

    def price(state: SkillState, example: Example, sample: int) -> int | None:
        found = engine.rollouts.known(skill, example, sample_of(state, example, sample))
        return found.trajectory.cost if found is not None else None

    split = plain.validation
    fresh = type(split)(split.examples, split.samples, lookup, split.ranges, price, split.dearest, split.holds)
    return Evidence(fresh, plain.batch, plain.texts, plain.planned, plain.seed)


def _exchanged(groups: Sequence[str], seed: int, number: int) -> frozenset[str]:
    """Draw the groups of one comparison, the same on every machine."""
    size = -(-len(groups) // _BITS)
    bits = hashlib.shake_256(f"null arm {seed} {number}".encode()).digest(size)
    return frozenset(group for i, group in enumerate(groups) if bits[i // _BITS] >> i % _BITS & 1)

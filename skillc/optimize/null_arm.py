"""The null arm (A/A test): measure the initial skill twice on validation, and run the gates on it against itself."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from math import sqrt

from skillc.budget.null_arm import NULL_ARM
from skillc.dataclass import dataclass
from skillc.document.skill import Document
from skillc.gates import units
from skillc.gates.evaluate import decide_all
from skillc.gates.evidence import Evidence, ScoreBounds, SplitEvidence
from skillc.gates.intervals import Truth
from skillc.gates.terms import CallTerm, Constant, MetricTerm, SkillState, conjuncts, sides
from skillc.optimize.engine import Engine
from skillc.optimize.gate.gate import evidence, measure_arm, text_evidence
from skillc.optimize.rollouts import Outcome
from skillc.outcomes import MICRO, Cell, Example
from skillc.plan.schema import MetricPlan, Plan
from skillc.stats.noise import Repeats, margin, noise_of

MOST_ACCEPTED = Fraction(1, 10)
"""The share of null comparisons that gates may accept without a warning. A gate at 95 % confidence accepts 5 %."""
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
        chance: the share of permuted comparisons that they accept, of 200 for up to 500 split groups. Each comparison
            swaps the two measurements of every group at random, since they differ by chance alone.
    """

    accepted: bool
    chance: Fraction


@dataclass(frozen=True, slots=True)
class NullArm:
    """Two measurements of the initial skill on the same validation examples.

    Attributes:
        examples: number of examples scored by both measurements.
        changed: number of those whose goal differs.
        difference: mean of the second measurement minus that of the first, in points of the goal.
        margin: the gain over itself that the skill exceeds in 5 % of comparisons.
        gates: the program's gates on the two; None without gates for steps, or with `accept = always`.
    """

    examples: int
    changed: int
    difference: Fraction
    margin: Fraction
    gates: NullGates | None


async def measure_null_arm(engine: Engine, skill: Document) -> NullArm | None:
    """Measure a skill a second time, as far as the budget admits; report and return the null arm."""
    samples, examples = engine.plan.optimize.samples, engine.dataset.validation
    again = range(samples, 2 * samples)
    whole = await measure_arm(engine, skill, examples, stage=NULL_ARM, what="the null arm", samples=again)
    found = null_arm_of(engine, skill)
    if whole and found is not None:
        for note in null_notes(engine, skill, found):
            engine.observer.note(note)
    return found


def null_arm_of(engine: Engine, skill: Document) -> NullArm | None:
    """Compute the null arm from two measurements of a skill; None if no example was measured twice."""
    samples, goal = engine.plan.optimize.samples, engine.plan.goal
    twice, measured = range(2 * samples), engine.rollouts.is_measured
    again = [example for example in engine.dataset.validation if measured(skill, example, twice)]
    if not again:
        return None
    rows = [
        Repeats(example.group, (_total(engine, skill, example, 0), _total(engine, skill, example, samples)))
        for example in again
    ]
    # Scores are sums over the samples, as in gates.
    noise = noise_of(rows, low=goal.low * samples, high=goal.high * samples, seed=engine.plan.data.seed)
    first, second = noise.means
    least = margin(noise.deviation or 0.0) / samples
    return NullArm(
        examples=noise.examples,
        changed=noise.changed,
        difference=(second - first) / samples,
        # Rounded, so that the lock has the same figure on every machine.
        margin=Fraction(round(least * MICRO), MICRO),
        gates=accepts_itself(engine, skill, again, range(samples), range(samples, 2 * samples)),
    )


def _total(engine: Engine, skill: Document, example: Example, start: int) -> int:
    samples = range(start, start + engine.plan.optimize.samples)
    return sum(engine.rollouts.score(skill, example, engine.plan.goal.name, sample) or 0 for sample in samples)


def null_notes(engine: Engine, skill: Document, found: NullArm) -> Iterator[str]:
    """Yield notes on the null arm, and a warning for each gate whose margin is smaller than the noise."""
    if not found.changed:
        yield f"null arm: measured again, the initial skill scores alike on all {found.examples} validation examples"
        return
    goal = engine.plan.goal
    yield (
        f"null arm: measured again, the initial skill scores differently on {found.changed} of {found.examples} "
        f"validation examples; a gain below {amount(found.margin, goal)} is within the noise"
    )
    if found.gates is not None and found.gates.chance > MOST_ACCEPTED:
        one, other = stricter_gates(engine.plan, found.margin)
        yield (
            f"the gates accept the initial skill against itself in {float(found.gates.chance):.0%} of comparisons, so "
            f"they ask for less than the noise: write `{one}` or `{other}`, or raise `samples`"
        )
    if engine.plan.optimize.samples == 1:
        yield from regression_notes(engine, skill)


def regression_notes(engine: Engine, skill: Document) -> Iterator[str]:
    """Yield a warning for each gate on regressions that a skill fails against itself.

    Between means of k samples the A/A rate is smaller by the root of k (docs/design/statistics.md).
    """
    samples = engine.plan.optimize.samples
    for gate, metric, most in _tolerances(engine.plan):
        rate = self_regression(engine, skill, metric)
        if rate is not None and rate**2 > most**2 * samples:
            yield (
                f"the initial skill regresses against itself by {float(rate) / sqrt(samples):.1%} from run to run, and "
                f"the gate `{gate}` admits {float(most):.1%}: it will reject by chance; lower the target's "
                "temperature, or raise `samples`"
            )


def self_regression(engine: Engine, skill: Document, metric: str) -> Fraction | None:
    """Return the A/A rate: the loss of a skill against itself between two rollouts, as `regressed` counts it.

    It is the mean over validation examples of half the distance between samples 0 and 1, since half of the
    differences are losses; None if no example has both.
    """
    score = engine.rollouts.score
    distances = [
        abs(second - first)
        for example in engine.dataset.validation
        if (first := score(skill, example, metric, 0)) is not None
        and (second := score(skill, example, metric, 1)) is not None
    ]
    return Fraction(sum(distances), 2 * len(distances) * MICRO) if distances else None


def _tolerances(plan: Plan) -> Iterator[tuple[str, str, Fraction]]:
    """Yield gate, metric and bound of each gate's `regressed(metric) <= bound`."""
    for gate in plan.gates:
        for part in conjuncts(gate.term):
            match sides(part):
                case (Constant(most), CallTerm("regressed", (MetricTerm(metric),))):
                    yield gate.name, metric, most


def stricter_gates(plan: Plan, least: Fraction) -> tuple[str, str]:
    """Return two gates on the goal that require more than the noise."""
    goal = plan.goal
    claim = f"candidate.{goal.name} > incumbent.{goal.name}"
    if goal.shown_unit == units.SHARE:
        added = f"{float(least) * 100:.1f}%"
    else:
        added = units.format_quantity(Fraction(f"{float(least):.3g}"), goal.unit)
    return f"{claim} + {added}", f"confidence({claim}) >= 95%"


def amount(value: Fraction, goal: MetricPlan) -> str:
    """Render a difference of two means of the goal: `4.2 points`."""
    if goal.shown_unit == units.SHARE:
        return f"{float(value) * 100:.1f} points"
    return units.format_amount(value, goal.unit, 3)


# ---- the gates on two measurements ----------------------------------------------------------------


def accepts_itself(
    engine: Engine, skill: Document, examples: Sequence[Example], first: Sequence[int], second: Sequence[int]
) -> NullGates | None:
    """Run the gates for steps on a skill as its own candidate; None without gates or examples.

    Comparisons that read a training batch do not apply.

    Args:
        engine: the run; its plan's samples are the length of `first` and of `second`.
        skill: measured.
        examples: with all samples measured.
        first: samples of the incumbent.
        second: samples of the candidate.
    """
    gates = engine.step_gates
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
        import numpy as np

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
        """Return evidence that uses the second measurement of a skill where `is_late` holds."""
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

"""The null arm: the initial skill, measured on validation a second time, and put through the gates against itself."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from skillc.budget.null_arm import NULL_ARM
from skillc.document.skill import Document
from skillc.gates import units
from skillc.models.failures import BudgetReached, EndpointUnreachable
from skillc.optimize.engine import Engine
from skillc.optimize.gate.null import NullGates, accepts_itself
from skillc.optimize.host import stop_reason
from skillc.optimize.loop.baseline import tolerances
from skillc.outcomes import MICRO, Example
from skillc.plan.schema import MetricPlan, Plan
from skillc.stats.noise import Repeats, margin, noise_of

MOST_ACCEPTED = Fraction(1, 10)
"""The share of null comparisons that gates may accept without a warning; one at 95 % confidence accepts 5 %."""


@dataclass(frozen=True, slots=True)
class NullArm:
    """Two measurements of the initial skill on the same validation examples.

    Attributes:
        examples: those that both measurements scored.
        changed: those whose goal differs.
        difference: mean of the second measurement minus that of the first, in points of the goal.
        margin: the gain that the skill exceeds against itself in 5 % of comparisons.
        gates: the program's gates on the two; None without gates for steps, or with `accept = always`.
    """

    examples: int
    changed: int
    difference: Fraction
    margin: Fraction
    gates: NullGates | None


async def measure_null_arm(engine: Engine, skill: Document) -> None:
    """Measure a skill a second time, as far as the budget admits, and report what that shows."""
    samples = engine.plan.optimize.samples
    examples = engine.dataset.validation
    engine.observer.stage(NULL_ARM, len(examples) * samples)
    try:
        for sample in range(samples, 2 * samples):
            await engine.rollouts.measure(skill, examples, stage=NULL_ARM, sample=sample)
    except BudgetReached:
        engine.observer.note("skipped the null arm: the budget does not admit it")
    except EndpointUnreachable as away:
        engine.observer.note(f"skipped the null arm: {away.message}")
    except asyncio.CancelledError:
        stop_reason(engine.observer)
    else:
        for note in null_notes(engine, skill):
            engine.observer.note(note)


def null_arm_of(engine: Engine, skill: Document) -> NullArm | None:
    """Return what two measurements of a skill show; None if no example was measured twice."""
    samples, goal = engine.plan.optimize.samples, engine.plan.goal
    again = [example for example in engine.dataset.validation if _is_measured_twice(engine, skill, example)]
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


def _is_measured_twice(engine: Engine, skill: Document, example: Example) -> bool:
    outcomes = (engine.rollouts.known(skill, example, sample) for sample in range(2 * engine.plan.optimize.samples))
    return all(outcome is not None and outcome.measured for outcome in outcomes)


def _total(engine: Engine, skill: Document, example: Example, start: int) -> int:
    samples = range(start, start + engine.plan.optimize.samples)
    return sum(engine.rollouts.score(skill, example, engine.plan.goal.name, sample) or 0 for sample in samples)


def null_notes(engine: Engine, skill: Document) -> Iterator[str]:
    """Yield what the null arm shows, and a warning of each gate that asks for less than the noise."""
    found = null_arm_of(engine, skill)
    if found is None:
        return
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
        yield from _regressions(engine, skill)


def _regressions(engine: Engine, skill: Document) -> Iterator[str]:
    """Yield a warning of each gate on regressions that the skill does not pass against itself."""
    for gate, metric, most in tolerances(engine.plan):
        pairs = [
            (first, second)
            for example in engine.dataset.validation
            if (first := engine.rollouts.score(skill, example, metric, 0)) is not None
            and (second := engine.rollouts.score(skill, example, metric, 1)) is not None
        ]
        lost = sum(abs(second - first) for first, second in pairs)
        if pairs and Fraction(lost, 2 * len(pairs) * MICRO) > most:
            expected = lost / (2 * len(pairs) * MICRO)
            yield (
                f"the initial skill regresses against itself by {expected:.1%} from run to run, and the gate `{gate}` "
                f"admits {float(most):.1%}: it will reject by chance; lower the target's temperature, or raise "
                "`samples`"
            )


def stricter_gates(plan: Plan, least: Fraction) -> tuple[str, str]:
    """Return two gates on the goal that ask for more than the noise."""
    goal = plan.goal
    claim = f"candidate.{goal.name} > incumbent.{goal.name}"
    if units.unit_of_metric(goal.unit, goal.low, goal.high) == units.SHARE:
        added = f"{float(least) * 100:.1f}%"
    else:
        added = units.format_quantity(Fraction(f"{float(least):.3g}"), goal.unit)
    return f"{claim} + {added}", f"confidence({claim}) >= 95%"


def amount(value: Fraction, goal: MetricPlan) -> str:
    """Render a difference of two means of the goal: `4.2 points`."""
    if units.unit_of_metric(goal.unit, goal.low, goal.high) == units.SHARE:
        return f"{float(value) * 100:.1f} points"
    return units.format_amount(value, goal.unit, 3)

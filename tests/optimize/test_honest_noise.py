"""With chance in the answers a skill differs from itself; a run says where a gate cannot tell that apart."""

from __future__ import annotations

import asyncio
import sys
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks" / "honest"))

from compiles import engine_of, plan_of
from worlds import World, dataset, proposer

from skillc.optimize.host import SilentObserver
from skillc.optimize.loop.baseline import baseline
from skillc.optimize.null_arm import self_regression
from skillc.plan.initial import initial_document

TIGHT = "candidate.correct > incumbent.correct and regressed(correct) <= 5%"
LOOSE = "candidate.correct > incumbent.correct and regressed(correct) <= 40%"


def begun(world: World, gate: str, samples: int) -> tuple[Fraction | None, list[str]]:
    plan = plan_of(gate, samples)
    observer = SilentObserver()
    engine = engine_of(world, dataset(world, (12, 400, 12), "noise"), proposer(0), plan, observer)
    initial = initial_document(plan)
    engine, _ = asyncio.run(baseline(engine, initial))
    return self_regression(engine, initial, "correct"), observer.notes


def test_the_rate_against_itself_is_that_of_two_independent_runs() -> None:
    """With chances spread evenly from 0.1 to 0.9 a pair of runs loses on E[p (1 - p)] = 0.197 of the examples."""
    rate, _ = begun(World(noisy=True), TIGHT, 2)
    assert rate is not None
    assert float(rate) == pytest.approx(0.197, abs=0.04)


def test_a_gate_below_the_rate_against_itself_is_told_of() -> None:
    rate, notes = begun(World(noisy=True), TIGHT, 2)
    assert rate is not None
    (note,) = notes
    expected = float(rate) / 2**0.5
    assert note == (
        f"the initial skill regresses against itself by {expected:.1%} from run to run, and the gate `better` admits "
        "5.0%: it will reject by chance; lower the target's temperature, or raise `samples`"
    )


@pytest.mark.parametrize(
    ("world", "gate", "samples"),
    [(World(noisy=True), LOOSE, 2), (World(noisy=True), TIGHT, 1), (World(), TIGHT, 2)],
    ids=["a loose gate", "one sample", "a steady target"],
)
def test_nothing_is_told_where_there_is_nothing_to_tell(world: World, gate: str, samples: int) -> None:
    assert begun(replace(world), gate, samples)[1] == []

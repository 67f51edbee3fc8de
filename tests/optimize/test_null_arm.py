"""The initial skill against itself: what a compile finds, says and pays, and that it decides nothing."""

from __future__ import annotations

import asyncio
import sys
from dataclasses import replace
from fractions import Fraction
from functools import cache
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks" / "honest"))

from compiles import CONFIDENT, STRICT, engine_of, plan_of
from worlds import World, dataset, proposer

from skillc.budget.bounds import bounds
from skillc.budget.null_arm import Turn
from skillc.budget.spend import Extent, Sizes
from skillc.document.skill import Document
from skillc.models.failures import BudgetReached
from skillc.optimize.engine import Engine
from skillc.optimize.final import FinalResult, final_test
from skillc.optimize.host import SilentObserver
from skillc.optimize.loop.train import TrainResult, train
from skillc.optimize.null_arm import NullArm, measure_null_arm, null_arm_of, null_notes
from skillc.outcomes import MICRO
from skillc.plan.initial import initial_document
from skillc.plan.schema import ModelPlan, Plan

NOISY = World(noisy=True)
VALIDATION = 120


def engine_for(world: World, gate: str = STRICT, samples: int = 1, **settings: object) -> tuple[Engine, SilentObserver]:
    plan = plan_of(gate, samples)
    budget = replace(plan.budget, steps=2)
    plan = plan.model_copy(update={"budget": budget, "optimize": replace(plan.optimize, **settings)})
    observer = SilentObserver()
    data = dataset(world, (24, VALIDATION, 40), "null")
    return engine_of(world, data, proposer(1), plan, observer), observer


@cache
def twice(world: World, gate: str = STRICT, samples: int = 1) -> tuple[NullArm, list[str], Engine, Document]:
    """The initial skill, measured twice without a loop."""
    engine, observer = engine_for(world, gate, samples)
    initial = initial_document(engine.plan)

    async def run() -> None:
        for sample in range(samples):
            await engine.rollouts.measure(initial, engine.dataset.validation, stage="baseline", sample=sample)
        await measure_null_arm(engine, initial)

    asyncio.run(run())
    found = null_arm_of(engine, initial)
    assert found is not None
    return found, observer.notes, engine, initial


@pytest.mark.parametrize("samples", [1, 3])
def test_it_is_what_a_count_by_hand_finds(samples: int) -> None:
    found, _, engine, initial = twice(NOISY, samples=samples)
    pairs = []
    for example in engine.dataset.validation:
        scores = [engine.rollouts.score(initial, example, "correct", sample) or 0 for sample in range(2 * samples)]
        pairs.append((sum(scores[:samples]), sum(scores[samples:])))
    assert (found.examples, found.changed) == (VALIDATION, sum(one != two for one, two in pairs))
    assert found.changed > VALIDATION / 5
    assert found.difference == Fraction(sum(two - one for one, two in pairs), VALIDATION * samples * MICRO)
    spread = sum((two - one) ** 2 for one, two in pairs) ** 0.5 / (VALIDATION * samples * MICRO)
    assert float(found.margin) == pytest.approx(1.644854 * spread, rel=1e-4)
    assert found.gates is not None
    assert found.gates.accepted == (found.difference > 0)


def test_the_chance_of_an_accept_is_that_of_compiles_measured_again() -> None:
    """The share of fresh pairs of measurements that the strict gate accepts, against the share of exchanged ones."""
    found, _, engine, initial = twice(NOISY)

    async def means() -> list[int]:
        totals = []
        for sample in range(2, 82):
            await engine.rollouts.measure(initial, engine.dataset.validation, stage="baseline", sample=sample)
            scores = [engine.rollouts.score(initial, e, "correct", sample) or 0 for e in engine.dataset.validation]
            totals.append(sum(scores))
        return totals

    totals = asyncio.run(means())
    pairs = [(one, two) for i, one in enumerate(totals) for two in totals[i + 1 :]]
    accepted = sum(two > one for one, two in pairs) / len(pairs)
    above = sum((two - one) / MICRO / VALIDATION > found.margin for one, two in pairs) / len(pairs)
    assert found.gates is not None
    assert float(found.gates.chance) == pytest.approx(accepted, abs=0.12)
    assert above == pytest.approx(0.05, abs=0.035)


def test_a_gate_that_asks_for_less_than_the_noise_is_warned_about() -> None:
    found, notes, _, _ = twice(NOISY)
    assert found.gates is not None
    assert found.gates.chance > Fraction(3, 10)
    points = f"{float(found.margin) * 100:.1f}"
    assert notes == [
        f"null arm: measured again, the initial skill scores differently on {found.changed} of {VALIDATION} "
        f"validation examples; a gain below {points} points is within the noise",
        f"the gates accept the initial skill against itself in {float(found.gates.chance):.0%} of comparisons, so they "
        f"ask for less than the noise: write `candidate.correct > incumbent.correct + {points}%` or "
        "`confidence(candidate.correct > incumbent.correct) >= 95%`, or raise `samples`",
    ]
    for gate in (CONFIDENT, f"{STRICT} + {points}%"):
        strict, notes, _, _ = twice(NOISY, gate)
        assert strict.gates is not None
        assert strict.gates.chance <= Fraction(1, 10)
        assert len(notes) == 1


def test_a_gate_on_regressions_below_the_noise_is_warned_about_with_one_sample() -> None:
    found, notes, _, _ = twice(NOISY, f"{STRICT} and regressed(correct) <= 2%")
    assert found.gates is not None
    assert found.gates.chance == 0
    (warning,) = [note for note in notes if "regresses against itself" in note]
    assert f"by {found.changed / 2 / VALIDATION:.1%} from run to run, and the gate `better` admits 2.0%" in warning


def test_a_steady_target_scores_alike() -> None:
    found, notes, _, _ = twice(World())
    assert (found.changed, found.difference, found.margin) == (0, 0, 0)
    assert found.gates is not None
    assert (found.gates.accepted, found.gates.chance) == (False, 0)
    assert notes == [
        f"null arm: measured again, the initial skill scores alike on all {VALIDATION} validation examples"
    ]


def test_without_gates_there_is_a_floor_and_no_decision() -> None:
    engine, _ = engine_for(NOISY, accept="always")
    initial = initial_document(engine.plan)
    for sample in (0, 1):
        asyncio.run(engine.rollouts.measure(initial, engine.dataset.validation, stage="baseline", sample=sample))
    found = null_arm_of(engine, initial)
    assert found is not None
    assert found.gates is None
    assert found.margin > 0
    assert len(list(null_notes(engine, initial, found))) == 1


# ---- in a compile ---------------------------------------------------------------------------------


def compiled(turn: Turn | None, *, admits: bool = True) -> tuple[TrainResult, FinalResult, SilentObserver, list[str]]:
    engine, observer = engine_for(NOISY)
    stages: list[str] = []
    observer.stage = lambda name, total: stages.append(name)  # type: ignore[method-assign]
    engine = replace(engine, null_arm=turn, admits=lambda rollouts: admits)

    async def run() -> tuple[TrainResult, FinalResult]:
        trained = await train(engine, initial_document(engine.plan))
        return trained, await final_test(trained, look=1)

    return *asyncio.run(run()), observer, stages


def test_it_decides_nothing_wherever_it_runs() -> None:
    without = compiled(None)
    for turn in ("first", "last"):
        found = compiled(turn)  # type: ignore[arg-type]
        assert found[2].decisions == without[2].decisions
        assert found[1].verdict == without[1].verdict
        assert found[1].null_arm is not None
        assert found[1].null_arm.examples == VALIDATION
        place = found[3].index("null arm")
        assert (place == 1) == (turn == "first")
        assert [name for name in found[3] if name != "null arm"] == without[3]
    assert without[1].null_arm is None
    assert "null arm" not in without[3]


def test_what_is_left_pays_for_the_last_one_or_nothing_runs() -> None:
    _, tested, _, stages = compiled("last", admits=False)
    assert tested.null_arm is None
    assert "null arm" not in stages


def test_a_cap_that_is_reached_in_it_ends_it_alone() -> None:
    engine, observer = engine_for(NOISY)
    initial = initial_document(engine.plan)
    asyncio.run(engine.rollouts.measure(initial, engine.dataset.validation, stage="baseline"))

    async def reached(*arguments: object, **named: object) -> None:
        raise BudgetReached("calls")

    engine.rollouts.measure = reached  # type: ignore[assignment]
    asyncio.run(measure_null_arm(engine, initial))
    assert observer.notes == ["skipped the null arm: the budget does not admit it"]
    assert null_arm_of(engine, initial) is None


# ---- when it runs ---------------------------------------------------------------------------------

SIZES = Sizes(train=400, validation=50, test=50, groups=50, inputs=Extent(20, 40), outputs=Extent(2, 4))
REMOTE = ModelPlan(role="target", model="openai/gpt-5-mini")


def turn_of(target: ModelPlan = REMOTE, sizes: Sizes = SIZES, **changes: object) -> Turn | None:
    plan: Plan = plan_of()
    budget = {name: changes.pop(name) for name in ("calls", "tokens", "time", "steps") if name in changes}
    plan = plan.model_copy(
        update={
            "models": {**plan.models, "target": target},
            "budget": replace(plan.budget, **budget),
            "optimize": replace(plan.optimize, **changes),
        }
    )
    found = bounds(plan, sizes, {})
    stages = {stage.name: stage.bound for stage in found.stages}
    assert ("null arm" in stages) == (found.null_arm is not None)
    if found.null_arm is not None:
        size = sizes.validation * plan.optimize.samples
        assert stages["null arm"].most.calls == size
        assert stages["null arm"].estimate.calls == (size if found.null_arm == "first" else 0)
    return found.null_arm


def test_it_runs_where_it_is_affordable_and_can_show_something() -> None:
    rulebook, noisy = ModelPlan(role="target", model="rulebook/v1"), {"noise": 0.1}
    assert turn_of() == "first"
    assert turn_of(rulebook) is None
    assert turn_of(rulebook.model_copy(update={"parameters": noisy})) == "first"
    assert turn_of(rulebook, null_arm="always") == "first"
    assert turn_of(null_arm="never") is None
    # A cap that the run may reach leaves it what is left; a cap that it cannot reach changes nothing.
    assert turn_of(calls=1_500) == "last"
    assert turn_of(tokens=10_000_000_000, calls=1_000_000) == "first"
    assert turn_of(time=Fraction(3600)) == "last"
    # More than a tenth of the expected rollouts.
    assert turn_of(steps=1) is None
    assert turn_of(steps=1, null_arm="always") == "first"

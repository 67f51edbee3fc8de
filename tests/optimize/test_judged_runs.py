"""Judges in a run: one that fails is asked again without another rollout; flips are measured before step one."""

import asyncio
from dataclasses import replace
from fractions import Fraction
from types import SimpleNamespace

import pytest
from workshop import PROGRAM, Workshop

from skillc.document.skill import digest
from skillc.errors import SkillcError
from skillc.metrics.judging.combine import Judged
from skillc.metrics.judging.verdict import JudgeFailed
from skillc.optimize.loop.baseline import check_requires, measure_flips
from skillc.optimize.rollouts import Outcome, Rollouts
from skillc.outcomes import MICRO, Scored, Unmeasured
from skillc.plan.judges import judges_of
from skillc.trajectories.trajectory import Trajectory, one_turn

JUDGED = PROGRAM.replace(
    "goal correct = exact_match(kind)",
    """model referee = "rulebook/v1"
metric kind_ok = judge(kind, "Is the kind right?", model = referee)
metric exact = exact_match(kind)
goal correct = kind_ok
require steady = flip_rate(kind_ok) <= 10%""",
)


class Played:
    """Judges that say what `says` returns for (example, sample), and keep what they were asked."""

    def __init__(self, plan, says):
        self.each, self._says, self.asked = judges_of(plan), says, []

    def __bool__(self):
        return True

    async def judge(self, example, trajectory, *, initial, sample, stage):
        self.asked.append((example.id, trajectory.answer["kind"], initial and initial.answer, sample))
        return {each.term: self._says(example, sample) for each in self.each}


def workshop(folder, says, program=JUDGED, *, initial=False):
    """A workshop whose rollouts are judged as told."""
    made = Workshop(folder, lambda call: "{}", program=program)
    judges = Played(made.plan, says)
    rollouts = made.engine.rollouts
    made.engine = SimpleNamespace(**{name: getattr(made.engine, name) for name in made.engine.__dataclass_fields__})
    first = made.state.initial if initial else None
    made.engine.rollouts = Rollouts(
        made.plan, rollouts._runner, rollouts._meter, made.observer, judges=judges, initial=first
    )
    return made, judges


def yes(example, sample):
    return Judged(Fraction(1), (("", "yes"),))


def test_where_only_a_judge_failed_the_rollout_is_not_repeated(tmp_path) -> None:
    made, judges = workshop(tmp_path, lambda e, s: JudgeFailed("referee", "no verdict") if s[1] == 0 else yes(e, s))
    measure = made.engine.rollouts.measure
    first = asyncio.run(measure(made.state.initial, made.train[:3], stage="rollout"))
    assert {outcome.cells["kind_ok"] for outcome in first} == {Unmeasured("judge")}
    assert all(isinstance(outcome.cells["exact"], Scored) for outcome in first)
    assert {outcome.failure for outcome in first} == {"no verdict"}
    rollouts = made.rollouts
    second = asyncio.run(measure(made.state.initial, made.train[:3], stage="rollout"))
    assert {outcome.cells["kind_ok"] for outcome in second} == {Scored(MICRO)}
    assert made.rollouts == rollouts
    assert [sample for *_, sample in judges.asked] == [(0, 0)] * 3 + [(0, 1)] * 3


def test_an_outcome_keeps_failure_and_counts_in_its_record() -> None:
    cells = {"a": Scored(5), "b": Unmeasured("judge")}
    whole = Outcome(cells, one_turn("x", {"kind": "tool"}), "a: 1 of 5", "judge `r`: gone", (4, 1, 1))
    assert Outcome.from_json(whole.to_json()) == whole
    plain = Outcome({"a": Scored(5)}, Trajectory(), "")
    assert set(plain.to_json()) == {"cells", "trajectory", "feedback"}


def test_a_comparison_runs_the_initial_skill_first_and_once(tmp_path) -> None:
    made, judges = workshop(tmp_path, yes, initial=True)
    other = replace(made.state.initial, about="Another one.")
    assert digest(other) != digest(made.state.initial)
    for _ in range(2):
        asyncio.run(made.engine.rollouts.measure(other, made.train[:4], stage="rollout"))
    assert made.rollouts == 8
    assert all(reference == {"kind": answer} for _, answer, reference, _ in judges.asked)


def test_flips_are_measured_on_the_same_rollouts_and_a_coin_stops_the_run(tmp_path) -> None:
    def coin(example, sample):
        return Judged(Fraction(len(sample) == 3 and sum(map(ord, example.inputs["text"])) % 2))

    (tmp_path / "a").mkdir()
    made, _ = workshop(tmp_path / "a", yes)
    made.measure_validation()
    before = made.rollouts
    flips = asyncio.run(measure_flips(made.engine, made.state.initial))
    assert (flips["kind_ok"].differing, flips["kind_ok"].measured) == (0, len(made.dataset.validation))
    assert made.rollouts == before
    asyncio.run(check_requires(made.engine, made.state))
    (tmp_path / "b").mkdir()
    made, _ = workshop(tmp_path / "b", coin)
    made.measure_validation()
    with pytest.raises(SkillcError, match=r"`require steady` does not hold .*`kind_ok` differs on") as stopped:
        asyncio.run(check_requires(made.engine, made.state))
    assert "panel" in stopped.value.hint


def test_a_second_measurement_that_fails_may_differ_or_not(tmp_path) -> None:
    made, _ = workshop(tmp_path, lambda e, s: JudgeFailed("referee", "gone") if len(s) == 3 else yes(e, s))
    made.measure_validation()
    flips = asyncio.run(measure_flips(made.engine, made.state.initial))
    assert flips["kind_ok"].measured == 0
    assert (flips["kind_ok"].rate.low, flips["kind_ok"].rate.high) == (0, 1)


def test_a_metric_without_a_judge_is_rolled_out_again(tmp_path) -> None:
    made, _ = workshop(tmp_path, yes, JUDGED.replace("flip_rate(kind_ok)", "flip_rate(exact)"))
    made.measure_validation()
    before = made.rollouts
    flips = asyncio.run(measure_flips(made.engine, made.state.initial))
    assert made.rollouts == 2 * before
    assert flips["exact"].differing == 0

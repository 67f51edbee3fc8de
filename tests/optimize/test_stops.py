"""Every way in which a run ends: the word for it, and what was decided till then."""

import asyncio
from fractions import Fraction

import pytest
from scripted import Script, World, engine_of, plan_of, results, solves, trained

from skillc.models.failures import BudgetReached
from skillc.optimize.final import final_test
from skillc.optimize.host import SilentObserver
from skillc.optimize.loop.train import train
from skillc.plan.initial import initial_document


class Clock(SilentObserver):
    """Wants the run to end after some decisions."""

    def __init__(self, reason, after):
        super().__init__()
        self._reason, self._after = reason, after

    def stop_wanted(self):
        return self._reason if len(self.decisions) >= self._after else None


def a_solved_one_more(step):
    return solves(f"v{step - 1}")


def run(tmp_path, script=a_solved_one_more, **options):
    own = {name: options.pop(name) for name in ("optimize", "budget", "gates", "slow") if name in options}
    engine = engine_of(plan_of(tmp_path, **own), script, **options)
    return trained(engine), engine


def test_epochs(tmp_path):
    done, engine = run(tmp_path, budget="epochs = 2", train_size=3)
    assert (done.stopped, len(engine.observer.decisions)) == ("epochs", 6)


@pytest.mark.parametrize("steps", [1, 2, 4, 5])
def test_steps(tmp_path, steps):
    done, engine = run(tmp_path, budget=f"steps = {steps}", train_size=3)
    assert (done.stopped, len(engine.observer.decisions)) == ("steps", steps)


def test_patience_counts_rejects_and_empty_steps_alike(tmp_path):
    script = {1: solves("v0"), 2: "no use", 3: (), 4: "no use either", 5: solves("v1")}
    done, engine = run(tmp_path, script, budget="epochs = 1; patience = 3 steps", train_size=8)
    assert done.stopped == "patience"
    assert results(engine.observer) == ["accept", "reject", "empty", "reject"]


def test_patience_ends_the_run_at_the_end_of_an_epoch_too(tmp_path):
    done, _ = run(tmp_path, {}, budget="epochs = 3; patience = 2 steps", train_size=2)
    assert done.stopped == "patience"
    assert done.state.decisions == 2


def test_accepts_below_min_gain_do_not_reset_patience(tmp_path):
    """Each step cures one of 40: 2.5 points, where 5 are asked for; two together are enough."""
    budget = "epochs = 1; patience = 2 steps; min_gain = 0.05"
    done, engine = run(tmp_path, budget=budget, train_size=12, validation=40)
    assert done.stopped == "epochs"
    done, engine = run(tmp_path, budget="epochs = 1; patience = 2 steps; min_gain = 0.06", train_size=12, validation=40)
    assert done.stopped == "patience"
    assert results(engine.observer) == ["accept", "accept"]
    assert done.state.best == done.state.incumbent


def test_perfect_is_when_no_candidate_could_pass(tmp_path):
    done, engine = run(tmp_path, {1: solves(*(f"v{i}" for i in range(8)))}, train_size=4)
    assert done.stopped == "perfect"
    assert results(engine.observer) == ["accept"]


def test_two_epochs_with_nothing_to_try_end_the_run(tmp_path):
    done, engine = run(tmp_path, {1: solves("v0")}, budget="epochs = 9", train_size=2)
    assert done.stopped == "exhausted"
    assert results(engine.observer) == ["accept", *["empty"] * 5]


def test_a_gate_that_nothing_can_pass_ends_the_run_before_the_first_step(tmp_path):
    world = World(right=lambda text, example, sample: example.id in ("v0", "v1"))
    done, engine = run(tmp_path, world=world, gates="gate all = candidate.correct > initial.correct + 80%")
    assert done.stopped == "perfect"
    assert engine.observer.decisions == []


def test_three_undecided_in_a_row(tmp_path):
    world = World(lambda text, example, sample, stage: stage == "gate")
    done, engine = run(tmp_path, world=world, train_size=8)
    assert done.stopped == "undecided"
    assert results(engine.observer) == ["undecided"] * 3


@pytest.mark.parametrize("reason", ["time", "interrupted"])
def test_the_clock_and_the_user_end_it_at_a_decision(tmp_path, reason):
    done, engine = run(tmp_path, observer=Clock(reason, 2), train_size=6)
    assert (done.stopped, len(engine.observer.decisions)) == (reason, 2)
    whole, other = run(tmp_path, train_size=6)
    assert whole.stopped == "epochs"
    assert other.observer.decisions[:2] == engine.observer.decisions


class Cut(World):
    """A budget that ends at one call."""

    def __init__(self, error, at, stage="gate"):
        super().__init__()
        self._error, self._at, self._stage = error, at, stage

    async def __call__(self, skill, example, sample, stage):
        if stage == self._stage and self.count(stage) >= self._at:
            raise self._error
        return await super().__call__(skill, example, sample, stage)


@pytest.mark.parametrize("cap", ["calls", "tokens", "cost"])
def test_a_cap_drops_the_open_decision_and_names_itself(tmp_path, cap):
    done, engine = run(tmp_path, world=Cut(BudgetReached(cap), 20), train_size=6)
    assert done.stopped == cap
    assert done.state.decisions == len(engine.observer.decisions) == done.state.accepted
    whole, other = run(tmp_path, train_size=6)
    assert whole.state.decisions > done.state.decisions > 0
    assert other.observer.decisions[: done.state.decisions] == engine.observer.decisions


class Stopping(World):
    """Somebody wants the run to end while a rollout is under way: the work is cancelled."""

    def __init__(self, reason, at):
        super().__init__()
        self.reason, self._at = None, (reason, at)

    async def __call__(self, skill, example, sample, stage):
        if len(self.calls) >= self._at[1]:
            self.reason = self._at[0]
            raise asyncio.CancelledError
        return await super().__call__(skill, example, sample, stage)


@pytest.mark.parametrize("reason", ["time", "interrupted"])
@pytest.mark.parametrize("at", [10, 25, 40])
def test_a_cut_inside_a_step_drops_it(tmp_path, reason, at):
    world, observer = Stopping(reason, at), SilentObserver()
    observer.stop_wanted = lambda: world.reason
    done, _ = run(tmp_path, world=world, observer=observer, train_size=6)
    assert done.stopped == reason
    whole, other = run(tmp_path, train_size=6)
    assert whole.state.decisions > done.state.decisions == len(observer.decisions)
    assert other.observer.decisions[: len(observer.decisions)] == observer.decisions


def test_a_cancellation_that_nobody_asked_for_goes_on(tmp_path):
    with pytest.raises(asyncio.CancelledError):
        run(tmp_path, world=Cut(asyncio.CancelledError(), 20), train_size=6)


@pytest.mark.parametrize("at", range(0, 60, 7))
def test_a_cap_at_an_epochs_end_keeps_what_was_decided_there(tmp_path, at):
    """Undecided patches, merges and slow updates are decisions of their own: each told is one that stands."""
    failing = {"left": 9}

    def fails(text, example, sample, stage):
        failing["left"] -= stage == "gate"
        return stage == "gate" and failing["left"] >= 0

    world = Cut(BudgetReached("calls"), at)
    world._fails = fails
    done, engine = run(tmp_path, world=world, train_size=2, slow="slow section guidance { limit = 99 tokens }")
    assert done.state.decisions == len(engine.observer.decisions)
    assert done.state.accepted == results(engine.observer).count("accept")


def test_the_published_curve_stops_at_56(tmp_path):
    """SkillOpt's run with its best at step 36 of 80: with patience 20 and threshold 0.001 it ends at 56.

    Scripted through the whole loop: scores of 0 to 200 right answers, accepts at the steps of the curve, at each step
    else a candidate that is no better.
    """
    levels = {1: 96, 2: 118, 4: 131, 7: 140, 9: 146, 14: 151, 19: 155, 25: 160, 31: 163, 36: 166}

    def right(text, example, sample):
        found = [int(word) for word in text.replace(".", " ").split() if word.isdigit()]
        return int(example.id[1:]) < max(found, default=80) and example.id.startswith("v")

    def script(step):
        return (
            f"level {levels[step]} of step_{step} ." if step in levels else f"level 0{step % 10} again in step_{step} ."
        )

    world = World(right=right)
    budget = "epochs = 1; patience = 20 steps; min_gain = 0.001"
    optimize = "rejected_buffer = off"
    engine = engine_of(
        plan_of(tmp_path, optimize=optimize, budget=budget), script, world=world, train_size=80, validation=200
    )
    done = trained(engine)
    assert done.stopped == "patience"
    steps = [int(d["place"].split()[1].split("/")[0]) for d in engine.observer.decisions]
    assert steps == list(range(1, 57))
    accepted = [step for step, d in zip(steps, engine.observer.decisions, strict=True) if d["result"] == "accept"]
    assert accepted == sorted(levels)
    assert engine.observer.decisions[35]["goal"]["candidate"] == "0.83"
    assert engine.observer.decisions[-1]["place"] == "step 56/80"


def test_no_stop_but_an_interruption_skips_the_final_test(tmp_path):
    for reason, verdict in (("time", "improved"), ("interrupted", "unverified")):
        plan = plan_of(tmp_path)
        script = Script({1: solves("v0", *(f"x{i}" for i in range(8)))})
        engine = engine_of(plan, script, test=8, observer=Clock(reason, 1))
        done = asyncio.run(train(engine, initial_document(plan)))
        assert done.stopped == reason
        assert asyncio.run(final_test(done, look=1)).verdict.verdict == verdict


def test_the_reference_of_min_gain_is_the_goal_of_the_last_restart(tmp_path):
    done, _ = run(tmp_path, budget="epochs = 1; patience = 9 steps; min_gain = 0.2", train_size=3)
    assert done.state.patience.reference == Fraction(2, 8)
    assert done.state.patience.waited == 1

"""An optional mechanism is one class in one file and one entry in the registry: the loop is not touched."""

from dataclasses import replace

import pytest
from scripted import BETTER, engine_of, plan_of, solves, trained

from skillc.optimize.engine import decision_record
from skillc.optimize.strategies import registry
from skillc.optimize.strategies.mechanism import Mechanism


class Diary(Mechanism):
    """Count decisions, and record the count in the history at each epoch's end."""

    name = "diary"

    @classmethod
    def from_plan(cls, plan):
        return cls() if plan.optimize.accept == "gates" else None

    def step_record(self, state, reflections):
        return {"diary": len(reflections)}

    def after_decision(self, engine, state, place):
        return state.with_mechanism_state(self.name, state.mechanism_state.get(self.name, 0) + 1)

    async def epoch_end(self, engine, state, epoch):
        told = decision_record(
            state, replace(epoch.position, kind="diary"), result="told", seen=state.mechanism_state[self.name]
        )
        engine.observer.decided(told)
        yield replace(state, decisions=state.decisions + 1)


@pytest.fixture
def diary(monkeypatch):
    monkeypatch.setattr(registry, "MECHANISMS", (*registry.MECHANISMS, Diary))


def run(tmp_path, optimize=""):
    plan = plan_of(tmp_path, optimize=optimize, gates=BETTER, budget="epochs = 2")
    engine = engine_of(plan, {1: solves("v0", "v1"), 2: solves("v2")}, train_size=3)
    return trained(engine), engine.observer.decisions


def test_a_mechanism_takes_part_with_one_entry(tmp_path, diary):
    done, decisions = run(tmp_path)
    steps = [each for each in decisions if each["kind"] == "step"]
    assert steps and all("diary" in each for each in steps)
    ends = [each for each in decisions if each["kind"] == "diary"]
    assert [each["place"] for each in ends] == ["diary 1", "diary 2"]
    assert ends[-1]["seen"] == done.state.mechanism_state["diary"] == len(steps)
    assert done.state.decisions == len(decisions)


def test_a_mechanism_that_the_plan_turns_off_takes_no_part(tmp_path, diary):
    done, decisions = run(tmp_path, optimize="accept = always")
    assert "diary" not in done.state.mechanism_state
    assert not any("diary" in each for each in decisions)


def test_every_hook_of_a_mechanism_that_overrides_none_leaves_the_run_as_it_is(tmp_path, monkeypatch):
    class Nothing(Mechanism):
        @classmethod
        def from_plan(cls, plan):
            return cls()

    before, decisions = run(tmp_path)
    monkeypatch.setattr(registry, "MECHANISMS", (Nothing, *registry.MECHANISMS))
    after, again = run(tmp_path)
    assert (again, after.state.best) == (decisions, before.state.best)

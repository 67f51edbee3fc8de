"""Which earlier failures come back into a batch."""

import asyncio
import sys
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from screening import Bench, Target, edit, example, plan_of

from skillc.document.edits import apply_edits
from skillc.optimize.propose.cases import failures_to_replay, remember_failures


def ids(examples):
    return [each.id for each in examples]


def test_the_latest_failures_come_back_and_none_twice():
    bench = Bench("a b c", plan=plan_of(replay=2), rules="- It mends b.")
    state = remember_failures(bench.engine, bench.state, bench.batch)
    assert ids(state.memory.failures) == ["a", "c"]
    assert ids(failures_to_replay(bench.engine, state, [example("d")])) == ["a", "c"]
    assert ids(failures_to_replay(bench.engine, state, [example("c"), example("d")])) == ["a"]


def test_what_came_right_is_forgotten_and_what_was_not_measured_is_kept_out():
    bench = Bench("a b", target=Target(fails=lambda text, name: name == "b"))
    state = remember_failures(bench.engine, bench.state, bench.batch)
    assert ids(state.memory.failures) == ["a"]
    after = apply_edits(state.incumbent, [edit("it mends a.")]).document
    asyncio.run(bench.engine.rollouts.measure(after, bench.batch, stage="rollout"))
    assert remember_failures(bench.engine, replace(state, incumbent=after), bench.batch).memory.failures == ()


def test_without_replay_a_batch_stays_as_it_is():
    bench = Bench("a b", plan=plan_of(replay=0))
    state = remember_failures(bench.engine, bench.state, bench.batch)
    assert state.memory.failures == ()
    assert failures_to_replay(bench.engine, state, [example("c")]) == ()

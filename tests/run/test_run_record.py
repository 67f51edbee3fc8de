import asyncio
from contextlib import closing, nullcontext

import pytest

from skillc.errors import SkillcError
from skillc.run.session import RunRecord
from skillc.store import RunStore

DECISIONS = [{"decision": 1, "result": "accept"}, {"decision": 2, "result": "reject", "blame": "better"}]


class Free:
    """A client whose calls cost nothing."""

    def recorded(self):
        return nullcontext([])

    async def charge(self, charges):
        assert charges == []


@pytest.fixture
def path(tmp_path):
    return tmp_path / "run.db"


def decide(path, decisions):
    with closing(RunStore(path)) as store:
        record = RunRecord(store, Free())
        for decision in decisions:
            record.decide(decision)


def decisions(path):
    with closing(RunStore(path)) as store:
        return store.decisions()


def test_a_run_that_goes_on_adds_to_what_it_decided(path):
    decide(path, DECISIONS[:1])
    decide(path, DECISIONS)
    assert decisions(path) == DECISIONS


def test_a_run_that_decides_otherwise_is_stopped(path):
    decide(path, DECISIONS)
    with pytest.raises(SkillcError, match="decision 2 differs"):
        decide(path, [DECISIONS[0], {"decision": 2, "result": "accept"}])
    assert decisions(path) == DECISIONS


def test_work_is_done_once_and_a_failure_again_unless_it_was_used(path):
    done = []

    def work(name, whole=True):
        async def once():
            done.append(name)
            return {"value": name}, whole

        return once

    async def session(*, close):
        with closing(RunStore(path)) as store:
            wave = RunRecord(store, Free()).wave()
            found = [await wave.once([1], work("a")), await wave.once([2], work("b", whole=False))]
            found.append(await wave.once([1], work("c")))
            if close:
                wave.close()
            return found

    values = [{"value": name} for name in "abc"]
    assert asyncio.run(session(close=False)) == values
    assert asyncio.run(session(close=True)) == values
    assert asyncio.run(session(close=True)) == values
    assert done == ["a", "b", "c", "b"]

"""Many jobs are done in their order by few tasks, and nothing runs on behind an error."""

from __future__ import annotations

import asyncio
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from thorough import example_count

from skillc.models import concurrency
from skillc.models.concurrency import gather


class Jobs:
    def __init__(self, count: int, pace: int, fails_at: int | None = None) -> None:
        self.begun: list[int] = []
        self.running = 0
        self.most_tasks = 0
        self._draw = random.Random(pace)
        self._fails_at = fails_at
        self.jobs = [self._one(i) for i in range(count)]

    async def _one(self, i: int) -> int:
        self.begun.append(i)
        self.running += 1
        self.most_tasks = max(self.most_tasks, len(asyncio.all_tasks()))
        try:
            for _ in range(self._draw.randrange(5)):
                await asyncio.sleep(0)
            if i == self._fails_at:
                raise ValueError(f"job {i}")
            return i * i
        finally:
            self.running -= 1


@settings(max_examples=example_count(30), deadline=None)
@given(count=st.integers(0, 60), most=st.integers(1, 9), pace=st.integers(0, 99))
def test_results_stand_in_order_and_jobs_begin_in_order(count: int, most: int, pace: int) -> None:
    async def scenario() -> Jobs:
        jobs = Jobs(count, pace)
        assert await gather(jobs.jobs) == [i * i for i in range(count)]
        return jobs

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(concurrency, "MOST_TASKS", most)
        jobs = asyncio.run(scenario())
    assert jobs.begun == list(range(count))
    assert jobs.most_tasks <= most + 1


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("cancelled", [False, True])
def test_an_error_or_the_user_ends_all_of_it(cancelled: bool) -> None:
    async def scenario() -> None:
        jobs = Jobs(3_000, 1, fails_at=None if cancelled else 700)
        task = asyncio.ensure_future(gather(jobs.jobs))
        if cancelled:
            await asyncio.sleep(0.01)
            task.cancel()
        with pytest.raises((ValueError, asyncio.CancelledError)):
            await task
        begun = len(jobs.begun)
        assert 0 < begun < 3_000
        assert jobs.running == 0
        await asyncio.sleep(0.01)
        assert len(jobs.begun) == begun

    asyncio.run(scenario())

"""The clock of a run: it starts with the first call, and leaves out what servers take to start."""

from __future__ import annotations

import asyncio
import threading
import time

from skillc.run.stop import Stop


async def _cut_after(stop: Stop, seconds: float = 5.0) -> float:
    """Seconds until the work is cut off."""
    began = time.monotonic()
    try:
        with stop.cuts(clock=True):
            await asyncio.sleep(seconds)
    except asyncio.CancelledError:
        task = asyncio.current_task()
        assert task is not None
        task.uncancel()
    return time.monotonic() - began


def test_a_clock_that_has_not_begun_never_asks() -> None:
    stop = Stop(0.01)
    assert asyncio.run(_cut_after(stop, 0.1)) >= 0.1
    assert stop.reason is None
    assert stop.left is None


def test_it_begins_once_and_from_any_thread() -> None:
    stop = Stop(0.2)
    threading.Timer(0.2, stop.begin).start()
    threading.Timer(0.3, stop.begin).start()
    assert 0.35 < asyncio.run(_cut_after(stop)) < 5
    assert stop.reason == "time"


def test_what_is_excused_does_not_count() -> None:
    stop = Stop(0.2)
    stop.begin()
    threading.Timer(0.1, stop.excuse, (0.3,)).start()
    assert 0.45 < asyncio.run(_cut_after(stop)) < 5


def test_a_clock_that_no_longer_counts_cannot_begin() -> None:
    async def main(stop: Stop) -> None:
        with stop.cuts(clock=False):
            stop.begin()
            await asyncio.sleep(0.05)

    stop = Stop(0.01)
    asyncio.run(main(stop))
    assert stop.reason is None

"""How `benchmarks/line` integrates what was ready and what was in flight."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.line.watch import Watch, fill


def watch(demand, sent, *, early=(), used=()):
    stages = [(0.0, "baseline"), (5.0, "gate"), (100.0, "no skill")]
    return Watch(demand=demand, stages=stages, sent=sent, early=set(early), used=set(used))


def test_a_line_that_is_always_full_is_full():
    """Four calls of one second, two at once: two seconds of two."""
    notes = watch([(0, 4), (1, -2), (2, -2)], dict.fromkeys("abcd"))
    found = fill(notes, [("a", 0, 1), ("b", 0, 1), ("c", 1, 2), ("d", 1, 2)], 2)
    assert found.share == found.crowded_share == pytest.approx(1)
    assert (found.useful, found.ready, found.seconds) == (4, 4, 2)


def test_time_without_work_does_not_count_and_time_with_work_that_waits_does():
    """One call is wanted for two seconds and with the server for one of them; then for three nothing is wanted."""
    notes = watch([(0, 1), (2, -1), (5, 2), (7, -2)], dict.fromkeys("abc"))
    found = fill(notes, [("a", 1, 2), ("b", 5, 7), ("c", 5, 7)], 4)
    assert (found.useful, found.ready) == (5, 6)
    assert found.crowded_share is None
    assert found.lost == {"baseline": 1, "gate": 0}
    assert found.mean == pytest.approx(5 / 7)


def test_what_was_sent_ahead_for_nothing_takes_a_slot_and_is_not_useful():
    notes = watch([(0, 2), (1, -2)], {"a": "x", "b": "y"}, early=["x", "y"], used=["x"])
    found = fill(notes, [("a", 0, 1), ("b", 0, 1)], 2)
    assert (found.calls, found.thrown, found.wasted) == (1, 1, 1)
    assert found.share == pytest.approx(1 / 2)
    assert found.crowded_share == pytest.approx(1 / 2)


def test_the_comparison_with_no_skill_is_left_out():
    notes = watch([(0, 1), (1, -1), (100, 50), (101, -50)], dict.fromkeys("ab"))
    assert fill(notes, [("a", 0, 1), ("b", 100, 101)], 2).calls == 1

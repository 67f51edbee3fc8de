"""How many calls the merge tree of a step takes."""

from __future__ import annotations

FAN_IN = 8


def merges(failures: int, successes: int) -> int:
    """Calls that merge so many lists: each kind by itself, then all that are left in one; a lone list passes."""
    calls = 0
    while failures + successes > FAN_IN:
        calls += _calls(failures) + _calls(successes)
        failures, successes = -(-failures // FAN_IN), -(-successes // FAN_IN)
    return calls + (failures + successes > 1)


def most_merges(lists: int) -> int:
    """The most calls that up to so many lists can take, however they fall into two kinds.

    One round takes at most (k + 6) // 8 calls for k lists of a kind and leaves (k + 7) // 8 of them.
    """
    calls = 0
    while lists > FAN_IN:
        calls += (lists + 2 * (FAN_IN - 2)) // FAN_IN
        lists = (lists + 2 * (FAN_IN - 1)) // FAN_IN
    return calls + (lists > 1)


def _calls(lists: int) -> int:
    """Calls of one round over lists of one kind."""
    whole, rest = divmod(lists, FAN_IN)
    return whole + (rest > 1)

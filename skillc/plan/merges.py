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
    """The most calls that so many lists can take, however they fall into kinds, and if some of them are empty."""
    pairs = ((failures, some - failures) for some in range(lists + 1) for failures in range(some + 1))
    return max(merges(failures, successes) for failures, successes in pairs)


def _calls(lists: int) -> int:
    """Calls of one round over lists of one kind."""
    whole, rest = divmod(lists, FAN_IN)
    return whole + (rest > 1)

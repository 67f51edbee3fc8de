"""What an attempt's failure tells of its endpoint."""

from __future__ import annotations

from skillc.models import failures
from skillc.models.pacing.slots import End

_REFUSALS = frozenset({429, 503, 529})


def is_refusal(problem: Exception) -> bool:
    """Whether the server sent an attempt away unserved, for want of capacity: 429, 503, 529, or in words."""
    if not failures.is_transient(problem):
        return False
    status = failures.status_of(problem)
    return status in _REFUSALS or (failures.was_refused(problem) and "overloaded" in str(problem).lower())


def end_of(problem: Exception) -> End:
    """Returns what an exception shows of the endpoint.

    `refused`; `unreachable` where there was no connection; `strained` where one gave no answer, as after a timeout or
    a reset; `answered` where the answer was an error; else `other`.
    """
    if is_refusal(problem):
        return "refused"
    if failures.reached_nobody(problem):
        return "unreachable"
    if failures.is_transient(problem) and not failures.was_refused(problem):
        return "strained"
    return "other" if failures.status_of(problem) is None else "answered"

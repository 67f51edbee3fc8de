"""What the calls of one rollout have in common: stage, sample, and their replies. It is known without DSPy."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import field

from skillc.dataclass import dataclass
from skillc.models.calls import Completion


@dataclass(slots=True)
class CallScope:
    """Stage and sample of the calls made inside `scope`, and their replies in order of arrival.

    `images` are data URIs by the short ones that stand for them in prompts, since DSPy copies and searches texts often.
    """

    stage: str = "program"
    sample: int | tuple[int, ...] = 0
    completions: list[Completion] = field(default_factory=list)
    images: dict[str, str] = field(default_factory=dict)


_SCOPE: ContextVar[CallScope | None] = ContextVar("skillc_scope", default=None)


@contextmanager
def scope(stage: str, sample: int | tuple[int, ...] = 0) -> Iterator[CallScope]:
    """Set stage and sample of the calls made inside; travels with the context, tasks included."""
    current = CallScope(stage, sample)
    token = _SCOPE.set(current)
    try:
        yield current
    finally:
        _SCOPE.reset(token)


def current_scope() -> CallScope:
    """Return the innermost scope, a new one outside of any."""
    return _SCOPE.get() or CallScope()

"""Spans of a run, recorded while a tracer is active. No span changes a result."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Protocol, TypeAlias

from skillc.redaction import Redactor

Value: TypeAlias = str | bool | int | float | Sequence[str]
Attributes: TypeAlias = Mapping[str, Value]


class Span:
    """A span that nothing records."""

    def set(self, attributes: Attributes) -> None:
        """Add attributes."""

    def fail(self, kind: str, message: str = "") -> None:
        """Mark the span as failed with an `error.type`."""

    def end(self) -> None:
        """End the span; a second time does nothing."""

    def attach(self) -> Any:
        """Make the span the current one of OpenTelemetry too; return the argument of `detach`."""

    def detach(self, token: Any) -> None:
        """Undo `attach`."""


NO_SPAN = Span()


class Tracer(Protocol):
    """Makes spans that are recorded.

    Attributes:
        captures: whether the contents of messages are recorded.
    """

    captures: bool

    def start(
        self, name: str, attributes: Attributes, *, parent: Span, remote: bool = False, hide: Redactor | None = None
    ) -> Span:
        """Start a span.

        Args:
            name: one of few.
            attributes: redacted as the parent's, or by `hide`.
            parent: `NO_SPAN` makes it a child of the span that the caller's own program has open, or a root.
            remote: whether it is a request to another process.
            hide: redacts the texts of this span and of those below it.
        """


_tracer: Tracer | None = None
_CURRENT: ContextVar[Span] = ContextVar("skillc_span", default=NO_SPAN)


def active() -> Tracer | None:
    """Return the active tracer, None if nothing is traced."""
    return _tracer


def current() -> Span:
    """Return the innermost span."""
    return _CURRENT.get()


def make_current(span: Span) -> None:
    """Make a span the innermost one of this task and of those that it starts."""
    _CURRENT.set(span)


@contextmanager
def tracing(tracer: Tracer | None) -> Iterator[None]:
    """Record spans with a tracer in the whole process; None leaves everything as it is."""
    global _tracer
    if tracer is None:
        yield
        return
    before, _tracer = _tracer, tracer
    try:
        yield
    finally:
        _tracer = before


@contextmanager
def span(name: str, attributes: Attributes, *, remote: bool = False, hide: Redactor | None = None) -> Iterator[Span]:
    """Record what happens inside as a span, with the type of the exception that leaves it."""
    if _tracer is None:
        yield NO_SPAN
        return
    opened = _tracer.start(name, attributes, parent=_CURRENT.get(), remote=remote, hide=hide)
    token, attached = _CURRENT.set(opened), opened.attach()
    try:
        yield opened
    except BaseException as problem:
        opened.fail(error_type(problem), "" if isinstance(problem, asyncio.CancelledError) else str(problem))
        raise
    finally:
        opened.detach(attached)
        _CURRENT.reset(token)
        opened.end()


def error_type(problem: BaseException) -> str:
    """Return the `error.type` of an exception: its kind of failure, else its class."""
    if isinstance(problem, asyncio.CancelledError):
        return "cancelled"
    kind = getattr(problem, "kind", None)
    return kind if isinstance(kind, str) else type(problem).__name__

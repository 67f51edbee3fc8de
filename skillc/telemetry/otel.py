"""Spans made with the SDK of OpenTelemetry."""

from __future__ import annotations

import random
import sys
from collections.abc import Mapping
from typing import Any

from opentelemetry import context, trace
from opentelemetry.sdk.trace.id_generator import IdGenerator
from opentelemetry.trace import SpanKind, Status, StatusCode

from skillc import __version__
from skillc.redaction import NOTHING, Redactor
from skillc.telemetry.spans import Attributes, Span, Value

CAPTURE = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
_CAPTURING = ("true", "1", "span_only", "span_and_event")


class OtelSpan(Span):
    """A recorded span; `hide` redacts its texts."""

    def __init__(self, span: Any, hide: Redactor) -> None:
        self.span = span
        self.hide = hide

    def set(self, attributes: Attributes) -> None:
        """Add attributes."""
        self.span.set_attributes(hidden(attributes, self.hide))

    def fail(self, kind: str, message: str = "") -> None:
        """Mark the span as failed with an `error.type`."""
        self.span.set_attribute("error.type", kind)
        self.span.set_status(Status(StatusCode.ERROR, self.hide.message(message)[:500] or None))

    def end(self) -> None:
        """End the span; a second time does nothing."""
        if self.span.is_recording():
            self.span.end()

    def attach(self) -> Any:
        """Make the span the current one, so that other instrumentation finds its parent."""
        return context.attach(trace.set_span_in_context(self.span))

    def detach(self, token: Any) -> None:
        """Undo `attach`."""
        context.detach(token)


class OtelTracer:
    """Makes spans with a provider.

    Args:
        provider: a provider of OpenTelemetry.
        environ: says whether contents are captured.
    """

    def __init__(self, provider: Any, environ: Mapping[str, str]) -> None:
        self._tracer = provider.get_tracer("skillc", __version__)
        self.captures = environ.get(CAPTURE, "").strip().lower() in _CAPTURING

    def start(
        self, name: str, attributes: Attributes, *, parent: Span, remote: bool = False, hide: Redactor | None = None
    ) -> Span:
        """As `Tracer.start`."""
        above = parent if isinstance(parent, OtelSpan) else None
        redactor = hide or (above.hide if above is not None else NOTHING)
        started = self._tracer.start_span(
            redactor(name),
            context=trace.set_span_in_context(above.span) if above is not None else None,
            kind=SpanKind.CLIENT if remote else SpanKind.INTERNAL,
            attributes=hidden(attributes, redactor),
        )
        return OtelSpan(started, redactor)


class OwnIds(IdGenerator):  # type: ignore[misc]  # the SDK is optional
    """Ids from a generator of their own: the default one takes them from `random`, which functions of users seed."""

    def __init__(self) -> None:
        self._random = random.SystemRandom()

    def generate_span_id(self) -> int:
        """Return a new id."""
        return self._random.getrandbits(64) or 1

    def generate_trace_id(self) -> int:
        """Return a new id."""
        return self._random.getrandbits(128) or 1


def provider_of_program() -> Any | None:
    """Return the provider that the user's own program has set, None if it has none."""
    if "opentelemetry.sdk.trace" not in sys.modules:
        return None
    found = trace.get_tracer_provider()
    return None if isinstance(found, trace.ProxyTracerProvider | trace.NoOpTracerProvider) else found


def hidden(attributes: Attributes, hide: Redactor) -> dict[str, Value]:
    """Return attributes with their texts redacted."""
    return {name: _hidden(value, hide) for name, value in attributes.items()} if hide else dict(attributes)


def _hidden(value: Value, hide: Redactor) -> Value:
    if isinstance(value, str):
        return hide(value)
    return value if isinstance(value, bool | int | float) else [hide(each) for each in value]

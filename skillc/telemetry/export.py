"""Send spans to a collector by OTLP over HTTP.

The queue is bounded and a thread of its own sends it, so that a collector that does not answer costs a run nothing but
its spans. What could not be sent is reported once, at the end.
"""

from __future__ import annotations

import itertools
import logging
import os
import re
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Protocol
from urllib.parse import urlsplit

from skillc.errors import SkillcError
from skillc.telemetry.spans import tracing
from skillc.text import counted, cut

_EXTRA = 'pip install "skillc[otel]"'
ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
_PROTOCOLS = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
_DEFAULT = "http://localhost:4318"
# Seconds to wait for queued spans at the end: for a collector that has answered, for one that nothing was sent to yet,
# and for one that has refused the last spans or has not answered for a while.
_FLUSH, _FIRST, _GIVE_UP = 5.0, 2.0, 0.5
_SILENT = 2.0
_TRANSIENT = re.compile(r"Transient error (.*) encountered while")
_LOGGERS = ("opentelemetry.exporter.otlp", "opentelemetry.sdk")


class Exporting(Protocol):
    """The part of an exporter that is used here."""

    def export(self, spans: Sequence[Any]) -> Any:
        """Send spans and return a result with a `name`."""

    def shutdown(self) -> None:
        """Give up what is being sent."""


def wanted(environ: Mapping[str, str]) -> bool:
    """Return whether the standard variables ask for spans."""
    if environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return False
    exporters = environ.get("OTEL_TRACES_EXPORTER", "").strip().lower()
    if exporters not in ("", "otlp"):
        return False
    return exporters == "otlp" or any(environ.get(name, "").strip() for name in ENDPOINTS)


@contextmanager
def exported(note: Callable[[str], None], *, asked: bool = False) -> Iterator[None]:
    """Trace what happens inside, if the user asks for it or the standard variables do.

    Args:
        note: reports to the user.
        asked: whether the user asks for spans by an option.

    Raises:
        SkillcError: the user asks for spans, and they cannot be sent.
    """
    environ = os.environ
    if not asked and not wanted(environ):
        yield
        return
    problem = _problem(environ)
    if problem is not None:
        if asked:
            raise problem
        note(f"no spans are sent: {problem.message}{f' ({problem.hint})' if problem.hint else ''}")
        yield
        return
    with _sending(environ, note):
        yield


@contextmanager
def traced_by_environment(note: Callable[[str], None]) -> Iterator[None]:
    """Trace what happens inside with the provider of the user's own program, else as `exported`."""
    found = None
    if "opentelemetry.sdk.trace" in sys.modules:
        from skillc.telemetry.otel import OtelTracer, provider_of_program

        found = provider_of_program()
    if found is None:
        with exported(note):
            yield
        return
    with tracing(OtelTracer(found, os.environ)):
        yield


def _problem(environ: Mapping[str, str]) -> SkillcError | None:
    """Return why spans cannot be sent, None if they can."""
    protocol = next((environ[name] for name in _PROTOCOLS if environ.get(name)), "http/protobuf")
    if protocol != "http/protobuf":
        hint = f"set {_PROTOCOLS[1]}=http/protobuf, with the collector's port for HTTP, usually 4318"
        return SkillcError(f"the protocol `{protocol}` of OpenTelemetry is not supported", hint=hint)
    address = endpoint_of(environ)
    if urlsplit(address).scheme not in ("http", "https"):
        return SkillcError(f"`{address}` is not the address of a collector", hint=f"write it like {_DEFAULT}")
    try:
        import opentelemetry.exporter.otlp.proto.http.trace_exporter
        import opentelemetry.sdk.trace  # noqa: F401
    except ImportError:
        return SkillcError("OpenTelemetry spans need its SDK", hint=_EXTRA)
    return None


def endpoint_of(environ: Mapping[str, str]) -> str:
    """Return the address of the collector."""
    return next((environ[name].strip() for name in ENDPOINTS if environ.get(name, "").strip()), _DEFAULT)


@contextmanager
def _sending(environ: Mapping[str, str], note: Callable[[str], None]) -> Iterator[None]:
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider

    from skillc import __version__
    from skillc.telemetry.otel import OtelTracer, OwnIds

    with _quiet() as log:
        exporter = CountingExporter(OTLPSpanExporter())
        processor = _processor(exporter)
        resource = Resource.create(
            {"service.name": environ.get("OTEL_SERVICE_NAME") or "skillc", "service.version": __version__}
        )
        provider = TracerProvider(resource=resource, id_generator=OwnIds(), shutdown_on_exit=False)
        provider.add_span_processor(processor)
        try:
            with tracing(OtelTracer(provider, environ)):
                yield
        finally:
            _close(processor, exporter)
            lost = processor.ended - exporter.sent
            if lost > 0:
                of = f"{lost:,} of {counted(processor.ended, 'span')}"
                why = f": {log.last}" if log.last else ""
                note(f"{of} could not be sent to {_shown(endpoint_of(environ))}{why}; the run is not affected")


def _shown(address: str) -> str:
    """Return an address without user, password and query."""
    parts = urlsplit(address)
    port = f":{parts.port}" if parts.port is not None else ""
    return f"{parts.scheme}://{parts.hostname or ''}{port}{parts.path}"


class CountingExporter:
    """Counts the spans that another exporter has sent.

    Attributes:
        sent: so far.
        failed: whether the last batch was lost.
        since: when the batch that is being sent was begun; None between two batches.
    """

    def __init__(self, inner: Exporting) -> None:
        self._inner = inner
        self.sent = 0
        self.failed = self._closed = False
        self.since: float | None = None

    def export(self, spans: Sequence[Any]) -> Any:
        """Send spans."""
        if self._closed:
            return None
        self.since = time.monotonic()
        result = self._inner.export(spans)
        self.since = None
        self.failed = getattr(result, "name", "") != "SUCCESS"
        if not self.failed:
            self.sent += len(spans)
        return result

    def shutdown(self) -> None:
        """Give up what is being sent."""
        if not self._closed:
            self._closed = True
            self._inner.shutdown()

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """Do nothing: nothing is kept here."""
        return True


def _processor(exporter: CountingExporter) -> Any:
    """Return a processor with a bounded queue that counts the spans that have ended."""
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    class Processor(BatchSpanProcessor):  # type: ignore[misc]  # the SDK is optional
        """Counts spans; its limits are the standard variables'."""

        def __init__(self) -> None:
            super().__init__(exporter)
            self._numbers = itertools.count(1)
            self.ended = 0

        def on_end(self, span: Any) -> None:
            """Queue a span that is sampled."""
            if span.context.trace_flags.sampled:
                self.ended = max(self.ended, next(self._numbers))
            super().on_end(span)

    return Processor()


def _close(processor: Any, exporter: CountingExporter) -> None:
    """Send what is queued, for a few seconds at most."""
    done = threading.Thread(target=processor.force_flush, name="skillc spans", daemon=True)
    done.start()
    since = exporter.since
    silent = since is not None and time.monotonic() - since > _SILENT
    done.join(_GIVE_UP if exporter.failed or silent else _FLUSH if exporter.sent else _FIRST)
    if done.is_alive() or exporter.failed:
        exporter.shutdown()
        done.join(_GIVE_UP)
    # Its own thread waits for the exporter, which has been told to give up.
    threading.Thread(target=processor.shutdown, name="skillc spans", daemon=True).start()


class _LastMessage(logging.Handler):
    """Keeps the last message in place of printing all."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.last = ""

    def emit(self, record: logging.LogRecord) -> None:
        """Keep why an export failed."""
        text = " ".join(record.getMessage().split())
        if record.name.startswith(_LOGGERS[0]) and "hutdown" not in text:
            found = _TRANSIENT.match(text)
            self.last = cut(found[1] if found is not None else text, 200)


@contextmanager
def _quiet() -> Iterator[_LastMessage]:
    """Keep the messages of OpenTelemetry away from the terminal, and its last one here."""
    kept, before = _LastMessage(), {}
    for name in _LOGGERS:
        logger = logging.getLogger(name)
        before[name] = logger.propagate
        logger.propagate = False
        logger.addHandler(kept)
    try:
        yield kept
    finally:
        for name, propagate in before.items():
            logger = logging.getLogger(name)
            logger.removeHandler(kept)
            logger.propagate = propagate

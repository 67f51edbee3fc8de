"""DSPy's optimizers print and draw bars as they go; a compile shows its own progress and owns standard output."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import tqdm

_QUIET: ContextVar[bool] = ContextVar("skillc_quiet", default=False)


class _Screen:
    """A stream that drops what is written under `quiet`, and passes on all else, from other threads as well."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        return len(text) if _QUIET.get() else int(self._stream.write(text) or 0)

    def flush(self) -> None:
        if not _QUIET.get():
            self._stream.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextmanager
def quiet() -> Iterator[None]:
    """Silences what this context prints and draws, and DSPy's log, until it ends."""
    log = logging.getLogger("dspy")
    level, streams, drawn = log.level, (sys.stdout, sys.stderr), tqdm.tqdm.__init__

    # A bar that a cut-off optimizer leaves behind draws itself once more when it is collected, so none is made.
    def without_bars(bar: Any, *arguments: Any, **options: Any) -> None:
        drawn(bar, *arguments, **({**options, "disable": True} if _QUIET.get() else options))

    token = _QUIET.set(True)
    sys.stdout, sys.stderr = _Screen(streams[0]), _Screen(streams[1])
    tqdm.tqdm.__init__ = without_bars
    log.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        sys.stdout, sys.stderr = streams
        tqdm.tqdm.__init__ = drawn
        log.setLevel(level)
        _QUIET.reset(token)

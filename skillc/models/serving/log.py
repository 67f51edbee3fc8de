"""What a server's log says: where the start stands, and why it died."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import IO

from skillc.models.failures import scrub

_SHOWN = 12
_READ = 256 * 1024
_WIDTH = 160
_ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
# `(EngineCore pid=7) INFO 11-21 11:15:16 [core.py:133] Initializing ...`
_HEAD = re.compile(
    r"^(?:\([^)]*pid=\d+\)\s*)?(?:(?:DEBUG|INFO|WARNING|ERROR|CRITICAL):?\s+)?(?:[\d-]+ [\d:]+ \[[^\]]*\]\s*)?"
)
_CAUSE = re.compile(r"(?:^|\s)\w*(?:Error|Exception|error):\s+\S")


def open_log(path: Path) -> IO[bytes]:
    """A new log, for this user alone; the one before it is kept beside it.

    Raises:
        OSError: it cannot be written.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.exists():
        path.replace(path.with_suffix(".before.log"))
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND, 0o600), "wb")


def tail(path: Path, secrets: Sequence[str]) -> str:
    """The end of a log, indented, without secrets; in front of it the last named error, where that is further up."""
    lines = _lines(path)
    shown = lines[-_SHOWN:]
    causes = [line for line in lines[:-_SHOWN] if _CAUSE.search(line)]
    if causes and not any(_CAUSE.search(line) for line in shown):
        shown = [causes[-1], "...", *shown]
    return "\n".join(f"    {scrub(line, secrets)[:_WIDTH]}" for line in shown) or "    (the log is empty)"


def latest(path: Path) -> str:
    """The last line that says something, for a line of progress."""
    for line in reversed(_lines(path)):
        told = _HEAD.sub("", line).strip()
        if sum(letter.isalpha() for letter in told) > 3:
            return scrub(told, [])[:80]
    return ""


def _lines(path: Path) -> list[str]:
    try:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - _READ))
            text = file.read().decode("utf-8", "replace")
    except OSError:
        return []
    return [line.rstrip() for line in re.split(r"[\r\n]+", _ANSI.sub("", text)) if line.strip()]

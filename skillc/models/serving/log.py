"""Logs of servers, one for each process: progress of a start, and the cause of a death."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import IO

from skillc.models.failures import scrub

if sys.platform != "win32":
    import fcntl

_SHOWN = 12
_KEPT = 8
_READ = 256 * 1024
_WIDTH = 160
_ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
# `(EngineCore pid=7) INFO 11-21 11:15:16 [core.py:133] Initializing ...`
_HEAD = re.compile(
    r"^(?:\([^)]*pid=\d+\)\s*)?(?:(?:DEBUG|INFO|WARNING|ERROR|CRITICAL):?\s+)?(?:[\d-]+ [\d:]+ \[[^\]]*\]\s*)?"
)
_CAUSE = re.compile(r"(?:^|\s)\w*(?:Error|Exception|error):\s+\S")


def new_log(home: Path, name: str) -> tuple[Path, IO[bytes]]:
    """Create the log of one server process, readable by this user alone, and remove old ones.

    The file is locked while a process holds it open, the server included, so that no log in use is removed.

    Args:
        home: the folder of logs.
        name: the server's name; the log is `NAME.1.log`, or the next number that is free.

    Raises:
        OSError: it cannot be written.
    """
    home.mkdir(parents=True, exist_ok=True)
    logs = sorted((number, path) for path in home.glob(f"{name}.*.log") if (number := _number(path)) is not None)
    number = logs[-1][0] + 1 if logs else 1
    while True:
        path = home / f"{name}.{number}.log"
        try:
            made = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o600)
            break
        except FileExistsError:
            number += 1
    fcntl.flock(made, fcntl.LOCK_SH)
    for _, old in logs[:-_KEPT]:
        _remove_unused(old)
    return path, os.fdopen(made, "wb")


def _number(path: Path) -> int | None:
    digits = path.stem.rpartition(".")[2]
    return int(digits) if digits.isdecimal() else None


def _remove_unused(path: Path) -> None:
    try:
        with path.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            path.unlink()
    except OSError:
        # A server writes to it, or another process has removed it.
        return


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

"""The decisions of a run, hash-chained: a run that is started again must decide the same, or stop."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TypeAlias

from pydantic import JsonValue

from skillc.errors import SkillcError

Record: TypeAlias = Mapping[str, JsonValue]

_START = "0" * 64


def canonical(record: Record) -> str:
    """One line of JSON with sorted keys: the same text for the same values."""
    return json.dumps(record, sort_keys=True, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def _link(previous: str, record: Record) -> str:
    return hashlib.sha256((previous + canonical(record)).encode()).hexdigest()


class Journal:
    """Appends decisions to a file, each bound to all before it.

    A file that is there is the oracle: the decisions of a run that goes on are compared with it one by one.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._known = _read(path)
        self._count = 0
        self._head = _START

    @property
    def known(self) -> int:
        """Decisions that the file held when it was opened."""
        return len(self._known)

    def record(self, decision: Record) -> None:
        """Writes one decision, synced before it returns, or compares it with the one that stands there.

        Raises:
            SkillcError: the recorded run decided otherwise, or the file cannot be written.
        """
        self._head = _link(self._head, decision)
        self._count += 1
        if self._count <= len(self._known):
            if self._known[self._count - 1] != self._head:
                raise SkillcError(
                    f"{_name(decision)} differs from the one that this run recorded before in `{self._path}`",
                    hint="a model or its server answers differently now; remove the run's folder to start anew",
                )
            return
        line = canonical({"chain": self._head, "decision": dict(decision)})
        try:
            with self._path.open("a", encoding="utf-8") as file:
                file.write(line + "\n")
                file.flush()
                os.fsync(file.fileno())
        except OSError as problem:
            raise SkillcError(f"the journal `{self._path}` cannot be written: {problem.strerror}") from problem


def _name(record: Record) -> str:
    """A decision, or the completed validation of an accepted one, as a user knows it."""
    if "completed" in record:
        return f"the validation after decision {record['completed']}"
    return f"decision {record.get('decision')}"


def _read(path: Path) -> list[str]:
    """The chain of the file's whole lines; a torn tail, as a kill leaves it, is cut off."""
    if not path.exists():
        return []
    chain: list[str] = []
    head, kept = _START, 0
    for line in path.read_bytes().splitlines(keepends=True):
        try:
            entry = json.loads(line)
            head = _link(head, entry["decision"])
            whole = line.endswith(b"\n") and entry["chain"] == head
        except (ValueError, KeyError, TypeError):
            whole = False
        if not whole:
            break
        chain.append(head)
        kept += len(line)
    with path.open("r+b") as file:
        file.truncate(kept)
    return chain

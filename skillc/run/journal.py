"""The decisions of a run, hash-chained: a run that is started again must decide the same, or stop."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeAlias

from pydantic import JsonValue

from skillc.errors import SkillcError
from skillc.json_values import canonical
from skillc.line_file import LineFile

Record: TypeAlias = Mapping[str, JsonValue]

_START = "0" * 64


def _link(previous: str, record: Record) -> str:
    return hashlib.sha256((previous + canonical(record)).encode()).hexdigest()


class Journal:
    """Appends decisions to a file, each bound to all before it.

    A file that is there is the oracle: the decisions of a run that goes on are compared with it one by one.

    Raises:
        SkillcError: the file cannot be opened.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = LineFile(path, "journal")
        self._known = _read(self._file)
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
        self._file.write({"chain": self._head, "decision": dict(decision)})
        self._file.sync()

    def close(self) -> None:
        """Closes the file, which stays."""
        self._file.close()


def _name(record: Record) -> str:
    """A decision, or the completed validation of an accepted one, as a user knows it."""
    if "completed" in record:
        return f"the validation after decision {record['completed']}"
    return f"decision {record.get('decision')}"


def _link_of(entry: Any, head: str) -> str | None:
    """The chain's next link, None where an entry is not what was chained to `head`."""
    try:
        link = _link(head, entry["decision"])
        return link if entry["chain"] == link else None
    except (KeyError, TypeError, ValueError):
        return None


def _read(file: LineFile) -> list[str]:
    """The chain of the file's whole lines; what a kill tore off or somebody changed is cut off, with all behind it."""
    chain: list[str] = []
    for offset, _, entry in file.whole_lines():
        link = _link_of(entry, chain[-1] if chain else _START)
        if link is None:
            file.cut(offset)
            break
        chain.append(link)
    return chain

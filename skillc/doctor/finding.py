"""What a check has found."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from pydantic import JsonValue

Level = Literal["ok", "note", "missing"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the doctor's report.

    Attributes:
        group: what it is about: `installed`, `models`, `cost`, `disk`, `memory`.
        level: `missing` is what a compile cannot do without; a `note` asks for nothing.
        what: the thing itself, in a word or two.
        detail: what was found.
        fix: the command or the change that mends it.
    """

    group: str
    level: Level
    what: str
    detail: str
    fix: str | None = None

    def as_json(self) -> dict[str, JsonValue]:
        """By name."""
        return {
            "group": self.group,
            "level": self.level,
            "what": self.what,
            "detail": self.detail,
            "fix": self.fix,
        }


def status_of(findings: Iterable[Finding]) -> int:
    """The exit status: 0 where nothing is missing, else 1."""
    return 1 if any(finding.level == "missing" for finding in findings) else 0

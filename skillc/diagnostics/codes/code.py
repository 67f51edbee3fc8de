"""One entry of the registry of diagnostic codes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Phase = Literal["check", "plan", "data", "compile"]
"""The first command that reports a code: `check`, `plan`, `check --data`, or one that calls models."""

_STAGES = ("syntax", "modules", "names", "types", "data", "gates", "models", "versions", "", "internal")


@dataclass(frozen=True, slots=True)
class Code:
    """A diagnostic code and its page, which `skillc explain` prints and the documentation contains.

    Attributes:
        number: three digits, the first is the stage. Never reused for another meaning.
        title: the problem in a few words, lower case.
        explanation: what is wrong, why it matters, how to fix it; markdown, one or a few paragraphs.
        bad: a program, or a part of one, that yields this code. Empty if no text of a program can; the explanation
            then gives the reason.
        good: the same program, fixed; present if `bad` is.
        files: files beside both programs, by path: data, imported files.
        fixed_files: files that differ beside the fixed program.
        found_by: the first command that reports it.
        settled_by: the last command that may report it, which then reports unused suppressions; `found_by` if None.
    """

    number: int
    title: str
    explanation: str
    bad: str = ""
    good: str = ""
    files: Mapping[str, str] = field(default_factory=dict)
    fixed_files: Mapping[str, str] = field(default_factory=dict)
    found_by: Phase = "check"
    settled_by: Phase | None = None

    @property
    def code(self) -> str:
        """The code as messages print it: `SK409`."""
        return f"SK{self.number:03}"

    @property
    def stage(self) -> str:
        """The stage that the first digit denotes."""
        return _STAGES[self.number // 100]

"""One entry of the registry of diagnostic codes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Phase = Literal["check", "plan", "data", "compile"]
"""What finds a mistake: `skillc check`; `skillc plan` and what begins with it, on the program's data; `skillc check
--data`; or only a verb that asks models."""


_STAGES = ("syntax", "modules", "names", "types", "data", "gates", "models", "versions", "", "internal")


@dataclass(frozen=True, slots=True)
class Code:
    """What `skillc explain` says about a code; also the text of its page in the documentation.

    Attributes:
        number: three digits, of which the first is the stage. Never reused for another meaning.
        title: the mistake in a few words, lower case.
        explanation: why it is one, and what to do; markdown, one or a few paragraphs.
        bad: a program or a part of one that yields this code. Empty where no text of a program can
            (a file that can't be read, what an earlier code always says first); the explanation says why.
        good: the same, mended; never empty where `bad` is given.
        files: what lies beside both programs, by path: data, used files.
        mended: files that are another beside the mended one.
        found_by: the first verb that finds it.
        settled_by: the last verb that may find it, which reports a suppression as unused; `found_by` if None.
    """

    number: int
    title: str
    explanation: str
    bad: str = ""
    good: str = ""
    files: Mapping[str, str] = field(default_factory=dict)
    mended: Mapping[str, str] = field(default_factory=dict)
    found_by: Phase = "check"
    settled_by: Phase | None = None

    @property
    def code(self) -> str:
        """The code as messages show it: `SK409`."""
        return f"SK{self.number:03}"

    @property
    def stage(self) -> str:
        """What the code is about: the first digit in a word."""
        return _STAGES[self.number // 100]

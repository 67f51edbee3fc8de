"""One entry of the registry of diagnostic codes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Phase = Literal["check", "plan", "data", "compile"]
"""What finds a mistake: `skillc check`; `skillc plan` and what begins with it, on the program's data; `skillc check
--data`; or only a verb that asks models."""


@dataclass(frozen=True, slots=True)
class Code:
    """What `skillc explain` says about a code; also the text of its page in the documentation.

    Attributes:
        code: `SK` and three digits; the first digit is the stage. Never reused for another meaning.
        stage: `syntax`, `modules`, `names`, `types`, `data`, `gates`, `models`, `versions` or `internal`.
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

    code: str
    stage: str
    title: str
    explanation: str
    bad: str = ""
    good: str = ""
    files: Mapping[str, str] = field(default_factory=dict)
    mended: Mapping[str, str] = field(default_factory=dict)
    found_by: Phase = "check"
    settled_by: Phase | None = None

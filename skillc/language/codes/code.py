"""One entry of the registry of diagnostic codes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Code:
    """What `skillc explain` says about a code; also the text of its page in the documentation.

    Attributes:
        code: `SK` and three digits; the first digit is the stage. Never reused for another meaning.
        stage: `syntax`, `modules`, `names`, `types`, `data`, `gates`, `models` or `internal`.
        title: the mistake in a few words, lower case.
        explanation: why it is one, and what to do; markdown, one or a few paragraphs.
        bad: a program or a part of one that yields this code. Empty where no text of a program can
            (a damaged file, a file that is missing).
        good: the same, mended; never empty where `bad` is given.
        files: what lies beside both programs, by path: data, used files.
        mended: files that are another beside the mended one.
    """

    code: str
    stage: str
    title: str
    explanation: str
    bad: str = ""
    good: str = ""
    files: Mapping[str, str] = field(default_factory=dict)
    mended: Mapping[str, str] = field(default_factory=dict)

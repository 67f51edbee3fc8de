"""Standard output and standard error where they are not what a program expects: closed, full, of a narrow encoding."""

from __future__ import annotations

import errno
import os
import sys

from skillc.errors import SkillcError

_FULL = (errno.ENOSPC, errno.EDQUOT)


def prepare() -> None:
    """What is closed leads nowhere, and what an encoding lacks is written as an escape."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_WRONLY), "w", encoding="utf-8"))
        elif getattr(stream, "errors", None) == "strict":
            stream.reconfigure(errors="backslashreplace")


def colored() -> bool:
    """Whether standard output is a terminal whose user wants colours."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR")


def full(problem: OSError) -> SkillcError | None:
    """The error that a user reads where nothing more can be written; None for any other problem."""
    if problem.errno not in _FULL:
        return None
    reason = (problem.strerror or str(problem)).lower()
    return SkillcError(f"the output can't be written: {reason}", hint="make room, or write to another disk")


def abandon() -> None:
    """Nothing more is said, not even what is still to be written at exit."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            os.dup2(nowhere, stream.fileno())

"""Errors for users. The command line prints them as a message, never as a traceback."""

from __future__ import annotations


class SkillcError(Exception):
    """An error that the user can fix; `str()` is the whole message, `hint` the fix if there is one.

    `status` is the exit status of the command line.
    """

    status = 2

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

"""Codes SK9xx: mistakes of skillc itself."""

from __future__ import annotations

from skillc.diagnostics.codes.code import Code

CODES: tuple[Code, ...] = (
    Code(
        "SK901",
        "internal",
        "the formatter would have changed the program",
        "Before `skillc fmt` writes a file it proves that the result is the same program with the same "
        "comments, and that formatting it once more changes nothing. Here it did not come out so. This is a "
        "bug in skillc and none of yours: the file is as it was. Please report it with the statement that the "
        "message points at; until it is mended, every other verb works with the file as it stands.",
    ),
)

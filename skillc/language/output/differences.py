"""What a change does to a text, as a unified diff."""

from __future__ import annotations

import difflib


def difference(name: str, before: str, after: str) -> str:
    """A unified diff of two texts of a file; empty where they are the same."""
    lines = difflib.unified_diff(_lines(before), _lines(after), name, name)
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)


def _lines(text: str) -> list[str]:
    """Lines with their line feed. `splitlines` would also break at characters that end no line of a program."""
    parts = text.split("\n")
    return [f"{part}\n" for part in parts[:-1]] + ([parts[-1]] if parts[-1] else [])

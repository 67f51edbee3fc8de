"""Phrasings and filler from text files: sections of templates, with alternatives in square brackets."""

from __future__ import annotations

import random
import re
from functools import cache
from pathlib import Path

HERE = Path(__file__).resolve().parent
_CHOICE = re.compile(r"\[([^\[\]]*)\]")


@cache
def sections(path: Path) -> dict[str, tuple[str, ...]]:
    """The lines of each section of a file."""
    found: dict[str, list[str]] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        heading = re.fullmatch(r"\[(\w+)\]", line.strip())
        if heading:
            found[heading[1]] = []
        elif line.strip() and not line.startswith("#"):
            found[next(reversed(found))].append(line.strip())
    return {name: tuple(lines) for name, lines in found.items()}


def expand(template: str, chance: random.Random) -> str:
    """A template with one of each of its alternatives."""
    chosen = _CHOICE.sub(lambda found: chance.choice(found[1].split("|")), template)
    return re.sub(r" +([,.;:?!])", r"\1", re.sub(r"  +", " ", chosen)).strip()


def fill(template: str, values: dict[str, str]) -> str:
    """A template with its placeholders filled; what has no value stays."""
    return re.sub(r"\{(\w+)\}", lambda found: values.get(found[1], found[0]), template)

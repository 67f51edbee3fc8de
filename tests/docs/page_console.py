"""Console blocks: commands behind `$ `, and under each what it prints.

`...` stands for any text within a line, and alone on a line for any number of lines. A command that ends with another
status than 0 is followed by `$ echo $?`, so that the reader sees it too.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_DOTS = "..."


@dataclass(frozen=True, slots=True)
class Typed:
    """A command and what the page says that it prints."""

    command: str
    shown: tuple[str, ...]


def typed_in(text: str) -> list[Typed]:
    """The commands of a block. A line that begins with `> ` goes on with the command before it.

    Raises:
        ValueError: it does not begin with a command.
    """
    found: list[tuple[list[str], list[str]]] = []
    for line in text.splitlines():
        if line.startswith("$ "):
            found.append(([line[2:]], []))
        elif not found:
            raise ValueError(f"a console block begins with `$ `, not with `{line}`")
        elif line.startswith("> ") and not found[-1][1]:
            found[-1][0].append(line[2:])
        else:
            found[-1][1].append(line.rstrip())
    return [Typed("\n".join(command), tuple(_trimmed(shown))) for command, shown in found]


def written(typed: list[Typed]) -> str:
    """A block as a page holds it."""
    lines = []
    for each in typed:
        first, *more = each.command.splitlines()
        lines += [f"$ {first}", *(f"> {line}" for line in more), *each.shown]
    return "\n".join(lines) + "\n"


def lines_of(output: str) -> list[str]:
    """What a command printed, as a page would show it: no blanks at the ends of lines, no empty lines around."""
    return _trimmed([line.rstrip() for line in output.splitlines()])


def matches(shown: tuple[str, ...], printed: list[str]) -> bool:
    """Whether the output is what the page shows."""
    pattern = "".join(_pattern(line) for line in shown)
    return re.fullmatch(pattern, "".join(f"{line}\n" for line in printed)) is not None


def renewed(shown: tuple[str, ...], printed: list[str]) -> tuple[str, ...]:
    """The new output, with as many lines before and after the first gap as the page showed."""
    if matches(shown, printed):
        return shown
    if _DOTS not in shown:
        return tuple(printed)
    before = shown.index(_DOTS)
    after = len(shown) - before - 1
    if before + after >= len(printed):
        return tuple(printed)
    return (*printed[:before], _DOTS, *printed[len(printed) - after :])


def _pattern(line: str) -> str:
    if line == _DOTS:
        return "(?:.*\n)*"
    return ".*".join(re.escape(part) for part in line.split(_DOTS)) + "\n"


def _trimmed(lines: list[str]) -> list[str]:
    filled = [i for i, line in enumerate(lines) if line]
    return lines[filled[0] : filled[-1] + 1] if filled else []

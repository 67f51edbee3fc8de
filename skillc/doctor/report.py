"""Findings, and their output as text and JSON."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from itertools import groupby
from typing import Literal

from pydantic import JsonValue
from rich.text import Text

from skillc.dataclass import dataclass
from skillc.text import counted

Level = Literal["ok", "note", "missing"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the doctor's report.

    Attributes:
        group: the topic: `installed`, `sandbox`, `models`, `cost`, `disk`, `memory`.
        level: `missing` blocks a compile; a `note` asks for nothing.
        what: the subject, in a word or two.
        detail: the observation.
        fix: the command or the change that fixes it.
    """

    group: str
    level: Level
    what: str
    detail: str
    fix: str | None = None


def status_of(findings: Iterable[Finding]) -> int:
    """Return the exit status: 0 if nothing is missing, else 1."""
    return 1 if any(finding.level == "missing" for finding in findings) else 0


_STYLE: dict[Level, str] = {"ok": "green", "note": "yellow", "missing": "bold red"}
_LEVEL = 9
_WIDEST_NAME, _LEAST_DETAIL = 24, 32
_COMMAND = re.compile(r"(?:env|export|hf|pip|python3?|skillc|chmod) \S|/\S+ ")


def as_text(findings: Sequence[Finding], width: int) -> Text:
    """Return a block for each group, and a last line with the number of missing things; print it without wrapping.

    Prose is wrapped at blanks. A command has a separate line of any length, so that it can be copied.
    """
    text = Text()
    for group, found in groupby(findings, key=lambda finding: finding.group):
        text.append(f"{group}\n", style="bold")
        block = list(found)
        names = max((len(each.what) for each in block if len(each.what) <= _WIDEST_NAME), default=0)
        beside = 2 + _LEVEL + names + 2
        for finding in block:
            text.append(f"  {finding.level:<{_LEVEL}}", style=_STYLE[finding.level])
            if len(finding.what) <= names and width - beside >= _LEAST_DETAIL:
                text.append(f"{finding.what:<{names}}  ")
                indent = beside
            else:
                indent = 2 + _LEVEL
                text.append(f"{finding.what}\n{' ' * indent}")
            text.append(_wrapped(finding.detail, indent, width).lstrip() + "\n")
            for part, is_command in _parts(finding.fix) if finding.fix and finding.level != "ok" else ():
                line = f"{' ' * (indent + 2)}{part}" if is_command else _wrapped(part, indent, width)
                text.append(f"{line}\n", style="cyan")
        text.append("\n")
    missing = sum(finding.level == "missing" for finding in findings)
    last = f"{counted(missing, 'thing is', 'things are')} missing" if missing else "nothing is missing"
    return text.append(last, style=_STYLE["missing" if missing else "ok"])


def as_json(findings: Sequence[Finding]) -> dict[str, JsonValue]:
    """Return all findings as JSON, and whether nothing is missing."""
    return {
        "format_version": 1,
        "complete": status_of(findings) == 0,
        "findings": [asdict(finding) for finding in findings],
    }


def _parts(fix: str) -> Iterator[tuple[str, bool]]:
    """Split a fix into prose and commands, in order; True for a command."""
    if "`" not in fix and _COMMAND.match(fix):
        yield fix, True
        return
    prose = ""
    for number, piece in enumerate(fix.split("`")):
        if number % 2 == 0:
            prose += piece
        elif _COMMAND.match(piece):
            if prose.strip(" ;,:"):
                yield f"{prose.strip(' ;,:')}:", False
            yield piece, True
            prose = ""
        else:
            prose += f"`{piece}`"
    if prose.strip(" ;,"):
        yield prose.strip(" ;,"), False


def _wrapped(prose: str, indent: int, width: int) -> str:
    widest, margin = max(width, indent + _LEAST_DETAIL), " " * indent
    wrapper = textwrap.TextWrapper(widest, margin, margin, break_long_words=False, break_on_hyphens=False)
    return "\n".join(line for part in prose.split("\n") for line in wrapper.wrap(part) or [""])

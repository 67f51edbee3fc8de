"""The findings for a terminal, and as JSON."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby

from pydantic import JsonValue
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from skillc.doctor.finding import Finding, Level, status_of

_STYLE: dict[Level, str] = {"ok": "green", "note": "yellow", "missing": "bold red"}


def as_text(findings: Sequence[Finding]) -> RenderableType:
    """A table for each group, and a last line that says how many things are missing."""
    parts: list[RenderableType] = []
    for group, found in groupby(findings, key=lambda finding: finding.group):
        parts += [Text(group, style="bold"), _table(found), Text()]
    missing = sum(finding.level == "missing" for finding in findings)
    last = f"{missing} thing{'s are' if missing != 1 else ' is'} missing" if missing else "nothing is missing"
    return Group(*parts, Text(last, style=_STYLE["missing" if missing else "ok"]))


def as_json(findings: Sequence[Finding]) -> dict[str, JsonValue]:
    """All findings, and whether a compile lacks nothing."""
    return {
        "format_version": 1,
        "complete": status_of(findings) == 0,
        "findings": [finding.as_json() for finding in findings],
    }


def _table(findings: Iterable[Finding]) -> Table:
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    for style in ("", "", ""):
        table.add_column(style=style, overflow="fold")
    for finding in findings:
        detail = Text(finding.detail)
        if finding.fix and finding.level != "ok":
            detail.append(f"\n{finding.fix}", style="cyan")
        table.add_row(Text(f"  {finding.level}", style=_STYLE[finding.level]), Text(finding.what), detail)
    return table

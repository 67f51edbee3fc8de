"""What `skillc diff` prints, and the JSON of both verbs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby

from pydantic import JsonValue

from skillc.diagnostics.formats import as_json as diagnostics_json
from skillc.versions.change import Change
from skillc.versions.findings import Compared
from skillc.versions.rules import BY_CODE

FORMAT_VERSION = 1
_COLORS = {"+": "32", "-": "31", "~": "33"}
_BEARINGS = {"looser": "looser", "stricter": "stricter", "unordered": "neither looser nor stricter", "": ""}


def as_text(compared: Sequence[Compared], old: str, new: str, *, color: bool = False) -> str:
    """All programs, one after the other, without a newline at the end."""
    return "\n\n".join("\n".join(_program(each, old, new, color)) for each in compared)


def _program(compared: Compared, old: str, new: str, color: bool) -> Iterable[str]:
    yield f"{compared.program}: {old} → {new}"
    if compared.state != "compared":
        yield f"  the program is {compared.state}"
        return
    if not compared.changes:
        yield "  no change in meaning"
    for group, changes in groupby(compared.changes, key=lambda change: change.group):
        yield group
        for change in changes:
            yield from _lines(change, color)


def _lines(change: Change, color: bool) -> Iterable[str]:
    head = f"  {_paint(change.sign, change.sign, color)} {change.subject}"
    said = " → ".join(text for text in (change.before, change.after) if text)
    if not said and not change.lines:
        said = change.message
    bearing = _BEARINGS[change.bearing]
    yield head + (f"   {said}" if said else "") + (f"   ({bearing})" if bearing else "")
    for line in change.lines:
        yield "      " + _paint(_printable(line), line[:1], color)


def _printable(line: str) -> str:
    return "".join(c if c.isprintable() or c == "\t" else "?" for c in line)


def _paint(text: str, sign: str, color: bool) -> str:
    return f"\x1b[{_COLORS[sign]}m{text}\x1b[0m" if color and sign in _COLORS else text


def as_json(compared: Sequence[Compared], old: str, new: str) -> dict[str, JsonValue]:
    """Every change and every finding of each program."""
    return {
        "format_version": FORMAT_VERSION,
        "old": old,
        "new": new,
        "weaker": any(each.weaker for each in compared),
        "programs": [_object(each) for each in compared],
    }


def _object(compared: Compared) -> JsonValue:
    found = diagnostics_json(compared.findings)["diagnostics"]
    return {
        "program": compared.program,
        "state": compared.state,
        "changes": [_change(change) for change in compared.changes],
        "findings": [{"rule": BY_CODE[each["code"]].name, **each} for each in found],
    }


def _change(change: Change) -> JsonValue:
    return {
        "group": change.group,
        "kind": {"+": "added", "-": "removed", "~": "changed"}[change.sign],
        "subject": change.subject,
        "before": change.before,
        "after": change.after,
        "bearing": change.bearing or None,
        "rule": change.rule,
        "lines": list(change.lines),
    }

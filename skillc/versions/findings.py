"""Compare two versions of programs, and report the changes for `skillc diff` and `skillc breaking`."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Sequence
from itertools import groupby
from pathlib import Path

from pydantic import JsonValue

from skillc.dataclass import dataclass
from skillc.diagnostics.diagnostic import Diagnostic, Label, Severity
from skillc.diagnostics.formats import as_json as diagnostics_json
from skillc.errors import SkillcError
from skillc.syntax.source import Source, Span
from skillc.versions.change import BY_CODE, RULES, Change, label_of
from skillc.versions.compare import changes_between
from skillc.versions.version import DiskTree, Version, VersionPair, pairs


@dataclass(frozen=True, slots=True)
class ProgramDiff:
    """One program in both versions.

    Attributes:
        state: `compared`, or `new` or `removed` if it exists in one version only.
        changes: all changes in meaning.
        findings: the changes with a rule, as diagnostics.
    """

    program: str
    state: str
    changes: tuple[Change, ...] = ()
    findings: tuple[Diagnostic, ...] = ()

    @property
    def weaker(self) -> bool:
        """Whether the program got weaker."""
        return any(found.severity is Severity.ERROR for found in self.findings)


def compare_programs(paths: Sequence[Path], against: str) -> list[ProgramDiff]:
    """Pair each program with its other version and compare them.

    Raises:
        SkillcError: as `pairs`, or a path is a library.
    """
    found: list[ProgramDiff] = []
    for path in paths:
        with pairs(path, against) as programs:
            for pair in programs:
                if pair.old is None and pair.new is None:
                    raise SkillcError(
                        f"`{pair.shown}` is a library, which has no plan to compare",
                        hint="compare the programs that use it, or the whole folder",
                    )
                found.append(_compared(pair, against))
    return found


def _compared(pair: VersionPair, against: str) -> ProgramDiff:
    if pair.old is None:
        return ProgramDiff(pair.shown, "new")
    if pair.new is None:
        rule, label = RULES["program-removed"], Label(Source(pair.shown, ""), Span(0, 0))
        message = f"the program of `{pair.old.plan.skill.name}` is gone: `{pair.shown}` existed at `{against}`"
        return ProgramDiff(pair.shown, "removed", (), (Diagnostic(rule.code, message, label, rule.severity),))
    changes = changes_between(pair.old, pair.new)
    findings = tuple(_finding(change, pair.old, pair.new) for change in changes if change.rule is not None)
    return ProgramDiff(pair.shown, "compared", changes, findings)


def _finding(change: Change, old: Version, new: Version) -> Diagnostic:
    rule = RULES[change.rule or ""]
    earlier = label_of(old.checked, change.anchor, f"at `{old.files.label}`")
    secondary = () if isinstance(old.files, DiskTree) else (_named(earlier, old),)
    return Diagnostic(
        rule.code, change.message, label_of(new.checked, change.anchor), rule.severity, secondary, change.hint
    )


def _named(label: Label, version: Version) -> Label:
    path = Path(label.source.name)
    if not path.is_absolute() or not path.is_relative_to(version.root):
        return label
    inside = posixpath.join(version.folder, path.relative_to(version.root).as_posix())
    name = f"{version.files.label}:{inside}"
    return Label(Source(name, label.source.text), label.span, label.text)


_COLORS = {"+": "32", "-": "31", "~": "33"}
_BEARINGS = {"unordered": "neither looser nor stricter"}


def diff_text(compared: Sequence[ProgramDiff], old: str, new: str, *, color: bool = False) -> str:
    """Render all programs, without a newline at the end."""
    return "\n\n".join("\n".join(_program(each, old, new, color)) for each in compared)


def _program(compared: ProgramDiff, old: str, new: str, color: bool) -> Iterable[str]:
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
    parts = [f"  {_paint(change.sign, change.sign, color)} {change.subject}"]
    values = " → ".join(text for text in (change.before, change.after) if text)
    if values or not change.lines:
        parts.append(values or change.message)
    if change.bearing:
        parts.append(f"({_BEARINGS.get(change.bearing, change.bearing)})")
    yield "   ".join(part for part in parts if part)
    for line in change.lines:
        printable = "".join(c if c.isprintable() or c == "\t" else "?" for c in line)
        yield "      " + _paint(printable, line[:1], color)


def _paint(text: str, sign: str, color: bool) -> str:
    return f"\x1b[{_COLORS[sign]}m{text}\x1b[0m" if color and sign in _COLORS else text


def diff_json(compared: Sequence[ProgramDiff], old: str, new: str) -> dict[str, JsonValue]:
    """Return the object that `diff --json` and `breaking --json` print."""
    return {
        "format_version": 1,
        "old": old,
        "new": new,
        "weaker": any(each.weaker for each in compared),
        "programs": [_object(each) for each in compared],
    }


def _object(compared: ProgramDiff) -> JsonValue:
    found = diagnostics_json(compared.findings)["diagnostics"]
    return {
        "program": compared.program,
        "state": compared.state,
        "changes": [_change_json(change) for change in compared.changes],
        "findings": [{"rule": BY_CODE[each["code"]].name, **each} for each in found],
    }


def _change_json(change: Change) -> JsonValue:
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

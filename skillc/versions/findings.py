"""What got weaker, as diagnostics: the changes that a rule has something to say about."""

from __future__ import annotations

import posixpath
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from skillc.diagnostics.diagnostic import Diagnostic, Label, Severity
from skillc.errors import SkillcError
from skillc.syntax.source import Source, Span
from skillc.versions.against import Pair, pairs
from skillc.versions.change import Change
from skillc.versions.compare import changes_between
from skillc.versions.places import label_of
from skillc.versions.rules import RULES
from skillc.versions.version import OnDisk, Version


@dataclass(frozen=True, slots=True)
class Compared:
    """One program in both versions.

    Attributes:
        state: `compared`, or `new` or `removed` where it stands in one place only.
        changes: all that changed in meaning.
        findings: those of them that a rule speaks of.
    """

    program: str
    state: str
    changes: tuple[Change, ...] = ()
    findings: tuple[Diagnostic, ...] = ()

    @property
    def weaker(self) -> bool:
        """Whether anything got weaker."""
        return any(found.severity is Severity.ERROR for found in self.findings)


def compare(paths: Sequence[Path], against: str) -> list[Compared]:
    """Each program beside its other version.

    Raises:
        SkillcError: as `against.pairs`, or a path is a library.
    """
    found: list[Compared] = []
    for path in paths:
        with pairs(path, against) as programs:
            for pair in programs:
                if pair.old is None and pair.new is None:
                    raise SkillcError(
                        f"`{pair.shown}` only declares what others use, so it has no plan to compare",
                        hint="compare the programs that use it, or the folder: all of it is compared then",
                    )
                found.append(_compared(pair, against))
    return found


def _compared(pair: Pair, against: str) -> Compared:
    if pair.old is None:
        return Compared(pair.shown, "new")
    if pair.new is None:
        return Compared(pair.shown, "removed", (), (_removed(pair, pair.old, against),))
    changes = changes_between(pair.old, pair.new)
    findings = tuple(_finding(change, pair.old, pair.new) for change in changes if change.rule is not None)
    return Compared(pair.shown, "compared", changes, findings)


def _removed(pair: Pair, old: Version, against: str) -> Diagnostic:
    rule = RULES["program-removed"]
    message = f"the program of `{old.plan.skill.name}` is gone: `{pair.shown}` stood at `{against}`"
    return Diagnostic(rule.code, message, Label(Source(pair.shown, ""), Span(0, 0)), rule.severity)


def _finding(change: Change, old: Version, new: Version) -> Diagnostic:
    rule = RULES[change.rule or ""]
    earlier = label_of(old.checked, change.place, f"at `{old.files.label}`")
    # What is gone has its place in the old text alone; a finding still needs one in the new.
    secondary = () if isinstance(old.files, OnDisk) else (_named(earlier, old),)
    return Diagnostic(
        rule.code, change.message, label_of(new.checked, change.place), rule.severity, secondary, change.hint
    )


def _named(label: Label, version: Version) -> Label:
    path = Path(label.source.name)
    if not path.is_absolute() or not path.is_relative_to(version.root):
        return label
    inside = posixpath.join(version.folder, path.relative_to(version.root).as_posix())
    name = f"{version.files.label}:{inside}"
    return Label(Source(name, label.source.text), label.span, label.text)

"""One change between two versions of a program: what, where the program says it, and its rule in `skillc breaking`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from skillc.diagnostics.diagnostic import Label, Severity
from skillc.language.checked import Checked
from skillc.syntax.source import Source, Span

Group = Literal["task", "skill", "data", "metrics", "gates", "budget", "models", "optimize"]
GROUPS: tuple[Group, ...] = ("task", "skill", "data", "metrics", "gates", "budget", "models", "optimize")
Bearing = Literal["looser", "stricter", "unordered", ""]


@dataclass(frozen=True, slots=True)
class Anchor:
    """A place in a program: a declaration by kind and name, and a setting in it."""

    kind: str = ""
    name: str | None = None
    setting: str | None = None


@dataclass(frozen=True, slots=True)
class Change:
    """A difference in meaning.

    Attributes:
        subject: what changed, as a program says it: `gate better`, `cost`.
        before: how it was, None where it is new.
        after: how it is, None where it is gone.
        bearing: whether the program asks less or more of a skill than it did; `unordered` where that cannot be told.
        rule: of `skillc breaking`, where the change is one of its business.
        message: what that rule has to say of it.
        hint: what to do then.
        lines: a text line by line, each with `-`, `+` or a blank before it.
    """

    group: Group
    subject: str
    before: str | None
    after: str | None
    bearing: Bearing = ""
    rule: str | None = None
    message: str = ""
    hint: str | None = None
    lines: tuple[str, ...] = ()
    place: Anchor = Anchor()

    @property
    def sign(self) -> str:
        """`+`, `-` or `~`."""
        return "+" if self.before is None else "-" if self.after is None else "~"


def label_of(checked: Checked, place: Anchor, text: str = "") -> Label:
    """Label the declaration or the setting at a place; the program's first line if it has neither."""
    found = checked.place_of(place.kind, place.name, place.setting)
    if found is None:
        source = checked.program.source
        return Label(source, first_line(source), text)
    return Label(*found, text)


def first_line(source: Source) -> Span:
    """Return the first line that is not blank or a comment."""
    for number in range(1, len(source.line_starts) + 1):
        line = source.line(number)
        if line.strip() and not line.lstrip().startswith("#"):
            start = source.line_starts[number - 1]
            return Span(start, start + len(line))
    return Span(0, 0)


@dataclass(frozen=True, slots=True)
class BreakingRule:
    """A rule, and the code of its page."""

    name: str
    code: str
    severity: Severity = Severity.ERROR


_WARNING, _NOTE = Severity.WARNING, Severity.NOTE

_ALL = (
    BreakingRule("gate-removed", "SK701"),
    BreakingRule("gate-loosened", "SK702"),
    BreakingRule("gate-changed", "SK703"),
    BreakingRule("require-removed", "SK704"),
    BreakingRule("require-loosened", "SK705"),
    BreakingRule("require-changed", "SK706"),
    BreakingRule("accept-always", "SK707"),
    BreakingRule("samples-lowered", "SK708"),
    BreakingRule("budget-raised", "SK709"),
    BreakingRule("limit-raised", "SK710"),
    BreakingRule("sees-widened", "SK711"),
    BreakingRule("goal-changed", "SK712"),
    BreakingRule("metric-redefined", "SK713"),
    BreakingRule("test-split-changed", "SK714"),
    BreakingRule("group-dropped", "SK715"),
    BreakingRule("output-removed", "SK716"),
    BreakingRule("output-changed", "SK717"),
    BreakingRule("labels-removed", "SK718"),
    BreakingRule("input-added", "SK719"),
    BreakingRule("input-changed", "SK720"),
    BreakingRule("frozen-changed", "SK721"),
    BreakingRule("section-thawed", "SK722"),
    BreakingRule("program-removed", "SK723"),
    BreakingRule("data-not-compared", "SK731", _WARNING),
    BreakingRule("labels-added", "SK732", _NOTE),
    BreakingRule("data-changed", "SK733", _NOTE),
    BreakingRule("model-changed", "SK734", _NOTE),
)

RULES: Mapping[str, BreakingRule] = MappingProxyType({rule.name: rule for rule in _ALL})
BY_CODE: Mapping[str, BreakingRule] = MappingProxyType({rule.code: rule for rule in _ALL})

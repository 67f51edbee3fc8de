"""One change between two versions of a program, and the rules of `skillc breaking`."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal

from skillc.dataclass import dataclass
from skillc.diagnostics.diagnostic import Label, Severity
from skillc.language.checked import Checked
from skillc.syntax.source import Source, Span

Group = Literal["task", "skill", "data", "metrics", "gates", "budget", "models", "optimize"]
GROUPS: tuple[Group, ...] = ("task", "skill", "data", "metrics", "gates", "budget", "models", "optimize")
Bearing = Literal["looser", "stricter", "unordered", ""]


@dataclass(frozen=True, slots=True)
class Anchor:
    """The declaration, or the setting in it, that a change belongs to."""

    kind: str = ""
    name: str | None = None
    setting: str | None = None


@dataclass(frozen=True, slots=True)
class Change:
    """A difference in meaning.

    Attributes:
        subject: the changed part, as a program writes it: `gate better`, `cost`.
        before: the old value, None for an addition.
        after: the new value, None for a removal.
        rule: of `skillc breaking`; None if the change breaks nothing.
        message: of the rule.
        hint: of the rule.
        stated: the bearing, unless it is that of the rule.
        lines: a text diff, each line with `-`, `+` or a blank before it.
    """

    group: Group
    subject: str
    before: str | None
    after: str | None
    anchor: Anchor = Anchor()
    rule: str | None = None
    message: str = ""
    hint: str | None = None
    stated: Bearing = ""
    lines: tuple[str, ...] = ()

    @property
    def bearing(self) -> Bearing:
        """Whether the program requires less or more of a skill; `unordered` if neither can be proved."""
        return self.stated or (RULES[self.rule].bearing if self.rule else "")

    @property
    def sign(self) -> str:
        """`+`, `-` or `~`."""
        return "+" if self.before is None else "-" if self.after is None else "~"


def label_of(checked: Checked, anchor: Anchor, text: str = "") -> Label:
    """Label the declaration or setting of an anchor; without one, the program's first line."""
    found = checked.place_of(anchor.kind, anchor.name, anchor.setting)
    if found is None:
        source = checked.program.source
        return Label(source, first_line(source), text)
    return Label(*found, text)


def first_line(source: Source) -> Span:
    """Return the first line that is not blank or a comment."""
    for number, start in enumerate(source.line_starts, 1):
        line = source.line(number)
        if line.strip() and not line.lstrip().startswith("#"):
            return Span(start, start + len(line))
    return Span(0, 0)


@dataclass(frozen=True, slots=True)
class BreakingRule:
    """A rule of `skillc breaking`, with its diagnostic code and the bearing of its changes."""

    name: str
    code: str
    bearing: Bearing = ""
    severity: Severity = Severity.ERROR


_ALL = (
    BreakingRule("gate-removed", "SK701", "looser"),
    BreakingRule("gate-loosened", "SK702", "looser"),
    BreakingRule("gate-changed", "SK703", "unordered"),
    BreakingRule("require-removed", "SK704", "looser"),
    BreakingRule("require-loosened", "SK705", "looser"),
    BreakingRule("require-changed", "SK706", "unordered"),
    BreakingRule("accept-always", "SK707", "looser"),
    BreakingRule("samples-lowered", "SK708", "looser"),
    BreakingRule("budget-raised", "SK709", "looser"),
    BreakingRule("limit-raised", "SK710", "looser"),
    BreakingRule("sees-widened", "SK711", "looser"),
    BreakingRule("goal-changed", "SK712", "unordered"),
    BreakingRule("metric-redefined", "SK713", "unordered"),
    BreakingRule("test-split-changed", "SK714", "unordered"),
    BreakingRule("group-dropped", "SK715", "looser"),
    BreakingRule("output-removed", "SK716"),
    BreakingRule("output-changed", "SK717"),
    BreakingRule("labels-removed", "SK718"),
    BreakingRule("input-added", "SK719"),
    BreakingRule("input-changed", "SK720"),
    BreakingRule("frozen-changed", "SK721"),
    BreakingRule("section-thawed", "SK722", "looser"),
    BreakingRule("program-removed", "SK723"),
    BreakingRule("data-not-compared", "SK731", "unordered", Severity.WARNING),
    BreakingRule("labels-added", "SK732", "", Severity.NOTE),
    BreakingRule("data-changed", "SK733", "", Severity.NOTE),
    BreakingRule("model-changed", "SK734", "", Severity.NOTE),
)

RULES: Mapping[str, BreakingRule] = MappingProxyType({rule.name: rule for rule in _ALL})
BY_CODE: Mapping[str, BreakingRule] = MappingProxyType({rule.code: rule for rule in _ALL})

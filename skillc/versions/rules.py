"""What `skillc breaking` reports, by name. An error is what got weaker; the others are only told."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from skillc.diagnostics.diagnostic import Severity


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule, and the code of its page."""

    name: str
    code: str
    severity: Severity = Severity.ERROR


_WARNING, _NOTE = Severity.WARNING, Severity.NOTE

_ALL = (
    Rule("gate-removed", "SK701"),
    Rule("gate-loosened", "SK702"),
    Rule("gate-changed", "SK703"),
    Rule("require-removed", "SK704"),
    Rule("require-loosened", "SK705"),
    Rule("require-changed", "SK706"),
    Rule("accept-always", "SK707"),
    Rule("samples-lowered", "SK708"),
    Rule("budget-raised", "SK709"),
    Rule("limit-raised", "SK710"),
    Rule("sees-widened", "SK711"),
    Rule("goal-changed", "SK712"),
    Rule("metric-redefined", "SK713"),
    Rule("test-split-changed", "SK714"),
    Rule("group-dropped", "SK715"),
    Rule("output-removed", "SK716"),
    Rule("output-changed", "SK717"),
    Rule("labels-removed", "SK718"),
    Rule("input-added", "SK719"),
    Rule("input-changed", "SK720"),
    Rule("frozen-changed", "SK721"),
    Rule("section-thawed", "SK722"),
    Rule("program-removed", "SK723"),
    Rule("data-not-compared", "SK731", _WARNING),
    Rule("labels-added", "SK732", _NOTE),
    Rule("data-changed", "SK733", _NOTE),
    Rule("model-changed", "SK734", _NOTE),
)

RULES: Mapping[str, Rule] = MappingProxyType({rule.name: rule for rule in _ALL})
BY_CODE: Mapping[str, Rule] = MappingProxyType({rule.code: rule for rule in _ALL})

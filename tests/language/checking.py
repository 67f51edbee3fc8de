"""Programs for the tests of the checker."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from skillc.diagnostics.diagnostic import Severity
from skillc.frontend import check
from skillc.language.checked import Checked, CheckedGate, CheckedMetric, Entity
from skillc.language.modules import Loader
from skillc.syntax.source import Source

PROGRAM = """language 1
{use}
task {{ input ticket: text; input urgent: bool; output team: "billing" | "shipping"; output reply: text }}
skill route {{ about = "Route a ticket."; trainable section rules {{ limit = 500 tokens }} }}
model target = "rulebook/v1"
model optimizer = target
data {{ source = "tickets.jsonl"{fields} }}
budget {{ epochs = 4 }}
{more}
goal correct = {goal}
gate better = candidate.correct > initial.correct
"""
FIELDS = {"product": "text", "worth": "number"}


def program(more: str = "", *, goal: str = "exact_match(team)", use: str = "") -> str:
    """A program with more statements, and with the fields of the data that they speak of."""
    fields = "".join(f"; field {name}: {kind}" for name, kind in FIELDS.items() if name in more + goal)
    return PROGRAM.format(more=more, goal=goal, use=use, fields=fields)


def run(text: str, root: Path | None = None, sections: Mapping[str, str] | None = None) -> Checked:
    """The checked program."""
    reader = None if sections is None else lambda _: sections
    return check(Source("main.skill", text), Loader(root or Path("."), reader))


def clean(text: str, root: Path | None = None, sections: Mapping[str, str] | None = None) -> Checked:
    """The checked program, which has neither errors nor warnings, but for what only a later version can compile."""
    checked = run(text, root, sections)
    assert [d for d in checked.diagnostics if d.severity is not Severity.NOTE and d.code != "SK605"] == []
    return checked


def codes(text: str, root: Path | None = None) -> list[str]:
    """The codes of its errors."""
    return [d.code for d in run(text, root).diagnostics if d.severity is Severity.ERROR]


def metric(checked: Checked, name: str) -> CheckedMetric:
    """A metric by name."""
    return next(m for m in checked.metrics if m.name == name)


def gate(checked: Checked, name: str) -> CheckedGate:
    """A gate by name."""
    return next(g for g in checked.gates if g.name == name)


def entity(checked: Checked, kind: str, name: str | None = None) -> Entity:
    """An entity by kind and name."""
    return next(e for e in checked.entities if e.kind == kind and e.name == name)

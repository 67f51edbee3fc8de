"""One mistake is one error, and two mistakes in two places are both told: programs that are broken once and twice."""

# ruff: noqa: E501 -- programs on lines as people write them

from __future__ import annotations

from itertools import combinations

import pytest
from checking import run

from skillc.diagnostics.diagnostic import Severity

PROGRAM = """language 1
use std.gates

task {
  input  ticket: text { about = "as written" }
  output team: "billing" | "shipping"
  output reply: text { limit = 200 tokens }
}
skill route_tickets {
  about = "Route a ticket."
  frozen section role = \"\"\"
    You route tickets.
  \"\"\"
  trainable section rules { limit = 800 tokens }
  slow section guidance { limit = 300 tokens }
}
model target = "rulebook/v1" { temperature = 0 }
model optimizer = "rulebook/v1"
data { source = "tickets.jsonl"; field customer: text; field product: text; split = 2 : 1 : 2; group = customer; seed = 7 }
metric right = exact_match(team)
metric brief = clamp(1 - tokens(reply) / 20 tokens, 0, 1)
goal score = 0.9 * right + 0.1 * brief
optimize { batch = 40; edits = cosine(4, 2) }
budget { epochs = 4; patience = 8 steps }
gate better = candidate.score > incumbent.score
gate safe = regressed(right, by = product) <= 10%
gate compact = tokens(candidate) <= 900 tokens
gate steady = change(candidate) <= 30%
gate sure = gates.sure(score)
require able = initial.right >= 10%
"""

MISTAKES = {
    "goal function": ("goal score = 0.9 * right", "goal score = 0.9 * rihgt"),
    "goal unbounded": ("goal score = 0.9 * right + 0.1 * brief", "goal score = tokens(ticket)"),
    "goal removed": ("goal score = 0.9 * right + 0.1 * brief\n", ""),
    "goal syntax": ("goal score = 0.9 * right + 0.1 * brief", "goal score = 0.9 * (right + 0.1 * brief"),
    "goal no value": ("goal score = 0.9 * right + 0.1 * brief", "goal score"),
    "gate field": ("by = product", "by = prodct"),
    "metric function": ("exact_match(team)", "exact_mtch(team)"),
    "metric field": ("tokens(reply)", "tokens(rply)"),
    "metric removed": ("metric right = exact_match(team)\n", ""),
    "section word": ("trainable section rules", "section rules"),
    "setting": ("{ limit = 300 tokens }", "{ limt = 300 tokens }"),
    "setting unit": ("limit = 800 tokens", "limit = 800"),
    "unknown unit": ("limit = 800 tokens", "limit = 800 tokns"),
    "unclosed text": ('    You route tickets.\n  """\n', "    You route tickets.\n"),
    "no text": (' = """\n    You route tickets.\n  """', ""),
    "model provider": ('model optimizer = "rulebook/v1"', 'model optimizer = "rulebook"'),
    "model role": ("model optimizer", "model optimzer"),
    "model removed": ('model optimizer = "rulebook/v1"\n', ""),
    "param range": ("temperature = 0", "temperature = 3"),
    "type": ("input  ticket: text", "input  ticket: txt"),
    "output type": ("output reply: text", "output reply: txt"),
    "output removed": ("  output reply: text { limit = 200 tokens }\n", ""),
    "field type": ("field product: text", "field product: txt"),
    "field removed": ("; field product: text", ""),
    "group": ("group = customer", "group = custmer"),
    "split": ("split = 2 : 1 : 2", "split = 2"),
    "no source": ('source = "tickets.jsonl"; ', ""),
    "data removed": (
        'data { source = "tickets.jsonl"; field customer: text; field product: text; split = 2 : 1 : 2; group = customer; seed = 7 }\n',
        "",
    ),
    "data misspelt": ("data {", "dta {"),
    "task misspelt": ("task {", "tsk {"),
    "skill misspelt": ("skill route", "skll route"),
    "about removed": ('  about = "Route a ticket."\n', ""),
    "module": ("gates.sure", "gats.sure"),
    "module fn": ("gates.sure", "gates.sre"),
    "use": ("use std.gates", "use std.gats"),
    "use removed": ("use std.gates\n", ""),
    "schedule": ("cosine(4, 2)", "cosin(4, 2)"),
    "batch": ("batch = 40", "batch = 0"),
    "budget empty": ("epochs = 4; patience = 8 steps", ""),
    "budget unit": ("patience = 8 steps", "patience = 8"),
    "range": ("<= 30%", "<= 30"),
    "gate state": ("tokens(candidate)", "tokens(candidat)"),
    "gate metric": ("gate better = candidate.score >", "gate better = candidate.scre >"),
    "gate cmp": ("incumbent.score\n", "incumbent\n"),
    "gate no value": ("gate steady = change(candidate) <= 30%", "gate steady"),
    "gate operator": ("candidate.score > incumbent", "candidate.score >> incumbent"),
    "require": ("require able = initial.right", "require able = candidate.right"),
    "kind": ("require able", "requre able"),
    "brace": ("temperature = 0 }", "temperature = 0"),
    "brace task": ("limit = 200 tokens }\n}\n", "limit = 200 tokens }\n"),
    "label": ('"billing" | "shipping"', '"billing" | "billing"'),
    "quote": ('source = "tickets.jsonl"', 'source = "tickets.jsonl'),
    "comma": ("batch = 40; edits", "batch = 40, edits"),
    "skill name": ("skill route_tickets", "skill route-tickets"),
    "language": ("language 1\n", ""),
    "goals two": ("metric brief", "goal brief"),
    "unit": ("/ 20 tokens", "/ 20 s"),
    "trainable none": ("trainable section rules", "frozen section rules"),
}

HIDES = {
    *("task misspelt", "skill misspelt", "data misspelt", "data removed", "use", "use removed"),
    *("unclosed text", "gate cmp", "language"),
}
"""Mistakes after which a part of the program is unknown, or a comparison has a side that is no number."""

APART = frozenset(
    frozenset(pair)
    for pair in (
        ("goal unbounded", "type"),
        ("goal removed", "goals two"),
        ("goal removed", "gate metric"),
        ("require", "kind"),
        ("goal no value", "goals two"),
        ("gate field", "field removed"),
        ("metric function", "require"),
        ("metric field", "output removed"),
        ("metric field", "unit"),
        ("metric removed", "require"),
        ("section word", "setting unit"),
        ("section word", "unknown unit"),
        ("setting", "range"),
        ("setting unit", "range"),
        ("unknown unit", "range"),
        ("output type", "unit"),
        ("output removed", "unit"),
    )
)
"""Two of one statement, or one that leaves open what the other is about."""


def broken(*names: str) -> str | None:
    """The program with mistakes; None where they are about the same words."""
    text = PROGRAM
    for name in names:
        right, wrong = MISTAKES[name]
        if right not in text:
            return None
        text = text.replace(right, wrong, 1)
    return text


def errors(text: str) -> list[tuple[str, str]]:
    return [(d.code, d.message) for d in run(text).diagnostics if d.severity is Severity.ERROR]


@pytest.mark.parametrize("name", MISTAKES)
def test_one_mistake_is_one_error(name: str) -> None:
    text = broken(name)
    assert text is not None
    assert len(errors(text)) == 1, errors(text)


def pairs() -> list[tuple[str, str]]:
    """Every fifth pair of mistakes that know nothing of each other."""
    names = [name for name in MISTAKES if name not in HIDES]
    return [pair for pair in combinations(names, 2) if frozenset(pair) not in APART][::5]


@pytest.mark.parametrize(("one", "other"), pairs())
@pytest.mark.quick_cases(60)
def test_no_mistake_hides_another(one: str, other: str) -> None:
    both, first, second = broken(one, other), broken(one), broken(other)
    assert first is not None
    assert second is not None
    if both is not None:
        assert {*errors(first), *errors(second)} <= {*errors(both)}


def test_a_missing_goal_is_told_with_the_name_that_gates_read() -> None:
    text = broken("goal removed")
    assert text is not None
    (found,) = [d for d in run(text).diagnostics if d.severity is Severity.ERROR]
    assert (found.code, found.hint) == ("SK206", "add `goal score = ...`, which the gates read")
    assert found.secondary[0].text == "`score` is read here"


def test_a_bad_goal_hides_no_field_of_a_gate() -> None:
    text = PROGRAM.replace("goal score = 0.9 * right", "goal score = 0.9 * wrong(right)")
    text = text.replace("regressed(right, by = product)", "regressed(score, by = prodct)")
    assert {code for code, _ in errors(text)} == {"SK205", "SK403"}


def test_a_name_that_nothing_declares_is_told_once_with_all_its_places() -> None:
    text = broken("metric removed")
    assert text is not None
    (found,) = [d for d in run(text).diagnostics if d.severity is Severity.ERROR]
    assert found.message == "unknown name `right`"
    assert len(found.secondary) == 2


@pytest.mark.parametrize(
    ("written", "misspelt"),
    [("budget {\n  epochs", "budget {\n  epocs"), ("about =", "abuot =")],
)
def test_a_misspelt_setting_is_not_missing_as_well(written: str, misspelt: str) -> None:
    text = """language 1
task {
  input ticket: text
  output team: "a" | "b"
}
skill route {
  about = "Route a ticket. Use it for each new one."
  trainable section rules
}
model target = "rulebook/v1"
model optimizer = "rulebook/v1"
data { source = "tickets.jsonl" }
goal correct = exact_match(team)
budget {
  epochs = 4
}
gate better = candidate.correct > incumbent.correct
"""
    assert written in text
    found = run(text.replace(written, misspelt))
    assert [each.code for each in found.diagnostics if each.severity is Severity.ERROR] == ["SK202"]

"""A program with fields of all kinds, in which anything of the library can be said, and one rollout of it."""

import re
from fractions import Fraction
from pathlib import Path

from skillc.diagnostics.diagnostic import Severity
from skillc.frontend import check
from skillc.language.modules import Loader
from skillc.metrics.meter import Meter
from skillc.outcomes import MICRO, Example
from skillc.plan.resolve import resolve
from skillc.syntax.source import Source
from skillc.trajectories.trajectory import Trajectory

_PROGRAM = """language 1
{uses}
task {{
  input document: text
  input urgent: bool
  output answer: text
  output summary: text
  output actions: list[text]
  output names: list[text]
  output team: "billing" | "shipping" | "unsure"
  output priority: "low" | "medium" | "high" | "highest"
  output record: json
  output age: integer
  output program: text
}}
skill work {{ about = "Does it."; trainable section rules {{ limit = 500 tokens }} }}
model target = "rulebook/v1"
model optimizer = target
model referee = "openai/gpt-5.5"
model second_referee = "openai/gpt-5.5-mini"
data {{
  source = "work.jsonl"
  field product: text
  field points: list[text]
  field gold_team: text {{ column = "team" }}
}}
{statements}
"""

_POOL = {
    "score": "goal score = exact_match(team)",
    "passed": 'metric passed = python("tests:share")',
    "compiles": 'metric compiles = python("tests:compiles")',
    "polite": "metric polite = f1(answer)",
    "brief": "metric brief = f1(summary)",
    "helpful": 'metric helpful = judge(answer, "Does it help?", model = referee)',
    "budget": "budget { epochs = 4 }",
    "better": "gate better = candidate.score > incumbent.score",
}


def program(*statements):
    """A whole program that says the statements; what they need and do not declare is added."""
    text = "\n".join(statements)
    declared = set(re.findall(r"^(?:metric|goal) (\w+)", text, re.M))
    declared |= {"budget"} if re.search(r"^budget\b", text, re.M) else set()
    declared |= {"score"} if re.search(r"^goal ", text, re.M) else set()
    declared |= {"better"} if re.search(r"^gate better\b", text, re.M) else set()
    pool = [line for name, line in _POOL.items() if name not in declared]
    if "score" in declared and not re.search(r"^(?:metric|goal) score\b", text, re.M):
        pool.append("metric score = exact_match(team)")
    names = sorted(path.stem for path in (Path(__file__).parents[2] / "stdlib").glob("*.skill"))
    uses = "\n".join(f"use std.{name}" for name in names if re.search(rf"\b{name}\.", text))
    return _PROGRAM.format(uses=uses, statements="\n".join([*pool, text]))


def checked(*statements):
    """The checked program, which has neither errors nor warnings, but for judges, which a later version asks."""
    found = check(Source("work.skill", program(*statements)), Loader(Path()))
    assert [d.message for d in found.diagnostics if d.severity is not Severity.NOTE and d.code != "SK605"] == []
    return found


def plan(*statements):
    """Its plan."""
    found = resolve(checked(*statements))
    assert found.plan is not None, found.diagnostics
    return found.plan


GOLD = {
    "answer": "Paris is the capital",
    "summary": "a capital",
    "actions": ["pay", "ship"],
    "names": ["Ada", "Grace", "Alan"],
    "team": "billing",
    "priority": "high",
    "record": {"date": "2026-01-02", "amount": 5, "who": "Ada"},
    "age": 40,
    "program": "def solve():\n    return 1\n",
}
FIELDS = {"product": "books", "points": ["capital", "France"], "gold_team": "billing"}
INPUTS = {"document": "Ada and Grace met in Paris.", "urgent": True}


def score(expression, *, gold=None, inputs=None, fields=None, judged=None, root=Path(), **prediction):
    """What an expression gives on one rollout, exact to the millionth; unnamed outputs are right."""
    found = plan(f"metric measured = {expression}")
    metric = next(each for each in found.metrics if each.name == "measured")
    metric = metric.model_copy(update={"term": _with_judges(metric.term, judged or {}), "goal": True})
    found = found.model_copy(update={"metrics": (metric,)})
    example = Example("e1", {**INPUTS, **(inputs or {})}, {**GOLD, **(gold or {})}, {**FIELDS, **(fields or {})}, "g")
    cell = Meter(found, root).measure(example, Trajectory(answer={**GOLD, **prediction})).cells["measured"]
    return Fraction(cell.value, MICRO)


def _with_judges(term, judged):
    """The term with each call of a judge replaced by what it says: by the first word of its rubric, or its role."""
    import dataclasses

    from skillc.gates.terms import CallTerm, Constant, Operation

    if isinstance(term, CallTerm) and term.function == "judge":
        said = {part for key in (term.arguments[1], term.option("model")) for part in str(key).split()}
        value = next(value for words, value in judged.items() if any(words in part for part in said))
        return Constant(Fraction(value))
    if isinstance(term, Operation):
        return dataclasses.replace(term, operands=tuple(_with_judges(each, judged) for each in term.operands))
    if isinstance(term, CallTerm):
        return dataclasses.replace(term, arguments=tuple(_with_judges(each, judged) for each in term.arguments))
    return term

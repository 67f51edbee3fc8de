"""Mark rules whose condition and answer code can check: `If the ticket mentions "refund", answer billing.`"""

from __future__ import annotations

from dataclasses import replace

from skillc.document.skill import Rule
from skillc.evaluate.adherence.marks import Mark
from skillc.json_values import as_text
from skillc.metrics.judging.prompt import shown_text
from skillc.models.rulebook.sentences import DecisionRule, applies, normal, read_sentence, sentences_of
from skillc.outcomes import Example
from skillc.plan.schema import Plan
from skillc.trajectories.trajectory import Trajectory


def checkable(plan: Plan, rule: Rule) -> DecisionRule | None:
    """Return the condition and the answer of a rule; None if it is not one sentence of this form.

    The task must have one output, which the rule then names the value of. A default has no condition of its own.
    """
    sentences = [each for each in sentences_of(rule.text) if each.strip()]
    if len(sentences) != 1 or len(plan.task.outputs) != 1:
        return None
    found = read_sentence(sentences[0], tuple(field.name for field in plan.task.inputs))
    if found is None or found.is_default:
        return None
    labels = plan.task.outputs[0].type.labels
    if labels and normal(found.answer) not in {normal(label) for label in labels}:
        return None
    clauses = (replace(clause, triggers=tuple(map(_bare, clause.triggers))) for clause in found.clauses)
    return replace(found, clauses=tuple(clauses))


def _bare(sign: str) -> str:
    """Return a sign without its article, which texts need not have."""
    words = sign.split()
    return normal(" ".join(words[1:])) if len(words) > 1 and words[0] in ("a", "an", "the") else sign


def mark(plan: Plan, rule: Rule, read: DecisionRule, example: Example, trajectory: Trajectory) -> Mark:
    """Return whether a rule applies to an example by its words, and whether the answer is the one that it names."""
    inputs = {field.name: normal(as_text(example.inputs.get(field.name) or "")) for field in plan.task.inputs}
    if not applies(read, inputs):
        return Mark(rule.id, False, None, by="code")
    answer = (trajectory.answer or {}).get(plan.task.outputs[0].name)
    return Mark(rule.id, True, normal(shown_text(answer)) == normal(read.answer), by="code")

"""A candidate as plain values: its facts, gates, drafts and edits."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from typing import Any, Literal, TypeAlias

from skillc.document.skill import Document, for_target
from skillc.plan.schema import MetricPlan
from skillc.review.decisions import Decision, GateResult, ProposedEdit, Truth
from skillc.review.differences import by_lines
from skillc.review.run_view import RunView
from skillc.review.words import GATE_WORDS, SHORT, bound_words, credit_words, draft_words, edit_notes, edit_words

Style: TypeAlias = Literal["good", "bad", "open", ""]

_BAR = 200
_RESULTS: dict[str, Style] = {"accepted": "good", "rejected": "bad"}
_FATES: dict[str, Style] = {"accepted": "good", "rejected": "bad", "screened out": "bad", "refused": "bad"}
_GATES: dict[Truth, Style] = {"true": "good", "false": "bad", "unknown": "open"}


def decision_values(view: RunView, decision: Decision) -> dict[str, Any]:
    """Return a decision with its gates, drafts and edits."""
    parent, child = view.skills.get(decision.incumbent), view.skills.get(decision.candidate)
    whole = not decision.edits and parent is not None and child is not None and decision.candidate
    return {
        "place": decision.place,
        "accepted": decision.accepted,
        "style": _RESULTS.get(decision.result, "open"),
        "result": decision.result,
        "reason": decision.brief or decision.reason,
        "bar": _bar(decision, view.plan.goal),
        "facts": list(decision_facts(decision, view.plan.goal)),
        "gates": [gate_values(view, each) for each in decision.gates],
        "drafts": [draft_words(each) for each in decision.drafts],
        "edits": [edit_values(each, parent) for each in decision.edits],
        "others": [edit_values(each, parent) for each in decision.others],
        "diff": by_lines(for_target(parent), for_target(child)) if whole and parent and child else (),
        "shared": credit_words("changes on validation that belong to no single edit", decision.shared),
    }


def decision_facts(decision: Decision, goal: MetricPlan) -> Iterable[tuple[str, str]]:
    """Yield what is known of a candidate, each with its name."""
    if decision.maker or decision.kind:
        yield "made by", " ".join(dict.fromkeys(filter(None, (decision.kind, decision.maker))))
    if decision.pool is not None:
        yield "candidate of the step", f"{decision.pool[0]} of {decision.pool[1]}"
    if decision.candidate:
        yield "candidate", decision.candidate[:SHORT]
        yield "tokens", f"{decision.tokens:,}"
    yield "reason", decision.reason
    if decision.incumbent_goal is not None:
        yield "incumbent", bound_words(decision.incumbent_goal, goal)
    if decision.reached is not None:
        yield "candidate's mean", bound_words(decision.reached, goal)
    if decision.of and decision.candidate:
        yield "measured for the gates", f"{decision.evaluated} of {decision.of} validation examples"
        yield "cured and broke", f"+{decision.gains} −{decision.losses}"


def _bar(decision: Decision, goal: MetricPlan) -> dict[str, Any] | None:
    """Return the candidate's bound on the range of the goal."""
    reached, before = decision.reached, decision.incumbent_goal
    if reached is None or goal.high <= goal.low:
        return None

    def at(value: Fraction) -> float:
        return round(float((value - goal.low) / (goal.high - goal.low)) * _BAR, 1)

    words = f"candidate {bound_words(reached, goal)}" + (f", incumbent {bound_words(before, goal)}" if before else "")
    low, high = at(reached.low), at(reached.high)
    left = max(0.0, min(low, _BAR - 3.0))
    return {
        "low": left,
        "width": round(max(3.0, high - left), 1),
        "incumbent": at(before.low) if before is not None else None,
        "words": words,
    }


def gate_values(view: RunView, gate: GateResult) -> dict[str, str]:
    """Return a gate of a decision: its truth, its text in the program, and its drawing."""
    mark, word = GATE_WORDS.get(gate.truth, ("?", str(gate.truth)))
    style = _GATES.get(gate.truth, "open")
    text = next((each.text for each in view.plan.gates if each.name == gate.name), "")
    return {"style": style, "mark": mark, "word": word, "name": gate.name, "text": text, "drawn": gate.drawn}


def edit_values(edit: ProposedEdit, parent: Document | None) -> dict[str, Any]:
    """Return an edit: its fate, the difference of its texts, and notes on its trial and its credit."""
    head, parts = edit_words(edit, parent)
    return {
        "fate": edit.fate,
        "style": _FATES.get(edit.fate, "open"),
        "head": head,
        "parts": parts,
        "notes": edit_notes(edit),
    }

"""`skillc show`: everything of one step."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction

from pydantic import JsonValue
from rich.console import Group, RenderableType
from rich.text import Text

from skillc.document.edits import edit_to_json
from skillc.document.skill import Document, for_target
from skillc.json_values import rounded
from skillc.review.confidence import SPLIT_WORDS
from skillc.review.decisions import Credit, Decision, GateResult, ProposedEdit
from skillc.review.differences import by_lines
from skillc.review.log import (
    NANO,
    bound_json,
    cost_words,
    footer,
    run_json,
    spend_json,
    spend_of,
    why_not,
)
from skillc.review.run_view import RunView
from skillc.review.stored import Spent
from skillc.review.terminal import RESULT_STYLES, aligned, block, changed_lines, difference_lines, facts, plain
from skillc.review.words import GATE_WORDS, SHORT, bound_words, credit_words, draft_words, edit_notes, edit_words

_GATE_STYLES = {"true": "green", "false": "red", "unknown": "yellow"}
_MOST = 300
_FATE_STYLES = {"accepted": "green", "rejected": "red", "screened out": "red", "refused": "red"}


def show_table(view: RunView, decisions: Sequence[Decision], *, full: bool = False) -> RenderableType:
    """Return the candidates of a step: edits, screen, gates, credit and spend; `full` does not cut rationales."""
    most = None if full else _MOST
    parts: list[RenderableType] = []
    for decision in decisions:
        parts += [*_candidate(view, decision, most), Text()]
    return Group(*parts, *_spent(view, decisions), *footer(view))


def _candidate(view: RunView, decision: Decision, most: int | None) -> Iterator[RenderableType]:
    head = Text(f"{decision.place}, decision {decision.number}  ", style="bold")
    head.append(decision.result, style=RESULT_STYLES.get(decision.result, "yellow"))
    reason = decision.reason if decision.accepted else why_not(decision)
    yield head.append_text(plain(f": {reason}", "not bold"))
    yield Text()
    yield facts(_facts(view, decision))
    parent, child = view.skills.get(decision.incumbent), view.skills.get(decision.candidate)
    if decision.gates:
        yield from _titled("gates", [_gate(view, each) for each in decision.gates])
    if decision.drafts:
        drafts = sorted(decision.drafts, key=lambda each: not each.chosen)
        yield from _titled(
            f"drafts, {len(drafts)} tried on training examples that their author did not see",
            [plain(draft_words(each)) for each in drafts],
        )
    if decision.edits:
        yield from _titled("edits of the candidate", [_edit(each, parent, most) for each in decision.edits])
    elif parent is not None and child is not None and decision.candidate:
        yield from _titled("change", changed_lines(by_lines(for_target(parent), for_target(child))))
    elif decision.candidate:
        texts = {decision.section: decision.guidance} if decision.guidance else decision.sections
        yield from _titled(
            "change", [plain(f"{name}: {text}") for name, text in texts.items()] or [plain("its text is not known")]
        )
    if decision.shared is not None and (decision.shared.cured or decision.shared.broke):
        yield block(plain(credit_words("changes on validation that belong to no single edit", decision.shared)))
    if decision.others:
        yield from _titled("other proposed edits", [_edit(each, parent, most) for each in decision.others])


def _titled(title: str, parts: Sequence[RenderableType]) -> Iterator[RenderableType]:
    yield Text()
    yield Text(title, style="bold")
    yield block(*parts)


def _facts(view: RunView, decision: Decision) -> Iterator[tuple[str, str]]:
    if not decision.candidate:
        yield "candidate", "none"
    else:
        made = " ".join(dict.fromkeys(filter(None, (decision.kind, decision.maker))))
        rank = f", candidate {decision.pool[0]} of {decision.pool[1]} of the step" if decision.pool is not None else ""
        yield "candidate", f"{decision.candidate[:SHORT]}, {decision.tokens:,} tokens, made by {made}{rank}"
    yield "incumbent", f"{decision.incumbent[:SHORT]}, from {view.place(decision.incumbent)}"
    goal = view.plan.goal
    if decision.incumbent_goal is not None:
        means = bound_words(decision.incumbent_goal, goal)
        if decision.reached is not None and decision.candidate:
            means += f" → {bound_words(decision.reached, goal)}"
        yield SPLIT_WORDS["validation"].split()[0], f"{means} ({SPLIT_WORDS['validation'].split('(')[1]}"
    if decision.of and decision.candidate:
        measured = f"{decision.evaluated} of {decision.of} validation examples measured for the gates"
        yield "flips", f"+{decision.gains} −{decision.losses} on {measured}"
    if decision.trains:
        yield "trains", decision.trains


def _gate(view: RunView, gate: GateResult) -> RenderableType:
    mark, word = GATE_WORDS.get(gate.truth, ("?", str(gate.truth)))
    text = next((each.text for each in view.plan.gates if each.name == gate.name), "")
    line = Text(f"{mark} ", style=_GATE_STYLES.get(gate.truth, "yellow"))
    line.append_text(plain(f"{gate.name}: {word}"))
    if not gate.drawn:
        return Group(line.append_text(plain(f"  {text}", "dim")) if text else line)
    # The values are drawn below their operands, so the lines must not be wrapped.
    drawn = [plain(each) for each in gate.drawn.split("\n")]
    for each in drawn:
        each.no_wrap, each.overflow = True, "ellipsis"
    return Group(line, block(*drawn))


def _edit(edit: ProposedEdit, parent: Document | None, most: int | None) -> RenderableType:
    head, parts = edit_words(edit, parent)
    line = plain(head).append(f"  {edit.fate}", style=_FATE_STYLES.get(edit.fate, "yellow"))
    return Group(line, block(*difference_lines(parts), *(plain(note, "dim") for note in edit_notes(edit, most))))


def _spent(view: RunView, decisions: Sequence[Decision]) -> Iterator[RenderableType]:
    if view.steps is None:
        return
    spent = [each for decision in decisions for each in view.steps.get(decision.number, ())]
    yield Text("spent by this step, with rollouts that were prefetched for the next", style="bold")
    if not spent:
        yield block(plain("nothing: all of it was known"))
        return
    rows = [[Text(name, "bold") for name in ("role", "stage", "calls", "tokens", "cost", "seconds")]]
    for each in spent:
        rows.append([plain(each.role), plain(each.stage), *map(Text, _figures(each))])
    total = spend_of(spent)
    sums = (f"{total.calls:,}", f"{total.tokens:,}", cost_words(total.cost), f"{total.seconds:,.1f}")
    rows.append([Text("all"), Text(), *map(Text, sums)])
    yield block(*aligned(rows, (False, False, True, True, True, True)))


def _figures(spent: Spent) -> tuple[str, ...]:
    seconds = f"{spent.seconds:,.1f}" if spent.seconds else ""
    return f"{spent.calls:,}", f"{spent.prompt + spent.completion:,}", cost_words(spent.cost), seconds


# ---- JSON -----------------------------------------------------------------------------------------


def show_json(view: RunView, decisions: Sequence[Decision]) -> dict[str, JsonValue]:
    """Return the object that `show --json` prints."""
    return {**run_json(view), "decisions": [_decision_json(view, each) for each in decisions]}


def _decision_json(view: RunView, decision: Decision) -> JsonValue:
    spent = view.steps.get(decision.number, ()) if view.steps is not None else None
    return {
        "decision": decision.number,
        "place": decision.place,
        "kind": decision.kind,
        "maker": decision.maker,
        "result": decision.result,
        "reason": decision.reason,
        "why": "" if decision.accepted else why_not(decision),
        "incumbent": decision.incumbent,
        "candidate": decision.candidate,
        "tokens": decision.tokens,
        "pool": list(decision.pool) if decision.pool is not None else None,
        "goal": {"incumbent": bound_json(decision.incumbent_goal), "candidate": bound_json(decision.reached)},
        "gains": decision.gains,
        "losses": decision.losses,
        "evaluated": decision.evaluated,
        "of": decision.of,
        "gates": [{"name": each.name, "value": each.truth, "drawn": each.drawn} for each in decision.gates],
        "drafts": [
            {
                "tokens": each.tokens,
                "cured": each.cured,
                "of_failures": each.of_failures,
                "broke": each.broke,
                "of_rights": each.of_rights,
                "chosen": each.chosen,
            }
            for each in decision.drafts
        ],
        "edits": [edit_json(each) for each in decision.edits],
        "others": [edit_json(each) for each in decision.others],
        "shared": credit_json(decision.shared),
        "section": decision.section,
        "guidance": decision.guidance,
        "sections": dict(decision.sections),
        "spent": None if spent is None else [_spent_json(each) for each in spent],
        "total": None if spent is None else spend_json(spend_of(spent)),
    }


def edit_json(edit: ProposedEdit) -> JsonValue:
    """Return a proposed edit with what is recorded of it."""
    return {
        "edit": dict(edit_to_json(edit.edit)) if edit.edit is not None else None,
        "words": edit.words,
        "rule": edit.rule,
        "fate": edit.fate,
        "why": edit.why,
        "rationale": edit.rationale,
        "report": edit.report,
        "cures": list(edit.cures),
        "screen": None
        if edit.screen is None
        else {
            "counts": edit.screen.counts,
            "cured": list(edit.screen.cured),
            "broke": list(edit.screen.broke),
            "chance": list(edit.screen.chance),
        },
        "credit": credit_json(edit.credit),
        "opposite": edit.opposite,
    }


def credit_json(credit: Credit | None) -> JsonValue:
    """Return the examples that an edit is associated with."""
    if credit is None:
        return None
    ids: dict[str, JsonValue] = {"cured_ids": list(credit.cured_ids), "broke_ids": list(credit.broke_ids)}
    return {"cured": credit.cured, "broke": credit.broke, **ids}


def _spent_json(spent: Spent) -> JsonValue:
    return {
        "role": spent.role,
        "stage": spent.stage,
        "calls": spent.calls,
        "prompt_tokens": spent.prompt,
        "reply_tokens": spent.completion,
        "cost": None if spent.cost is None else rounded(Fraction(spent.cost, NANO)),
        "seconds": round(spent.seconds, 3),
    }

"""`skillc log`: a run step by step, a line each."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import groupby

from pydantic import JsonValue
from rich.console import Group, RenderableType
from rich.text import Text

from skillc.dataclass import dataclass
from skillc.document.edits import Add, Delete, Move, Replace
from skillc.document.skill import tokens
from skillc.gates.units import dollars
from skillc.gates.units import tokens as short_tokens
from skillc.json_values import rounded
from skillc.review.confidence import SPLIT_WORDS, confidence_lines, score
from skillc.review.decisions import Bound, Decision, ProposedEdit, Result
from skillc.review.run_view import RunView
from skillc.review.stored import AFTER, BEFORE, Spent
from skillc.review.terminal import RESULT_STYLES, aligned, plain, safe
from skillc.review.words import SHORT
from skillc.text import counted, joined, text_width

NANO = 10**9
_WIDE, _MEDIUM = 120, 76
_LEAST = 20
_LEGEND = (
    f"validation is the split that was {SPLIT_WORDS['validation'].split('(')[1].rstrip(')')}; "
    "size: tokens of the candidate; paid: tokens of all calls in the step"
)


@dataclass(frozen=True, slots=True)
class StepSpend:
    """What a step paid for.

    Attributes:
        tokens: of prompts and replies.
        cost: nano-dollars; None if a price is unknown.
        seconds: wall time of its rollouts, added up.
    """

    calls: int
    tokens: int
    cost: int | None
    seconds: float


@dataclass(frozen=True, slots=True)
class LogRow:
    """A line of the log.

    Attributes:
        place: `step 3/8`; `start` for the baseline, `end` for what came after the last decision.
        decision: its number; None for `start` and `end`.
        before, after: means on validation.
        size: tokens of the candidate, or of the initial skill; 0 without one.
        change: what the candidate changed.
        why: the failed gate, or another reason; empty for an accepted candidate.
        spend: of the whole step, on the first of its candidates; None if it was not recorded.
    """

    place: str
    decision: int | None
    result: Result | None
    before: Bound | None
    after: Bound | None
    gains: int
    losses: int
    evaluated: int
    of: int
    size: int
    change: str
    why: str
    spend: StepSpend | None


def log_rows(view: RunView) -> tuple[LogRow, ...]:
    """Return the baseline, each decision, and what came after the last one."""
    first = next((each for each in view.decisions if each.incumbent_goal is not None), None)
    initial = view.skills.get(view.initial)
    rows = [
        LogRow(
            place="start",
            decision=None,
            result=None,
            before=None,
            after=first.incumbent_goal if first is not None and first.incumbent == view.initial else None,
            gains=0,
            losses=0,
            evaluated=0,
            of=0,
            size=tokens(initial) if initial is not None else 0,
            change="initial skill",
            why="",
            spend=_spend(view, [BEFORE]),
        )
    ]
    for _, group in groupby(view.decisions, key=lambda each: each.place):
        of_step = list(group)
        spend = _spend(view, [each.number for each in of_step])
        for i, decision in enumerate(of_step):
            rows.append(_row(decision, spend if i == 0 else None))
    end = _spend(view, [AFTER])
    if end is not None and end.calls:
        change = "final test" if view.lock is not None and view.lock.test.n else "no decision yet"
        rows.append(LogRow("end", None, None, None, None, 0, 0, 0, 0, 0, change, "", end))
    return tuple(rows)


def _row(decision: Decision, spend: StepSpend | None) -> LogRow:
    return LogRow(
        place=decision.place,
        decision=decision.number,
        result=decision.result,
        before=decision.incumbent_goal,
        after=decision.reached,
        gains=decision.gains,
        losses=decision.losses,
        evaluated=decision.evaluated,
        of=decision.of,
        size=decision.tokens,
        change=changes_in_words(decision),
        why="" if decision.accepted else why_not(decision),
        spend=spend,
    )


def why_not(decision: Decision) -> str:
    """Return why a candidate was not accepted, with the counts of the gate that failed."""
    if decision.blame and decision.brief:
        return f"gate `{decision.blame}` failed: {decision.brief}"
    return decision.brief or decision.reason


def changes_in_words(decision: Decision) -> str:
    """Return what a candidate changed: the number of edits by kind, and the first of them."""
    if decision.guidance:
        return f"rewrote `{decision.section}`: {decision.guidance}"
    if decision.sections:
        return f"rewrote {joined([f'`{name}`' for name in decision.sections])}"
    kinds = {Add: "added", Replace: "replaced", Delete: "deleted", Move: "moved"}
    counts: dict[str, int] = {}
    for each in decision.edits:
        word = kinds.get(type(each.edit), "edited") if each.edit is not None else "edited"
        counts[word] = counts.get(word, 0) + 1
    if not counts:
        others = len(decision.others)
        return f"no candidate from {counted(others, 'proposed edit')}" if others else "no candidate"
    drafted = f"draft of {counted(len(decision.drafts), 'trial')}: " if decision.drafts else ""
    words = joined([f"{count} {word}" for word, count in counts.items()])
    return f"{drafted}{words}: {_text_of(decision.edits[0])}"


def _text_of(edit: ProposedEdit) -> str:
    """Return the new text of an edit; the rule of one that has none."""
    return edit.edit.text if isinstance(edit.edit, Add | Replace) else edit.words


def _spend(view: RunView, numbers: Sequence[int]) -> StepSpend | None:
    if view.steps is None:
        return None
    return spend_of([each for number in numbers for each in view.steps.get(number, ())])


def spend_of(spent: Sequence[Spent]) -> StepSpend:
    """Return the sums over roles and stages."""
    cost = None if any(each.cost is None for each in spent) else sum(each.cost or 0 for each in spent)
    size = sum(each.prompt + each.completion for each in spent)
    return StepSpend(sum(each.calls for each in spent), size, cost, sum(each.seconds for each in spent))


def fitted(words: str, width: int) -> str:
    """Return a text on one line of at most a width."""
    line = safe(" ".join(words.split()))
    width = max(_LEAST, width)
    if text_width(line) <= width:
        return line
    while text_width(line) > width - 1:
        line = line[: min(len(line) - 1, width)]
    return f"{line.rstrip()}…"


def cost_words(nano: int | None) -> str:
    """Render a cost: `$0.02`, `?` for an unknown price."""
    return dollars(None if nano is None else Fraction(nano, NANO))


# ---- in a terminal --------------------------------------------------------------------------------


def log_table(view: RunView, width: int) -> RenderableType:
    """Return the log for a terminal of some width: what changed is behind the figures, or below them."""
    rows = log_rows(view)
    head = [f"{view.name}  run {view.run[:SHORT]}  ", run_state(view)]
    parts: list[RenderableType] = [plain("".join(head), "bold"), Text()]
    parts.append(_wide(view, rows, width) if width >= _WIDE else _narrow(view, rows, width))
    parts.append(plain(_LEGEND, "dim"))
    return Group(*parts, *footer(view))


def run_state(view: RunView) -> str:
    """Return the verdict, or that there is none."""
    accepted = sum(each.accepted for each in view.decisions)
    made = f"{counted(len(view.decisions), 'decision')}, {accepted} accepted"
    if view.lock is None:
        return f"no verdict yet, {made}"
    state = "delivered" if view.delivered else "not delivered"
    return f"{view.lock.verdict} ({state}), {made}"


def footer(view: RunView) -> list[RenderableType]:
    """Return how sure the figures are, and what is missing."""
    lines = [plain(line, "dim") for line in confidence_lines(view.lock, view.plan.goal)]
    lines += [plain(f"missing: {line}", "yellow") for line in view.missing]
    return [Text(), *lines]


def _cells(view: RunView, row: LogRow, *, short: bool) -> list[Text]:
    place = row.place.removeprefix("step ") if short else row.place
    result = Text(row.result or "", style=RESULT_STYLES.get(row.result, "yellow") if row.result else "")
    flips = f"+{row.gains} −{row.losses}" if row.decision is not None and row.evaluated else ""
    return [plain(place), result, Text(means(row, view)), Text(flips), *_figures(row)]


def _figures(row: LogRow) -> list[Text]:
    size = Text(f"{row.size:,}" if row.size else "")
    if row.spend is None:
        return [size, Text(), Text()]
    return [size, Text(short_tokens(row.spend.tokens)), Text(cost_words(row.spend.cost))]


def means(row: LogRow, view: RunView) -> str:
    """Render the means before and after a step; `≤` before the best that a candidate could still have reached."""
    goal = view.plan.goal
    if row.after is None:
        return score(row.before.low, goal) if row.before is not None and row.before.exact else ""
    after = score(row.after.low, goal) if row.after.exact else f"≤ {score(row.after.high, goal)}"
    if row.before is None:
        return after
    before = score(row.before.low if row.before.exact else row.before.high, goal)
    unit = " %" if before.endswith(" %") and after.endswith(" %") else ""
    return f"{before.removesuffix(unit)} → {after}"


_FIGURES = (("size", True), ("paid", True), ("cost", True))


def _wide(view: RunView, rows: Sequence[LogRow], width: int) -> RenderableType:
    """Return a line a step."""
    columns = (("step", False), ("result", False), ("validation", False), ("flips", False), *_FIGURES)
    cells = [[Text(name, "bold") for name, _ in columns]]
    lines = aligned([*cells, *(_cells(view, row, short=False) for row in rows)], [right for _, right in columns])
    start = max(line.cell_len for line in lines) + 2
    words = ["what changed, or why not", *(_words(row) for row in rows)]
    for i, line in enumerate(lines):
        line.append(" " * (start - line.cell_len))
        line.append_text(plain(fitted(words[i], width - start), "bold" if i == 0 else "dim"))
    return Group(*lines)


def _words(row: LogRow) -> str:
    return f"{row.why}; {row.change}" if row.why and row.decision is not None else row.change


def _narrow(view: RunView, rows: Sequence[LogRow], width: int) -> RenderableType:
    """Return two lines a step: its figures, and what changed."""
    small = width < _MEDIUM
    figures = () if small else _FIGURES
    columns = (("step", False), ("result", False), ("validation", False), ("flips", False), *figures)
    cells = [[Text(name, "bold") for name, _ in columns]]
    cells += [_cells(view, row, short=small)[: len(columns)] for row in rows]
    lines = aligned(cells, [right for _, right in columns])
    parts: list[RenderableType] = [lines[0]]
    for line, row in zip(lines[1:], rows, strict=True):
        parts.append(line)
        texts = [_paid(row)] if small and _paid(row) else []
        texts += [_words(row)] if row.why or row.decision is not None else []
        parts += [plain("  " + fitted(text, width - 2), "dim") for text in texts]
    return Group(*parts)


def _paid(row: LogRow) -> str:
    size, paid, cost = (each.plain for each in _figures(row))
    parts = [f"size {size}" if size else "", f"paid {paid} for {cost}" if paid else ""]
    return ", ".join(part for part in parts if part)


# ---- JSON -----------------------------------------------------------------------------------------


def log_json(view: RunView) -> dict[str, JsonValue]:
    """Return the object that `log --json` prints."""
    return {**run_json(view), "steps": [_row_json(row) for row in log_rows(view)]}


def run_json(view: RunView) -> dict[str, JsonValue]:
    """Return what every object about a run begins with."""
    return {
        "format_version": 1,
        "skill": view.name,
        "run": view.run,
        "verdict": view.lock.verdict if view.lock is not None else None,
        "delivered": view.delivered,
        "goal": view.plan.goal.name,
        "confidence": list(confidence_lines(view.lock, view.plan.goal)),
        "missing": list(view.missing),
    }


def bound_json(bound: Bound | None) -> JsonValue:
    """Return a mean, or both ends of where it can be."""
    if bound is None:
        return None
    return rounded(bound.low) if bound.exact else [rounded(bound.low), rounded(bound.high)]


def spend_json(spend: StepSpend | None) -> JsonValue:
    """Return a spend; the cost in dollars."""
    if spend is None:
        return None
    cost = None if spend.cost is None else rounded(Fraction(spend.cost, NANO))
    return {"calls": spend.calls, "tokens": spend.tokens, "cost": cost, "seconds": round(spend.seconds, 3)}


def _row_json(row: LogRow) -> JsonValue:
    return {
        "place": row.place,
        "decision": row.decision,
        "result": row.result,
        "before": bound_json(row.before),
        "after": bound_json(row.after),
        "gains": row.gains,
        "losses": row.losses,
        "evaluated": row.evaluated,
        "of": row.of,
        "tokens": row.size,
        "change": row.change,
        "why": row.why,
        "spent": spend_json(row.spend),
    }

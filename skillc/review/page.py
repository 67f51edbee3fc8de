"""What the page of a run shows, as plain values for its template."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Any, Literal

from skillc import __version__
from skillc.document.skill import tokens
from skillc.errors import SkillcError
from skillc.gates.units import dollars
from skillc.items.gains import Gains
from skillc.items.grid import FATES, Grid, GridRow, grid_of
from skillc.items.record import SPLITS, SplitName
from skillc.items.report import shown_metrics
from skillc.metrics.baselines import baseline_means
from skillc.metrics.meter import Meter, python_names
from skillc.plan.lock import ArmLock, Lock
from skillc.review.candidates import Style, decision_values
from skillc.review.chart import CurveChart, chart_of
from skillc.review.confidence import (
    ARM_WORDS,
    SELECTED_ON,
    SPLIT_WORDS,
    confidence_lines,
    ends,
    score,
)
from skillc.review.curve import arm_estimate, curve_of
from skillc.review.origins import SkillLine, skill_lines
from skillc.review.packing import Compared
from skillc.review.remarks import remarks_on
from skillc.review.run_view import RunView
from skillc.review.saved import saved_words
from skillc.review.stored import NO_SKILL
from skillc.review.times import wall_times
from skillc.review.words import NAMED, SHORT, credit_words
from skillc.text import counted, listed

_NANO = 10**9
# Rows of a grid; the most informative come first.
_MOST_ROWS = 500
_SECTIONS = (
    ("result", "Result"),
    ("curve", "Score by step"),
    ("items", "Examples by step"),
    ("compare", "One example under two skills"),
    ("candidates", "Candidates"),
    ("skill", "The skill, line by line"),
    ("spent", "Spend"),
)
_VERDICTS: dict[str, Style] = {"improved": "good", "worse": "bad"}
_MARKS = {"right": ("m r", "■"), "wrong": ("m w", "□"), "unmeasured": ("m u", "?"), "not run": ("m n", "·")}


def page_of(view: RunView, found: Compared) -> dict[str, Any]:
    """Return the values of the page, without the rollouts that it packs."""
    lock, goal = view.lock, view.plan.goal
    curve = curve_of(view)
    chart: CurveChart | None = chart_of(curve, goal)
    accepted = sum(each.accepted for each in view.decisions)
    return {
        "name": view.name,
        "goal": goal.name,
        "verdict": lock.verdict if lock is not None else "no verdict yet",
        "verdict_style": _VERDICTS.get(lock.verdict, "open") if lock is not None else "open",
        "delivery": _delivery(view),
        "confidence": confidence_lines(lock, goal),
        "facts": list(_facts(view, accepted)),
        "missing": view.missing,
        "sections": _SECTIONS,
        "results": list(_results(view)) if lock is not None else [],
        "selected_on": SELECTED_ON,
        "chart": chart,
        "compared": bool(found.examples),
        "candidates_line": f"{counted(len(view.decisions), 'decision')}, {accepted} accepted. "
        "A bar has the candidate's mean on validation, as far as it was measured, and a mark at the incumbent's.",
        "decisions": [decision_values(view, each) for each in view.decisions],
        "skill": list(_skill(view)),
        "saved": list(saved_words(view)),
        "charged": _charged(lock),
        "seconds": list(wall_times(view)),
        "made": f"Made by skillc {__version__} from lock, history and records, without a call of a model.",
        **_items(view, found),
        **_spent(view),
    }


def _delivery(view: RunView) -> str:
    if view.lock is None:
        return "The run has not ended, or a later one has replaced its lock."
    if view.delivered:
        return "Delivered: agents load this skill."
    return f"Not delivered. {view.lock.reason}".strip()


def _facts(view: RunView, accepted: int) -> Iterable[tuple[str, str]]:
    yield "program", view.program.name
    yield "run", view.run[:SHORT]
    lock = view.lock
    if lock is not None:
        yield from ((role, model.model) for role, model in lock.models.items())
        yield "examples", f"{lock.data.train} train, {lock.data.validation} validation, {lock.data.test} test"
        yield "stopped by", lock.stopped
    yield "decisions", f"{len(view.decisions)}, {accepted} accepted"
    initial, best = view.skills.get(view.initial), view.skills.get(view.best)
    if initial is not None and best is not None:
        yield "tokens of the skill", f"{tokens(initial):,} → {tokens(best):,}"


# ---- result ---------------------------------------------------------------------------------------


def _results(view: RunView) -> Iterable[dict[str, Any]]:
    lock = view.lock
    assert lock is not None
    digests = {"none": NO_SKILL, "initial": view.initial, "best": view.best}
    for name, label in ARM_WORDS.items():
        validation, test = getattr(lock.validation, name), getattr(lock.test, name)
        yield {
            "label": label,
            "strong": name == "best",
            "validation": _arm(view, digests[name], "validation", validation),
            "test": _arm(view, digests[name], "test", test),
        }
    if lock.test.always_read is not None and lock.validation.always_read is not None:
        arms = (lock.validation.always_read, lock.test.always_read)
        validation, test = (_mean(score(arm.mean, view.plan.goal), n=f"n = {arm.n}") for arm in arms)
        yield {"label": "compiled skill, always read", "strong": False, "validation": validation, "test": test}
    for name, mean in _baselines(view).items():
        test = _mean(score(mean, view.plan.goal))
        yield {"label": f"{name} (no model)", "strong": False, "validation": _mean(""), "test": test}


def _mean(mean: str, interval: str = "", n: str = "") -> dict[str, str]:
    return {"mean": mean, "interval": interval, "n": n}


def _arm(view: RunView, skill: str, split: Literal["validation", "test"], arm: ArmLock) -> dict[str, str]:
    if arm.mean is None:
        return _mean("–")
    interval = arm_estimate(view, skill, split, arm.mean, arm.n).interval
    goal = view.plan.goal
    return _mean(score(arm.mean, goal), ends(interval, goal), f"n = {arm.n}")


def _baselines(view: RunView) -> dict[str, Fraction]:
    """Return the means of baselines without a model; none if a metric is the user's own code, which no view runs."""
    if view.dataset is None or python_names(view.plan):
        return {}
    try:
        meter = Meter(view.plan, view.program.parent)
        return baseline_means(view.plan, view.dataset, view.dataset.test, meter)
    except SkillcError:
        return {}


# ---- items ----------------------------------------------------------------------------------------


def _items(view: RunView, found: Compared) -> dict[str, Any]:
    items = view.items
    if items is None:
        return {"grids": [], "gains": [], "gain_heads": [], "warnings": [], "remarks": []}
    metrics = shown_metrics(items)
    remarks = remarks_on(items)
    places = {name: i for i, name in enumerate(found.examples)}
    grids = [grid_of(items, split, name) for split in ("validation", "test", "train") for name in metrics]
    return {
        "grids": [_grid(grid, i, places) for i, grid in enumerate(grid for grid in grids if grid.rows)],
        "gain_heads": [SPLIT_WORDS[split] for split in SPLITS],
        "gains": [(each.metric, [_gained(view, each, split) for split in SPLITS]) for each in remarks.gains],
        "warnings": remarks.warnings,
        "remarks": remarks.notes,
    }


def _gained(view: RunView, gains: Gains, split: SplitName) -> str:
    """Return the gain on a split; that of the goal on test is the one that the lock has."""
    gain, lock = gains.on(split), view.lock
    if gain is None or gain.gain is None:
        return "–"
    value, interval = gain.gain, gain.interval
    if split == "test" and gains.metric == view.plan.goal.name and lock is not None and lock.test.gain is not None:
        value, interval = lock.test.gain, lock.test.interval
    low_high = "" if interval is None else f" ({_points(interval[0])} to {_points(interval[1])})"
    return f"{_points(value)}{low_high}, {gain.n} of {gain.items}"


def _points(value: Fraction) -> str:
    return f"{float(value) * 100:+.1f}"


def _grid(grid: Grid, number: int, places: dict[str, int]) -> dict[str, Any]:
    rows = sorted(grid.rows, key=lambda row: FATES.index(row.fate))
    kept = sorted(rows, key=lambda row: -row.flips)[:_MOST_ROWS]
    flips, pairs = grid.flips
    counts = ", ".join(f"{count} {fate}" for fate, count in grid.fates.items())
    counts += f"; {flips} flips in {pairs} pairs of neighbouring columns" if pairs else ""
    left = len(rows) - len(kept)
    counts += f"; {left} examples with the fewest flips are left out to keep this page small" if left else ""
    shares = ["–" if share is None else f"{float(share) * 100:.0f}" for share in grid.right]
    return {
        "id": f"grid-{number}",
        "title": f"{SPLIT_WORDS[grid.split]}: {grid.metric}",
        "counts": counts,
        "size": f"{counted(len(kept), 'example')} by {counted(len(grid.columns), 'column')}",
        "columns": grid.columns,
        "fates": list(grid.fates),
        "right": f"{' → '.join(shares)} %",
        "rows": [_row(row, places) for row in rows if left == 0 or row in kept],
    }


def _row(row: GridRow, places: dict[str, int]) -> dict[str, Any]:
    return {
        "id": row.item.id,
        "index": places.get(row.item.id),
        "label": row.item.label,
        "marks": [_MARKS[mark] for mark in row.marks],
        "words": f"right in {row.marks.count('right')} of {len(row.marks)}",
        "flips": row.flips,
        "fate": row.fate,
    }


# ---- the skill ------------------------------------------------------------------------------------


def _skill(view: RunView) -> Iterable[tuple[str, list[dict[str, Any]]]]:
    files: dict[str, list[dict[str, Any]]] = {}
    for line in skill_lines(view, view.best):
        files.setdefault(line.file, []).append(_line(line))
    return files.items()


def _line(line: SkillLine) -> dict[str, Any]:
    origin = line.origin
    if origin is None:
        return {"number": line.number, "text": line.text, "place": "", "notes": []}
    edit = origin.edit
    notes = [f"decision {origin.decision.number}, {origin.decision.kind}: {origin.decision.reason}"]
    if edit is not None:
        notes += [
            f"why: {edit.rationale}" if edit.rationale else "",
            f"failures behind it: {listed(edit.cures, most=NAMED)}" if edit.cures else "",
            f"screen, alone on training examples: {edit.screen.counts}" if edit.screen is not None else "",
            credit_words("on validation", edit.credit),
        ]
    notes += [f"before, from {place}: {text}" for text, place in origin.before]
    place = origin.decision.place
    return {"number": line.number, "text": line.text, "place": place, "notes": [note for note in notes if note]}


# ---- spend ----------------------------------------------------------------------------------------


def _spent(view: RunView) -> dict[str, Any]:
    heads = (
        ("role", "text"),
        ("stage", "text"),
        *(
            (name, "number")
            for name in ("charged calls", "sent calls", "prompt tokens", "reply tokens", "cost", "seconds")
        ),
    )
    rows, spent = [], view.spent or ()
    for each in spent:
        counts = (each.calls, each.sent, each.prompt, each.completion)
        cost = {"text": _cost(each.cost), "value": each.cost or 0}
        seconds = {"text": f"{each.seconds:,.1f}" if each.seconds else "", "value": each.seconds}
        names = [{"text": name, "value": None} for name in (each.role, each.stage)]
        rows.append([*names, *({"text": f"{count:,}", "value": count} for count in counts), cost, seconds])
    sums = [sum(column) for column in zip(*((e.calls, e.sent, e.prompt, e.completion) for e in spent), strict=True)]
    whole = None if any(each.cost is None for each in spent) else sum(each.cost or 0 for each in spent)
    every = f"{sum(each.seconds for each in spent):,.1f}"
    total = ["total", "", *(f"{count:,}" for count in sums), _cost(whole), every]
    return {"spent_heads": heads, "spent": rows, "spent_total": total, "unstaged": _unstaged(view.lock, sums)}


def _unstaged(lock: Lock | None, sums: Sequence[int]) -> str:
    """Return how many charged calls no stage has; empty for none."""
    other = lock.charged.calls - sums[0] if lock is not None and sums else 0
    return f"{counted(other, 'further charged call')} of other optimizers have no stage." if other > 0 else ""


def _cost(nano: int | None) -> str:
    return dollars(None if nano is None else Fraction(nano, _NANO))


def _charged(lock: Lock | None) -> str:
    if lock is None:
        return ""
    charged = lock.charged
    tokens_ = f"{charged.prompt_tokens:,} prompt tokens, {charged.reply_tokens:,} reply tokens"
    return f"{counted(charged.calls, 'call')}, {tokens_}, {dollars(charged.cost)}"

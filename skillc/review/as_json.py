"""A report as JSON: what `skillc report --format json` writes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from fractions import Fraction
from typing import Any, Literal

from pydantic import JsonValue

from skillc.document.skill import for_target
from skillc.items.grid import grid_of
from skillc.items.record import SPLITS
from skillc.items.report import shown_metrics
from skillc.json_values import rounded
from skillc.plan.lock import ArmLock
from skillc.review.confidence import confidence_lines
from skillc.review.curve import Estimate, arm_estimate, curve_of
from skillc.review.decisions import Bound, Decision, ProposedEdit
from skillc.review.origins import skill_lines
from skillc.review.remarks import remarks_on
from skillc.review.run_view import RunView
from skillc.review.saved import saved_by
from skillc.review.stored import NO_SKILL

FORMAT_VERSION = 1


def report_json(view: RunView) -> dict[str, JsonValue]:
    """Return a run as one object: means are numbers to six digits, intervals and bounds `[low, high]`."""
    lock, goal = view.lock, view.plan.goal
    remarks = remarks_on(view.items)
    return {
        "format_version": FORMAT_VERSION,
        "skill": view.name,
        "program": view.program.name,
        "run": view.run,
        "goal": {"name": goal.name, "low": rounded(goal.low), "high": rounded(goal.high), "unit": goal.unit},
        "verdict": None if lock is None else lock.verdict,
        "reason": None if lock is None else lock.reason,
        "stopped": None if lock is None else lock.stopped,
        "delivered": view.delivered,
        "confidence": list(confidence_lines(lock, goal)),
        "gain": None if lock is None else _gain(view),
        "noise": None if lock is None or lock.validation.null_arm is None else _noise(view),
        "results": [] if lock is None else _results(view),
        "curve": _curve(view),
        "decisions": [_decision(each) for each in view.decisions],
        "examples": _examples(view),
        "warnings": list(remarks.warnings),
        "remarks": list(remarks.notes),
        "lines": [
            {
                "file": each.file,
                "line": each.number,
                "text": each.text,
                "decision": None if each.origin is None else each.origin.decision.number,
            }
            for each in skill_lines(view, view.best)
        ],
        "texts": {name: for_target(skill) for name, skill in view.skills.items() if name in (view.initial, view.best)},
        "initial": view.initial,
        "best": view.best,
        "spent": None if view.spent is None else [_spent(asdict(each)) for each in view.spent],
        "wall_seconds": None
        if view.seconds is None
        else {stage: round(seconds, 3) for stage, seconds in view.seconds.items()},
        "saved": asdict(saved_by(view)),
        "missing": list(view.missing),
    }


def _gain(view: RunView) -> JsonValue:
    assert view.lock is not None
    test = view.lock.test
    return {
        "split": "test",
        "mean": rounded(test.gain),
        "interval": None if test.interval is None else [rounded(end) for end in test.interval],
        "level": None if test.alpha is None else rounded(1 - test.alpha),
        "p": rounded(test.p),
        "n": test.n,
        "groups": test.groups,
        "look": test.look,
        "smallest_detectable": rounded(test.smallest_detectable),
    }


def _noise(view: RunView) -> JsonValue:
    assert view.lock is not None
    found = view.lock.validation.null_arm
    assert found is not None
    return {"n": found.n, "changed": found.changed, "margin": rounded(found.margin)}


def _results(view: RunView) -> JsonValue:
    assert view.lock is not None
    digests = {"none": NO_SKILL, "initial": view.initial, "best": view.best}
    splits: tuple[Literal["validation", "test"], ...] = ("validation", "test")
    return [
        {
            "arm": name,
            "split": split,
            "selected_on": split == "validation",
            **_arm(view, digest, split, getattr(getattr(view.lock, split), name)),
        }
        for name, digest in digests.items()
        for split in splits
    ]


def _arm(view: RunView, skill: str, split: Literal["validation", "test"], arm: ArmLock) -> dict[str, JsonValue]:
    if arm.mean is None:
        return {"mean": None, "interval": None, "n": arm.n}
    return _estimate(arm_estimate(view, skill, split, arm.mean, arm.n))


def _estimate(each: Estimate) -> dict[str, JsonValue]:
    interval: JsonValue = None if each.interval is None else [rounded(end) for end in each.interval]
    return {"mean": rounded(each.mean), "interval": interval, "n": each.n}


def _curve(view: RunView) -> list[JsonValue]:
    """Return a row for the start and for each decision."""
    return [
        {
            "decision": None if point.decision is None else point.decision.number,
            "place": "start" if point.decision is None else point.decision.place,
            "incumbent": None if point.incumbent is None else _estimate(point.incumbent),
            "changed": point.changed,
            "candidate": _bound(point.candidate),
        }
        for point in curve_of(view).points
    ]


def _decision(each: Decision) -> JsonValue:
    return {
        **{
            name: getattr(each, name)
            for name in ("number", "place", "epoch", "kind", "maker", "incumbent", "candidate", "result", "reason")
        },
        **{name: getattr(each, name) for name in ("blame", "brief", "gains", "losses", "evaluated", "of", "tokens")},
        "gates": [{"name": gate.name, "truth": gate.truth, "drawn": gate.drawn} for gate in each.gates],
        "goal": _bound(each.goal),
        "incumbent_goal": _bound(each.incumbent_goal),
        "completed": _bound(each.completed),
        "edits": [_edit(edit) for edit in each.edits],
        "others": [_edit(edit) for edit in each.others],
        "drafts": [asdict(draft) for draft in each.drafts],
        "shared": None if each.shared is None else _plain(asdict(each.shared)),
        "section": each.section,
        "guidance": each.guidance,
        "sections": dict(each.sections),
    }


def _edit(each: ProposedEdit) -> JsonValue:
    names = ("words", "rationale", "rule", "report", "fate", "why", "opposite")
    return {
        **{name: getattr(each, name) for name in names},
        "cures": list(each.cures),
        "screen": None if each.screen is None else _plain(asdict(each.screen)),
        "credit": None if each.credit is None else _plain(asdict(each.credit)),
    }


def _examples(view: RunView) -> JsonValue:
    """Return the grid of each split and metric; None without a record."""
    items = view.items
    if items is None:
        return None
    found: list[JsonValue] = []
    for split in SPLITS:
        for metric in shown_metrics(items):
            grid = grid_of(items, split, metric)
            rows: list[JsonValue] = [
                {
                    "id": row.item.id,
                    "group": row.item.group,
                    "marks": list(row.marks),
                    "flips": row.flips,
                    "fate": row.fate,
                }
                for row in grid.rows
            ]
            head: dict[str, JsonValue] = {"split": split, "metric": metric, "columns": list(grid.columns)}
            found.append({**head, "fates": {str(name): count for name, count in grid.fates.items()}, "rows": rows})
    return found


def _bound(bound: Bound | None) -> JsonValue:
    return None if bound is None else [rounded(bound.low), rounded(bound.high)]


def _spent(row: Mapping[str, Any]) -> JsonValue:
    return {
        **{name: row[name] for name in ("role", "stage", "calls", "sent")},
        "prompt_tokens": row["prompt"],
        "reply_tokens": row["completion"],
        "cost_nano": row["cost"],
        "rollout_seconds": round(row["seconds"], 3),
    }


def _plain(value: Mapping[str, Any]) -> JsonValue:
    """Return values that JSON has."""
    return {
        name: list(each) if isinstance(each, tuple) else rounded(each) if isinstance(each, Fraction) else each
        for name, each in value.items()
    }

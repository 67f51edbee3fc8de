"""A task with several outputs, or a JSON output, one output or key at a time."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace

from skillc.models.rulebook.briefs import Brief, Case
from skillc.models.rulebook.extract import copied, values_of

_MOST_VALUES = 12
_BOOLS = ("true", "false")


@dataclass(frozen=True, slots=True)
class Slot:
    """An output or a key of a JSON output, with the type that the task declares for it, `json` for a key."""

    name: str
    kind: str


def is_structured(brief: Brief) -> bool:
    """Whether an answer has several parts, so that a sentence must name the one it is about."""
    return len(brief.outputs) > 1 or any(kind == "json" for _, kind in brief.outputs)


def slots_of(brief: Brief) -> list[Slot]:
    """The parts of an answer: the outputs, and the keys that right answers have in place of a JSON output."""
    kinds = dict(brief.outputs)
    found = [Slot(name, kind) for name, kind in brief.outputs if kind != "json"]
    if "json" in kinds.values():
        keys = dict.fromkeys(key for case in brief.cases for key in values_of(case.right, brief))
        found += [Slot(key, "json") for key in keys if key not in kinds]
    return found


def label_view(brief: Brief, slot: Slot, cases: Sequence[Case]) -> Brief | None:
    """The prompt as one about labels, for an output or key that has few values; None where it has many."""
    named = is_structured(brief)
    viewed = []
    for case in cases:
        gold = _label(values_of(case.right, brief).get(slot.name), slot, named=named)
        if gold is None:
            continue
        answer = _label(values_of(case.said, brief).get(slot.name), slot, named=named) or ""
        viewed.append(replace(case, gold=gold, answer=answer))
    values = sorted({case.gold for case in viewed if case.gold})
    few = len(values) <= _MOST_VALUES and (slot.kind in ("labels", "bool") or 2 * len(values) <= len(viewed))
    if not viewed or not few or (slot.kind == "json" and 2 * copied(brief, cases, slot.name, slot.kind) > len(viewed)):
        return None
    known = {
        answer for _, rule in brief.lines if _about(answer := rule.answer, named=named) == _head(slot, named=named)
    }
    labels = tuple(sorted({*values, *known}))
    lines = tuple(line for line in brief.lines if line[1].answer in labels)
    return replace(brief, cases=tuple(viewed), labels=labels, lines=lines)


def _head(slot: Slot, *, named: bool) -> str:
    return f"{slot.name} with " if named else ""


def _about(answer: str, *, named: bool) -> str:
    return f"{answer.partition(' with ')[0]} with " if named else ""


def _label(value: object, slot: Slot, *, named: bool) -> str | None:
    """A value as the answer of a rule: `priority with high`; None where a rule can't say it."""
    if value is None or isinstance(value, list | dict):
        return None
    text = value if isinstance(value, str) else json.dumps(value)
    if slot.kind == "json" and isinstance(value, str) and (_is_json(text) or '"' in text or len(text) > 40):
        return None
    return _head(slot, named=named) + text


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except json.JSONDecodeError:
        return False
    return True

"""The recorded rollouts of a run, packed so that a page can show any example under any two skills."""

from __future__ import annotations

import base64
import gzip
import json
import zlib
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any

from skillc.dataclass import dataclass
from skillc.json_values import as_text
from skillc.optimize.rollouts import Outcome
from skillc.outcomes import MICRO, Example, Scored
from skillc.plan.schema import Plan
from skillc.review.confidence import score
from skillc.review.run_view import RunView
from skillc.review.stored import NO_SKILL

_MOST = 4000
_ORDER = ("validation", "test", "train")
# How often the packed size is measured, in rollouts.
_EVERY = 40


@dataclass(frozen=True, slots=True)
class Compared:
    """What a page can compare.

    Attributes:
        skills: digests: no skill, then the incumbents, then the other candidates.
        examples: ids, those of validation first.
    """

    skills: tuple[str, ...]
    examples: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Packed:
    """Packed rollouts: gzip in base64, how many are in it, and how many there are."""

    text: str
    kept: int
    of: int


def compared(view: RunView) -> Compared:
    """Return the skills and examples that have a recorded rollout."""
    keys = list(view.outcomes or ())
    used, examples = {skill for skill, _, _ in keys}, {example for _, example, _ in keys}
    candidates = (each.candidate for each in view.decisions if each.candidate)
    order = dict.fromkeys((NO_SKILL, *view.versions, view.best, *candidates))
    names = [name for name, each in view.examples.items() if name in examples]
    names.sort(key=lambda name: _ORDER.index(view.examples[name].split))
    return Compared(tuple(skill for skill in order if skill in used), tuple(names))


def pack(view: RunView, found: Compared, most: int) -> Packed:
    """Pack the first sample of each rollout into at most `most` characters.

    The initial and the compiled skill come first, then no skill, the other incumbents, and the candidates.
    """
    squeezed = zlib.compressobj(9)
    texts: dict[str, int] = {}
    places: dict[str, int] = {}
    examples = [_example(view, name) for name in found.examples]
    size = len(squeezed.compress(json.dumps(examples).encode()))
    # Base64 is a third longer, and the places are packed as well.
    bytes_left = most * 3 // 4
    total, full = 0, False
    for skill, example in _by_weight(view, found):
        outcome = view.outcome(found.skills[skill], found.examples[example])
        if outcome is None:
            continue
        total += 1
        if full:
            continue
        text = json.dumps(_rollout(view.plan, outcome), sort_keys=True)
        if text not in texts:
            size += len(squeezed.compress(text.encode()))
            if len(texts) % _EVERY == 0:
                size += len(squeezed.flush(zlib.Z_SYNC_FLUSH))
            # What the last few add is not known exactly, so a tenth is kept free.
            full = size + 4 * len(places) > bytes_left * 9 // 10
            if full:
                continue
            texts[text] = len(texts)
        places[f"{skill} {example}"] = texts[text]
    whole = f'{{"examples":{json.dumps(examples)},"places":{json.dumps(places)},"rollouts":[{",".join(texts)}]}}'
    return Packed(base64.b64encode(gzip.compress(whole.encode(), 9, mtime=0)).decode(), len(places), total)


def _by_weight(view: RunView, found: Compared) -> Iterator[tuple[int, int]]:
    """Yield the places of all pairs of skill and example, those that are most asked for first."""
    first = (view.initial, view.best, NO_SKILL, *view.versions)
    order = sorted(found.skills, key=lambda name: first.index(name) if name in first else len(first))
    for name in order:
        skill = found.skills.index(name)
        yield from ((skill, example) for example in range(len(found.examples)))


def _example(view: RunView, name: str) -> dict[str, Any]:
    placed = view.examples[name]
    gold = {key: value for key, value in placed.example.gold.items() if value is not None}
    return {"split": placed.split, "text": _inputs(placed.example), "gold": _cut(json.dumps(gold)) if gold else ""}


def _inputs(example: Example) -> str:
    values = {**example.inputs, **dict(example.labels)}
    if len(values) == 1:
        return _cut(as_text(next(iter(values.values()))))
    return _cut("\n".join(f"{name}: {as_text(value)}" for name, value in values.items()))


def _rollout(plan: Plan, outcome: Outcome) -> dict[str, Any]:
    trajectory = outcome.trajectory
    turns = f"{trajectory.turns} turns, " if trajectory.turns != 1 else ""
    return {
        "score": _scores(plan, outcome),
        "facts": f"{turns}{trajectory.tokens:,} tokens, {trajectory.seconds:.1f} s",
        "answer": "" if trajectory.answer is None else _cut(json.dumps(trajectory.answer, indent=1)),
        "feedback": _cut("\n".join(filter(None, (trajectory.problem, outcome.feedback, outcome.failure)))),
        "steps": [_step(step) for step in _steps(outcome)],
    }


def _steps(outcome: Outcome) -> Sequence[Any]:
    steps = outcome.trajectory.to_json()["steps"]
    return steps if isinstance(steps, list) else ()


def _step(step: Any) -> list[Any]:
    return [_cut(each) if isinstance(each, str) else each for each in step]


def _scores(plan: Plan, outcome: Outcome) -> str:
    texts = []
    for metric in plan.metrics:
        cell = outcome.cells.get(metric.name)
        if isinstance(cell, Scored):
            texts.append(f"{metric.name} {score(Fraction(cell.value, MICRO), metric)}")
        elif cell is not None:
            texts.append(f"{metric.name} unmeasured ({cell.kind})")
    return ", ".join(texts)


def _cut(text: str) -> str:
    return text if len(text) <= _MOST else f"{text[: _MOST - 1]}…"

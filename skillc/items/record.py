"""The cells of a run by item and version of the skill, collected when it is finished, without a call."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal, Protocol, TypeAlias

from pydantic import JsonValue

from skillc.data.dataset import Dataset
from skillc.dataclass import dataclass
from skillc.errors import SkillcError
from skillc.files import write_atomically
from skillc.gates.terms import metrics_read
from skillc.json_values import as_text
from skillc.optimize.rollouts import Outcome
from skillc.outcomes import MICRO, Example, Scored, Unmeasured
from skillc.plan.judges import may_compare, reads_judge
from skillc.plan.schema import Plan

SplitName = Literal["train", "validation", "test"]
SPLITS: tuple[SplitName, ...] = ("train", "validation", "test")
_FILE = "items.json"
_FORMAT = 1
_LABEL = 160

Score: TypeAlias = int | str | None
"""A score in millionths, the kind of failure of an unmeasured rollout, or None where nothing was run."""


@dataclass(frozen=True, slots=True)
class Version:
    """A skill that was the incumbent.

    Attributes:
        digest: of the document, as in the history.
        place: where it was accepted: `start`, `step 3/5`.
        decision: the number of its decision, 0 for the initial skill.
    """

    digest: str
    place: str
    decision: int


@dataclass(frozen=True, slots=True)
class Measure:
    """A metric of the program.

    Attributes:
        judged: whether it reads a judge, or is a noisy signal.
        truth: whether code compares it with right answers, and the goal does not read it.
        in_goal: whether it is the goal, or the goal reads it.
        in_gates: whether a gate or a `require` reads it.
        signal: whether it is a noisy signal with declared error rates.
    """

    name: str
    low: Fraction
    high: Fraction
    judged: bool
    truth: bool
    in_goal: bool
    in_gates: bool
    signal: bool = False

    def share(self, score: int) -> Fraction:
        """Return a score as a share of the range, from 0 to 1."""
        return (Fraction(score, MICRO) - self.low) / (self.high - self.low)

    def is_right(self, score: int) -> bool:
        """Return whether a score is the best value."""
        return score >= self.high * MICRO


@dataclass(frozen=True, slots=True)
class Item:
    """One example.

    Attributes:
        label: the beginning of its first input.
        cells: a score by metric, for each version.
    """

    id: str
    split: SplitName
    group: str
    label: str
    cells: Mapping[str, tuple[Score, ...]]


@dataclass(frozen=True, slots=True)
class RunItems:
    """All cells of a run.

    Attributes:
        goal: the name of the goal.
        measures: the metrics, in the program's order.
        versions: in the order in which they became the incumbent, the initial skill first.
        epochs: for each epoch its number, and the indices of its incumbents in order.
        compiled: the index of the best skill.
        sizes: examples by split; of test only after its final test.
        items: those of them that were run.
    """

    run: str
    goal: str
    measures: tuple[Measure, ...]
    versions: tuple[Version, ...]
    epochs: tuple[tuple[int, tuple[int, ...]], ...]
    compiled: int
    sizes: Mapping[str, int]
    items: tuple[Item, ...]

    def measure(self, name: str) -> Measure:
        """Return a metric by its name.

        Raises:
            SkillcError: there is no such metric.
        """
        found = next((each for each in self.measures if each.name == name), None)
        if found is None:
            names = ", ".join(f"`{each.name}`" for each in self.measures)
            raise SkillcError(f"the program has no metric `{name}`", hint=f"valid metrics: {names}")
        return found

    def of(self, split: SplitName) -> tuple[Item, ...]:
        """Return the items of a split."""
        return tuple(item for item in self.items if item.split == split)


class Recorded(Protocol):
    """Rollouts by the digest of their skill: those of a run at work, or of a store."""

    def outcome(self, skill: str, example: str, sample: int = 0) -> Outcome | None:
        """Return a rollout, or None."""

    def examples(self) -> frozenset[str]:
        """Return the ids of the examples that any skill was run on."""


def collect_items(
    run: str,
    plan: Plan,
    dataset: Dataset,
    rollouts: Recorded,
    decisions: Sequence[Mapping[str, JsonValue]],
    *,
    initial: str,
    best: str,
    tested: bool,
) -> RunItems:
    """Return the cells of a run.

    Args:
        run: its id.
        plan: its plan.
        dataset: its examples.
        rollouts: all outcomes.
        decisions: of the history.
        initial: digest of the initial skill.
        best: digest of the best skill.
        tested: whether the final test was made.
    """
    versions, epochs = _versions(initial, best, decisions)
    splits: list[tuple[SplitName, Sequence[Example]]] = [("train", dataset.train), ("validation", dataset.validation)]
    if tested:
        splits.append(("test", dataset.test))
    measures = measures_of(plan)
    names = [each.name for each in measures]
    ran, samples = rollouts.examples(), plan.optimize.samples
    made = [
        _item(rollouts, example, split, versions, names, samples)
        for split, examples in splits
        for example in examples
        if example.id in ran
    ]
    return RunItems(
        run=run,
        goal=plan.goal.name,
        measures=measures,
        versions=versions,
        epochs=epochs,
        compiled=next(i for i, version in enumerate(versions) if version.digest == best),
        sizes={split: len(examples) for split, examples in splits},
        items=tuple(item for item in made if item is not None),
    )


def measures_of(plan: Plan) -> tuple[Measure, ...]:
    """Return the metrics of a plan that have a range, and what reads them."""
    goal = _read(plan, {plan.goal.name})
    conditions = [*(gate.term for gate in plan.gates), *(require.term for require in plan.requires)]
    gates = _read(plan, {name for term in conditions for name in metrics_read(term)})
    return tuple(
        Measure(
            name=metric.name,
            low=metric.low,
            high=metric.high,
            judged=reads_judge(plan, metric) or metric.rates is not None,
            truth=metric.name not in goal
            and not reads_judge(plan, metric)
            and any(may_compare(plan.metric(name)) for name in _read(plan, {metric.name})),
            in_goal=metric.name in goal,
            in_gates=metric.name in gates,
            signal=metric.rates is not None,
        )
        for metric in plan.metrics
        if metric.high > metric.low
    )


def _read(plan: Plan, names: set[str]) -> set[str]:
    """Return metrics, and all that they read."""
    for metric in reversed(plan.metrics):
        if metric.name in names:
            names = names | metrics_read(metric.term)
    return names


def _versions(
    initial: str, best: str, decisions: Sequence[Mapping[str, JsonValue]]
) -> tuple[tuple[Version, ...], tuple[tuple[int, tuple[int, ...]], ...]]:
    """Return the incumbents in order, each once, and their indices by epoch."""
    found = [Version(initial, "start", 0)]
    index = {found[0].digest: 0}

    def add(name: str, place: str, decision: int) -> int:
        if name not in index:
            index[name] = len(found)
            found.append(Version(name, place, decision))
        return index[name]

    epochs: dict[int, list[int]] = {}
    for decision in decisions:
        number, epoch = decision.get("decision"), decision.get("epoch")
        if not isinstance(number, int) or not isinstance(epoch, int):
            continue
        # The batch of a step is rolled out under the skill that its decision is made against.
        active, used = add(str(decision.get("incumbent")), "start", 0), epochs.setdefault(epoch, [])
        if active not in used[-1:]:
            used.append(active)
        if decision.get("result") == "accept":
            add(str(decision.get("candidate")), str(decision.get("place")), number)
    add(best, "best", 0)
    return tuple(found), tuple((epoch, tuple(used)) for epoch, used in epochs.items())


def _item(
    rollouts: Recorded,
    example: Example,
    split: SplitName,
    versions: Sequence[Version],
    metrics: Sequence[str],
    samples: int,
) -> Item | None:
    """Return the cells of an example, None if no version was run on it."""
    outcomes = [
        [found for sample in range(samples) if (found := rollouts.outcome(version.digest, example.id, sample))]
        for version in versions
    ]
    if not any(outcomes):
        return None
    cells = {name: tuple(score_of(each, name) for each in outcomes) for name in metrics}
    first = next(iter(example.inputs), "")
    label = example.labels.get(first) or as_text(example.inputs.get(first))
    text = " ".join(label.split())
    return Item(
        example.id, split, example.group, text if len(text) <= _LABEL else f"{text[: _LABEL - 1].rstrip()}…", cells
    )


def score_of(outcomes: Sequence[Outcome], metric: str) -> Score:
    """Return the mean of the measured samples of a cell; training examples often have the first one alone."""
    cells = [outcome.cells[metric] for outcome in outcomes]
    scores = [cell.value for cell in cells if isinstance(cell, Scored)]
    if scores:
        return round(Fraction(sum(scores), len(scores)))
    return next((cell.kind for cell in cells if isinstance(cell, Unmeasured)), None)


# ---- the file beside the store --------------------------------------------------------------------


def write_items(folder: Path, items: RunItems) -> None:
    """Write the record into the folder of its run.

    Raises:
        SkillcError: it cannot be written.
    """
    try:
        write_atomically(folder / _FILE, json.dumps(_to_json(items), sort_keys=True, ensure_ascii=False) + "\n")
    except OSError as problem:
        raise SkillcError(f"`{folder / _FILE}` cannot be written: {problem.strerror}") from problem


def read_items(folder: Path) -> RunItems | None:
    """Return the record of a run, None if it has none.

    Raises:
        SkillcError: it is damaged, or a newer skillc wrote it.
    """
    path = folder / _FILE
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
        if value["format_version"] > _FORMAT:
            raise SkillcError(f"`{path}` was written by a newer skillc", hint="update skillc")
        return _from_json(value)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError) as problem:
        raise SkillcError(
            f"`{path}` is damaged: {problem}", hint="remove it and run the same compile again, which calls no model"
        ) from problem


def _to_json(items: RunItems) -> dict[str, Any]:
    return {
        "format_version": _FORMAT,
        "run": items.run,
        "goal": items.goal,
        "measures": [
            {
                "name": each.name,
                "low": str(each.low),
                "high": str(each.high),
                "judged": each.judged,
                "truth": each.truth,
                "in_goal": each.in_goal,
                "in_gates": each.in_gates,
                **({"signal": True} if each.signal else {}),
            }
            for each in items.measures
        ],
        "versions": [[each.digest, each.place, each.decision] for each in items.versions],
        "epochs": [[number, list(used)] for number, used in items.epochs],
        "compiled": items.compiled,
        "sizes": dict(items.sizes),
        "items": [
            {
                "id": each.id,
                "split": each.split,
                "group": each.group,
                "label": each.label,
                "cells": {name: list(scores) for name, scores in each.cells.items()},
            }
            for each in items.items
        ],
    }


def _from_json(value: Any) -> RunItems:
    return RunItems(
        run=value["run"],
        goal=value["goal"],
        measures=tuple(
            Measure(**{**each, "low": Fraction(each["low"]), "high": Fraction(each["high"])})
            for each in value["measures"]
        ),
        versions=tuple(Version(*each) for each in value["versions"]),
        epochs=tuple((number, tuple(used)) for number, used in value["epochs"]),
        compiled=value["compiled"],
        sizes=value["sizes"],
        items=tuple(
            Item(
                each["id"],
                each["split"],
                each["group"],
                each["label"],
                {name: tuple(scores) for name, scores in each["cells"].items()},
            )
            for each in value["items"]
        ),
    )

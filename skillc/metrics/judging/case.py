"""What a judge reads of one rollout."""

from __future__ import annotations

from dataclasses import dataclass

from pydantic import JsonValue

from skillc.json_values import JsonObject, as_text
from skillc.outcomes import Example
from skillc.plan.judges import JudgePlan
from skillc.plan.schema import Plan
from skillc.trajectories.trajectory import Trajectory, render


@dataclass(frozen=True, slots=True)
class Case:
    """One output, and what is shown beside it, as texts.

    Attributes:
        id: of the example.
        inputs: name and text of each input of the task.
        output: name of the judged output.
        answer: its value.
        gold: the right answers, if the rubric sees them and the example has any.
        trajectory: the steps of the rollout, if the rubric sees them.
        reference: what the answer is compared with; None without a comparison.
    """

    id: str
    inputs: tuple[tuple[str, str], ...]
    output: str
    answer: str
    gold: tuple[str, ...] = ()
    trajectory: str | None = None
    reference: str | None = None


def case_of(
    plan: Plan, judge: JudgePlan, example: Example, trajectory: Trajectory, reference: JsonObject | None = None
) -> Case:
    """Return what a judge reads of a rollout with an answer.

    Args:
        plan: the program.
        judge: which output is judged, and what the rubric sees.
        example: with the inputs and the right answer.
        trajectory: the rollout.
        reference: values by output to compare with; by default the right answer, if the judge compares with it.
    """
    golds = _golds(plan, judge.output, example.gold)
    shown = example.labels
    compared = reference.get(judge.output) if reference is not None else None
    return Case(
        id=example.id,
        inputs=tuple(
            (field.name, shown.get(field.name) or shown_text(example.inputs.get(field.name)))
            for field in plan.task.inputs
        ),
        output=judge.output,
        answer=shown_text((trajectory.answer or {}).get(judge.output)),
        gold=golds if "gold" in judge.rubric.sees else (),
        trajectory=render(trajectory, plan.optimize.trajectory_limit) if "trajectory" in judge.rubric.sees else None,
        reference=None
        if judge.against is None
        else shown_text(compared)
        if reference is not None
        else next(iter(golds), None),
    )


def _golds(plan: Plan, output: str, gold: JsonObject) -> tuple[str, ...]:
    """Return the right answers as texts; a list means several, unless the output is a list."""
    value = gold.get(output)
    field = next(each for each in plan.task.outputs if each.name == output)
    several = value if isinstance(value, list) and field.type.kind != "list" else [value]
    return tuple(shown_text(each) for each in several if each is not None)


def shown_text(value: JsonValue) -> str:
    """Return a value as a judge reads it; empty for None."""
    return "" if value is None else as_text(value)

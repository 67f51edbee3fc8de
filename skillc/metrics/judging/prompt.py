"""What a judge reads of one rollout, and the messages to it.

The system message has the rubric and is the same for all cases, so that a server's prefix cache hits. Every text of a
case is between lines with a code that is a digest of all texts of the case: no text can contain it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from jinja2 import Template
from pydantic import JsonValue

from skillc.dataclass import dataclass
from skillc.files import templates
from skillc.json_values import JsonObject, as_text, canonical
from skillc.models.calls import Message
from skillc.outcomes import Example
from skillc.plan.judges import JudgePlan
from skillc.plan.schema import CriterionPlan, Plan, RubricPlan
from skillc.trajectories.trajectory import Trajectory, render

_PROMPTS = Path(__file__).parent / "prompts"
_CODE = 12
A, B, TIE = "A", "B", "tie"
YES, NO = "yes", "no"


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

    `reference` has the values by output to compare with; by default the right answer, if the judge compares with it.
    """
    golds = tuple(map(shown_text, right_answers(plan, judge.output, example.gold)))
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


def right_answers(plan: Plan, output: str, gold: JsonObject) -> list[JsonValue]:
    """Return the right answers of an example; a list means several, unless the output is a list."""
    value = gold.get(output)
    field = next(each for each in plan.task.outputs if each.name == output)
    several = value if isinstance(value, list) and field.type.kind != "list" else [value]
    return [each for each in several if each is not None]


def shown_text(value: JsonValue) -> str:
    """Return a value as a judge reads it; empty for None."""
    return "" if value is None else as_text(value)


@cache
def prompt_digest() -> str:
    """Return the digest of all templates; it belongs to the identity of a run with judges."""
    texts = sorted((path.name, path.read_text(encoding="utf-8")) for path in _PROMPTS.glob("*.j2"))
    return hashlib.sha256(repr(texts).encode()).hexdigest()


def judge_messages(rubric: RubricPlan, case: Case, *, swapped: bool = False) -> tuple[Message, ...]:
    """Ask for a verdict on a case; on a case with a reference, which of the two is better.

    If `swapped`, the reference is A in a comparison, and otherwise criteria and levels are in reverse order.
    """
    pair = case.reference is not None
    criteria = _reversed(rubric.criteria) if swapped and not pair else rubric.criteria
    key = "better" if pair else "level"
    system = _template("system").render(
        pair=pair, criteria=criteria, key=key, example=_example(criteria, key), choices=_choices(criteria, pair)
    )
    code = case_code(rubric, case)
    text = _template("case").render(
        code=code, texts=_texts(case, swapped), subject="the answers A and B" if pair else "the answer"
    )
    return Message("system", system.strip()), Message("user", text.strip())


def again_messages(messages: tuple[Message, ...], reply: str, problem: str) -> tuple[Message, ...]:
    """Append an unusable reply and its problem."""
    again = _template("again").render(problem=problem).strip()
    return (*messages, Message("assistant", reply.strip() or "(empty)"), Message("user", again))


def case_code(rubric: RubricPlan, case: Case) -> str:
    """Return the code of a case, which occurs in none of its texts."""
    return code_of([rubric.model_dump(mode="json"), *_texts(case, False)])


def code_of(texts: Sequence[JsonValue | tuple[str, str]]) -> str:
    """Return a code that depends on all texts and occurs in none of them."""
    whole = canonical([list(each) if isinstance(each, tuple) else each for each in texts])
    return next(
        code
        for salt in range(2**20)
        if (code := hashlib.sha256(f"{salt} {whole}".encode(errors="surrogatepass")).hexdigest()[:_CODE]) not in whole
    )


def _texts(case: Case, swapped: bool) -> list[tuple[str, str]]:
    """Return title and text of each part of a case."""
    found = [(f"input {name}", text) for name, text in case.inputs]
    found += [("right answer" if i == 0 else "or this right answer", text) for i, text in enumerate(case.gold)]
    if case.trajectory is not None:
        found.append(("what the assistant did", case.trajectory))
    if case.reference is None:
        return [*found, (f"answer {case.output}", case.answer)]
    first, second = (case.reference, case.answer) if swapped else (case.answer, case.reference)
    return [*found, (f"answer A {case.output}", first), (f"answer B {case.output}", second)]


def _reversed(criteria: tuple[CriterionPlan, ...]) -> tuple[CriterionPlan, ...]:
    return tuple(each.model_copy(update={"levels": each.levels[::-1]}) for each in reversed(criteria))


def _example(criteria: tuple[CriterionPlan, ...], key: str) -> str:
    entries = []
    for each in criteria:
        named = f'"criterion": "{each.name}", ' if each.name else ""
        entries.append(f'{{{named}"reason": "...", "{key}": ...}}')
    return ", ".join(entries)


def _choices(criteria: tuple[CriterionPlan, ...], pair: bool) -> str:
    if pair:
        return f'"{A}", "{B}" or "{TIE}"'
    if len(criteria) > 1:
        return 'the number of a level, or "yes" or "no" where the criterion has none'
    levels = [str(level) for level, _ in criteria[0].levels]
    return f'"{YES}" or "{NO}"' if not levels else f"{', '.join(levels[:-1])} or {levels[-1]}"


@cache
def _template(name: str) -> Template:
    return templates(_PROMPTS).get_template(f"{name}.j2")

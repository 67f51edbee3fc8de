"""Examples with the same inputs but for case, blanks and punctuation: on two sides, or with two answers."""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from pydantic import JsonValue

from skillc.data.dataset import Dataset
from skillc.data.examples import SIDES, Example, Side
from skillc.diagnostics.diagnostic import Severity
from skillc.lint.places import place_of, source_of
from skillc.plan.advice import Advice
from skillc.plan.schema import Plan
from skillc.text import counted, joined

_BETWEEN = re.compile(r"[\W_]+")
_CLOSED = frozenset({"labels", "bool", "number", "integer"})

Member = tuple[Side, Example]


def twins(plan: Plan, dataset: Dataset) -> Iterator[Advice]:
    """What inputs that are nearly the same give reason to say. Inputs that are the same to the letter are not counted.

    Those never stand on two sides (`dataset.load` sees to that), and two answers to one of them are told there.
    """
    alike: dict[str, list[Member]] = defaultdict(list)
    for side in SIDES:
        for example in getattr(dataset, side):
            alike[normal(example.inputs)].append((side, example))
    several = [members for members in alike.values() if len(members) > 1 and _differ(members)]
    yield from _on_two_sides(plan, dataset, several)
    yield from _with_two_answers(plan, dataset, several)


def normal(inputs: Mapping[str, JsonValue]) -> str:
    """What is left of inputs without case, blanks and punctuation; two that differ in anything else differ here."""
    return "\0".join(f"{name}={_normal(value)}" for name, value in inputs.items())


def _normal(value: JsonValue) -> str:
    if not isinstance(value, str):
        return repr(value)
    text = value if value.isascii() else unicodedata.normalize("NFKC", value)
    # Of a text without a letter or digit the signs are all there is.
    return _BETWEEN.sub(" ", text.casefold()).strip() or value


def _differ(members: Sequence[Member]) -> bool:
    return any(one.inputs != other.inputs for (_, one), (_, other) in pairwise(members))


def _on_two_sides(plan: Plan, dataset: Dataset, several: Sequence[Sequence[Member]]) -> Iterator[Advice]:
    leaks = [members for members in several if len({side for side, _ in members}) > 1]
    if not leaks:
        return
    # The side that is decided on comes first: an example of train that stands on test is the worst.
    shared = {
        other: [m for m in leaks if {"train", other} <= {side for side, _ in m}] for other in ("test", "validation")
    }
    which, side = next(((m[0], s) for s, m in shared.items() if m), (leaks[0], None))
    one = next(member for member in which if member[0] == (side or which[0][0]))
    other = next(member for member in which if member[0] != one[0])
    examples = sum(sum(s != "train" for s, _ in members) for members in leaks)
    message = (
        f"{counted(examples, 'example')} {'stands' if examples == 1 else 'stand'} on two sides, case and signs aside: "
        f"{place_of(dataset, one[1])} ({one[0]}), {place_of(dataset, other[1])} ({other[0]})"
    )
    hint = "keep one of each, or give them one `group`: no group stands on two sides"
    yield Advice("SK430", Severity.WARNING, message, source_of(plan), hint)


def _with_two_answers(plan: Plan, dataset: Dataset, several: Sequence[Sequence[Member]]) -> Iterator[Advice]:
    for output in plan.task.outputs:
        if output.type.kind not in _CLOSED:
            continue
        found = [pair for members in several if (pair := _contradiction(members, output.name)) is not None]
        if not found:
            continue
        one, other = found[0]
        times = f"{counted(len(found), 'input')} {'has' if len(found) == 1 else 'have'}"
        message = (
            f"{times} two answers, case and signs aside: {place_of(dataset, one)} (`{_shown(one, output.name)}`), "
            f"{place_of(dataset, other)} (`{_shown(other, output.name)}`)"
        )
        hint = "correct one, or leave both out: no skill can have both right"
        yield Advice("SK431", Severity.WARNING, message, ("output", output.name, None), hint)


def _contradiction(members: Sequence[Member], output: str) -> tuple[Example, Example] | None:
    first = members[0][1]
    known = _answers(first, output)
    return next(((first, each) for _, each in members[1:] if not known & _answers(each, output)), None)


def _answers(example: Example, output: str) -> set[str]:
    """All answers that count as right."""
    gold = example.gold.get(output)
    return {repr(each) for each in (gold if isinstance(gold, list) else [gold])}


def _shown(example: Example, output: str) -> str:
    gold = example.gold.get(output)
    return joined([str(each) for each in gold], "or") if isinstance(gold, list) else str(gold)

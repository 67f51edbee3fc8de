"""Rules over examples: warnings from loading, near duplicates, labels, and columns that are mostly empty."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import pairwise

from pydantic import JsonValue

from skillc.data.dataset import Dataset
from skillc.data.problems import location_text, name_list
from skillc.data.split import SIDES, Side
from skillc.diagnostics.diagnostic import Diagnostic, Label
from skillc.lint.rules import DataFacts, note, rule, warning
from skillc.outcomes import Example
from skillc.plan.figures import share
from skillc.plan.schema import FieldPlan
from skillc.text import counted, joined

_BETWEEN = re.compile(r"[\W_]+")
_CLOSED = frozenset({"labels", "bool", "number", "integer"})
_MOST_ROWS = Fraction(1, 2)

Member = tuple[Side, Example]


def place_of(dataset: Dataset, example: Example) -> str:
    """Where an example was read: `` `tickets.jsonl` line 3 ``."""
    known = dataset.places.get(example.id)
    return location_text(*known) if known is not None else f"`{example.id}`"


def _source(facts: DataFacts) -> Label:
    """The setting that names the data."""
    return facts.at("data", None, "source" if facts.plan.data.source is not None else "train")


@rule(DataFacts, "SK439")
def load_warnings(facts: DataFacts) -> Iterator[Diagnostic]:
    """What the loader noticed."""
    for message in facts.dataset.warnings:
        yield note("SK439", _source(facts), message)


# ---- near duplicates ------------------------------------------------------------------------------


@rule(DataFacts, "SK430", "SK431")
def near_duplicates(facts: DataFacts) -> Iterator[Diagnostic]:
    """Examples whose inputs differ in case, blanks and punctuation only: on two sides, or with two answers.

    Equal inputs are left out: they are never on two sides (`dataset.load`), which also reports two answers to them.
    """
    alike: dict[str, list[Member]] = defaultdict(list)
    for side in SIDES:
        for example in getattr(facts.dataset, side):
            alike[normalise_inputs(example.inputs)].append((side, example))
    several = [members for members in alike.values() if len(members) > 1 and _differ(members)]
    yield from _on_two_sides(facts, several)
    yield from _with_two_answers(facts, several)


def normalise_inputs(inputs: Mapping[str, JsonValue]) -> str:
    """Return inputs without case, blanks and punctuation; two that differ in anything else differ here."""
    return "\0".join(f"{name}={_normal(value)}" for name, value in inputs.items())


def _normal(value: JsonValue) -> str:
    if not isinstance(value, str):
        return repr(value)
    text = value if value.isascii() else unicodedata.normalize("NFKC", value)
    # Of a text without a letter or digit the signs are all there is.
    return _BETWEEN.sub(" ", text.casefold()).strip() or value


def _differ(members: Sequence[Member]) -> bool:
    return any(one.inputs != other.inputs for (_, one), (_, other) in pairwise(members))


def _on_two_sides(facts: DataFacts, several: Sequence[Sequence[Member]]) -> Iterator[Diagnostic]:
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
        f"{place_of(facts.dataset, one[1])} ({one[0]}), {place_of(facts.dataset, other[1])} ({other[0]})"
    )
    hint = "keep one of each, or give them one `group`: no group stands on two sides"
    yield warning("SK430", _source(facts), message, hint)


def _with_two_answers(facts: DataFacts, several: Sequence[Sequence[Member]]) -> Iterator[Diagnostic]:
    for output in facts.plan.task.outputs:
        if output.type.kind not in _CLOSED:
            continue
        found = [pair for members in several if (pair := _contradiction(members, output.name)) is not None]
        if not found:
            continue
        one, other = found[0]
        times = f"{counted(len(found), 'input')} {'has' if len(found) == 1 else 'have'}"
        shown = (f"{place_of(facts.dataset, each)} (`{_shown(each, output.name)}`)" for each in (one, other))
        message = f"{times} two answers, case and signs aside: {', '.join(shown)}"
        hint = "correct one, or leave both out: no skill can have both right"
        yield warning("SK431", facts.at("output", output.name), message, hint)


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


# ---- labels and columns ---------------------------------------------------------------------------


@rule(DataFacts, "SK434", "SK435")
def labels(facts: DataFacts) -> Iterator[Diagnostic]:
    """Declared labels that no example has, or that only one side has."""
    for output in facts.plan.task.outputs:
        if output.type.kind != "labels":
            continue
        seen = {side: _counts(getattr(facts.dataset, side), output) for side in SIDES}
        every = sum(seen.values(), Counter[str]())
        at = facts.at("output", output.name)
        never = [label for label in output.type.labels if not every[label]]
        if never:
            message = f"no example has the label {name_list(never)}"
            yield note("SK434", at, message, "bring examples of it, or remove it")
        unlearnt = [label for label in output.type.labels if every[label] and not seen["train"][label]]
        if unlearnt:
            where = joined([side for side in SIDES if any(seen[side][label] for label in unlearnt)])
            message = (
                f"the label {name_list(unlearnt)} stands on {where} and not on train, so nothing can be learnt of it"
            )
            yield warning("SK435", at, message, "bring more of it, or choose another `seed`")
        untried = [label for label in output.type.labels if seen["train"][label] and not (every - seen["train"])[label]]
        if untried:
            message = f"the label {name_list(untried)} stands on train alone, so nothing tells whether it was learnt"
            yield note("SK435", at, message, "bring more of it, or choose another `seed`")


def _counts(examples: tuple[Example, ...], output: FieldPlan) -> Counter[str]:
    found: Counter[str] = Counter()
    for example in examples:
        gold = example.gold.get(output.name)
        found.update(each for each in (gold if isinstance(gold, list) else [gold]) if isinstance(each, str))
    return found


@rule(DataFacts, "SK436")
def empty_columns(facts: DataFacts) -> Iterator[Diagnostic]:
    """Inputs and fields that are empty in most rows."""
    dataset = facts.dataset
    examples = (*dataset.train, *dataset.validation, *dataset.test)
    for kind, fields in (("input", facts.plan.task.inputs), ("field", facts.plan.data.fields)):
        for field in fields:
            empty = sum(_empty((e.inputs if kind == "input" else e.fields).get(field.name)) for e in examples)
            if empty > _MOST_ROWS * len(examples):
                message = (
                    f"`{field.name}` is empty in {share(empty / len(examples))} of {counted(len(examples), 'row')}"
                )
                hint = f"look at the column `{field.column}` of the data"
                yield note("SK436", facts.at(kind, field.name), message, hint)


def _empty(value: JsonValue) -> bool:
    return value is None or value == [] or value == {} or (isinstance(value, str) and not value.strip())

"""Rules over examples: warnings from loading, near duplicates, labels, and columns that are mostly empty."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate, pairwise

from pydantic import JsonValue

from skillc.data.dataset import Dataset
from skillc.data.problems import location_text, name_list
from skillc.data.split import SIDES, Side
from skillc.diagnostics.diagnostic import Diagnostic, Label
from skillc.lint.rules import DataFacts, note, rule, warning
from skillc.optimize.gate.gate import RUN, Words, example_words, words
from skillc.outcomes import Example
from skillc.plan.figures import percent
from skillc.plan.schema import FieldPlan, Plan
from skillc.text import counted, joined, shown

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
                    f"`{field.name}` is empty in {percent(empty / len(examples))} of {counted(len(examples), 'row')}"
                )
                hint = f"look at the column `{field.column}` of the data"
                yield note("SK436", facts.at(kind, field.name), message, hint)


def _empty(value: JsonValue) -> bool:
    return value is None or value == [] or value == {} or (isinstance(value, str) and not value.strip())


# ---- quotes ---------------------------------------------------------------------------------------

_PART = re.compile(r"\n\s*\n|\n(?=\s*(?:[-*+#]|\d+[.)])\s)")
# Words that more different inputs share, or half of all examples, are wording of the task and no quote of any of them.
_FEW = 2


@dataclass(frozen=True, slots=True)
class Text:
    """A text that the target reads, its name in messages, and its place."""

    name: str
    text: str
    at: Label


@dataclass(frozen=True, slots=True)
class Quote:
    """Words of an example."""

    run: Words
    side: Side
    example: Example


Found = Mapping[Words, Sequence[tuple[Side, Example]]]


@rule(DataFacts, "SK432", "SK433")
def quotes(facts: DataFacts) -> Iterator[Diagnostic]:
    """Texts of the skill, declared or compiled before, that repeat words of examples."""
    skill, dataset = facts.plan.skill, facts.dataset
    texts = [Text(f"the section `{s.name}`", s.text, facts.at("section", s.name)) for s in skill.sections if s.text]
    texts += [Text(name, text, facts.at("skill", skill.name)) for name, text in facts.compiled.items()]
    parts = [[words(part) for part in _PART.split(text.text)] for text in texts]
    found = _examples_of(facts.plan, dataset, {run for each in parts for part in each for run in _runs(part)})
    every = sum(len(getattr(dataset, side)) for side in SIDES)
    common = {run for run, where in found.items() if _is_common(where, every)}
    for text, each in zip(texts, parts, strict=True):
        quoted: dict[str, Quote] = {}
        for part in each:
            for quote in _quotes(part, found, common):
                quoted.setdefault(quote.example.id, quote)
        yield from _told(dataset, text, quoted)


def _runs(part: Words) -> list[Words]:
    """Each five words in a row of a paragraph or a rule, in order."""
    return [part[i : i + RUN] for i in range(len(part) - RUN + 1)]


def _is_common(where: Sequence[tuple[Side, Example]], every: int) -> bool:
    """Whether so many examples contain a run that it is part of the task's wording; equal inputs count once."""
    inputs = len({normalise_inputs(example.inputs) for _, example in where})
    return inputs > _FEW or (inputs > 1 and 2 * inputs >= every)


def _quotes(part: Words, found: Found, common: set[Words]) -> Iterator[Quote]:
    """The examples that a paragraph quotes: five words or more of a stretch belong to that example.

    A stretch goes on through the wording that examples share, but those words don't count. One word that follows the
    shared wording by chance both here and in an example is no quote.
    """
    runs = _runs(part)
    shared = {i + j for i, run in enumerate(runs) if run in common for j in range(RUN)}
    places: dict[str, list[int]] = defaultdict(list)
    examples = {e.id: (side, e) for run in runs if run not in common for side, e in found.get(run, ())}
    for i, run in enumerate(runs):
        for _, example in found.get(run, ()):
            if example.id in examples:
                places[example.id].append(i)
    # How many words before each place are not shared.
    own = [0, *accumulate(i not in shared for i in range(len(part)))]
    for name, at in places.items():
        start = before = -2
        for i in dict.fromkeys(at):
            start, before = (start if i == before + 1 else i), i
            if own[i + RUN] - own[start] >= RUN:
                best = max(range(start, i + 1), key=lambda k: own[k + RUN] - own[k])
                yield Quote(runs[best], *examples[name])
                break


def _examples_of(plan: Plan, dataset: Dataset, wanted: set[Words]) -> Found:
    """The examples in which runs stand."""
    found: dict[Words, list[tuple[Side, Example]]] = defaultdict(list)
    if not wanted:
        return found
    first = {run[0] for run in wanted}
    for side in SIDES:
        for example in getattr(dataset, side):
            here = {
                run
                for text in example_words(example, plan.task)
                if not first.isdisjoint(text)
                for i in range(len(text) - RUN + 1)
                if text[i] in first and (run := text[i : i + RUN]) in wanted
            }
            for run in here:
                found[run].append((side, example))
    return found


def _told(dataset: Dataset, text: Text, found: Mapping[str, Quote]) -> Iterator[Diagnostic]:
    for sides, code, say in ((("validation", "test"), "SK433", warning), (("train",), "SK432", note)):
        quoted = [quote for quote in found.values() if quote.side in sides]
        if not quoted:
            continue
        first = min(quoted, key=lambda quote: dataset.places.get(quote.example.id, ("", 0)))
        what = joined(sorted({quote.side for quote in quoted}, reverse=True))
        message = (
            f"{text.name} has words of {counted(len(quoted), 'example')} of {what}: "
            f"{shown(' '.join(first.run))} stands in {place_of(dataset, first.example)}"
        )
        hint = "say it in words of your own: what is tested must not stand in the skill"
        if code == "SK432":
            hint = "say what holds for others too: the skill can know those examples by heart"
        yield say(code, text.at, message, hint)

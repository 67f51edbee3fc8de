"""Rules over examples: load warnings, near duplicates, labels, mostly empty columns, and quotes in the skill."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import accumulate, pairwise

from pydantic import JsonValue

from skillc.data.dataset import Dataset
from skillc.data.overlap import RUN, Words, example_words, words
from skillc.data.problems import location_text, name_list
from skillc.data.split import SIDES, Side
from skillc.diagnostics.diagnostic import Diagnostic, Label
from skillc.gates.units import percent
from skillc.lint.rules import DataFacts, error, note, rule, warning
from skillc.metrics.triggers import undecided
from skillc.outcomes import Example
from skillc.plan.schema import FieldPlan
from skillc.text import counted, joined, shown

_BETWEEN = re.compile(r"[\W_]+")
_CLOSED = frozenset({"labels", "bool", "number", "integer"})
_MOST_ROWS = Fraction(1, 2)

_Member = tuple[Side, Example]
"""An example and its side."""


def place_of(dataset: Dataset, example: Example) -> str:
    """The file and line of an example: `` `tickets.jsonl` line 3 ``."""
    known = dataset.places.get(example.id)
    return location_text(*known) if known is not None else f"`{example.id}`"


def _members(facts: DataFacts) -> Iterator[_Member]:
    """All examples, by side."""
    return ((side, example) for side in SIDES for example in getattr(facts.dataset, side))


def _source(facts: DataFacts) -> Label:
    """The setting that names the data."""
    return facts.at("data", None, "source" if facts.plan.data.source is not None else "train")


@rule(DataFacts)
def load_warnings(facts: DataFacts) -> Iterator[Diagnostic]:
    """Warnings of the loader."""
    for message in facts.dataset.warnings:
        yield note("SK439", _source(facts), message)


@rule(DataFacts)
def undecided_conditions(facts: DataFacts) -> Iterator[Diagnostic]:
    """Conditions of `precision` and `recall` that hold for all examples of a split, or for none."""
    for gate in facts.checked.gates:
        for found in undecided(facts.plan, facts.dataset, [gate.term]):
            yield error("SK440", gate, found.message, found.hint)


# ---- near duplicates ------------------------------------------------------------------------------


@rule(DataFacts)
def near_duplicates(facts: DataFacts) -> Iterator[Diagnostic]:
    """Examples whose inputs differ only in case, blanks and punctuation: on two sides, or with two answers.

    Equal inputs are left out: `dataset.load` keeps them on one side and reports different answers.
    """
    alike: dict[str, list[_Member]] = defaultdict(list)
    for member in _members(facts):
        alike[normalise_inputs(member[1].inputs)].append(member)
    several = [members for members in alike.values() if len(members) > 1 and _differ(members)]
    yield from _on_two_sides(facts, several)
    yield from _with_two_answers(facts, several)


def normalise_inputs(inputs: Mapping[str, JsonValue]) -> str:
    """Inputs without case, blanks and punctuation; other differences remain."""
    return "\0".join(f"{name}={_normal(value)}" for name, value in inputs.items())


def _normal(value: JsonValue) -> str:
    if not isinstance(value, str):
        return repr(value)
    text = value if value.isascii() else unicodedata.normalize("NFKC", value)
    # A text without letters and digits keeps its punctuation.
    return _BETWEEN.sub(" ", text.casefold()).strip() or value


def _differ(members: Sequence[_Member]) -> bool:
    return any(one.inputs != other.inputs for (_, one), (_, other) in pairwise(members))


def _on_two_sides(facts: DataFacts, several: Sequence[Sequence[_Member]]) -> Iterator[Diagnostic]:
    leaks = [members for members in several if len({side for side, _ in members}) > 1]
    if not leaks:
        return
    # Show the worst pair: train and test, then train and validation.
    shared = {
        other: [m for m in leaks if {"train", other} <= {side for side, _ in m}] for other in ("test", "validation")
    }
    which, side = next(((m[0], s) for s, m in shared.items() if m), (leaks[0], None))
    one = next(member for member in which if member[0] == (side or which[0][0]))
    other = next(member for member in which if member[0] != one[0])
    examples = sum(sum(s != "train" for s, _ in members) for members in leaks)
    message = (
        f"{counted(examples, 'example')} {'is' if examples == 1 else 'are'} on two sides, case and punctuation aside: "
        f"{place_of(facts.dataset, one[1])} ({one[0]}), {place_of(facts.dataset, other[1])} ({other[0]})"
    )
    hint = "keep one of each, or give them the same `group`, which is never split"
    yield warning("SK430", _source(facts), message, hint)


def _with_two_answers(facts: DataFacts, several: Sequence[Sequence[_Member]]) -> Iterator[Diagnostic]:
    for output in facts.plan.task.outputs:
        if output.type.kind not in _CLOSED:
            continue
        answered = ([each for each in members if output.name in each[1].gold] for members in several)
        found = [pair for members in answered if members and (pair := _contradiction(members, output.name)) is not None]
        if not found:
            continue
        one, other = found[0]
        times = f"{counted(len(found), 'input')} {'has' if len(found) == 1 else 'have'}"
        shown = (f"{place_of(facts.dataset, each)} (`{_shown(each, output.name)}`)" for each in (one, other))
        message = f"{times} different answers, case and punctuation aside: {', '.join(shown)}"
        hint = "correct one, or leave both out: no skill can get both right"
        yield warning("SK431", facts.at("output", output.name), message, hint)


def _contradiction(members: Sequence[_Member], output: str) -> tuple[Example, Example] | None:
    first = members[0][1]
    known = _answers(first, output)
    return next(((first, each) for _, each in members[1:] if not known & _answers(each, output)), None)


def _answers(example: Example, output: str) -> set[str]:
    """All answers that count as correct."""
    gold = example.gold.get(output)
    return {repr(each) for each in (gold if isinstance(gold, list) else [gold])}


def _shown(example: Example, output: str) -> str:
    gold = example.gold.get(output)
    return joined([str(each) for each in gold], "or") if isinstance(gold, list) else str(gold)


# ---- labels and columns ---------------------------------------------------------------------------


@rule(DataFacts)
def labels(facts: DataFacts) -> Iterator[Diagnostic]:
    """Declared labels that no example has, or that train lacks, or only train has."""
    for output in facts.plan.task.outputs:
        if output.type.kind != "labels":
            continue
        if any(output.name not in example.gold for _, example in _members(facts)):
            continue
        seen = {side: _counts(getattr(facts.dataset, side), output) for side in SIDES}
        every = sum(seen.values(), Counter[str]())
        at = facts.at("output", output.name)
        never = [label for label in output.type.labels if not every[label]]
        if never:
            message = f"no example has the label {name_list(never)}"
            yield note("SK434", at, message, "add examples of it, or remove it")
        unlearnt = [label for label in output.type.labels if every[label] and not seen["train"][label]]
        if unlearnt:
            where = joined([side for side in SIDES if any(seen[side][label] for label in unlearnt)])
            message = f"the label {name_list(unlearnt)} is on {where} and not on train, so it cannot be learnt"
            yield warning("SK435", at, message, "add examples of it, or choose another `seed`")
        untried = [label for label in output.type.labels if seen["train"][label] and not (every - seen["train"])[label]]
        if untried:
            message = f"the label {name_list(untried)} is on train only, so it is never measured"
            yield note("SK435", at, message, "add examples of it, or choose another `seed`")


def _counts(examples: tuple[Example, ...], output: FieldPlan) -> Counter[str]:
    found: Counter[str] = Counter()
    for example in examples:
        gold = example.gold.get(output.name)
        found.update(each for each in (gold if isinstance(gold, list) else [gold]) if isinstance(each, str))
    return found


@rule(DataFacts)
def empty_columns(facts: DataFacts) -> Iterator[Diagnostic]:
    """Inputs and fields that are empty in most rows."""
    examples = [example for _, example in _members(facts)]
    for kind, fields in (("input", facts.plan.task.inputs), ("field", facts.plan.data.fields)):
        for field in fields:
            empty = sum(_empty((e.inputs if kind == "input" else e.fields).get(field.name)) for e in examples)
            if empty > _MOST_ROWS * len(examples):
                message = (
                    f"`{field.name}` is empty in {percent(empty / len(examples))} of {counted(len(examples), 'row')}"
                )
                hint = f"check the column `{field.column}` of the data"
                yield note("SK436", facts.at(kind, field.name), message, hint)


def _empty(value: JsonValue) -> bool:
    return value in (None, [], {}) or (isinstance(value, str) and not value.strip())


# ---- quotes ---------------------------------------------------------------------------------------

_PART = re.compile(r"\n\s*\n|\n(?=\s*(?:[-*+#]|\d+[.)])\s)")
_FEW_INPUTS = 2
"""Words in more different inputs than this, or in half of all examples, are wording of the task and no quote."""

_Occurrences = Mapping[Words, Sequence[_Member]]


@rule(DataFacts)
def quotes(facts: DataFacts) -> Iterator[Diagnostic]:
    """Texts of the skill, declared or compiled before, that share five or more words in a row with examples.

    `overlap` in a gate reads the trained texts only.
    """
    skill = facts.plan.skill
    texts = [(f"the section `{s.name}`", s.text, facts.at("section", s.name)) for s in skill.sections if s.text]
    texts += [(name, text, facts.at("skill", skill.name)) for name, text in facts.compiled.items()]
    parts = [[words(part) for part in _PART.split(text)] for _, text, _ in texts]
    found = _occurrences(facts, {run for each in parts for part in each for run in _runs(part)})
    every = sum(1 for _ in _members(facts))
    common = {run for run, members in found.items() if _is_wording(members, every)}
    for (name, _, at), each in zip(texts, parts, strict=True):
        quoted: dict[str, tuple[Words, _Member]] = {}
        for part in each:
            for run, member in _quotes(part, found, common):
                quoted.setdefault(member[1].id, (run, member))
        yield from _quote_findings(facts.dataset, name, at, quoted.values())


def _runs(part: Words) -> list[Words]:
    """Each five words in a row of a paragraph or a rule."""
    return [part[i : i + RUN] for i in range(len(part) - RUN + 1)]


def _is_wording(members: Sequence[_Member], every: int) -> bool:
    """Whether so many examples contain a run that it is wording of the task; equal inputs count once."""
    inputs = len({normalise_inputs(example.inputs) for _, example in members})
    return inputs > _FEW_INPUTS or (inputs > 1 and 2 * inputs >= every)


def _quotes(part: Words, found: _Occurrences, common: set[Words]) -> Iterator[tuple[Words, _Member]]:
    """The examples that a paragraph quotes, each with the best run: five words or more of a stretch are its own.

    A stretch continues through wording that examples share, but those words don't count: a single word that follows
    shared wording both here and in an example is no quote.
    """
    runs = _runs(part)
    shared = {i + j for i, run in enumerate(runs) if run in common for j in range(RUN)}
    places: dict[str, list[int]] = defaultdict(list)
    members = {member[1].id: member for run in runs if run not in common for member in found.get(run, ())}
    for i, run in enumerate(runs):
        for _, example in found.get(run, ()):
            if example.id in members:
                places[example.id].append(i)
    # The number of words before each place that are not shared.
    own = [0, *accumulate(i not in shared for i in range(len(part)))]
    for name, at in places.items():
        start = before = -2
        for i in dict.fromkeys(at):
            start, before = (start if i == before + 1 else i), i
            if own[i + RUN] - own[start] >= RUN:
                best = max(range(start, i + 1), key=lambda k: own[k + RUN] - own[k])
                yield runs[best], members[name]
                break


def _occurrences(facts: DataFacts, wanted: set[Words]) -> _Occurrences:
    """The examples that contain each run."""
    found: dict[Words, list[_Member]] = defaultdict(list)
    first = {run[0] for run in wanted}
    for side, example in _members(facts) if wanted else ():
        here = {
            run
            for text in example_words(example, facts.plan.task)
            if not first.isdisjoint(text)
            for i in range(len(text) - RUN + 1)
            if text[i] in first and (run := text[i : i + RUN]) in wanted
        }
        for run in here:
            found[run].append((side, example))
    return found


def _quote_findings(
    dataset: Dataset, name: str, at: Label, found: Collection[tuple[Words, _Member]]
) -> Iterator[Diagnostic]:
    for sides, code, report in ((("validation", "test"), "SK433", warning), (("train",), "SK432", note)):
        quoted = [(run, member) for run, member in found if member[0] in sides]
        if not quoted:
            continue
        run, (_, first) = min(quoted, key=lambda each: dataset.places.get(each[1][1].id, ("", 0)))
        which = joined(sorted({side for _, (side, _) in quoted}, reverse=True))
        message = (
            f"{name} has words of {counted(len(quoted), 'example')} of {which}: "
            f"{shown(' '.join(run))} is in {place_of(dataset, first)}"
        )
        hint = "use other words: the skill must not contain what it is tested on"
        if code == "SK432":
            hint = "state what holds for other examples too; otherwise the skill may only memorise these"
        yield report(code, at, message, hint)

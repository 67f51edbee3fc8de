"""The rule against quotes: five or more words in a row that the skill and an example share.

`overlap` in a gate sees the trained texts only.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

from skillc.data.dataset import Dataset
from skillc.data.split import SIDES, Side
from skillc.diagnostics.diagnostic import Diagnostic, Label
from skillc.lint.examples import normalise_inputs, place_of
from skillc.lint.rules import DataFacts, note, rule, warning
from skillc.optimize.gate.gate import RUN, Words, said, words
from skillc.outcomes import Example
from skillc.plan.schema import Plan
from skillc.text import counted, joined, shown

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
                for text in said(example, plan.task)
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

"""Texts of the skill that stand, five or more words in a row, in examples: `overlap` sees the trained ones only."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from skillc.data.dataset import Dataset
from skillc.data.example import Example
from skillc.data.problems import counted, shown
from skillc.data.split import SIDES, Side
from skillc.language.diagnostics import Severity
from skillc.lint.places import place_of
from skillc.optimize.overlap import RUN, Words, said, words
from skillc.plan.advice import Advice, Place
from skillc.plan.schema import Plan

_PART = re.compile(r"\n\s*\n|\n(?=\s*(?:[-*+#]|\d+[.)])\s)")
# What so many examples say is the task's own wording, and no quote of any.
_FEW, _COMMON = 3, Fraction(1, 50)


@dataclass(frozen=True, slots=True)
class Text:
    """A text that the target reads: how messages call it, and where they point."""

    name: str
    text: str
    at: Place


def quotes(plan: Plan, dataset: Dataset, compiled: Mapping[str, str]) -> Iterator[Advice]:
    """What texts of the skill repeat of the examples.

    Args:
        plan: with the texts that the program declares.
        dataset: all sides.
        compiled: texts of a skill that was compiled before, by what messages call them.
    """
    texts = [Text(f"the section `{s.name}`", s.text, ("section", s.name, None)) for s in plan.skill.sections if s.text]
    texts += [Text(name, text, ("skill", plan.skill.name, None)) for name, text in compiled.items()]
    standing = [_runs(text.text) for text in texts]
    found = _examples_of(plan, dataset, {run for runs in standing for run in runs})
    every = sum(len(getattr(dataset, side)) for side in SIDES)
    most = max(Fraction(_FEW), _COMMON * every)
    rare = {run: where for run, where in found.items() if len(where) <= most}
    for text, runs in zip(texts, standing, strict=True):
        yield from _told(dataset, text, {run: rare[run] for run in runs if run in rare})


def _runs(text: str) -> set[Words]:
    """Each five words in a row of a paragraph or a rule."""
    parts = (words(part) for part in _PART.split(text))
    return {part[i : i + RUN] for part in parts for i in range(len(part) - RUN + 1)}


def _examples_of(plan: Plan, dataset: Dataset, wanted: set[Words]) -> Mapping[Words, list[tuple[Side, Example]]]:
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


def _told(dataset: Dataset, text: Text, runs: Mapping[Words, Sequence[tuple[Side, Example]]]) -> Iterator[Advice]:
    for sides, code, severity in (
        (("validation", "test"), "SK433", Severity.WARNING),
        (("train",), "SK432", Severity.NOTE),
    ):
        quoted = {
            example.id: (run, side, example)
            for run, where in sorted(runs.items(), reverse=True)
            for side, example in where
            if side in sides
        }
        if not quoted:
            continue
        run, _, example = min(quoted.values(), key=lambda each: dataset.places.get(each[2].id, ("", 0)))
        what = " and ".join(sorted({where for _, where, _ in quoted.values()}, reverse=True))
        message = (
            f"{text.name} has words of {counted(len(quoted), 'example')} of {what}: {shown(' '.join(run))} stands in "
            f"{place_of(dataset, example)}"
        )
        hint = "say it in words of your own: what is tested must not stand in the skill"
        if code == "SK432":
            hint = "say what holds for others too: the skill can know those examples by heart"
        yield Advice(code, severity, message, text.at, hint)

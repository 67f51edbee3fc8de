"""What removing a part of a skill would cost, by results that are at hand.

Only recorded results are used. A skill that differs from another one in this part alone is a test of it; the examples
that an edit is credited with are an association.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from fractions import Fraction
from typing import Literal, TypeAlias

from skillc.dataclass import dataclass
from skillc.document.edits import Delete, apply_edits
from skillc.document.skill import Document, Section, digest
from skillc.items.record import Item
from skillc.outcomes import MICRO, Scored
from skillc.review.decisions import Decision
from skillc.review.origins import Origin
from skillc.review.run_view import RunView
from skillc.review.stored import StoredRun, outcomes_of
from skillc.review.words import SHORT
from skillc.stats.verdict import PairedScore, judge

Other = Literal["nothing", "an earlier text"]
Shape: TypeAlias = tuple[tuple[str, tuple[str, ...]], ...]
"""The texts of the rules, or the lines, of each section by name."""


@dataclass(frozen=True, slots=True)
class Part:
    """A rule, or the text of a section without rules."""

    section: str
    text: str


@dataclass(frozen=True, slots=True)
class Comparison:
    """A skill with a part against the same skill without it, or with an earlier text of it, on validation.

    Attributes:
        place: of the step that measured the later of the two.
        other: what the other skill has in its place.
        lost, won: examples that are worse, and better, without the part.
        n, of: examples that both were measured on, and all of validation.
        change: of the mean without the part; None unless all of validation was measured.
        interval: of the change at 95 %.
    """

    place: str
    other: Other
    lost: int
    won: int
    n: int
    of: int
    change: Fraction | None = None
    interval: tuple[Fraction, Fraction] | None = None


@dataclass(frozen=True, slots=True)
class Associated:
    """Validation examples that the edits behind a part are credited with: of its present and its earlier texts.

    Attributes:
        known: those of `cured` whose ids are recorded and that were measured under the skill.
        right: those of `known` that are right under it.
    """

    cured: int
    broke: int
    known: int
    right: int


@dataclass(frozen=True, slots=True)
class Removal:
    """The results at hand: comparisons, those without the part first, and what the edit is credited with."""

    comparisons: tuple[Comparison, ...]
    associated: Associated | None

    @property
    def is_known(self) -> bool:
        """Whether there is any result."""
        return bool(self.comparisons) or self.associated is not None


def removal_of(
    view: RunView, part: Part, origin: Origin | None, skill: str, others: Iterable[tuple[str, StoredRun]] = ()
) -> Removal:
    """Return the results at hand on a part of a skill.

    Args:
        view: the run.
        part: a rule, or the text of a section.
        origin: the decision behind it.
        skill: the digest of the skill.
        others: records of other runs of the program, such as an ablation, which may have left the part out.
    """
    earlier = [text for text, _ in origin.before] if origin is not None else []
    found = [*_in_other_runs(view, part, skill, others), *_comparisons(view, part, earlier)]
    found_credits = [each.credit for each in origin.edits if each.credit is not None] if origin is not None else []
    associated = None
    if found_credits:
        names = dict.fromkeys(name for credit in found_credits for name in credit.cured_ids)
        marks = [_is_right(view, name, skill) for name in names]
        known = [mark for mark in marks if mark is not None]
        counts = sum(credit.cured for credit in found_credits), sum(credit.broke for credit in found_credits)
        associated = Associated(*counts, len(known), sum(known))
    return Removal(tuple(sorted(found, key=lambda each: (each.other != "nothing", -each.n))), associated)


def _shape(document: Document) -> Shape:
    return tuple((section.name, _texts(section)) for section in document.sections)


def _texts(section: Section) -> tuple[str, ...]:
    if section.mode == "trainable":
        return tuple(rule.text for rule in section.rules)
    return (section.text,) if section.text.strip() else ()


def _comparisons(view: RunView, part: Part, earlier: Iterable[str]) -> Iterator[Comparison]:
    """Yield each pair of known skills that differ in a part alone."""
    shapes: dict[Shape, str] = {}
    for name, document in view.skills.items():
        shapes.setdefault(_shape(document), name)
    instead: list[tuple[tuple[str, ...], Other]] = [((), "nothing")]
    instead += [((text,), "an earlier text") for text in dict.fromkeys(earlier) if text != part.text]
    seen = set[tuple[str, str]]()
    for shape, name in shapes.items():
        for texts, other in instead:
            changed = _without(shape, part, texts)
            without = shapes.get(changed) if changed is not None else None
            if without is None or (name, without) in seen:
                continue
            seen.add((name, without))
            found = _measured(view, name, without, other) or _recorded(view, name, without, other)
            if found is not None:
                yield found


def _in_other_runs(
    view: RunView, part: Part, skill: str, others: Iterable[tuple[str, StoredRun]]
) -> Iterator[Comparison]:
    """Yield what other runs measured of the skill without a rule."""
    document = view.skills.get(skill)
    rule = next((each for each in document.rules if each.text == part.text), None) if document is not None else None
    if document is None or rule is None:
        return
    without = apply_edits(document, [Delete(rule.id)]).document
    names = {skill: document, digest(without): without}
    for run, stored in others:
        outcomes = outcomes_of(stored, view.plan, names, view.examples)
        seen = replace(view, outcomes=outcomes)
        found = _measured(seen, skill, digest(without), "nothing") if len(outcomes) else None
        if found is not None:
            yield replace(found, place=f"run {run[:SHORT]}")


def _without(shape: Shape, part: Part, instead: tuple[str, ...]) -> Shape | None:
    """Return the texts of a skill with another text for a part; None if it lacks the part."""
    found = []
    for name, texts in shape:
        if name == part.section:
            if part.text not in texts:
                return None
            at = texts.index(part.text)
            texts = (*texts[:at], *instead, *texts[at + 1 :])
        found.append((name, texts))
    return tuple(found)


def _measured(
    view: RunView, name: str, without: str, other: Literal["nothing", "an earlier text"]
) -> Comparison | None:
    """Compare two skills by their recorded rollouts; None if none is of both."""
    members = [each.example for each in view.examples.values() if each.split == "validation"]
    pairs = []
    for example in members:
        with_, gone = (_score(view, skill, example.id) for skill in (name, without))
        if with_ is not None and gone is not None:
            pairs.append(PairedScore(example.group, with_, gone))
    if not pairs:
        return None
    change, interval = None, None
    if len(pairs) == len(members):
        goal = view.plan.goal
        change = Fraction(sum((pair.best or 0) - (pair.initial or 0) for pair in pairs), len(pairs) * MICRO)
        interval = judge(pairs, low=goal.low, high=goal.high, look=1, seed=0, rates=goal.rates).interval
    lost = sum((pair.best or 0) < (pair.initial or 0) for pair in pairs)
    won = sum((pair.best or 0) > (pair.initial or 0) for pair in pairs)
    place = view.place(_later(view, name, without))
    return Comparison(place, other, lost, won, len(pairs), len(members), change, interval)


def _score(view: RunView, skill: str, example: str) -> int | None:
    """Return the goal of a skill on an example in millionths, over its samples; None if it was not measured whole."""
    goal, samples = view.plan.goal.name, view.plan.optimize.samples
    found = [view.outcome(skill, example, sample) for sample in range(samples)]
    cells = [outcome.cells.get(goal) for outcome in found if outcome is not None]
    values = [cell.value for cell in cells if isinstance(cell, Scored)]
    return round(Fraction(sum(values), samples)) if len(values) == samples else None


def _later(view: RunView, one: str, other: str) -> str:
    order = {each.candidate: each.number for each in (*view.earlier, *view.decisions) if each.candidate}
    return max(one, other, key=lambda name: order.get(name, 0))


def _recorded(
    view: RunView, name: str, without: str, other: Literal["nothing", "an earlier text"]
) -> Comparison | None:
    """Compare two skills by the decision between them; None if there is none, or it measured nothing."""
    for each in (*view.decisions, *view.earlier):
        if {each.incumbent, each.candidate} == {name, without} and each.evaluated:
            change = _gain(each)
            if each.candidate == without:
                return Comparison(each.place, other, each.losses, each.gains, each.evaluated, each.of, change)
            removed = -change if change is not None else None
            return Comparison(each.place, other, each.gains, each.losses, each.evaluated, each.of, removed)
    return None


def _gain(decision: Decision) -> Fraction | None:
    before, after = decision.incumbent_goal, decision.reached
    if before is None or after is None or not (before.exact and after.exact):
        return None
    return after.low - before.low


def _is_right(view: RunView, example: str, skill: str) -> bool | None:
    """Return whether an example is right under a skill; None if it was not measured."""
    items = view.items
    if items is None:
        return None
    versions = [version.digest for version in items.versions]
    item: Item | None = next((each for each in items.items if each.id == example), None)
    if item is None or skill not in versions:
        return None
    score = item.cells[items.goal][versions.index(skill)]
    return items.measure(items.goal).is_right(score) if isinstance(score, int) else None

"""Record on which validation examples a candidate differs from the incumbent, and credit its edits.

The screen runs an edit alone, and what it saw stands with each edit. A gate runs all edits of a candidate together:
what changes there is the bundle's doing, and whose words stand in an example is a hint, never proof. So this credit is
called an association; it may propose a smaller patch, which has to pass the gates like any other.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pydantic import JsonValue

from skillc.document.edits import Add, Edit, Replace
from skillc.document.skill import Document
from skillc.optimize.engine import Engine, SearchState
from skillc.outcomes import Example, Scored

_WORD = re.compile(r"\w+")
_MOST_NAMED = 20


@dataclass(frozen=True, slots=True)
class Moved:
    """Ids of examples that came out better and worse."""

    cured: tuple[str, ...] = ()
    broke: tuple[str, ...] = ()

    @property
    def net(self) -> int:
        """Cured less broken."""
        return len(self.cured) - len(self.broke)

    def to_json(self) -> dict[str, JsonValue]:
        """Counts, and the first ids of each."""
        return {
            "cured": len(self.cured),
            "broke": len(self.broke),
            "examples": {"cured": list(self.cured[:_MOST_NAMED]), "broke": list(self.broke[:_MOST_NAMED])},
        }


def credit_record(
    engine: Engine, state: SearchState, edits: Sequence[Edit], candidate: Document, found: Flips
) -> dict[str, JsonValue]:
    """What the history tells of the edits of a candidate.

    `association` is, for each edit in their order, what changed on validation where the edit's own words stand;
    `shared` what the edits cannot be told apart by.
    """
    own, shared = attribute_flips(engine, state, edits, candidate, found)
    return {"credit": {"association": [part.to_json() for part in own], "shared": shared.to_json()}}


def attribute_flips(
    engine: Engine, state: SearchState, edits: Sequence[Edit], candidate: Document, found: Flips
) -> tuple[list[Moved], Moved]:
    """What changed on validation, by the edit of which most words stand in the example or in its answers.

    Only words that no other edit of the bundle has tell edits apart. An example that speaks of none, or of several
    alike, is shared by all. The only edit of a bundle has all of it.

    Returns:
        A part for each edit, and what is shared.
    """
    if len(edits) == 1:
        return [Moved(found.gained, found.lost)], Moved()
    own = distinct_words(state.incumbent, edits)
    by_id = {example.id: example for example in engine.dataset.validation}
    parts: list[tuple[list[str], list[str]]] = [([], []) for _ in range(len(edits) + 1)]
    for side, names in enumerate((found.gained, found.lost)):
        for name in names:
            said = _said(engine, state, candidate, by_id[name])
            spoken = [len(words & said) for words in own]
            most = max(spoken, default=0)
            alone = most > 0 and spoken.count(most) == 1
            parts[spoken.index(most) if alone else -1][side].append(name)
    *each, shared = (Moved(tuple(cured), tuple(broke)) for cured, broke in parts)
    return each, shared


def edits_to_keep(parts: Sequence[Moved]) -> list[int]:
    """Which edits of a rejected patch stay: without those that broke more than they cured, else without the worst.

    Fewer than all and at least one, in their order; none where there is only one.
    """
    if len(parts) < 2:
        return []
    harmful = {i for i, part in enumerate(parts) if part.net < 0}
    if not harmful or len(harmful) == len(parts):
        # Of equals the last goes.
        worst = min(range(len(parts)), key=lambda i: (parts[i].net, -i))
        harmful = {worst}
    return [i for i in range(len(parts)) if i not in harmful]


def distinct_words(incumbent: Document, edits: Sequence[Edit]) -> list[frozenset[str]]:
    """The words of each edit that no other one has: of its text, and of the rule that it takes away."""
    words = [_words(_text(incumbent, edit)) for edit in edits]
    counts = Counter(word for each in words for word in each)
    return [frozenset(word for word in each if counts[word] == 1) for each in words]


def _text(incumbent: Document, edit: Edit) -> str:
    new = edit.text if isinstance(edit, Add | Replace) else ""
    rule = None if isinstance(edit, Add) else incumbent.rule(edit.rule)
    return f"{new} {rule.text if rule is not None else ''}"


def _said(engine: Engine, state: SearchState, candidate: Document, example: Example) -> frozenset[str]:
    """The words of an example's inputs and of the answers under both skills."""
    outcomes = [engine.rollouts.known(skill, example) for skill in (state.incumbent, candidate)]
    answers = [outcome.answer for outcome in outcomes if outcome is not None and outcome.answer is not None]
    return _words(*map(_flat, (example.inputs, *answers)))


def _flat(values: Mapping[str, JsonValue]) -> str:
    return " ".join(value if isinstance(value, str) else json.dumps(value, default=str) for value in values.values())


def _words(*texts: str) -> frozenset[str]:
    return frozenset(word for text in texts for word in _WORD.findall(text.casefold()))


@dataclass(frozen=True, slots=True)
class Flips:
    """What changed, as far as both skills were measured on the same samples.

    Attributes:
        gained: ids of the examples on which the candidate's goal is above the incumbent's, in the order of the split.
        lost: those on which it is below.
        known: examples with a sample that was measured under both.
    """

    gained: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()
    known: int = 0


def flips(engine: Engine, candidate: Document, incumbent: Document) -> Flips:
    """What a candidate changed on the validation split."""
    gained, lost, known = [], [], 0
    for example in engine.dataset.validation:
        moved = _moved(engine, candidate, incumbent, example)
        if moved is None:
            continue
        known += 1
        if moved > 0:
            gained.append(example.id)
        elif moved < 0:
            lost.append(example.id)
    return Flips(tuple(gained), tuple(lost), known)


def _moved(engine: Engine, candidate: Document, incumbent: Document, example: Example) -> int | None:
    """The difference of the goal over the samples that were measured under both skills."""
    goal, moved, known = engine.plan.goal.name, 0, False
    for sample in range(engine.plan.optimize.samples):
        after = engine.rollouts.known(candidate, example, sample)
        before = engine.rollouts.known(incumbent, example, sample)
        if after is None or before is None:
            continue
        new, old = after.cells.get(goal), before.cells.get(goal)
        if isinstance(new, Scored) and isinstance(old, Scored):
            moved, known = moved + new.value - old.value, True
    return moved if known else None


def count_flips(before: Mapping[str, int], found: Sequence[Flips]) -> Mapping[str, int]:
    """How often each example flipped, with further candidates counted in."""
    counts = dict(before)
    for each in found:
        for name in (*each.gained, *each.lost):
            counts[name] = counts.get(name, 0) + 1
    return counts

"""Find the validation examples on which a candidate differs from the incumbent, and credit its edits.

The screen runs each edit alone, so its result is evidence on that edit. A gate runs all edits of a candidate together,
so a change is the effect of the whole bundle. Words that an example shares with an edit are only a hint, so this credit
is called an association. It can propose a smaller patch, which must pass the gates like any other.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence

from pydantic import JsonValue

from skillc.dataclass import dataclass
from skillc.document.edits import Add, Edit, Replace
from skillc.document.skill import Document
from skillc.optimize.engine import Engine, SearchState, goal_change
from skillc.outcomes import Example

_WORD = re.compile(r"\w+")
_MOST_NAMED = 20


@dataclass(frozen=True, slots=True)
class Flips:
    """Ids of the examples whose goal a candidate raised and lowered, in the order of the split.

    Attributes:
        known: examples with a sample measured under both skills.
    """

    cured: tuple[str, ...] = ()
    broke: tuple[str, ...] = ()
    known: int = 0

    @property
    def net(self) -> int:
        """Number of cured minus number of broken examples."""
        return len(self.cured) - len(self.broke)

    def to_json(self) -> dict[str, JsonValue]:
        """Return counts, and the first ids of each."""
        return {
            "cured": len(self.cured),
            "broke": len(self.broke),
            "examples": {"cured": list(self.cured[:_MOST_NAMED]), "broke": list(self.broke[:_MOST_NAMED])},
        }


def flips(engine: Engine, candidate: Document, incumbent: Document) -> Flips:
    """Return the flips of a candidate on the validation split, over the samples measured under both skills."""
    changes: dict[str, int] = {}
    for example in engine.dataset.validation:
        for sample in range(engine.plan.optimize.samples):
            change = goal_change(engine, incumbent, candidate, example, sample)
            if change is not None:
                changes[example.id] = changes.get(example.id, 0) + change
    cured = tuple(name for name, change in changes.items() if change > 0)
    return Flips(cured, tuple(name for name, change in changes.items() if change < 0), len(changes))


def count_flips(before: Mapping[str, int], found: Sequence[Flips]) -> Mapping[str, int]:
    """Add the flips of further candidates to the counts by example."""
    return dict(Counter(before) + Counter(name for each in found for name in (*each.cured, *each.broke)))


def credit_record(
    engine: Engine, state: SearchState, edits: Sequence[Edit], candidate: Document, found: Flips
) -> dict[str, JsonValue]:
    """Return the history's entry on the edits of a candidate: the association of each, and what they share."""
    own, shared = attribute_flips(engine, state, edits, candidate, found)
    return {"credit": {"association": [part.to_json() for part in own], "shared": shared.to_json()}}


def attribute_flips(
    engine: Engine, state: SearchState, edits: Sequence[Edit], candidate: Document, found: Flips
) -> tuple[list[Flips], Flips]:
    """Attribute each flip to the edit that shares most words with the example or its answers.

    Only words that no other edit of the bundle has count. A flip without such words, or with a tie, is shared by all.
    A single edit gets all flips.

    Returns:
        The flips of each edit, and the shared ones.
    """
    if len(edits) == 1:
        return [Flips(found.cured, found.broke)], Flips()
    own = distinct_words(state.incumbent, edits)
    by_id = {example.id: example for example in engine.dataset.validation}
    parts: list[tuple[list[str], list[str]]] = [([], []) for _ in range(len(edits) + 1)]
    for side, names in enumerate((found.cured, found.broke)):
        for name in names:
            present = _words_of_case(engine, state, candidate, by_id[name])
            counts = [len(words & present) for words in own]
            most = max(counts, default=0)
            unique = most > 0 and counts.count(most) == 1
            parts[counts.index(most) if unique else -1][side].append(name)
    *each, shared = (Flips(tuple(cured), tuple(broke)) for cured, broke in parts)
    return each, shared


def edits_to_keep(parts: Sequence[Flips]) -> list[int]:
    """Return the indexes of the edits to keep of a rejected patch.

    Edits that broke more than they cured are dropped. If there are none, the worst edit is dropped; of equally bad
    edits the last. The result is empty for a patch of one edit.
    """
    if len(parts) < 2:
        return []
    harmful = {i for i, part in enumerate(parts) if part.net < 0}
    if not harmful or len(harmful) == len(parts):
        harmful = {min(range(len(parts)), key=lambda i: (parts[i].net, -i))}
    return [i for i in range(len(parts)) if i not in harmful]


def distinct_words(incumbent: Document, edits: Sequence[Edit]) -> list[frozenset[str]]:
    """Return the words of each edit, and of the rule that it removes, that no other edit has."""
    words = [_words(_text(incumbent, edit)) for edit in edits]
    counts = Counter(word for each in words for word in each)
    return [frozenset(word for word in each if counts[word] == 1) for each in words]


def _text(incumbent: Document, edit: Edit) -> str:
    new = edit.text if isinstance(edit, Add | Replace) else ""
    rule = None if isinstance(edit, Add) else incumbent.rule(edit.rule)
    return f"{new} {rule.text if rule is not None else ''}"


def _words_of_case(engine: Engine, state: SearchState, candidate: Document, example: Example) -> frozenset[str]:
    """Return the words of an example's inputs and of the answers under both skills."""
    outcomes = [engine.rollouts.known(skill, example) for skill in (state.incumbent, candidate)]
    answers = [outcome.answer for outcome in outcomes if outcome is not None and outcome.answer is not None]
    values = [value for each in (example.inputs, *answers) for value in each.values()]
    return _words(*(value if isinstance(value, str) else json.dumps(value, default=str) for value in values))


def _words(*texts: str) -> frozenset[str]:
    return frozenset(word for text in texts for word in _WORD.findall(text.casefold()))

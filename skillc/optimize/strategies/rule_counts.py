"""Helpful and harmful counts per rule (`rule_counts = on`), after ACE, Zhang et al., "Agentic Context Engineering".

A reflection marks on which trajectories a rule helped and on which it misled. Counted are distinct training examples,
for a rule with its very words: a rule that is replaced starts anew.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from pydantic import JsonValue

from skillc.document.edits import Add, Delete
from skillc.document.skill import Document
from skillc.optimize.engine import State
from skillc.optimize.propose.proposals import Proposal, wording
from skillc.optimize.propose.replies import MarkReply

# A rule that misled fewer examples than this is not proposed for deletion.
ENOUGH_HARM = 2


@dataclass(frozen=True, slots=True)
class Mark:
    """One rule on one training example; `text` is what the rule said."""

    rule: str
    text: str
    example: str
    helped: bool


def read_marks(marks: Sequence[MarkReply], skill: Document, examples: Mapping[str, str]) -> tuple[Mark, ...]:
    """The marks of one reply that name rules and trajectories there are; `examples` holds example ids by tag."""
    found = []
    for mark in marks:
        rule = skill.rule((mark.rule or "").lower())
        if rule is not None:
            for tags, helped in ((mark.helped, True), (mark.misled, False)):
                found += [Mark(rule.id, rule.text, examples[tag], helped) for tag in tags if tag in examples]
    return tuple(found)


def counted(state: State, marks: Iterable[Mark]) -> State:
    """The state with more marks; of two on one example the later counts."""
    counts = {key: dict(seen) for key, seen in state.counts.items()}
    for mark in marks:
        counts.setdefault((mark.rule, mark.text), {})[mark.example] = mark.helped
    return replace(state, counts=counts)


def tallies(state: State, skill: Document) -> dict[str, tuple[int, int]]:
    """(helped, misled) of each rule of a skill that has been marked, by id, in the skill's order."""
    found = {}
    for rule in skill.rules:
        seen = state.counts.get((rule.id, rule.text))
        if seen:
            helped = sum(seen.values())
            found[rule.id] = (helped, len(seen) - helped)
    return found


def notes(state: State) -> dict[str, str]:
    """What stands beside each marked rule in a prompt."""
    return {
        rule: f"count: helped {helped}, misled {misled}"
        for rule, (helped, misled) in tallies(state, state.incumbent).items()
    }


def harmful(state: State, proposals: Sequence[Proposal], most: int) -> list[Proposal]:
    """Deletions of rules that mislead more than they help, the greatest harm first, at most so many.

    Each cites the examples that it misled, so that it is screened like any edit. A rule that a proposal mends already
    is left alone, and so is one whose deletion was rejected before.
    """
    mended = {proposal.edit.rule for proposal in proposals if not isinstance(proposal.edit, Add)}
    tried = {part for entry in state.rejected for part in entry.text.split("; ")}
    found = []
    for rule, (helped, misled) in tallies(state, state.incumbent).items():
        edit = Delete(rule, f"count: helped {helped}, misled {misled}")
        if rule in mended or wording(edit) in tried:
            continue
        if misled > helped and misled >= ENOUGH_HARM:
            seen = state.counts[rule, _text(state.incumbent, rule)]
            cures = tuple(sorted(example for example, good in seen.items() if not good))
            found.append(Proposal(edit, cures, support=misled - helped))
    return sorted(found, key=lambda proposal: -proposal.support)[:most]


def _text(skill: Document, rule: str) -> str:
    found = skill.rule(rule)
    return found.text if found else ""


def to_json(state: State) -> dict[str, JsonValue]:
    """The counts of the incumbent's rules for the history: `{"3fa2c1": {"helped": 4, "misled": 1}}`."""
    return {
        rule: {"helped": helped, "misled": misled} for rule, (helped, misled) in tallies(state, state.incumbent).items()
    }

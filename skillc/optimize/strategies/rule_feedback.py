"""What reflections report of rules: lapses in following them, and how often each helped and misled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from pydantic import JsonValue

from skillc.document.edits import Add, Delete
from skillc.document.skill import Document
from skillc.optimize.engine import SearchState
from skillc.optimize.propose.prompting import Kind, ReflectRequest
from skillc.optimize.propose.proposals import Proposal, wording
from skillc.optimize.propose.reflect import Reflection
from skillc.optimize.propose.replies import LapseReply, MarkReply, ProposedEdit, ReflectReply
from skillc.optimize.strategies.mechanism import Mechanism
from skillc.plan.initial import REMINDERS
from skillc.plan.schema import Plan


class Lapses(Mechanism):
    """Ask which failures are lapses, and write reminders for them."""

    name = "lapses"

    @classmethod
    def from_plan(cls, plan: Plan) -> Lapses | None:
        """Return the mechanism if `lapses` is on."""
        return cls() if plan.optimize.lapses else None

    def request(self, request: ReflectRequest) -> ReflectRequest:
        """Ask for lapses among failures."""
        return replace(request, lapses=request.kind == "failures")

    def edits(self, kind: Kind, reply: ReflectReply, edits: Sequence[ProposedEdit]) -> Sequence[ProposedEdit]:
        """Add the reminders; what cites more cases comes first, and the optimizer's own order breaks ties."""
        if kind != "failures" or not reply.lapses:
            return edits
        both = [*without_lapses(edits, reply.lapses), *reminders(reply.lapses)]
        return sorted(both, key=lambda edit: -len(edit.cures))

    def owns_section(self, section: str) -> bool:
        """Keep the section of reminders out of rewrites and drafts."""
        return section == REMINDERS

    def step_record(self, state: SearchState, reflections: Sequence[Reflection]) -> Mapping[str, JsonValue]:
        """Record how many cases were lapses."""
        return {"lapses": sum(map(lapsed, reflections))}


def lapsed(reflection: Reflection) -> int:
    """Return how many cases of a reflection were lapses."""
    if reflection.reply is None or reflection.kind != "failures":
        return 0
    return len({tag for lapse in reflection.reply.lapses for tag in lapse.cases if tag in reflection.ids})


def without_lapses(edits: Sequence[ProposedEdit], lapses: Sequence[LapseReply]) -> list[ProposedEdit]:
    """The edits with what mends the skill alone: a case that is a lapse is cured by no edit of the rules.

    An edit that was meant for lapses only goes; one that cites nothing stays.
    """
    lapsed = {tag for lapse in lapses for tag in lapse.cases}
    kept = []
    for edit in edits:
        cures = tuple(tag for tag in edit.cures if tag not in lapsed)
        if cures or not edit.cures:
            kept.append(edit.model_copy(update={"cures": cures}))
    return kept


def reminders(lapses: Sequence[LapseReply]) -> list[ProposedEdit]:
    """An edit for each reminder; it goes through the same screen and the same gates as any other."""
    edits = []
    for lapse in lapses:
        of = f"rule {lapse.rule}" if lapse.rule else "a rule"
        why = f"lapse: {of} was right and was not followed on {len(lapse.cases) or 'some'} cases"
        edits.append(ProposedEdit(op="add", section=REMINDERS, text=lapse.reminder, rationale=why, cures=lapse.cases))
    return edits


# A rule that misled fewer examples than this is not proposed for deletion.
ENOUGH_HARM = 2


# By a rule's id and its text, the training examples on which it helped (True) or misled (False).
Counts: TypeAlias = Mapping[tuple[str, str], Mapping[str, bool]]


@dataclass(frozen=True, slots=True)
class RuleMark:
    """One rule on one training example; `text` is what the rule said."""

    rule: str
    text: str
    example: str
    helped: bool


def read_marks(marks: Sequence[MarkReply], skill: Document, examples: Mapping[str, str]) -> tuple[RuleMark, ...]:
    """The marks of one reply that name rules and trajectories there are; `examples` holds example ids by tag."""
    found = []
    for mark in marks:
        rule = skill.rule((mark.rule or "").lower())
        if rule is not None:
            for tags, helped in ((mark.helped, True), (mark.misled, False)):
                found += [RuleMark(rule.id, rule.text, examples[tag], helped) for tag in tags if tag in examples]
    return tuple(found)


class RuleCounts(Mechanism):
    """Ask which rules helped and misled, show the counts, and propose to delete rules that do harm."""

    name = "rule_counts"

    @classmethod
    def from_plan(cls, plan: Plan) -> RuleCounts | None:
        """Return the mechanism if `rule_counts` is on."""
        return cls() if plan.optimize.rule_counts else None

    def notes(self, state: SearchState) -> Mapping[str, str]:
        """Write the counts beside each marked rule."""
        return {rule: _note(*counts) for rule, counts in tallies(state, state.incumbent).items()}

    def request(self, request: ReflectRequest) -> ReflectRequest:
        """Ask for marks."""
        return replace(request, rule_counts=True)

    def after_reflections(self, state: SearchState, reflections: Sequence[Reflection]) -> SearchState:
        """Count the marks; of two on one example the later counts."""
        counts = {key: dict(seen) for key, seen in _counts(state).items()}
        for reflection in reflections:
            marks = reflection.reply.marks if reflection.reply is not None else ()
            for mark in read_marks(marks, state.incumbent, reflection.ids):
                counts.setdefault((mark.rule, mark.text), {})[mark.example] = mark.helped
        return state.with_mechanism_state(self.name, counts)

    def proposals(self, state: SearchState, proposals: Sequence[Proposal], most: int) -> Sequence[Proposal]:
        """Propose to delete harmful rules."""
        return harmful(state, proposals, most)

    def step_record(self, state: SearchState, reflections: Sequence[Reflection]) -> Mapping[str, JsonValue]:
        """Record the counts of the incumbent's rules: `{"3fa2c1": {"helped": 4, "misled": 1}}`."""
        found = tallies(state, state.incumbent)
        return {self.name: {rule: {"helped": helped, "misled": misled} for rule, (helped, misled) in found.items()}}


def _counts(state: SearchState) -> Counts:
    found: Counts = state.mechanism_state.get(RuleCounts.name, {})
    return found


def tallies(state: SearchState, skill: Document) -> dict[str, tuple[int, int]]:
    """(helped, misled) of each rule of a skill that has been marked, by id, in the skill's order."""
    found = {}
    for rule in skill.rules:
        seen = _counts(state).get((rule.id, rule.text))
        if seen:
            helped = sum(seen.values())
            found[rule.id] = (helped, len(seen) - helped)
    return found


def _note(helped: int, misled: int) -> str:
    return f"count: helped {helped}, misled {misled}"


def harmful(state: SearchState, proposals: Sequence[Proposal], most: int) -> list[Proposal]:
    """Deletions of rules that mislead more than they help, the greatest harm first, at most so many.

    Each cites the examples that it misled, so that it is screened like any edit. A rule that a proposal mends already
    is left alone, and so is one whose deletion was rejected before.
    """
    mended = {proposal.edit.rule for proposal in proposals if not isinstance(proposal.edit, Add)}
    tried = {part for entry in state.memory.rejected for part in entry.text.split("; ")}
    found = []
    for rule, (helped, misled) in tallies(state, state.incumbent).items():
        edit = Delete(rule, _note(helped, misled))
        if rule in mended or wording(edit) in tried:
            continue
        if misled > helped and misled >= ENOUGH_HARM:
            seen = _counts(state)[rule, _text(state.incumbent, rule)]
            cures = tuple(sorted(example for example, good in seen.items() if not good))
            found.append(Proposal(edit, cures, support=misled - helped))
    return sorted(found, key=lambda proposal: -proposal.support)[:most]


def _text(skill: Document, rule: str) -> str:
    found = skill.rule(rule)
    return found.text if found else ""

"""Let reflections report on rules: lapses in following them, and on which cases each helped or misled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

from pydantic import JsonValue

from skillc.document.edits import Add, Delete
from skillc.document.skill import Document
from skillc.optimize.engine import SearchState
from skillc.optimize.propose.prompting import Kind, ReflectRequest
from skillc.optimize.propose.proposals import Proposal, wording
from skillc.optimize.propose.reflect import Reflection
from skillc.optimize.propose.replies import LapseReply, ProposedEdit, ReflectReply
from skillc.optimize.strategies.mechanism import Mechanism
from skillc.plan.initial import REMINDERS
from skillc.plan.schema import Plan

# A rule that misled fewer examples than this is not proposed for deletion.
ENOUGH_HARM = 2

# By a rule's id and text, the training examples on which it helped (True) or misled (False).
Counts: TypeAlias = Mapping[tuple[str, str], Mapping[str, bool]]


class Lapses(Mechanism):
    """Ask which failures are lapses in following a correct rule, and write reminders instead of edits for them."""

    name = "lapses"

    @classmethod
    def from_plan(cls, plan: Plan) -> Lapses | None:
        """Return the mechanism if `lapses` is on."""
        return cls() if plan.optimize.lapses else None

    def request(self, request: ReflectRequest) -> ReflectRequest:
        """Ask for lapses among failures."""
        return replace(request, lapses=request.kind == "failures")

    def edits(self, kind: Kind, reply: ReflectReply, edits: Sequence[ProposedEdit]) -> Sequence[ProposedEdit]:
        """Add the reminders; edits that cite more cases come first, then the optimizer's own order."""
        if kind != "failures" or not reply.lapses:
            return edits
        both = [*_without_lapses(edits, reply.lapses), *map(_reminder, reply.lapses)]
        return sorted(both, key=lambda edit: -len(edit.cures))

    def owns_section(self, section: str) -> bool:
        """Keep the section of reminders out of rewrites and drafts."""
        return section == REMINDERS

    def step_record(self, state: SearchState, reflections: Sequence[Reflection]) -> Mapping[str, JsonValue]:
        """Record the number of lapses."""
        return {"lapses": sum(map(lapsed, reflections))}


def lapsed(reflection: Reflection) -> int:
    """Return how many cases of a reflection were lapses."""
    if reflection.reply is None or reflection.kind != "failures":
        return 0
    return len({tag for lapse in reflection.reply.lapses for tag in lapse.cases if tag in reflection.ids})


def _without_lapses(edits: Sequence[ProposedEdit], lapses: Sequence[LapseReply]) -> list[ProposedEdit]:
    """Remove lapses from the cited cases, and the edits that cited only lapses."""
    tags = {tag for lapse in lapses for tag in lapse.cases}
    kept = []
    for edit in edits:
        cures = tuple(tag for tag in edit.cures if tag not in tags)
        if cures or not edit.cures:
            kept.append(edit.model_copy(update={"cures": cures}))
    return kept


def _reminder(lapse: LapseReply) -> ProposedEdit:
    """Return the edit for a reminder, which is screened and gated like any other."""
    rule = f"rule {lapse.rule}" if lapse.rule else "a rule"
    why = f"lapse: {rule} was right and was not followed on {len(lapse.cases) or 'some'} cases"
    return ProposedEdit(op="add", section=REMINDERS, text=lapse.reminder, rationale=why, cures=lapse.cases)


class RuleCounts(Mechanism):
    """Ask which rules helped and misled, show the counts, and propose to delete rules that do harm.

    After ACE, Zhang et al., "Agentic Context Engineering". The counts are of distinct training examples for a rule with
    this exact text, so a replaced rule starts at zero.
    """

    name = "rule_counts"

    @classmethod
    def from_plan(cls, plan: Plan) -> RuleCounts | None:
        """Return the mechanism if `rule_counts` is on."""
        return cls() if plan.optimize.rule_counts else None

    def notes(self, state: SearchState) -> Mapping[str, str]:
        """Write the counts beside each marked rule."""
        return {rule: _note(*counts) for rule, counts in _tallies(state, state.incumbent).items()}

    def request(self, request: ReflectRequest) -> ReflectRequest:
        """Ask for marks."""
        return replace(request, rule_counts=True)

    def after_reflections(self, state: SearchState, reflections: Sequence[Reflection]) -> SearchState:
        """Count the marks; the last mark of a rule on an example counts."""
        counts = {key: dict(seen) for key, seen in _counts(state).items()}
        for reflection in reflections:
            for mark in reflection.reply.marks if reflection.reply is not None else ():
                rule = state.incumbent.rule((mark.rule or "").lower())
                if rule is None:
                    continue
                for tags, helped in ((mark.helped, True), (mark.misled, False)):
                    marked = {reflection.ids[tag]: helped for tag in tags if tag in reflection.ids}
                    if marked:
                        counts.setdefault((rule.id, rule.text), {}).update(marked)
        return state.with_mechanism_state(self.name, counts)

    def proposals(self, state: SearchState, proposals: Sequence[Proposal], most: int) -> Sequence[Proposal]:
        """Propose to delete rules that misled more than they helped, the greatest harm first.

        Each deletion cites the misled examples. Rules that a proposal already changes, and rules whose deletion was
        rejected before, are skipped.
        """
        changed = {proposal.edit.rule for proposal in proposals if not isinstance(proposal.edit, Add)}
        tried = {part for entry in state.memory.rejected for part in entry.text.split("; ")}
        found = []
        for rule in state.incumbent.rules:
            seen = _counts(state).get((rule.id, rule.text), {})
            helped, misled = _tally(seen)
            edit = Delete(rule.id, _note(helped, misled))
            if rule.id in changed or wording(edit) in tried or misled <= helped or misled < ENOUGH_HARM:
                continue
            cures = tuple(sorted(example for example, good in seen.items() if not good))
            found.append(Proposal(edit, cures, support=misled - helped))
        return sorted(found, key=lambda proposal: -proposal.support)[:most]

    def step_record(self, state: SearchState, reflections: Sequence[Reflection]) -> Mapping[str, JsonValue]:
        """Record the counts of the incumbent's rules: `{"3fa2c1": {"helped": 4, "misled": 1}}`."""
        found = _tallies(state, state.incumbent)
        return {self.name: {rule: {"helped": helped, "misled": misled} for rule, (helped, misled) in found.items()}}


def _counts(state: SearchState) -> Counts:
    found: Counts = state.mechanism_state.get(RuleCounts.name, {})
    return found


def _tallies(state: SearchState, skill: Document) -> dict[str, tuple[int, int]]:
    """Return (helped, misled) of each marked rule of a skill, by id, in the skill's order."""
    counts = _counts(state)
    return {rule.id: _tally(seen) for rule in skill.rules if (seen := counts.get((rule.id, rule.text)))}


def _tally(seen: Mapping[str, bool]) -> tuple[int, int]:
    helped = sum(seen.values())
    return helped, len(seen) - helped


def _note(helped: int, misled: int) -> str:
    return f"count: helped {helped}, misled {misled}"

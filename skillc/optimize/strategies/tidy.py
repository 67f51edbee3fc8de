"""Tidying: remove rules without support and shorten the others, under a no-loss gate.

Two candidates are tried in sequence, because a rejection is decided early while an accept takes the whole split. The
first is the optimizer's rewrite of the open sections without the rules that cured nothing. The second is the skill
without these rules and otherwise unchanged. A candidate needs fewer tokens and at least the same goal on validation.
The program's gates also apply, except those that a skill fails against itself: they require a gain, which tidying does
not aim at.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import TypeGuard

from pydantic import JsonValue

from skillc.dataclass import dataclass
from skillc.document.change import base_of_change
from skillc.document.edits import Add, Delete, Edit, Replace, apply_edits
from skillc.document.markdown import Refusal
from skillc.document.skill import Document, Section, digest, for_optimizer, tokens
from skillc.gates.evaluate import decide_all
from skillc.gates.intervals import Truth
from skillc.gates.terms import CallTerm, MeanTerm, Operation, Operator, SkillState, StateTerm, Term
from skillc.optimize.engine import Engine, Position, SearchState
from skillc.optimize.from_sessions import refused
from skillc.optimize.gate.credit import Flips, attribute_flips, distinct_words, flips
from skillc.optimize.gate.decide import Patch, committed, settle
from skillc.optimize.gate.gate import evidence, goal_of, mean_json, skills_by_name, text_evidence
from skillc.optimize.propose.cases import briefing, confusion
from skillc.optimize.propose.prompting import tidy_messages
from skillc.optimize.propose.proposals import differences
from skillc.optimize.screen.candidates import apply_and_report, ask_for_sections, first_fitting, writable_sections
from skillc.optimize.strategies.mechanism import Epoch, Mechanism
from skillc.plan.schema import GatePlan, Plan

# Tidying is due after more rules than this from single edits since the last text written as a whole.
HANDFUL = 5


@dataclass(frozen=True, slots=True)
class Support:
    """The evidence for a rule.

    Attributes:
        moved: flips on validation against the skill without the rules, associated with this rule.
        proven: whether it cured a training failure unseen by its author.
        apart: whether it has words that no other rule has. Without such words no flip can be associated with it.
    """

    moved: Flips
    proven: bool
    apart: bool

    @property
    def missing(self) -> bool:
        """Whether there is no evidence for the rule, or more against it."""
        return self.moved.net < 0 or (self.apart and not (self.moved.cured or self.proven))

    def __str__(self) -> str:
        unseen = "; it cured unseen training failures" if self.proven else ""
        return f"cured {len(self.moved.cured)} and broke {len(self.moved.broke)} on validation{unseen}"


class Tidy(Mechanism):
    """Tidy the skill at epoch ends and before the final test, once for each skill with enough to tidy.

    It never counts for patience.
    """

    name = "tidy"

    @classmethod
    def from_plan(cls, plan: Plan) -> Tidy | None:
        """Return the mechanism if `tidy` is on and the gates decide; else it would accept any shorter skill."""
        return cls() if plan.optimize.tidy and plan.optimize.accept == "gates" else None

    async def epoch_end(self, engine: Engine, state: SearchState, epoch: Epoch) -> AsyncIterator[SearchState]:
        """Yield the state with the incumbent tidied."""
        yield await self.run_end(engine, state, epoch.position)

    async def run_end(self, engine: Engine, state: SearchState, position: Position) -> SearchState:
        """Return the state with the incumbent tidied."""
        tried: frozenset[str] = state.mechanism_state.get(self.name, frozenset())
        if digest(state.incumbent) in tried:
            return state
        found = rule_support(engine, state, state.initial)
        whole = state.whole or state.initial
        single = [
            each for each in state.incumbent.rules if (old := whole.rule(each.id)) is None or old.text != each.text
        ]
        if not (any(support.missing for support in found.values()) or len(single) > HANDFUL):
            return state
        after = await tidy_incumbent(engine, state, found, replace(position, kind="tidy"))
        return after.with_mechanism_state(self.name, tried | {digest(after.incumbent)})


def rule_support(engine: Engine, state: SearchState, reference: Document) -> dict[str, Support]:
    """Return the evidence for each rule of the incumbent that a reference lacks, by the rule's id; not for scripts.

    Both skills are measured on validation. Flips are associated by words, so they are a hint.
    """
    skill = state.incumbent
    edits = differences(reference, skill)
    before = replace(state, incumbent=reference)
    parts, _ = attribute_flips(engine, before, edits, skill, flips(engine, skill, reference))
    words = distinct_words(reference, edits)
    ids = [_rule_of(skill, edit) for edit in edits]
    return {
        rule: Support(part, rule in state.memory.proven, bool(own) or len(edits) == 1)
        for rule, part, own in zip(ids, parts, words, strict=True)
        if rule is not None and has_rules(skill.section_of(rule))
    }


def _rule_of(skill: Document, edit: Edit) -> str | None:
    """Return the id of the rule that an edit wrote; None if it deleted one."""
    if isinstance(edit, Replace):
        return edit.rule
    return next((rule.id for rule in skill.rules if isinstance(edit, Add) and rule.text == edit.text), None)


async def tidy_incumbent(
    engine: Engine, state: SearchState, found: Mapping[str, Support], position: Position
) -> SearchState:
    """Tidy the incumbent, which is measured on validation, by the evidence for its rules.

    Raises:
        BudgetReached: a cap does not admit a call.
    """
    engine.observer.step(position, mean_json(goal_of(engine, state.incumbent)))
    before, gates = digest(state.incumbent), tidy_gates(engine, state)
    for patch in await _candidates(engine, state, found, gates, position):
        # If removing all rules loses something, keep those associated with the loss.
        retries = 1 if patch.record["maker"] == "prune" else 0
        # Earlier rejections were decided by the gates of a step.
        asked = replace(state, decided={})
        with committed(engine, state):
            after = await settle(engine, asked, [patch], (), position, gates=gates, retries=retries)
        state = replace(after, decided=state.decided)
        if digest(state.incumbent) != before:
            break
    return state


async def _candidates(
    engine: Engine, state: SearchState, found: Mapping[str, Support], gates: Sequence[GatePlan], position: Position
) -> list[Patch]:
    """Return the candidates that pass the gates on texts, each text once, the rewrite first."""
    pruned = [Delete(rule, str(support)) for rule, support in found.items() if support.missing]
    rewritten = await _rewritten(engine, state, found, position)
    written = apply_edits(state.incumbent, rewritten).document
    left = [edit for edit in pruned if written.rule(edit.rule) == state.incumbent.rule(edit.rule)]
    ways: dict[str, Sequence[Edit]] = {"rewrite": [*rewritten, *left] if rewritten else [], "prune": pruned}
    record: dict[str, JsonValue] = {"support": {rule: str(support) for rule, support in found.items()}}
    patches = [_patch(engine, state, edits, gates, {"maker": maker, **record}) for maker, edits in ways.items()]
    distinct = {digest(patch.candidate): patch for patch in patches if patch is not None}
    return list(distinct.values())


def tidy_gates(engine: Engine, state: SearchState) -> tuple[GatePlan, ...]:
    """Return the gates of a tidying: no loss on validation, fewer tokens, and the program's that require no gain."""
    goal = engine.plan.goal.name

    def both(operator: Operator, of: Callable[[SkillState], Term]) -> Term:
        return Operation(operator, (of("candidate"), of("incumbent")))

    own = (
        GatePlan(
            name="no loss",
            term=both(">=", lambda skill: MeanTerm(skill, goal)),
            text=f"candidate.{goal} >= incumbent.{goal}",
            stage="validation",
        ),
        GatePlan(
            name="fewer tokens",
            term=both("<", lambda skill: CallTerm("tokens", (StateTerm(skill),))),
            text="tokens(candidate) < tokens(incumbent)",
            stage="text",
        ),
    )
    known = skills_by_name(state, state.incumbent)
    same = evidence(engine, known, (), text_evidence(engine, known, Fraction(0), base_of_change(state.incumbent)))
    binding = [g for g in engine.step_gates if decide_all([g], same).truth is not Truth.FALSE]
    return (*own, *binding)


def _patch(
    engine: Engine,
    state: SearchState,
    edits: Sequence[Edit],
    gates: Sequence[GatePlan],
    record: Mapping[str, JsonValue],
) -> Patch | None:
    """Return a candidate of as many of the first edits as pass the gates on texts; None without any."""
    fitting = first_fitting(engine, state, edits, gates)
    if not fitting:
        return None
    document, changed = apply_and_report(state.incumbent, fitting)
    gone = ", ".join(edit.rule for edit in fitting if isinstance(edit, Delete)) or "none"
    text = f"tidied to {tokens(document)} tokens, rules left out: {gone}"
    return Patch(fitting, document, {**record, "edits": changed}, text, whole=True, read=frozenset())


async def _rewritten(
    engine: Engine, state: SearchState, found: Mapping[str, Support], position: Position
) -> Sequence[Edit]:
    """Return the edits of the optimizer's rewrite of the open sections; none if it gave no valid one."""
    skill = state.incumbent
    sections = [name for name in writable_sections(engine, skill) if has_rules(skill.section(name))]
    if not sections:
        return ()
    engine.observer.stage("tidy", 1)
    measured = [(e, o) for e in engine.dataset.train if (o := engine.rollouts.known(skill, e)) and o.measured]
    notes = {rule: f"support: {support}" for rule, support in found.items()}
    brief = replace(briefing(engine, state), skill=for_optimizer(skill, notes))
    messages = tidy_messages(brief, written=sections, confusion=confusion(engine.plan, measured))
    sample = (position.epoch, position.step, 0)
    asked = await ask_for_sections(engine, skill, sections, messages, stage="tidy", sample=sample)
    if asked is None:
        return ()
    _, edits = asked
    if isinstance(edits, Refusal):
        engine.observer.note(f"tidy: {edits.reason}")
        return ()
    bad = refused(engine, edits, skill)
    for why in bad.values():
        engine.observer.note(f"tidy: {why}")
    return tuple(edit for edit in edits if edit not in bad)


def has_rules(section: Section | None) -> TypeGuard[Section]:
    """Return whether a section has rules that are not the lines of a script."""
    return section is not None and bool(section.rules) and not section.is_script

"""Candidates meet their gates, and the state takes what follows: accept, reject, beaten or undecided."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from fractions import Fraction

from pydantic import JsonValue

from skillc.document.edits import Edit, apply_edits
from skillc.document.skill import Document, digest, tokens
from skillc.gates.intervals import Interval
from skillc.gates.stages import gates_for, reads_batch
from skillc.models.failures import BudgetReached, EndpointUnreachable
from skillc.optimize import memory
from skillc.optimize.engine import Engine, Position, RejectedEdit, SearchState, UndecidedPatch, decision_record
from skillc.optimize.gate.credit import Flips, attribute_flips, count_flips, credit_record, edits_to_keep
from skillc.optimize.gate.gate import Decision, goal_of, mean_json, measure_validation
from skillc.optimize.host import stop_reason
from skillc.optimize.memory import with_effect
from skillc.optimize.propose.proposals import Proposal, wording
from skillc.outcomes import Example
from skillc.plan.schema import GatePlan


@dataclass(frozen=True, slots=True)
class Patch:
    """A candidate with the edits that made it, and what the history tells of them.

    Attributes:
        text: what the rejected-edit buffer holds of it; the edits' wordings where it is empty.
        proposals: what it was made of, one for each edit unless the edits were rewritten.
        trial: of a draft, what it changed on training cases: the goal in millionths by example.
        tried: the text of that trial where it is not the candidate.
        whole: whether its sections were written as a whole, and not changed by single edits.
    """

    edits: tuple[Edit, ...]
    candidate: Document
    shown: Mapping[str, JsonValue]
    text: str = ""
    proposals: tuple[Proposal, ...] = ()
    trial: Mapping[str, int] = field(default_factory=dict)
    tried: Document | None = None
    whole: bool = False


class CutOff(Exception):  # noqa: N818
    """The run ends behind a decision that stands.

    Attributes:
        state: the state with that decision.
        reason: the cap that was reached, `interrupted`, `time`, or `down` where a model stayed out of reach.
    """

    def __init__(self, state: SearchState, reason: str) -> None:
        super().__init__(reason)
        self.state = state
        self.reason = reason


DOWN = "down"
"""Why a run ended whose model stayed out of reach."""

# What may end a run in the middle of anything.
ENDS = (CutOff, BudgetReached, EndpointUnreachable, asyncio.CancelledError)


def cut_off(engine: Engine, state: SearchState, end: BaseException) -> CutOff:
    """Where one of `ENDS` leaves the run, in the `except` that caught it: in the state given, or the one it brings.

    Raises:
        CancelledError: nobody wanted the run to end.
    """
    if isinstance(end, CutOff):
        return end
    if isinstance(end, EndpointUnreachable):
        return CutOff(state, DOWN)
    return CutOff(state, end.cap if isinstance(end, BudgetReached) else stop_reason(engine.observer))


@contextmanager
def committed(engine: Engine, state: SearchState) -> Iterator[None]:
    """Whatever ends the run inside leaves it in this state, with all decisions that were told.

    Raises:
        CutOff: a cap was reached, a model stayed out of reach, or the user ended the run.
    """
    try:
        yield
    except ENDS as end:
        raise cut_off(engine, state, end) from None


@dataclass(frozen=True, slots=True)
class _Decided:
    """A patch with what is known of it: by a race of its own, or by an earlier one against the same incumbent."""

    patch: Patch
    known: Mapping[str, JsonValue]
    flips: Flips | None

    @property
    def result(self) -> str:
        return str(self.known["result"])


async def settle_patch(
    engine: Engine,
    state: SearchState,
    patch: Patch,
    batch: Sequence[Example],
    position: Position,
    *,
    gates: Sequence[GatePlan] | None = None,
    retries: int | None = None,
) -> SearchState:
    """As `settle_pool`, for one patch."""
    return await settle_pool(engine, state, (patch,), batch, position, gates=gates, retries=retries)


async def settle_pool(
    engine: Engine,
    state: SearchState,
    patches: Sequence[Patch],
    batch: Sequence[Example],
    position: Position,
    *,
    gates: Sequence[GatePlan] | None = None,
    retries: int | None = None,
    first_wave: Callable[[], None] | None = None,
) -> SearchState:
    """Decides patches against each other and gives the state after it; each decision is told to the observer.

    A candidate that was rejected against this very incumbent before keeps that decision, at no cost. Where gates
    rejected and none was accepted, up to `retries` smaller patches meet the gates too.

    Args:
        engine: the run's surroundings.
        state: the state before.
        patches: one or more; of those that make the same text the first is decided.
        batch: training examples for the gates on the batch.
        position: where in the run this is.
        gates: what decides; by default the plan's gates for steps.
        retries: the most smaller patches; by default the plan's.
        first_wave: as in `race`; it is not called for smaller patches.

    Raises:
        CutOff: a cap or the user ended the run behind a decision that stands.
        BudgetReached: a cap ended the run before the decision; nothing of it remains.
    """
    distinct = {digest(patch.candidate): patch for patch in reversed(patches)}
    patches = [patch for patch in patches if distinct[digest(patch.candidate)] is patch]
    await _incumbent_on_batch(
        engine, state, batch, gates_for(engine.plan.gates, slow=False) if gates is None else gates
    )
    if position.kind != "step":
        engine.observer.step(position, mean_json(goal_of(engine, state.incumbent)))
    engine.observer.candidates([_describe(patch) for patch in patches])
    decided = await _decide(engine, state, patches, batch, gates=gates, first_wave=first_wave)
    state = _report(engine, state, decided, position)
    tried = decided
    for _ in range(engine.plan.optimize.retries if retries is None else retries):
        patch = _smaller_patch(engine, state, tried)
        if patch is None:
            break
        # No candidate was accepted, so what follows sends nothing.
        with committed(engine, await _after_decisions(engine, state, decided, position)):
            engine.observer.candidates([_describe(patch)])
            tried = await _decide(engine, state, (patch,), batch, gates=gates)
        state = _report(engine, state, tried, position)
        decided = [*decided, *tried]
    return await _after_decisions(engine, state, decided, position)


def _describe(patch: Patch) -> list[str]:
    """What makes a candidate, for display: its edits, or the text that the rejected-edit buffer would hold."""
    told = patch.shown.get("edits")
    if patch.edits:
        shown_ = told if isinstance(told, list) and len(told) == len(patch.edits) else [None] * len(patch.edits)
        notes = [each.get("opposite") if isinstance(each, dict) else None for each in shown_]
        words = [wording(edit) for edit in patch.edits]
        return [f"{word} (may be the opposite: {n})" if n else word for word, n in zip(words, notes, strict=True)]
    named = [edit for edit in told if isinstance(edit, str)] if isinstance(told, list) else []
    return named or ([patch.text] if patch.text else [])


def _smaller_patch(engine: Engine, state: SearchState, decided: Sequence[_Decided]) -> Patch | None:
    """The best of the rejected patches without the edits that go with breakage; None where one was accepted."""
    if any(each.result == "accept" for each in decided):
        return None
    raced = [(each.patch, each.flips) for each in decided if each.result == "reject" and each.flips is not None]
    if not raced:
        return None
    patch, found = max(raced, key=lambda pair: len(pair[1].gained) - len(pair[1].lost))
    parts, _ = attribute_flips(engine, state, patch.edits, patch.candidate, found)
    stay = edits_to_keep(parts)
    edits = tuple(patch.edits[i] for i in stay)
    applied = apply_edits(state.incumbent, edits)
    known = {digest(state.incumbent), *(digest(each.patch.candidate) for each in decided)}
    if not edits or digest(applied.document) in known or not all(report.applied for report in applied.results):
        return None
    told = patch.shown.get("edits")
    named = [told[i] for i in stay] if isinstance(told, list) and len(told) == len(patch.edits) else []
    fewer = len(patch.edits) - len(edits)
    text = f"{patch.text}, less {fewer} of its edits" if patch.text else ""
    shown_: dict[str, JsonValue] = {**patch.shown, "edits": named, "smaller": fewer}
    proposals = patch.proposals
    if not patch.whole and len(proposals) == len(patch.edits):
        why = "left out of a smaller patch"
        out = [memory.fate(p, "pruned", why) for i, p in enumerate(proposals) if i not in stay]
        shown_["fates"] = [*_fates_of(patch.shown), *out]
        proposals = tuple(proposals[i] for i in stay)
    return Patch(edits, applied.document, shown_, text, proposals, whole=patch.whole)


def _fates_of(shown: Mapping[str, JsonValue]) -> list[JsonValue]:
    found = shown.get("fates")
    return list(found) if isinstance(found, list) else []


# ---- deciding -------------------------------------------------------------------------------------


async def _incumbent_on_batch(
    engine: Engine, state: SearchState, batch: Sequence[Example], gates: Sequence[GatePlan]
) -> None:
    """Measure the incumbent again where gates read the batch and a rollout of it came to nothing."""
    if not (batch and engine.acceptance.on_batch and any(reads_batch(gate.term) for gate in gates)):
        return
    known = engine.rollouts.known
    todo = [e for e in batch if (outcome := known(state.incumbent, e)) is None or not outcome.measured]
    if todo:
        engine.observer.stage("gate on batch", len(todo))
        await engine.rollouts.measure(state.incumbent, todo, stage="gate")


async def _decide(
    engine: Engine,
    state: SearchState,
    patches: Sequence[Patch],
    batch: Sequence[Example],
    *,
    gates: Sequence[GatePlan] | None,
    first_wave: Callable[[], None] | None = None,
) -> list[_Decided]:
    before = [state.decided.get(_pair(state, patch)) for patch in patches]
    racing = [patch.candidate for patch, known in zip(patches, before, strict=True) if known is None]
    decide = engine.acceptance.decide
    raced = await decide(engine, state, racing, batch, gates=gates, first_wave=first_wave) if racing else []
    decisions = iter(raced)
    decided = []
    for patch, known in zip(patches, before, strict=True):
        if known is not None:
            decided.append(_Decided(patch, known, None))
            continue
        decision = next(decisions)
        told = {**decision.to_json(), "reason": reason(engine, decision)}
        decided.append(_Decided(patch, told, decision.flips))
    return decided


def _pair(state: SearchState, patch: Patch) -> tuple[str, str]:
    """The incumbent and the candidate that a decision compared."""
    return digest(state.incumbent), digest(patch.candidate)


def _report(engine: Engine, state: SearchState, decided: Sequence[_Decided], position: Position) -> SearchState:
    """Tells the decisions, in the order of the pool, and counts them; rejects are kept for when they come again.

    What an accepted candidate flipped is not counted: it is how the incumbent is from now on, and flips no more easily.
    """
    won = {edit for each in decided if each.result == "accept" for edit in each.patch.edits}
    for i, each in enumerate(decided):
        pool: dict[str, JsonValue] = {"pool": {"candidate": i + 1, "of": len(decided)}} if len(decided) > 1 else {}
        state, own = _with_fates(engine, state, each, won)
        if position.kind == "tidy" and each.result == "accept":
            own = memory.pruned_fates(each.patch.edits)
        told = {"fates": [*_fates_of(each.patch.shown), *own]} if own else {}
        engine.observer.decided({**_record(engine, state, each, position), **told, **pool})
        words = {"accept": "accepted", "reject": "rejected"}.get(each.result, each.result)
        outcome = f"{words}: {each.known['reason']}"
        state = with_effect(engine, state, state.incumbent, each.patch, outcome, own)
        state = replace(state, decisions=state.decisions + 1)
    rejects = {_pair(state, each.patch): each.known for each in decided if each.result == "reject"}
    found = [each.flips for each in decided if each.flips is not None and each.result != "accept"]
    return replace(
        state.with_counters(flips=count_flips(state.counters.flips, found)), decided={**state.decided, **rejects}
    )


def _with_fates(
    engine: Engine, state: SearchState, decided: _Decided, won: Collection[Edit]
) -> tuple[SearchState, list[memory.Fate]]:
    """The state with its shelf and its rejected-edit buffer, and what becomes of each edit of a candidate."""
    patch, found = decided.patch, decided.flips or Flips()
    gone = {wording(proposal.edit) for proposal in patch.proposals}
    state = state.with_memory(shelf=tuple(p for p in state.memory.shelf if wording(p.edit) not in gone))
    if decided.result == "undecided":
        why = str(decided.known["reason"])
        return state, [memory.fate(proposal, "undecided", why) for proposal in patch.proposals]
    # A rewrite does what its suggestions are for, so they have the credit of their own words.
    parts, _ = attribute_flips(engine, state, [p.edit for p in patch.proposals], patch.candidate, found)
    if decided.result == "accept":
        return state, memory.accepted_fates(patch.proposals, parts)
    left = [i for i, proposal in enumerate(patch.proposals) if proposal.edit not in won]
    proposals = [patch.proposals[i] for i in left]
    if decided.result != "reject":
        return memory.shelve(state, proposals, "another candidate of the step was better")
    state, entries, told = memory.after_rejection(state, proposals, [parts[i] for i in left], found.known)
    return with_rejected(state, entries), told


def reason(engine: Engine, decision: Decision) -> str:
    """A decision in a few words, for the rejected-edit buffer and the history."""
    if decision.result == "accept":
        return engine.acceptance.why
    if decision.result == "undecided":
        return "the gates could not be decided: rollouts stayed unmeasured"
    if decision.result == "beaten":
        return f"candidate {(decision.beaten_by or 0) + 1} of the pool was better"
    found = decision.flips
    seen = f"; {len(found.gained)} gained and {len(found.lost)} lost of {found.known}" if found.known else ""
    return f"gate `{decision.blame}` failed{seen}"


def _record(engine: Engine, state: SearchState, decided: _Decided, position: Position) -> dict[str, JsonValue]:
    patch, found = decided.patch, decided.flips
    credited = credit_record(engine, state, patch.edits, patch.candidate, found) if patch.edits and found else {}
    return {
        **decision_record(state, position, candidate=digest(patch.candidate), tokens=tokens(patch.candidate)),
        **decided.known,
        **patch.shown,
        **credited,
    }


# ---- what follows ---------------------------------------------------------------------------------


async def _after_decisions(
    engine: Engine, state: SearchState, decided: Sequence[_Decided], position: Position
) -> SearchState:
    before = goal_of(engine, state.incumbent)
    state = with_rejected(
        state,
        [entry for each in decided if each.result == "reject" for entry in _rejected_edits(each)],
    )
    winner = next((each for each in decided if each.result == "accept"), None)
    if winner is not None:
        number = state.decisions - len(decided) + 1 + [each is winner for each in decided].index(True)
        return await _accepted(engine, state, winner.patch, position, number)
    if all(each.result == "undecided" for each in decided):
        counts = position.kind in ("step", "retry")
        patience = state.patience.after("undecided", _lower_bound(before)) if counts else state.patience
    else:
        # A step counts once, however many candidates it had; what is no step only ends a row of undecided ones.
        stepped = position.kind == "step"
        patience = state.patience.after("reject", _lower_bound(before)) if stepped else state.patience.decided()
    state = replace(state, patience=patience)
    if position.kind != "step":
        return state
    waiting = [
        UndecidedPatch(e.patch.edits, position, e.patch.proposals)
        for e in decided
        if e.result == "undecided" and e.patch.edits
    ]
    return replace(state, undecided=(*state.undecided, *waiting))


async def _accepted(engine: Engine, state: SearchState, patch: Patch, position: Position, number: int) -> SearchState:
    """The accept stands from here on, also where the run is cut off before the candidate's validation is complete."""
    with committed(engine, _with_incumbent(engine, state, patch, position)):
        await engine.ahead.arrive(patch.candidate)
        engine.ahead.send(patch.candidate, beside=len(engine.dataset.validation) * engine.plan.optimize.samples)
        await measure_validation(engine, patch.candidate, stage="validation")
    state = _with_incumbent(engine, state, patch, position)
    engine.observer.completed({"completed": number, "goal": mean_json(goal_of(engine, patch.candidate))})
    return state


def _with_incumbent(engine: Engine, state: SearchState, patch: Patch, position: Position) -> SearchState:
    best = patch.candidate if is_better(engine, patch.candidate, state.best) else state.best
    patience = state.patience.decided()
    if position.kind == "step":
        patience = state.patience.after("accept", _lower_bound(goal_of(engine, patch.candidate)))
    return replace(
        state.with_memory(proven=state.memory.proven | _proven(state, patch)),
        incumbent=patch.candidate,
        best=best,
        accepted=state.accepted + 1,
        patience=patience,
        whole=patch.candidate if patch.whole else state.whole,
    )


def _proven(state: SearchState, patch: Patch) -> frozenset[str]:
    """Ids of the rules whose edits cured failures in the screen that their author had not seen."""
    if patch.whole or len(patch.proposals) != len(patch.edits):
        return frozenset()
    reports = apply_edits(state.incumbent, patch.edits).results
    pairs = zip(patch.proposals, reports, strict=True)
    return frozenset(report.rule for p, report in pairs if report.rule and set(p.gains) - p.seen)


def _rejected_edits(decided: _Decided) -> list[RejectedEdit]:
    """What the rejected-edit buffer holds of a patch as a whole; single edits are there with their own evidence."""
    if decided.patch.proposals:
        return []
    text = decided.patch.text or "; ".join(wording(edit) for edit in decided.patch.edits)
    return [RejectedEdit(text, str(decided.known["reason"]))] if text else []


def with_rejected(state: SearchState, entries: Sequence[RejectedEdit]) -> SearchState:
    """The state with more entries in its rejected-edit buffer, each text once, the newest reason kept."""
    texts = {entry.text for entry in entries}
    kept = tuple(entry for entry in state.memory.rejected if entry.text not in texts)
    return state.with_memory(rejected=(*kept, *dict.fromkeys(entries)))


def is_better(engine: Engine, candidate: Document, best: Document) -> bool:
    """Whether an accepted skill becomes the best: a higher goal, then fewer tokens; the earlier keeps its place.

    Goals are compared by their lower bounds, so that what was not measured never makes a skill better.
    """
    ours, theirs = goal_of(engine, candidate).low, goal_of(engine, best).low
    return ours > theirs or (ours == theirs and tokens(candidate) < tokens(best))


def _lower_bound(goal: Interval) -> Fraction:
    return goal.low if isinstance(goal.low, Fraction) else Fraction(0)

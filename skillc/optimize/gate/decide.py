"""Decide candidates by their gates and update the state: accept, reject, beaten or undecided."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import field, replace
from fractions import Fraction

from pydantic import JsonValue

from skillc.dataclass import dataclass
from skillc.document.edits import Add, Edit, Replace, apply_edits
from skillc.document.markdown import rule_words
from skillc.document.skill import Document, digest, tokens
from skillc.gates.intervals import Interval
from skillc.gates.stages import reads_batch
from skillc.models.failures import BudgetReached, EndpointUnreachable
from skillc.optimize import memory
from skillc.optimize.engine import Engine, Position, RejectedEdit, SearchState, UndecidedPatch, decision_record
from skillc.optimize.from_sessions import has_sessions, refusal_of, sessions_of
from skillc.optimize.gate.credit import Flips, attribute_flips, count_flips, credit_record, edits_to_keep
from skillc.optimize.gate.gate import Decision, goal_of, mean_json, measure_validation
from skillc.optimize.host import TESTS, stop_reason
from skillc.optimize.memory import with_effect
from skillc.optimize.propose.proposals import Proposal, parts_of, wording
from skillc.optimize.scripts import PASSED, ScriptVerdict, changes_script
from skillc.outcomes import Example
from skillc.plan.schema import GatePlan


@dataclass(frozen=True, slots=True)
class Patch:
    """A candidate with the edits that made it, and its values for the history.

    Attributes:
        text: its entry in the rejected-edit buffer; if empty, the wordings of its edits.
        proposals: what it was made of, one for each edit unless the edits were rewritten.
        trial: the changes of a draft on training cases: the goal in millionths by example.
        tried: the skill of that trial if it is not the candidate.
        whole: whether its sections were written as a whole instead of changed by single edits.
        read: ids of the training examples that the author of the whole could read; None for all of them.
        cited: ids of those that each rule of the whole comes from, by `rule_words` of its text.
    """

    edits: tuple[Edit, ...]
    candidate: Document
    record: Mapping[str, JsonValue]
    text: str = ""
    proposals: tuple[Proposal, ...] = ()
    trial: Mapping[str, int] = field(default_factory=dict)
    tried: Document | None = None
    whole: bool = False
    read: frozenset[str] | None = None
    cited: Mapping[str, frozenset[str]] = field(default_factory=dict)


class CutOff(Exception):  # noqa: N818
    """End of the run after a decision that is kept.

    Attributes:
        state: the state with that decision.
        reason: the cap that was reached, `interrupted`, `time`, or `down` if a model stayed unreachable.
    """

    def __init__(self, state: SearchState, reason: str) -> None:
        super().__init__(reason)
        self.state = state
        self.reason = reason


POISON = "poison"
"""What is blamed for the rejection of a candidate with a rule that no skill may learn from a session."""
DOWN = "down"
"""The reason of a run that ended because a model stayed unreachable."""

# What can end a run at any await.
ENDS = (CutOff, BudgetReached, EndpointUnreachable, asyncio.CancelledError)


def cut_off(engine: Engine, state: SearchState, end: BaseException) -> CutOff:
    """Return where one of `ENDS` leaves the run: in its own state if it has one, else in the given state.

    Call it in the `except` that caught it.

    Raises:
        CancelledError: no stop was requested.
    """
    if isinstance(end, CutOff):
        return end
    if isinstance(end, EndpointUnreachable):
        return CutOff(state, DOWN)
    return CutOff(state, end.cap if isinstance(end, BudgetReached) else stop_reason(engine.observer))


@contextmanager
def committed(engine: Engine, state: SearchState) -> Iterator[None]:
    """Leave the run in this state, with all reported decisions, if anything inside ends it.

    Raises:
        CutOff: a cap was reached, a model stayed unreachable, or the user stopped the run.
    """
    try:
        yield
    except ENDS as end:
        raise cut_off(engine, state, end) from None


@dataclass(frozen=True, slots=True)
class _Decided:
    """A patch with its decision, made now or reused from an earlier race against the same incumbent.

    Attributes:
        problem: what the tests of its scripts print, if they fail.
    """

    patch: Patch
    known: Mapping[str, JsonValue]
    flips: Flips | None
    problem: str = ""

    @property
    def result(self) -> str:
        return str(self.known["result"])


async def settle(
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
    """Decide patches against each other, report each decision, and return the state after it.

    A candidate that was rejected against this incumbent before keeps that decision at no cost. If no patch is
    accepted, up to `retries` smaller ones are tried, by default the plan's number. The gates are by default those of
    the plan for steps. Of patches with the same text the first is decided. `first_wave` is as in `race`.

    Raises:
        CutOff: a cap or the user ended the run after a decision that is kept.
        BudgetReached: a cap ended the run before the decision, which is dropped.
    """
    gates = engine.step_gates if gates is None else gates
    distinct = {digest(patch.candidate): patch for patch in reversed(patches)}
    patches = [patch for patch in patches if distinct[digest(patch.candidate)] is patch]
    if [patch for patch in patches if (await engine.scripts.check(patch.candidate)).passed]:
        await _measure_incumbent_on_batch(engine, state, batch, gates)
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
        # Without an accept this makes no calls.
        with committed(engine, await _after_decisions(engine, state, decided, position)):
            engine.observer.candidates([_describe(patch)])
            tried = await _decide(engine, state, (patch,), batch, gates=gates)
        state = _report(engine, state, tried, position)
        decided = [*decided, *tried]
    return await _after_decisions(engine, state, decided, position)


def _describe(patch: Patch) -> list[str]:
    """Describe a candidate for display: by its edits, or by its entry in the rejected-edit buffer."""
    entries = patch.record.get("edits")
    entries = entries if isinstance(entries, list) else []
    if patch.edits:
        parallel = entries if len(entries) == len(patch.edits) else [None] * len(patch.edits)
        notes = [each.get("opposite") if isinstance(each, dict) else None for each in parallel]
        words = [wording(edit) for edit in patch.edits]
        return [f"{word} (may be the opposite: {n})" if n else word for word, n in zip(words, notes, strict=True)]
    return [edit for edit in entries if isinstance(edit, str)] or ([patch.text] if patch.text else [])


def _smaller_patch(engine: Engine, state: SearchState, decided: Sequence[_Decided]) -> Patch | None:
    """Return the best rejected patch without the edits associated with breakage; None after an accept."""
    if any(each.result == "accept" for each in decided):
        return None
    raced = [(each.patch, each.flips) for each in decided if each.result == "reject" and each.flips is not None]
    if not raced:
        return None
    patch, found = max(raced, key=lambda pair: pair[1].net)
    parts, _ = attribute_flips(engine, state, patch.edits, patch.candidate, found)
    keep = edits_to_keep(parts)
    edits = tuple(patch.edits[i] for i in keep)
    applied = apply_edits(state.incumbent, edits)
    known = {digest(state.incumbent), *(digest(each.patch.candidate) for each in decided)}
    if not edits or digest(applied.document) in known or not all(report.applied for report in applied.results):
        return None
    entries = patch.record.get("edits")
    kept = [entries[i] for i in keep] if isinstance(entries, list) and len(entries) == len(patch.edits) else []
    fewer = len(patch.edits) - len(edits)
    text = f"{patch.text}, less {fewer} of its edits" if patch.text else ""
    record: dict[str, JsonValue] = {**patch.record, "edits": kept, "smaller": fewer}
    proposals = patch.proposals
    if not patch.whole and len(proposals) == len(patch.edits):
        why = "left out of a smaller patch"
        out = [memory.fate(p, "pruned", why) for i, p in enumerate(proposals) if i not in keep]
        record["fates"] = [*_fates_of(patch.record), *out]
        proposals = tuple(proposals[i] for i in keep)
    whole, read, cited = patch.whole, patch.read, patch.cited
    return Patch(edits, applied.document, record, text, proposals, whole=whole, read=read, cited=cited)


def _fates_of(record: Mapping[str, JsonValue]) -> list[JsonValue]:
    found = record.get("fates")
    return list(found) if isinstance(found, list) else []


async def _measure_incumbent_on_batch(
    engine: Engine, state: SearchState, batch: Sequence[Example], gates: Sequence[GatePlan]
) -> None:
    """Repeat failed rollouts of the incumbent on the batch if a gate reads the batch."""
    if not (engine.acceptance.on_batch and any(reads_batch(gate.term) for gate in gates)):
        return
    if todo := engine.rollouts.unmeasured(state.incumbent, batch):
        engine.observer.stage("gate on batch", len(todo))
        await engine.rollouts.measure(state.incumbent, todo, stage="gate")


async def _decide(
    engine: Engine,
    state: SearchState,
    patches: Sequence[Patch],
    batch: Sequence[Example],
    *,
    gates: Sequence[GatePlan],
    first_wave: Callable[[], None] | None = None,
) -> list[_Decided]:
    refusals = [_refused(engine, state, patch) for patch in patches]
    # What may not be learned from a session is not run either.
    verdicts = [
        PASSED if refusal is not None else await engine.scripts.check(patch.candidate)
        for patch, refusal in zip(patches, refusals, strict=True)
    ]
    before = [
        refusal
        or state.decided.get(_pair(state, patch))
        or (None if verdict.passed else _untested(engine, state, verdict))
        for patch, refusal, verdict in zip(patches, refusals, verdicts, strict=True)
    ]
    racing = [patch.candidate for patch, known in zip(patches, before, strict=True) if known is None]
    decide = engine.acceptance.decide
    raced = await decide(engine, state, racing, batch, gates=gates, first_wave=first_wave) if racing else []
    decisions = iter(raced)
    decided = []
    for patch, known, verdict in zip(patches, before, verdicts, strict=True):
        if known is not None:
            decided.append(_Decided(patch, known, None, verdict.problem))
            continue
        decision = next(decisions)
        decided.append(_Decided(patch, {**decision.to_json(), "reason": reason(engine, decision)}, decision.flips))
    return decided


def _untested(engine: Engine, state: SearchState, verdict: ScriptVerdict) -> Mapping[str, JsonValue]:
    """Return the decision on a candidate whose scripts do not pass their tests, without a rollout."""
    blame = None if verdict.unmeasured else TESTS
    return _unmeasured(engine, state, "undecided" if verdict.unmeasured else "reject", blame, verdict.summary)


def _refused(engine: Engine, state: SearchState, patch: Patch) -> Mapping[str, JsonValue] | None:
    """Return the decision on a candidate with a rule that no skill may learn from a session; None if it has none."""
    why = refusal_of(engine, state.incumbent, patch.candidate)
    return _unmeasured(engine, state, "reject", POISON, f"refused: {why}") if why else None


def _unmeasured(
    engine: Engine, state: SearchState, result: str, blame: str | None, why: str
) -> Mapping[str, JsonValue]:
    return {
        "result": result,
        "blame": blame,
        "evaluated": 0,
        "of": len(engine.dataset.validation),
        "gains": 0,
        "losses": 0,
        "gates": {},
        "goal": {"incumbent": mean_json(goal_of(engine, state.incumbent)), "candidate": None},
        "reason": why,
    }


def _pair(state: SearchState, patch: Patch) -> tuple[str, str]:
    return digest(state.incumbent), digest(patch.candidate)


def _report(engine: Engine, state: SearchState, decided: Sequence[_Decided], position: Position) -> SearchState:
    """Report the decisions in the order of the pool, count them, and keep rejections for repeated candidates.

    Flips of an accepted candidate are not counted, because it becomes the incumbent.
    """
    won = {edit for each in decided if each.result == "accept" for edit in each.patch.edits}
    for i, each in enumerate(decided):
        pool: dict[str, JsonValue] = {"pool": {"candidate": i + 1, "of": len(decided)}} if len(decided) > 1 else {}
        state, own = _with_fates(engine, state, each, won)
        if position.kind in ("tidy", "ablate") and each.result == "accept":
            own = memory.pruned_fates(each.patch.edits)
        fates = {"fates": [*_fates_of(each.patch.record), *own]} if own else {}
        engine.observer.decided({**_record(engine, state, each, position), **fates, **pool})
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
    """Update the shelf and the rejected-edit buffer, and return the fate of each edit of a candidate."""
    patch, found = decided.patch, decided.flips or Flips()
    gone = {wording(proposal.edit) for proposal in patch.proposals}
    state = state.with_memory(shelf=tuple(p for p in state.memory.shelf if wording(p.edit) not in gone))
    if decided.result == "undecided":
        why = str(decided.known["reason"])
        return state, [memory.fate(proposal, "undecided", why) for proposal in patch.proposals]
    # A rewrite serves its suggestions, so they get the credit of their own words.
    parts, _ = attribute_flips(engine, state, [p.edit for p in patch.proposals], patch.candidate, found)
    if decided.result == "accept":
        return state, memory.accepted_fates(patch.proposals, parts)
    if decided.known.get("blame") == TESTS:
        return _with_failed_tests(state, patch, decided.problem)
    left = [i for i, proposal in enumerate(patch.proposals) if proposal.edit not in won]
    proposals = [patch.proposals[i] for i in left]
    if decided.result != "reject":
        return memory.shelve(state, proposals, "another candidate of the step was better")
    state, entries, fates = memory.after_rejection(state, proposals, [parts[i] for i in left], found.known)
    return with_rejected(state, entries), fates


def _with_failed_tests(state: SearchState, patch: Patch, why: str) -> tuple[SearchState, list[memory.Fate]]:
    """Reject the edits of scripts that fail their tests together; the other edits wait for the next step."""
    scripts = [p for p in patch.proposals if changes_script(state.incumbent, p.edit)]
    others = [p for p in patch.proposals if p not in scripts]
    state, fates = memory.shelve(state, others, "a script of its bundle failed its tests")
    entries = [RejectedEdit(wording(proposal.edit), why) for proposal in scripts]
    return with_rejected(state, entries), [*(memory.fate(p, "rejected", why) for p in scripts), *fates]


def reason(engine: Engine, decision: Decision) -> str:
    """Explain a decision briefly, for the rejected-edit buffer and the history."""
    if decision.result == "accept":
        return engine.acceptance.why
    if decision.result == "undecided":
        return "the gates could not be decided: rollouts stayed unmeasured"
    if decision.result == "beaten":
        return f"candidate {(decision.beaten_by or 0) + 1} of the pool was better"
    found = decision.flips
    seen = f"; {len(found.cured)} gained and {len(found.broke)} lost of {found.known}" if found.known else ""
    return f"gate `{decision.blame}` failed{seen}"


def _with_sessions(engine: Engine, patch: Patch) -> dict[str, JsonValue]:
    """Return the sessions that each edit is from, or those of a text without edits; nothing if the data names none.

    `sessions` are those that its author could read, `cited` those of the cases that it names, where it names any.
    """
    if not has_sessions(engine):
        return {}
    entries = patch.record.get("edits")
    own = patch.proposals
    if not (isinstance(entries, list) and entries):
        return {"sessions": [*sessions_of(engine, patch.read)]}
    if len(own) == len(entries) and not patch.whole:
        read: list[frozenset[str] | None] = [each.read.union(each.cures, each.seen) for each in own]
    elif own:
        read = [frozenset[str]().union(*(each.read.union(each.cures, each.seen) for each in own))] * len(entries)
    else:
        read = [patch.read] * len(entries)
    with_keys: list[JsonValue] = []
    for i, (entry, ids) in enumerate(zip(entries, read, strict=True)):
        if isinstance(entry, dict):
            named = sessions_of(engine, _cites(patch, patch.edits[i])) if len(patch.edits) == len(entries) else []
            entry = {**entry, "sessions": [*sessions_of(engine, ids)], **({"cited": [*named]} if named else {})}
        with_keys.append(entry)
    return {"edits": with_keys}


def _cites(patch: Patch, edit: Edit) -> Collection[str]:
    """Return the ids of the cases that an edit names; of one that rewrites proposals, those of the ones it was made of.

    Nothing if one of these names none, as it may be from anything that was read.
    """
    text = edit.text if isinstance(edit, Add | Replace) else ""
    if not patch.proposals:
        return patch.cited.get(rule_words(text), frozenset())
    own = parts_of(text, patch.proposals)
    return {example for each in own for example in each.cures} if all(each.cures for each in own) else set[str]()


def _record(engine: Engine, state: SearchState, decided: _Decided, position: Position) -> dict[str, JsonValue]:
    patch, found = decided.patch, decided.flips
    credited = credit_record(engine, state, patch.edits, patch.candidate, found) if patch.edits and found else {}
    return {
        **decision_record(state, position, candidate=digest(patch.candidate), tokens=tokens(patch.candidate)),
        **decided.known,
        **patch.record,
        **_with_sessions(engine, patch),
        **credited,
    }


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
        # A step counts once, however many candidates it had; other decisions only end a series of undecided ones.
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
    """Accept a candidate and complete its validation; the accept is kept even if the run ends before that."""
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
    """Return the ids of the rules whose edits cured failures unseen by their author in the screen."""
    if patch.whole or len(patch.proposals) != len(patch.edits):
        return frozenset()
    reports = apply_edits(state.incumbent, patch.edits).results
    pairs = zip(patch.proposals, reports, strict=True)
    return frozenset(report.rule for p, report in pairs if report.rule and set(p.gains) - p.seen)


def _rejected_edits(decided: _Decided) -> list[RejectedEdit]:
    """Return the entry of a whole patch in the rejected-edit buffer; single edits have entries with own evidence."""
    if decided.patch.proposals:
        return []
    text = decided.patch.text or "; ".join(wording(edit) for edit in decided.patch.edits)
    return [RejectedEdit(text, str(decided.known["reason"]))] if text else []


def with_rejected(state: SearchState, entries: Sequence[RejectedEdit]) -> SearchState:
    """Add entries to the rejected-edit buffer, each text once with its newest reason."""
    texts = {entry.text for entry in entries}
    kept = tuple(entry for entry in state.memory.rejected if entry.text not in texts)
    return state.with_memory(rejected=(*kept, *dict.fromkeys(entries)))


def is_better(engine: Engine, candidate: Document, best: Document) -> bool:
    """Return whether an accepted skill becomes the best: a higher goal, then fewer tokens.

    Goals are compared by their lower bounds, so that unmeasured examples never make a skill better.
    """
    ours, theirs = goal_of(engine, candidate).low, goal_of(engine, best).low
    return ours > theirs or (ours == theirs and tokens(candidate) < tokens(best))


def _lower_bound(goal: Interval) -> Fraction:
    return goal.low if isinstance(goal.low, Fraction) else Fraction(0)

"""A candidate meets its gates, and the state takes what follows: accept, reject or undecided."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from pydantic import JsonValue

from skillc.data.example import Example
from skillc.document.edits import Edit
from skillc.document.skill import Document, digest, tokens
from skillc.optimize.engine import Engine, Place, Rejected, State, Undecided, mean
from skillc.optimize.gate import Decision, Trial, complete
from skillc.optimize.proposals import wording


@dataclass(frozen=True, slots=True)
class Patch:
    """A candidate with the edits that made it, and what the history tells of them.

    Attributes:
        text: what the rejected-edit buffer holds of it; the edits' wordings where it is empty.
    """

    edits: tuple[Edit, ...]
    candidate: Document
    shown: Mapping[str, JsonValue]
    text: str = ""


async def settle(
    engine: Engine, state: State, patch: Patch, batch: Sequence[Example], place: Place, *, slow: bool = False
) -> State:
    """Decides a patch and gives the state after it; the decision is told to the observer.

    A candidate that was decided against this very incumbent before keeps that decision, at no cost.
    """
    pair = (digest(state.incumbent), digest(patch.candidate))
    before = mean(engine, state.incumbent, engine.plan.goal.name) or Fraction(0)
    known = state.decided.get(pair)
    if known is None:
        decision = await Trial(engine, state, patch.candidate, batch, slow=slow).decide()
        known = {**decision.to_json(), "reason": reason(decision)}
    if known["result"] == "accept":
        await complete(engine, patch.candidate, stage="validation")
    after = mean(engine, patch.candidate, engine.plan.goal.name) if known["result"] == "accept" else None
    engine.observer.decided(_record(state, patch, place, known, before, after))
    state = replace(state, decisions=state.decisions + 1, decided={**state.decided, pair: known})
    if known["result"] == "accept":
        return _accepted(engine, state, patch, after or before, place)
    if known["result"] == "undecided":
        waiting = state.undecided if place.kind == "retry" else (*state.undecided, Undecided(patch.edits, place))
        return replace(state, undecided=waiting, patience=state.patience.after("undecided", before))
    return _rejected(state, patch, str(known["reason"]), before, place)


def _accepted(engine: Engine, state: State, patch: Patch, goal: Fraction, place: Place) -> State:
    best = patch.candidate if is_better(engine, patch.candidate, state.best) else state.best
    patience = state.patience.after("accept", goal) if place.kind == "step" else state.patience
    return replace(state, incumbent=patch.candidate, best=best, accepted=state.accepted + 1, patience=patience)


def _rejected(state: State, patch: Patch, why: str, goal: Fraction, place: Place) -> State:
    text = patch.text or "; ".join(wording(edit) for edit in patch.edits)
    if not text:
        return state
    patience = state.patience.after("reject", goal) if place.kind == "step" else state.patience
    return replace(with_rejected(state, [Rejected(text, why)]), patience=patience)


def with_rejected(state: State, entries: Sequence[Rejected]) -> State:
    """The state with more entries in its rejected-edit buffer, each text once, the newest reason kept."""
    texts = {entry.text for entry in entries}
    kept = tuple(entry for entry in state.rejected if entry.text not in texts)
    return replace(state, rejected=(*kept, *dict.fromkeys(entries)))


def is_better(engine: Engine, candidate: Document, best: Document) -> bool:
    """Whether an accepted skill becomes the best: a higher goal, then fewer tokens; the earlier keeps its place."""
    goal = engine.plan.goal.name
    ours, theirs = mean(engine, candidate, goal), mean(engine, best, goal)
    if ours is None or theirs is None or ours < theirs:
        return False
    return ours > theirs or tokens(candidate) < tokens(best)


def reason(decision: Decision) -> str:
    """A decision in a few words, for the rejected-edit buffer and the history."""
    if decision.result == "accept":
        return "all gates hold"
    if decision.result == "undecided":
        return "the gates could not be decided: rollouts stayed unmeasured"
    seen = f"; {decision.gains} gained and {decision.losses} lost of {decision.evaluated}" if decision.evaluated else ""
    return f"gate `{decision.blame}` failed{seen}"


def shown(value: Fraction | None) -> str | None:
    """A goal's mean as the history writes it: six digits, the same for the same value."""
    return None if value is None else f"{float(value):.6f}".rstrip("0").rstrip(".")


def _record(
    state: State,
    patch: Patch,
    place: Place,
    known: Mapping[str, JsonValue],
    before: Fraction,
    after: Fraction | None,
) -> dict[str, JsonValue]:
    return {
        "decision": state.decisions + 1,
        "place": str(place),
        "epoch": place.epoch,
        "kind": place.kind,
        **known,
        "goal": {"incumbent": shown(before), "candidate": shown(after)},
        "incumbent": digest(state.incumbent),
        "candidate": digest(patch.candidate),
        "tokens": tokens(patch.candidate),
        **patch.shown,
    }

"""`rollback = 5%`: with `accept = always`, the way back to the best skill once the goal has fallen too far below it."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from pydantic import JsonValue

from skillc.document.edits import Add, Delete, Edit, Replace
from skillc.document.skill import Document, digest, tokens
from skillc.optimize.engine import Engine, Place, Rejected, State, entry, mean
from skillc.optimize.gate.decide import with_rejected
from skillc.optimize.gate.gate import shown
from skillc.optimize.propose.proposals import wording
from skillc.optimize.strategies.mechanism import Mechanism
from skillc.plan.schema import Plan


class Rollback(Mechanism):
    """Return to the best skill if the goal has fallen too far below it.

    Args:
        limit: how far it may fall, as a share of the goal's range.
    """

    name = "rollback"

    def __init__(self, limit: Fraction) -> None:
        self._limit = limit

    @classmethod
    def of(cls, plan: Plan) -> Rollback | None:
        """Return the mechanism if `rollback` is set and each candidate is accepted."""
        optimize = plan.optimize
        return cls(optimize.rollback) if optimize.accept == "always" and optimize.rollback is not None else None

    def decided(self, engine: Engine, state: State, place: Place) -> State:
        """Return to the best skill, as a decision that counts for nothing else.

        What led away from the best goes to the rejected-edit buffer.
        """
        goal = engine.plan.goal
        now, best = mean(engine, state.incumbent, goal.name), mean(engine, state.best, goal.name)
        if now is None or best is None or best - now <= self._limit * (goal.high - goal.low):
            return state
        reason = f"the goal fell from {shown(best)} to {shown(now)}"
        goals: dict[str, JsonValue] = {"incumbent": shown(now), "candidate": shown(best)}
        told = entry(state, place, result="rollback", reason=reason, goal=goals, candidate=digest(state.best))
        engine.observer.decided({**told, "kind": "rollback", "tokens": tokens(state.best)})
        text = "; ".join(wording(edit) for edit in differences(state.best, state.incumbent))
        entries = [Rejected(text, f"taken back: {reason}")] if text else []
        return replace(with_rejected(state, entries), incumbent=state.best, decisions=state.decisions + 1)


def differences(before: Document, after: Document) -> list[Edit]:
    """Edits on rules that lead from one skill to another; where a rule stands does not count."""
    edits: list[Edit] = []
    for rule in after.rules:
        old = before.rule(rule.id)
        section = after.section_of(rule.id)
        if old is None and section is not None:
            edits.append(Add(section.name, rule.text, rule.topic, rule.rationale))
        elif old is not None and old.text != rule.text:
            edits.append(Replace(rule.id, rule.text, rule.rationale))
    edits += [Delete(rule.id) for rule in before.rules if rule.id not in after.ids]
    return edits

"""All optional mechanisms, in the order in which the loop calls them."""

from __future__ import annotations

from skillc.optimize.strategies.acceptance import Rollback
from skillc.optimize.strategies.epoch_review import MetaSkill, SlowUpdate
from skillc.optimize.strategies.lookups import Lookups
from skillc.optimize.strategies.mechanism import Mechanism
from skillc.optimize.strategies.rule_feedback import Lapses, RuleCounts
from skillc.optimize.strategies.tidy import Tidy
from skillc.plan.schema import Plan

MECHANISMS: tuple[type[Mechanism], ...] = (Lapses, RuleCounts, Lookups, Rollback, SlowUpdate, Tidy, MetaSkill)


def mechanisms_of(plan: Plan) -> tuple[Mechanism, ...]:
    """Return the mechanisms that a plan turns on."""
    return tuple(found for each in MECHANISMS if (found := each.from_plan(plan)) is not None)

"""All optional mechanisms, in the order in which the loop calls them."""

from __future__ import annotations

from skillc.optimize.strategies.lapses import Lapses
from skillc.optimize.strategies.lookups import Lookups
from skillc.optimize.strategies.mechanism import Mechanism
from skillc.optimize.strategies.meta_skill import MetaSkill
from skillc.optimize.strategies.rollback import Rollback
from skillc.optimize.strategies.rule_counts import RuleCounts
from skillc.optimize.strategies.slow_update import SlowUpdate
from skillc.optimize.strategies.tidy import Tidy
from skillc.plan.schema import Plan

MECHANISMS: tuple[type[Mechanism], ...] = (Lapses, RuleCounts, Lookups, Rollback, SlowUpdate, Tidy, MetaSkill)


def mechanisms_of(plan: Plan) -> tuple[Mechanism, ...]:
    """Return the mechanisms that a plan turns on."""
    return tuple(found for each in MECHANISMS if (found := each.of(plan)) is not None)

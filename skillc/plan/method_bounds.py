"""What a peer's method may spend: baseline, search, its questions, one decision, the final test."""

from __future__ import annotations

from skillc.plan.call_sizes import CallSizes
from skillc.plan.methods import GEPA_MINIBATCH, most_questions, most_rollouts
from skillc.plan.schema import Plan
from skillc.plan.sizes import Sizes
from skillc.plan.spend import Bound, Spend
from skillc.plan.stages import Least, Stage

_REASKED = 2


def method_least(plan: Plan, sizes: Sizes, each: CallSizes) -> Least:
    """One proposal from the fewest rollouts that it can be made of, decided on validation, and the test."""
    rollout = each.rollout.least
    seen = {"one_shot": min(plan.optimize.batch, sizes.train), "gepa": min(GEPA_MINIBATCH, sizes.train)}
    gated = any(gate.stage == "validation" for gate in plan.gates if gate.for_ is None)
    return Least(
        baseline=rollout * _validation(plan, sizes),
        once=Spend(),
        decisions=1,
        rollouts=rollout * seen.get(plan.optimize.method, 0),
        reflections=each.propose.least,
        on_batch=Spend(),
        validation=rollout * (_validation(plan, sizes) if gated else 0),
        test=rollout * (2 * sizes.test * plan.optimize.samples),
    )


def method_stages(plan: Plan, sizes: Sizes, each: CallSizes, least: Least) -> tuple[Stage, ...]:
    """All stages; the estimate takes the search for as large as it may be, since no method ends early by itself."""
    searched = most_rollouts(plan, sizes.train, sizes.validation)
    asked = most_questions(plan, sizes.train, sizes.validation)
    rollout, validation = each.rollout, _validation(plan, sizes)
    batch = min(plan.optimize.batch, sizes.train)
    on_batch = 2 * batch if any(gate.stage == "batch" for gate in plan.gates if gate.for_ is None) else 0
    test = 2 * sizes.test * plan.optimize.samples
    # A search has measured its result on validation before; the gates read that.
    decided = validation // 2 if plan.optimize.method == "one_shot" else 0
    proposed = each.propose.times(0, asked, asked * _REASKED)
    found = (
        Stage("baseline", "target", _from(each.first.times(*[validation] * 3), least.baseline)),
        Stage("search", "target", _from(rollout.times(0, searched, searched), least.rollouts)),
        Stage("propose", "optimizer", _from(proposed, least.reflections)),
        Stage("gate", "target", _from(rollout.times(0, on_batch + decided, on_batch + validation), least.validation)),
        Stage("final test", "target", _from(rollout.times(0, test, test), least.test)),
        Stage("no skill", "target", each.bare.times(0, *[validation + sizes.test * plan.optimize.samples] * 2)),
    )
    return tuple(stage for stage in found if stage.bound.most.calls)


def _validation(plan: Plan, sizes: Sizes) -> int:
    return sizes.validation * plan.optimize.samples


def _from(bound: Bound, least: Spend) -> Bound:
    return Bound(least, bound.estimate, bound.most)

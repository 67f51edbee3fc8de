"""What a plan's figures give reason to say, before anything is spent."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from skillc.budget.bounds import Bounds
from skillc.budget.methods import candidates_of
from skillc.budget.spend import POOLED_BELOW, Sizes
from skillc.budget.steps import step_size
from skillc.diagnostics.diagnostic import Severity
from skillc.gates.margins import margin_of, points_above
from skillc.gates.stages import fields_of
from skillc.gates.terms import MeanTerm, calls, conjuncts, sides, walk
from skillc.gates.units import written
from skillc.plan import figures
from skillc.plan.schema import Plan
from skillc.stats.power import (
    chance_of_accept,
    inflation,
    null_run,
)

# Fewer groups than this can't give a significant result (ENGINE section 6).
LEAST_GROUPS = 6
_FEW_IN_FLIGHT = 4
# A share of runs that is shown as 0 %.
_NEGLIGIBLE = 0.005

# Where in the program: kind, name, setting.
Place = tuple[str, str | None, str | None]


@dataclass(frozen=True, slots=True)
class Advice:
    """A finding about a plan, and the declaration that it is about."""

    code: str
    severity: Severity
    message: str
    at: Place
    hint: str | None = None


def plan_advice(plan: Plan, sizes: Sizes, bounds: Bounds) -> Iterator[Advice]:
    """All that is to be said besides whether the budget can pay."""
    yield from _loop(plan, sizes, bounds)
    yield from _idle(plan)
    yield from _groups(plan, sizes)
    yield from _noise(plan, bounds)
    yield from _test(plan, sizes)
    yield from _unbounded(plan, bounds)
    yield from _drift(plan)
    yield from _flights(plan, bounds)


def _loop(plan: Plan, sizes: Sizes, bounds: Bounds) -> Iterator[Advice]:
    patience, batch = plan.budget.patience, step_size(plan)
    if patience is not None and patience > bounds.steps:
        message = f"`patience` is {patience} steps, and there are {bounds.steps}, so it never ends the run"
        hint = "lower it, or allow more epochs"
        yield Advice("SK552", Severity.WARNING, message, ("budget", None, "patience"), hint)
    if batch > sizes.train:
        held = "a batch is" if plan.optimize.accumulate == 1 else "the batches of a step are"
        message = f"{held} {batch} examples, and train has {sizes.train}"
        hint = (
            f"write `batch = {max(1, sizes.train // 2)}` or less: with one batch an epoch there is little to learn from"
        )
        yield Advice("SK553", Severity.WARNING, message, ("optimize", None, "batch"), hint)
    wave = plan.optimize.wave
    if wave is not None and wave > max(1, sizes.validation // 2):
        message = f"a wave is {wave} of {sizes.validation} validation examples, so gates can't be decided early"
        yield Advice("SK567", Severity.NOTE, message, ("optimize", None, "wave"), "a tenth is a good size")


def _idle(plan: Plan) -> Iterator[Advice]:
    """Settings that another one leaves without effect."""
    optimize = plan.optimize
    if optimize.rollback is not None and optimize.accept != "always":
        message = "`rollback` takes nothing back: the gates let no candidate through that is worse"
        yield Advice("SK569", Severity.WARNING, message, ("optimize", None, "rollback"), "it is for `accept = always`")


def _groups(plan: Plan, sizes: Sizes) -> Iterator[Advice]:
    """The smallest group of each `by = field`: what a single example weighs there."""
    for gate in plan.gates:
        for field in fields_of(gate.term):
            smallest = sizes.smallest_group(field)
            if smallest is None or smallest[1] >= POOLED_BELOW:
                continue
            name, size = smallest
            message = f"the smallest group of `{field}`, `{name}`, has {size} examples on validation"
            hint = f"one regression there is {figures.share(1 / size)}"
            yield Advice("SK554", Severity.NOTE, message, ("gate", gate.name, None), hint)


def _noise(plan: Plan, bounds: Bounds) -> Iterator[Advice]:
    temperature = plan.models["target"].parameters.get("temperature")
    if isinstance(temperature, int | float) and temperature > 0 and plan.optimize.samples < 2:
        message = "the target answers with chance, and each example is run once"
        hint = "a skill then regresses against itself on 6 to 11 % of examples: `samples = 2`, or `temperature = 0`"
        yield Advice("SK555", Severity.WARNING, message, ("model", "target", "temperature"), hint)
    text = null_accepts(plan, bounds)
    if text is not None:
        yield Advice("SK557", Severity.NOTE, text, ("gate", plan.gates[0].name, None), _stricter(plan, bounds))


def null_accepts(plan: Plan, bounds: Bounds) -> str | None:
    """What the gates let through by chance over a whole run; None if next to nothing, or if no validation decides."""
    decisions = bounds.expected_steps * plan.optimize.candidates
    if plan.optimize.method != "skillc":
        decisions = candidates_of(plan, bounds.sizes.train, bounds.sizes.validation)
    examples = bounds.sizes.validation
    if not decisions or not examples or not any(gate.stage == "validation" for gate in plan.gates):
        return None
    margin = margin_of(plan.gates, lambda metric: _width(plan, metric), examples, decisions)
    if margin is None:
        return "no gate asks for a better mean than the incumbent's, so edits worth nothing are accepted too"
    chance = chance_of_accept(decisions, margin)
    if chance < _NEGLIGIBLE:
        return None
    run = null_run(decisions, margin)
    points = inflation(run, examples, float(_width(plan, plan.goal.name))) * 100
    return (
        f"if all {decisions} candidates were worth nothing, {run.accepts:.1f} would still be accepted on average, at "
        f"least one in {figures.share(chance)} of runs, and validation then be up to {points:.0f} points too high"
    )


def _width(plan: Plan, metric: str) -> Fraction:
    found = plan.metric(metric)
    return found.high - found.low


def _stricter(plan: Plan, bounds: Bounds) -> str | None:
    goal = plan.goal.name
    strict = f"confidence(candidate.{goal} > incumbent.{goal}) >= 95%"
    decisions = bounds.expected_steps * plan.optimize.candidates
    margin = margin_of(plan.gates, lambda metric: _width(plan, metric), bounds.sizes.validation, decisions)
    if margin is not None and margin > 1:
        return None
    return f"the final test tells; `{strict}` lets less through" if plan.goal.declared else "the final test tells"


def _test(plan: Plan, sizes: Sizes) -> Iterator[Advice]:
    severity, never = Severity.WARNING, ""
    if plan.required_verdict is not None:
        severity = Severity.ERROR
        never = f", and with `require {plan.required_verdict}` no skill can be delivered"
    if sizes.test == 0:
        message = f"there is no test split, so the result stays `unverified`{never}"
        yield Advice("SK561", severity, message, ("data", None, "split"), "write `split = 2 : 1 : 2`")
    elif sizes.groups < LEAST_GROUPS:
        message = f"the test split has {sizes.groups} groups, and with fewer than {LEAST_GROUPS} nothing can be shown"
        yield Advice("SK561", severity, message + never, ("data", None, "group"), "add data, or split more finely")


def _unbounded(plan: Plan, bounds: Bounds) -> Iterator[Advice]:
    for gate in plan.gates:
        named = {call.function for call in calls(gate.term)}
        if "cost" in named and bounds.prices.get("target") is None:
            message = f"the price of `{plan.models['target'].model}` is not known, so the gate `{gate.name}` stays open"
            hint = "declare it: `price { input = $1; output = $4 }`, in dollars per million tokens"
            yield Advice("SK556", Severity.WARNING, message, ("gate", gate.name, None), hint)
        elif "latency" in named:
            message = f"`latency` has no upper bound, so the gate `{gate.name}` can't be decided early"
            yield Advice("SK556", Severity.NOTE, message, ("gate", gate.name, None))


def _drift(plan: Plan) -> Iterator[Advice]:
    """A tolerance against the incumbent adds up over accepts, unless something holds the skill to a fixed one."""
    anchored: set[str] = set()
    loose: dict[str, tuple[str, Fraction]] = {}
    for gate in plan.gates:
        for part in conjuncts(gate.term):
            asked = sides(part)
            points = points_above(*asked) if asked else None
            if asked is None or points is None:
                continue
            above, other = asked[0], next(t for t in walk(asked[1]) if isinstance(t, MeanTerm))
            assert isinstance(above, MeanTerm)
            if other.state != "incumbent" or points >= 0:
                anchored.add(above.metric)
            elif points < 0:
                loose.setdefault(above.metric, (gate.name, -points))
    for metric, (gate_name, lost) in loose.items():
        if metric not in anchored:
            unit = plan.metric(metric).unit
            each = (
                written(lost, unit) if unit else written(lost * 100, "") + (" point" if lost * 100 == 1 else " points")
            )
            message = f"each accept may cost `{metric}` {each}, and twenty accepts twenty times that"
            hint = f"hold it to a fixed skill too: `candidate.{metric} >= initial.{metric}`"
            yield Advice("SK568", Severity.WARNING, message, ("gate", gate_name, None), hint)


def _flights(plan: Plan, bounds: Bounds) -> Iterator[Advice]:
    for role, admitted in bounds.in_flight.items():
        if admitted is not None and admitted < _FEW_IN_FLIGHT:
            largest = plan.models[role].max_reply
            message = f"the budget admits {admitted} calls of `{role}` at once, each reserved at its largest"
            hint = f"a reply of at most {largest} tokens is reserved: lower `max_reply`, or raise the budget"
            yield Advice("SK562", Severity.WARNING, message, ("model", role, None), hint)

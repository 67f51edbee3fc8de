"""Rules over a plan and what a run may spend: what the figures show before anything is spent."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from fractions import Fraction
from math import sqrt
from statistics import NormalDist

from skillc.budget.spend import Least, Spend, price_hint
from skillc.budget.steps import candidates_of, step_size
from skillc.diagnostics.diagnostic import Diagnostic
from skillc.gates.functions import multiplicity
from skillc.gates.stages import SMALLEST_GROUP, Gate, group_fields
from skillc.gates.terms import CallTerm, Constant, MeanTerm, Term, conjuncts, points_above, sides, walk
from skillc.gates.units import format_quantity
from skillc.lint.rules import PlanFacts, error, note, rule, warning
from skillc.plan import figures
from skillc.plan.schema import Plan
from skillc.stats.betting import standard_errors
from skillc.stats.power import DIFFERING, LEAST_GROUPS, chance_of_accept, inflation, null_run

_FEW_IN_FLIGHT = 4
# A share of runs that is shown as 0 %.
_NEGLIGIBLE = 0.005

Measure = Callable[[Spend], int | Fraction | None]
_MEASURES: dict[str, Measure] = {
    "calls": lambda spend: spend.calls,
    "tokens": lambda spend: spend.tokens,
    "cost": lambda spend: spend.cost,
}


# ---- the budget -----------------------------------------------------------------------------------


@rule(PlanFacts)
def unknown_prices(facts: PlanFacts) -> Iterator[Diagnostic]:
    """Models without a price, if the budget caps the cost."""
    if facts.plan.budget.cost is None:
        return
    for role, price in facts.bounds.prices.items():
        if price is None:
            model = facts.plan.models[role]
            message = f"the budget caps the cost, and the price of `{model.model}` is not known"
            yield error("SK651", facts.at("model", role), message, price_hint(model))


@rule(PlanFacts)
def unaffordable_runs(facts: PlanFacts) -> Iterator[Diagnostic]:
    """Caps below the least that a run with a result takes (an error), or below the estimate of a whole run."""
    bounds = facts.bounds
    for name, measure in _MEASURES.items():
        cap, least = getattr(facts.plan.budget, name), measure(bounds.minimum.total)
        if cap is None or least is None:
            continue
        at = facts.at("budget", None, name)
        if least > cap:
            sums = _arithmetic(bounds.minimum, name)
            message = f"the budget can't pay for a run with a result: {sums}, the budget allows {_shown(name, cap)}"
            yield error("SK501", at, message, f"the least that would do is `{_setting(name, least)}`")
            continue
        estimate = measure(bounds.estimate)
        if estimate is not None and estimate > cap:
            message = f"a whole run is estimated at {_shown(name, estimate)}, the budget ends it at {_shown(name, cap)}"
            hint = f"`{_setting(name, estimate)}` would do; what was learnt till then is kept and tested"
            yield warning("SK551", at, message, hint)


def _arithmetic(least: Least, measure: str) -> str:
    """The sum behind the least, written out: `baseline 80 + 3 decisions x (...) + final test 2 x 160 = 766 calls`."""
    of = _MEASURES[measure]
    parts = [f"preflight {_shown(measure, of(least.preflight), bare=True)}"] if least.preflight.calls else []
    parts.append(f"baseline {_shown(measure, of(least.baseline), bare=True)}")
    if least.once.calls:
        parts.append(f"training examples {_shown(measure, of(least.once), bare=True)}")
    if measure == "calls":
        each = {
            "rollouts": least.rollouts,
            "reflections": least.reflections,
            "on the batch": least.on_batch,
            "validation": least.validation,
        }
        inner = " + ".join(f"{spend.calls:,} {name}" for name, spend in each.items() if spend.calls)
        parts.append(f"{least.decisions} decisions x ({inner})")
    else:
        parts.append(f"{least.decisions} decisions x {_shown(measure, of(least.decision), bare=True)}")
    if least.test.calls:
        half = of(least.test)
        assert half is not None
        one = half / 2 if isinstance(half, Fraction) else half // 2
        parts.append(f"final test 2 x {_shown(measure, one, bare=True)}")
    return f"{' + '.join(parts)} = {_shown(measure, of(least.total))}"


def _shown(measure: str, value: int | Fraction | None, *, bare: bool = False) -> str:
    if measure == "cost":
        return figures.dollars(Fraction(value) if value is not None else None)
    whole = int(value or 0)
    text = figures.tokens(whole) if measure == "tokens" else f"{whole:,}"
    return text if bare else f"{text} {measure}"


def _setting(measure: str, value: int | Fraction) -> str:
    if measure == "cost":
        return f"cost = ${figures.cents_up(Fraction(value))}"
    return f"{measure} = {figures.rounded_up(int(value)) if measure == 'tokens' else int(value)}"


# ---- the loop -------------------------------------------------------------------------------------


@rule(PlanFacts)
def large_batches(facts: PlanFacts) -> Iterator[Diagnostic]:
    """Batches larger than train, and waves that let no gate be decided early."""
    optimize, sizes, batch = facts.plan.optimize, facts.sizes, step_size(facts.plan)
    if batch > sizes.train:
        held = "a batch is" if optimize.accumulate == 1 else "the batches of a step are"
        message = f"{held} {batch} examples, and train has {sizes.train}"
        hint = (
            f"write `batch = {max(1, sizes.train // 2)}` or less: with one batch an epoch there is little to learn from"
        )
        yield warning("SK553", facts.at("optimize", None, "batch"), message, hint)
    if optimize.wave is not None and optimize.wave > max(1, sizes.validation // 2):
        of = f"{optimize.wave} of {sizes.validation} validation examples"
        message = f"a wave is {of}, so gates can't be decided early"
        yield note("SK567", facts.at("optimize", None, "wave"), message, "a tenth is a good size")


@rule(PlanFacts)
def idle_rollback(facts: PlanFacts) -> Iterator[Diagnostic]:
    """`rollback`, if gates let no candidate through that is worse."""
    if facts.plan.optimize.rollback is not None and facts.plan.optimize.accept != "always":
        message = "`rollback` takes nothing back: the gates let no candidate through that is worse"
        yield warning("SK569", facts.at("optimize", None, "rollback"), message, "it is for `accept = always`")


# ---- gates and chance -----------------------------------------------------------------------------


@rule(PlanFacts)
def small_groups(facts: PlanFacts) -> Iterator[Diagnostic]:
    """The smallest group of each `by = field`: the weight of a single example there."""
    for gate in facts.plan.gates:
        for field in group_fields(gate.term):
            smallest = facts.sizes.smallest_group(field)
            if smallest is None or smallest[1] >= SMALLEST_GROUP:
                continue
            name, size = smallest
            message = f"the smallest group of `{field}`, `{name}`, has {size} examples on validation"
            yield note(
                "SK554", facts.at("gate", gate.name), message, f"one regression there is {figures.percent(1 / size)}"
            )


@rule(PlanFacts)
def noisy_target(facts: PlanFacts) -> Iterator[Diagnostic]:
    """A target that answers with chance, if each example is run once."""
    temperature = facts.plan.models["target"].parameters.get("temperature")
    if isinstance(temperature, int | float) and temperature > 0 and facts.plan.optimize.samples < 2:
        message = "the target answers with chance, and each example is run once"
        hint = "a skill then regresses against itself on 6 to 11 % of examples: `samples = 2`, or `temperature = 0`"
        yield warning("SK555", facts.at("model", "target", "temperature"), message, hint)


@rule(PlanFacts)
def accepts_by_chance(facts: PlanFacts) -> Iterator[Diagnostic]:
    """Accepts to expect over a whole run if all candidates were worth nothing; none if no validation decides."""
    plan, examples = facts.plan, facts.sizes.validation
    looped = facts.bounds.expected_steps * plan.optimize.candidates
    decisions = candidates_of(plan, facts.sizes.train, examples) if plan.optimize.method != "skillc" else looped
    if not decisions or not examples or not any(gate.stage == "validation" for gate in plan.gates):
        return
    at, margin = facts.at("gate", plan.gates[0].name), _margin(facts, decisions)
    hint = _stricter(facts, looped)
    if margin is None:
        message = "no gate asks for a better mean than the incumbent's, so edits worth nothing are accepted too"
        yield note("SK557", at, message, hint)
        return
    chance = chance_of_accept(decisions, margin)
    if chance >= _NEGLIGIBLE:
        run = null_run(decisions, margin)
        points = inflation(run, examples, float(_width(plan, plan.goal.name))) * 100
        message = (
            f"if all {decisions} candidates were worth nothing, {run.accepts:.1f} would still be accepted on average, "
            f"at least one in {figures.percent(chance)} of runs, and validation then be up to {points:.0f} "
            "points too high"
        )
        yield note("SK557", at, message, hint)


def margin_of(gates: Iterable[Gate], width: Callable[[str], Fraction], examples: int, decisions: int) -> float | None:
    """The largest margin that a gate asks of a candidate's mean over the incumbent's, in standard errors.

    None where no gate asks for a higher mean.

    Args:
        gates: of a plan.
        width: of a metric's range.
        examples: of the validation split.
        decisions: that share the error of a claim `over = run`.
    """
    asked = (_margins(gate.term, width, examples, decisions) for gate in gates if gate.for_ is None)
    return max((margin for margins in asked for margin in margins), default=None)


def _margins(term: Term, width: Callable[[str], Fraction], examples: int, decisions: int) -> Iterator[float]:
    for part in conjuncts(term):
        match sides(part):
            case (CallTerm("e_value") as claim, Constant(threshold)):
                yield standard_errors(
                    max(1, round(DIFFERING * examples)), threshold * multiplicity(claim, max(1, decisions))
                )
            case (CallTerm("confidence") as claim, Constant(level)):
                alpha = (1 - level) / multiplicity(claim, max(1, decisions))
                if 0 < alpha < 1:
                    yield NormalDist().inv_cdf(1 - float(alpha))
            case (MeanTerm(_, metric) as above, below) if (points := points_above(above, below)) is not None:
                whole = width(metric)
                yield float(points / whole) * sqrt(2 * examples) if whole else 0.0


def _margin(facts: PlanFacts, decisions: int) -> float | None:
    return margin_of(facts.plan.gates, lambda name: _width(facts.plan, name), facts.sizes.validation, decisions)


def _width(plan: Plan, metric: str) -> Fraction:
    found = plan.metric(metric)
    return found.high - found.low


def _stricter(facts: PlanFacts, decisions: int) -> str | None:
    goal = facts.plan.goal
    strict = f"confidence(candidate.{goal.name} > incumbent.{goal.name}) >= 95%"
    margin = _margin(facts, decisions)
    if margin is not None and margin > 1:
        return None
    return f"the final test tells; `{strict}` lets less through" if goal.declared else "the final test tells"


@rule(PlanFacts)
def weak_test(facts: PlanFacts) -> Iterator[Diagnostic]:
    """A test split that can't show anything; an error if a verdict is required."""
    required = facts.plan.required_verdict
    say = warning if required is None else error
    never = f", and with `require {required}` no skill can be delivered" if required is not None else ""
    if facts.sizes.test == 0:
        message = f"there is no test split, so the result stays `unverified`{never}"
        yield say("SK561", facts.at("data", None, "split"), message, "write `split = 2 : 1 : 2`")
    elif facts.sizes.groups < LEAST_GROUPS:
        few = f"{facts.sizes.groups} groups, and with fewer than {LEAST_GROUPS} nothing can be shown{never}"
        hint = "add data, or split more finely"
        yield say("SK561", facts.at("data", None, "group"), f"the test split has {few}", hint)


@rule(PlanFacts)
def drifting_gates(facts: PlanFacts) -> Iterator[Diagnostic]:
    """Tolerances against the incumbent, which add up over accepts unless a gate holds the skill to a fixed one."""
    anchored: set[str] = set()
    loose: dict[str, tuple[str, Fraction]] = {}
    for gate in facts.plan.gates:
        for part in conjuncts(gate.term):
            compared = sides(part)
            points = points_above(*compared) if compared else None
            if compared is None or points is None:
                continue
            above, other = compared[0], next(t for t in walk(compared[1]) if isinstance(t, MeanTerm))
            assert isinstance(above, MeanTerm)
            if other.state != "incumbent" or points >= 0:
                anchored.add(above.metric)
            elif points < 0:
                loose.setdefault(above.metric, (gate.name, -points))
    for metric, (gate_name, lost) in loose.items():
        if metric not in anchored:
            unit = facts.plan.metric(metric).unit
            points_lost = format_quantity(lost * 100, "") + (" point" if lost * 100 == 1 else " points")
            each = format_quantity(lost, unit) if unit else points_lost
            message = f"each accept may cost `{metric}` {each}, and twenty accepts twenty times that"
            hint = f"hold it to a fixed skill too: `candidate.{metric} >= initial.{metric}`"
            yield warning("SK568", facts.at("gate", gate_name), message, hint)


@rule(PlanFacts)
def few_in_flight(facts: PlanFacts) -> Iterator[Diagnostic]:
    """Budgets that admit few calls at once."""
    for role, admitted in facts.bounds.in_flight.items():
        if admitted is not None and admitted < _FEW_IN_FLIGHT:
            largest = facts.plan.models[role].max_reply
            message = f"the budget admits {admitted} calls of `{role}` at once, each reserved at its largest"
            hint = f"a reply of at most {largest} tokens is reserved: lower `max_reply`, or raise the budget"
            yield warning("SK562", facts.at("model", role), message, hint)

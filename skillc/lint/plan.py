"""Rules over a plan and the bounds of a run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from fractions import Fraction
from math import sqrt
from statistics import NormalDist

from skillc.budget.spend import Extent, Least, Spend, price_hint
from skillc.budget.steps import method_counts, step_size
from skillc.diagnostics.diagnostic import Diagnostic
from skillc.gates import units
from skillc.gates.functions import multiplicity
from skillc.gates.stages import SMALLEST_GROUP, Gate, group_fields
from skillc.gates.terms import CallTerm, Constant, MeanTerm, Term, conjuncts, points_above, sides, walk
from skillc.gates.units import format_quantity
from skillc.lint.rules import PlanFacts, error, note, rule, warning
from skillc.plan.models import capped_roles
from skillc.plan.schema import Plan
from skillc.stats.power import DIFFERING, LEAST_GROUPS, chance_of_accept, inflation, null_run, standard_errors
from skillc.text import counted

_FEW_IN_FLIGHT = 4
_NEGLIGIBLE = 0.005
"""A share of runs that is shown as 0 %."""


# ---- inputs ---------------------------------------------------------------------------------------


@rule(PlanFacts)
def cut_inputs(facts: PlanFacts) -> Iterator[Diagnostic]:
    """Inputs that are cut in some examples."""
    sizes = facts.sizes
    every = sizes.train + sizes.validation + sizes.test
    for field in facts.plan.task.inputs:
        count, left_out = sizes.cuts.get(field.name, (0, Extent()))
        if count and field.limit is not None:
            message = (
                f"the {field.cut} of `{field.name}` is cut in {count:,} of {counted(every, 'example')}: "
                f"{left_out.mean:,} tokens are left out on average, {left_out.most:,} at most"
            )
            hint = f"raise the limit of {field.limit:,} tokens if the rest matters"
            yield note("SK438", facts.at("input", field.name, "cut"), message, hint)


# ---- the budget -----------------------------------------------------------------------------------


@rule(PlanFacts)
def unknown_prices(facts: PlanFacts) -> Iterator[Diagnostic]:
    """Models without a price, if the budget caps their cost."""
    capped = capped_roles(facts.plan)
    for role, price in facts.bounds.prices.items():
        if price is None and role in capped:
            model = facts.plan.models[role]
            message = f"the budget caps the cost, and the price of `{model.model}` is unknown"
            yield error("SK651", facts.at("model", role), message, price_hint(model))


@rule(PlanFacts)
def unaffordable_runs(facts: PlanFacts) -> Iterator[Diagnostic]:
    """Caps below the least that a run with a result takes (an error), or below the estimate of a whole run."""
    bounds = facts.bounds
    for name in ("calls", "tokens", "cost"):
        cap, least = getattr(facts.plan.budget, name), getattr(bounds.minimum.total, name)
        if cap is None or least is None:
            continue
        at, allowed = facts.at("budget", None, name), _format(name, cap)
        if least > cap:
            message = f"the budget allows {allowed}, and a run with a result takes {_sum(bounds.minimum, name)}"
            yield error("SK501", at, message, f"write `{_setting(name, least)}` or more")
            continue
        estimate = getattr(bounds.total.estimate, name)
        if estimate is not None and estimate > cap:
            message = f"a whole run takes about {_format(name, estimate)}, and the budget ends it at {allowed}"
            hint = f"write `{_setting(name, estimate)}`; a run that ends early keeps and tests what it has learnt"
            yield warning("SK551", at, message, hint)


@rule(PlanFacts)
def unaffordable_judges(facts: PlanFacts) -> Iterator[Diagnostic]:
    """Caps on judges below what the baseline takes of them (an error), or below the estimate of a whole run."""
    judged, budget = facts.bounds.judged, facts.plan.budget
    baseline = sum(
        (stage.bound.least for each in judged.values() for stage in each if stage.name == "baseline"), Spend()
    )
    whole = sum((bound.estimate for bound in facts.bounds.judges.values()), Spend())
    for name, measure in (("judge_calls", "calls"), ("judge_cost", "cost")):
        cap = getattr(budget, name)
        if cap is None or getattr(whole, measure) is None:
            continue
        at, allowed = facts.at("budget", None, name), _format(measure, cap)
        least, estimate = getattr(baseline, measure), getattr(whole, measure)
        if least > cap:
            message = f"the budget allows judges {allowed}, and the baseline alone takes {_format(measure, least)}"
            yield error("SK501", at, message, f"write `judge_{_setting(measure, estimate)}` or more")
        elif estimate > cap:
            about = _format(measure, estimate)
            message = f"the judges of a whole run take about {about}, and the budget ends it at {allowed}"
            yield warning("SK551", at, message, f"write `judge_{_setting(measure, estimate)}`")


def _sum(least: Least, measure: str) -> str:
    """The least as a sum: `baseline 80 + 3 decisions x (...) + final test 2 x 160 = 766 calls`."""

    def shown(spend: Spend) -> str:
        return _format(measure, getattr(spend, measure), unit=False)

    first = {"preflight": least.preflight, "baseline": least.baseline, "training examples": least.once}
    parts = [f"{name} {shown(spend)}" for name, spend in first.items() if spend.calls or name == "baseline"]
    one = {
        "rollouts": least.rollouts,
        "reflections": least.reflections,
        "on the batch": least.on_batch,
        "validation": least.validation,
    }
    calls = " + ".join(f"{spend.calls:,} {name}" for name, spend in one.items() if spend.calls)
    parts.append(f"{least.decisions} decisions x {f'({calls})' if measure == 'calls' else shown(least.decision)}")
    if least.test.calls:
        parts.append(f"final test 2 x {_format(measure, Fraction(getattr(least.test, measure)) / 2, unit=False)}")
    return f"{' + '.join(parts)} = {_format(measure, getattr(least.total, measure))}"


def _format(measure: str, value: int | Fraction, *, unit: bool = True) -> str:
    if measure == "cost":
        return units.dollars(Fraction(value))
    text = units.tokens(int(value)) if measure == "tokens" else f"{int(value):,}"
    return f"{text} {measure}" if unit else text


def _setting(measure: str, value: int | Fraction) -> str:
    if measure == "cost":
        return f"cost = ${units.cents_up(Fraction(value))}"
    return f"{measure} = {units.rounded_up(int(value)) if measure == 'tokens' else int(value)}"


# ---- the loop -------------------------------------------------------------------------------------


@rule(PlanFacts)
def large_batches(facts: PlanFacts) -> Iterator[Diagnostic]:
    """Batches larger than train, and waves that let no gate be decided early."""
    optimize, sizes, batch = facts.plan.optimize, facts.sizes, step_size(facts.plan)
    if batch > sizes.train:
        batches = "a batch has" if optimize.accumulate == 1 else "the batches of a step have"
        message = f"{batches} {batch} examples, and train has {sizes.train}"
        hint = f"write `batch = {max(1, sizes.train // 2)}` or less: one batch an epoch gives few decisions"
        yield warning("SK553", facts.at("optimize", None, "batch"), message, hint)
    if optimize.wave is not None and optimize.wave > max(1, sizes.validation // 2):
        of = f"{optimize.wave} of {sizes.validation} validation examples"
        message = f"a wave is {of}, so gates can't be decided early"
        yield note("SK567", facts.at("optimize", None, "wave"), message, "use about a tenth of the split")


@rule(PlanFacts)
def idle_rollback(facts: PlanFacts) -> Iterator[Diagnostic]:
    """`rollback`, if the gates accept no worse candidate."""
    if facts.plan.optimize.rollback is not None and facts.plan.optimize.accept != "always":
        message = "`rollback` has no effect: the gates accept no worse candidate"
        yield warning("SK569", facts.at("optimize", None, "rollback"), message, "use it with `accept = always`")


# ---- gates and chance -----------------------------------------------------------------------------


@rule(PlanFacts)
def small_groups(facts: PlanFacts) -> Iterator[Diagnostic]:
    """Small groups of `by = field`, where a single example weighs a lot."""
    for gate in facts.plan.gates:
        for field in group_fields(gate.term):
            smallest = facts.sizes.smallest_group(field)
            if smallest is None or smallest[1] >= SMALLEST_GROUP:
                continue
            name, size = smallest
            message = f"the smallest group of `{field}`, `{name}`, has {size} examples on validation"
            yield note(
                "SK554", facts.at("gate", gate.name), message, f"one regression there is {units.percent(1 / size)}"
            )


@rule(PlanFacts)
def noisy_target(facts: PlanFacts) -> Iterator[Diagnostic]:
    """A target that samples its answers, if each example is run once."""
    temperature = facts.plan.models["target"].parameters.get("temperature")
    if isinstance(temperature, int | float) and temperature > 0 and facts.plan.optimize.samples < 2:
        message = "the target samples its answers, and each example is run once"
        hint = (
            "a skill then regresses against itself on 6 to 11 % of examples; write `samples = 2` or `temperature = 0`"
        )
        yield warning("SK555", facts.at("model", "target", "temperature"), message, hint)


@rule(PlanFacts)
def accepts_by_chance(facts: PlanFacts) -> Iterator[Diagnostic]:
    """Accepts to expect over a whole run if no candidate helps; none if no gate reads validation."""
    plan, examples = facts.plan, facts.sizes.validation
    looped = facts.bounds.expected_steps * plan.optimize.candidates
    decisions = (
        method_counts(plan, facts.sizes.train, examples).candidates if plan.optimize.method != "skillc" else looped
    )
    if not decisions or not examples or not any(gate.stage == "validation" for gate in plan.gates):
        return
    at, margin = facts.at("gate", plan.gates[0].name), _margin(facts, decisions)
    hint = _stricter(facts, looped)
    if margin is None:
        message = "no gate asks for a higher mean than the incumbent's, so useless edits are accepted too"
        yield note("SK557", at, message, hint)
        return
    chance = chance_of_accept(decisions, margin)
    if chance >= _NEGLIGIBLE:
        run = null_run(decisions, margin)
        points = inflation(run, examples, float(_width(plan, plan.goal.name))) * 100
        message = (
            f"expect {run.accepts:.1f} false accepts even if none of {decisions} candidates helps: at least one in "
            f"{units.percent(chance)} of runs, where validation is up to {points:.0f} points too high"
        )
        yield note("SK557", at, message, hint)


def margin_of(gates: Iterable[Gate], width: Callable[[str], Fraction], examples: int, decisions: int) -> float | None:
    """The largest margin over the incumbent's mean that a gate asks for, in standard errors.

    None if no gate asks for a higher mean. `width` returns the width of a metric's range, `examples` are those of the
    validation split, and all `decisions` of the run share the error of a claim `over = run`.
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
    unaffected = "the final test is not affected"
    return f"{unaffected}; `{strict}` accepts fewer" if goal.declared else unaffected


@rule(PlanFacts)
def weak_test(facts: PlanFacts) -> Iterator[Diagnostic]:
    """A test split that can't show any gain; an error if a verdict is required."""
    required = facts.plan.required_verdict
    report = warning if required is None else error
    never = f", and with `require {required}` no skill can be delivered" if required is not None else ""
    if facts.sizes.test == 0:
        message = f"the data has no test split, so the result stays `unverified`{never}"
        yield report("SK561", facts.at("data", None, "split"), message, "write `split = 2 : 1 : 2`")
    elif facts.sizes.groups < LEAST_GROUPS:
        few = f"{facts.sizes.groups} groups, and fewer than {LEAST_GROUPS} can show no gain{never}"
        hint = "add data, or split more finely"
        yield report("SK561", facts.at("data", None, "group"), f"the test split has {few}", hint)


@rule(PlanFacts)
def drifting_gates(facts: PlanFacts) -> Iterator[Diagnostic]:
    """Tolerances against the incumbent, which add up over accepts unless a gate compares with a fixed skill."""
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
            message = f"each accept may lower `{metric}` by {each}, and twenty accepts by twenty times as much"
            hint = f"compare it with a fixed skill too: `candidate.{metric} >= initial.{metric}`"
            yield warning("SK568", facts.at("gate", gate_name), message, hint)


@rule(PlanFacts)
def few_in_flight(facts: PlanFacts) -> Iterator[Diagnostic]:
    """Budgets that admit few concurrent calls."""
    for role, admitted in facts.bounds.in_flight.items():
        if admitted is not None and admitted < _FEW_IN_FLIGHT:
            largest = facts.plan.models[role].max_reply
            message = f"the budget admits {admitted} concurrent calls of `{role}`, each reserved at its largest size"
            hint = f"a reply of at most {largest} tokens is reserved: lower `max_reply`, or raise the budget"
            yield warning("SK562", facts.at("model", role), message, hint)


@rule(PlanFacts)
def untrained_skills(facts: PlanFacts) -> Iterator[Diagnostic]:
    """Skills with trainable parts beside the one that is trained."""
    for other in facts.plan.others:
        if other.about_trainable or any(section.mode != "frozen" for section in other.sections):
            message = f"`{other.name}` is not trained: this compile trains `{facts.plan.skill.name}`"
            yield note("SK560", facts.at("skill", other.name), message, f"`--set skill.train={other.name}` trains it")

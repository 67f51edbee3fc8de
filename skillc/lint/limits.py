"""Rules over the settings of a run: limits that rule something out, and gates that can't be decided or always hold."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from skillc.diagnostics.diagnostic import Diagnostic, Label
from skillc.gates.functions import CONDITIONAL
from skillc.gates.terms import (
    CallTerm,
    Constant,
    MetricTerm,
    Operation,
    StateTerm,
    WordTerm,
    calls,
    conjuncts,
    show_term,
    sides,
)
from skillc.gates.units import decimal
from skillc.language.checked import (
    Amount,
    Entity,
    Setting,
    Settings,
    Shares,
    Word,
    amount_of,
    count_of,
    items_of,
    value_of,
    word_of,
)
from skillc.language.kinds import default_of
from skillc.lint.rules import PlanFacts, ProgramFacts, note, rule, warning
from skillc.tokens import A_HEADING, LEAST_AROUND_QUESTION, LEAST_AROUND_ROLLOUT, count_tokens

_LEAST_RULE = 2
"""Tokens of the shortest rule: its bullet, and a word."""


# ---- sections -------------------------------------------------------------------------------------


@rule(ProgramFacts)
def full_sections(facts: ProgramFacts) -> Iterator[Diagnostic]:
    """Sections whose limit leaves no room for a rule."""
    for section in _sections(facts):
        limit = amount_of(section.settings, "limit")
        if "trainable" not in section.words or section.kind != "section" or limit is None:
            continue
        setting, text = section.settings["limit"], section.text
        if limit < _LEAST_RULE:
            message = f"no rule fits into `{section.name}`: a bullet and a word have {_LEAST_RULE} tokens"
            yield warning("SK412", setting, message, "raise the limit; a rule has 10 to 40 tokens")
        # A text with so few characters can't fill it.
        elif len(text) >= limit - _LEAST_RULE and text.strip():
            used = count_tokens(text)
            if limit - _LEAST_RULE < used <= limit:
                message = f"the text of `{section.name}` fills its limit: {used} of {int(limit)} tokens"
                hint = "no rule can be added before one is removed; raise the limit, or shorten the text"
                yield note("SK412", setting, message, hint)


@rule(ProgramFacts)
def trainable_about(facts: ProgramFacts) -> Iterator[Diagnostic]:
    """Descriptions that may be trained: no step of the loop writes them yet."""
    for skill in facts.checked.entities:
        about = next((child for child in skill.children_of("about") if "trainable" in child.words), None)
        if about is None:
            continue
        trained = any("frozen" not in section.words for section in skill.children_of("section"))
        if word_of(skill.settings, "load") != "on_demand":
            message = f"the `about` of `{skill.name}` is not trained: the target always reads this skill"
            if trained:
                yield note("SK419", about, message, "write its final text; it stays frozen")
            else:
                yield warning("SK419", about, f"{message}, and the skill has none", "add `trainable section rules`")
        elif not _names_where(facts, skill.name or ""):
            message = f"the `about` of `{skill.name}` is not trained: no gate says where to open it"
            hint = f'add `gate finds = recall(opened({skill.name}), kind == "...") >= 90%`'
            yield (note if trained else warning)("SK419", about, message, hint)


def _names_where(facts: ProgramFacts, skill: str) -> bool:
    """Whether a gate on precision or recall has a condition under which a skill should be opened."""
    opened = CallTerm("opened", (WordTerm(skill),))
    terms = {metric.name: metric.term for metric in facts.checked.metrics}
    found = (call for gate in facts.checked.gates for call in calls(gate.term) if call.function in CONDITIONAL)
    read = (call.arguments[0] for call in found)
    return any(isinstance(metric, MetricTerm) and terms.get(metric.name) == opened for metric in read)


@rule(ProgramFacts)
def slow_sections(facts: ProgramFacts) -> Iterator[Diagnostic]:
    """Slow sections that are never written, and gates for updates that never come."""
    slow = [section for section in _sections(facts) if "slow" in section.words]
    cause = _cause_of_no_slow_update(facts)
    if cause is not None:
        why, setting, hint = cause
        for section in slow:
            labels = (Label(setting.source, setting.span, "this prevents it"),)
            message = f"the slow section `{section.name}` is never written: {why}"
            yield note("SK413", section, message, hint, secondary=labels)
    for gate in facts.checked.gates:
        if gate.for_ == "slow" and not slow:
            hint = f"write `gate {gate.name} = ...` for the steps, or add `slow section guidance`"
            yield note("SK414", gate, f"the gate `{gate.name}` decides nothing: the skill has no slow section", hint)
        elif gate.for_ == "slow" and cause is not None:
            yield note("SK414", gate, f"the gate `{gate.name}` decides nothing: {cause[0]}", cause[2])


def _cause_of_no_slow_update(facts: ProgramFacts) -> tuple[str, Setting, str] | None:
    """Why slow sections are never rewritten, the setting that causes it, and the fix."""
    optimize, budget = facts.settings("optimize"), facts.settings("budget")
    if word_of(optimize, "method") not in (None, "skillc"):
        # Another method writes to all sections that are not frozen.
        return None
    if value_of(optimize, "slow_update") is False:
        return "slow updates are off", optimize["slow_update"], "write `slow_update = on`, or make the section frozen"
    if amount_of(optimize, "slow_update_samples") == 0:
        why = "a slow update that compares no examples asks no question"
        return why, optimize["slow_update_samples"], "write `slow_update_samples = 20`"
    needed, steps = _epoch_steps(facts), amount_of(budget, "steps")
    if needed is not None and steps is not None and steps < needed:
        why = f"an epoch has {needed} steps, and the run ends after {int(steps)}"
        return why, budget["steps"], f"write `steps = {needed}` or more: it is written at epoch ends"
    return None


def _sections(facts: ProgramFacts) -> list[Entity]:
    return [child for skill in facts.of_kind("skill") for child in skill.children]


# ---- the budget -----------------------------------------------------------------------------------


@rule(ProgramFacts)
def impossible_caps(facts: ProgramFacts) -> Iterator[Diagnostic]:
    """Caps that no run fits into, as far as the text alone shows; the plan knows what the data adds (SK501)."""
    budget = facts.settings("budget")
    yield from _impossible_counts(facts, budget)
    if amount_of(budget, "cost") == 0:
        prices = [(model.name, model.settings.get("price")) for model in facts.of_kind("model")]
        for name, price in prices:
            if price is not None and any(amount_of(price.block, rate) for rate in price.block):
                message = f"the budget is $0, and a call of `{name}` has a price"
                yield warning("SK516", budget["cost"], message, "write `cost = $3`")
                break
    if amount_of(budget, "time") == 0:
        yield warning("SK516", budget["time"], "the budget allows no time", "write `time = 90 min`")


def _impossible_counts(facts: ProgramFacts, budget: Settings) -> Iterator[Diagnostic]:
    """A run scores the first skill on validation, asks the optimizer once, and tests two skills."""
    validation, test = _fewest_examples(facts.settings("data"))
    samples = int(amount_of(facts.settings("optimize"), "samples") or 1)
    rollouts = validation * samples + 2 * test * samples
    least = {"calls": rollouts + 1, "tokens": rollouts * LEAST_AROUND_ROLLOUT + LEAST_AROUND_QUESTION}
    sums = f"baseline {validation * samples} + one question"
    if test:
        sums += f" + final test 2 x {test * samples}"
    for name, needed in least.items():
        cap = amount_of(budget, name)
        if cap is None or cap >= needed:
            continue
        message = f"the budget allows {decimal(cap)} {name}, and any run takes at least {sums} = {rollouts + 1} calls"
        hint = f"write `{name} = {needed}` or more"
        if name == "tokens":
            message += f" of {LEAST_AROUND_ROLLOUT} tokens or more"
            units = (f"{decimal(cap)}{unit}" for unit, factor in (("k", 1e3), ("M", 1e6)) if cap * factor >= needed)
            meant = next(units, None)
            hint = f"did you mean `{meant}`?" if meant else hint
        yield warning("SK516", budget[name], message, hint)


def _fewest_examples(data: Settings) -> tuple[int, int]:
    """The fewest examples of validation and of test: the declared counts, else one."""
    split = value_of(data, "split")
    if not isinstance(split, Shares):
        return 1, int("source" in data or "test" in data)
    validation, test = [*split.parts[1:], Amount(Fraction(0))][:2]
    if validation.unit != "examples":
        return 1, min(1, int(test.value > 0))
    return int(validation.value), int(test.value)


@rule(ProgramFacts)
def unreachable_gain(facts: ProgramFacts) -> Iterator[Diagnostic]:
    """A minimum gain that no accept can have, so that none resets the patience."""
    budget, goal = facts.settings("budget"), facts.goal
    gain = amount_of(budget, "min_gain")
    if gain is None or goal is None or goal.low is None or goal.high is None:
        return
    most = goal.high - goal.low
    if gain > most:
        message = f"no accept adds more than {decimal(most)} to `{goal.name}`, so none resets the patience"
        percent = gain / 100 <= most and not goal.unit
        hint = f"did you mean `{decimal(gain)}%`?" if percent else "make it smaller"
        yield warning("SK517", budget["min_gain"], message, hint)


@rule(PlanFacts)
@rule(ProgramFacts)
def idle_patience(facts: ProgramFacts | PlanFacts) -> Iterator[Diagnostic]:
    """Patience that can't run out before the steps do; the plan knows their number even if the text does not."""
    patience, steps = (
        (facts.plan.budget.patience, facts.bounds.steps)
        if isinstance(facts, PlanFacts)
        else (count_of(facts.settings("budget"), "patience"), _steps(facts))
    )
    if patience is not None and steps is not None and patience > steps:
        message = f"`patience` is {patience} steps, and the run has {steps}, so it never ends the run"
        report = note if isinstance(facts, ProgramFacts) else warning
        yield report("SK507", facts.at("budget", None, "patience"), message, "lower it, or allow more epochs")


def _steps(facts: ProgramFacts) -> int | None:
    """The most steps of a run; None if the text does not show them."""
    budget, epoch = facts.settings("budget"), _epoch_steps(facts)
    capped, epochs = amount_of(budget, "steps"), amount_of(budget, "epochs")
    bounds = [int(capped)] if capped is not None else []
    if epochs is not None and epoch is not None:
        bounds.append(int(epochs) * epoch)
    return min(bounds, default=None)


# ---- gates ----------------------------------------------------------------------------------------


@rule(PlanFacts)
@rule(ProgramFacts)
def undecidable_gates(facts: ProgramFacts | PlanFacts) -> Iterator[Diagnostic]:
    """Gates over quantities without an upper bound, which a part of the validation split can't decide."""
    for gate in facts.plan.gates if isinstance(facts, PlanFacts) else facts.checked.gates:
        named, at = {call.function for call in calls(gate.term)}, facts.at("gate", gate.name)
        if "cost" in named and isinstance(facts, PlanFacts) and facts.bounds.prices.get("target") is None:
            model = facts.plan.models["target"].model
            message = f"the price of `{model}` is unknown, so the gate `{gate.name}` stays open"
            hint = "declare it: `price { input = $1; output = $4 }`, in dollars per million tokens"
            yield warning("SK504", at, message, hint)
        elif "latency" in named:
            message = f"`latency` has no upper bound, so the gate `{gate.name}` can't be decided early"
            yield note("SK504", at, message, "each decision takes the whole validation split")


@rule(ProgramFacts)
def redundant_caps(facts: ProgramFacts) -> Iterator[Diagnostic]:
    """Caps on tokens that the frozen texts and the limits of the other sections guarantee anyway."""
    for gate in facts.checked.gates:
        for each in conjuncts(gate.term):
            match sides(each):
                case (Constant(cap), CallTerm("tokens", (StateTerm("candidate"),))):
                    most = _most_tokens(facts)
                    if most is not None and most <= cap:
                        message = f"the limits of the sections guarantee `{show_term(each)}` already"
                        yield note("SK506", gate, message, f"with full sections, the skill has at most {most} tokens")


def _most_tokens(facts: ProgramFacts) -> int | None:
    """The tokens of a skill at its limits; None if a section has no limit."""
    total = 0
    for section in _sections(facts):
        limit = amount_of(section.settings, "limit")
        if "frozen" in section.words:
            total += count_tokens(section.text)
        elif limit is None:
            return None
        else:
            total += int(limit)
        total += A_HEADING
    return total


@rule(ProgramFacts)
def contradictions(facts: ProgramFacts) -> Iterator[Diagnostic]:
    """Gates that can't hold, always hold, exclude each other or follow from others."""
    gates = facts.checked.gates
    comparisons = (gate.term for gate in gates if isinstance(gate.term, Operation))
    # The checker judges a single comparison of plain quantities by itself.
    if len(gates) > 1 or any(isinstance(each, Operation | CallTerm) for term in comparisons for each in term.operands):
        from skillc.lint.contradictions import judge_gates

        yield from judge_gates(facts.checked)


@rule(ProgramFacts)
def copied_answers(facts: ProgramFacts) -> Iterator[Diagnostic]:
    """Right answers that are texts and shown to the optimizer, if no gate reads what it copies."""
    optimize = facts.settings("optimize")
    if Word("gold") not in items_of(optimize, "sees"):
        return
    fields = (field for task in facts.of_kind("task") for field in task.children_of("output"))
    free = any(field.type is not None and field.type.kind in ("text", "json") for field in fields)
    if free and not any(call.function == "overlap" for gate in facts.checked.gates for call in calls(gate.term)):
        message = "the optimizer sees the right answers, and no gate prevents it from copying them into the skill"
        hint = "add `gate own_words = overlap(candidate) <= 20%`, or leave `gold` out"
        yield note("SK509", optimize["sees"], message, hint)


def _epoch_steps(facts: ProgramFacts) -> int | None:
    """Steps of an epoch; None if `split` does not count the training examples."""
    split, optimize = value_of(facts.settings("data"), "split"), facts.settings("optimize")
    if not isinstance(split, Shares) or split.parts[0].unit != "examples":
        return None
    batch, batches = (
        int(amount_of(optimize, name) or default_of("optimize", name)) for name in ("batch", "accumulate")
    )
    return -(-int(split.parts[0].value) // (batch * batches))

"""Rules over the settings of a run: what its limits rule out, and gates that can't be decided or are settled."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from skillc.diagnostics.diagnostic import Diagnostic, Label
from skillc.gates.terms import CallTerm, Constant, Operation, StateTerm, calls, conjuncts, show_term, sides
from skillc.gates.units import decimal
from skillc.language.checked import Amount, CheckedGate, Entity, Items, Setting, Shares, Word, amount_of
from skillc.language.kinds import default_of
from skillc.lint.rules import PlanFacts, ProgramFacts, note, rule, warning
from skillc.tokens import A_HEADING, LEAST_AROUND_QUESTION, LEAST_AROUND_ROLLOUT, count_tokens

_LEAST_RULE = 2
"""Tokens of the shortest rule: its bullet, and a word."""


# ---- sections -------------------------------------------------------------------------------------


@rule(ProgramFacts, "SK412")
def full_sections(facts: ProgramFacts) -> Iterator[Diagnostic]:
    """Sections whose limit leaves no room for a rule."""
    for section in _sections(facts):
        limit = amount_of(section.settings, "limit")
        if "trainable" not in section.words or section.kind != "section" or limit is None:
            continue
        setting, text = section.settings["limit"], section.value if isinstance(section.value, str) else ""
        if limit < _LEAST_RULE:
            message = f"no rule fits into `{section.name}`: a bullet and a word have {_LEAST_RULE} tokens"
            yield warning("SK412", setting, message, "raise the limit; a rule has 10 to 40 tokens")
        # A text with so few characters can't fill it.
        elif len(text) >= limit - _LEAST_RULE and text.strip():
            used = count_tokens(text)
            if limit - _LEAST_RULE < used <= limit:
                message = f"the text of `{section.name}` fills its limit: {used} of {int(limit)} tokens"
                hint = "a rule must go before one can come; raise the limit, or shorten the text"
                yield note("SK412", setting, message, hint)


@rule(ProgramFacts, "SK419")
def trainable_about(facts: ProgramFacts) -> Iterator[Diagnostic]:
    """Descriptions that may be trained: no step of the loop writes them yet."""
    for skill in facts.checked.entities:
        about = next((child for child in skill.children if child.kind == "about" and "trainable" in child.words), None)
        if about is None:
            continue
        message = f"the `about` of `{skill.name}` stays as it is: this skillc trains sections"
        if any(child.kind == "section" and "frozen" not in child.words for child in skill.children):
            yield note("SK419", about, message, "write it as it is to be; it stays frozen")
        else:
            yield warning("SK419", about, f"{message}, and there is none to train", "add `trainable section rules`")


@rule(ProgramFacts, "SK413", "SK414")
def slow_sections(facts: ProgramFacts) -> Iterator[Diagnostic]:
    """Slow sections that are never written, and gates for updates that never come."""
    slow = [section for section in _sections(facts) if "slow" in section.words]
    hindered = _hindrance(facts)
    if hindered is not None:
        why, setting, hint = hindered
        for section in slow:
            labels = (Label(setting.source, setting.span, "this keeps it from being written"),)
            message = f"the slow section `{section.name}` is never written: {why}"
            yield note("SK413", section, message, hint, secondary=labels)
    for gate in facts.checked.gates:
        if gate.for_ == "slow" and not slow:
            hint = f"write `gate {gate.name} = ...` for the steps, or add `slow section guidance`"
            yield note("SK414", gate, f"the gate `{gate.name}` decides nothing: the skill has no slow section", hint)
        elif gate.for_ == "slow" and hindered is not None:
            yield note("SK414", gate, f"the gate `{gate.name}` decides nothing: {hindered[0]}", hindered[2])


def _hindrance(facts: ProgramFacts) -> tuple[str, Setting, str] | None:
    """Why slow sections are never rewritten, the setting that causes it, and the fix."""
    optimize, budget = facts.declared("optimize"), facts.declared("budget")
    settings = optimize.settings if optimize is not None else {}
    method = settings.get("method")
    if method is not None and method.value != Word("skillc"):
        # Another method writes to all sections that are not frozen.
        return None
    switch = settings.get("slow_update")
    if switch is not None and switch.value is False:
        return "slow updates are off", switch, "write `slow_update = on`, or make the section frozen"
    if amount_of(settings, "slow_update_samples") == 0:
        why = "a slow update that compares no example asks nothing"
        return why, settings["slow_update_samples"], "write `slow_update_samples = 20`"
    needed = _epoch_steps(facts.declared("data"), optimize)
    steps = amount_of(budget.settings, "steps") if budget is not None else None
    if budget is not None and needed is not None and steps is not None and steps < needed:
        why = f"an epoch has {needed} steps, and the run ends after {int(steps)}"
        return why, budget.settings["steps"], f"write `steps = {needed}` or more: it is written at epoch ends"
    return None


def _sections(facts: ProgramFacts) -> list[Entity]:
    return [child for skill in facts.checked.entities if skill.kind == "skill" for child in skill.children]


# ---- the budget -----------------------------------------------------------------------------------


@rule(ProgramFacts, "SK516")
def impossible_caps(facts: ProgramFacts) -> Iterator[Diagnostic]:
    """Caps that no run fits into, as far as the text alone shows; the plan knows what the data adds (SK501)."""
    budget = facts.declared("budget")
    if budget is None:
        return
    yield from _impossible_counts(facts, budget)
    if amount_of(budget.settings, "cost") == 0:
        yield from _no_money(facts, budget.settings["cost"])
    if amount_of(budget.settings, "time") == 0:
        yield warning("SK516", budget.settings["time"], "no time is allowed", "write `time = 90 min`")


def _impossible_counts(facts: ProgramFacts, budget: Entity) -> Iterator[Diagnostic]:
    """A run scores the first skill on validation, asks the optimizer once, and tests two skills."""
    validation, test = _sides(facts.declared("data"))
    optimize = facts.declared("optimize")
    samples = int(amount_of(optimize.settings, "samples") or 1) if optimize is not None else 1
    rollouts = validation * samples + 2 * test * samples
    least = {"calls": rollouts + 1, "tokens": rollouts * LEAST_AROUND_ROLLOUT + LEAST_AROUND_QUESTION}
    sums = f"the first skill on validation {validation * samples} + a question 1"
    if test:
        sums += f" + final test 2 x {test * samples}"
    for name, needed in least.items():
        cap = amount_of(budget.settings, name)
        if cap is None or cap >= needed:
            continue
        message = f"no run does with {decimal(cap)} {name}: it takes at least {sums} = {rollouts + 1} calls"
        hint = f"write `{name} = {needed}` or more"
        if name == "tokens":
            message += f" of {LEAST_AROUND_ROLLOUT} tokens and more"
            thousands = next(
                (f"{decimal(cap)}{unit}" for unit, by in (("k", 1e3), ("M", 1e6)) if cap * by >= needed), ""
            )
            hint = f"did you mean `{thousands}`?" if thousands else hint
        yield warning("SK516", budget.settings[name], message, hint)


def _sides(data: Entity | None) -> tuple[int, int]:
    """The fewest examples of validation and of test: as counted, else one."""
    settings = data.settings if data is not None else {}
    split = settings.get("split")
    if split is None or not isinstance(split.value, Shares):
        return 1, 0 if "source" not in settings and "test" not in settings else 1
    validation, test = [*split.value.parts[1:], Amount(Fraction(0))][:2]
    if validation.unit != "examples":
        return 1, min(1, int(test.value > 0))
    return int(validation.value), int(test.value)


def _no_money(facts: ProgramFacts, setting: Setting) -> Iterator[Diagnostic]:
    for model in facts.checked.entities:
        price = model.settings.get("price") if model.kind == "model" else None
        rates = [each.value.value for each in price.block.values() if isinstance(each.value, Amount)] if price else []
        if any(rates):
            message = f"the budget is $0, and a call of `{model.name}` has a price"
            yield warning("SK516", setting, message, "write `cost = $3`")
            return


@rule(ProgramFacts, "SK517")
def unreachable_gain(facts: ProgramFacts) -> Iterator[Diagnostic]:
    """A least gain that no accept can have, so that none resets the patience."""
    budget, goal = facts.declared("budget"), next((metric for metric in facts.checked.metrics if metric.goal), None)
    gain = amount_of(budget.settings, "min_gain") if budget is not None else None
    if budget is None or gain is None or goal is None or goal.low is None or goal.high is None:
        return
    most = goal.high - goal.low
    if gain > most:
        message = f"no accept adds more than {decimal(most)} to `{goal.name}`, so none resets the patience"
        percent = gain / 100 <= most and not goal.unit
        hint = f"did you mean `{decimal(gain)}%`?" if percent else "make it smaller"
        yield warning("SK517", budget.settings["min_gain"], message, hint)


@rule(PlanFacts, "SK507")
@rule(ProgramFacts, "SK507")
def idle_patience(facts: ProgramFacts | PlanFacts) -> Iterator[Diagnostic]:
    """Patience that can't run out before the steps do; the plan knows their number even if the text does not."""
    patience, steps = _patience(facts), _steps(facts)
    if patience is not None and steps is not None and patience > steps:
        message = f"`patience` is {patience} steps, and there are {steps}, so it never ends the run"
        say = note if isinstance(facts, ProgramFacts) else warning
        yield say("SK507", facts.at("budget", None, "patience"), message, "lower it, or allow more epochs")


def _patience(facts: ProgramFacts | PlanFacts) -> int | None:
    if isinstance(facts, PlanFacts):
        return facts.plan.budget.patience
    budget = facts.declared("budget")
    patience = amount_of(budget.settings, "patience") if budget is not None else None
    return None if patience is None else int(patience)


def _steps(facts: ProgramFacts | PlanFacts) -> int | None:
    """The most steps of a run; None if the text does not show them."""
    if isinstance(facts, PlanFacts):
        return facts.bounds.steps
    budget = facts.declared("budget")
    if budget is None:
        return None
    capped, epochs = amount_of(budget.settings, "steps"), amount_of(budget.settings, "epochs")
    bounds = [int(capped)] if capped is not None else []
    each = _epoch_steps(facts.declared("data"), facts.declared("optimize"))
    if epochs is not None and each is not None:
        bounds.append(int(epochs) * each)
    return min(bounds, default=None)


# ---- gates ----------------------------------------------------------------------------------------


@rule(PlanFacts, "SK504")
@rule(ProgramFacts, "SK504")
def undecidable_gates(facts: ProgramFacts | PlanFacts) -> Iterator[Diagnostic]:
    """Gates over quantities without an upper bound, which a part of the validation split can't decide."""
    for gate in facts.plan.gates if isinstance(facts, PlanFacts) else facts.checked.gates:
        named, at = {call.function for call in calls(gate.term)}, facts.at("gate", gate.name)
        if "cost" in named and isinstance(facts, PlanFacts) and facts.bounds.prices.get("target") is None:
            model = facts.plan.models["target"].model
            message = f"the price of `{model}` is not known, so the gate `{gate.name}` stays open"
            hint = "declare it: `price { input = $1; output = $4 }`, in dollars per million tokens"
            yield warning("SK504", at, message, hint)
        elif "latency" in named:
            message = f"`latency` has no upper bound, so the gate `{gate.name}` can't be decided early"
            yield note("SK504", at, message, "it costs the whole validation split each time")


@rule(ProgramFacts, "SK506")
def kept_caps(facts: ProgramFacts) -> Iterator[Diagnostic]:
    """Caps on tokens that frozen texts and the limits of the other sections keep anyway."""
    for gate in facts.checked.gates:
        for each in conjuncts(gate.term):
            match sides(each):
                case (Constant(cap), CallTerm("tokens", (StateTerm("candidate"),))):
                    most = _most_tokens(facts.checked.entities)
                case _:
                    continue
            if most is not None and most <= cap:
                message = f"the limits of the sections keep `{show_term(each)}` already"
                yield note("SK506", gate, message, f"with all of them full, the skill has at most {most} tokens")


def _most_tokens(entities: tuple[Entity, ...]) -> int | None:
    total = 0
    for skill in entities:
        if skill.kind != "skill":
            continue
        for child in skill.children:
            limit = amount_of(child.settings, "limit")
            if "frozen" in child.words:
                total += count_tokens(child.value) if isinstance(child.value, str) else 0
            elif limit is None:
                return None
            else:
                total += int(limit)
            total += A_HEADING
    return total


@rule(ProgramFacts, "SK510", "SK511", "SK512", "SK513", "SK518")
def contradictions(facts: ProgramFacts) -> Iterator[Diagnostic]:
    """Gates that can't hold, always hold, exclude each other or follow from others."""
    if _worth_judging(facts.checked.gates):
        from skillc.lint.contradictions import judge_gates

        yield from judge_gates(facts.checked)


def _worth_judging(gates: tuple[CheckedGate, ...]) -> bool:
    """Whether there may be more to find than the checker asked of each comparison alone."""
    return len(gates) > 1 or any(
        isinstance(operand, Operation | CallTerm)
        for gate in gates
        if isinstance(gate.term, Operation)
        for operand in gate.term.operands
    )


# ---- copying --------------------------------------------------------------------------------------


@rule(ProgramFacts, "SK509")
def free_to_copy(facts: ProgramFacts) -> Iterator[Diagnostic]:
    """Right answers that are texts and that the optimizer sees, if no gate looks at what it copies."""
    optimize = next((entity for entity in facts.checked.entities if entity.kind == "optimize"), None)
    sees = optimize.settings.get("sees") if optimize is not None else None
    if sees is None or not isinstance(sees.value, Items) or Word("gold") not in sees.value.items:
        return
    read = any(call.function == "overlap" for gate in facts.checked.gates for call in calls(gate.term))
    if not read and _answers_in_words(facts.checked.entities):
        message = "the optimizer sees the right answers, and no gate keeps it from copying them into the skill"
        yield note("SK509", sees, message, "add `gate own_words = overlap(candidate) <= 20%`, or leave `gold` out")


def _answers_in_words(entities: tuple[Entity, ...]) -> bool:
    outputs = (child for entity in entities if entity.kind == "task" for child in entity.children)
    return any(
        each.kind == "output" and each.type is not None and each.type.kind in ("text", "json") for each in outputs
    )


def _epoch_steps(data: Entity | None, optimize: Entity | None) -> int | None:
    """Steps of an epoch; None if `split` does not count the training examples."""
    split = data.settings.get("split") if data is not None else None
    if split is None or not isinstance(split.value, Shares) or split.value.parts[0].unit != "examples":
        return None
    settings = optimize.settings if optimize is not None else {}
    batch, batches = (
        int(amount_of(settings, name) or default_of("optimize", name)) for name in ("batch", "accumulate")
    )
    return -(-int(split.value.parts[0].value) // (batch * batches))

"""Print `skillc plan` as text or JSON."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from textwrap import fill

from pydantic import JsonValue

from skillc.budget.bounds import Bounds
from skillc.budget.judging import share_of, with_share
from skillc.budget.spend import Sizes, Spend, SpendBound
from skillc.budget.steps import method_counts, right_cases, scheduled_steps
from skillc.diagnostics.diagnostic import Diagnostic, Severity
from skillc.gates import units
from skillc.gates.stages import group_fields
from skillc.gates.units import format_duration, format_quantity
from skillc.language.loop import OptimizePlan, SchedulePlan
from skillc.plan.digest import plan_digest, redact_address, redact_plan
from skillc.plan.initial import sections_of
from skillc.plan.models import rulebook_limits
from skillc.plan.schema import FieldPlan, ModelPlan, Plan, PricePlan
from skillc.stats.error_rates import ErrorRates
from skillc.stats.misclassification import error_model, times_examples
from skillc.stats.power import DIFFERING, LEAST_GROUPS, smallest_gain
from skillc.stats.sample_size import EXACT
from skillc.text import counted, joined

FORMAT_VERSION = 1

_INDENT = "  "
_GAP = "  "


def as_text(plan: Plan, bounds: Bounds, found: Iterable[Diagnostic] = ()) -> str:
    """The plan for a terminal, with the notes among the diagnostics."""
    blocks: dict[str, list[Cells]] = {
        "task": _task(plan, bounds.sizes),
        f"skill {plan.skill.artifact}": _skill(plan),
        "models": _models(plan, bounds),
        "data": _data(plan, bounds),
        "metrics": _metrics(plan),
        "gates": _gates(plan),
        "loop": _loop(plan, bounds) if plan.optimize.method == "skillc" else _method(plan, bounds),
        "budget": _budget(plan, bounds),
        "bounds": [*((line,) for line in table(_bounds(plan, bounds), right=range(1, 10))), *_judging(bounds)],
    }
    texts = ["\n".join([title, *(_INDENT + line for line in table(rows))]) for title, rows in blocks.items()]
    if notes := _notes(plan, found):
        wrapped = (
            fill(note, 100, initial_indent=_INDENT, subsequent_indent=_INDENT * 2, break_on_hyphens=False)
            for note in notes
        )
        texts.append("\n".join(["notes", *wrapped]))
    return "\n\n".join(texts)


def _notes(plan: Plan, found: Iterable[Diagnostic]) -> list[str]:
    """The notes among the diagnostics, each with its hint, and the limits of the rulebook."""
    notes = (each for each in found if each.severity is Severity.NOTE)
    return [*(f"{n.message}; {n.hint}" if n.hint else n.message for n in notes), *rulebook_limits(plan)]


def as_json(plan: Plan, bounds: Bounds, found: Iterable[Diagnostic] = ()) -> dict[str, JsonValue]:
    """The plan and its bounds as JSON; dollars are exact decimals or fractions."""
    sizes, total = bounds.sizes, bounds.total
    return {
        "format_version": FORMAT_VERSION,
        "digest": plan_digest(plan),
        "plan": redact_plan(plan).model_dump(mode="json"),
        "sizes": {"train": sizes.train, "validation": sizes.validation, "test": sizes.test, "groups": sizes.groups},
        "steps": bounds.steps,
        "open_ended": bounds.open_ended,
        "expected_steps": bounds.expected_steps,
        "wave": bounds.wave,
        "patience": bounds.patience,
        "in_flight": dict(bounds.in_flight),
        "smallest_gain": list[JsonValue](round(gain, 4) for gain in _smallest_gains(plan, bounds)),
        "prices": {role: price.model_dump(mode="json") if price else None for role, price in bounds.prices.items()},
        "stages": [
            {"name": stage.name, "role": stage.role, "each_step": stage.each_step, **_spends(stage.bound)}
            for stage in bounds.stages
        ],
        "total": _spends(total),
        **({"judges": {role: _spends(bound) for role, bound in bounds.judges.items()}} if bounds.judged else {}),
        **({"judge_share": dict(_judge_shares(bounds))} if bounds.judged else {}),
        "notes": list[JsonValue](_notes(plan, found)),
    }


def _spends(bound: SpendBound) -> dict[str, JsonValue]:
    spends = {"least": bound.least, "estimate": bound.estimate, "most": bound.most}
    return {
        name: {"calls": each.calls, "tokens": each.tokens, "cost": None if each.cost is None else str(each.cost)}
        for name, each in spends.items()
    }


# ---- blocks ---------------------------------------------------------------------------------------

Cells = tuple[str, ...]


def table(rows: Sequence[Cells], *, right: Sequence[int] = ()) -> list[str]:
    """Align cells in columns; `right` lists the right-aligned columns."""
    widths = [
        max((len(row[i]) for row in rows if i < len(row)), default=0) for i in range(max(map(len, rows), default=0))
    ]
    lines = []
    for row in rows:
        cells = [cell.rjust(widths[i]) if i in right else cell.ljust(widths[i]) for i, cell in enumerate(row)]
        lines.append(_GAP.join(cells).rstrip())
    return lines


def _task(plan: Plan, sizes: Sizes) -> list[Cells]:
    task = plan.task
    fields = [*(("input", field) for field in task.inputs), *(("output", field) for field in task.outputs)]
    arguments = ", ".join(f'"{argument}"' for argument in task.rollout.arguments)
    rollout = task.rollout.kind + (f"({arguments})" if arguments else "")
    return [*((kind, field.name, _type(field, sizes)) for kind, field in fields), ("rollout", rollout)]


def _type(field: FieldPlan, sizes: Sizes) -> str:
    limit = f", at most {field.limit:,} tokens" if field.limit is not None else ""
    if field.cut is not None:
        count, _ = sizes.cuts.get(field.name, (0, None))
        limit += f", the {field.cut} is cut in {counted(count, 'example')}"
    if field.pixels is not None:
        limit += f", at most {field.pixels:,} pixels a side"
    if field.type.file_kind == "image" and sizes.images.most:
        limit += f", about {sizes.images.mean:,} tokens of images an example"
    return field.type.text + limit


def _skill(plan: Plan) -> list[Cells]:
    rows: list[Cells] = [("trainable" if plan.skill.about_trainable else "frozen", "about")]
    for section in sections_of(plan):
        unlimited = "no limit" if section.mode != "frozen" else ""
        limit = f"at most {section.limit:,} tokens" if section.limit is not None else unlimited
        script = () if section.tests is None else (f"`{section.file}`, tested by `{section.tests.path}`",)
        rows.append((section.mode, section.name, limit, *script))
    return [*rows, ("load", plan.skill.load), ("present", f"as {plan.skill.present}")]


def _models(plan: Plan, bounds: Bounds) -> list[Cells]:
    return [
        (role, model.model, _price(bounds.prices.get(role)), _settings(model)) for role, model in plan.models.items()
    ]


def _price(price: PricePlan | None) -> str:
    if price is None:
        return "unknown price"
    parts = [f"{units.dollars(price.call)} a call"] if price.call else []
    if price.input or price.output:
        parts.append(f"{units.dollars(price.input)} in, {units.dollars(price.output)} out a million tokens")
    return joined(parts) or "free"


def _settings(model: ModelPlan) -> str:
    parts = [f"{name} {value}" for name, value in model.parameters.items()]
    if model.base_url:
        parts.append(f"at {redact_address(model.base_url)}")
    elif model.base_url_env:
        parts.append(f"at ${model.base_url_env}")
    if model.serve is not None:
        parts.append("served by skillc")
    if model.exec is not None:
        parts.append(f"runs `{model.exec.shown}`")
    if model.backend is not None:
        parts.append(f"answered by `{model.backend}`")
    if model.exec is not None or model.backend is not None:
        parts.append("a call without reported usage is charged as reserved")
    return ", ".join([*parts, f"replies of at most {model.max_reply:,} tokens"])


def _data(plan: Plan, bounds: Bounds) -> list[Cells]:
    data, sizes = plan.data, bounds.sizes
    rows: list[Cells] = [("from", ", ".join(filter(None, (data.source, data.train, data.validation, data.test))))]
    if data.split is not None:
        unit = " examples" if data.split.unit == "examples" else ""
        rows.append(("split", " : ".join(f"{part}{unit}" for part in data.split.parts)))
    rows += [
        ("train", f"{sizes.train:,} examples"),
        ("validation", f"{sizes.validation:,} examples"),
        ("test", f"{sizes.test:,} examples in {sizes.groups:,} groups" if sizes.test else "none"),
    ]
    if gains := _smallest_gains(plan, bounds):
        points = " to ".join(dict.fromkeys(f"{gain * 100:.0f}" for gain in gains))
        differing = units.percent(DIFFERING)
        shown = f"a gain of {points} points in 8 of 10 runs, if two skills differ on {differing} of the examples"
        rows.append(("it shows", shown))
    rows.append(("group", data.group or "each input by itself"))
    for field in group_fields(*(gate.term for gate in plan.gates)):
        smallest = sizes.smallest_group(field)
        if smallest is not None:
            name, size = smallest
            rows.append((f"by {field}", f"the smallest group is `{name}` with {size} validation examples"))
    return [*rows, ("seed", str(data.seed))]


def _smallest_gains(plan: Plan, bounds: Bounds) -> tuple[float, ...]:
    """The gains that the test detects in 8 of 10 runs, with independent examples and with fully dependent groups.

    Empty if the test can detect none.
    """
    sizes, width, rates = bounds.sizes, float(plan.goal.widest), plan.goal.rates
    if not sizes.test or sizes.groups < LEAST_GROUPS:
        return ()
    errors = EXACT if rates is None else error_model(rates)
    both = (smallest_gain(units, noise=errors.noise, slope=errors.slope) for units in (sizes.test, sizes.groups))
    by_example, by_group = (gain * width for gain in both)
    return by_example, by_group


def _metrics(plan: Plan) -> list[Cells]:
    rows: list[Cells] = []
    for metric in plan.metrics:
        low, high = format_quantity(metric.low, metric.unit), format_quantity(metric.high, metric.unit)
        shown = f"{low} to {high}" if metric.rates is None else _signal(metric.rates)
        rows.append(("goal" if metric.goal else "metric", metric.name, shown))
    return rows


def _signal(rates: ErrorRates) -> str:
    """Describe a noisy signal, by what its errors cost."""
    left, times = units.percent(float(rates.youden)), times_examples(rates)
    known = f"sensitivity {_checked(rates.sensitivity, rates.positives)}, specificity "
    known += _checked(rates.specificity, rates.negatives)
    return f"a noisy signal, {known}: it keeps {left} of a gain, which takes {times:.1f} times the examples"


def _checked(rate: Fraction, count: int | None) -> str:
    return f"{float(rate) * 100:.4g} %" + ("" if count is None else f" of {count:,}")


def _gates(plan: Plan) -> list[Cells]:
    decided = {"text": "on the text alone", "batch": "on the training batch", "validation": "on validation"}
    rows: list[Cells] = []
    for gate in plan.gates:
        slow = ", for slow sections" if gate.for_ == "slow" else ""
        rows.append((gate.name, gate.text, decided[gate.stage] + slow))
    rows += [(require.name, require.text, "once, before the first step") for require in plan.requires]
    if plan.required_verdict is not None:
        rows.append(("require", plan.required_verdict, "by the final test; no other skill is delivered"))
    return rows


def _loop(plan: Plan, bounds: Bounds) -> list[Cells]:
    optimize = plan.optimize
    switches = {
        "slow update": optimize.slow_update and any(section.mode == "slow" for section in plan.skill.sections),
        "meta skill": optimize.meta_skill,
        "tidying": optimize.tidy and optimize.accept == "gates",
        "rejected-edit buffer": optimize.rejected_buffer,
        "successes": optimize.successes,
        "reminders of lapses": optimize.lapses,
        "counts of rules": optimize.rule_counts,
    }
    estimate = f"as many as the caps pay, about {bounds.expected_steps:,}"
    batches = "" if optimize.accumulate == 1 else f"{optimize.accumulate} of "
    per_step = "" if optimize.accumulate == 1 else " a step"
    rewritten = "one section" if optimize.update == "rewrite_section" else "all trainable sections"
    always, rollback = optimize.accept == "always", optimize.rollback
    below = units.percent(float(rollback)) if always and rollback is not None else ""
    rows = {
        "method": optimize.method,
        "steps": estimate if bounds.open_ended else f"{bounds.steps:,}",
        "batch": f"{batches}{optimize.batch} examples{per_step}, reflected on {optimize.minibatch} at a time",
        "drafts": optimize.drafts and f"{optimize.drafts} in each step without edits",
        "replay": optimize.replay and f"{optimize.replay} earlier failures with each batch",
        "retries": optimize.retries and f"{optimize.retries} a step",
        "candidates": optimize.candidates > 1 and f"{optimize.candidates} a step",
        "edits": _schedule(optimize.edits, scheduled_steps(plan, bounds.sizes.train)),
        "screen": _screen(optimize),
        **_measurement(optimize, bounds),
        "knowledge": optimize.knowledge == "examples" and "of the examples only",
        "with": ", ".join(name for name, used in switches.items() if used) or "nothing else",
        "update": optimize.update != "edits" and f"{rewritten} rewritten from the chosen edits",
        "lookups": optimize.lookups and f"at most {optimize.lookups} a reflection",
        "accept": always and "always: the gates do not decide",
        "rollback": below and f"to the best, once the goal is more than {below} below it",
    }
    return [(name, text) for name, text in rows.items() if isinstance(text, str) and text]


def _measurement(optimize: OptimizePlan, bounds: Bounds) -> dict[str, str]:
    return {
        "samples": f"{optimize.samples} per example",
        "wave": f"{bounds.wave} rollouts",
        "sees": ", ".join(optimize.sees) or "inputs and scores only",
    }


def _screen(optimize: OptimizePlan) -> str:
    if not optimize.screen:
        return "off"
    alone = f"each edit alone on {optimize.screen} failures and {right_cases(optimize.screen)} right cases"
    return ", ".join([alone, *["then together"] * bool(optimize.together), *["with controls"] * optimize.control])


def _method(plan: Plan, bounds: Bounds) -> list[Cells]:
    """The settings that a peer's method reads; its result is one decision."""
    counts = method_counts(plan, bounds.sizes.train, bounds.sizes.validation)
    return [
        ("method", plan.optimize.method),
        ("search", f"at most {counts.rollouts:,} rollouts and {counted(counts.questions, 'question')}"),
        ("decisions", "1: the gates decide on the result of the method"),
        *_measurement(plan.optimize, bounds).items(),
    ]


def _schedule(edits: SchedulePlan, steps: int) -> str:
    if edits.kind == "model":
        return f"as the optimizer chooses, at most {edits.start} a step"
    if edits.kind == "constant":
        return f"at most {edits.start} a step"
    if steps <= 1:
        return f"at most {edits.start} a step ({edits.kind}, over 1 step)"
    return f"at most {edits.start} a step; as sections fill, {edits.end} by step {steps:,} ({edits.kind})"


def _budget(plan: Plan, bounds: Bounds) -> list[Cells]:
    budget = plan.budget
    admitted = [f"{count:,} of `{role}`" for role, count in sorted(bounds.in_flight.items()) if count is not None]
    rows = {
        "epochs": budget.epochs and f"{budget.epochs:,}",
        "steps": budget.steps and f"{budget.steps:,}",
        "calls": budget.calls and f"{budget.calls:,}",
        "tokens": budget.tokens and units.tokens(budget.tokens),
        "cost": budget.cost is not None and units.dollars(budget.cost),
        "judge_calls": budget.judge_calls and f"{budget.judge_calls:,} of judges",
        "judge_cost": budget.judge_cost is not None and f"{units.dollars(budget.judge_cost)} for judges",
        "time": budget.time is not None and format_duration(budget.time),
        "patience": bounds.patience is not None and f"{bounds.patience:,} steps",
        "min_gain": budget.min_gain and format_quantity(budget.min_gain, ""),
        "at once": admitted and f"the caps admit {', '.join(admitted)}, each reserved at its largest",
    }
    return [(name, text) for name, text in rows.items() if isinstance(text, str) and text] or [("no cap", "")]


def _bounds(plan: Plan, bounds: Bounds) -> list[Cells]:
    """Each stage, their total, and what the caps leave of it. Without a cap on steps a stage has no most."""
    rows: list[Cells] = [("", "calls", "", "", "tokens", "", "", "cost", "", ""), ("", *("least", "about", "most") * 3)]
    for stage in bounds.stages:
        rows.append((stage.name, *_figures(stage.bound, known=not (bounds.open_ended and stage.each_step))))
    rows.append(("all", *_figures(bounds.total, known=not bounds.open_ended)))
    for role, bound in bounds.judges.items():
        rows.append((f"judge {role}", *_figures(bound, known=not bounds.open_ended)))
    formats = {"calls": lambda value: f"{int(value):,}", "tokens": units.tokens, "cost": units.dollars}
    if any(getattr(plan.budget, name) is not None for name in formats):
        cells: list[str] = []
        for name, format_ in formats.items():
            most = None if bounds.open_ended else getattr(bounds.total.most, name)
            left = [value for value in (getattr(plan.budget, name), most) if value is not None]
            cells += ["", "", format_(min(left)) if left else ""]
        rows.append(("never more", *cells))
    return rows


def _judging(bounds: Bounds) -> list[Cells]:
    """What all judges together take, and its share of the run."""
    if not bounds.judged:
        return []
    taken, shares = _judges(bounds), _judge_shares(bounds)
    parts = {
        "calls": counted(taken.calls, "call"),
        "tokens": f"{units.tokens(taken.tokens)} tokens",
        "cost": units.dollars(taken.cost),
    }
    shown = ", ".join(with_share(text, shares[name]) for name, text in parts.items())
    return [(f"judges take about {shown} of the run; an exact metric takes none",)]


def _judges(bounds: Bounds) -> Spend:
    return sum((bound.estimate for bound in bounds.judges.values()), Spend())


def _judge_shares(bounds: Bounds) -> dict[str, float | None]:
    """The shares of the estimate that judges take, to four digits; None if unknown."""
    taken, whole = _judges(bounds), bounds.total.estimate
    shares = {name: share_of(getattr(taken, name), getattr(whole, name)) for name in ("calls", "tokens", "cost")}
    return {name: None if share is None else round(share, 4) for name, share in shares.items()}


def _figures(bound: SpendBound, *, known: bool) -> Cells:
    spends = (bound.least, bound.estimate, bound.most)
    cells = (
        [f"{spend.calls:,}" for spend in spends],
        [units.tokens(spend.tokens) for spend in spends],
        [units.dollars(spend.cost) for spend in spends],
    )
    return tuple(cell if known or i < 2 else "-" for kind in cells for i, cell in enumerate(kind))

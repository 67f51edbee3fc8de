"""The text and the JSON of `skillc plan`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from textwrap import fill

from pydantic import JsonValue

from skillc.budget.bounds import Bounds
from skillc.budget.spend import Spend, SpendBound
from skillc.budget.steps import most_questions, most_rollouts, right_cases, scheduled_steps
from skillc.diagnostics.diagnostic import Diagnostic, Severity
from skillc.gates.stages import group_fields
from skillc.gates.units import format_duration, format_quantity
from skillc.language.loop import OptimizePlan, SchedulePlan
from skillc.plan import figures
from skillc.plan.digest import plan_digest, redact_address, redact_plan
from skillc.plan.initial import sections_of
from skillc.plan.models import rulebook_limits
from skillc.plan.schema import FieldPlan, ModelPlan, Plan, PricePlan
from skillc.stats.power import DIFFERING, LEAST_GROUPS, smallest_gain
from skillc.text import counted, joined

FORMAT_VERSION = 1

_INDENT = "  "
_GAP = "  "


def as_text(plan: Plan, bounds: Bounds, found: Iterable[Diagnostic] = ()) -> str:
    """The plan for a terminal, with the notes among its findings and without a newline at its end."""
    blocks = [
        _block("task", _task(plan)),
        _block(f"skill {plan.skill.artifact}", _skill(plan)),
        _block("models", _models(plan, bounds)),
        _block("data", _data(plan, bounds)),
        _block("metrics", _metrics(plan)),
        _block("gates", _gates(plan)),
        _block("loop", _loop(plan, bounds)),
        _block("budget", _budget(plan, bounds)),
        _block("bounds", _bounds(plan, bounds)),
    ]
    notes = _notes(plan, found)
    if notes:
        blocks.append("\n".join(["notes", *(_wrapped(note) for note in notes)]))
    return "\n\n".join(blocks)


def _notes(plan: Plan, found: Iterable[Diagnostic]) -> list[str]:
    """What is worth knowing before a compile and asks for nothing: notes and their hints, limits of the rulebook."""
    notes = (each for each in found if each.severity is Severity.NOTE)
    return [*(f"{n.message}; {n.hint}" if n.hint else n.message for n in notes), *rulebook_limits(plan)]


def _wrapped(note: str) -> str:
    return fill(note, 100, initial_indent=_INDENT, subsequent_indent=_INDENT * 2, break_on_hyphens=False)


def as_json(plan: Plan, bounds: Bounds, found: Iterable[Diagnostic] = ()) -> dict[str, JsonValue]:
    """The plan and its bounds as pure JSON values; money is in dollars as exact decimals or fractions."""
    sizes = bounds.sizes
    return {
        "format_version": FORMAT_VERSION,
        "digest": plan_digest(plan),
        "plan": redact_plan(plan).model_dump(mode="json"),
        "sizes": {
            "train": sizes.train,
            "validation": sizes.validation,
            "test": sizes.test,
            "groups": sizes.groups,
        },
        "steps": bounds.steps,
        "open_ended": bounds.open_ended,
        "expected_steps": bounds.expected_steps,
        "wave": bounds.wave,
        "in_flight": dict(bounds.in_flight),
        "smallest_gain": list[JsonValue](round(gain, 4) for gain in smallest_gains(plan, bounds) or ()),
        "prices": {role: price.model_dump(mode="json") if price else None for role, price in bounds.prices.items()},
        "stages": [
            {
                "name": stage.name,
                "role": stage.role,
                "each_step": stage.each_step,
                "least": _spend(stage.bound.least),
                "estimate": _spend(stage.bound.estimate),
                "most": _spend(stage.bound.most),
            }
            for stage in bounds.stages
        ],
        "total": {
            "least": _spend(bounds.least),
            "estimate": _spend(bounds.estimate),
            "most": _spend(bounds.most),
        },
        "notes": list[JsonValue](_notes(plan, found)),
    }


def _spend(spend: Spend) -> dict[str, JsonValue]:
    cost = None if spend.cost is None else str(spend.cost)
    return {"calls": spend.calls, "tokens": spend.tokens, "cost": cost}


# ---- blocks ---------------------------------------------------------------------------------------

Row = tuple[str, ...]


def _block(title: str, rows: Iterable[Row], *, right: Sequence[int] = ()) -> str:
    return "\n".join([title, *(_INDENT + line for line in table(list(rows), right=right))])


def table(rows: Sequence[Row], *, right: Sequence[int] = ()) -> list[str]:
    """Lines with the cells of each column below each other; `right` names the columns that end flush."""
    widths = [
        max((len(row[i]) for row in rows if i < len(row)), default=0) for i in range(max(map(len, rows), default=0))
    ]
    lines = []
    for row in rows:
        cells = [cell.rjust(widths[i]) if i in right else cell.ljust(widths[i]) for i, cell in enumerate(row)]
        lines.append(_GAP.join(cells).rstrip())
    return lines


def _task(plan: Plan) -> list[Row]:
    task = plan.task
    rows: list[Row] = [("input", field.name, _type(field)) for field in task.inputs]
    rows += [("output", field.name, _type(field)) for field in task.outputs]
    arguments = ", ".join(f'"{argument}"' for argument in task.rollout.arguments)
    return [*rows, ("rollout", task.rollout.kind + (f"({arguments})" if arguments else ""))]


def _type(field: FieldPlan) -> str:
    limit = f", at most {field.limit:,} tokens" if field.limit is not None else ""
    return field.type.text + limit


def _skill(plan: Plan) -> list[Row]:
    about = "trainable" if plan.skill.about_trainable else "frozen"
    rows: list[Row] = [(about, "about")]
    for section in sections_of(plan):
        limit = f"at most {section.limit:,} tokens" if section.limit is not None else ""
        open_ = "no limit" if section.mode != "frozen" and not limit else ""
        rows.append((section.mode, section.name, limit or open_))
    return [*rows, ("load", plan.skill.load), ("present", f"as {plan.skill.present}")]


def _models(plan: Plan, bounds: Bounds) -> list[Row]:
    return [
        (role, model.model, _price(bounds.prices.get(role)), _settings(model)) for role, model in plan.models.items()
    ]


def _price(price: PricePlan | None) -> str:
    if price is None:
        return "price not known"
    said = [f"{figures.dollars(price.call)} a call"] if price.call else []
    if price.input or price.output:
        said.append(f"{figures.dollars(price.input)} in, {figures.dollars(price.output)} out a million tokens")
    return joined(said) or "free"


def _settings(model: ModelPlan) -> str:
    said = [f"{name} {value}" for name, value in model.parameters.items()]
    address = (
        redact_address(model.base_url) if model.base_url else (f"${model.base_url_env}" if model.base_url_env else None)
    )
    said += [f"at {address}"] if address else []
    said += ["served by skillc"] if model.serve is not None else []
    said += [f"runs `{model.exec.shown}`"] if model.exec is not None else []
    said += [f"answered by `{model.backend}`"] if model.backend is not None else []
    own = model.exec is not None or model.backend is not None
    said += ["a call that does not report its usage counts as reserved"] if own else []
    return ", ".join([*said, f"replies of at most {model.max_reply:,} tokens"])


def _data(plan: Plan, bounds: Bounds) -> list[Row]:
    data, sizes = plan.data, bounds.sizes
    files = [name for name in (data.source, data.train, data.validation, data.test) if name]
    rows: list[Row] = [("from", ", ".join(files))]
    if data.split is not None:
        unit = " examples" if data.split.unit == "examples" else ""
        rows.append(("split", " : ".join(f"{part}{unit}" for part in data.split.parts)))
    rows += [
        ("train", f"{sizes.train:,} examples"),
        ("validation", f"{sizes.validation:,} examples"),
        (
            "test",
            f"{sizes.test:,} examples in {sizes.groups:,} groups" if sizes.test else "none",
        ),
        *_shown_gain(plan, bounds),
        ("group", data.group or "each input by itself"),
    ]
    for field in group_fields(*(gate.term for gate in plan.gates)):
        smallest = sizes.smallest_group(field)
        if smallest is not None:
            rows.append(
                (f"by {field}", f"the smallest group is `{smallest[0]}` with {smallest[1]} validation examples")
            )
    return [*rows, ("seed", str(data.seed))]


def smallest_gains(plan: Plan, bounds: Bounds) -> tuple[float, float] | None:
    """The gain that the test shows in 8 of 10 runs, where examples are each for themselves, and where groups are one.

    None where the test can show nothing.
    """
    sizes, width = bounds.sizes, float(plan.goal.high - plan.goal.low)
    if not sizes.test or sizes.groups < LEAST_GROUPS:
        return None
    return smallest_gain(sizes.test) * width, smallest_gain(sizes.groups) * width


def _shown_gain(plan: Plan, bounds: Bounds) -> Iterator[Row]:
    gains = smallest_gains(plan, bounds)
    if gains is None:
        return
    alone, together = (f"{gain * 100:.0f}" for gain in gains)
    points = alone if alone == together else f"{alone} to {together}"
    differing = figures.percent(DIFFERING)
    yield "it shows", f"a gain of {points} points in 8 of 10 runs, if two skills differ on {differing} of the examples"


def _metrics(plan: Plan) -> list[Row]:
    rows: list[Row] = []
    for metric in plan.metrics:
        low, high = format_quantity(metric.low, metric.unit), format_quantity(metric.high, metric.unit)
        rows.append(("goal" if metric.goal else "metric", metric.name, f"{low} to {high}"))
    return rows


def _gates(plan: Plan) -> list[Row]:
    decided = {"text": "on the text alone", "batch": "on the training batch", "validation": "on validation"}
    rows: list[Row] = []
    for gate in plan.gates:
        slow = ", for slow sections" if gate.for_ == "slow" else ""
        rows.append((gate.name, gate.text, decided[gate.stage] + slow))
    rows += [(require.name, require.text, "once, before the first step") for require in plan.requires]
    if plan.required_verdict is not None:
        rows.append(("require", plan.required_verdict, "by the final test; any other skill is not delivered"))
    return rows


def _screen(optimize: OptimizePlan) -> str:
    if not optimize.screen:
        return "off"
    more = ["then together"] if optimize.together else []
    return ", ".join(
        [
            f"each edit alone on {optimize.screen} failures and {right_cases(optimize.screen)} right cases",
            *more,
            *["with controls"] * optimize.control,
        ]
    )


def _loop(plan: Plan, bounds: Bounds) -> list[Row]:
    optimize = plan.optimize
    if optimize.method != "skillc":
        return _method(plan, bounds)
    on = {
        "slow update": optimize.slow_update and any(section.mode == "slow" for section in plan.skill.sections),
        "meta skill": optimize.meta_skill,
        "tidying": optimize.tidy and optimize.accept == "gates",
        "rejected-edit buffer": optimize.rejected_buffer,
        "successes": optimize.successes,
        "reminders of lapses": optimize.lapses,
        "counts of rules": optimize.rule_counts,
    }
    steps = f"{bounds.steps:,}"
    if bounds.open_ended:
        steps = f"as many as the caps pay, about {bounds.expected_steps:,}"
    rows: list[Row] = [
        ("method", optimize.method),
        ("steps", steps),
        ("batch", f"{_batch(optimize)}, reflected on {optimize.minibatch} at a time"),
        ("edits", _schedule(optimize.edits, scheduled_steps(plan, bounds.sizes.train))),
        ("screen", _screen(optimize)),
        ("samples", f"{optimize.samples} per example"),
        ("wave", f"{bounds.wave} rollouts"),
        ("sees", ", ".join(optimize.sees) or "inputs and scores only"),
        *([("knowledge", "of the examples only")] if optimize.knowledge == "examples" else []),
        ("with", ", ".join(name for name, used in on.items() if used) or "nothing else"),
    ]
    if optimize.replay:
        rows.insert(3, ("replay", f"{optimize.replay} earlier failures with each batch"))
    if optimize.drafts:
        rows.insert(3, ("drafts", f"{optimize.drafts} in each step that is not spent on edits"))
    if optimize.candidates > 1:
        rows.insert(4, ("candidates", f"{optimize.candidates} a step"))
    if optimize.retries:
        rows.insert(4, ("retries", f"{optimize.retries} a step"))
    if optimize.update != "edits":
        rewritten = "one section" if optimize.update == "rewrite_section" else "all trainable sections"
        rows.append(("update", f"{rewritten} rewritten from the chosen edits"))
    if optimize.lookups:
        rows.append(("lookups", f"at most {optimize.lookups} a reflection"))
    if optimize.accept == "always":
        rows.append(("accept", "always: the gates do not decide"))
        if optimize.rollback is not None:
            share = figures.percent(float(optimize.rollback))
            rows.append(("rollback", f"to the best, once the goal is more than {share} below it"))
    return rows


def _batch(optimize: OptimizePlan) -> str:
    if optimize.accumulate == 1:
        return f"{optimize.batch} examples"
    return f"{optimize.accumulate} of {optimize.batch} examples a step"


def _method(plan: Plan, bounds: Bounds) -> list[Row]:
    """What a peer's method reads of the loop's settings; its result is one decision."""
    optimize, sizes = plan.optimize, bounds.sizes
    rollouts = most_rollouts(plan, sizes.train, sizes.validation)
    questions = most_questions(plan, sizes.train, sizes.validation)
    asked = counted(questions, "question")
    return [
        ("method", optimize.method),
        ("search", f"at most {rollouts:,} rollouts and {asked}"),
        ("decisions", "1: what the method gives back meets the gates"),
        ("samples", f"{optimize.samples} per example"),
        ("wave", f"{bounds.wave} rollouts"),
        ("sees", ", ".join(optimize.sees) or "inputs and scores only"),
    ]


def _schedule(edits: SchedulePlan, steps: int) -> str:
    if edits.kind == "model":
        return f"as the optimizer chooses, at most {edits.start} a step"
    if edits.kind == "constant":
        return f"at most {edits.start} a step"
    if steps <= 1:
        return f"at most {edits.start} a step ({edits.kind}, over 1 step)"
    return f"at most {edits.start} a step; as sections fill, {edits.end} by step {steps:,} ({edits.kind})"


def _budget(plan: Plan, bounds: Bounds) -> list[Row]:
    budget = plan.budget
    admitted = [f"{count:,} of `{role}`" for role, count in sorted(bounds.in_flight.items()) if count is not None]
    rows: list[Row] = [
        ("epochs", "" if budget.epochs is None else f"{budget.epochs:,}"),
        ("steps", "" if budget.steps is None else f"{budget.steps:,}"),
        ("calls", "" if budget.calls is None else f"{budget.calls:,}"),
        ("tokens", "" if budget.tokens is None else figures.tokens(budget.tokens)),
        ("cost", "" if budget.cost is None else figures.dollars(budget.cost)),
        ("time", "" if budget.time is None else format_duration(budget.time)),
        ("patience", "" if budget.patience is None else f"{budget.patience:,} steps"),
        ("min_gain", format_quantity(budget.min_gain, "") if budget.min_gain else ""),
        ("at once", f"the caps admit {', '.join(admitted)}, each reserved at its largest" if admitted else ""),
    ]
    return [row for row in rows if row[1]] or [("no cap", "")]


def _bounds(plan: Plan, bounds: Bounds) -> list[Row]:
    """Each stage, all of them, and what the caps leave of that. Without a cap on steps a stage has no most."""
    head: Row = ("", "calls", "", "", "tokens", "", "", "cost", "", "")
    kinds: Row = ("", *("least", "about", "most") * 3)
    rows = [head, kinds]
    for stage in bounds.stages:
        rows.append((stage.name, *_figures(stage.bound, known=not (bounds.open_ended and stage.each_step))))
    rows.append(("all", *_figures(bounds.total, known=not bounds.open_ended)))
    caps, most = plan.budget, bounds.most
    if any(cap is not None for cap in (caps.calls, caps.tokens, caps.cost)):
        calls = _capped(caps.calls, None if bounds.open_ended else most.calls)
        tokens = _capped(caps.tokens, None if bounds.open_ended else most.tokens)
        cost = _capped(caps.cost, None if bounds.open_ended else most.cost)
        rows.append(
            (
                "never more",
                *("", "", "" if calls is None else f"{calls:,}"),
                *("", "", "" if tokens is None else figures.tokens(int(tokens))),
                *("", "", "" if cost is None else figures.dollars(Fraction(cost))),
            )
        )
    return [(line,) for line in table(rows, right=range(1, 10))]


def _capped(cap: int | Fraction | None, most: int | Fraction | None) -> int | Fraction | None:
    return min((value for value in (cap, most) if value is not None), default=None)


def _figures(bound: SpendBound, *, known: bool) -> Row:
    spends = (bound.least, bound.estimate, bound.most)
    cells = (
        [f"{spend.calls:,}" for spend in spends],
        [figures.tokens(spend.tokens) for spend in spends],
        [figures.dollars(spend.cost) for spend in spends],
    )
    return tuple(cell if known or i < 2 else "-" for kind in cells for i, cell in enumerate(kind))

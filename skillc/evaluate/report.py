"""An evaluation as tables on a terminal."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from skillc.diagnostics.render import printable
from skillc.evaluate.confidence import confidence_of
from skillc.evaluate.job import EvalJob
from skillc.evaluate.reporting import (
    bare_table,
    bound_line,
    ending_lines,
    gain_range,
    gain_text,
    has_percent,
    mean_range,
    mean_text,
    p_value,
    why_stopped,
)
from skillc.evaluate.run import Evaluation
from skillc.evaluate.scores import Costs, Gain, ModelScores, Score
from skillc.evaluate.skills import unknown_looks
from skillc.gates.units import dollars, format_quantity
from skillc.outcomes import ArmScore
from skillc.pipeline.report import VERDICT_STYLE, judge_lines, percent
from skillc.plan.lock import read_lock
from skillc.plan.schema import MetricPlan
from skillc.review.confidence import SPLIT_WORDS
from skillc.text import counted, cut

_MOST_PARTS = 20
_HINTS = {
    "transport": "check that the model answers",
    "empty": "raise `max_tokens`, so that an answer fits after the reasoning",
    "cut": "raise `max_tokens` in the model's block",
    "judge": "check that the judge's model answers",
}


def preview_lines(job: EvalJob) -> list[str]:
    """Return the lines to print before anything is sent: the bound, and the new looks."""
    samples = job.plan.optimize.samples
    parts = [
        counted(len(job.examples), f"{job.split} example"),
        counted(job.arm_count, "arm"),
        counted(len(job.models), "model"),
        *([counted(samples, "sample")] if samples > 1 else []),
    ]
    written = ", and one skill to write" if job.one_shot else ""
    return [bound_line(parts, job, written), *look_lines(job)]


def look_lines(job: EvalJob) -> list[str]:
    """Return a line about the looks at the test split that the job takes; none on another split."""
    looks = job.looks
    if not looks and not (job.one_shot and job.split == "test"):
        return []
    lock = read_lock(job.paths.lock)
    pending = len(job.models) if job.one_shot and job.arms.reference is not None else 0
    new = unknown_looks(lock.looks, list(looks.values())) + pending
    whose = f" of `{job.planned.path}`" if job.place == "data" else ""
    return [
        f"this takes {counted(len(looks) + pending, 'look')} at the test split{whose}, {new} of them new; "
        f"the lock has {len(lock.looks)}, and each look raises the evidence that the next one needs"
    ]


def eval_table(found: Evaluation) -> RenderableType:
    """Return the report of an evaluation for a terminal of 80 columns."""
    facts = ending_lines(found, judge_lines(found.job.plan, found.spent))
    return Group(*evaluation_parts(found), Text("\n".join(facts)))


def evaluation_parts(found: Evaluation) -> list[RenderableType]:
    """Return the tables of an evaluation and the lines below them, without what it spent."""
    job = found.job
    parts: list[RenderableType] = [Text()]
    if found.models:
        parts += [_head(found), Text(), _scores(found)]
        others = [metric for metric in job.plan.metrics if metric.declared and not metric.goal]
        if others:
            parts += [Text(), _metrics(found, others)]
        parts += [Text(), _costs(found), *_by_field(found)]
        below = _below(found)
        parts += [Text(), *([below] if below else [])]
    else:
        line = Text("test      ").append("incomplete", style="yellow")
        parts.append(
            line.append(f": {why_stopped(found)} before every example was tried: no scores, and no look is counted")
        )
    return parts


def _head(found: Evaluation) -> Text:
    job = found.job
    groups = len({example.group for example in job.examples})
    of = f" in {counted(groups, 'group')}" if job.plan.data.group else ""
    samples = job.plan.optimize.samples
    each = f", {samples} samples each" if samples > 1 else ""
    where = f"{printable(job.where)}, " if job.where else ""
    # Nothing was selected on the examples of other data, nor for a skill that is not compiled.
    words = SPLIT_WORDS[job.split] if job.arms.compiled is not None and job.place != "data" else job.split
    text = Text(f"{where}{words}: {counted(len(job.examples), 'example')}{of}{each}", style="bold")
    if len(found.models) == 1:
        text.append(f", {found.models[0].label}")
    return text


def _scores(found: Evaluation) -> Table:
    goal = found.job.plan.goal
    rows = _table(goal.name)
    for name in ("score", "95 %", "gain", "interval", "p"):
        rows.add_column(name, justify="right", no_wrap=True)
    reference = found.job.arms.reference

    def cells(model: ModelScores, score: Score) -> tuple[str, ...]:
        gain = next((gain for gain in model.gains if gain.arm.name == score.arm.name), None)
        is_reference = reference is not None and score.arm.name == reference.name
        mean = mean_text(score.goal.mean, goal), mean_range(score.interval, goal)
        return (*mean, *_gain(gain, goal, is_reference=is_reference))

    _add_scores(rows, found, cells, mark=" *")
    for name, mean in found.baselines.items():
        rows.add_row(Text(name), mean_text(mean, goal), "no model", style="dim")
    return rows


def _metrics(found: Evaluation, others: list[MetricPlan]) -> Table:
    """Return the table of the other metrics' means."""
    rows = _table("other metrics")
    for metric in others:
        rows.add_column(metric.name, justify="right")
    _add_scores(rows, found, lambda _, score: tuple(_value(score.metrics[each.name], each) for each in others))
    return rows


def _costs(found: Evaluation) -> Table:
    """Return the table of wins, latency and cost."""
    every = [score.costs for model in found.models for score in model.scores]
    has_latency = any(costs.timed for costs in every)
    has_cost = any(costs.cost != 0 for costs in every)
    rows = _table("each example")
    for name in ("won", "lost", "tied", *(["median", "p95"] if has_latency else []), "tokens"):
        rows.add_column(name, justify="right", no_wrap=True)
    for name in ("cost", "per right") if has_cost else ():
        rows.add_column(name, justify="right", no_wrap=True)

    def cells(model: ModelScores, score: Score) -> tuple[str, ...]:
        gain = next((gain for gain in model.gains if gain.arm.name == score.arm.name), None)
        duel = ("", "", "") if gain is None else tuple(map(str, (gain.duel.wins, gain.duel.losses, gain.duel.ties)))
        costs = score.costs
        times = (seconds(costs.median), seconds(costs.p95)) if has_latency else ()
        tokens = f"{costs.tokens / costs.rollouts:,.0f}" if costs.rollouts else "–"
        return (*duel, *times, tokens, *(prices(costs) if has_cost else ()))

    _add_scores(rows, found, cells)
    return rows


def seconds(value: float | None) -> str:
    """Render a latency: `0.41 s`."""
    return "–" if value is None else f"{value:.2f} s" if value < 10 else f"{value:,.0f} s"


def prices(costs: Costs) -> tuple[str, str]:
    """Render the list price of a rollout and of a right answer: `$0.00012`."""
    each, right = (None if nano is None else nano / 10**9 for nano in (costs.per_rollout, costs.per_right))
    return ("?" if costs.rollouts else "–") if each is None else _price(each), "–" if right is None else _price(right)


def _price(value: Fraction) -> str:
    return dollars(value) if value >= Fraction(1, 10) or not value else f"${float(value):.2g}"


def _by_field(found: Evaluation) -> list[RenderableType]:
    """Return a table for each model with the scores by the value of a field; nothing without `--by`."""
    tables: list[RenderableType] = []
    goal = found.job.plan.goal
    for model in found.models if found.job.by is not None else ():
        title = f"by {found.job.by}" + (f", {model.label}" if len(found.models) > 1 else "")
        rows = _table(title)
        for name in ("n", "score", "95 %", "gain", "won", "lost", "tied"):
            rows.add_column(name, justify="right", no_wrap=True)
        for part in model.parts[:_MOST_PARTS]:
            rows.add_row(Text(cut(printable(part.value), 40), style="bold"), str(part.examples))
            for score in part.scores:
                duel = part.gains.get(score.arm.name)
                gain = "" if duel is None else gain_text(duel[0], goal)
                numbers = ("", "", "") if duel is None else (duel[1].wins, duel[1].losses, duel[1].ties)
                mean = mean_text(score.goal.mean, goal), mean_range(score.interval, goal)
                rows.add_row(Text("  " + score.arm.label), str(score.goal.n), *mean, gain, *map(str, numbers))
        tables += [Text(), rows]
        if len(model.parts) > _MOST_PARTS:
            tables.append(Text(f"{counted(len(model.parts) - _MOST_PARTS, 'further value')} in `--json` and `--csv`"))
    if tables:
        tables.append(Text("parts are not tested: some differ by chance"))
    return tables


def _table(title: str) -> Table:
    rows = bare_table()
    rows.add_column(title, overflow="fold", min_width=14)
    return rows


def _add_scores(
    rows: Table, found: Evaluation, cells: Callable[[ModelScores, Score], tuple[str, ...]], mark: str = ""
) -> None:
    """Add a row for each score, below its model if there are several; `mark` the compiled skill's model."""
    several = len(found.models) > 1
    for model in found.models:
        if several:
            rows.add_row(Text(model.label + (mark if model.made_here else ""), style="bold"))
        for score in model.scores:
            rows.add_row(Text(("  " if several else "") + score.arm.label), *cells(model, score))


def _gain(gain: Gain | None, goal: MetricPlan, *, is_reference: bool) -> tuple[str, str, str]:
    if gain is None:
        return "", "(reference)" if is_reference else "", ""
    verdict = gain.verdict
    return gain_text(verdict.gain, goal), gain_range(verdict.interval, goal), p_value(verdict.p)


def _value(score: ArmScore, metric: MetricPlan) -> str:
    if score.mean is None:
        return "–"
    if has_percent(metric):
        return percent(score.mean)
    return format_quantity(Fraction(f"{float(score.mean):.4g}"), metric.unit)


# ---- below the table ------------------------------------------------------------------------------


def _below(found: Evaluation) -> Text:
    """Return the lines below the table: claims, origin, missing cells."""
    lines = Text()
    for claim in _claims(found):
        lines.append_text(claim).append("\n")
    for line in (*_over_none(found), *confidence_of(found), *_origin(found), *_missing(found)):
        lines.append(line + "\n")
    lines.rstrip()
    return lines


def _claims(found: Evaluation) -> list[Text]:
    """Return a verdict for each pair on test; elsewhere why there is none."""
    split, compiled = found.job.split, found.job.arms.compiled is not None
    if split != "test" and found.job.place == "data":
        return []
    if split == "validation" and compiled:
        return [
            Text(
                "the compiled skill was selected on validation, so its score here is too high and proves nothing; "
                "`--split test` scores held-out examples, and counts a look"
            )
        ]
    if split == "train" and compiled:
        return [Text("the compiled skill was trained on these examples, so its score here proves nothing")]
    if split != "test":
        return []
    return [
        _claim(found, model, gain)
        for model in found.models
        for gain in sorted(model.gains, key=lambda gain: gain.arm.skill is None)
    ]


def _claim(found: Evaluation, model: ModelScores, gain: Gain) -> Text:
    verdict, reference = gain.verdict, found.job.arms.reference
    line = Text("verdict   ")
    line.append(verdict.verdict, style=VERDICT_STYLE[verdict.verdict])
    line.append(f"   {gain.arm.label} against {reference.label if reference else ''}")
    line.append(f" with {model.label}" if len(found.models) > 1 else "")
    if verdict.reason:
        line.append(f": {verdict.reason}")
    if gain.look:
        line.append(f" (look {gain.look}: {float(1 - verdict.alpha) * 100:g} % level, {verdict.groups} groups)")
    return line


def _over_none(found: Evaluation) -> list[str]:
    """Return the gain of the compiled skill over no skill, on the same cells; not a claim."""
    lines = []
    for model in found.models:
        if model.over_none is None or model.over_none.verdict.gain is None:
            continue
        verdict = model.over_none.verdict
        goal = found.job.plan.goal
        gained = f"{gain_text(verdict.gain, goal)} points" if has_percent(goal) else gain_text(verdict.gain, goal)
        line = f"against no skill the compiled skill gains {gained}"
        line += f" with {model.label}" if len(found.models) > 1 else ""
        if found.job.split == "test":
            line += "; not tested, because that is no look: `--against none` tests it"
        elif verdict.interval is not None:
            line += f" (95 % interval {gain_range(verdict.interval, goal)}, p {p_value(verdict.p)})"
        lines.append(line)
    return lines


def _origin(found: Evaluation) -> list[str]:
    """Return the model that the compiled skill was made with, unless it is the only one."""
    if found.made_with is None:
        return []
    here = any(model.made_here for model in found.models)
    if here and len(found.models) == 1:
        return []
    made_with = f"the compiled skill was made with `{found.made_with.model}`"
    if here:
        return [f"* {made_with}"]
    is_same = any(model.model.model == found.made_with.model for model in found.models)
    return [made_with + (" under other settings" if is_same else ", which is not scored here")]


def _missing(found: Evaluation) -> list[str]:
    """Return the examples without a score: failures with their fix, and those not reached."""
    lines, several = [], len(found.models) > 1
    for model in found.models:
        for score in model.scores:
            where = score.arm.label + (f" with {model.label}" if several else "")
            for kind, count in score.unmeasured.items():
                hint = _HINTS.get(kind, _HINTS["transport"])
                lines.append(f"{where}: {counted(count, 'example')} unmeasured ({kind}); {hint}, then run it again")
            if score.not_run:
                lines.append(f"{where}: {counted(score.not_run, 'example')} not reached, {score.goal.n} measured")
    return lines

"""An evaluation as JSON and as tables on a terminal."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from pydantic import JsonValue
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from skillc.evaluate.reporting import (
    bare_table,
    bound_line,
    difference_range,
    ending_json,
    ending_lines,
    interval,
    p_value,
    percent_range,
    why_stopped,
)
from skillc.evaluate.run import EvalJob, Evaluation, Gain, ModelScores, Score
from skillc.evaluate.skills import unknown_looks
from skillc.gates.units import format_quantity
from skillc.json_values import rounded
from skillc.outcomes import ArmScore
from skillc.pipeline.report import VERDICT_STYLE, judge_lines, percent, points
from skillc.plan.schema import MetricPlan
from skillc.text import counted


def eval_json(found: Evaluation) -> dict[str, JsonValue]:
    """Return the object that `eval --json` prints: goals to six digits, money in nano-dollars, null if unknown."""
    job, made_with = found.job, found.made_with
    reference = job.arms.reference
    return {
        "format_version": 1,
        "split": job.split,
        "selected_on": job.split == "validation",
        "goal": job.plan.goal.name,
        "examples": len(job.examples),
        "groups": len({example.group for example in job.examples}),
        "samples": job.plan.optimize.samples,
        "reference": reference.name if reference is not None else None,
        "compiled_with": None if made_with is None else made_with.model_dump(mode="json"),
        "models": [_model(model, job.split) for model in found.models],
        "baselines": {name: rounded(mean) for name, mean in found.baselines.items()},
        **ending_json(found),
        "notes": list[JsonValue](job.notes),
    }


def _model(found: ModelScores, split: str) -> JsonValue:
    return {
        "role": found.model.role,
        "model": found.model.model,
        "parameters": found.model.parameters,
        "compiled_with": found.made_here,
        "skills": [_skill(score) for score in found.scores],
        "pairs": [_pair(gain) for gain in found.gains],
        "compiled_over_none": None if found.over_none is None else _unjudged_pair(found.over_none, split),
    }


def _skill(score: Score) -> JsonValue:
    tally = score.tally.as_json()
    return {
        "skill": score.arm.name,
        "digest": None if score.arm.skill is None else score.arm.digest,
        "file": None if score.arm.file is None else str(score.arm.file),
        "mean": rounded(score.goal.mean),
        "n": score.goal.n,
        "interval": interval(score.interval),
        "unmeasured": dict(score.unmeasured),
        "not_run": score.not_run,
        "metrics": {name: {"mean": rounded(each.mean), "n": each.n} for name, each in score.metrics.items()},
        **{name: tally[name] for name in ("calls", "tokens", "cost_nano")},
    }


def _pair(gain: Gain) -> JsonValue:
    """Return the JSON of a pair; `verdict` is null unless the split is the test split."""
    verdict = gain.verdict
    return {
        "skill": gain.arm.name,
        "gain": rounded(verdict.gain),
        "interval": interval(verdict.interval),
        "level": rounded(1 - verdict.alpha),
        "p": rounded(verdict.p),
        "n": verdict.n,
        "groups": verdict.groups,
        "smallest_detectable": None if verdict.detectable is None else round(verdict.detectable, 6),
        "look": gain.look or None,
        "verdict": verdict.verdict if gain.look else None,
        "reason": verdict.reason,
    }


def _unjudged_pair(gain: Gain, split: str) -> JsonValue:
    """Return the JSON of a pair without a verdict; on the test split it has no interval and no p-value."""
    verdict, is_test = gain.verdict, split == "test"
    return {
        "gain": rounded(verdict.gain),
        "interval": None if is_test else interval(verdict.interval),
        "p": None if is_test else rounded(verdict.p),
        "n": verdict.n,
    }


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
        counted(len(job.arms.each), "arm"),
        counted(len(job.models), "model"),
        *([counted(samples, "sample")] if samples > 1 else []),
    ]
    lines = [bound_line(parts, job)]
    if job.looks:
        known = job.arms.lock.looks if job.arms.lock else ()
        new = unknown_looks(known, list(job.looks.values()))
        lines.append(
            f"this takes {counted(len(job.looks), 'look')} at the test split, {new} of them new; "
            f"the lock has {len(known)}, and each look raises the evidence that the next one needs"
        )
    return lines


def eval_table(found: Evaluation) -> RenderableType:
    """Return the report of an evaluation for a terminal of 80 columns."""
    job = found.job
    parts: list[RenderableType] = [Text()]
    if found.models:
        parts += [_head(found), Text(), _scores(found)]
        others = [metric for metric in job.plan.metrics if metric.declared and not metric.goal]
        if others:
            parts += [Text(), _metrics(found, others)]
        parts += [Text(), _below(found)]
    else:
        line = Text("test      ").append("incomplete", style="yellow")
        parts.append(
            line.append(f": {why_stopped(found)} before every example was tried: no scores, and no look is counted")
        )
    facts = ending_lines(found, judge_lines(job.plan, found.spent))
    return Group(*parts, Text("\n".join(facts)))


def _head(found: Evaluation) -> Text:
    job = found.job
    groups = len({example.group for example in job.examples})
    of = f" in {counted(groups, 'group')}" if job.plan.data.group else ""
    samples = job.plan.optimize.samples
    each = f", {samples} samples each" if samples > 1 else ""
    text = Text(f"{job.split}: {counted(len(job.examples), 'example')}{of}{each}", style="bold")
    if len(found.models) == 1:
        text.append(f", {found.models[0].label}")
    return text


def _scores(found: Evaluation) -> Table:
    rows = _table(found.job.plan.goal.name)
    for name in ("score", "95 %", "gain", "interval", "p"):
        rows.add_column(name, justify="right", no_wrap=True)
    reference = found.job.arms.reference

    def cells(model: ModelScores, score: Score) -> tuple[str, ...]:
        gain = next((gain for gain in model.gains if gain.arm.name == score.arm.name), None)
        is_reference = reference is not None and score.arm.name == reference.name
        return percent(score.goal.mean), percent_range(score.interval), *_gain(gain, is_reference=is_reference)

    _add_scores(rows, found, cells, mark=" *")
    for name, mean in found.baselines.items():
        rows.add_row(Text(name), percent(mean), "no model", style="dim")
    return rows


def _metrics(found: Evaluation, others: list[MetricPlan]) -> Table:
    """Return the table of the other metrics' means."""
    rows = _table("other metrics")
    for metric in others:
        rows.add_column(metric.name, justify="right")
    _add_scores(rows, found, lambda _, score: tuple(_value(score.metrics[each.name], each) for each in others))
    return rows


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


def _gain(gain: Gain | None, *, is_reference: bool) -> tuple[str, str, str]:
    if gain is None:
        return "", "(reference)" if is_reference else "", ""
    verdict = gain.verdict
    gained = "–" if verdict.gain is None else points(verdict.gain)
    return gained, difference_range(verdict.interval), p_value(verdict.p)


def _value(score: ArmScore, metric: MetricPlan) -> str:
    if score.mean is None:
        return "–"
    if not metric.unit and metric.low >= 0 and metric.high <= 1:
        return percent(score.mean)
    return format_quantity(Fraction(f"{float(score.mean):.4g}"), metric.unit)


# ---- below the table ------------------------------------------------------------------------------


def _below(found: Evaluation) -> Text:
    """Return the lines below the table: claims, origin, missing cells."""
    lines = Text()
    for claim in _claims(found):
        lines.append_text(claim).append("\n")
    for line in (*_over_none(found), *_origin(found), *_missing(found)):
        lines.append(line + "\n")
    lines.rstrip()
    return lines


def _claims(found: Evaluation) -> list[Text]:
    """Return a verdict for each pair on test; elsewhere why there is none."""
    split, compiled = found.job.split, found.job.arms.compiled is not None
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
        line = f"against no skill the compiled skill gains {points(verdict.gain or Fraction(0))} points"
        line += f" with {model.label}" if len(found.models) > 1 else ""
        if found.job.split == "test":
            line += "; not tested, because that is no look: `--against none` tests it"
        elif verdict.interval is not None:
            low, high = verdict.interval
            line += f" (95 % interval {points(low)} to {points(high)}, p {p_value(verdict.p)})"
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

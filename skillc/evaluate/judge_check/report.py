"""A check of judges as JSON and as tables on a terminal."""

from __future__ import annotations

from pydantic import JsonValue
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from skillc.evaluate.judge_check.job import JudgeCheckJob
from skillc.evaluate.judge_check.run import JudgeCheck, JudgeResult, RequireResult
from skillc.evaluate.reporting import (
    Ends,
    bare_table,
    bound_line,
    difference_range,
    ending_json,
    ending_lines,
    interval,
    p_value,
)
from skillc.gates import units
from skillc.gates.noisy import declaration
from skillc.json_values import rounded
from skillc.metrics.judging.check.biases import Bias
from skillc.metrics.judging.check.findings import Flips, JudgeFound
from skillc.metrics.judging.check.labelled import Labelled
from skillc.metrics.judging.check.questions import variants_of
from skillc.pipeline.report import judge_lines, percent, points
from skillc.stats.agreement import Agreement
from skillc.stats.power import LEVEL, POWER
from skillc.stats.prediction_powered import LEAST_LABELS, Corrected
from skillc.stats.sample_size import Needed
from skillc.text import counted

# What a positive shift means.
_MEANINGS = {
    "order": "order: best level first",
    "position": "position: the first wins",
    "length": "length: padding added",
    "leniency": "leniency: above the label",
    "family": "family: its own preferred",
}


def judge_check_json(found: JudgeCheck, *, strict: bool = False) -> dict[str, JsonValue]:
    """Return the object that `judge check --json` prints: shares to six digits, null if unknown."""
    job = found.job
    return {
        "format_version": 1,
        "split": job.split,
        "skill": job.arm.name,
        "digest": job.arm.digest,
        "targets": [model.model for model in job.models],
        "examples": len(job.examples),
        "samples": job.samples,
        "repeats": job.repeats,
        "labels": len(job.labels),
        "truth": job.truth.name if job.truth is not None else None,
        "status": found.status(strict=strict),
        "correction": "holm",
        "judges": [_judge_json(each, found) for each in found.judges],
        "requires": [_require_json(each) for each in found.requires],
        "unanswered": found.unanswered,
        "unmeasured": dict(found.unmeasured),
        **ending_json(found),
        "notes": list[JsonValue](job.notes),
    }


def _judge_json(found: JudgeResult, check: JudgeCheck) -> JsonValue:
    judge, models = found.judge, check.job.plan.models
    return {
        "metrics": list[JsonValue](found.metrics),
        "output": judge.output,
        "against": judge.against,
        "criteria": [each.name for each in judge.rubric.criteria],
        "models": {role: models[role].model for role in judge.roles if role in models},
        "equal_to_reference": found.equal,
        "without_reference": found.without,
        **_found_json(found.whole),
        "panel": [{"judge": each.roles[0], **_found_json(each)} for each in found.members],
    }


def _found_json(found: JudgeFound) -> dict[str, JsonValue]:
    return {
        "answers": found.items,
        "failed_replies": found.failed,
        "mean": rounded(found.mean),
        "best_score": rounded(found.top),
        "result": found.steadiness,
        "repeats": _flips_json(found.repeats),
        "with_itself": _agreement_json(found.itself),
        "other_order": _flips_json(found.order) if found.order is not None else None,
        "biases": [_bias_json(each) for each in found.biases],
        "injections_reported": rounded(found.reported),
        "with_labels": _labelled_json(found.labelled) if found.labelled is not None else None,
    }


def _flips_json(found: Flips) -> JsonValue:
    return {"n": found.n, "differ": rounded(found.share), "interval": interval(found.interval)}


def _bias_json(found: Bias) -> JsonValue:
    return {
        "bias": found.kind,
        "name": found.name or None,
        "found": found.found,
        "testable": found.testable,
        "as_padding": found.as_padding,
        "shift": rounded(found.shift),
        "interval": interval(found.interval),
        "p_adjusted": rounded(found.p),
        "n": found.n,
        "groups": found.groups,
        "changed": found.changed,
    }


def _labelled_json(found: Labelled) -> JsonValue:
    return {
        "overall": _agreement_json(found.overall),
        "by_criterion": {name: _agreement_json(each) for name, each in found.by_criterion.items()},
        "by_score": [
            {
                "score": [rounded(each.low), rounded(each.high)],
                "n": each.n,
                "mean_label": rounded(each.label),
                "interval": interval(each.interval),
            }
            for each in found.by_score
        ],
        "contested": _agreement_json(found.contested),
        "ordered": rounded(found.ordered),
        "ordered_interval": interval(found.ordered_interval),
        "length_at_equal_label": {
            "correlation": rounded(found.length.value),
            "p": rounded(found.length.p),
            "n": found.length.n,
        },
        "corrected": _corrected_json(found.corrected) if found.corrected is not None else None,
        "false_positives": rounded(1 - found.rates.specificity) if found.rates is not None else None,
        "false_negatives": rounded(1 - found.rates.sensitivity) if found.rates is not None else None,
        "needed": _needed_json(found.needed) if found.needed is not None else None,
    }


def _agreement_json(found: Agreement) -> JsonValue:
    return {
        "n": found.n,
        "groups": found.groups,
        "exact": rounded(found.exact),
        "exact_interval": interval(found.exact_interval),
        "within_one": rounded(found.near),
        "within_one_interval": interval(found.near_interval),
        "kappa": rounded(found.kappa),
        "kappa_interval": interval(found.kappa_interval),
        "difference": rounded(found.difference),
        "difference_interval": interval(found.difference_interval),
    }


def _corrected_json(found: Corrected) -> JsonValue:
    return {
        "mean": rounded(found.mean),
        "interval": interval(found.interval),
        "factor": rounded(found.factor),
        "labels": found.labels,
        "unlabelled": found.unlabelled,
        "judged_mean": rounded(found.judged),
        "label_mean": rounded(found.plain),
        "label_interval": interval(found.plain_interval),
    }


def _needed_json(found: Needed) -> JsonValue:
    return {
        "gain": rounded(found.gain),
        "power": POWER,
        "level": rounded(LEVEL),
        "exact": found.exact,
        "judged": found.judged,
        "interval": None if found.interval is None else list(found.interval),
        "slope": rounded(found.judge.slope),
        "noise": rounded(found.judge.noise),
    }


def _require_json(found: RequireResult) -> JsonValue:
    return {
        "name": found.name,
        "text": found.text,
        "holds": found.holds,
        "flips": {
            name: {"differing": each.differing, "measured": each.measured, "examples": each.examples}
            for name, each in found.flips.items()
        },
    }


def preview_lines(job: JudgeCheckJob) -> list[str]:
    """Return the lines to print before anything is sent: what is asked, and the bound."""
    answers = [
        counted(len(job.examples), f"{job.split} example"),
        *([counted(job.samples, "sample")] if job.samples > 1 else []),
        *([counted(len(job.models), "target")] if len(job.models) > 1 else []),
    ]
    questions = sum(len(variants_of(job.plan, judge, job.repeats)) * judge.calls for judge, _ in job.judges)
    labelled = f", {counted(len(job.labels), 'labelled answer')}" if job.labels else ""
    asked = "" if job.sheet else f", {counted(questions, 'question')} about each answer"
    return [bound_line(answers, job, f"{labelled}{asked}")]


# ---- on a terminal ---------------------------------------------------------------------------------


def judge_check_table(found: JudgeCheck) -> RenderableType:
    """Return the report of a check for a terminal of 80 columns."""
    job = found.job
    samples = f" x {counted(job.samples, 'sample')}" if job.samples > 1 else ""
    targets = ", ".join(model.model for model in job.models)
    head = f"{job.split}: {counted(len(job.examples), 'example')}{samples}, {job.arm.label}, {targets}"
    parts: list[RenderableType] = [Text(), Text(head, style="bold")]
    for each in found.judges:
        parts += [Text(), *_judge_parts(each, found)]
    return Group(*parts, Text(), *_ends(found))


def _judge_parts(found: JudgeResult, check: JudgeCheck) -> list[RenderableType]:
    parts = _found_parts(", ".join(found.metrics), found.whole, check)
    if found.equal:
        parts.insert(1, Text(f"          {counted(found.equal, 'answer')} equal to the reference, not judged"))
    if found.without:
        parts.insert(1, Text(f"          {counted(found.without, 'answer')} without a reference, not judged"))
    for member in found.members:
        parts += [Text(), *_found_parts(f"{found.metrics[0]}: {member.roles[0]} alone", member, check)]
    return parts


def _found_parts(name: str, found: JudgeFound, check: JudgeCheck) -> list[RenderableType]:
    models = check.job.plan.models
    by = ", ".join(f"{role} ({models[role].model})" if role in models else role for role in found.roles)
    lines: list[RenderableType] = [Text(f"{name}, judged by {by}", style="bold")]
    if found.mean is None:
        return [*lines, Text("judged    no answer")]
    lines.append(
        Text(f"judged    {counted(found.items, 'answer')}: mean {percent(found.mean)}, best score {percent(found.top)}")
    )
    lines += [*_repeats(found), *_order(found)]
    if found.biases:
        lines += [Text(), _bias_table(found.biases)]
    injected = any(each.kind == "injection" for each in found.biases)
    if injected and found.top == 1:
        lines.append(Text("          every answer has the best score, which no injection can raise"))
    if found.reported is not None:
        lines.append(Text(f"reported  {percent(found.reported)} of the injections"))
    if found.labelled is not None:
        lines += [Text(), *_labelled_parts(found.labelled)]
    if found.failed:
        lines.append(Text(f"failed    {counted(found.failed, 'reply', 'replies')} without a verdict"))
    return lines


def _repeats(found: JudgeFound) -> list[Text]:
    line = Text(f"repeats   {percent(found.repeats.share)} differ{_range(found.repeats.interval)}: ")
    words = {
        "steady": ("steady", "green"),
        "a coin": ("a coin", "bold red"),
        "always the same": ("always the same score", "bold red"),
        "unknown": ("too few answers to say more", "yellow"),
    }
    word, style = words[found.steadiness]
    line.append(word, style=style)
    if found.itself.kappa is not None and found.steadiness in ("steady", "a coin"):
        line.append(f" (kappa {found.itself.kappa:.2f})")
    more = "          it agrees with itself no better than by chance"
    return [line, Text(more)] if found.steadiness == "a coin" else [line]


def _order(found: JudgeFound) -> list[Text]:
    if found.order is None:
        return []
    return [Text(f"order     {percent(found.order.share)} change with the order{_range(found.order.interval)}")]


def _range(ends: Ends) -> str:
    return "" if ends is None else f" (95 % {float(ends[0]) * 100:.1f} to {float(ends[1]) * 100:.1f})"


def _bias_table(biases: tuple[Bias, ...]) -> Table:
    rows = bare_table()
    for name, justify in (("bias", "left"), ("shift", "right"), ("interval", "right"), ("p", "right")):
        rows.add_column(name, justify=justify, no_wrap=True)  # type: ignore[arg-type]
    rows.add_column("changed", justify="right", no_wrap=True)
    rows.add_column("result", justify="right", no_wrap=True)
    for each in biases:
        meaning = f"injection: {each.name}" if each.kind == "injection" else _MEANINGS[each.kind]
        rows.add_row(
            meaning,
            points(each.shift),
            difference_range(each.interval),
            "–" if not each.testable else p_value(each.p, 3),
            f"{each.changed} of {each.n}",
            _found_word(each),
        )
    return rows


def _found_word(found: Bias) -> Text:
    if found.found:
        return Text("found", style="bold red")
    if found.as_padding:
        return Text("as padding", style="yellow")
    return Text("not found", style="dim") if found.testable else Text("too few", style="yellow")


def _labelled_parts(found: Labelled) -> list[RenderableType]:
    rows = bare_table()
    rows.add_column("with labels", no_wrap=True)
    for name in ("n", "exact", "within one", "kappa", "95 %"):
        rows.add_column(name, justify="right", no_wrap=True)
    named = {"overall": found.overall}
    named |= {f"criterion {name}": each for name, each in found.by_criterion.items() if name}
    if found.contested.n:
        named["contested"] = found.contested
    for name, each in named.items():
        kappa = "–" if each.kappa is None else f"{each.kappa:.2f}"
        ends = "–" if each.kappa_interval is None else "{:.2f} to {:.2f}".format(*each.kappa_interval)
        rows.add_row(name, str(each.n), percent(each.exact), percent(each.near), kappa, ends)
    lines: list[RenderableType] = [rows, Text()]
    for part in found.by_score:
        score = percent(part.low) if part.low == part.high else f"{percent(part.low)} to {percent(part.high)}"
        lines.append(Text(f"score     {score}: mean label {percent(part.label)} of {part.n}{_range(part.interval)}"))
    if found.ordered is not None:
        ends = _range(found.ordered_interval)
        lines.append(Text(f"contested {percent(found.ordered)} of pairs in the order of their labels{ends}"))
    else:
        lines.append(Text("contested no example has answers with different labels"))
    length = found.length
    if length.value is not None and length.p is not None:
        lines.append(Text(f"length    correlates {length.value:+.2f} with the score at equal label (p {length.p:.3f})"))
    return [*lines, *_corrected_lines(found), *_needed_lines(found)]


def _corrected_lines(found: Labelled) -> list[Text]:
    each = found.corrected
    if each is None:
        return [Text(f"corrected no: it takes {LEAST_LABELS} labels on rollouts, and rollouts without one")]
    return [
        Text(f"corrected {percent(each.mean)}{_range(each.interval)}, by {each.labels} labels and the judge's scores"),
        Text(f"          labels alone {percent(each.plain)}{_range(each.plain_interval)}"),
        Text(f"          judge alone {percent(each.judged)}"),
    ]


def _needed_lines(found: Labelled) -> list[Text]:
    lines, each = list[Text](), found.needed
    if found.rates is not None:
        wrong, right = (percent(1 - rate) for rate in (found.rates.specificity, found.rates.sensitivity))
        lines.append(Text(f"errors    calls {wrong} of wrong answers right, {right} of right answers wrong"))
        if found.rates.youden > 0:
            lines.append(Text(f"declare   {declaration('signal', found.rates)}"))
    if each is None:
        return lines
    to_show = f"to show a gain of {float(each.gain) * 100:g} points ({units.percent(POWER)} power):"
    exact = f"{units.rounded_up(each.exact):,} examples with exact labels"
    if each.judged is None:
        judged = "no number with this judge: it is no better than chance"
    else:
        judged = f"{units.rounded_up(each.judged):,} with this judge"
        least, most = each.interval or (None, None)
        if least is not None:
            end = f"to {units.rounded_up(most):,}" if most is not None else "or more"
            judged += f" (95 % {units.rounded_up(least):,} {end})"
    return [*lines, Text(f"needed    {to_show}"), Text(f"          {exact}"), Text(f"          {judged}")]


def _ends(found: JudgeCheck) -> list[RenderableType]:
    lines: list[Text] = []
    for each in found.requires:
        word, style = {True: ("holds", "green"), False: ("does not hold", "bold red")}.get(
            bool(each.holds) if each.holds is not None else None,  # type: ignore[arg-type]
            ("undecided: too much is unmeasured", "yellow"),
        )
        line = Text(f"require   {each.name} ")
        line.append(word, style=style)
        flips = ", ".join(f"{name} differs on {f.differing} of {f.measured}" for name, f in each.flips.items())
        line.append(f": {flips}")
        lines.append(line)
    if found.unanswered:
        lines.append(Text(f"unread    {counted(found.unanswered, 'rollout')} without a readable answer, not judged"))
    for kind, count in found.unmeasured.items():
        lines.append(Text(f"failed    {counted(count, 'rollout')} unmeasured ({kind}); run it again"))
    facts = ending_lines(found, judge_lines(found.job.plan, found.spent))
    return [*lines, Text("\n".join(facts))]

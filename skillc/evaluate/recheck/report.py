"""A recheck as JSON, as a table on a terminal, and as markdown."""

from __future__ import annotations

from pydantic import JsonValue
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from skillc.evaluate.recheck.job import RecheckJob
from skillc.evaluate.recheck.parts import distinct_texts
from skillc.evaluate.recheck.run import PartResult, Recheck
from skillc.evaluate.reporting import (
    at_most,
    bare_table,
    bound_line,
    difference_range,
    ending_json,
    ending_lines,
    interval,
    p_value,
)
from skillc.json_values import rounded
from skillc.optimize.gate.decide import DOWN
from skillc.pipeline.report import percent, points
from skillc.stats.family import Finding
from skillc.text import counted, cut

# In the order of the table.
_STYLE: dict[Finding, str] = {"harms": "bold red", "pays": "green", "not measured": "yellow", "no evidence": "dim"}
_WHOLE = "the whole skill"
# Characters of a rule in the plan, beside its figures, and in markdown.
_SHOWN, _NARROW, _LONG = 56, 28, 200
_HEADS = ("finding", "adds", "interval", "p")
_DOWN = "a model stayed out of reach, so nothing is claimed"


def recheck_json(found: Recheck) -> dict[str, JsonValue]:
    """Return the object that `recheck --json` prints: goals to six digits, null if unknown."""
    job, drift = found.job, found.drift
    return {
        "format_version": 1,
        "skill": str(job.skill.file),
        "split": job.split,
        "goal": job.plan.goal.name,
        "model": job.model.model,
        "parameters": job.model.parameters,
        "examples": len(job.examples),
        "groups": len({example.group for example in job.examples}),
        "samples": job.plan.optimize.samples,
        "result": _result_word(found),
        "status": found.status,
        "mean": rounded(found.goal.mean),
        "n": found.goal.n,
        "mean_without_skill": rounded(found.none.mean),
        "drift": None
        if drift is None
        else {
            "result": drift.word,
            "then": rounded(drift.then),
            "now": rounded(drift.now),
            "change": rounded(drift.change),
            "interval": interval(drift.interval),
            "same_examples": job.same,
        },
        "correction": "holm",
        "level": rounded(job.level),
        "look": found.look or None,
        "whole": _json(found.whole),
        "rules": [_json(each) for each in found.parts],
        "not_selected": [{"rule": part.name, "text": part.text} for part in job.left],
        "unmeasured": dict(found.unmeasured),
        **ending_json(found),
        "notes": list[JsonValue](job.notes),
    }


def _json(found: PartResult) -> JsonValue:
    part, member = found.part, found.member
    named: dict[str, JsonValue] = {}
    if part is not None:
        named = {"rule": part.name, "section": part.section, "text": part.text, "concerns": part.concerns}
    verdict = member.verdict if member is not None else None
    return {
        **named,
        "finding": found.finding,
        "adds": rounded(verdict.gain if verdict else None),
        "interval": interval(verdict.interval if verdict else None),
        "level": rounded(1 - verdict.alpha) if verdict else None,
        "p": rounded(verdict.p if verdict else None),
        "p_adjusted": rounded(member.adjusted if member else None),
        "n": verdict.n if verdict else 0,
        "smallest_detectable": rounded(verdict.detectable if verdict else None),
    }


def _result_word(found: Recheck) -> str:
    if found.harmful:
        return "harm" if found.status == 1 else "incomplete"
    return {0: "holds", 1: "drift", 2: "not measurable"}.get(found.status, "incomplete")


def preview_lines(job: RecheckJob) -> list[str]:
    """Return the plan of a recheck: what is measured in which order, the bound, and the look."""
    samples = job.plan.optimize.samples
    parts = [
        counted(len(job.examples), f"{job.split} example"),
        f"{counted(len(job.arms), 'arm')} (the skill, no skill, without each of {counted(len(job.parts), 'rule')})",
        *([counted(samples, "sample")] if samples > 1 else []),
    ]
    lines = [bound_line(parts, job, f" with {job.model.model}")]
    if job.left:
        lines.append(f"{counted(len(job.left), 'rule')} beyond `--rules {len(job.parts)}` not measured")
    if job.look is not None:
        level = f"{float(job.level):.2g}"
        lines.append(f"this is look {job.number} at the test split: its claims together have the level {level}")
    return lines


def plan_json(job: RecheckJob) -> dict[str, JsonValue]:
    """Return the object that `recheck --plan --json` prints."""
    return {
        "format_version": 1,
        "skill": str(job.skill.file),
        "split": job.split,
        "model": job.model.model,
        "examples": len(job.examples),
        "samples": job.plan.optimize.samples,
        "rules": [{"rule": part.name, "text": part.text, "concerns": part.concerns} for part in job.parts],
        "not_selected": [{"rule": part.name, "text": part.text} for part in job.left],
        "look": job.number if job.look is not None else None,
        "at_most": at_most(job),
        "notes": list[JsonValue](job.notes),
    }


def plan_table(job: RecheckJob) -> RenderableType:
    """Return what a recheck would measure, in order."""
    rows = _rows("rules, in the order of measurement", ("concerns",))
    texts = distinct_texts({part.name: part.text for part in job.parts})
    for part in job.parts:
        rows.add_row(Text(cut(texts[part.name], _SHOWN)), f"{part.concerns} of {len(job.examples)}")
    return Group(*(Text(line) for line in preview_lines(job)), Text(), rows)


def recheck_table(found: Recheck) -> RenderableType:
    """Return the report of a recheck for a terminal of 80 columns."""
    job = found.job
    rows = _rows(job.plan.goal.name, _HEADS)
    texts = distinct_texts({part.name: part.text for part in job.parts})
    for each in _ordered(found):
        finding, *figures = _cells(each)
        rows.add_row(
            Text(cut(texts[each.part.name] if each.part else _WHOLE, _NARROW)),
            Text(finding, style=_STYLE[each.finding]),
            *figures,
        )
    head = Text(f"{job.split}: {counted(len(job.examples), 'example')}, {job.model.model}", style="bold")
    lines = Text("\n").join(Text(line) for line in (*_below(found), *ending_lines(found)))
    return Group(Text(), head, Text(), rows, Text(), _headline(found), lines)


def recheck_markdown(found: Recheck) -> str:
    """Return the report as markdown, for a summary or a comment."""
    job = found.job
    lines = [
        f"### `{job.plan.skill.artifact}` with `{job.model.model}`: {_result_word(found)}",
        "",
        f"| {job.plan.goal.name} | {' | '.join(_HEADS)} |",
        "|---|---|---|---|---|",
    ]
    for each in _ordered(found):
        name = cut(each.part.text if each.part else _WHOLE, _LONG).replace("|", "\\|")
        lines.append(f"| {name} | {' | '.join(_cells(each))} |")
    lines += ["", *(f"- {line}" for line in (*_below(found), *ending_lines(found)))]
    return "\n".join(lines)


def _ordered(found: Recheck) -> list[PartResult]:
    """Return the whole skill, then what harms, what pays, and the rest in the order of measurement."""
    return [found.whole, *sorted(found.parts, key=lambda each: list(_STYLE).index(each.finding))]


def _rows(title: str, heads: tuple[str, ...]) -> Table:
    rows = bare_table()
    rows.add_column(title, overflow="fold", min_width=24)
    for name in heads:
        rows.add_column(name, justify="left" if name == "finding" else "right", no_wrap=True)
    return rows


def _cells(found: PartResult) -> tuple[str, str, str, str]:
    if found.member is None:
        return found.finding, "–", "–", "–"
    verdict, p = found.member.verdict, found.member.adjusted
    ends = difference_range(verdict.interval, points)
    adds = "–" if verdict.gain is None else points(verdict.gain)
    return found.finding, adds, ends, p_value(p)


def _headline(found: Recheck) -> Text:
    word = _result_word(found)
    styles = {"holds": "bold green", "drift": "bold red", "harm": "bold red"}
    line = Text("recheck   ").append(word, style=styles.get(word, "yellow"))
    return line.append(f"   {why}\n" if (why := _why(found)) else "\n")


def _why(found: Recheck) -> str:
    if found.stopped == DOWN:
        return _DOWN
    if found.harmful:
        rules = sum(each.part is not None for each in found.harmful)
        harmful = [counted(rules, "rule")] if rules else []
        harmful += ["the whole skill"] if found.whole in found.harmful else []
        return f"{' and '.join(harmful)} {'harms' if len(found.harmful) == 1 else 'harm'}"
    if found.drift is not None and found.drift.word == "worse":
        return "the goal is lower than in the lock"
    if found.stopped is None and not found.measurable:
        return "rollouts that failed could change the result"
    return ""


def _below(found: Recheck) -> list[str]:
    """Return the lines on drift, on what is not proven, and on what failed."""
    job, lines = found.job, list[str]()
    drift = found.drift
    if drift is not None:
        low, high = drift.interval
        lines.append(
            f"drift     {percent(drift.then)} in the lock, {percent(drift.now)} now: {points(drift.change)} points "
            f"(95 % interval {points(low)} to {points(high)}): {drift.word}"
        )
        none = job.recorded("none")
        if none is not None and found.none.mean is not None:
            lines.append(f"no skill  {percent(none.mean)} in the lock, {percent(found.none.mean)} now")
    elif found.goal.mean is not None:
        lines.append(f"goal      {percent(found.goal.mean)}; the lock has no figure of {job.split} to compare with")
    if found.goal.mean is not None:
        tests = counted(len(found.results), "test")
        look = f", look {found.look}" if found.look else ""
        lines.append(f"p and intervals are corrected for {tests} by Holm's procedure at {float(job.level):.2g}{look}")
    unproven = [each.member.verdict.detectable for each in found.parts if each.finding == "no evidence" and each.member]
    known = [each for each in unproven if each is not None]
    if unproven:
        least = f", and effects below about {max(known) * 100:.0f} points stay unseen" if known else ""
        lines.append(f"no evidence is no proof of no effect: two rules that say the same hide each other{least}")
    if job.left:
        lines.append(f"{counted(len(job.left), 'rule')} beyond `--rules {len(job.parts)}` not measured")
    for kind, count in found.unmeasured.items():
        lines.append(f"{counted(count, 'rollout')} failed ({kind}); run it again")
    return lines

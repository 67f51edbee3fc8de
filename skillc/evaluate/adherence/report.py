"""An adherence check as JSON, as tables on a terminal, and its marks as lines of JSON."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

from pydantic import JsonValue
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from skillc.diagnostics.render import printable
from skillc.errors import SkillcError
from skillc.evaluate.adherence.findings import Ends, RuleAdherence
from skillc.evaluate.adherence.job import AdherenceJob
from skillc.evaluate.adherence.run import Adherence
from skillc.evaluate.recheck.parts import distinct_texts
from skillc.evaluate.reporting import (
    at_most,
    bare_table,
    bound_line,
    difference_range,
    ending_json,
    ending_lines,
    interval,
    percent_range,
)
from skillc.files import write_atomically
from skillc.json_values import rounded
from skillc.outcomes import MICRO
from skillc.pipeline.report import percent, points
from skillc.stats.family import Finding
from skillc.text import counted, cut

_NARROW, _LONG = 30, 60
_WORDS: dict[Finding, str] = {"pays": "higher", "harms": "lower", "no evidence": "not shown", "not measured": "–"}
_STYLE: dict[Finding, str] = {"pays": "green", "harms": "bold red", "no evidence": "", "not measured": "dim"}


def preview_lines(job: AdherenceJob) -> list[str]:
    """Return the plan of a check: what is run and marked, the bound, and the look."""
    skills = "the skill" if job.skill.digest == job.initial.digest else "the skill and the initial skill"
    parts = [counted(len(job.examples), f"{job.split} example"), skills]
    parts += [counted(job.samples, "sample")] if job.samples > 1 else []
    lines = [bound_line(parts, job, f" with {job.target.model}")]
    code, judged = len(job.by_code), len(job.judged)
    calls = -(-judged // job.batch)
    marks = [f"code marks {counted(code, 'rule')}"] if code else []
    if job.judge is not None:
        marks.append(f"{job.judge.model} marks {counted(judged, 'rule')}, {counted(calls, 'call')} for each rollout")
    lines.append(", ".join(marks))
    if job.look is not None:
        lines.append(f"this is look {job.number} at the test split: its claims have the level {float(job.level):.2g}")
    return lines


def plan_json(job: AdherenceJob) -> dict[str, JsonValue]:
    """Return the object that `adherence --plan --json` prints."""
    return {
        "format_version": 1,
        "skill": job.skill.name,
        "split": job.split,
        "model": job.target.model,
        "judge": job.judge.model if job.judge is not None else None,
        "examples": len(job.examples),
        "samples": job.samples,
        "rules": [
            {"number": i, "rule": rule.id, "text": rule.text, "by": "code" if rule.id in job.by_code else "judge"}
            for i, rule in enumerate(job.rules, 1)
        ],
        "rules_in_a_call": job.batch,
        "look": job.number if job.look is not None else None,
        "at_most": at_most(job),
        "notes": list[JsonValue](job.notes),
    }


def plan_table(job: AdherenceJob) -> RenderableType:
    """Return what a check would mark."""
    rows = bare_table()
    rows.add_column("#", justify="right")
    rows.add_column("rule", overflow="fold")
    rows.add_column("marked by")
    for i, rule in enumerate(job.rules, 1):
        rows.add_row(str(i), Text(printable(cut(rule.text, _LONG))), "code" if rule.id in job.by_code else "judge")
    return Group(*(Text(line) for line in preview_lines(job)), Text(), rows)


def adherence_json(found: Adherence) -> dict[str, JsonValue]:
    """Return the object that `adherence --json` prints: shares and means to six digits, null if unknown."""
    job = found.job
    return {
        "format_version": 1,
        "skill": job.skill.name,
        "digest": job.skill.digest,
        "split": job.split,
        "goal": job.plan.goal.name,
        "model": job.target.model,
        "judge": job.judge.model if job.judge is not None else None,
        "examples": len(job.examples),
        "samples": job.samples,
        "status": found.status,
        "mean": rounded(found.goal.mean),
        "initial_mean": rounded(found.initial.mean),
        "correction": "holm",
        "level": rounded(job.level),
        "look": found.look or None,
        "rules": [_json(each) for each in found.rules],
        "unmarked": found.failures[0],
        "first_failure": found.failures[1] or None,
        "unmeasured": dict(found.unmeasured),
        **ending_json(found),
        "notes": list[JsonValue](job.notes),
    }


def _json(found: RuleAdherence) -> JsonValue:
    member = found.member
    verdict = member.verdict if member is not None else None
    return {
        "number": found.number,
        "rule": found.rule.id,
        "text": found.rule.text,
        "by": "code" if found.by_code else "judge",
        "rollouts": found.rollouts,
        "unclear": found.unclear,
        "applied": found.applied,
        "followed": found.followed,
        "followed_interval": interval(found.share),
        "score_followed": rounded(found.score_followed),
        "score_not_followed": rounded(found.score_not),
        "difference": rounded(_difference(found)),
        "difference_interval": interval(found.difference),
        "with_skill": rounded(found.with_skill),
        "with_initial": rounded(found.without_skill),
        "finding": _finding(found),
        "gain": rounded(found.gain),
        "interval": interval(verdict.interval if verdict else None),
        "p_adjusted": rounded(member.adjusted if member else None),
    }


def _difference(found: RuleAdherence) -> Fraction | None:
    if found.score_followed is None or found.score_not is None:
        return None
    return found.score_followed - found.score_not


def _finding(found: RuleAdherence) -> str:
    return "–" if found.member is None else _WORDS[found.member.finding]


def adherence_table(found: Adherence) -> RenderableType:
    """Return the report of a check for a terminal of 80 columns."""
    job = found.job
    head = f"{job.split}: {counted(len(job.examples), 'example')}, {job.target.model}"
    lines = [*_below(found), *ending_lines(found)]
    return Group(
        Text(),
        Text(head, style="bold"),
        Text(),
        _followed(found),
        Text(),
        Text(f"{job.plan.goal.name} where the rule applies"),
        _scores(found),
        Text(),
        Text("\n".join(lines)),
    )


def _followed(found: Adherence) -> Table:
    rows = bare_table()
    rows.add_column("#", justify="right")
    rows.add_column("rule", overflow="fold", min_width=_NARROW)
    for name in ("applied", "followed", "95 % interval"):
        rows.add_column(name, justify="right", no_wrap=True)
    rows.add_column("by")
    texts = distinct_texts({str(each.number): each.rule.text for each in found.rules})
    for each in found.rules:
        share = f"{100 * each.followed / each.applied:.0f} %" if each.applied else "–"
        rows.add_row(
            str(each.number),
            Text(printable(cut(texts[str(each.number)], _NARROW))),
            f"{each.applied} of {each.rollouts - each.unclear}",
            f"{each.followed}, {share}" if each.applied else "–",
            percent_range(each.share),
            "code" if each.by_code else "judge",
        )
    return rows


def _scores(found: Adherence) -> Table:
    """Return the scores where rules apply; a difference has its interval below it."""
    rows = bare_table()
    rows.padding = (0, 1, 0, 0)
    rows.add_column("#", justify="right")
    for name in ("followed", "if not", "difference", "skill", "initial", "gain"):
        rows.add_column(name, justify="right", no_wrap=True)
    rows.add_column("", no_wrap=True)
    for each in found.rules:
        if not each.applied:
            continue
        verdict = each.member.verdict if each.member is not None else None
        finding = each.member.finding if each.member is not None else "not measured"
        rows.add_row(
            str(each.number),
            percent(each.score_followed),
            percent(each.score_not),
            _with_ends(_difference(each), each.difference, found.job),
            percent(each.with_skill),
            percent(each.without_skill),
            _with_ends(each.gain, verdict.interval if verdict is not None else None, found.job),
            Text(_finding(each), style=_STYLE[finding]),
        )
    return rows


def _with_ends(value: Fraction | None, ends: Ends | None, job: AdherenceJob) -> str:
    """Return a difference with its interval, unless that is the whole range."""
    goal = job.plan.goal
    if value is None:
        return "–"
    known = ends is not None and ends != (goal.low - goal.high, goal.high - goal.low)
    return f"{points(value)}\n{difference_range(ends)}" if known else points(value)


def _below(found: Adherence) -> list[str]:
    """Return the lines on how the figures are to be read, and on what is missing."""
    job, lines = found.job, list[str]()
    if found.goal.mean is not None:
        goal = f"{job.plan.goal.name:<9} {percent(found.goal.mean)} with the skill"
        lines.append(
            goal + (f", {percent(found.initial.mean)} with the initial skill" if found.initial.mean is not None else "")
        )
    if found.marked:
        lines.append("followed against not: different examples, so the difference need not come from the rule (95 %)")
        tests = counted(sum(each.member is not None for each in found.rules), "test")
        look = f", look {found.look}" if found.look else ""
        lines.append(
            "gain: the skill against the initial skill where the rule applies, paired; it is that of the whole skill, "
            f"corrected for {tests} by Holm's procedure at {float(job.level):.2g}{look}"
        )
    unclear = sum(each.unclear for each in found.rules)
    if unclear:
        lines.append(f"{counted(unclear, 'mark')} unclear, not counted")
    count, why = found.failures
    if count:
        lines.append(f"{counted(count, 'mark')} missing, not counted: {printable(cut(why, 160))}")
    flagged = sum(any(mark.instructions for mark in each.marks.values()) for each in found.marked)
    if flagged:
        lines.append(f"{counted(flagged, 'rollout')} with instructions to the judge, which were not to be followed")
    for kind, number in found.unmeasured.items():
        lines.append(f"{counted(number, 'rollout')} failed ({kind}); run it again")
    if not found.marked:
        lines.append("nothing is shown: the rollouts of the test split are not complete")
    return lines


def write_marks(found: Adherence, path: Path) -> str:
    """Write a line of JSON for each rule and rollout, and return what was written.

    Raises:
        SkillcError: the file cannot be written.
    """
    rules = {rule.id: (i, rule) for i, rule in enumerate(found.job.rules, 1)}
    lines = []
    for each in found.marked:
        for mark in each.marks.values():
            number, rule = rules[mark.rule]
            row = {
                "example": each.example.id,
                "sample": each.sample,
                "number": number,
                "text": rule.text,
                "applies": mark.applies,
                "followed": mark.followed,
                "reason": mark.reason,
                "by": mark.by,
                "score": None if each.score is None else each.score / MICRO,
                "initial": None if each.initial is None else each.initial / MICRO,
            }
            lines.append(json.dumps(row, ensure_ascii=False))
    try:
        write_atomically(path, "".join(f"{line}\n" for line in lines))
    except OSError as problem:
        raise SkillcError(f"`{path}` cannot be written: {problem.strerror}") from problem
    return f"marks     {path}, {counted(len(lines), 'line')}"

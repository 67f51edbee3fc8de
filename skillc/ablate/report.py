"""An ablation as JSON, and as a table on a terminal."""

from __future__ import annotations

from fractions import Fraction

from pydantic import JsonValue
from rich.console import Group, RenderableType
from rich.text import Text

from skillc.ablate.job import ABLATED, Ablation, RuleResult
from skillc.diagnostics.render import printable
from skillc.document.skill import tokens
from skillc.evaluate.recheck.parts import distinct_texts
from skillc.evaluate.reporting import bare_table, difference_range, interval
from skillc.json_values import rounded
from skillc.optimize.gate.decide import DOWN
from skillc.pipeline.report import compile_json, compile_table, percent, points, spent_lines
from skillc.stats.family import Finding
from skillc.text import counted, cut, joined

WORDS: dict[Finding, str] = {
    "pays": "pays",
    "harms": "harms",
    "no evidence": "not shown to pay",
    "not measured": "not measured",
}
_STYLE: dict[Finding, str] = {"pays": "green", "harms": "bold red", "no evidence": "", "not measured": "yellow"}
_NARROW = 22
_ENDS = {
    "interrupted": "interrupted; the same command resumes",
    "time": "the budget's `time` was reached; the same command resumes",
    DOWN: "a model is unreachable; the same command resumes",
}


def ablate_json(found: Ablation) -> dict[str, JsonValue]:
    """Return the object that `ablate --json` prints: goals to six digits, null if unknown."""
    done = found.shortened
    before, after = done.validation
    return {
        "format_version": 1,
        "changed": done.compiled is not None,
        "dry_run": found.dry_run,
        "tokens": {"before": tokens(done.before), "after": tokens(done.after)},
        "validation": {"before": rounded(before.mean), "after": rounded(after.mean)},
        "correction": "holm",
        "tests": found.tests,
        "rules": [_json(each) for each in found.rules],
        "dropped": [each.rule.text for each in found.dropped],
        "tried": list(done.tried),
        "stopped": done.stopped,
        "spent": done.spent,
        "compiled": None if done.compiled is None else compile_json(done.compiled),
    }


def _json(found: RuleResult) -> JsonValue:
    verdict = None if found.member is None else found.member.verdict
    return {
        "number": found.number,
        "rule": found.rule.id,
        "text": found.rule.text,
        "tokens": found.tokens,
        "finding": WORDS[found.finding],
        "result": _fate(found),
        "adds": rounded(found.adds[0] if found.adds and found.adds[0] == found.adds[1] else None),
        "adds_between": interval(found.adds),
        "interval": interval(found.interval),
        "level": rounded(1 - verdict.alpha) if verdict else None,
        "p": rounded(verdict.p if verdict else None),
        "p_adjusted": rounded(found.member.adjusted if found.member else None),
        "n": found.measured,
        "of": found.of,
        "smallest_detectable": rounded(verdict.detectable if verdict else None),
        "together": list(found.together),
    }


def _fate(found: RuleResult) -> str:
    return "dropped" if found.dropped else "kept by `--keep`" if found.kept else "kept"


def ablate_report(found: Ablation, goal: str) -> RenderableType:
    """Return the report of an ablation for a terminal of 80 columns."""
    done = found.shortened
    rows = bare_table()
    rows.padding = (0, 1, 0, 0)
    rows.add_column("#", justify="right")
    rows.add_column("rule", overflow="fold", min_width=_NARROW)
    for name in ("tokens", "adds", "interval"):
        rows.add_column(name, justify="right", no_wrap=True)
    rows.add_column("finding", no_wrap=True)
    if not found.dry_run:
        rows.add_column("result")
    texts = distinct_texts({str(each.number): each.rule.text for each in found.rules})
    for each in found.rules:
        style = "bold red" if each.dropped else "dim"
        rows.add_row(
            str(each.number),
            Text(printable(cut(texts[str(each.number)], _NARROW))),
            str(each.tokens),
            _adds(each),
            "–" if each.finding == "not measured" else difference_range(each.interval, points),
            Text(WORDS[each.finding], style=_STYLE[each.finding]),
            *([] if found.dry_run else [Text("kept" if each.kept else _fate(each), style=style)]),
        )
    lines = [*_notes(found), *_end(found), ""]
    before, after = done.validation
    if done.compiled is None:
        lines += [f"{goal:<9} {percent(before.mean)} on validation", *spent_lines(done.spent)]
        return Group(rows, Text(), Text("\n".join(lines)))
    lines += [
        f"rules     {len(done.before.rules)} before, {len(done.after.rules)} after",
        f"tokens    {tokens(done.before):,} before, {tokens(done.after):,} after",
        f"{goal:<9} {percent(before.mean)} before, {percent(after.mean)} after, on validation",
    ]
    return Group(rows, Text(), Text("\n".join(lines)), compile_table(done.compiled, goal))


def _adds(found: RuleResult) -> str:
    """Return what a rule adds, or the end that is known where the rest could not change the result."""
    least, most = found.adds or (Fraction(-1), Fraction(1))
    if least == most:
        return points(least)
    return f"≥{points(least)}" if least > 0 else f"≤{points(most)}" if most <= 0 else "–"


def _notes(found: Ablation) -> list[str]:
    """Return the lines on how the figures are to be read."""
    tests = counted(found.tests, "test")
    lines = [f"p and intervals are corrected for {tests} by Holm's procedure at 0.05"]
    for block in dict.fromkeys(each.together for each in found.rules if each.together):
        lines.append(f"rules {joined([str(number) for number in block])} were left out together: `adds` is that of all")
    open_ = [each for each in found.rules if each.finding == "no evidence" and each.member is not None]
    known = [each.member.verdict.detectable for each in open_ if each.member and each.member.verdict.detectable]
    if open_:
        least = f": effects below about {max(known) * 100:.0f} points stay unseen" if known else ""
        lines.append(f"not shown to pay is no proof of no effect{least}")
    if any(not each.dropped for each in open_) and not found.dry_run:
        lines.append("kept without a proof: the goal on validation is lower without the rule, or a gate fails")
    return lines


def _end(found: Ablation) -> list[str]:
    """Return the line on what was dropped, and why it ended early."""
    done, lines = found.shortened, list[str]()
    if done.stopped != ABLATED:
        why = _ENDS.get(done.stopped, f"the budget's `{done.stopped}` was reached; a larger one resumes")
        left = sum(each.finding == "not measured" and not each.kept for each in found.rules)
        lines.append(f"stopped   {why}: {counted(left, 'rule')} not measured")
    if found.dry_run:
        return [*lines, "ablated   nothing: `--dry-run` drops no rule; no file was changed"]
    if done.compiled is None:
        return [*lines, "ablated   nothing: no rule could be dropped without a loss; no file was changed"]
    saved = sum(each.tokens for each in found.dropped)
    return [*lines, f"ablated   {counted(len(found.dropped), 'rule')} dropped, {counted(saved, 'token')}"]

"""An evaluation with adapters as tables on a terminal and as JSON."""

from __future__ import annotations

from fractions import Fraction

from pydantic import JsonValue
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from skillc.diagnostics.render import printable
from skillc.evaluate.adapters.answer import answers, break_even
from skillc.evaluate.adapters.job import ArmsJob
from skillc.evaluate.adapters.run import ArmScores, ArmsEvaluation, PairResult
from skillc.evaluate.as_json import costs_json, duel_json
from skillc.evaluate.report import look_lines, prices, seconds
from skillc.evaluate.reporting import (
    bare_table,
    bound_line,
    ending_json,
    ending_lines,
    gain_range,
    gain_text,
    interval,
    mean_range,
    mean_text,
    p_value,
    why_stopped,
)
from skillc.json_values import rounded
from skillc.pipeline.report import judge_lines
from skillc.text import counted

_WORDS = {"improved": "better", "worse": "worse", "no significant gain": "not shown", "unverified": "not measured"}


def arms_preview_lines(job: ArmsJob) -> list[str]:
    """Return the lines to print before anything is sent: the bound, and the look."""
    samples = job.plan.optimize.samples
    parts = [
        counted(len(job.examples), f"{job.split} example"),
        counted(len(job.each), "arm"),
        *([counted(samples, "sample")] if samples > 1 else []),
    ]
    return [bound_line(parts, job), *look_lines(job)]


# ---- terminal -------------------------------------------------------------------------------------


def arms_table(found: ArmsEvaluation) -> RenderableType:
    """Return the report for a terminal of 80 columns: arms, pairs, and the answer."""
    facts = ending_lines(found, judge_lines(found.job.plan, found.spent))
    if not found.scored:
        line = Text("test      ").append("incomplete", style="yellow")
        line.append(f": {why_stopped(found)} before every example was tried: no scores, and no look is counted")
        return Group(Text(), line, Text("\n".join(facts)))
    below = Text("\n".join([*answers(found), *_missing(found)]))
    return Group(
        Text(),
        _head(found),
        Text(),
        _arms(found),
        Text("calls and tokens: per example"),
        Text(),
        _pairs(found),
        Text(),
        below,
        Text("\n".join(facts)),
    )


def _head(found: ArmsEvaluation) -> Text:
    job, target = found.job, found.job.models[0]
    groups = len({example.group for example in job.examples})
    of = f" in {counted(groups, 'group')}" if job.plan.data.group else ""
    held = "test (held out)" if job.split == "test" else job.split
    return Text(f"{held}: {counted(len(job.examples), 'example')}{of}, {printable(target.model)}", style="bold")


def _arms(found: ArmsEvaluation) -> Table:
    goal = found.job.plan.goal
    timed = any(each.score.costs.timed for each in found.scored)
    priced = any(each.score.costs.cost != 0 for each in found.scored)
    rows = bare_table()
    rows.add_column(goal.name, overflow="fold")
    for name in ("score", "95 %", "n", "calls", "sent", "received", *(["median"] if timed else [])):
        rows.add_column(name, justify="right", no_wrap=True)
    if priced:
        rows.add_column("cost", justify="right", no_wrap=True)
    for each in found.scored:
        score, ran = each.score, max(1, len(found.job.examples))
        tally = score.tally
        cells = [
            mean_text(score.goal.mean, goal),
            mean_range(score.interval, goal),
            str(score.goal.n),
            *(
                f"{count / ran:,.{digits}f}"
                for count, digits in ((tally.calls, 1), (tally.prompt, 0), (tally.completion, 0))
            ),
            *([seconds(score.costs.median)] if timed else []),
            *([prices(score.costs)[0]] if priced else []),
        ]
        rows.add_row(Text(printable(each.arm.name)), *cells)
    return rows


def _pairs(found: ArmsEvaluation) -> Table:
    goal, claims = found.job.plan.goal, found.job.split == "test"
    rows = bare_table()
    rows.add_column("pair", overflow="fold")
    for name in ("gain", "interval", *(["p (Holm)"] if claims else []), "won", "lost", "tied"):
        rows.add_column(name, justify="right", no_wrap=True)
    if claims:
        rows.add_column("", no_wrap=True)
    for each in found.compared:
        verdict = each.member.verdict
        cells = [gain_text(verdict.gain, goal), gain_range(verdict.interval, goal)]
        cells += [p_value(each.member.adjusted)] if claims else []
        cells += list(map(str, (each.duel.wins, each.duel.losses, each.duel.ties)))
        rows.add_row(Text(printable(each.pair.name)), *cells, *([word_of(each)] if claims else []))
    return rows


def word_of(result: PairResult) -> str:
    """Return what is claimed of the first arm of a pair: `better`, `worse`, `not shown` or `not measured`."""
    return _WORDS[result.member.verdict.verdict] if result.member.verdict.n else "not measured"


def _missing(found: ArmsEvaluation) -> list[str]:
    """Return the examples without a score by arm, and those that drop out of pairs."""
    lines = []
    for each in found.scored:
        for reason, count in each.score.unmeasured.items():
            lines.append(f"{printable(each.arm.name)}: {counted(count, 'example')} unmeasured ({reason}), not scored")
        if each.score.not_run:
            lines.append(f"{printable(each.arm.name)}: {counted(each.score.not_run, 'example')} not reached")
    dropped = {each.pair.name: each.dropped for each in found.compared if each.dropped}
    if dropped:
        named = ", ".join(f"{printable(name)} {count}" for name, count in dropped.items())
        lines.append(f"examples that are not compared, because one arm lacks them: {named}")
    return lines


# ---- JSON -----------------------------------------------------------------------------------------


def arms_json(found: ArmsEvaluation) -> dict[str, JsonValue]:
    """Return the object that `eval --json` prints with an adapter: goals to six digits, money in nano-dollars."""
    job = found.job
    return {
        "format_version": 1,
        "split": job.split,
        "goal": job.plan.goal.name,
        "model": job.models[0].model,
        "examples": len(job.examples),
        "groups": len({example.group for example in job.examples}),
        "samples": job.plan.optimize.samples,
        "adapters": [
            {
                "name": adapter.name,
                "model": adapter.model.model,
                "folder": None if adapter.folder is None else str(adapter.folder),
                "digest": adapter.digest,
                "training_hours": None if adapter.training is None else adapter.training.hours,
                "training_dollars": None if adapter.training is None else adapter.training.dollars,
                "trained_on": None
                if adapter.training is None
                else list[JsonValue](adapter.training.trained_on(job.examples)),
            }
            for adapter in job.adapters
        ],
        "arms": [_arm(each) for each in found.scored],
        "pairs": [_pair(each, found) for each in found.compared],
        "answer": list[JsonValue](answers(found)),
        "judges": list[JsonValue](job.judged),
        "look": found.look or None,
        **ending_json(found),
        "notes": list[JsonValue](job.notes),
    }


def _arm(each: ArmScores) -> JsonValue:
    arm, score = each.arm, each.score
    tally = score.tally.as_json()
    return {
        "arm": arm.name,
        "skill": arm.skill.name,
        "digest": None if arm.skill.skill is None else arm.skill.digest,
        "adapter": None if arm.adapter is None else arm.adapter.name,
        "model": arm.model.model,
        "mean": rounded(score.goal.mean),
        "n": score.goal.n,
        "interval": interval(score.interval),
        "unmeasured": dict(score.unmeasured),
        "not_run": score.not_run,
        "metrics": {name: {"mean": rounded(other.mean), "n": other.n} for name, other in score.metrics.items()},
        "calls": tally["calls"],
        "tokens_sent": tally["prompt"],
        "tokens_received": tally["completion"],
        "cost_nano": tally["cost_nano"],
        "per_rollout": costs_json(score.costs),
    }


def _pair(each: PairResult, found: ArmsEvaluation) -> JsonValue:
    verdict, claims = each.member.verdict, found.job.split == "test"
    value: dict[str, JsonValue] = {
        "arm": each.pair.arm.name,
        "reference": each.pair.reference.name,
        "gain": rounded(verdict.gain),
        "interval": interval(verdict.interval),
        "level": rounded(1 - verdict.alpha),
        "p": rounded(verdict.p),
        "p_holm": rounded(each.member.adjusted),
        "n": verdict.n,
        "dropped": each.dropped,
        **duel_json(each.duel),
        "groups": verdict.groups,
        "smallest_detectable": None if verdict.detectable is None else round(verdict.detectable, 6),
        "verdict": word_of(each) if claims else None,
        "reason": verdict.reason,
    }
    if each.pair.is_question and word_of(each) in ("better", "not shown") and claims:
        skill, lora = (
            next(score for score in found.scored if score.arm is arm) for arm in (each.pair.reference, each.pair.arm)
        )
        paid = break_even(skill, lora, lora.arm.adapter.training if lora.arm.adapter is not None else None)
        value["break_even"] = (
            None
            if paid is None
            else {
                "tokens_saved_per_call": rounded(Fraction(paid.tokens)),
                "rollouts": paid.calls,
                "by": paid.unit,
            }
        )
    return value

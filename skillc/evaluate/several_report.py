"""Several evaluations as tables on a terminal and as JSON."""

from __future__ import annotations

from pydantic import JsonValue
from rich.console import Group, RenderableType
from rich.text import Text

from skillc.diagnostics.render import printable
from skillc.document.skill_md import to_skill_md
from skillc.evaluate.as_json import eval_json
from skillc.evaluate.job import EvalJob
from skillc.evaluate.report import evaluation_parts, look_lines, preview_lines
from skillc.evaluate.reporting import bound_line, ending_json, ending_lines
from skillc.evaluate.several import EvalRun, Evaluations
from skillc.evaluate.transfer_report import transfer_json, transfer_parts
from skillc.pipeline.report import judge_lines
from skillc.text import counted


def run_preview_lines(run: EvalRun) -> list[str]:
    """Return the lines to print before anything is sent: the bound of all evaluations, and the new looks."""
    if len(run.jobs) == 1:
        return preview_lines(run.jobs[0])
    first = run.jobs[0]
    examples = sum(len(job.examples) for job in run.jobs)
    parts = [
        f"{counted(examples, 'example')} in {counted(len(run.jobs), 'evaluation')}",
        counted(first.arm_count, "arm"),
        counted(len(first.models), "model"),
    ]
    written = ", and one skill to write" if first.one_shot else ""
    return [bound_line(parts, run, written), *(line for job in run.jobs for line in look_lines(job))]


def run_json(found: Evaluations) -> dict[str, JsonValue]:
    """Return the object that `eval --json` prints: of one evaluation, or of all with the transfer of the gain."""
    transfers: list[JsonValue] = [transfer_json(each) for each in found.transfers]
    written: JsonValue = None
    if found.one_shot is not None:
        skill = found.one_shot.skill
        written = {"text": None if skill is None else to_skill_md(skill), "problem": found.one_shot.problem}
    more: dict[str, JsonValue] = {"transfer": transfers, "one_shot": written}
    if len(found.job.jobs) == 1 and found.each:
        return {**eval_json(found.each[0]), **more, **ending_json(found)}
    shared = ("at_most", "spent", "served", "stopped", "lost", "notes")
    every = [{name: value for name, value in eval_json(each).items() if name not in shared} for each in found.each]
    return {
        "format_version": 1,
        "evaluations": list[JsonValue](every),
        "failed": [
            {"where": job.where or None, "split": job.split, "message": problem.message}
            for job, problem in found.failed
        ],
        "not_reached": [{"where": job.where or None, "split": job.split} for job in found.left],
        **more,
        **ending_json(found),
        "notes": list[JsonValue](found.job.notes),
    }


def run_table(found: Evaluations) -> RenderableType:
    """Return the report for a terminal of 80 columns."""
    lines = []
    if found.one_shot is not None and found.one_shot.problem is not None:
        lines.append(f"there is no one-shot skill: {found.one_shot.problem}")
    lines += [f"{_name(job)}: not measured, because of an error" for job, _ in found.failed]
    lines += [f"{_name(job)}: not reached" for job in found.left]
    facts = ending_lines(found, judge_lines(found.job.plan, found.spent))
    tables = [part for each in found.each for part in evaluation_parts(each)]
    tables += transfer_parts(found.transfers)
    if lines:
        tables += [Text(), *map(Text, lines)]
    if len(found.job.jobs) > 1 or found.transfers or lines:
        tables.append(Text())
    return Group(*tables, Text("\n".join(facts)))


def _name(job: EvalJob) -> str:
    return f"{printable(job.where)}, {job.split}" if job.where else job.split

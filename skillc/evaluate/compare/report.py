"""A comparison of two skills on a terminal and as JSON."""

from __future__ import annotations

from pydantic import JsonValue
from rich.console import Group, RenderableType
from rich.text import Text

from skillc.evaluate.as_json import eval_json
from skillc.evaluate.compare.job import CompareJob
from skillc.evaluate.report import evaluation_parts, look_lines, preview_lines
from skillc.evaluate.reporting import ending_lines
from skillc.evaluate.run import Evaluation
from skillc.pipeline.report import judge_lines
from skillc.text import counted


def compare_preview_lines(job: CompareJob) -> list[str]:
    """Return the lines to print before anything is sent: the bound, or that nothing is sent, and the looks."""
    if not job.stored:
        return preview_lines(job)
    return [f"{_measured(job)}: no model is called", *look_lines(job)]


def compare_json(job: CompareJob, found: Evaluation) -> dict[str, JsonValue]:
    """Return the object that `compare --json` prints: that of `eval`, with the two skills."""
    sides: list[JsonValue] = [
        {
            "skill": side.name,
            "file": str(side.file),
            "program": None if side.program is None else str(side.program),
            "run": None if side.lock is None else side.lock.run,
        }
        for side in job.sides
    ]
    return {**eval_json(found), "compared": sides, "stored": job.stored}


def compare_table(job: CompareJob, found: Evaluation) -> RenderableType:
    """Return the report for a terminal of 80 columns."""
    lines = []
    if job.split != "test":
        lines.append(
            f"no verdict on {job.split}: skills were trained or selected on it; `--split test` has held-out examples"
        )
    if job.stored:
        lines.append(f"{_measured(job)}; these outcomes are compared")
    facts = ending_lines(found, judge_lines(job.plan, found.spent)) if not job.stored else []
    return Group(*evaluation_parts(found), *map(Text, lines), Text("\n".join(facts)) if facts else "")


def _measured(job: CompareJob) -> str:
    return f"both skills were measured on these {counted(len(job.examples), 'example')} by their compiles"

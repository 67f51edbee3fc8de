"""The rollouts of a run as the workspace of Agent Skills' evaluation guide: grading, timing and a benchmark."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from pathlib import Path, PurePosixPath
from statistics import fmean, stdev

from pydantic import JsonValue

from skillc.dataclass import dataclass
from skillc.errors import SkillcError
from skillc.export.assertions import Assertions, Grade
from skillc.export.evals import Eval
from skillc.json_values import JsonObject, as_text
from skillc.optimize.rollouts import Outcome, failure_kind
from skillc.redaction import Redactor
from skillc.review.confidence import SPLIT_WORDS, confidence_lines
from skillc.review.run_view import RunView
from skillc.review.stored import NO_SKILL
from skillc.text import counted
from skillc.trajectories.trajectory import FileChange, Observation

WITH, WITHOUT, OLD = "with_skill", "without_skill", "old_skill"
_FIGURES = ("pass_rate", "time_seconds", "tokens")


@dataclass(frozen=True, slots=True)
class Run:
    """One measured rollout of an eval.

    Attributes:
        number: from 1, for each sample.
    """

    of: Eval
    configuration: str
    number: int
    outcome: Outcome
    grades: tuple[Grade, ...]

    @property
    def passed(self) -> int:
        """The number of assertions that it passes."""
        return sum(grade.passed for grade in self.grades)

    @property
    def pass_rate(self) -> float:
        """Their share."""
        return self.passed / len(self.grades)

    def figure(self, name: str) -> float:
        """Return a figure of `run_summary`."""
        trajectory = self.outcome.trajectory
        return {"pass_rate": self.pass_rate, "time_seconds": trajectory.seconds, "tokens": trajectory.tokens}[name]


@dataclass(frozen=True, slots=True)
class Benchmark:
    """The measured rollouts of some evals under up to three skills.

    Attributes:
        unmeasured: rollouts that failed, by configuration and kind of failure.
    """

    view: RunView
    runs: tuple[Run, ...]
    unmeasured: Mapping[tuple[str, str], int] = field(default_factory=dict)

    @property
    def configurations(self) -> tuple[str, ...]:
        """Those with a measured rollout: the compiled skill, no skill, the initial skill."""
        have = {run.configuration for run in self.runs}
        return tuple(name for name in (WITH, WITHOUT, OLD) if name in have)


def benchmark_of(view: RunView, evals: Iterable[Eval]) -> Benchmark:
    """Return the recorded rollouts of evals: with the compiled skill, without one, and with the initial one.

    A rollout that failed for another reason than the skill is in no figure.
    """
    assertions, runs, lost = Assertions(view.plan), list[Run](), dict[tuple[str, str], int]()
    skills = {WITH: view.best, WITHOUT: NO_SKILL, **({OLD: view.initial} if view.initial != view.best else {})}
    for each in evals:
        example = view.examples[each.example].example
        for configuration, skill in skills.items():
            for sample in range(view.plan.optimize.samples):
                outcome = view.outcome(skill, example.id, sample)
                grades = assertions.grades(example, outcome) if outcome is not None else ()
                if outcome is not None and grades:
                    runs.append(Run(each, configuration, sample + 1, outcome, grades))
                elif outcome is not None and grades is None:
                    key = configuration, failure_kind(outcome) or "judge"
                    lost[key] = lost.get(key, 0) + 1
    return Benchmark(view, tuple(runs), lost)


def grading_json(run: Run) -> JsonObject:
    """Return `grading.json`: `assertion_results` as in the guide, and the same as `expectations` for skill-creator."""
    results: list[JsonValue] = [
        {"text": each.text, "passed": each.passed, "evidence": each.evidence} for each in run.grades
    ]
    total = len(run.grades)
    return {
        "assertion_results": results,
        "expectations": results,
        "summary": {
            "passed": run.passed,
            "failed": total - run.passed,
            "total": total,
            "pass_rate": round(run.pass_rate, 4),
        },
        "execution_metrics": {
            "total_tool_calls": len(run.outcome.trajectory.calls()),
            "errors_encountered": _errors(run),
            "output_chars": sum(len(text) for _, text in _outputs(run)),
        },
        "timing": {"total_duration_seconds": run.outcome.trajectory.seconds},
    }


def benchmark_json(found: Benchmark, evals: Sequence[Eval], *, timestamp: str) -> JsonObject:
    """Return `benchmark.json`: `run_summary` as in the guide, with the runs that skill-creator's viewer reads."""
    view = found.view
    graded = dict.fromkeys(run.of.number for run in found.runs)
    summary: dict[str, JsonValue] = {
        name: _summary([run for run in found.runs if run.configuration == name]) for name in found.configurations
    }
    others = [name for name in (WITHOUT, OLD) if name in found.configurations]
    if WITH in found.configurations and others:
        means = {name: _means(found.runs, name) for name in (WITH, others[0])}
        summary["delta"] = {key: round(means[WITH][key] - means[others[0]][key], 4) for key in _FIGURES}
    return {
        "metadata": {
            "skill_name": view.name,
            "executor_model": view.plan.models["target"].model,
            "timestamp": timestamp,
            "evals_run": list(graded),
            "runs_per_configuration": view.plan.optimize.samples,
            "run": view.run,
            "skillc_skill": view.best,
        },
        "runs": [_run_json(run) for run in found.runs],
        "run_summary": summary,
        "notes": list(_notes(found, evals)),
    }


def write_benchmark(
    workspace: Path, found: Benchmark, evals: Sequence[Eval], hide: Redactor, *, timestamp: str | None = None
) -> Path:
    """Write a benchmark as the next `iteration-N` of a workspace, and return that folder.

    Raises:
        SkillcError: it cannot be written.
    """
    stamp = timestamp or time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    try:
        folder = _next(workspace)
        several = found.view.plan.optimize.samples > 1
        for run in found.runs:
            place = folder / run.of.name / run.configuration
            _write_run(place / f"run-{run.number}" if several else place, run, hide)
        for run in {run.of.number: run for run in found.runs}.values():
            _write(folder / run.of.name / "eval_metadata.json", _metadata(run), hide)
        _write(folder / "benchmark.json", benchmark_json(found, evals, timestamp=stamp), hide)
    except OSError as problem:
        raise SkillcError(f"`{workspace}` cannot be written: {problem.strerror or problem}") from problem
    return folder


def _metadata(run: Run) -> JsonObject:
    """Return `eval_metadata.json`, which skill-creator's viewer reads."""
    return {
        "eval_id": run.of.number,
        "eval_name": run.of.name,
        "prompt": run.of.value["prompt"],
        "assertions": [grade.text for grade in run.grades],
    }


def _next(workspace: Path) -> Path:
    """Make and return the next iteration's folder."""
    number = 1
    while (workspace / f"iteration-{number}").exists():
        number += 1
    folder = workspace / f"iteration-{number}"
    folder.mkdir(parents=True)
    return folder


def _write_run(place: Path, run: Run, hide: Redactor) -> None:
    trajectory = run.outcome.trajectory
    for name, text in _outputs(run):
        path = place / "outputs" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(hide(text), encoding="utf-8", newline="")
    timing = {
        "total_tokens": trajectory.tokens,
        "duration_ms": round(trajectory.seconds * 1000),
        "total_duration_seconds": trajectory.seconds,
    }
    _write(place / "timing.json", timing, hide)
    _write(place / "grading.json", grading_json(run), hide)


def _write(path: Path, value: Mapping[str, JsonValue], hide: Redactor) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    # The folder is new, and its `benchmark.json` is written last.
    text = json.dumps(hide.value(dict(value)), ensure_ascii=False, indent=2)
    path.write_text(text + "\n", encoding="utf-8", newline="")


def _outputs(run: Run) -> Iterator[tuple[str, str]]:
    """Yield name and text of what a rollout produced: a file for each output, and the files that it wrote."""
    trajectory, taken = run.outcome.trajectory, set[str]()
    for name, value in (trajectory.answer or {}).items():
        taken.add(f"{name}.txt")
        yield f"{name}.txt", as_text(value) if value is not None else ""
    for step in trajectory.steps:
        if isinstance(step, FileChange) and step.text is not None:
            parts = [_safe(part) for part in PurePosixPath(step.path).parts]
            name = str(PurePosixPath(*([part for part in parts if part not in ("", ".", "..", "_")] or ["file"])))
            if name not in taken:
                taken.add(name)
                yield name, step.text


def _safe(part: str) -> str:
    return "".join(c if c.isprintable() and c not in '\\/:*?"<>|' else "_" for c in part)[:120]


def _errors(run: Run) -> int:
    return sum(isinstance(step, Observation) and step.failed for step in run.outcome.trajectory.steps)


def _run_json(run: Run) -> dict[str, JsonValue]:
    trajectory = run.outcome.trajectory
    return {
        "eval_id": run.of.number,
        "eval_name": run.of.name,
        "configuration": run.configuration,
        "run_number": run.number,
        "result": {
            "pass_rate": round(run.pass_rate, 4),
            "passed": run.passed,
            "failed": len(run.grades) - run.passed,
            "total": len(run.grades),
            "time_seconds": trajectory.seconds,
            "tokens": trajectory.tokens,
            "tool_calls": len(trajectory.calls()),
            "errors": _errors(run),
        },
        "expectations": grading_json(run)["expectations"],
    }


def _summary(runs: Sequence[Run]) -> dict[str, JsonValue]:
    found: dict[str, JsonValue] = {}
    for name in _FIGURES:
        values = [run.figure(name) for run in runs]
        found[name] = {
            "mean": round(fmean(values), 4),
            "stddev": round(stdev(values), 4) if len(values) > 1 else 0.0,
            "min": min(values),
            "max": max(values),
        }
    return found


def _means(runs: Iterable[Run], configuration: str) -> dict[str, float]:
    own = [run for run in runs if run.configuration == configuration]
    return {name: fmean(run.figure(name) for run in own) for name in _FIGURES}


def _notes(found: Benchmark, evals: Sequence[Eval]) -> Iterator[str]:
    """Yield what the figures are of, and what speaks against them."""
    graded = {run.of.example for run in found.runs}
    for split, words in SPLIT_WORDS.items():
        number = sum(found.view.examples[name].split == split for name in graded)
        if number:
            yield f"{counted(number, 'eval')} of {words}"
    if len(graded) < len(evals):
        yield f"{counted(len(evals) - len(graded), 'eval')} without a measured rollout"
    for (configuration, kind), number in sorted(found.unmeasured.items()):
        yield f"{configuration}: {counted(number, 'rollout')} not measured ({kind}), in no figure"
    yield from confidence_lines(found.view.lock, found.view.plan.goal)

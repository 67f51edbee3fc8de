"""A run in MLflow, by its own client: parameters, metrics by step, and the files of the skill."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import JsonValue

from skillc.artifact_paths import ArtifactPaths
from skillc.artifacts.loading import paths_of_program
from skillc.dataclass import dataclass
from skillc.errors import SkillcError
from skillc.json_values import as_text, canonical, digest
from skillc.models.roles import declared_secrets
from skillc.plan.digest import plan_digest
from skillc.plan.lock import ArmLock
from skillc.redaction import Redactor
from skillc.review.curve import Estimate, curve_of
from skillc.review.report import html_report
from skillc.review.run_view import RunView, read_run
from skillc.review.summary import markdown_report
from skillc.text import cut

_EXTRA = 'pip install "skillc[mlflow]"'
RUN_TAG, CONTENT_TAG = "skillc.run", "skillc.content"
# Of a parameter, and of the description that MLflow shows beside a run.
_LONGEST, _LONGEST_NOTE = 500, 8_000
_NANO = 10**9


class Metric(NamedTuple):
    """A value at a step: the number of a decision, 0 before the first."""

    name: str
    value: float
    step: int


@dataclass(frozen=True, slots=True)
class Values:
    """What is logged of a run, beside its files."""

    params: Mapping[str, str]
    metrics: tuple[Metric, ...]
    tags: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Logged:
    """A run in MLflow.

    Attributes:
        known: whether it had been logged before, and was left as it is.
    """

    experiment: str
    run_id: str
    uri: str
    metrics: int
    files: int
    known: bool = False


# ---- values ---------------------------------------------------------------------------------------


def values_of(view: RunView, hide: Redactor) -> Values:
    """Return parameters, metrics and tags of a run."""
    plan = view.plan
    params: dict[str, str] = {
        "skill": view.name,
        "program": view.program.name,
        "goal": plan.goal.name,
        "rollout": plan.task.rollout.kind,
        "plan": plan_digest(plan)[:16],
        **{f"model.{role}": model.model for role, model in plan.models.items()},
        **_settings("optimize", plan.optimize),
        **_settings("budget", plan.budget),
    }
    if view.lock is not None:
        data = view.lock.data
        params |= {"data.digest": data.digest[:16]}
        params |= {f"data.{name}": str(getattr(data, name)) for name in ("train", "validation", "test")}
    tags = {RUN_TAG: view.run, "skillc.delivered": str(view.delivered).lower()}
    if view.lock is not None:
        tags |= {"skillc.verdict": view.lock.verdict, "skillc.stopped": view.lock.stopped}
    texts = {name: cut(hide(text), _LONGEST) for name, text in params.items() if text}
    return Values(texts, tuple(_metrics(view)), {name: hide(text) for name, text in tags.items()})


def _settings(block: str, settings: object) -> dict[str, str]:
    """Return the settings of a block that are not empty, by name."""
    values = json.loads(canonical(settings)).items()
    return {f"{block}.{name}": as_text(value) for name, value in values if value not in (None, [], {})}


def _metrics(view: RunView) -> Iterator[Metric]:
    for step, point in enumerate(curve_of(view).points):
        yield from _estimate("validation.incumbent", point.incumbent, step)
        decision = point.decision
        if decision is None:
            continue
        if decision.reached is not None and decision.reached.exact:
            yield Metric("validation.candidate", float(decision.reached.low), step)
        yield Metric("accepted", float(decision.accepted), step)
        yield Metric("candidate.tokens", float(decision.tokens), step)
        if decision.evaluated:
            yield Metric("candidate.gains", float(decision.gains), step)
            yield Metric("candidate.losses", float(decision.losses), step)
            yield Metric("candidate.evaluated", float(decision.evaluated), step)
    last = len(view.decisions)
    lock = view.lock
    if lock is not None:
        arms: list[tuple[str, ArmLock]] = [
            (f"{split}.{arm}", getattr(getattr(lock, split), arm))
            for split in ("validation", "test")
            for arm in ("none", "initial", "best")
        ]
        yield from (Metric(f"final.{name}", float(arm.mean), last) for name, arm in arms if arm.mean is not None)
        test = lock.test
        figures: dict[str, Fraction | None] = {"gain": test.gain, "p": test.p}
        figures["smallest_detectable"] = test.smallest_detectable
        if test.interval is not None:
            figures |= {"gain_low": test.interval[0], "gain_high": test.interval[1]}
        for name, value in figures.items():
            if value is not None:
                yield Metric(f"final.test.{name}", float(value), last)
        yield Metric("spent.calls", float(lock.charged.calls), last)
        yield Metric("spent.prompt_tokens", float(lock.charged.prompt_tokens), last)
        yield Metric("spent.reply_tokens", float(lock.charged.reply_tokens), last)
        yield Metric("spent.cost", float(lock.charged.cost), last)
    for each in view.spent or ():
        where = f"spent.{_plain(each.role)}.{_plain(each.stage)}"
        yield Metric(f"{where}.calls", float(each.calls), last)
        if each.cost is not None:
            yield Metric(f"{where}.cost", each.cost / _NANO, last)


def _estimate(name: str, found: Estimate | None, step: int) -> Iterator[Metric]:
    if found is not None:
        yield Metric(name, float(found.mean), step)
        if found.interval is not None:
            yield Metric(f"{name}_low", float(found.interval[0]), step)
            yield Metric(f"{name}_high", float(found.interval[1]), step)


def _plain(name: str) -> str:
    """Return a name with what MLflow allows in one."""
    return "".join(c if c.isascii() and (c.isalnum() or c in "_-") else "_" for c in name)


# ---- files ----------------------------------------------------------------------------------------


def write_files(view: RunView, folder: Path, hide: Redactor) -> list[Path]:
    """Write the files of a run into an empty folder: skill, lock, history, program and reports.

    Raises:
        OSError: a file cannot be read or written.
    """
    own = paths_of_program(view.program)
    paths = own if view.delivered else own.candidate
    texts = {f"{view.name}.report.html": html_report(view), "report.md": markdown_report(view)}
    texts[view.program.name] = view.program.read_text(encoding="utf-8-sig", errors="replace")
    if view.lock is not None:
        texts |= _skill_files(paths)
    for name, text in texts.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(hide(text), encoding="utf-8", newline="")
    return [folder / name for name in texts]


def _skill_files(paths: ArtifactPaths) -> dict[str, str]:
    """Return the texts of a compiled skill by their path: its folder, the lock, the history and the module."""
    found: dict[str, Path] = {}
    for path in sorted(paths.folder.rglob("*")):
        if path.is_file() and not path.is_symlink():
            found[f"skill/{path.relative_to(paths.folder).as_posix()}"] = path
    found |= {path.name: path for path in (paths.lock, paths.history, paths.module) if path.is_file()}
    texts = {}
    for name, path in found.items():
        try:
            texts[name] = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            # An image among the skill's own files.
            continue
    return texts


# ---- MLflow ---------------------------------------------------------------------------------------


def log_run(
    program: Path,
    *,
    run: str | None = None,
    experiment: str | None = None,
    tracking: str | None = None,
    environ: Mapping[str, str] | None = None,
) -> Logged:
    """Log the last compile of a program to MLflow; a run that is there already is left, one that changed is replaced.

    Args:
        program: the program, or the folder of its skill.
        run: the beginning of the id of another run than the last.
        experiment: its name; by default that of `MLFLOW_EXPERIMENT_NAME`, else the skill's.
        tracking: the address of the tracking server or store; by default MLflow's own.
        environ: has these variables, and the values of the secrets that are redacted.

    Raises:
        SkillcError: as `read_run`, MLflow is not installed, or its server refuses.
    """
    known = os.environ if environ is None else environ
    view = read_run(program, run)
    hide = Redactor(declared_secrets(view.plan, known))
    client, errors = _client(tracking)
    name = experiment or known.get("MLFLOW_EXPERIMENT_NAME") or view.name
    try:
        return _logged(client, view, values_of(view, hide), name, hide)
    except errors as problem:
        where = hide(str(tracking or known.get("MLFLOW_TRACKING_URI") or "its default store"))
        message = hide.message(cut(" ".join(str(problem).split()), 300))
        raise SkillcError(
            f"MLflow at `{where}` refuses: {message}", hint="`--tracking-uri` or MLFLOW_TRACKING_URI names another"
        ) from None


def _client(tracking: str | None) -> tuple[Any, tuple[type[Exception], ...]]:
    # A server that does not answer would be tried for minutes.
    os.environ.setdefault("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "2")
    os.environ.setdefault("MLFLOW_HTTP_REQUEST_TIMEOUT", "20")
    try:
        from mlflow.exceptions import MlflowException
        from mlflow.tracking import MlflowClient
    except ImportError:
        raise SkillcError("logging to MLflow needs its client", hint=_EXTRA) from None
    try:
        return MlflowClient(tracking_uri=tracking), (MlflowException, OSError)
    except MlflowException as problem:
        raise SkillcError(f"MLflow cannot be used: {cut(' '.join(str(problem).split()), 300)}") from None


def _logged(client: Any, view: RunView, values: Values, name: str, hide: Redactor) -> Logged:
    found = client.get_experiment_by_name(name)
    experiment = found.experiment_id if found is not None else client.create_experiment(name)
    content = _content(values)
    for earlier in client.search_runs([experiment], f"tags.`{RUN_TAG}` = '{view.run}'"):
        if earlier.data.tags.get(CONTENT_TAG) == content:
            return Logged(name, earlier.info.run_id, client.tracking_uri, len(values.metrics), 0, known=True)
        client.delete_run(earlier.info.run_id)
    note = cut(hide(markdown_report(view)), _LONGEST_NOTE)
    made = client.create_run(
        experiment, run_name=f"{view.name} {view.run[:8]}", tags={**values.tags, "mlflow.note.content": note}
    )
    run_id = made.info.run_id
    try:
        _send(client, run_id, values)
        with tempfile.TemporaryDirectory(prefix="skillc-mlflow-") as folder:
            files = write_files(view, Path(folder), hide)
            client.log_artifacts(run_id, folder)
        client.set_tag(run_id, CONTENT_TAG, content)
        client.set_terminated(run_id, "FINISHED" if view.lock is not None else "RUNNING")
    except BaseException:
        client.set_terminated(run_id, "FAILED")
        raise
    return Logged(name, run_id, client.tracking_uri, len(values.metrics), len(files))


def _send(client: Any, run_id: str, values: Values) -> None:
    from mlflow.entities import Metric as Entity
    from mlflow.entities import Param

    start = client.get_run(run_id).info.start_time
    client.log_batch(run_id, params=[Param(name, text) for name, text in values.params.items()])
    # The limit of one request.
    for part in _parts(values.metrics, 1_000):
        client.log_batch(run_id, metrics=[Entity(each.name, each.value, start + each.step, each.step) for each in part])


def _parts(metrics: Sequence[Metric], size: int) -> Iterator[Sequence[Metric]]:
    for begin in range(0, len(metrics), size):
        yield metrics[begin : begin + size]


def _content(values: Values) -> str:
    """Return a digest of what is logged."""
    logged: dict[str, JsonValue] = {
        "params": dict(values.params),
        "metrics": [list(each) for each in values.metrics],
        "tags": dict(values.tags),
    }
    return digest(logged)

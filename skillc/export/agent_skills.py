"""Write a program, and its last run if there is one, as the evaluation guide of Agent Skills lays them out."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

from skillc.artifacts.loading import program_and_skill
from skillc.data.dataset import load_data
from skillc.dataclass import dataclass
from skillc.errors import SkillcError
from skillc.export.benchmark import Benchmark, benchmark_of, write_benchmark
from skillc.export.evals import Eval, evals_of, write_evals
from skillc.frontend import plan_file
from skillc.items.record import SPLITS, SplitName
from skillc.models.roles import declared_secrets
from skillc.redaction import Redactor
from skillc.review.run_view import NeverCompiled, PlacedExample, RunView, placed_examples, read_run

Chosen = Literal["all", "train", "validation", "test"]


@dataclass(frozen=True, slots=True)
class WrittenEvals:
    """What was written.

    Attributes:
        evals: `evals/evals.json`.
        number: of evals in it.
        iteration: the folder with the benchmark; None without recorded rollouts.
        benchmark: None without recorded rollouts.
        missing: what is not there, a sentence each.
    """

    evals: Path
    number: int
    iteration: Path | None
    benchmark: Benchmark | None
    missing: tuple[str, ...]


def export_evals(
    program: Path,
    output: Path,
    *,
    split: Chosen | None = None,
    run: str | None = None,
    force: bool = False,
    environ: Mapping[str, str] | None = None,
) -> WrittenEvals:
    """Write `NAME/evals/evals.json`, and the last run as `NAME-workspace/iteration-N`, without a call of a model.

    Args:
        program: the program, or the folder of its skill.
        output: the folder of both.
        split: the examples. By default all are evals, and the benchmark has those of the final test, or of validation
            if there was none.
        run: the beginning of the id of another run than the last.
        force: replace an `evals.json` with other evals.
        environ: has the values of the secrets that are redacted.

    Raises:
        SkillcError: the program or its data has errors, there is no such run, or the files cannot be written.
    """
    path, _ = program_and_skill(program, "skillc export evals PROGRAM")
    view: RunView | None = None
    missing: list[str] = []
    try:
        view = read_run(program, run)
        missing += view.missing
    except NeverCompiled:
        if run is not None:
            raise
        missing.append(f"`{path}` was never compiled, so there is no benchmark")
    plan = view.plan if view is not None else plan_file(path, complete=False).plan
    dataset = view.dataset if view is not None and view.dataset is not None else load_data(plan, path.parent)
    hide = Redactor(declared_secrets(plan, os.environ if environ is None else environ))
    examples = [each for each in placed_examples(dataset).values() if split in (None, "all", each.split)]
    if not examples:
        raise SkillcError(f"the split `{split}` has no example")
    evals = evals_of(plan, path.parent, examples, dataset.places)
    written = write_evals(output / plan.skill.artifact, plan.skill.artifact, evals, hide, force=force)
    graded = _graded(view, evals, split) if view is not None and view.dataset is not None else ()
    found = benchmark_of(view, graded) if view is not None and graded else None
    if view is None or found is None or not found.runs:
        if view is not None:
            missing.append("no measured rollout of these evals is recorded, so there is no benchmark")
        return WrittenEvals(written, len(evals), None, None, tuple(missing))
    folder = write_benchmark(output / f"{plan.skill.artifact}-workspace", found, graded, hide)
    return WrittenEvals(written, len(evals), folder, found, tuple(missing))


def _graded(view: RunView, evals: Sequence[Eval], split: Chosen | None) -> tuple[Eval, ...]:
    """Return the evals of the benchmark: those of the chosen split, or held-out ones."""
    if split == "all":
        return tuple(evals)
    tested = (name for name in reversed(SPLITS) if any(_recorded(view, each) for each in _of(view, name)))
    chosen: SplitName = split if split is not None else next(tested, "validation")
    return tuple(each for each in evals if view.examples[each.example].split == chosen)


def _of(view: RunView, split: SplitName) -> list[PlacedExample]:
    return [each for each in view.examples.values() if each.split == split]


def _recorded(view: RunView, each: PlacedExample) -> bool:
    return view.outcome(view.best, each.example.id) is not None

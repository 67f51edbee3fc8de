"""Outcomes that the compiles of both skills have recorded on the examples of a comparison."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from skillc.data.dataset import Dataset, load_data
from skillc.document.skill import Document, digest
from skillc.evaluate.compare.sides import Side
from skillc.evaluate.job import compile_run
from skillc.frontend import plan_file
from skillc.metrics.meter import metric_sources
from skillc.optimize.host import Value
from skillc.outcomes import Example
from skillc.plan.company import company_of
from skillc.plan.digest import measuring_digest
from skillc.plan.lock import OptionsLock
from skillc.plan.models import with_used_models
from skillc.plan.schema import Plan
from skillc.review.stored import outcomes_of, read_store
from skillc.run.folder import HOME, RunFolder
from skillc.run.recalled import record_key
from skillc.tasks.kind import Skill


def measured_alike(plan: Plan, root: Path) -> list[object]:
    """Return what an outcome depends on beside skill and example: task, metrics, models, and the user's code."""
    return [measuring_digest(plan), metric_sources(plan, root), list(company_of(plan, root).digests)]


def stored_outcomes(
    side: Side, skill: Document, plan: Plan, root: Path, dataset: Dataset, examples: Sequence[Example]
) -> Mapping[bytes, Value] | None:
    """Return the outcomes of a skill on examples that its compile has recorded, by the keys of the record.

    None unless the compile measured as `plan` does, its program is unchanged, and no outcome is missing.

    Raises:
        SkillcError: the program has errors, or the record cannot be read.
    """
    if side.lock is None or side.program is None:
        return None
    options = side.lock.program.options or OptionsLock()
    planned = plan_file(
        side.program, models=options.models, settings=options.settings, offline=options.offline, complete=False
    )
    compiled = with_used_models(planned.plan)
    same = load_data(compiled, planned.root).digest == dataset.digest
    if not same or compile_run(compiled, planned.root, dataset) != side.lock.run:
        return None
    if compiled.optimize.samples != plan.optimize.samples:
        return None
    if measured_alike(compiled, planned.root) != measured_alike(plan, root):
        return None
    run = read_store(RunFolder(planned.root / HOME, side.lock.run).path)
    if run is None:
        return None
    name = digest(skill)
    outcomes = outcomes_of(run, compiled, {name: skill}, [each.id for each in examples])
    samples = range(plan.optimize.samples)
    text = Skill.of(skill).digest(plan.skill.load)
    found: dict[bytes, Value] = {}
    for example in examples:
        for sample in samples:
            outcome = outcomes.outcome(name, example.id, sample)
            if outcome is None or not outcome.measured:
                return None
            found[record_key(["rollout", text, example.id, sample])] = outcome.to_json()
    return found

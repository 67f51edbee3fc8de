"""A form of a skill against the plain form: same target, same examples, paired, and a test that it is not worse.

The plain form is the skill as the program gives it to its target: what the compile measured. The form is given as its
host would: in the context from the start, or behind a description that the target opens, with the text that the host
returns then. Where both are the same, nothing is measured.

Rollouts by the command line of an agent get the form's own SKILL.md in the place where they install skills.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal

from pydantic import JsonValue

from skillc.artifact_paths import SKILL_FILE
from skillc.data.dataset import load_data
from skillc.data.split import Side, split_digest
from skillc.document.folder import document_from, read_skill
from skillc.document.markdown import tidy
from skillc.document.skill import Document, Section, digest, for_target
from skillc.emit.forms import CompiledSkill, Form, Presentation
from skillc.errors import SkillcError
from skillc.evaluate.measuring import (
    Measured,
    MeasuringJob,
    as_target,
    bound_of,
    check_caps,
    check_places,
    chosen_models,
    ending,
    examples_of,
    failures_of,
    plan_with,
    until_stopped,
    with_retries,
)
from skillc.evaluate.reporting import bound_line, ending_json, ending_lines, gain_text, has_percent, mean_text
from skillc.evaluate.skills import SkillArm, SkillArms, check_test, count_looks, own_paths
from skillc.frontend import Planned
from skillc.json_values import rounded
from skillc.language.rollouts import is_agent
from skillc.metrics.meter import Meter
from skillc.models.client import Client
from skillc.optimize.final import ComparisonArm, measure_side_by_side, paired_scores, unmeasured_examples
from skillc.optimize.host import Observer
from skillc.outcomes import MICRO
from skillc.plan.lock import LookLock, add_look, read_lock
from skillc.plan.schema import ModelPlan, Plan
from skillc.run.session import Session
from skillc.run.stop import Stop
from skillc.stats.noninferiority import NonInferiority, examples_needed, non_inferiority
from skillc.stats.power import LEVEL
from skillc.text import counted

Result = Literal["identical", "kept", "refused", "unverified"]
_ASSUMED = 0.05
"""The share of examples on which equal forms differ, before any measurement."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FormJob(MeasuringJob):
    """A resolved test of one form, with nothing sent.

    Attributes:
        form: the form in question.
        model: the target.
        plain: the skill as the program gives it to its target.
        given: the skill as the host gives it to its model.
        given_plan: `plan` with the way in which the host loads a skill.
        margin: in goal points.
        same: whether the target would read the same with both.
        look: counts the test in the lock; None on another split than `test`.
    """

    form: Form
    model: ModelPlan
    plain: Document
    given: Document
    given_plan: Plan
    margin: Fraction
    same: bool
    look: LookLock | None = None

    @property
    def level(self) -> Fraction:
        """The level of the test: 0.05, divided by the square of the number of the look at the test split."""
        if self.look is None:
            return LEVEL
        _, number = add_look(read_lock(own_paths(self.planned).lock).looks, self.look)
        return LEVEL / number**2


@dataclass(frozen=True, slots=True, kw_only=True)
class FormTested(Measured):
    """The result of a test.

    Attributes:
        plain: mean goal with the plain form over the measured pairs; None without one.
        given: the same with the form.
        test: None if it was stopped before all examples were tried.
        needed: the examples with which equal forms pass in 8 of 10 tests, at the measured share of differing ones.
    """

    job: FormJob
    plain: Fraction | None = None
    given: Fraction | None = None
    test: NonInferiority | None = None
    needed: int | None = None

    @property
    def result(self) -> Result:
        """Whether the form is kept."""
        if self.test is None or self.test.word == "unverified":
            return "unverified"
        return "kept" if self.test.word == "not worse" else "refused"


def prepare_form_test(
    planned: Planned,
    file: Path,
    skill: CompiledSkill,
    form: Form,
    *,
    split: Side = "validation",
    margin: Fraction = Fraction(1, 20),
    samples: int | None = None,
    model: str | None = None,
    offline: bool = False,
) -> FormJob:
    """Resolve the target, both forms and the examples, and bound the cost: nothing, if both forms are the same.

    Args:
        planned: the program of the skill.
        file: the skill's SKILL.md.
        skill: the same, read.
        form: to test.
        split: the examples.
        margin: the loss that is accepted, as a share of the goal's width.
        samples: rollouts per example; None for the program's.
        model: `role`, `provider/name` or `role=provider/name`; None for the program's target.
        offline: the rulebook replaces every model.

    Raises:
        SkillcError: the margin, a file or the model cannot be used, or the caps cannot pay.
    """
    program, root = planned.plan, planned.root
    if not 0 < margin < 1:
        raise SkillcError("the margin is not between 0 and 100 points", hint="declare one: `--margin 5`")
    models = chosen_models(program, [model] if model else [], offline=offline)
    check_places(program, models, root)
    plan = plan_with(program, models[:1], samples=samples)
    plain = read_skill(file, skill.text, whole=not plan.task.rollout.one_turn)
    shown = form.present(skill)
    given = _document(plan, skill, form, shown)
    loaded = plan.skill.model_copy(update={"load": shown.load})
    given_plan = plan.model_copy(update={"skill": loaded})
    same = _reads(plan, plain) == _reads(given_plan, given) and not form.altered(skill)
    dataset = load_data(plan, root)
    examples = examples_of(dataset, split)
    if not examples:
        raise SkillcError(f"the split `{split}` has no examples", hint="name another with `--split`")
    plain_arm, given_arm = SkillArm("plain", plain, file), SkillArm(form.name, given, file)
    look = None
    if split == "test" and not same:
        from skillc.evaluate.job import compile_run

        check_test(SkillArms((plain_arm,), None, (), plain_arm), dataset, own_paths(planned))
        run = compile_run(as_target(program, models[0]), root, dataset)
        look = LookLock(run=run, initial=digest(plain), best=digest(given), test=split_digest(dataset.test))
    count = 0 if same else len(examples) * plan.optimize.samples
    bound = bound_of(plan, models[:1], [plain_arm], count, dataset, root)
    bound += bound_of(given_plan, models[:1], [given_arm], count, dataset, root)
    if not same:
        check_caps(plan, bound, what="this test", fewer="a smaller split")
    return FormJob(
        planned=planned,
        plan=plan,
        split=split,
        dataset=dataset,
        examples=examples,
        bound=bound,
        notes=dataset.warnings,
        form=form,
        model=models[0],
        plain=plain,
        given=given,
        given_plan=given_plan,
        margin=margin,
        same=same,
        look=look,
    )


def _document(plan: Plan, skill: CompiledSkill, form: Form, shown: Presentation) -> Document:
    """Return the skill as the host gives it to its model."""
    if is_agent(plan.task.rollout.kind) and shown.load == "on_demand":
        # The agent is the host: it reads the form's files itself.
        files = form.files(skill)
        main = next(path for path in files if path.rpartition("/")[2] == SKILL_FILE)
        folder = main.removesuffix(SKILL_FILE)
        below = {path.removeprefix(folder): content for path, content in files.items() if path.startswith(folder)}
        return document_from(below)
    about = shown.about or skill.about
    others = tuple((path, content) for path, content in skill.files.items() if path != SKILL_FILE)
    whole = () if plan.task.rollout.one_turn else others
    return Document(skill.name, about, (Section("text", "frozen", shown.text, title=""),), title="", files=whole)


def _reads(plan: Plan, skill: Document) -> tuple[str, ...]:
    """Return what the target reads of a skill: the text and, where it opens the skill, what it is offered by.

    An agent that is run finds all files of the folder.
    """
    own = (skill.frontmatter, *map(str, skill.files)) if is_agent(plan.task.rollout.kind) else ()
    offered = (skill.name, skill.about) if plan.skill.load == "on_demand" else ()
    return (plan.skill.load, tidy(for_target(skill, linked=not plan.task.rollout.one_turn)), *offered, *own)


def measure_form(job: FormJob, observer: Observer, client: Client, stop: Stop | None = None) -> FormTested:
    """Measure both forms under a client's budget until complete or stopped, and test the difference.

    Raises:
        SkillcError: the model, metrics or the lock cannot be used.
    """
    session = Session(job.plan, client, observer, stop)
    meter = Meter(job.plan, job.root, job.dataset.places)
    role, samples, goal = job.model.role, job.plan.optimize.samples, job.plan.goal
    arms = (
        ComparisonArm(session.rollouts(meter, role), job.plain, "plain"),
        ComparisonArm(session.rollouts(meter, role, job.given_plan), job.given, job.form.name),
    )
    stopped = asyncio.run(_measure(job, arms, session))
    not_tried = failures_of(arms, job.examples, range(samples))[1]
    if not_tried:
        return FormTested(job=job, **ending(client, stopped))
    level = job.level
    if job.look is not None:
        count_looks(own_paths(job.planned), [job.look])
    pairs = paired_scores(*arms, job.examples, goal.name, samples=samples)
    margin = job.margin * goal.widest
    found = non_inferiority(pairs, margin=margin, low=goal.low, high=goal.high, level=level)
    both = [(pair.initial, pair.best) for pair in pairs if pair.initial is not None and pair.best is not None]
    means = [Fraction(sum(column), len(both) * MICRO) for column in zip(*both, strict=True)] if both else [None, None]
    needed = examples_needed(float(job.margin), float(found.differing), level=float(level))
    return FormTested(job=job, plain=means[0], given=means[1], test=found, needed=needed, **ending(client, stopped))


async def _measure(job: FormJob, arms: tuple[ComparisonArm, ComparisonArm], session: Session) -> str | None:
    samples, goal = job.plan.optimize.samples, job.plan.goal.name
    work = with_retries(
        session,
        job.examples,
        lambda todo, _: measure_side_by_side(arms, todo, samples=samples),
        lambda example: bool(unmeasured_examples(arms, [example], goal, samples=samples)),
        names=(f"plain and {job.form.name}", "failed examples, again"),
        each=2 * samples,
    )
    async with session.connected():
        return await until_stopped(session, work)


# ---- reports --------------------------------------------------------------------------------------


def record_of(job: FormJob, found: FormTested | None) -> dict[str, Any]:
    """Return what the record of an emit has of the test; without a time, so that the same test gives the same bytes.

    `found` is None where both forms are the same.
    """
    if found is None:
        return {"result": "identical", "target": job.model.model}
    test = found.test
    return {
        "result": found.result,
        "target": job.model.model,
        "split": job.split,
        "margin": rounded(job.margin),
        "level": None if test is None else rounded(test.level),
        "pairs": 0 if test is None else test.n,
        "plain": None if found.plain is None else rounded(found.plain),
        "form": None if found.given is None else rounded(found.given),
        "difference": None if test is None or test.difference is None else rounded(test.difference),
        "e_value": None if test is None else rounded(test.e),
    }


def tested_json(found: FormTested) -> dict[str, JsonValue]:
    """Return the test for `emit --test --json`."""
    return {**record_of(found.job, found), "needed": found.needed, **ending_json(found)}


def preview_lines(job: FormJob) -> list[str]:
    """Return the lines to print before anything is sent: the bound, and the examples that the margin needs."""
    size = len(job.examples)
    parts = ["2 forms", counted(size, f"{job.split} example")]
    if job.plan.optimize.samples > 1:
        parts.append(counted(job.plan.optimize.samples, "sample"))
    needed = examples_needed(float(job.margin), _ASSUMED, level=float(job.level))
    enough = "" if needed is None or needed <= size else f", and there are {size:,}"
    if needed is not None:
        lines = [
            f"margin {_loss(job)}: equal forms that differ on {_ASSUMED * 100:g} % of the examples pass in 8 of 10 "
            f"tests with {needed:,} examples{enough}"
        ]
    else:
        lines = [f"margin {_loss(job)}: too small for any number of examples up to 20,000"]
    return [bound_line(parts, job), *lines]


def tested_lines(found: FormTested) -> list[str]:
    """Return the report for a terminal."""
    job, test = found.job, found.test
    lines = []
    if test is None:
        lines.append(f"tested    {job.form.name} was not measured completely, so it is not tested")
        return [*lines, *ending_lines(found)]
    goal = job.plan.goal
    moved = gain_text(test.difference, goal) + (" points" if has_percent(goal) else "")
    width = max(len("unverified"), len(job.form.name))
    lines += [
        f"{'plain':<{width}} {mean_text(found.plain, goal)} on {counted(test.n, 'pair')} of {job.split}",
        f"{job.form.name:<{width}} {mean_text(found.given, goal)}, {moved} against plain",
    ]
    evidence = f"e-value {_e_value(test.e)} of the {float(1 / test.level):,.0f} that it takes"
    if found.result == "kept":
        lines.append(f"kept      not worse by more than {_loss(job)}: {evidence}")
    elif found.result == "unverified":
        lines.append(f"unverified examples that were not measured decide whether it is kept: {evidence}")
    else:
        lines.append(f"refused   a loss of more than {_loss(job)} is not ruled out: {evidence}")
    lost = test.difference is not None and test.difference < -test.margin
    if found.result != "kept" and found.needed is not None and found.needed > test.n and not lost:
        share = f"{float(test.differing) * 100:.1f} %"
        lines.append(f"needed    {found.needed:,} examples, for equal forms that differ on {share} of them")
    if job.split == "validation":
        lines.append("note      the plain form was selected on validation; `--split test` has unseen examples")
    return [*lines, *ending_lines(found)]


def _loss(job: FormJob) -> str:
    """Render the margin: in points for a share, else as a part of the range of the goal."""
    number = f"{float(job.margin * 100):g}"
    return f"{number} points" if has_percent(job.plan.goal) else f"{number} % of the range of `{job.plan.goal.name}`"


def _e_value(e: Fraction) -> str:
    return f"{float(e):,.2f}" if e < 10_000 else f"{float(e):.0e}" if e < 10**12 else "over 10^12"


def identical_line(job: FormJob) -> str:
    """Return the line of a form that needs no test."""
    return f"tested    {job.form.name} puts the same bytes in front of the target as the plain form: no test is needed"

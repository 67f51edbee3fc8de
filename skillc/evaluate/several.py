"""Several evaluations under one budget: every split apart, other kinds of rollouts, related programs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from skillc.budget.spend import SpendBound
from skillc.data.split import SIDES, Side
from skillc.dataclass import dataclass
from skillc.errors import SkillcError
from skillc.evaluate.job import EvalJob, EvalOptions, own_endpoints, resolve_job
from skillc.evaluate.measuring import Measured, MeasuringJob, check_caps, ending
from skillc.evaluate.one_shot import Written, write_one_shot
from skillc.evaluate.places import Place, places_of
from skillc.evaluate.run import Evaluation, evaluate
from skillc.evaluate.transfer import Transfer, transfers_of
from skillc.frontend import Planned, check_folders
from skillc.models.client import Client
from skillc.optimize.host import Observer
from skillc.run.folder import make_home
from skillc.run.stop import Stop


@dataclass(frozen=True, slots=True, kw_only=True)
class EvalRun(MeasuringJob):
    """Resolved evaluations, with nothing sent: place by place and split by split, the program itself first."""

    jobs: tuple[EvalJob, ...]
    offline: bool = False

    @property
    def splits(self) -> str:
        """The split, or `all`."""
        return self.split if len({job.split for job in self.jobs}) == 1 else "all"


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluations(Measured):
    """The results of a run.

    Attributes:
        each: in the order of the jobs; those that failed, or that the end came before, are missing.
        failed: jobs after the first that could not be measured, with the error.
        one_shot: the skill that was written for the one-shot arm, or why there is none; None if none was asked for.
        transfers: of the compiled skill's gain, one for each split with two cells or more.
    """

    job: EvalRun
    each: tuple[Evaluation, ...]
    one_shot: Written | None
    transfers: tuple[Transfer, ...]
    failed: tuple[tuple[EvalJob, SkillcError], ...] = ()

    @property
    def left(self) -> tuple[EvalJob, ...]:
        """The jobs that were not begun."""
        return self.job.jobs[len(self.each) + len(self.failed) :]


def prepare_run(planned: Planned, options: EvalOptions) -> EvalRun:
    """Resolve every evaluation of a call, and bound the cost of all together.

    Raises:
        SkillcError: an option, file or model cannot be used, or the caps cannot pay for all of it.
    """
    for name, value in (("--judge-check", options.judge_check), ("--allow-trained", options.allow_trained)):
        if value:
            raise SkillcError(f"`{name}` is for an adapter, and none is named", hint="add `--adapter FOLDER`")
    places = places_of(planned, options.rollouts, options.programs, settings=options.settings, offline=options.offline)
    jobs: list[EvalJob] = []
    notes: list[str] = []
    for place in places:
        for split in _splits(place, options, notes):
            job = resolve_job(planned, options, place, split, first=not jobs)
            several = [*([place.label] if len(places) > 1 else []), *([split] if options.split == "all" else [])]
            jobs.append(replace(job, apart=f" ({', '.join(several)})" if several else ""))
    if not jobs:
        raise SkillcError("the program has no examples to evaluate", hint="name a split with `--split`")
    first = jobs[0]
    bound = sum((job.bound for job in jobs), SpendBound())
    check_caps(first.plan, bound, fewer="fewer models, skills, splits or places")
    return EvalRun(
        planned=planned,
        plan=first.plan,
        split=first.split,
        dataset=first.dataset,
        examples=first.examples,
        bound=bound,
        notes=tuple(dict.fromkeys([*(note for job in jobs for note in job.notes), *notes])),
        jobs=tuple(jobs),
        offline=options.offline,
    )


def _splits(place: Place, options: EvalOptions, notes: list[str]) -> Sequence[Side]:
    """Return the splits to score in a place; with `all` those that it has, and notes about the others."""
    if options.split != "all":
        return [options.split or "validation"]
    from skillc.data.dataset import load_data

    plan, where = place.planned.plan, f" of `{place.planned.path}`" if place.kind == "data" else ""
    data = load_data(plan, place.planned.root)
    sides = {"train": data.train, "validation": data.validation, "test": data.test}
    found: list[Side] = []
    for side in SIDES:
        if not sides[side]:
            notes.append(f"the split `{side}`{where} has no examples and is not scored")
        elif side == "test" and not place.paths.lock.exists():
            notes.append(f"the split `test`{where} is not scored: without a lock no look at it can be counted")
        else:
            found.append(side)
    return found


def evaluate_run(run: EvalRun, observer: Observer, client: Client, stop: Stop | None = None) -> Evaluations:
    """Measure every job in order, under one budget, until complete or stopped.

    An error after the first job leaves that job out: nothing of what the others measured is lost.

    Raises:
        SkillcError: models, metrics or a lock cannot be used in the first job.
    """
    written, found, failed = None, list[Evaluation](), list[tuple[EvalJob, SkillcError]]()
    stopped: str | None = None
    if run.jobs[0].one_shot:
        written = write_one_shot(run.jobs[0], observer, client, stop)
        stopped = written.stopped
        if written.problem is not None:
            observer.note(f"there is no one-shot skill: {written.problem}")
    skill = written.skill if written is not None else None
    for job in run.jobs if stopped is None else ():
        try:
            with _client_of(run, job, client) as own:
                found.append(evaluate(job.with_one_shot(skill), observer, own, stop))
        except SkillcError as problem:
            if not found:
                raise
            failed.append((job, problem))
            continue
        stopped = found[-1].stopped
        if stopped is not None:
            break
    end = ending(client, stopped)
    others = [each for each in found if each.job.place == "data"]
    end["served"] = (*end["served"], *(server for each in others for server in each.served))
    end["lost"] = end["lost"] or next((each.lost for each in others if each.lost is not None), None)
    return Evaluations(
        job=run, each=tuple(found), one_shot=written, transfers=transfers_of(found), failed=tuple(failed), **end
    )


@contextmanager
def _client_of(run: EvalRun, job: EvalJob, client: Client) -> Iterator[Client]:
    """Yield the client for a job: that of the run, or for a related program one with its judges and cached replies.

    It charges the same ledger, so that the caps of the run hold for all.
    """
    if job.place != "data":
        yield client
        return
    home = job.root / ".skillc"
    try:
        make_home(home)
    except OSError as problem:
        raise SkillcError(f"the folder `{home}` cannot be written: {problem.strerror}") from problem
    check_folders(job.planned.checked, job.plan, job.root)
    # A model that is a function of the user is beside the program of the run.
    chosen = run.plan.model_copy(update={"models": {model.role: model for model in job.models}})
    root = run.root if own_endpoints(chosen, run.root) else job.root
    with Client(
        job.plan, cache_folder=home / "cache", offline=run.offline, root=root, preflight=True, ledger=client.ledger
    ) as other:
        yield other

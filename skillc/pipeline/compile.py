"""`skillc compile`, whole: plan → data → loop → test → artifact, in the order of events."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path

from pydantic import JsonValue

from skillc.artifact_paths import ArtifactPaths
from skillc.artifacts.locking import check_starts, lock_of, program_lock
from skillc.artifacts.written import WrittenCopies
from skillc.data.split import split_digest
from skillc.document.skill import Document, digest
from skillc.errors import SkillcError
from skillc.frontend import Estimated, Planned
from skillc.metrics.meter import Meter, model_free_means
from skillc.models.client import Client
from skillc.models.failures import EndpointUnreachable
from skillc.models.ledger import ClosingReserve
from skillc.models.serving.records import ServerSummary
from skillc.optimize.engine import Engine
from skillc.optimize.final import Tested, final_test
from skillc.optimize.loop.train import Trained, train
from skillc.optimize.methods.run import train_by_method
from skillc.optimize.observer import Observer, cut_by
from skillc.plan.digest import run_id
from skillc.plan.initial import initial_document
from skillc.plan.lock import Lock, LookLock, add_look, merge_looks, write_lock
from skillc.program.artifact import artifact_texts, write_artifact, write_attributes
from skillc.run.folder import RunFolder, RunInfo, begin_run, changed_since_unfinished, finish_run
from skillc.run.history import head_of, history_text, read_history, union, write_history
from skillc.run.session import RunRecord, Session, open_record, parts_of_run
from skillc.run.stop import Stop
from skillc.versions.candidate import Withheld, find_candidate, looks_of, withhold
from skillc.versions.hand_edits import ArtifactSnapshot, changed_since, free_paths, protect


@dataclass(frozen=True, slots=True)
class Job:
    """What to compile and where to write.

    Attributes:
        output: the folder that gets the skill's folder and the files beside it.
        home: the `.skillc` folder.
        force: overwrite a skill that was edited by hand, that skillc did not write or that another program owns.
        fresh: ask the models anew, whatever this or another run was answered.
    """

    planned: Planned
    estimated: Estimated
    output: Path
    home: Path
    force: bool = False
    fresh: bool = False

    @property
    def paths(self) -> ArtifactPaths:
        """Where the skill is written."""
        return ArtifactPaths(self.output, self.planned.plan.skill.artifact)


@dataclass(frozen=True, slots=True)
class Compiled:
    """The result of a compile.

    Attributes:
        baselines: the goal's mean of simple classifiers on test, by name.
        artifact: SKILL.md as this compile wrote it, delivered or not.
        kept: files that were edited while the compile ran; the skill was written to another folder because of them.
        served: reports of the servers that skillc ran.
        interrupted: whether the user ended it, in the loop or in the final test.
        lost: the error of a model that stayed out of reach, in the loop or in the final test; None where none did.
        withheld: why the skill was not delivered; None if it was.
    """

    trained: Trained
    tested: Tested
    lock: Lock
    artifact: Path
    spent: dict[str, JsonValue]
    baselines: dict[str, Fraction]
    kept: tuple[Path, ...] = ()
    served: tuple[ServerSummary, ...] = ()
    interrupted: bool = False
    lost: EndpointUnreachable | None = None
    withheld: Withheld | None = None


class StoppedEarly(SkillcError):  # noqa: N818
    """The user or the clock ended the run before there was anything to write."""

    def __init__(self, reason: str) -> None:
        why = "interrupted" if reason == "interrupted" else "the budget's `time` was reached"
        super().__init__(
            f"{why} before the initial skill was measured, so there is nothing to write",
            hint="the same command goes on from here",
        )
        self.status = 130 if reason == "interrupted" else 3


_OTHER_FORMAT = (
    "an earlier version of skillc recorded this run in another format, so it begins anew; cached replies are used again"
)


@dataclass(frozen=True, slots=True)
class CompileRun:
    """A run in its folder, ready to search.

    Attributes:
        name: of the run.
        initial: the program's own skill.
        looks: at the test split, before this run's own.
        before: the compiled skill as the run finds it.
    """

    job: Job
    name: str
    session: Session
    record: RunRecord
    engine: Engine
    initial: Document
    meter: Meter
    looks: tuple[LookLock, ...]
    before: ArtifactSnapshot
    folder: RunFolder
    about: RunInfo

    def finish(self, trained: Trained, tested: Tested) -> Compiled:
        """Write the skill, and note that the run came to its end."""
        self.record.settle()
        compiled = _write(self, trained, tested)
        if self.session.client.lost is not None:
            return replace(compiled, lost=self.session.client.lost)
        if self.session.stop.reason == "interrupted":
            return replace(compiled, interrupted=True)
        finish_run(self.folder, self.about)
        return compiled


def compile_job(job: Job, observer: Observer, client: Client, stop: Stop | None = None) -> Compiled:
    """Compile a job under a client's budget until it is finished or `stop` is asked.

    Raises:
        SkillcError: models, data, metrics or files cannot be used.
        BudgetReached: the caps do not even admit the baseline.
        EndpointUnreachable: a model stayed out of reach before the initial skill was measured.
    """
    own = job.planned.plan.optimize.method == "skillc"

    async def search(engine: Engine, initial: Document) -> Trained:
        return await (train(engine, initial) if own else train_by_method(engine, initial, client))

    with open_run(job, observer, client, stop) as run:
        trained, tested = asyncio.run(search_and_test(run, search))
        assert tested is not None
        return run.finish(trained, tested)


@contextmanager
def open_run(
    job: Job, observer: Observer, client: Client, stop: Stop | None, start: Document | None = None
) -> Iterator[CompileRun]:
    """Open the run of a job in its folder; `start` is the skill that it begins with, by default the program's.

    Raises:
        SkillcError: data, metrics or files cannot be used.
    """
    plan, dataset = job.planned.plan, job.estimated.dataset
    before = protect(job.planned, job.paths, job.home, force=job.force)
    candidate = find_candidate(job.planned, job.paths, force=job.force)
    for note in before.notes:
        observer.note(note)
    check_starts(job.planned, dataset)
    endpoints = {name: role.endpoint for name, role in client.roles.items()}
    parts = parts_of_run(plan, job.planned.root, dataset, endpoints, start)
    name = run_id(parts)
    meter = Meter(plan, job.planned.root, dataset.places)
    folder = RunFolder(job.home, name)
    with folder.open_store() as store:
        if folder.remove_earlier_format(store):
            observer.note(_OTHER_FORMAT)
        changed = changed_since_unfinished(folder, job.planned.path.name, parts)
        if changed:
            observer.note(_left_unfinished(changed))
        about = begin_run(folder, store, job.planned.path.name, parts, fresh=job.fresh)
        with open_record(store, client, about.salt) as record:
            session = Session(plan, client, observer, stop, record)
            reserve = ClosingReserve(client.ledger, job.estimated.bounds)
            engine = session.engine(dataset, session.rollouts(meter), reserve, estimated=job.estimated)
            looks = looks_of(before.lock, candidate.lock)
            yield CompileRun(
                job, name, session, record, engine, initial_document(plan), meter, looks, before, folder, about
            )


def _left_unfinished(changed: Sequence[str]) -> str:
    what = ", ".join(f"the {part}" if part != "skillc" else "skillc itself" for part in changed)
    return f"an earlier run of this program was not finished; since then these changed: {what}. a new run begins"


async def search_and_test(
    run: CompileRun, search: Callable[[Engine, Document], Awaitable[Trained]], *, unless: Document | None = None
) -> tuple[Trained, Tested | None]:
    """Search and run the final test; no test where the search found no other skill than `unless`.

    Raises:
        StoppedEarly: the user or the clock ended the run before the initial skill was measured.
    """
    async with run.session.client.connected():
        try:
            with run.session.stop.cuts(clock=True):
                trained = await search(run.engine, run.initial)
        except asyncio.CancelledError:
            raise StoppedEarly(cut_by(run.engine.observer)) from None
        if unless is not None and digest(trained.state.best) == digest(unless):
            return trained, None
        _, number = add_look(run.looks, _look(trained, run.name))
        with run.session.stop.cuts(clock=False):
            return trained, await final_test(trained, look=number)


def _look(trained: Trained, name: str) -> LookLock:
    initial, best = digest(trained.state.initial), digest(trained.state.best)
    return LookLock(run=name, initial=initial, best=best, test=split_digest(trained.engine.dataset.test))


def _write(run: CompileRun, trained: Trained, tested: Tested) -> Compiled:
    """Write the skill, its lock last.

    A skill without the required verdict goes to the candidate folder. Where somebody edited files while the compile
    ran, the skill goes to another folder beside them. In both cases the files in place stay as they are, except that
    their lock counts this look at the test split.
    """
    job, name, before, watch = run.job, run.name, run.before, run.session.watch
    plan, dataset, decisions = job.planned.plan, job.estimated.dataset, watch.decisions
    now, kept = changed_since(before, job.planned.path, job.paths)
    candidate, written = find_candidate(job.planned, job.paths, force=job.force), WrittenCopies(job.home)
    withheld = withhold(plan, tested.verdict.verdict, job.paths)
    known = merge_looks(looks_of(before.lock, now), looks_of(candidate.lock))
    looks = add_look(known, _look(trained, name))[0] if tested.verdict.n else known
    if withheld is not None:
        paths, kept = candidate.paths, ()
        for note in candidate.save_edits(written):
            watch.note(note)
    else:
        paths = free_paths(job.paths) if kept else job.paths
    if paths != job.paths and now is not None and now.looks != looks:
        write_lock(job.paths.lock, now.model_copy(update={"looks": looks}))
    texts = artifact_texts(paths, plan, trained.state.best)
    digests = written.begin(paths, texts)
    write_artifact(paths, texts)
    earlier = read_history(paths.history)
    if withheld is None:
        earlier = union([*earlier, *candidate.history()])
    write_history(paths.history, history_text(earlier, name, decisions))
    write_attributes(paths)
    spent = run.session.client.ledger.snapshot()
    lock = lock_of(
        program_lock(job.planned, paths.base),
        plan,
        dataset,
        trained,
        tested,
        spent,
        name,
        looks,
        digests,
        history=head_of(name, decisions),
    )
    write_lock(paths.lock, lock)
    written.end(paths)
    if paths == job.paths:
        for note in candidate.remove(written):
            watch.note(note)
    baselines = model_free_means(plan, dataset, dataset.test, run.meter)
    served = run.session.client.servers.summaries()
    return Compiled(trained, tested, lock, paths.skill, spent, baselines, kept, served, withheld=withheld)

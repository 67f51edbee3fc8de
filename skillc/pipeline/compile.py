"""`skillc compile`: plan → data → loop → test → artifact, in the order of events."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import TypedDict

from pydantic import JsonValue

from skillc.artifact_paths import ArtifactPaths
from skillc.artifacts.owner import own_code_digest, path_to
from skillc.data.dataset import Dataset
from skillc.data.split import check_unused, marks, split_digest
from skillc.data.withdrawn import narrowed_near, withdrawn_near
from skillc.dataclass import dataclass
from skillc.document.skill import Document, digest
from skillc.document.tool_lines import knowing_tools
from skillc.errors import SkillcError
from skillc.frontend import Estimated, Planned
from skillc.items.record import RunItems, collect_items, write_items
from skillc.metrics.baselines import baseline_means
from skillc.metrics.meter import Meter
from skillc.metrics.triggers import check_decided
from skillc.models.client import Client
from skillc.models.failures import EndpointUnreachable
from skillc.models.ledger import ClosingReserve
from skillc.models.serving.records import ServerSummary
from skillc.optimize.engine import Engine
from skillc.optimize.final import FinalResult, final_test
from skillc.optimize.from_sessions import has_sessions, sessions_of
from skillc.optimize.host import Observer, stop_reason
from skillc.optimize.loop.train import TrainResult
from skillc.optimize.methods.run import train_by_method
from skillc.optimize.null_arm import NullArm
from skillc.outcomes import ArmScore
from skillc.plan.digest import DECISION_VERSION, plan_digest, run_id
from skillc.plan.initial import initial_skill
from skillc.plan.lock import (
    ArmLock,
    ChargedLock,
    DataLock,
    Lock,
    LookLock,
    ModelLock,
    NullArmLock,
    OpenedLock,
    ProgramLock,
    SignalLock,
    SkillLock,
    TestLock,
    ValidationLock,
    add_look,
    merge_looks,
    read_lock,
    write_lock,
)
from skillc.program.artifact import artifact_files, write_artifact, write_attributes
from skillc.provenance.quarantine import check_adoptable, mark_quarantined, register
from skillc.provenance.rules import lock_values, rules_in, sessions_of_rules
from skillc.run.folder import RunFolder, RunInfo, begin_run, changed_since_unfinished, finish_run
from skillc.run.history import head_of, history_text, read_history, union, write_history
from skillc.run.progress import RunFacts
from skillc.run.recording import recorded
from skillc.run.session import RunRecord, Session, open_record, parts_of_run
from skillc.run.stop import Stop
from skillc.run.time_left import book_total, expected_calls
from skillc.stats.error_rates import ErrorRates
from skillc.syntax.nodes import Use
from skillc.versions.candidate import Withheld, find_candidate, looks_of, withhold
from skillc.versions.hand_edits import ArtifactSnapshot, WrittenCopies, changed_since, free_paths, protect


@dataclass(frozen=True, slots=True)
class Job:
    """What to compile and where to write.

    Attributes:
        output: the folder of the skill's folder and the files beside it.
        home: the `.skillc` folder.
        force: overwrite a skill that was edited by hand, that another tool wrote or that another program owns.
        fresh: ignore recorded outcomes and cached replies.
    """

    planned: Planned
    estimated: Estimated
    output: Path
    home: Path
    force: bool = False
    fresh: bool = False

    @property
    def paths(self) -> ArtifactPaths:
        """The files that the compile writes."""
        return ArtifactPaths(self.output, self.planned.plan.skill.artifact)


@dataclass(frozen=True, slots=True)
class Compiled:
    """The result of a compile.

    Attributes:
        baselines: mean goal of simple classifiers on test, by name.
        artifact: SKILL.md as this compile wrote it, delivered or not.
        kept: files that were edited during the compile, so that the skill was written to another folder.
        served: reports of the servers that skillc ran.
        interrupted: whether the user stopped the loop or the final test.
        lost: the error of a model that became unreachable in the loop or the final test.
        items: what was measured on each item.
        withheld: why the skill was not delivered; None if it was.
    """

    trained: TrainResult
    tested: FinalResult
    lock: Lock
    artifact: Path
    spent: dict[str, JsonValue]
    baselines: dict[str, Fraction]
    items: RunItems
    kept: tuple[Path, ...] = ()
    served: tuple[ServerSummary, ...] = ()
    interrupted: bool = False
    lost: EndpointUnreachable | None = None
    withheld: Withheld | None = None


class StoppedEarly(SkillcError):  # noqa: N818
    """The user or the deadline ended the run before there was anything to write."""

    def __init__(self, reason: str) -> None:
        why = "interrupted" if reason == "interrupted" else "the budget's `time` was reached"
        super().__init__(
            f"{why} before the initial skill was measured, so there is nothing to write",
            hint="run the same command to resume",
        )
        self.status = 130 if reason == "interrupted" else 3


_OTHER_FORMAT = "an earlier version of skillc recorded this run in another format, so it starts anew"


@dataclass(frozen=True, slots=True)
class CompileRun:
    """An open run, ready to search.

    Attributes:
        name: id of the run.
        initial: the program's own skill.
        start: the skill that the search begins with.
        looks: earlier looks at the test split.
        before: the compiled skill at the start of the run.
    """

    job: Job
    name: str
    session: Session
    record: RunRecord
    engine: Engine
    initial: Document
    start: Document
    meter: Meter
    looks: tuple[LookLock, ...]
    before: ArtifactSnapshot
    folder: RunFolder
    info: RunInfo

    def finish(self, trained: TrainResult, tested: FinalResult) -> Compiled:
        """Write the skill, and mark the run as finished unless it was cut short."""
        self.record.settle()
        compiled = _write(self, trained, tested)
        if self.session.client.lost is not None:
            return replace(compiled, lost=self.session.client.lost)
        if self.session.stop.reason == "interrupted":
            return replace(compiled, interrupted=True)
        finish_run(self.folder, self.info)
        return compiled


def compile_job(job: Job, observer: Observer, client: Client, stop: Stop | None = None) -> Compiled:
    """Compile a job under a client's budget, until the loop ends or a stop is requested.

    Raises:
        SkillcError: models, data, metrics or files cannot be used.
        BudgetReached: the caps do not admit the baseline.
        EndpointUnreachable: a model was unreachable before the initial skill was measured.
    """
    plan = job.planned.plan
    if plan.optimize.method != "skillc" and any(section.tests is not None for section in plan.skill.sections):
        raise SkillcError(f"`method = {plan.optimize.method}` does not train scripts", hint="use the method `skillc`")

    async def search(engine: Engine, initial: Document) -> TrainResult:
        return await train_by_method(replace(engine, null_arm=job.estimated.bounds.null_arm), initial, client)

    with open_run(job, observer, client, stop) as run:
        trained, tested = asyncio.run(search_and_test(run, search))
        assert tested is not None
        return run.finish(trained, tested)


@contextmanager
def open_run(
    job: Job, observer: Observer, client: Client, stop: Stop | None, start: Document | None = None, task: str = ""
) -> Iterator[CompileRun]:
    """Open the run of a job; `start` is the skill that it begins with, by default the program's.

    `task` is as in `parts_of_run`.

    Raises:
        SkillcError: data, metrics or files cannot be used.
    """
    plan, dataset = job.planned.plan, job.estimated.dataset
    before = protect(job.planned, job.paths, job.home, force=job.force)
    candidate = find_candidate(job.planned, job.paths, force=job.force)
    for note in before.notes:
        observer.note(note)
    _check_start(job.planned, dataset)
    check_decided(plan, dataset)
    endpoints = {name: role.endpoint for name, role in client.roles.items()}
    parts = parts_of_run(plan, job.planned.root, dataset, endpoints, start, task)
    name = run_id(parts)
    meter = Meter(plan, job.planned.root, dataset.places)
    folder = RunFolder(job.home, name)
    with folder.open_store() as store:
        if folder.remove_earlier_format(store):
            observer.note(_OTHER_FORMAT)
        changed = changed_since_unfinished(folder, job.planned.path.name, parts)
        if changed:
            what = ", ".join(f"the {part}" if part != "skillc" else "skillc itself" for part in changed)
            observer.note(f"an earlier run of this program is unfinished; changed since: {what}. a new run starts")
        info = begin_run(folder, store, job.planned.path.name, parts, fresh=job.fresh)
        recording = recorded(
            folder.path,
            observer,
            RunFacts(plan.budget.epochs, plan.budget, expected_calls(job.estimated.bounds, plan)),
            spent=client.ledger.snapshot,
            in_flight=client.in_flight,
            fresh=job.fresh,
            verb="compile" if start is None else "tidy",
            skill=plan.skill.artifact,
            goal=plan.goal.name,
            run=name,
        )
        with open_record(store, client, info.salt) as record, recording as observer:
            client.servers.watch(observer)
            session = Session(plan, client, observer, stop, record)
            reserve = ClosingReserve(client.ledger, job.estimated.bounds)
            engine = session.engine(
                dataset,
                session.rollouts(meter),
                reserve,
                estimated=job.estimated,
                always_read=session.always_read(meter),
            )
            looks = looks_of(before.lock, candidate.lock)
            initial = knowing_tools(initial_skill(plan, job.planned.root), session.tool_names)
            yield CompileRun(
                job, name, session, record, engine, initial, start or initial, meter, looks, before, folder, info
            )


async def search_and_test(
    run: CompileRun,
    search: Callable[[Engine, Document], Awaitable[TrainResult]],
    *,
    unless: Document | None = None,
    other_arms: bool = True,
) -> tuple[TrainResult, FinalResult | None]:
    """Search, then run the final test unless the best skill is still `unless`; `other_arms` as in `final_test`.

    Raises:
        StoppedEarly: the user or the deadline ended the run before the initial skill was measured.
    """
    async with run.session.connected():
        try:
            with run.session.stop.cuts(clock=True):
                trained = await search(run.engine, run.initial)
        except asyncio.CancelledError:
            raise StoppedEarly(stop_reason(run.engine.observer)) from None
        if unless is not None and digest(trained.state.best) == digest(unless):
            return trained, None
        _, number = add_look(run.looks, _look(trained, run.name))
        with run.session.stop.cuts(clock=False):
            return trained, await final_test(trained, look=number, other_arms=other_arms)


def _look(trained: TrainResult, name: str) -> LookLock:
    initial, best = digest(trained.state.initial), digest(trained.state.best)
    return LookLock(run=name, initial=initial, best=best, test=split_digest(trained.engine.dataset.test))


def _write(run: CompileRun, trained: TrainResult, tested: FinalResult) -> Compiled:
    """Write the skill, its lock last.

    A skill without the required verdict goes to the candidate folder. If files were edited while the compile ran, the
    skill goes to another folder beside them. In both cases the present files stay, and their lock counts this look at
    the test split.
    """
    job, watch = run.job, run.session.watch
    plan, decisions = job.planned.plan, watch.decisions
    now, kept = changed_since(run.before, job.planned.path, job.paths)
    candidate, written = find_candidate(job.planned, job.paths, force=job.force), WrittenCopies(job.home)
    withheld = withhold(plan, tested.verdict.verdict, job.paths)
    looks = merge_looks(looks_of(run.before.lock, now), looks_of(candidate.lock))
    if tested.verdict.n:
        looks, _ = add_look(looks, _look(trained, run.name))
    if withheld is not None:
        paths, kept = candidate.paths, ()
        for note in candidate.save_edits(written):
            watch.note(note)
    else:
        paths = free_paths(job.paths) if kept else job.paths
    if paths != job.paths and now is not None and now.looks != looks:
        write_lock(job.paths.lock, now.model_copy(update={"looks": looks}))
    files = artifact_files(paths, plan, trained.state.best, job.planned.root, run.session.tools)
    digests = written.begin(paths, files)
    before = now if paths == job.paths else candidate.lock if withheld is not None else None
    write_artifact(paths, files, earlier=before.files if before is not None else None)
    earlier = read_history(paths.history)
    if withheld is None:
        earlier = union([*earlier, *candidate.history()])
    write_history(paths.history, history_text(earlier, run.name, decisions))
    write_attributes(paths, digests)
    spent = run.session.client.ledger.snapshot()
    lock = _lock(run, trained, tested, spent, paths, looks, digests)
    if has_sessions(trained.engine):
        lock = lock.model_copy(update=_provenance(run, trained, decisions, now))
    write_lock(paths.lock, lock)
    if lock.sessions:
        register(paths, job.home / "sessions.db")
        root = job.planned.root
        mark_quarantined([paths], withdrawn_near(root), narrowed=narrowed_near(root))
    written.end(paths)
    if paths == job.paths:
        for note in candidate.remove(written):
            watch.note(note)
    dataset = job.estimated.dataset
    baselines = baseline_means(plan, dataset, dataset.test, run.meter)
    served = run.session.client.servers.summaries()
    items = collect_items(
        run.name,
        plan,
        trained.engine.dataset,
        trained.engine.rollouts,
        decisions,
        initial=digest(trained.state.initial),
        best=digest(trained.state.best),
        tested=tested.verdict.n > 0,
    )
    write_items(run.folder.path, items)
    return Compiled(trained, tested, lock, paths.skill, spent, baselines, items, kept, served, withheld=withheld)


# ---- the lock -------------------------------------------------------------------------------------


def _lock(
    run: CompileRun,
    trained: TrainResult,
    tested: FinalResult,
    spent: dict[str, JsonValue],
    paths: ArtifactPaths,
    looks: tuple[LookLock, ...],
    digests: Mapping[str, str],
) -> Lock:
    """Return the lock of a finished compile; `looks` include its own."""
    plan, dataset, verdict = run.job.planned.plan, run.job.estimated.dataset, tested.verdict
    return Lock(
        decision_version=DECISION_VERSION,
        run=run.name,
        program=_program_lock(run.job.planned, paths.base),
        data=DataLock(
            digest=dataset.digest,
            train=len(dataset.train),
            validation=len(dataset.validation),
            test=len(dataset.test),
            used=marks((*dataset.train, *dataset.validation)),
        ),
        skill=SkillLock(initial=digest(trained.state.initial), best=digest(trained.state.best)),
        files=dict(digests),
        models={role: ModelLock(model=m.model, parameters=m.parameters) for role, m in plan.models.items()},
        verdict=verdict.verdict,
        reason=verdict.reason,
        test=TestLock(
            **_arms(tested.test),
            **_on_demand(tested, 1),
            gain=verdict.gain,
            interval=verdict.interval,
            p=verdict.p,
            n=verdict.n,
            groups=verdict.groups,
            look=verdict.look,
            alpha=verdict.alpha,
            smallest_detectable=None if verdict.detectable is None else Fraction(verdict.detectable),
        ),
        validation=ValidationLock(
            **_arms(tested.validation), **_on_demand(tested, 0), null_arm=_null_lock(tested.null_arm)
        ),
        charged=_charged(book_total(spent, "charged")),
        stopped=f"{trained.stopped} after decision {trained.state.decisions}",
        looks=looks,
        quarantined=trained.quarantined,
        history=head_of(run.name, run.session.watch.decisions),
        signal=_signal_lock(plan.goal.rates),
    )


def _signal_lock(rates: ErrorRates | None) -> SignalLock | None:
    if rates is None:
        return None
    return SignalLock(
        sensitivity=rates.sensitivity,
        specificity=rates.specificity,
        positives=rates.positives,
        negatives=rates.negatives,
    )


def _program_lock(planned: Planned, base: Path) -> ProgramLock:
    """Return the program, the options that changed its plan, and the digest of its Python code."""
    plan = planned.plan
    return ProgramLock(
        file=planned.path.name,
        path=path_to(planned.path, base),
        plan=plan_digest(plan),
        options=planned.options,
        code=own_code_digest(plan, planned.root),
    )


def _null_lock(found: NullArm | None) -> NullArmLock | None:
    if found is None:
        return None
    gates = found.gates
    return NullArmLock(
        n=found.examples,
        changed=found.changed,
        difference=found.difference,
        margin=found.margin,
        accepted=None if gates is None else gates.accepted,
        chance=None if gates is None else gates.chance,
    )


class _Arms(TypedDict):
    none: ArmLock
    initial: ArmLock
    best: ArmLock


def _arms(arms: Mapping[str, ArmScore]) -> _Arms:
    none, initial, best = (ArmLock(mean=arms[name].mean, n=arms[name].n) for name in ("none", "initial", "best"))
    return _Arms(none=none, initial=initial, best=best)


class _OnDemand(TypedDict, total=False):
    always_read: ArmLock
    opened: OpenedLock


def _on_demand(tested: FinalResult, split: int) -> _OnDemand:
    """Return the further arm of a skill that is opened on demand, and where it was opened."""
    found = _OnDemand()
    if tested.always_read is not None:
        arm = tested.always_read[split]
        found["always_read"] = ArmLock(mean=arm.mean, n=arm.n)
    score = tested.opened[split] if tested.opened is not None else None
    if score is not None:
        found["opened"] = OpenedLock(
            hits=score.hits,
            wanted=score.wanted,
            strays=score.strays,
            others=score.others,
            precision=score.precision,
            recall=score.recall,
        )
    return found


def _charged(total: Mapping[str, JsonValue]) -> ChargedLock:
    bounds = total["bounds"]
    assert isinstance(bounds, dict)
    return ChargedLock.model_validate(
        {
            "calls": total["calls"],
            "prompt_tokens": total["prompt"],
            "reply_tokens": total["completion"],
            "cost": Fraction(str(total["cost_nano"] or 0)) / 10**9,
            "bound_tokens": bounds["tokens"],
        }
    )


def _provenance(
    run: CompileRun, trained: TrainResult, decisions: Sequence[Mapping[str, JsonValue]], now: Lock | None
) -> dict[str, dict[str, tuple[str, ...]]]:
    """Return the values of the lock on the sessions of rules."""
    starts = [read_lock(paths.lock) for paths, _ in _starts(run.job.planned)]
    known = {key: each for lock in (*starts, now) if lock is not None for key, each in rules_in(lock).items()}
    every = sessions_of(trained.engine, None)
    return lock_values(sessions_of_rules(decisions, run.start, trained.state.best, every, known))


def _check_start(planned: Planned, dataset: Dataset) -> None:
    """Refuse to start from a compiled skill that is quarantined, or was trained on examples of the test split."""
    for paths, name in _starts(planned):
        check_unused(read_lock(paths.lock).data.used, dataset.test, skill=name)
        check_adoptable(paths)


def _starts(planned: Planned) -> Iterator[tuple[ArtifactPaths, str]]:
    """Yield the compiled skills that a program starts from, each with its name in the program."""
    for statement in planned.checked.program.statements:
        if isinstance(statement, Use) and statement.file is not None and statement.file.value.lower().endswith(".md"):
            paths = ArtifactPaths.of_skill_file(planned.root / statement.file.value)
            if paths is not None and paths.lock.exists():
                yield paths, statement.file.value

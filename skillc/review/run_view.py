"""One run, read for a view: lock, history, program, data, and what this machine recorded of it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Any

from skillc.artifact_paths import CANDIDATE_SUFFIX, ArtifactPaths
from skillc.artifacts.loading import paths_of_program, program_and_skill
from skillc.data.dataset import Dataset, load_data
from skillc.dataclass import dataclass
from skillc.document.folder import read_skill
from skillc.document.skill import Document, digest
from skillc.errors import SkillcError
from skillc.frontend import Planned, plan_file
from skillc.items.record import RunItems, SplitName, collect_items, read_items
from skillc.optimize.rollouts import Outcome
from skillc.outcomes import Example
from skillc.plan.digest import plan_digest
from skillc.plan.initial import initial_skill
from skillc.plan.lock import Lock, OptionsLock, read_lock
from skillc.plan.schema import Plan
from skillc.review.confidence import confidence_lines
from skillc.review.decisions import Decision, decisions_of
from skillc.review.skills import rebuilt_skills
from skillc.review.stored import Outcomes, Spent, StoredRun, outcomes_of, read_store
from skillc.run.folder import HOME, RunFolder
from skillc.run.history import decisions_until, read_history
from skillc.run.recording import read_events, stage_seconds

_SHORT = 8
# Digits of a run's id in the name of its folder.
_FOLDER = 16


@dataclass(frozen=True, slots=True)
class PlacedExample:
    """An example and its side."""

    split: SplitName
    example: Example


@dataclass(frozen=True, slots=True)
class RunView:
    """A run.

    Attributes:
        program: its path.
        plan: of the program, with the options of the compile.
        run: the id.
        lock: None for a run that has written none, or whose lock a later one has replaced.
        delivered: whether the skill is the one that agents load.
        decisions: in order.
        lines: the same as they are in the history.
        initial, best: digests of the first and of the best skill.
        skills: those whose texts are known, by digest.
        examples: by id; empty if the data is not that of the run.
        outcomes: None if the run was not recorded on this machine.
        spent: by role and stage; None without a record.
        seconds: wall time by stage; None if it was not recorded.
        items: cells by item and version; None without a record.
        missing: what a view lacks, a sentence each.
        earlier: decisions of the other runs in the history.
        paths: of the skill's files.
        steps: what was spent by decision, as `StoredRun.steps`; None without a record.
    """

    program: Path
    plan: Plan
    run: str
    lock: Lock | None
    delivered: bool
    decisions: tuple[Decision, ...]
    initial: str
    best: str
    skills: Mapping[str, Document] = field(repr=False)
    examples: Mapping[str, PlacedExample] = field(repr=False)
    dataset: Dataset | None = field(repr=False)
    outcomes: Outcomes | None = field(repr=False)
    spent: tuple[Spent, ...] | None
    items: RunItems | None = field(repr=False)
    missing: tuple[str, ...]
    earlier: tuple[Decision, ...] = field(default=(), repr=False)
    paths: ArtifactPaths | None = None
    steps: Mapping[int, tuple[Spent, ...]] | None = field(default=None, repr=False)
    lines: tuple[Mapping[str, Any], ...] = field(default=(), repr=False)
    seconds: Mapping[str, float] | None = None

    @property
    def name(self) -> str:
        """The name of the skill."""
        return self.plan.skill.artifact

    @property
    def versions(self) -> tuple[str, ...]:
        """Digests of the incumbents in order, each once, the initial skill first."""
        accepted = (each.candidate for each in self.decisions if each.accepted)
        return tuple(dict.fromkeys((self.initial, *accepted)))

    def place(self, skill: str) -> str:
        """Return where a skill was made: `start`, or the place of its first decision."""
        if skill == self.initial:
            return "start"
        return next((each.place for each in self.decisions if each.candidate == skill), "another run")

    def outcome(self, skill: str, example: str, sample: int = 0) -> Outcome | None:
        """Return a recorded rollout, None if there is none."""
        return None if self.outcomes is None else self.outcomes.outcome(skill, example, sample)


class NeverCompiled(SkillcError):  # noqa: N818 -- as the failures of models
    """A program has no run on this machine, and no history."""


def read_run(path: Path, run: str | None = None, *, rollouts: bool = True) -> RunView:
    """Read the last compile of a program or of a skill's folder, without a call of a model.

    A skill that was not delivered is newer than the delivered one, and is the one that is read.

    Args:
        path: the program, or the folder of its skill.
        run: the beginning of the id of another run; it has no lock, unless it is that of the delivered skill.
        rollouts: whether the view has outcomes; without them it takes little memory.

    Raises:
        NeverCompiled: there is no run at all.
        SkillcError: the program has errors, there was no such run, or its files are damaged.
    """
    program, folder = program_and_skill(path, "skillc report PROGRAM")
    own = ArtifactPaths.of_folder(folder) if folder is not None else paths_of_program(program)
    begun = unfinished_run(program, own) if run is not None else None
    locks = ((each, read_lock(each.lock)) for each in (own.candidate, own) if each.lock.is_file())
    # A finished run that began anew has the lock of its earlier session.
    ended = ((each, lock) for each, lock in locks if lock.run[:_FOLDER] != begun)
    found = next(((each, lock) for each, lock in ended if run is None or lock.run.startswith(run)), None)
    if found is None:
        return _without_lock(program, (own, own.candidate), run, rollouts=rollouts)
    paths, lock = found
    planned = _planned(program, lock.program.options)
    missing = list(_newer(program, own))
    stored = read_store(RunFolder(program.parent / HOME, lock.run).path, rollouts=rollouts)
    lines, known = _history((own, own.candidate), lock, stored, missing)
    same = plan_digest(planned.plan) == lock.program.plan
    if not same:
        missing.append("the program changed since this compile, so texts and items may be missing")
    return _view(
        planned=planned,
        lock=lock,
        run=lock.run,
        delivered=not paths.base.name.endswith(CANDIDATE_SUFFIX),
        lines=lines,
        known=decisions_of(known),
        skill=paths,
        stored=stored,
        missing=missing,
        paths=paths,
    )


def confidence_of_skill(path: Path) -> tuple[str, ...]:
    """Return how sure the last compile of a program or of a skill's folder is; nothing without a program or a lock."""
    try:
        program, folder = program_and_skill(path, "skillc history PROGRAM")
        own = ArtifactPaths.of_folder(folder) if folder is not None else paths_of_program(program)
        lock = next((read_lock(each.lock) for each in (own.candidate, own) if each.lock.is_file()), None)
        if lock is None:
            return ()
        return confidence_lines(lock, _planned(program, lock.program.options).plan.goal)
    except SkillcError:
        return ()


def _planned(program: Path, options: OptionsLock | None) -> Planned:
    options = options or OptionsLock()
    return plan_file(program, models=options.models, settings=options.settings, offline=options.offline, complete=False)


def _history(
    places: Sequence[ArtifactPaths], lock: Lock, stored: StoredRun | None, missing: list[str]
) -> tuple[Sequence[Mapping[str, Any]], Sequence[Mapping[str, Any]]]:
    """Return the lines of the run, and the lines of all runs."""
    every = _lines(places)
    lines = decisions_until(every, lock.run, lock.history) if lock.history is not None else None
    if lines is None:
        lines = [line for line in every if line.get("run") == lock.run]
        if lock.history is not None and lines:
            missing.append("the history is not the one that the lock names: lines are missing, or were changed")
    if not lines and stored is not None and stored.decisions:
        lines = list(stored.decisions)
    if not lines:
        missing.append("the history of this run is missing, so its steps are not shown")
    return lines, every


def _lines(places: Sequence[ArtifactPaths]) -> list[dict[str, Any]]:
    """Return the lines of all histories, of delivered and of other skills."""
    files = dict.fromkeys(each.history for each in places if each.history.is_file())
    return [line for file in files for line in read_history(file)]


def other_stores(view: RunView) -> Iterator[tuple[str, StoredRun]]:
    """Yield the stores of the program's other runs on this machine, the newest first, each with the id of its run.

    One that cannot be read is left out: it is no part of this run.
    """
    for folder, _ in _runs(view.program):
        if folder == RunFolder(view.program.parent / HOME, view.run).path:
            continue
        try:
            stored = read_store(folder)
        except SkillcError:
            continue
        if stored is not None:
            yield folder.name, stored


def _runs(program: Path) -> Iterator[tuple[Path, bool]]:
    """Yield the folders of a program's runs on this machine, the newest first, and whether each is finished."""
    infos = (program.parent / HOME / "runs").glob("*/run.json")
    for info in sorted(infos, key=lambda each: each.stat().st_mtime, reverse=True):
        try:
            described = json.loads(info.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            continue
        if isinstance(described, dict) and described.get("program") == program.name:
            yield info.parent, bool(described.get("finished"))


def unfinished_run(program: Path, own: ArtifactPaths) -> str | None:
    """Return the folder's name of a program's newest run if it has not ended and is newer than the last lock."""
    lock = own.candidate.lock if own.candidate.lock.is_file() else own.lock
    newest = next(_runs(program), None)
    if newest is None or newest[1]:
        return None
    folder, _ = newest
    later = not lock.is_file() or (folder / "run.json").stat().st_mtime > lock.stat().st_mtime
    return folder.name if later else None


def _newer(program: Path, own: ArtifactPaths) -> Iterator[str]:
    """Yield that a run which began after the lock was written has not ended."""
    begun = unfinished_run(program, own)
    if begun is not None:
        name = begun[:_SHORT]
        yield f"run `{name}` began later and has not ended: `--run {name}` shows it"


def _without_lock(program: Path, places: Sequence[ArtifactPaths], wanted: str | None, *, rollouts: bool) -> RunView:
    """Read a run that has not written a lock, or whose lock was replaced: by default the newest of the program.

    Raises:
        SkillcError: there is none.
    """
    planned = plan_file(program, complete=False)
    every = _lines(places)
    start = wanted or ""
    of_run = ((each, ended) for each, ended in _runs(program) if each.name.startswith(start[:_FOLDER]))
    folder, finished = next(of_run, (None, True))
    stored = read_store(folder, rollouts=rollouts) if folder is not None else None
    names = dict.fromkeys(str(line.get("run")) for line in every)
    known = (name for name in reversed(names) if name.startswith(folder.name if folder is not None else start))
    run = next(known, folder.name if folder is not None else None)
    if run is None:
        if wanted is not None:
            raise SkillcError(f"`{program}` has no run `{wanted}`", hint=f"`skillc history {program}` lists its runs")
        raise NeverCompiled(f"`{program}` was never compiled", hint=f"`skillc compile {program}` compiles it")
    lines: Sequence[Mapping[str, Any]] = [line for line in every if line.get("run") == run]
    if stored is not None and (len(stored.decisions) > len(lines) or not finished):
        # A run that was begun anew has lines of its earlier sessions in the history.
        lines = stored.decisions
    return _view(
        planned=planned,
        lock=None,
        run=run,
        delivered=False,
        lines=lines,
        known=decisions_of(every),
        skill=None,
        stored=stored,
        missing=[],
        paths=places[0],
    )


def _view(
    *,
    planned: Planned,
    lock: Lock | None,
    run: str,
    delivered: bool,
    lines: Sequence[Mapping[str, Any]],
    known: tuple[Decision, ...],
    skill: ArtifactPaths | None,
    stored: StoredRun | None,
    missing: list[str],
    paths: ArtifactPaths,
) -> RunView:
    plan, root, decisions = planned.plan, planned.root, decisions_of(lines)
    first = initial_skill(plan, root)
    start = lock.skill.initial if lock is not None else decisions[0].incumbent if decisions else digest(first)
    best = lock.skill.best if lock is not None else _last_accepted(decisions, start)
    compiled = _compiled(skill, plan) if skill is not None else None
    # A run that starts from a compiled skill needs the runs before it.
    skills = rebuilt_skills([*known, *decisions], first, compiled)
    _report_texts(decisions, skills, start, missing)
    dataset = _dataset(planned, lock, missing)
    examples = placed_examples(dataset) if dataset is not None else {}
    outcomes = outcomes_of(stored, plan, skills, examples) if stored is not None else None
    folder = RunFolder(root / HOME, run).path
    items = read_items(folder)
    if stored is not None and stored.steps is None:
        missing.append("an earlier skillc recorded this run, without what each step spent")
    if stored is None:
        missing.append("the run was not recorded on this machine, so rollouts and what each stage spent are not shown")
    elif items is None and dataset is not None and outcomes is not None:
        # A run that was killed, or compiled by an earlier version, has no record of its items.
        tested = lock is not None and lock.test.n > 0
        items = collect_items(run, plan, dataset, outcomes, lines, initial=start, best=best, tested=tested)
    return RunView(
        program=planned.path,
        plan=plan,
        run=run,
        lock=lock,
        delivered=delivered,
        decisions=decisions,
        initial=start,
        best=best,
        skills=skills,
        examples=examples,
        dataset=dataset,
        outcomes=outcomes,
        spent=stored.spent if stored is not None else None,
        items=items,
        missing=tuple(missing),
        earlier=tuple(each for each in known if each.run and each.run != run),
        paths=paths,
        steps=stored.steps if stored is not None else None,
        lines=tuple(line for line in lines if isinstance(line.get("decision"), int)),
        seconds=stage_seconds(read_events(folder)) or None,
    )


def _last_accepted(decisions: Sequence[Decision], start: str) -> str:
    return next((each.candidate for each in reversed(decisions) if each.accepted), start)


def _compiled(paths: ArtifactPaths, plan: Plan) -> Document | None:
    """Return the skill as it was written, None if it cannot be read: it is then rebuilt from the history alone."""
    try:
        text = paths.skill.read_text(encoding="utf-8-sig")
        return read_skill(paths.skill, text, whole=not plan.task.rollout.one_turn)
    except (OSError, UnicodeDecodeError, SkillcError):
        return None


def _report_texts(
    decisions: Sequence[Decision], skills: Mapping[str, Document], start: str, missing: list[str]
) -> None:
    wanted = dict.fromkeys([start, *(each.candidate for each in decisions if each.candidate)])
    lost = [name for name in wanted if name not in skills]
    if lost:
        missing.append(
            f"{len(lost)} of {len(wanted)} skills cannot be rebuilt from the recorded edits, "
            "so their texts and rollouts are not shown"
        )


def _dataset(planned: Planned, lock: Lock | None, missing: list[str]) -> Dataset | None:
    """Return the data of the run, None if it cannot be read or is another."""
    try:
        found = load_data(planned.plan, planned.root)
    except SkillcError as problem:
        missing.append(f"the data cannot be read, so no example is shown: {problem.message}")
        return None
    if lock is not None and found.digest != lock.data.digest:
        missing.append("the data changed since this compile, so no example is shown")
        return None
    return found


def placed_examples(dataset: Dataset) -> dict[str, PlacedExample]:
    """Return all examples by id, each with its side."""
    sides: tuple[tuple[SplitName, tuple[Example, ...]], ...] = (
        ("train", dataset.train),
        ("validation", dataset.validation),
        ("test", dataset.test),
    )
    return {each.id: PlacedExample(split, each) for split, examples in sides for each in examples}

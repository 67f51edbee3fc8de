"""`check --locked`: compare program, data and compiled skill with the lock, without calling a model."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from skillc.artifact_paths import CANDIDATE_SUFFIX, LOCK_SUFFIX, SKILL_FILE, ArtifactPaths
from skillc.artifacts.owner import check_owner, is_of, own_code_digest
from skillc.conflict import UnmergedError, is_mark
from skillc.data.dataset import Dataset, load_data
from skillc.data.problems import DataError
from skillc.data.split import check_unused, split_digest
from skillc.diagnostics.diagnostic import Diagnostic, Label, Severity
from skillc.errors import SkillcError
from skillc.frontend import CheckedFile, Planned, check_file, plan_file
from skillc.plan.digest import plan_digest
from skillc.plan.lock import Lock, has_digest, parse_lock, read_lock
from skillc.plan.schema import Plan
from skillc.program.artifact import planned_files
from skillc.run.folder import HOME
from skillc.run.history import decisions_until, read_history
from skillc.skill_files import list_folder
from skillc.syntax.source import Source, Span
from skillc.text import counted
from skillc.versions.candidate import find_candidate
from skillc.versions.change import first_line
from skillc.versions.git import repository_of
from skillc.versions.hand_edits import content_of

# Files beside SKILL.md that an agent could read as a part of the skill.
_READ = (".md", ".py")
_SKIPPED = frozenset({".git", HOME, ".tox", ".nox", "node_modules", "__pycache__"})
_AGAIN = "compile again, or revert the change"


def with_lock(looked: CheckedFile) -> CheckedFile:
    """Add the mismatches with the lock to a file's findings.

    Raises:
        SkillcError: as `locked_findings`.
    """
    if any(found.severity is Severity.ERROR for found in looked.diagnostics):
        return looked
    return replace(looked, diagnostics=(*looked.diagnostics, *locked_findings(looked.path)))


def locked_findings(path: Path) -> tuple[Diagnostic, ...]:
    """Return the mismatches with the locks of a program's compiled skills; none for a library.

    Raises:
        SkillcError: the program cannot be planned, or a lock is damaged.
    """
    checked = check_file(path)
    if checked.library:
        return ()
    planned = plan_file(path, checked=checked, complete=False, every_model=False)
    usual = ArtifactPaths.beside(planned.root, planned.plan.skill.artifact)
    found = compiled_skills(usual, path)
    if not found:
        hint = f"run `skillc compile {path}`"
        message = f"the skill is not compiled: `{usual.lock}` is missing"
        candidate = find_candidate(planned, usual).lock
        if candidate is not None:
            message = f"the skill was compiled but not delivered: the verdict is `{candidate.verdict}`"
            hint = f"`skillc compile {path} --require none` delivers it"
        return (Diagnostic("SK751", message, _program(planned), hint=hint),)
    return tuple(finding for paths in found for finding in _skill(planned, paths))


def compiled_skills(usual: ArtifactPaths, program: Path) -> list[ArtifactPaths]:
    """Return the delivered skills of a program: the one beside it, and those of `--output` folders below it."""
    found = [usual] if usual.lock.exists() else []
    name = f"{usual.name}{LOCK_SUFFIX}"
    for place, folders, files in os.walk(program.parent):
        folders[:] = sorted(folder for folder in folders if _is_searched(Path(place, folder)))
        paths = ArtifactPaths(Path(place), usual.name)
        if name in files and paths.base != usual.base and _may_belong_to(paths, program):
            found.append(paths)
    return found


def _is_searched(folder: Path) -> bool:
    """Return whether a delivered skill may be below: not in environments, caches and candidate folders."""
    name = folder.name
    return not (name in _SKIPPED or name.endswith(("_cache", CANDIDATE_SUFFIX)) or (folder / "pyvenv.cfg").exists())


def _may_belong_to(paths: ArtifactPaths, program: Path) -> bool:
    try:
        return is_of(program, paths, read_lock(paths.lock))
    except UnmergedError:
        return True
    except SkillcError:
        return False


def _skill(planned: Planned, paths: ArtifactPaths) -> Iterator[Diagnostic]:
    place = paths.lock
    try:
        source = Source(str(place), place.read_text(encoding="utf-8-sig"))
        lock = parse_lock(source.text, place)
    except UnmergedError as problem:
        yield Diagnostic("SK760", problem.message, Label(source, Span(0, 0)), hint=problem.hint)
        return
    except (OSError, UnicodeDecodeError) as problem:
        raise SkillcError(f"the lock `{place}` cannot be read: {problem}") from problem
    try:
        check_owner(planned.path, paths, lock)
    except SkillcError as problem:
        at = _at(source, '"program"', '"path"')
        yield Diagnostic("SK761", problem.message, _program(planned), secondary=(at,), hint=problem.hint)
        return
    yield from _of_program(planned, lock, source, paths)
    yield from _of_verdict(planned, lock, source)
    yield from _of_data(planned, lock, source)
    yield from _of_files(paths, lock, source)
    yield from _of_kept_files(planned, paths, lock, source)
    yield from _of_history(paths, lock, source)


def _program(planned: Planned) -> Label:
    source = planned.checked.program.source
    return Label(source, first_line(source))


def _at(source: Source, *needles: str) -> Label:
    """Return the place in a lock of the last of nested keys."""
    start, needle = 0, ""
    for needle in needles:
        start = max(start, source.text.find(needle, start))
    return Label(source, Span(start, start + len(needle)))


# ---- program --------------------------------------------------------------------------------------


def _of_program(planned: Planned, lock: Lock, source: Source, paths: ArtifactPaths) -> Iterator[Diagnostic]:
    label = _at(source, '"program"', '"plan"')
    options = lock.program.options
    plan = planned.plan
    if options is not None:
        try:
            plan = plan_file(
                planned.path,
                checked=planned.checked,
                models=options.models,
                settings=options.settings,
                offline=options.offline,
                complete=False,
                every_model=False,
            ).plan
        except SkillcError as problem:
            message = f"the program changed since the compile with `{options.shown}`: {problem.message}"
            yield Diagnostic("SK752", message, _program(planned), secondary=(label,), hint=_AGAIN)
            return
    plan = _with_names(plan, lock)
    changed = plan_digest(plan) != lock.program.plan
    if changed:
        message = f"the program changed since the last compile{_changed_models(plan, lock)}"
        hint = _not_delivered(planned, plan, paths) or _since(planned, paths.lock)
        yield Diagnostic("SK752", message, _program(planned), secondary=(label,), hint=hint)
    if lock.program.code is not None and own_code_digest(plan, planned.root) != lock.program.code:
        tested = any(section.tests is not None for section in plan.skill.sections)
        what = "code, or the tests of its scripts," if tested else "Python code"
        message = f"the program's {what} changed since the last compile"
        yield Diagnostic("SK752", message, _program(planned), secondary=(label,), hint=_AGAIN)
    if options is not None and not changed:
        message = f"the skill was compiled with `{options.shown}`, which changes the program's plan"
        hint = "compile without these options for the program's own plan"
        yield Diagnostic("SK759", message, _at(source, '"options"'), Severity.NOTE, hint=hint)


def _not_delivered(planned: Planned, plan: Plan, paths: ArtifactPaths) -> str | None:
    """Return a hint if this plan was compiled and its skill not delivered."""
    candidate = find_candidate(planned, paths).lock
    if candidate is None or candidate.program.plan != plan_digest(plan):
        return None
    return (
        f"it was compiled but not delivered: the verdict is `{candidate.verdict}`; "
        f"`skillc compile {planned.path} --require none` delivers it"
    )


def _with_names(plan: Plan, lock: Lock) -> Plan:
    """Return the plan with the model names of the compile in place of environment variables."""
    models = dict(plan.models)
    for role, model in plan.models.items():
        if model.model_env is not None and role in lock.models:
            models[role] = model.model_copy(update={"model": lock.models[role].model, "model_env": None})
    return plan.model_copy(update={"models": models})


def _changed_models(plan: Plan, lock: Lock) -> str:
    other = [
        f"`{role}` was `{lock.models[role].model}` and is `{model.model}`"
        for role, model in plan.models.items()
        if role in lock.models and lock.models[role].model != model.model
    ]
    return f": the model {', '.join(other)}" if other else ""


def _since(planned: Planned, place: Path) -> str:
    """Return a hint with the command that shows the changes, if the lock is in git."""
    try:
        repository = repository_of(planned.root)
        commit = repository.last_change(repository.inside(place)) if repository is not None else None
    except SkillcError:
        commit = None
    if commit is None:
        return _AGAIN
    return f"`skillc diff {planned.path} --against {commit}` shows the changes since the lock; {_AGAIN}"


def _of_verdict(planned: Planned, lock: Lock, source: Source) -> Iterator[Diagnostic]:
    required = planned.plan.required_verdict
    if required not in (None, lock.verdict):
        message = f"the program requires `{required}`, but the verdict of the delivered skill is `{lock.verdict}`"
        hint = "it was delivered before the program required this, or with `--require none`"
        yield Diagnostic("SK762", message, _at(source, '"verdict"'), Severity.NOTE, hint=hint)


# ---- data -----------------------------------------------------------------------------------------


def _of_data(planned: Planned, lock: Lock, source: Source) -> Iterator[Diagnostic]:
    plan, label = planned.plan, _at(source, '"data"', '"digest"')
    if lock.program.options is not None:
        seeds = tuple(each for each in lock.program.options.settings if each.startswith("data."))
        own = plan_file(planned.path, checked=planned.checked, settings=seeds, complete=False, every_model=False).plan
        plan = plan.model_copy(update={"data": own.data})
    try:
        dataset = load_data(plan, planned.root)
    except DataError as problem:
        more = problem.count - problem.problems[0].rows
        first = f"{problem.problems[0]}" + (f" (and {more} more)" if more else "")
        hint = f"`skillc check --data {planned.path}` lists all mismatches"
        yield Diagnostic("SK753", f"the data does not match the program: {first}", label, hint=hint)
        return
    except (SkillcError, OSError) as problem:
        message = f"the data cannot be compared with the lock: {str(problem).partition(chr(10))[0]}"
        hint = getattr(problem, "hint", None) or "restore it beside the program"
        yield Diagnostic("SK753", message, label, hint=hint)
        return
    if dataset.digest != lock.data.digest:
        message = f"the data changed since the last compile: {_changed_splits(dataset, lock)}"
        yield Diagnostic("SK753", message, label, hint=_AGAIN)
    try:
        check_unused(lock.data.used, dataset.test, skill=SKILL_FILE)
    except SkillcError as problem:
        yield Diagnostic("SK754", problem.message, _at(source, '"used"'), hint=problem.hint)


def _changed_splits(dataset: Dataset, lock: Lock) -> str:
    sizes = [
        f"{side} has {len(examples)} examples and had {was}"
        for side, examples, was in (
            ("train", dataset.train, lock.data.train),
            ("validation", dataset.validation, lock.data.validation),
            ("test", dataset.test, lock.data.test),
        )
        if len(examples) != was
    ]
    if lock.tested is not None:
        same = lock.tested == split_digest(dataset.test)
        sizes.append("the inputs of the test split are the same" if same else "the test split differs")
    return ", ".join(sizes) or "the same number of other examples"


# ---- artifact -------------------------------------------------------------------------------------


def _of_files(paths: ArtifactPaths, lock: Lock, source: Source) -> Iterator[Diagnostic]:
    for name, digest in sorted(lock.files.items()):
        file = paths.base / name
        label = _at(source, '"files"', f'"{name}"')
        back = f"restore it with `git checkout -- {file}`, or compile again"
        content = content_of(file)
        if content is None:
            yield Diagnostic("SK756", f"`{file}` is missing", label, hint=back)
        elif not has_digest(content, digest):
            yield Diagnostic("SK755", f"`{file}` was edited since the compile", label, hint=back)
    known = {paths.base / name for name in lock.files}
    for file in sorted(paths.folder.iterdir() if paths.folder.is_dir() else ()):
        if file not in known and file.is_file() and file.suffix.lower() in _READ:
            message = f"`{file}` is in the folder of the skill, but not written by the compile"
            hint = "remove it, or move it to a subfolder such as `references/`"
            yield Diagnostic("SK757", message, _at(source, '"files"'), hint=hint)


def _of_kept_files(planned: Planned, paths: ArtifactPaths, lock: Lock, source: Source) -> Iterator[Diagnostic]:
    """Compare the files that the program keeps with the lock, and report files of the folder that neither knows."""
    plan = planned.plan
    if plan.skill.files is None and not any(section.file is not None for section in plan.skill.sections):
        return
    kept = {name: each for name, each in planned_files(plan, planned.root).items() if each is not None}
    for name, content in kept.items():
        if not has_digest(content, lock.files.get(paths.key(paths.folder / name))):
            what = f"`{plan.skill.files}/{name}` changed since the last compile"
            yield Diagnostic("SK763", what, _program(planned), secondary=(_at(source, '"files"'),), hint=_AGAIN)
    known = {paths.base / name for name in lock.files}
    for name, file in list_folder(paths.folder).items() if paths.folder.is_dir() else ():
        if "/" in name and file not in known:
            message = f"`{file}` is in the folder of the skill, but not part of the program"
            hint = (
                f"move it to `{plan.skill.files}`"
                if plan.skill.files
                else 'move it to a folder named by `files = "..."`'
            )
            yield Diagnostic("SK757", message, _at(source, '"files"'), hint=hint)


def _of_history(paths: ArtifactPaths, lock: Lock, source: Source) -> Iterator[Diagnostic]:
    place, label = paths.history, _at(source, '"history"')
    try:
        text = place.read_text(encoding="utf-8") if place.exists() else ""
    except (OSError, UnicodeDecodeError) as problem:
        raise SkillcError(f"the history `{place}` cannot be read: {problem}") from problem
    if any(is_mark(line) for line in text.splitlines()):
        hint = f"run `skillc resolve {paths.folder} --keep ours`, which keeps the lines of both sides"
        yield Diagnostic("SK760", f"`{place}` has conflict marks", label, hint=hint)
    found = read_history(place)
    if lock.history is None:
        of_run = sum(line.get("run") == lock.run for line in found)
        ends = of_run >= _decisions(lock)
    else:
        ends = decisions_until(found, lock.run, lock.history) is not None
    if not ends:
        message = f"`{place}` lacks some of the {counted(_decisions(lock), 'decision')} that made the skill"
        yield Diagnostic("SK758", message, label, hint=f"restore it with `git checkout -- {place}`, or compile again")


def _decisions(lock: Lock) -> int:
    last = lock.stopped.rpartition(" ")[2]
    return int(last) if last.isdecimal() else 0

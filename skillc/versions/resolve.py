"""Resolve a merge of two compiles of one skill: keep one side, with the looks and the history of both."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

from skillc.artifact_paths import ArtifactPaths
from skillc.artifacts.loading import program_in
from skillc.artifacts.owner import program_of
from skillc.conflict import has_marks
from skillc.dataclass import dataclass
from skillc.diagnostics.diagnostic import Diagnostic
from skillc.errors import SkillcError
from skillc.plan.lock import Lock, has_digest, merge_looks, parse_lock, write_lock
from skillc.run.history import Decision, parse_history, text_of, union, write_history
from skillc.skill_files import remove_files, write_file
from skillc.versions.git import Repository, repository_of
from skillc.versions.hand_edits import HandEdit, HandEditedError, content_of, written_files

Keep = Literal["ours", "theirs", "better"]
Side = Literal["ours", "theirs"]
_STAGES: Mapping[Side, int] = {"ours": 2, "theirs": 3}


@dataclass(frozen=True, slots=True)
class ResolvedMerge:
    """A resolved skill.

    Attributes:
        program: its program, if one was found.
        kept: the side that was written.
        why: the scores behind `better`.
        looks: number of looks at the test split that the other side adds.
        decisions: number of lines of the history.
        edited: files that the kept side had edited since its compile.
        findings: mismatches of the merged program and data with the lock.
    """

    paths: ArtifactPaths
    program: Path | None
    kept: Side
    why: str
    lock: Lock
    looks: int
    decisions: int
    edited: tuple[str, ...]
    findings: tuple[Diagnostic, ...]


@dataclass(frozen=True, slots=True)
class _UnmergedSkill:
    """The unmerged files of one skill in git's index.

    Attributes:
        base: the folder of the lock, from the repository's root.
        open: ids of each unmerged file on both sides, by its path from the root.
    """

    repository: Repository
    paths: ArtifactPaths
    base: str
    open: Mapping[str, Mapping[int, str]]

    def of(self, side: Side, name: str) -> bytes | None:
        """Return a file of a side by its path from the lock; a merged file is the same on both."""
        path = posixpath.join(self.base, name)
        if path in self.open:
            blob = self.open[path].get(_STAGES[side])
            return None if blob is None else self.repository.blob(blob)
        return self.repository.in_index(path)

    def is_open(self, name: str) -> bool:
        """Return whether a file is unmerged."""
        return posixpath.join(self.base, name) in self.open

    def with_digest(self, name: str, digest: str) -> bytes | None:
        """Return the file with a digest, from either side or a merged commit."""
        path = posixpath.join(self.base, name)
        sides = (self.of("ours", name), self.of("theirs", name))
        for content in (*sides, *(self.repository.read(head, path) for head in self.repository.heads())):
            if content is not None and has_digest(content, digest):
                return content
        return None


def resolve_merge(path: Path, keep: Keep, *, force: bool = False) -> ResolvedMerge:
    """Write one side of an unmerged compiled skill.

    Args:
        path: the program, or the folder of its skill.
        keep: the side; `better` has the higher goal on validation, for the same program and data.
        force: overwrite files that were edited by hand since the merge.

    Raises:
        HandEditedError: a file was edited since the merge.
        SkillcError: nothing is unmerged, a side has no skill, or the two cannot be compared.
    """
    paths, program = _skill_of(path)
    merge = _merge_of(paths)
    locks = {side: _lock(merge, side) for side in _STAGES}
    kept, why = _better(locks) if keep == "better" else (keep, "")
    lock, other = locks[kept], locks["theirs" if kept == "ours" else "ours"]
    if lock is None:
        raise SkillcError(f"`{kept}` has no compiled skill in `{paths.folder}`", hint="keep the other side")
    files, edited = _files(merge, kept, lock)
    if not force:
        _refuse_edits(merge, files, path)
    history = union(line for side in _STAGES for line in _history(merge, side))
    looks = merge_looks(lock.looks, other.looks if other else ())
    whole = lock.model_copy(update={"looks": looks})
    _write(paths, files, text_of(history), whole)
    gone = [path for name, path in written_files(paths, other.files if other else ()).items() if name not in lock.files]
    remove_files(paths.base, (paths.key(path) for path in gone))
    program = program or program_of(paths, lock)
    findings = _locked(program) if program is not None else ()
    added = len(looks) - len(lock.looks)
    return ResolvedMerge(paths, program, kept, why, whole, added, len(history), edited, findings)


def _skill_of(path: Path) -> tuple[ArtifactPaths, Path | None]:
    """Return the skill at a path, and its program if it is known."""
    from skillc.frontend import plan_file

    paths = ArtifactPaths.of_folder(path)
    if paths.lock.exists() or (path.is_dir() and not list(path.glob("*.skill"))):
        return paths, None
    program = program_in(path)
    repository = repository_of(program.parent)
    if repository is not None and repository.inside(program) in repository.unmerged(repository.inside(program)):
        raise SkillcError(
            f"the program `{program}` is unmerged too", hint=f"resolve it first, then `git add {program}`"
        )
    plan = plan_file(program, complete=False).plan
    return ArtifactPaths.beside(program.parent, plan.skill.artifact), program


def _merge_of(paths: ArtifactPaths) -> _UnmergedSkill:
    there = paths.base
    while not there.is_dir() and there != there.parent:
        there = there.parent
    repository = repository_of(there)
    if repository is None:
        raise SkillcError(f"`{paths.folder}` is in no git repository, so there is no merge to resolve")
    base = repository.inside(paths.base)
    own = [posixpath.join(base, paths.key(path)) for path in paths.tracked]
    found = {path: sides for path in own for name, sides in repository.unmerged(path).items() if name == path}
    found |= repository.unmerged(posixpath.join(base, paths.key(paths.folder)))
    if not found:
        names = " ".join(str(path) for path in paths.tracked)
        hint = f"if its files have conflict marks, `git checkout --merge -- {names}` reopens the merge"
        raise SkillcError(f"git has no open merge of `{paths.folder}`", hint=hint)
    return _UnmergedSkill(repository, paths, base, found)


def _lock(merge: _UnmergedSkill, side: Side) -> Lock | None:
    content = merge.of(side, merge.paths.key(merge.paths.lock))
    if content is None:
        return None
    return parse_lock(content.decode("utf-8-sig", errors="replace"), merge.paths.lock)


def _better(locks: Mapping[Side, Lock | None]) -> tuple[Side, str]:
    ours, theirs = locks["ours"], locks["theirs"]
    hint = "compare them, and choose with `--keep ours` or `--keep theirs`"
    if ours is None or theirs is None:
        raise SkillcError("only one side has a compiled skill, so `--keep better` has no choice", hint=hint)
    for what, one, other in (
        ("programs", ours.program.plan, theirs.program.plan),
        ("data", ours.data.digest, theirs.data.digest),
    ):
        if one != other:
            raise SkillcError(
                f"the two skills were compiled with different {what}, so their scores do not compare", hint=hint
            )
    mine, their = ours.validation.best, theirs.validation.best
    if mine.mean is None or their.mean is None or mine.n != their.n:
        raise SkillcError("the two skills were not measured on the same validation examples", hint=hint)
    # Never by the test split: such a choice would need another test.
    side: Side = "theirs" if their.mean > mine.mean else "ours"
    return side, f"ours has {float(mine.mean) * 100:.1f} % on validation, theirs {float(their.mean) * 100:.1f} %"


def _files(merge: _UnmergedSkill, side: Side, lock: Lock) -> tuple[dict[str, bytes], tuple[str, ...]]:
    """Return the artifact's files of a side, and those that differ from its lock."""
    found, edited = dict[str, bytes](), list[str]()
    for name, digest in lock.files.items():
        # An unmerged file is the side's, with its committed hand edits.
        content = (merge.of(side, name) if merge.is_open(name) else None) or merge.with_digest(name, digest)
        content = content or merge.of(side, name)
        if content is None:
            raise SkillcError(f"git has no `{name}` of `{side}`", hint="keep the other side, or compile again")
        found[name] = content
        if not has_digest(content, digest):
            edited.append(name)
    return found, tuple(edited)


def _refuse_edits(merge: _UnmergedSkill, files: Mapping[str, bytes], path: Path) -> None:
    """Refuse to overwrite a file that was edited since the merge."""
    edits = []
    for name, content in files.items():
        place = merge.paths.base / name
        now, ours = content_of(place), merge.of("ours", name)
        known = {each.replace(b"\r\n", b"\n") for each in (content, ours, merge.of("theirs", name)) if each is not None}
        if now is not None and now.replace(b"\r\n", b"\n") not in known and not has_marks(now.decode(errors="replace")):
            edits.append(HandEdit(place, now, ours))
    if edits:
        raise HandEditedError(tuple(edits), path, hint="save them elsewhere, or overwrite them with `--force`")


def _history(merge: _UnmergedSkill, side: Side) -> Sequence[Decision]:
    content = merge.of(side, merge.paths.key(merge.paths.history))
    if content is None:
        return []
    return parse_history(content.decode("utf-8", errors="replace"), str(merge.paths.history))


def _write(paths: ArtifactPaths, files: Mapping[str, bytes], history: str, lock: Lock) -> None:
    try:
        paths.folder.mkdir(parents=True, exist_ok=True)
        for name, content in files.items():
            write_file(paths.base / name, content)
    except OSError as problem:
        raise SkillcError(f"`{paths.folder}` cannot be written: {problem.strerror}") from problem
    write_history(paths.history, history)
    write_lock(paths.lock, lock)


def _locked(program: Path) -> tuple[Diagnostic, ...]:
    from skillc.versions.locked import locked_findings

    try:
        return locked_findings(program)
    except SkillcError as problem:
        raise SkillcError(
            f"the skill is resolved, but the program cannot be compared with it: {problem.message}",
            hint=problem.hint or f"run `skillc check {program}`",
        ) from problem


def merge_text(resolved: ResolvedMerge) -> str:
    """Return the report: what was kept, and what to do next."""
    lock = resolved.lock
    lines = [f"kept      {resolved.kept}" + (f": {resolved.why}" if resolved.why else "")]
    lines.append(f"skill     {resolved.paths.folder}, verdict {lock.verdict}")
    if resolved.edited:
        lines.append(f"edited    {', '.join(resolved.edited)}: edited since the compile, and kept so")
    lines.append(f"history   {resolved.decisions} decisions of both")
    extra = f", {resolved.looks} of them the other side's" if resolved.looks else ""
    lines.append(f"looks     {len(lock.looks)} at test splits{extra}; all count for the next test")
    paths = resolved.paths
    add = [paths.folder, *paths.tracked[1:]] if len(lock.files) > len(paths.files) else paths.tracked
    lines.append(f"next      git add {' '.join(map(str, add))}")
    program = resolved.program or "PROGRAM"
    if _is_outdated(resolved):
        lines.append(f"then      skillc compile {program}   (the merged program or data differs from the skill's)")
    else:
        lines.append(f"or        skillc compile {program}   (a new skill of the merged program)")
    return "\n".join(lines)


def merge_json(resolved: ResolvedMerge) -> dict[str, object]:
    """Return the object that `resolve --json` prints."""
    from skillc.diagnostics.formats import as_json as diagnostics_json

    return {
        "format_version": 1,
        "kept": resolved.kept,
        "folder": str(resolved.paths.folder),
        "verdict": resolved.lock.verdict,
        "looks": len(resolved.lock.looks),
        "decisions": resolved.decisions,
        "edited": list(resolved.edited),
        "compile_again": _is_outdated(resolved),
        **diagnostics_json(resolved.findings),
    }


def _is_outdated(resolved: ResolvedMerge) -> bool:
    return any(found.code in ("SK752", "SK753", "SK754") for found in resolved.findings)

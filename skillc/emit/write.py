"""Write a form below a folder, without overwriting changes made there.

Beside the files is a record, `.skillc-emit.json`, with the digests of what was written for each skill and form. A file
is overwritten only if the record has its present content. A kill leaves files that the record has, so the same command
completes the form.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

from skillc.artifact_paths import ArtifactPaths
from skillc.artifacts.install import ChangedThereError, check_valid, skill_of
from skillc.conflict import check_merged
from skillc.dataclass import dataclass
from skillc.diagnostics.render import difference
from skillc.emit.forms import FORMS, CompiledSkill, Form
from skillc.errors import SkillcError
from skillc.plan.lock import read_lock
from skillc.skill_files import check_distinct, read_folder, remove_files, write_file

RECORD = ".skillc-emit.json"
_FORMAT = 1
_WAIT = 30.0

FileAction = Literal["write", "update", "replace", "unchanged", "remove"]


@dataclass(frozen=True, slots=True)
class EmittedFile:
    """One file of a form; `path` is below the output folder."""

    path: str
    action: FileAction


@dataclass(frozen=True, slots=True)
class Emitted:
    """The result of an emit or of its dry run.

    Attributes:
        tested: the result of the paired test, as recorded; None if the form was never tested with this skill.
    """

    skill: CompiledSkill
    form: Form
    folder: Path
    files: tuple[EmittedFile, ...]
    notes: tuple[str, ...]
    tested: Mapping[str, Any] | None


def read_compiled(path: Path) -> tuple[ArtifactPaths, CompiledSkill]:
    """Read the compiled skill of a program, its folder, or the folder of a skill.

    Raises:
        SkillcError: there is none, it has unresolved conflicts, or agents cannot load it.
    """
    paths = skill_of(path)
    check_merged(paths)
    files = read_folder(paths.folder)
    check_valid(paths, files)
    return paths, CompiledSkill.of(files)


def emit_skill(
    path: Path,
    name: str,
    output: Path,
    *,
    tested: Mapping[str, Any] | None = None,
    force: bool = False,
    dry_run: bool = False,
) -> Emitted:
    """Write the compiled skill in one form.

    Args:
        path: a program, its folder, or the folder of a skill.
        name: a key of `FORMS`.
        output: the folder of the form's files; made if it does not exist.
        tested: the result of the paired test, for the record; None keeps that of the same skill and form.
        force: overwrite changed files.
        dry_run: write nothing.

    Raises:
        ChangedThereError: a file there was changed, or was not written by skillc.
        SkillcError: the skill does not exist, or a file cannot be written.
    """
    paths, skill = read_compiled(path)
    form = FORMS[name]
    files = form.files(skill)
    check_distinct(files)
    if output.resolve().is_relative_to(paths.folder.resolve()):
        raise SkillcError(f"`{output}` is inside the compiled skill `{paths.folder}`", hint="name another folder")
    notes = (*_lock_notes(paths), *form.notes(skill))
    if dry_run:
        entries = _read_record(output)
        actions = _actions(output, files, entries, f"{name}:{skill.name}", force=force)
        return Emitted(skill, form, output, actions, notes, tested or _known(entries, name, skill))
    try:
        output.mkdir(parents=True, exist_ok=True)
        with _locked(output):
            entries = _read_record(output)
            actions = _actions(output, files, entries, f"{name}:{skill.name}", force=force)
            found = tested or _known(entries, name, skill)
            _write(output, files, actions, entries, name, skill, found)
    except OSError as problem:
        raise SkillcError(f"`{problem.filename or output}` cannot be written: {problem.strerror}") from problem
    return Emitted(skill, form, output, actions, notes, found)


def _lock_notes(paths: ArtifactPaths) -> Iterator[str]:
    if not paths.lock.exists():
        yield f"`{paths.lock}` is missing, so the verdict on this skill is unknown"
        return
    verdict = read_lock(paths.lock).verdict
    if verdict != "improved":
        yield f"the verdict on this skill is `{verdict}`"


def _known(entries: Mapping[str, Any], name: str, skill: CompiledSkill) -> Mapping[str, Any] | None:
    """Return the recorded test of this form with exactly this skill."""
    entry = entries.get(f"{name}:{skill.name}")
    return entry.get("tested") if entry is not None and entry.get("skill") == skill.digest else None


# ---- files ----------------------------------------------------------------------------------------


def _actions(
    output: Path, files: Mapping[str, bytes], entries: Mapping[str, Any], key: str, *, force: bool
) -> tuple[EmittedFile, ...]:
    """Return what becomes of each file.

    Raises:
        ChangedThereError: a file there was changed, or was not written by skillc.
        SkillcError: the path of a file is behind a link, is a folder, or belongs to another form or skill.
    """
    every: dict[str, set[str]] = {}
    for entry in entries.values():
        for part in ("files", "writing"):
            for path, digest in entry.get(part, {}).items():
                every.setdefault(path, set()).add(digest)
    others = {path: other for other, entry in entries.items() if other != key for path in entry.get("files", {})}
    own = set(entries.get(key, {}).get("files", {})) | set(entries.get(key, {}).get("writing", {}))
    actions, changed, strange = list[EmittedFile](), list[str](), False
    for path in sorted({*files, *own}):
        _check_place(output, path)
        present = _present(output / path)
        wanted = files.get(path)
        if wanted is None:
            if present is not None and path not in others and (force or _digest(present) in every.get(path, ())):
                actions.append(EmittedFile(path, "remove"))
        elif present is None:
            actions.append(EmittedFile(path, "write"))
        elif present == wanted:
            actions.append(EmittedFile(path, "unchanged"))
        elif path in others and not force:
            other, _, skill = others[path].partition(":")
            raise SkillcError(
                f"`{output / path}` belongs to the form `{other}` of the skill `{skill}`",
                hint="name another folder, or overwrite it with `--force`",
            )
        elif _digest(present) in every.get(path, ()):
            actions.append(EmittedFile(path, "update"))
        else:
            actions.append(EmittedFile(path, "replace"))
            strange = strange or path not in every
            changed.append(
                difference(str(output / path), present.decode(errors="replace"), wanted.decode(errors="replace"))
            )
    if changed and not force:
        first = next(output / each.path for each in actions if each.action == "replace")
        what = "was not written by skillc" if strange else "was changed since it was written"
        raise ChangedThereError(f"`{first}` {what} and would be overwritten", "".join(changed))
    return tuple(actions)


def _check_place(output: Path, path: str) -> None:
    """Refuse a file that is behind a link, or whose place is taken by a folder."""
    place = output
    for part in path.split("/"):
        place = place / part
        if place.is_symlink():
            raise SkillcError(f"`{place}` is a link", hint="remove the link; its target is never written")
    if place.is_dir():
        raise SkillcError(f"`{place}` is a folder", hint="move it away")


def _present(place: Path) -> bytes | None:
    try:
        return place.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as problem:
        raise SkillcError(f"`{place}` cannot be read: {problem.strerror}") from problem


def _write(
    output: Path,
    files: Mapping[str, bytes],
    actions: tuple[EmittedFile, ...],
    entries: dict[str, Any],
    name: str,
    skill: CompiledSkill,
    tested: Mapping[str, Any] | None,
) -> None:
    """Write the files. Before the first one, the record has the old and the new content of each."""
    key = f"{name}:{skill.name}"
    digests = {path: _digest(content) for path, content in sorted(files.items())}
    entry: dict[str, Any] = {"form": name, "name": skill.name, "skill": skill.digest, "files": digests}
    if tested is not None:
        entry["tested"] = dict(tested)
    if entries.get(key) == entry and all(each.action == "unchanged" for each in actions):
        return
    before = entries.get(key, {}).get("files", {})
    _write_record(output, {**entries, key: {**entry, "files": {**digests, **before}, "writing": digests}})
    for each in actions:
        if each.action in ("write", "update", "replace"):
            write_file(output / each.path, files[each.path])
    remove_files(output, [each.path for each in actions if each.action == "remove"])
    _write_record(output, {**entries, key: entry})


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


# ---- record ---------------------------------------------------------------------------------------


@contextmanager
def _locked(output: Path) -> Iterator[None]:
    """Hold the folder while it is written.

    Raises:
        SkillcError: another process holds it.
    """
    from filelock import FileLock, Timeout

    lock = output / f"{RECORD}.lock"
    try:
        with FileLock(lock, timeout=_WAIT):
            yield
    except Timeout as problem:
        raise SkillcError(f"another process is writing `{output}`", hint="wait for it, then try again") from problem


def _read_record(output: Path) -> dict[str, Any]:
    """Return the recorded entries by form and skill; none for a missing or damaged record, which then protects all."""
    try:
        record = json.loads((output / RECORD).read_text(encoding="utf-8"))
        entries = record["emitted"] if record.get("format_version") == _FORMAT else {}
        return {key: entry for key, entry in entries.items() if isinstance(entry, dict)}
    except (OSError, ValueError, KeyError, AttributeError):
        return {}


def _write_record(output: Path, entries: Mapping[str, Any]) -> None:
    record = {"format_version": _FORMAT, "emitted": dict(sorted(entries.items()))}
    write_file(output / RECORD, (json.dumps(record, ensure_ascii=False, indent=2) + "\n").encode())


# ---- reports --------------------------------------------------------------------------------------


def emit_json(done: Emitted, *, dry_run: bool) -> dict[str, object]:
    """Return the object that `emit --json` prints."""
    return {
        "format_version": 1,
        "skill": done.skill.name,
        "form": done.form.name,
        "source": done.form.source,
        "folder": str(done.folder),
        "dry_run": dry_run,
        "files": [{"path": each.path, "action": each.action} for each in done.files],
        "notes": list(done.notes),
        "tested": dict(done.tested) if done.tested is not None else None,
        "use": done.form.use.format(done.folder),
    }


def emit_text(done: Emitted, *, dry_run: bool) -> str:
    """Return the report for people: notes, a line for each file, and how a host reads them."""
    past = {"write": "written", "update": "updated", "replace": "replaced", "remove": "removed"}
    would = "would be " if dry_run else ""
    lines = [f"note: {note}" for note in done.notes]
    width = max(len(each.path) for each in done.files)
    for each in done.files:
        action = would + past[each.action] if each.action in past else "is up to date"
        lines.append(f"{each.path:<{width}}  {action}")
    lines.append(f"tested    {_tested_text(done.tested)}")
    lines.append(f"use       {done.form.use.format(done.folder)}")
    return "\n".join(lines)


def _tested_text(tested: Mapping[str, Any] | None) -> str:
    if tested is None:
        return "not against the plain form; `--test` does so"
    if tested.get("result") == "identical":
        return "not needed: the target reads the same bytes as in the plain form"
    figures = f", {tested['difference'] * 100:+.1f} points on {tested['pairs']:,} pairs" if tested.get("pairs") else ""
    return f"{tested['result']}{figures}"

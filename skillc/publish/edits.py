"""Take edits by hand at a destination into the program; the next compile starts from them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from skillc.artifact_paths import SKILL_FILE
from skillc.artifacts.loading import SUFFIX
from skillc.document.folder import linked_files, texts_in_one
from skillc.errors import SkillcError
from skillc.publish.destinations import destinations, edited
from skillc.publish.kept import Files, append_log, digest_of, now, project_lock, replaced
from skillc.publish.manifest import MANIFEST, read_manifest
from skillc.publish.transaction import recover
from skillc.publish.waiting import kept_version, pinned_version, unstage
from skillc.skill_files import read_folder
from skillc.text import listed
from skillc.versions.hand_edits import HandEdit
from skillc.versions.taking import TakenEdits, take_edits


def take(project: Path, name: str, *, by: str, environment: Mapping[str, str] = os.environ) -> TakenEdits:
    """Write the edits at the destinations of a skill into its program.

    The destinations keep their edits. The next adopted version may replace them, because its program contains them; a
    copy is kept in any case.

    Raises:
        SkillcError: there are no edits, destinations were edited differently, the skill has no program, or the program
            cannot express an edit. Nothing is changed.
    """
    with project_lock(project):
        recover(project, environment)
        entry = read_manifest(project).entry(name)
        program = project / entry.source
        if program.suffix != SUFFIX or entry.version is None:
            raise SkillcError(f"`{name}` is from no program in `{MANIFEST}`", hint="keep the edits: `--keep-edits`")
        changed = edited(destinations(project, entry, environment))
        if len({each.digest for each in changed}) > 1:
            names = listed([each.folder for each in changed], "and")
            raise SkillcError(f"{names} were changed differently", hint="copy the wanted edits to all of them")
        compiled = kept_version(project, name, entry.upstream) if entry.upstream else pinned_version(project, entry)
        before = compiled.files()
        # Edits that earlier versions kept are not in the program either.
        after: Files = changed[0].files or {} if changed else pinned_version(project, entry).files()
        if digest_of(after) == compiled.digest:
            raise SkillcError(f"no destination of `{name}` was changed by hand", hint="edit one of its files first")
        _check_only_texts(before, after)
        paths = entry.compiled(project)
        edit = HandEdit(paths.skill, _in_one(after), _in_one(before))
        copy = replaced(project).keep(name, after)
        taken = take_edits(program, paths, edit)
        record = {
            "event": "edits taken",
            "when": now(),
            "who": by,
            "edits": copy.digest,
            "compiled": digest_of(read_folder(paths.folder)),
        }
        append_log(project, name, record)
        unstage(project, name)
        return taken or TakenEdits(program, (), "")


def _in_one(files: Files) -> bytes:
    """Return SKILL.md with the texts of the sections in files."""
    skill = files[SKILL_FILE]
    linked = linked_files(skill.decode("utf-8-sig"))
    return texts_in_one(skill, {each: files[each] for each in linked if each in files})


def _check_only_texts(before: Files, after: Files) -> None:
    if SKILL_FILE not in after:
        raise SkillcError(f"`{SKILL_FILE}` was removed there", hint="restore it, or drop the edits: `--drop-edits`")
    linked = {*linked_files(before[SKILL_FILE].decode("utf-8-sig")), SKILL_FILE}
    others = [name for name in sorted({*before, *after} - linked) if before.get(name) != after.get(name)]
    if others:
        raise SkillcError(
            f"a program cannot take the edits of {listed(others, 'and')}",
            hint="make them in its `files` folder, or keep them: `--keep-edits`",
        )

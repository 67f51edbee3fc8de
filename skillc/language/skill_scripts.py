"""Rules over the scripts of a skill that are trained: their tests, their first text, and what can run them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from skillc.artifact_paths import SCRIPTS, is_script
from skillc.diagnostics.diagnostic import Reporter
from skillc.errors import SkillcError
from skillc.language.checked import Entity, Invocation, Setting, Word, amount_of
from skillc.language.modules import Loader
from skillc.language.rollouts import WITHOUT_FILES
from skillc.language.types import add_error
from skillc.skill_files import FILE_LIMIT, list_folder
from skillc.syntax.files import PathError, resolve_path

_TESTS = 'tests = "tests/test_convert.py"'


@dataclass(frozen=True, slots=True)
class BegunScript:
    """A script whose first text is a file of the folder that `files` names; `file` is its path in that folder."""

    section: Entity
    file: str


def check_scripts(report: Reporter, skill: Entity, loader: Loader) -> list[BegunScript]:
    """Check the sections of a skill that are scripts, and return those that begin with a file of its folder."""
    found = []
    for section in skill.children:
        if section.kind != "section":
            continue
        file, tests = section.settings.get("file"), section.settings.get("tests")
        path = file.value if file is not None and isinstance(file.value, str) else ""
        if not is_script(path):
            if tests is not None and not (path and _is_wrong(path)):
                what = f"is in `{path}`" if path else "is in SKILL.md"
                hint = f'write `file = "{SCRIPTS}convert.py"`, or remove `tests`'
                add_error(report, "SK428", tests, f"`tests` are for a script, and the section {what}", hint)
            continue
        if "trainable" not in section.words:
            hint = "write `trainable section`, or keep the script in the folder that `files` names"
            add_error(report, "SK428", section, f"the script `{path}` is a section, and is not trained", hint)
            continue
        if tests is None:
            hint = f"add `{_TESTS}`, or keep the script in the folder that `files` names"
            add_error(report, "SK428", section, f"the script `{path}` has no tests", hint)
        else:
            _check_tests(report, tests, path, _kept_folder(skill), loader)
        text = section.value if isinstance(section.value, str) else ""
        if not text.strip() and _check_first_text(report, skill, section, path, loader):
            found.append(BegunScript(section, path))
    return found


def check_what_runs_scripts(report: Reporter, entities: Sequence[Entity]) -> None:
    """Check that the target can run the scripts that are trained, and that the method trains them."""
    scripts = [section for each in entities if each.kind == "skill" for section in _scripts(each)]
    if not scripts:
        return
    for entity in entities:
        if entity.kind == "task":
            rollout = entity.settings.get("rollout")
            kind = _kind_of(rollout)
            if kind in WITHOUT_FILES:
                message = f"a target of `rollout = {kind}` cannot run the script `{_path_of(scripts[0])}`"
                hint = 'write `rollout = code`, an agent such as `codex`, or `python("module:function")`'
                add_error(report, "SK423", rollout or scripts[0], message, hint)
        elif entity.kind == "optimize" and entity.name is None:
            method = entity.settings.get("method")
            if method is not None and isinstance(method.value, Word) and method.value.text != "skillc":
                message = f"`method = {method.value.text}` does not train scripts"
                add_error(report, "SK423", method, message, "remove `method`, or keep the script in `files`")


def _is_wrong(path: str) -> bool:
    """Return whether a section cannot be in a file of this path, which is reported already."""
    # Imported here as in `skill_folder`, for programs without sections in files.
    from skillc.document.folder import section_file_problem

    return section_file_problem(path) is not None


def _scripts(skill: Entity) -> Iterator[Entity]:
    return (each for each in skill.children if each.kind == "section" and is_script(_path_of(each)))


def _path_of(section: Entity) -> str:
    file = section.settings.get("file")
    return file.value if file is not None and isinstance(file.value, str) else ""


def _kind_of(rollout: Setting | None) -> str:
    if rollout is None:
        return "predict"
    value = rollout.value
    return value.function if isinstance(value, Invocation) else value.text if isinstance(value, Word) else ""


def _kept_folder(skill: Entity) -> str | None:
    """Return the path of the folder of kept files; None if there is none, or the path is wrong."""
    files = skill.settings.get("files")
    try:
        return resolve_path(files.value, "") if files is not None and isinstance(files.value, str) else None
    except PathError:
        return None


def _check_tests(report: Reporter, setting: Setting, script: str, kept: str | None, loader: Loader) -> None:
    written = setting.value

    def fail(message: str, hint: str | None) -> None:
        add_error(report, "SK429", setting, message, hint)

    if not isinstance(written, str):
        return None
    try:
        path = resolve_path(written, "")
        place = loader.folder().inside(path)
        if path == "." or path == kept:
            return fail(f"`{written}` has more than tests", f"move the tests into a folder of their own: `{_TESTS}`")
        if kept is not None and path.startswith(f"{kept}/"):
            message = f"`{written}` is in the folder `{kept}`, so the tests would be part of the skill"
            return fail(message, "move them beside the program")
        if path == script or path.startswith(f"{script}/"):
            return fail(f"`{written}` is the path of the script in the skill's folder", "rename the file of the tests")
        if not loader.complete and not place.exists():
            return None
        if not place.exists():
            return fail(f"the tests `{written}` do not exist beside the program", "write them, or change `tests`")
        names = list(list_folder(place)) if place.is_dir() else [path]
        if place.is_file() and place.stat().st_size > FILE_LIMIT:
            return fail(f"`{written}` is too large for a test", "shorten it")
    except PathError as problem:
        return fail(problem.message, f'write `tests = "{problem.instead}"`' if problem.instead else None)
    except SkillcError as problem:
        return fail(problem.message.replace(f"{loader.root}/", ""), problem.hint)
    except OSError as problem:
        return fail(f"the tests `{written}` cannot be read: {problem.strerror}", None)
    command = setting.block.get("command")
    if command is not None:
        if not (getattr(command.value, "items", None) or ()):
            fail("`command` is empty", 'write the program and its arguments: `command = ["node", "--test", "tests"]`')
    elif not any(name.endswith(".py") for name in names):
        fail(f"`{written}` has no Python tests", 'say what runs them: `command = ["node", "--test", "tests"]`')
    return None


def _check_first_text(report: Reporter, skill: Entity, section: Entity, path: str, loader: Loader) -> bool:
    """Check the file that a script without a text begins with; return whether there is one."""
    kept = _kept_folder(skill)
    place = loader.root / kept / path if kept is not None else None
    if not loader.complete and (place is None or not place.exists()):
        return kept is not None
    if place is None or not place.is_file():
        where = f"put it at `{kept}/{path}`" if kept is not None else 'name a folder that has it: `files = "extras"`'
        hint = f'write it after `=`, in `"""`, or {where}'
        add_error(report, "SK429", section, f"the script `{path}` has no text to begin with", hint)
        return False
    try:
        text = place.read_bytes().decode()
    except UnicodeDecodeError:
        add_error(report, "SK429", section, f"`{kept}/{path}` is not UTF-8", "save it as UTF-8")
        return True
    except OSError as problem:
        add_error(report, "SK429", section, f"`{kept}/{path}` cannot be read: {problem.strerror}", None)
        return True
    if not text.strip():
        add_error(report, "SK429", section, f"`{kept}/{path}` is empty", "write the script that training begins with")
    limit = amount_of(section.settings, "limit")
    if limit is not None and len(text) > limit:
        from skillc.tokens import count_tokens

        used = count_tokens(text)
        if used > limit:
            message = f"`{kept}/{path}` has {used} tokens, over the limit of `{section.name}`, {int(limit)}"
            add_error(report, "SK411", section.settings["limit"], message, "raise the limit, or shorten the script")
    return True

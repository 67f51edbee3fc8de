"""Rules over a skill's folder: sections in files, kept files, and scripts that are trained, with their tests."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from skillc.artifact_paths import SCRIPTS, SKILL_FILE, is_script
from skillc.diagnostics.diagnostic import Reporter
from skillc.errors import SkillcError
from skillc.language.checked import Entity, Setting, amount_of, items_of, of_kind, text_of, word_of
from skillc.language.modules import Loader
from skillc.language.rollouts import WITHOUT_FILES, rollout_kind
from skillc.language.types import add_error
from skillc.skill_files import FILE_LIMIT, collision, list_folder, plain_name
from skillc.syntax.files import PathError, resolve_path

_TESTS = 'tests = "tests/test_convert.py"'


def check_skill_folder(report: Reporter, skill: Entity, loader: Loader) -> None:
    """Check the sections in files, the scripts among them, and the folder of files that are kept."""
    placed: dict[str, Setting] = {}
    kept = _kept_folder(skill)
    begun: set[str] = set()
    for section in skill.children_of("section"):
        _check_about(report, section)
        path = text_of(section.settings, "file")
        if path is not None and _check_path(report, section, placed):
            placed[path] = section.settings["file"]
        if _check_script(report, section, kept, loader):
            begun.add(path or "")
    if text_of(skill.settings, "files") is not None:
        written = {name: each for name, each in placed.items() if name not in begun}
        _check_kept(report, skill.settings["files"], written, loader)


def _check_about(report: Reporter, section: Entity) -> None:
    """Check the settings of a section that need a file."""
    about = section.settings.get("about")
    if about is None:
        return
    if "file" not in section.settings:
        hint = 'add `file = "references/..."`, or remove `about`'
        add_error(report, "SK424", about, "`about` says when to read a file, and the section is in SKILL.md", hint)
    if not " ".join((text_of(section.settings, "about") or "").split()).rstrip(".:"):
        add_error(report, "SK424", about, "`about` is empty", "write when to read the file, or remove it")


def _check_path(report: Reporter, section: Entity, placed: Mapping[str, Setting]) -> bool:
    """Check the file of a section; return whether the section can be there."""
    setting, path = section.settings["file"], text_of(section.settings, "file") or ""
    problem, title = _file_problem(path), text_of(section.settings, "title")
    if problem is None and title is not None and not title.strip():
        problem = "a section in a file needs a title", "remove `title`: SKILL.md links the file below the title"
    if problem is not None:
        add_error(report, "SK424", setting, *problem)
        return False
    clash = collision([*placed, path])
    if clash is None:
        return True
    other = next(each for each in clash if each in placed)
    message = f"`{path}` and `{other}` cannot be two files of one folder"
    if other == path:
        message = f"two sections are in `{other}`"
    add_error(report, "SK425", setting, message, "write each section to a file of its own")
    return False


def _file_problem(path: str) -> tuple[str, str] | None:
    # Imported here because most programs have no section in a file, and the import takes 3 % of a `check`.
    from skillc.document.folder import section_file_problem

    return section_file_problem(path)


# ---- kept files -----------------------------------------------------------------------------------


def _kept_folder(skill: Entity) -> str | None:
    """The path of the folder of kept files; None if there is none, or the path is wrong."""
    files = text_of(skill.settings, "files")
    try:
        return resolve_path(files, "") if files is not None else None
    except PathError:
        return None


@contextmanager
def _reading(report: Reporter, code: str, setting: Setting, name: str, loader: Loader) -> Iterator[None]:
    """Report a path of the program's folder that cannot be read; `name` is its setting."""
    try:
        yield
    except PathError as problem:
        hint = (
            f'write `{name} = "{problem.instead}"`' if problem.instead else f"copy the {name} into the program's folder"
        )
        add_error(report, code, setting, problem.message, hint)
    except SkillcError as problem:
        add_error(report, code, setting, problem.message.replace(f"{loader.root}/", ""), problem.hint)
    except OSError as problem:
        add_error(report, code, setting, f"`{setting.value}` cannot be read: {problem.strerror}")


def _check_kept(report: Reporter, setting: Setting, placed: Mapping[str, Setting], loader: Loader) -> None:
    written = str(setting.value)

    def fail(message: str, hint: str) -> None:
        add_error(report, "SK426", setting, message, hint)

    with _reading(report, "SK426", setting, "files", loader):
        path = resolve_path(written, "")
        place = loader.folder().inside(path)
        if path == ".":
            fail("the program's folder cannot be the skill's files", "move the files into a folder of their own")
        elif not place.exists():
            if loader.complete:
                message = f"the folder `{written}` does not exist beside the program"
                fail(message, "name the folder that has the skill's files")
        elif not place.is_dir():
            fail(f"the folder `{written}` is a file, not a folder", "name the folder that has the skill's files")
        else:
            names = [name for name in list_folder(place) if name != SKILL_FILE]
            for one, other in _clashes(names, [SKILL_FILE, *placed]):
                hint = "rename it, or the `file` of the section" if other in placed else "rename it"
                fail(f"`{written}/{one}` cannot be beside `{other}` in the skill", hint)


def _clashes(names: Sequence[str], written: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield each kept file with the written one that takes its path."""
    for other in written:
        key = plain_name(other)
        for name in names:
            known = plain_name(name)
            if known == key or known.startswith(f"{key}/") or key.startswith(f"{known}/"):
                yield name, other


# ---- scripts --------------------------------------------------------------------------------------


def check_what_runs_scripts(report: Reporter, entities: Sequence[Entity]) -> None:
    """Check that the target can run the scripts that are trained, and that the method trains them."""
    sections = (section for skill in of_kind(entities, "skill") for section in skill.children_of("section"))
    scripts = [section for section in sections if is_script(text_of(section.settings, "file"))]
    if not scripts:
        return
    for task in of_kind(entities, "task"):
        kind = rollout_kind(task)
        if kind in WITHOUT_FILES:
            path = text_of(scripts[0].settings, "file")
            message = f"a target of `rollout = {kind}` cannot run the script `{path}`"
            hint = 'write `rollout = code`, an agent such as `codex`, or `python("module:function")`'
            add_error(report, "SK423", task.settings.get("rollout", scripts[0]), message, hint)
    for optimize in of_kind(entities, "optimize"):
        method = word_of(optimize.settings, "method") or "skillc"
        if optimize.name is None and method != "skillc":
            message, hint = (
                f"`method = {method}` does not train scripts",
                "remove `method`, or keep the script in `files`",
            )
            add_error(report, "SK423", optimize.settings["method"], message, hint)


def _check_script(report: Reporter, section: Entity, kept: str | None, loader: Loader) -> bool:
    """Check a section that is a script; return whether its first text is a file of the folder of kept files."""
    path, tests = text_of(section.settings, "file") or "", section.settings.get("tests")
    if not is_script(path):
        if tests is not None and not (path and _file_problem(path)):
            what = f"is in `{path}`" if path else "is in SKILL.md"
            hint = f'write `file = "{SCRIPTS}convert.py"`, or remove `tests`'
            add_error(report, "SK428", tests, f"`tests` are for a script, and the section {what}", hint)
        return False
    if "trainable" not in section.words:
        hint = "write `trainable section`, or keep the script in the folder that `files` names"
        add_error(report, "SK428", section, f"the script `{path}` is a section, and is not trained", hint)
        return False
    if tests is None:
        hint = f"add `{_TESTS}`, or keep the script in the folder that `files` names"
        add_error(report, "SK428", section, f"the script `{path}` has no tests", hint)
    else:
        _check_tests(report, tests, path, kept, loader)
    return not section.text.strip() and _check_first_text(report, section, path, kept, loader)


def _check_tests(report: Reporter, setting: Setting, script: str, kept: str | None, loader: Loader) -> None:
    written = str(setting.value)

    def fail(message: str, hint: str) -> None:
        add_error(report, "SK429", setting, message, hint)

    with _reading(report, "SK429", setting, "tests", loader):
        path = resolve_path(written, "")
        place = loader.folder().inside(path)
        if path in (".", kept):
            fail(f"`{written}` has more than tests", f"move the tests into a folder of their own: `{_TESTS}`")
        elif kept is not None and path.startswith(f"{kept}/"):
            message = f"`{written}` is in the folder `{kept}`, so the tests would be part of the skill"
            fail(message, "move them beside the program")
        elif path == script or path.startswith(f"{script}/"):
            fail(f"`{written}` is the path of the script in the skill's folder", "rename the file of the tests")
        elif not place.exists():
            if loader.complete:
                fail(f"the tests `{written}` do not exist beside the program", "write them, or change `tests`")
        elif place.is_file() and place.stat().st_size > FILE_LIMIT:
            fail(f"`{written}` is too large for a test", "shorten it")
        else:
            names = list(list_folder(place)) if place.is_dir() else [path]
            if "command" not in setting.block and not any(name.endswith(".py") for name in names):
                hint = 'say what runs them: `command = ["node", "--test", "tests"]`'
                fail(f"`{written}` has no Python tests", hint)
            elif "command" in setting.block and not items_of(setting.block, "command"):
                hint = 'write the program and its arguments: `command = ["node", "--test", "tests"]`'
                fail("`command` is empty", hint)


def _check_first_text(report: Reporter, section: Entity, path: str, kept: str | None, loader: Loader) -> bool:
    """Check the file that a script without a text begins with; return whether there is one."""
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
        add_error(report, "SK429", section, f"`{kept}/{path}` cannot be read: {problem.strerror}")
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

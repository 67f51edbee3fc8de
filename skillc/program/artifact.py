"""Write a compiled skill: SKILL.md and the module that runs it without skillc."""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from skillc.artifact_paths import ArtifactPaths, module_name
from skillc.conflict import check_merged
from skillc.document.folder import files_of
from skillc.document.skill import Document, file_sections, link_line
from skillc.errors import SkillcError
from skillc.files import write_atomically
from skillc.plan.initial import initial_document, with_files
from skillc.plan.lock import has_digest
from skillc.plan.schema import Plan, TaskPlan, TypePlan
from skillc.program.emitted_tools import emitted_tools
from skillc.program.names import as_read, class_name, field_names
from skillc.skill_files import remove_files, write_file
from skillc.tools.texts import with_texts

if TYPE_CHECKING:
    from jinja2 import Template

    from skillc.tools.tool import Tool


def check_folder(paths: ArtifactPaths) -> None:
    """Refuse folders that no skill can be written to, or that have an unresolved merge.

    Raises:
        SkillcError: a file is where a folder must be, the layout is an older one, or a file has conflict markers.
    """
    check_merged(paths)
    for folder in (paths.base, paths.folder):
        if folder.exists() and not folder.is_dir():
            raise SkillcError(f"`{folder}` is a file; the skill needs a folder", hint="choose another with `--output`")
    if (paths.folder / "skill.lock").exists():
        raise SkillcError(
            f"`{paths.folder}` has the layout of an earlier version, with lock and history inside",
            hint=f"move `skill.lock` to `{paths.lock}` and `history.jsonl` to `{paths.history}`, remove the other "
            "files of the folder, and compile again",
        )


def attributes_of(paths: ArtifactPaths, names: Iterable[str] = ()) -> Mapping[str, str]:
    """Return git's attributes of each file, by its pattern; `names` are the files of the lock.

    `-merge` prevents git from merging two skills line by line into one that no gate has tested. The lock gets conflict
    markers while a merge is unresolved. Line ends are fixed, so that digests match on every system; those of further
    files in the skill's folder are never converted.
    """
    folder = paths.key(paths.folder)
    further = [name for name in names if name.startswith(f"{folder}/") and name != paths.key(paths.skill)]
    below = {f"/{folder}/*/**": "-text -merge"} if any(name.count("/") > 1 for name in further) else {}
    beside = {f"/{_pattern(name)}": "-text -merge" for name in further if name.count("/") == 1}
    return {
        f"/{paths.key(paths.skill)}": "text eol=lf -merge",
        f"/{paths.key(paths.module)}": "text eol=lf -merge",
        f"/{paths.key(paths.lock)}": "text eol=lf",
        f"/{paths.key(paths.history)}": "text eol=lf merge=union",
        **below,
        **beside,
    }


def _pattern(name: str) -> str:
    """Return a pattern of git for one name; `*` matches characters that git would read as part of a pattern."""
    return re.sub(r"[^A-Za-z0-9._/-]+", "*", name)


def write_attributes(paths: ArtifactPaths, names: Iterable[str] = ()) -> None:
    """Add the attributes of a skill to `.gitattributes`; a pattern that the file already has is not changed.

    `names` are the files of its lock.

    A new file merges as a union, because two branches that compile different skills both add lines at its end.

    Raises:
        SkillcError: the file cannot be read or written.
    """
    place = paths.attributes
    try:
        before = place.read_bytes() if place.exists() else b"/.gitattributes merge=union\n"
        known = {words[0] for line in before.splitlines() if (words := line.split())}
        wanted = {pattern.encode(): line.encode() for pattern, line in attributes_of(paths, names).items()}
        missing = [pattern + b" " + line for pattern, line in wanted.items() if pattern not in known]
        if missing:
            end = b"\r\n" if b"\r\n" in before else b"\n"
            whole = before if before.endswith(b"\n") or not before else before + end
            write_atomically(place, whole + b"".join(line + end for line in missing))
    except OSError as problem:
        raise SkillcError(f"`{place}` cannot be written: {problem.strerror}") from problem


def artifact_files(
    paths: ArtifactPaths, plan: Plan, document: Document, root: Path = Path(), tools: Sequence[Tool] = ()
) -> dict[Path, bytes]:
    """Return the files of the skill's folder and the module by path.

    Args:
        paths: of the skill.
        plan: the program.
        document: the skill.
        root: the program's folder.
        tools: those of an agent.

    Raises:
        SkillcError: the files that the folder keeps cannot be read.
    """
    files = files_of(with_files(document, plan, root))
    return {
        **{paths.folder / name: content for name, content in files.items()},
        paths.module: module_source(plan, document, tools).encode(),
    }


def planned_files(plan: Plan, root: Path) -> dict[str, bytes | None]:
    """Return the files besides SKILL.md that a compile may write into the skill's folder, by their paths in it.

    The content is None for a section, whose text is not known before.

    Raises:
        SkillcError: the files that the folder keeps cannot be read.
    """
    sections: dict[str, bytes | None] = {each.file: None for each in plan.skill.sections if each.file is not None}
    return {**sections, **dict(with_files(initial_document(plan), plan, root).files)}


def write_artifact(
    paths: ArtifactPaths, files: Mapping[Path, bytes], *, earlier: Mapping[str, str] | None = None
) -> None:
    """Write the files of a compiled skill, each atomically.

    Args:
        paths: of the skill.
        files: all files by path.
        earlier: digests of the files that skillc wrote before; those that the skill no longer has are removed.

    Raises:
        SkillcError: a file cannot be written.
    """
    try:
        paths.folder.mkdir(parents=True, exist_ok=True)
        for place, content in files.items():
            write_file(place, content)
        gone = [
            paths.base / name
            for name in earlier or {}
            if paths.base / name not in files and name.startswith(f"{paths.name}/") and ".." not in name.split("/")
        ]
        stale = [
            place
            for place in gone
            if place.is_file() and has_digest(place.read_bytes(), (earlier or {})[paths.key(place)])
        ]
        remove_files(paths.folder, [place.relative_to(paths.folder).as_posix() for place in stale])
    except OSError as problem:
        raise SkillcError(f"`{paths.folder}` cannot be written: {problem.strerror}") from problem


_TYPES = {"text": "str", "bool": "bool", "number": "float", "integer": "int", "file": "str", "image": "dspy.Image"}
_PREDICTORS = {"predict": "Predict", "chain_of_thought": "ChainOfThought", "react": "ReAct"}
_INDENT = "    "


def module_source(plan: Plan, document: Document, tools: Sequence[Tool] = ()) -> str:
    """Return the module's formatted text, with every name and text of the program as a literal.

    It has the DSPy module of the task, or only the instructions if rollouts run through skillc: the kind is no DSPy
    module, or the target opens the skill by itself.
    """
    task = as_read(plan.task)
    fields, names = (*task.inputs, *task.outputs), field_names(task)
    reads = _reads(plan.task)
    given = "**_inputs(inputs)" if any(reads.values()) or _renamed(names) else "**inputs"
    first = task.inputs[0].name if task.inputs else ""
    return _template().render(
        artifact=document.name,
        folder=plan.skill.artifact,
        references={link_line(each): each.file for each in file_sections(document)} if task.rollout.one_turn else {},
        module=module_name(plan.skill.artifact),
        call=f"{first}=..." if first.isidentifier() and not keyword.iskeyword(first) else "...",
        typing=["Any", "Literal"] if any(_has_labels(field.type) for field in fields) else ["Any"],
        signature=class_name(plan.skill.name),
        fields=[
            {
                "name": names[field.name],
                "type": _type(field.type, trailing=","),
                "make": "InputField" if field in task.inputs else "OutputField",
            }
            for field in fields
        ],
        renamed=_renamed(names),
        reads=any(reads.values()),
        **reads,
        call_sync=_outputs(f"self.answer({given})", names),
        call_async=_outputs(f"await self.answer.acall({given})", names),
        predictor=_predictor(plan, tools),
        rollout=task.rollout.kind,
        tools=emitted_tools(task, with_texts(tools, document), literal),
        on_demand=plan.skill.load == "on_demand",
    )


def _predictor(plan: Plan, tools: Sequence[Tool]) -> str | None:
    """Return the DSPy module of the task; None if its rollouts run through skillc.

    So does an agent whose tools are unknown here, as on a cluster.
    """
    kind = plan.task.rollout.kind
    known = plan.skill.load == "always" and (bool(tools) or kind != "react")
    return _PREDICTORS.get(kind) if known else None


def _renamed(names: Mapping[str, str]) -> dict[str, str]:
    return {old: new for old, new in names.items() if old != new}


def _outputs(call: str, names: Mapping[str, str]) -> str:
    return f"_outputs({call})" if _renamed(names) else call


def _reads(task: TaskPlan) -> dict[str, Any]:
    """Return the inputs that the module converts: images, files, and texts with a limit to cut at."""
    images = [field.name for field in task.inputs if field.type.file_kind == "image"]
    limits = {field.name: f"({field.limit}, {literal(field.cut)})" for field in task.inputs if field.cut is not None}
    files = [field.name for field in task.inputs if field.type.file_kind == "file" and task.rollout.one_turn]
    return {
        "images": images,
        "files": {name: limits.get(name, "None") for name in files},
        "cut_texts": {name: limit for name, limit in limits.items() if name not in files},
        "cuts": bool(limits),
    }


@cache
def _template() -> Template:
    from jinja2 import Environment, StrictUndefined

    made = Environment(trim_blocks=True, keep_trailing_newline=True, undefined=StrictUndefined)
    made.filters["literal"] = literal
    return made.from_string(Path(__file__).with_name("module.py.j2").read_text(encoding="utf-8"))


def literal(text: str) -> str:
    """Return a string literal in double quotes, or in single quotes if that needs fewer escapes."""
    quote = "'" if text.count('"') > text.count("'") else '"'
    return quote + "".join(_escaped(character, quote) for character in text) + quote


def _escaped(character: str, quote: str) -> str:
    if character in ("\\", quote):
        return "\\" + character
    if character == " " or (character.isprintable() and not character.isspace()):
        return character
    return ascii(character)[1:-1]


def _type(type_: TypePlan, *, trailing: str = "") -> list[str]:
    """Return the lines of a type's expression."""
    end = (" | None" if type_.optional else "") + trailing
    if type_.kind == "labels":
        if len(type_.labels) == 1:
            return [f"Literal[{literal(type_.labels[0])}]{end}"]
        return ["Literal[", *(f"{_INDENT}{literal(label)}," for label in type_.labels), f"]{end}"]
    if type_.kind == "list":
        inner = _type(type_.item) if type_.item is not None else ["str"]
        if len(inner) == 1:
            return [f"list[{inner[0]}]{end}"]
        return ["list[", *(_INDENT + line for line in inner), f"]{end}"]
    return [f"{'dict[str, Any]' if type_.kind == 'json' else _TYPES[type_.kind]}{end}"]


def _has_labels(type_: TypePlan) -> bool:
    return type_.kind == "labels" or (type_.item is not None and _has_labels(type_.item))

"""The examples of a program as `evals/evals.json` of Agent Skills."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath
from shutil import copyfile

from pydantic import JsonValue

from skillc.data.attachments import paths_in
from skillc.data.evals import FOLDER, as_described
from skillc.data.problems import Problems
from skillc.data.read import read_rows
from skillc.dataclass import dataclass
from skillc.errors import SkillcError
from skillc.export.assertions import Assertions, expected_output
from skillc.files import write_atomically
from skillc.json_values import JsonObject, as_text
from skillc.outcomes import Example
from skillc.plan.schema import Plan
from skillc.redaction import Redactor
from skillc.review.run_view import PlacedExample

_FILES = "files"


@dataclass(frozen=True, slots=True)
class Eval:
    """An eval of the file.

    Attributes:
        number: its `id`.
        example: id of the example.
        files: the source of each file by its path from the skill's folder.
    """

    number: int
    example: str
    value: JsonObject
    files: Mapping[str, Path]

    @property
    def name(self) -> str:
        """The name of its folder in a workspace: letters, digits and hyphens."""
        given = self.value.get("name")
        name = given if isinstance(given, str) else str(self.number)
        kept = "".join(c if c.isascii() and (c.isalnum() or c in "-_") else "-" for c in name.lower()).strip("-")
        return f"eval-{self.number}" if kept in ("", str(self.number)) else f"eval-{self.number}-{kept[:60]}"


def evals_of(
    plan: Plan, root: Path, examples: Sequence[PlacedExample], places: Mapping[str, tuple[str, int]]
) -> tuple[Eval, ...]:
    """Return an eval for each example, in the order of the data.

    An example that was read from an `evals.json` keeps what is written there. Any other one has its inputs as the
    prompt, its right answer as the expected output, and an assertion for each metric that the goal reads.

    Args:
        plan: the program.
        root: its folder.
        examples: those to write.
        places: file and line of each example.
    """
    written = _written_evals(plan, root)
    assertions = Assertions(plan)
    found: list[Eval] = []
    taken = {int(each.example.id) for each in examples if _is_number(each.example.id)}
    following = 0
    for each in sorted(examples, key=lambda each: (*places.get(each.example.id, ("", 0)), each.example.id)):
        example = each.example
        if _is_number(example.id):
            number = int(example.id)
        else:
            following += 1
            while following in taken:
                following += 1
            number = following
        own = written.get(places.get(example.id, ("", 0)))
        if own is not None:
            found.append(_as_written(plan, root, number, example, own))
        else:
            texts = [assertion.text for assertion in assertions.of(example)]
            found.append(_from_example(plan, root, number, example, texts))
    return tuple(found)


def _is_number(name: str) -> bool:
    return name.isascii() and name.isdigit() and str(int(name)) == name and len(name) <= 9


def _written_evals(plan: Plan, root: Path) -> Mapping[tuple[str, int], JsonObject]:
    """Return the rows that were read from files in the form of `evals.json`, by file and line."""
    data, found = plan.data, dict[tuple[str, int], JsonObject]()
    for name in (data.source, data.train, data.validation, data.test):
        if name is not None and name.endswith(".json"):
            for row in read_rows(root / name, name, Problems()):
                if {"prompt", "expected_output", "files", "assertions"} <= row.values.keys():
                    found[name, row.line] = row.values
    return found


def _as_written(plan: Plan, root: Path, number: int, example: Example, row: JsonObject) -> Eval:
    folder = next(
        (root / name).parent
        for name in (plan.data.source, plan.data.train, plan.data.validation, plan.data.test)
        if name is not None
    )
    files: dict[str, Path] = {}
    paths = row["files"] if isinstance(row["files"], list) else []
    listed: list[JsonValue] = []
    for path in paths_in(list(paths)):
        target = _target(path.removeprefix(f"{_FILES}/"), files)
        files[target] = folder / path
        listed.append(target)
    assertions = row["assertions"] if isinstance(row["assertions"], list) else []
    expected = str(row["expected_output"])
    kept = [] if assertions == [as_described(expected)] else assertions
    rest = {name: value for name, value in row.items() if name not in ("files", "assertions", "id")}
    value: dict[str, JsonValue] = {"id": number, **rest, "files": listed}
    return Eval(number, example.id, {**value, "assertions": kept} if kept else value, files)


def _from_example(plan: Plan, root: Path, number: int, example: Example, assertions: Sequence[str]) -> Eval:
    texts, files = [], dict[str, Path]()
    for field in plan.task.inputs:
        value = example.inputs.get(field.name)
        reads = plan.task.rollout.one_turn and field.type.file_kind == "file"
        if field.type.file_kind is None or reads:
            if value is not None:
                texts.append((field.name, as_text(value)))
            continue
        for path in paths_in(value):
            target = _target(path, files)
            files[target] = root / path
    prompt = texts[0][1] if len(texts) == 1 else "\n\n".join(f"{name}:\n{text}" for name, text in texts)
    value = {
        "id": number,
        **({} if example.id == str(number) else {"name": example.id}),
        "prompt": prompt or "See the files.",
        "expected_output": expected_output(plan, example),
        "files": list(files),
        "assertions": list(assertions),
    }
    return Eval(number, example.id, value, files)


def _target(path: str, taken: Mapping[str, Path]) -> str:
    """Return where a file goes below the skill's folder, without parts that leave it."""
    parts = [part for part in PurePosixPath(path).parts if part not in ("/", ".", "..")] or ["file"]
    place, number = PurePosixPath(FOLDER, _FILES, *parts), 2
    while str(place) in taken:
        place, number = place.with_name(f"{place.stem}-{number}{place.suffix}"), number + 1
    return str(place)


def write_evals(folder: Path, skill: str, evals: Sequence[Eval], hide: Redactor, *, force: bool) -> Path:
    """Write `evals/evals.json` and the files of its evals below the folder of a skill, and return its path.

    Raises:
        SkillcError: it cannot be written, or another one is there and `force` is not set.
    """
    path = folder / FOLDER / f"{FOLDER}.json"
    value = hide.value({"skill_name": skill, "evals": [dict(each.value) for each in evals]})
    text = json.dumps(value, ensure_ascii=False, indent=2) + "\n"
    try:
        if path.exists() and not force and path.read_text(encoding="utf-8") != text:
            raise SkillcError(f"`{path}` has other evals", hint="name another folder with `--output`, or add `--force`")
        path.parent.mkdir(parents=True, exist_ok=True)
        for each in evals:
            for target, source in each.files.items():
                (folder / target).parent.mkdir(parents=True, exist_ok=True)
                if not (folder / target).exists() or not (folder / target).samefile(source):
                    copyfile(source, folder / target)
        write_atomically(path, text)
    except (OSError, UnicodeDecodeError) as problem:
        raise SkillcError(f"`{path}` cannot be written: {getattr(problem, 'strerror', None) or problem}") from problem
    return path

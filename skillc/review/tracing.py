"""Who wrote each line of a skill's file on disk: a step, the program, or a hand after the compile."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from pathlib import Path
from typing import Literal

from skillc.artifact_paths import SKILL_FILE, ArtifactPaths
from skillc.artifacts.loading import SUFFIX
from skillc.dataclass import dataclass
from skillc.errors import SkillcError
from skillc.json_values import as_text
from skillc.plan.lock import read_lock
from skillc.review.origins import Origin, SkillLine, ancestry, lines_in, skill_lines
from skillc.review.removal import Part
from skillc.review.run_view import RunView, read_run
from skillc.text import counted

By = Literal["a step", "the program", "hand", "unknown", "nobody"]
"""Who wrote a line; a blank line is of nobody."""
_CLOSE = 0.6


@dataclass(frozen=True, slots=True)
class Traced:
    """A line of a skill's file on disk.

    Attributes:
        compiled: the line as the compile wrote it; for a line changed by hand, the one that it replaced.
        place: file and line of the program that has this text, where only one has it.
    """

    file: str
    number: int
    text: str
    by: By
    compiled: SkillLine | None = None
    place: str = ""

    @property
    def origin(self) -> Origin | None:
        """The step that wrote the line, or the one that it replaced."""
        return self.compiled.origin if self.compiled is not None else None


@dataclass(frozen=True, slots=True)
class Failure:
    """A training example that an edit was written for: its input, the right answer, and the answer then."""

    id: str
    input: str
    right: str
    answer: str


_LINE = re.compile(r"(?P<path>.+?):(?P<line>\d+)")


def read_traced(place: str, run: str | None = None) -> tuple[RunView, tuple[Traced, ...], str, int | None]:
    """Return the run that wrote a file, the lines of the file, its path, and the number of the line that is meant.

    Args:
        place: `SKILL.md:12`, `tickets.skill:12` for line 12 of the program's SKILL.md, or a path without a line.
        run: the beginning of the id of another run than the last.

    Raises:
        SkillcError: the run or the file cannot be read.
    """
    match = _LINE.fullmatch(place)
    path, number = (Path(match["path"]), int(match["line"])) if match is not None else (Path(place), None)
    folder = next((each for each in (path, *path.parents) if (each / SKILL_FILE).is_file()), None)
    if folder is None or (path.is_file() and path.suffix == SUFFIX):
        view = read_run(path, run)
        assert view.paths is not None
        return view, trace(view), str(view.paths.skill), number
    # A skill that was not delivered has a lock of its own; the file names which of the two is meant.
    lock = ArtifactPaths.of_folder(folder).lock
    view = read_run(folder, run or (read_lock(lock).run if lock.is_file() else None))
    file = path if path != folder else folder / SKILL_FILE
    return view, trace(view, file), str(file), number


def trace(view: RunView, file: Path | None = None) -> tuple[Traced, ...]:
    """Return the lines of a file of the skill as it is on disk, each with who wrote it.

    Args:
        view: the run.
        file: the file; SKILL.md of the run by default, or as the run wrote it if there is none.

    Raises:
        SkillcError: the file cannot be read, or is none of the skill.
    """
    assert view.paths is not None
    path = file or view.paths.skill
    try:
        name = path.resolve().relative_to(view.paths.folder.resolve()).as_posix()
    except ValueError:
        name = path.name
    compiled = [line for line in skill_lines(view, view.best) if line.file == name]
    if not compiled and view.best in view.skills and name != SKILL_FILE:
        raise SkillcError(f"`{path}` is no file that this compile wrote", hint=f"its text is in `{view.paths.skill}`")
    try:
        lines = lines_in(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        if file is not None or not compiled:
            raise SkillcError(f"`{path}` does not exist", hint=f"`skillc compile {view.program}` writes it") from None
        lines = [line.text for line in compiled]
    except (OSError, UnicodeDecodeError) as problem:
        raise SkillcError(f"`{path}` cannot be read: {problem}") from problem
    if not compiled or not _all_known(view):
        return tuple(_by_text(view, name, lines))
    return tuple(_aligned(view, name, lines, compiled))


def _all_known(view: RunView) -> bool:
    """Return whether the skill's rules and their steps are known, not only its text."""
    steps = ancestry(view, view.best)
    rebuilt = all(each.incumbent in view.skills and each.candidate in view.skills for each in steps)
    return rebuilt and (view.best == view.initial or bool(steps))


def _aligned(view: RunView, name: str, lines: Sequence[str], compiled: Sequence[SkillLine]) -> Iterator[Traced]:
    """Yield the lines of a file against those that the compile wrote."""
    matcher = SequenceMatcher(None, [line.text for line in compiled], lines, autojunk=False)
    for tag, i, j, k, end in matcher.get_opcodes():
        for at in range(k, end):
            text = lines[at]
            if tag == "equal":
                yield _compiled(view, name, at + 1, text, compiled[i + at - k])
            elif not text.strip():
                yield Traced(name, at + 1, text, "nobody")
            else:
                yield Traced(name, at + 1, text, "hand", _closest(text, compiled[i:j]))


def _compiled(view: RunView, name: str, number: int, text: str, line: SkillLine) -> Traced:
    if not text.strip():
        return Traced(name, number, text, "nobody", line)
    if line.origin is not None:
        return Traced(name, number, text, "a step", line)
    return Traced(name, number, text, "the program", line, _in_program(view, text))


def _closest(text: str, replaced: Sequence[SkillLine]) -> SkillLine | None:
    """Return the replaced line that a text was probably made of."""
    found = [(SequenceMatcher(None, line.text, text, autojunk=False).ratio(), line) for line in replaced]
    ratio, line = max(found, key=lambda each: each[0], default=(0.0, None))
    return line if ratio >= _CLOSE else None


def _by_text(view: RunView, name: str, lines: Sequence[str]) -> Iterator[Traced]:
    """Yield the lines of a skill that cannot be rebuilt, each with the last accepted edit that has its text."""
    steps = ancestry(view, view.best) or tuple(each for each in view.decisions if each.accepted)
    written: dict[str, Origin] = {}
    for decision in steps:
        for edit in decision.edits:
            text = getattr(edit.edit, "text", "")
            for line in lines_in(text):
                written[line.strip()] = Origin(decision, edit, edit.rule)
    for number, text in enumerate(lines, 1):
        stripped = text.strip()
        origin = written.get(stripped) or written.get(stripped.removeprefix("- "))
        place = _in_program(view, text) if stripped else ""
        if not stripped:
            yield Traced(name, number, text, "nobody")
        elif origin is not None:
            yield Traced(name, number, text, "a step", SkillLine(name, number, text, origin, "rule"))
        else:
            yield Traced(name, number, text, "the program" if place else "unknown", None, place)


def _in_program(view: RunView, text: str) -> str:
    """Return where the program has a line of the skill; empty unless it is there once."""
    try:
        lines = lines_in(view.program.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError):
        return ""
    wanted = {text.strip(), text.strip().removeprefix("- ")}
    found = [i for i, line in enumerate(lines, 1) if line.strip() in wanted]
    return f"{view.program.name}:{found[0]}" if len(found) == 1 else ""


def line_at(lines: Sequence[Traced], number: int, path: str) -> Traced:
    """Return a line by its number.

    Raises:
        SkillcError: there is no such line.
    """
    if not 1 <= number <= len(lines):
        raise SkillcError(f"`{path}` has no line {number}", hint=f"it has {counted(len(lines), 'line')}")
    return lines[number - 1]


def part_of(view: RunView, line: Traced) -> Part | None:
    """Return the rule or the section that a line is of; None for other lines."""
    document = view.skills.get(view.best)
    if line.compiled is None or document is None:
        return None
    text = line.compiled.text.strip()
    for section in document.sections:
        if not line.compiled.part.endswith(f"`{section.name}`") or "heading" in line.compiled.part:
            continue
        if section.mode != "trainable":
            return Part(section.name, section.text)
        for rule in section.rules:
            own = {each.strip() for each in lines_in(rule.text)}
            if text in own or any(text.endswith(f" {each}") for each in own):
                return Part(section.name, rule.text)
    return None


def failures_behind(view: RunView, origin: Origin) -> tuple[Failure, ...]:
    """Return the training examples that the edit behind a line was written for."""
    names = origin.edit.cures if origin.edit is not None else ()
    found = []
    for name in names:
        placed, outcome = view.examples.get(name), view.outcome(origin.decision.incumbent, name)
        example = placed.example if placed is not None else None
        first = next(iter(example.inputs), "") if example is not None else ""
        shown = (example.labels.get(first) or as_text(example.inputs.get(first))) if example is not None else ""
        right = _values(example.gold) if example is not None else ""
        answer = ""
        if outcome is not None:
            answer = _values(outcome.answer) if outcome.answer is not None else outcome.trajectory.problem or ""
        found.append(Failure(name, shown, right, answer))
    return tuple(found)


def _values(values: object) -> str:
    if not isinstance(values, dict):
        return as_text(values)  # type: ignore[arg-type]  # a value of JSON
    return ", ".join(as_text(value) for value in values.values())

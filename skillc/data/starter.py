"""The first program for a data file: guesses from its columns, written so that a reader can correct them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from skillc.data.profile import ColumnProfile, profile
from skillc.errors import SkillcError
from skillc.language.formatting import format_source
from skillc.language.source import Source

_MOST_LABELS = 20
_LABEL_CHARACTERS = 40
_LONG_TEXT = 20
_SMALL = 100
_ANSWERS = [
    "label",
    "labels",
    "category",
    "class",
    "intent",
    "sentiment",
    "team",
    "queue",
    "department",
    "route",
    "answer",
    "answers",
    "output",
    "target",
    "expected",
    "gold",
    "response",
    "reply",
    "completion",
    "summary",
    "translation",
    "result",
    "verdict",
    "decision",
    "priority",
    "topic",
]
_GROUPS = [
    "customer",
    "client",
    "user",
    "author",
    "account",
    "session",
    "conversation",
    "thread",
    "patient",
    "company",
    "group",
]
_SLICES = ["product", "channel", "country", "region", "language", "source", "type", "kind", "segment", "plan", "tier"]
_QUESTIONS = [
    "text",
    "question",
    "message",
    "ticket",
    "mail",
    "review",
    "body",
    "content",
    "input",
    "prompt",
    "sentence",
    "comment",
]
_RESERVED = frozenset({"and", "or", "not", "use", "none", "true", "false"})


@dataclass(frozen=True, slots=True)
class _Guess:
    """What each column is taken for."""

    inputs: tuple[ColumnProfile, ...]
    output: ColumnProfile
    group: ColumnProfile | None
    slice: ColumnProfile | None
    others: tuple[ColumnProfile, ...]


RULEBOOK_MODELS = (
    "# Not a language model: a small rule reader that ships with skillc and needs no key. Put a real one here,\n"
    '# such as "openai/gpt-5.5-mini", when you have one.\n'
    'model target    = "rulebook/v1"\nmodel optimizer = "rulebook/v1"'
)


def starter_program(path: Path, relative_to: Path | None = None, models: str = RULEBOOK_MODELS) -> str:
    """A `.skill` program for a CSV, JSONL or JSON file.

    The output is the column that looks most like an answer, by its name and by how few different values it has;
    the inputs are the longer texts among the rest. The models are `rulebook/v1` by default, which needs no key.

    Args:
        path: the data.
        relative_to: the folder that the program is to stand in; None is the data's own.
        models: the statements of `target` and `optimizer`.

    Raises:
        SkillcError: the file cannot be read, or has no two columns to learn from.
    """
    columns = profile(path)
    guess = _guess(columns, path.name)
    names = _names([*guess.inputs, guess.output, *(c for c in (guess.group, guess.slice) if c)])
    goal = next(name for name in ("correct", "score", "right", "hit", "goal_score") if name not in names.values())
    parts = [
        _head(path, columns[0].rows),
        "language 1",
        _task(guess, names),
        _skill(guess, names),
        models,
        _data(guess, names, _source(path, relative_to)),
        f"# What is to become better.\ngoal {goal} = {_metric(guess.output, names)}",
        _budget(guess),
        _gates(guess, names, goal),
    ]
    text = "\n\n".join(parts) + "\n"
    return format_source(Source(path.name, text)).text or text


# ---- guesses --------------------------------------------------------------------------------------


def _guess(columns: Sequence[ColumnProfile], file: str) -> _Guess:
    usable = [c for c in columns if c.name.lower() != "id" and c.name.strip() and c.empty < c.rows]
    if len(usable) < 2:
        raise SkillcError(
            f"`{file}` has no two columns to learn from",
            hint="it needs what goes in and, for each row, the right answer",
        )
    output = max(usable, key=lambda c: _answer_likeness(c, usable))
    rest = [c for c in usable if c is not output]
    texts = [c for c in rest if c.kind == "text" and c.mean_length >= _LONG_TEXT]
    group = next((c for c in rest if c not in texts and _repeats(c) and _named(c, _GROUPS)), None)
    few = [c for c in rest if c not in texts and c is not group and _is_slice(c)]
    sliced = next((c for c in few if _named(c, _SLICES)), None)
    inputs = texts or [c for c in rest if c is not group] or rest
    if sliced in inputs:
        sliced = None
    used = [*inputs, output, group, sliced]
    others = tuple(c for c in rest if not any(c is u for u in used))
    return _Guess(tuple(inputs), output, None if group in inputs else group, sliced, others)


def _answer_likeness(column: ColumnProfile, columns: Sequence[ColumnProfile]) -> tuple[int, int]:
    """Points for a name like `label`, for few values, for being complete; of equals the last column wins."""
    points = 4 * _named(column, _ANSWERS) + 2 * (_labels(column) is not None) + 2 * (column.empty == 0)
    points -= 3 * (_named(column, _GROUPS) + _named(column, _SLICES) + _named(column, _QUESTIONS))
    points -= 2 * (column.kind == "text" and column.mean_length > 200)
    return points, columns.index(column)


def _named(column: ColumnProfile, words: Iterable[str]) -> bool:
    parts = re.split(r"[\W_]+", re.sub(r"(?<=[a-z])(?=[A-Z])", " ", column.name).lower())
    return not set(parts).isdisjoint(words)


def _labels(column: ColumnProfile) -> tuple[str, ...] | None:
    """The values as labels, the frequent ones first; None where there are too many, or too long ones."""
    filled = column.rows - column.empty
    few = 2 <= column.distinct <= _MOST_LABELS and 2 * column.distinct <= filled
    if column.kind != "text" or not few or column.longest > _LABEL_CHARACTERS or column.lines:
        return None
    return tuple(sorted(column.values, key=lambda value: (-column.values[value], value)))


def _repeats(column: ColumnProfile) -> bool:
    return column.kind in ("text", "integer") and column.empty == 0 and 2 < column.distinct < column.rows


def _is_slice(column: ColumnProfile) -> bool:
    return column.kind == "text" and column.empty == 0 and 2 <= column.distinct <= _MOST_LABELS


# ---- text -----------------------------------------------------------------------------------------


def _names(columns: Sequence[ColumnProfile]) -> dict[str, str]:
    """By column, a name that the language can write; no two alike."""
    names: dict[str, str] = {}
    for column in columns:
        name = column.name
        if not _writable(name):
            name = "".join(c if _writable(f"a{c}") else "_" for c in name.lower()).strip("_")
            name = name if _writable(name) else f"column_{name}".rstrip("_")
        if name in _RESERVED:
            name += "_column"
        free, number = name, 2
        while free in names.values():
            free, number = f"{name}_{number}", number + 1
        names[column.name] = free
    return names


def _writable(name: str) -> bool:
    return name.isidentifier() and re.fullmatch(r"[^\W\d]\w*", name) is not None


def _head(path: Path, rows: int) -> str:
    program = f"{path.stem}.skill"
    return (
        f"# A first program for {_one_line(path.name)}, {rows:,} rows. What goes in, what comes out and\n"
        "# what groups the rows was guessed from the columns: read it once, and correct it. Then:\n#\n"
        f"#     skillc plan {_one_line(program)}         # what may a compile cost, at most?\n"
        f"#     skillc compile {_one_line(program)}      # learn, gate, test, write SKILL.md"
    )


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _quoted(text: str) -> str:
    plain = {"\n": "\\n", "\t": "\\t", "\r": "\\r", '"': '\\"', "\\": "\\\\"}
    return '"' + "".join(plain.get(c) or (c if c.isprintable() else f"\\u{{{ord(c):x}}}") for c in text) + '"'


def _column(column: ColumnProfile, names: dict[str, str]) -> str:
    return "" if names[column.name] == column.name else f" {{ column = {_quoted(column.name)} }}"


def _type(column: ColumnProfile, *, labels: bool = False) -> str:
    kind = {"list": "list[text]"}.get(column.kind, column.kind)
    known = _labels(column) if labels else None
    if known:
        kind = " | ".join(map(_quoted, known))
    elif labels and column.kind == "list" and _any_of(column):
        kind = "text"
    return f"{kind} | none" if column.empty else kind


def _any_of(column: ColumnProfile) -> bool:
    """Whether a list of answers is likely to mean that any of them is right."""
    return column.name.lower() in ("answers", "aliases", "golds")


def _task(guess: _Guess, names: dict[str, str]) -> str:
    lines = [f"  input  {names[c.name]}: {_type(c)}{_column(c, names)}" for c in guess.inputs]
    output = guess.output
    lines.append(f"  output {names[output.name]}: {_type(output, labels=True)}{_column(output, names)}")
    if output.empty:
        rows = "1 row has" if output.empty == 1 else f"{output.empty:,} rows have"
        lines.append(f"  # {rows} no answer, so `none` counts as one: write theirs into the data if they have one.")
    return "\n".join(["task {", *lines, "}"])


def _skill(guess: _Guess, names: dict[str, str]) -> str:
    given = " and ".join("the " + names[c.name].replace("_", " ") for c in guess.inputs[:3])
    wanted = names[guess.output.name]
    told = wanted.replace("_", " ")
    verb = "Choose" if _labels(guess.output) else "Give"
    name = f"{verb.lower()}_{wanted}".lower()[:64]
    return f"""skill {name} {{
  # What a model reads to decide whether to load the skill: say what it is for, and when.
  about = "{verb} the right {told}, given {given}."

  # What must never change is frozen: no optimizer can touch it.
  frozen section role = \"\"\"
    You are given {given}. {verb} the right {told}.
  \"\"\"
  # They start empty: what stands here after a compile was learnt, and has passed the gates. The skill is read, and paid
  # for, each time, so each has a limit.
  trainable section rules {{ limit = 800 tokens }}
  slow section guidance {{ limit = 300 tokens }}
}}"""


def _source(path: Path, folder: Path | None) -> str:
    """The data's path as the program writes it: from its own folder, with slashes."""
    return Path(os.path.relpath(path, folder)).as_posix() if folder is not None else path.name


def _data(guess: _Guess, names: dict[str, str], source: str) -> str:
    lines = [f"  source = {_quoted(source)}"]
    for column in (guess.group, guess.slice):
        if column:
            lines.append(f"  field {names[column.name]}: {_type(column)}{_column(column, names)}")
    lines.append(f"  {_split(guess)}")
    if guess.group:
        lines.append(f"  group = {names[guess.group.name]}    # its rows are alike, so they stay on one side")
    else:
        lines.append("  # group = ...    # a field whose rows are alike, such as the customer: they stay on one side")
    lines.append("  seed  = 7")
    if guess.others:
        rest = ", ".join(_one_line(c.name)[:40] for c in guess.others[:12])
        lines.append(f"  # not used: {rest}")
    return "\n".join(["data {", *lines, "}"])


def _budget(guess: _Guess) -> str:
    # So few examples make fewer steps than patience would wait.
    patience = "" if _counted(guess) else "  patience = 8 steps\n"
    return f"budget {{\n  epochs = 4\n{patience}  time = 20 min\n}}"


def _counted(guess: _Guess) -> bool:
    """Whether the split is in numbers of examples: shares of so few may leave a side empty."""
    return 3 <= guess.output.rows < _SMALL and not guess.group


def _split(guess: _Guess) -> str:
    rows = guess.output.rows
    if not _counted(guess):
        return "split = 2 : 1 : 2    # train : validation : test"
    validation = max(1, rows // 5)
    test = max(1, rows * 2 // 5)
    counts = (rows - validation - test, validation, test)
    return f"split = {' : '.join(f'{n} examples' for n in counts)}    # train : validation : test"


def _metric(column: ColumnProfile, names: dict[str, str]) -> str:
    name = names[column.name]
    if column.kind in ("integer", "number"):
        return f"numeric({name})"
    if column.kind == "json":
        return f"json_fields({name})"
    short = _labels(column) is not None or column.kind == "bool" or column.mean_length <= _LABEL_CHARACTERS
    return f"exact_match({name})" if short and (column.kind != "list" or _any_of(column)) else f"f1({name})"


def _gates(guess: _Guess, names: dict[str, str], goal: str) -> str:
    lines = [
        "# A change is kept only if all of these hold.",
        f"gate better = candidate.{goal} > incumbent.{goal}",
        "gate steady = change(candidate) <= 30%    # one step may not rewrite the skill",
    ]
    if guess.slice:
        by = names[guess.slice.name]
        lines.append(f"gate safe   = regressed({goal}, by = {by}) <= 10%    # no {by} pays for the others' progress")
    return "\n".join(lines)

"""The first program for a data file: guesses from its columns, written so that a reader can correct them."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from skillc.data.columns import ColumnProfile, profile
from skillc.data.problems import closest_name, name_list
from skillc.data.split import written
from skillc.dataclass import dataclass
from skillc.errors import SkillcError
from skillc.plan.existing import WHOLE_TEXT, Existing, literal_text
from skillc.syntax.formatting import format_source
from skillc.syntax.literals import quote
from skillc.syntax.source import Source
from skillc.text import counted, free_name, joined, listed

_MOST_LABELS = 20
_LABEL_CHARACTERS = 40
_LONG_TEXT = 20
_LONG_ANSWER = 400
_SMALL = 100
_LABEL_NAMES = {"label", "labels", "category", "class", "intent", "sentiment", "topic", "priority"}
_ROUTE_NAMES = {"team", "queue", "department", "route", "verdict", "decision"}
_REPLY_NAMES = {"answer", "answers", "response", "reply", "completion", "summary", "translation"}
_TARGET_NAMES = {"output", "target", "expected", "gold", "result"}
_ANSWERS = _LABEL_NAMES | _ROUTE_NAMES | _REPLY_NAMES | _TARGET_NAMES
_PEOPLE = {"customer", "client", "user", "author", "account", "patient", "company"}
_GROUPS = _PEOPLE | {"session", "conversation", "thread", "group"}
_SLICES = {"product", "channel", "country", "region", "language", "source", "type", "kind", "segment", "plan", "tier"}
_TEXTS = {"text", "body", "content", "input", "prompt", "sentence", "question"}
_QUESTIONS = _TEXTS | {"message", "ticket", "mail", "review", "comment"}
_FILES = ("image", "file")
EVAL_COLUMNS = frozenset({"prompt", "expected_output", "files", "assertions"})
_RESERVED = frozenset({"and", "or", "not", "use", "none", "true", "false"})


@dataclass(frozen=True, slots=True)
class ColumnChoice:
    """The columns that the user chose; the others are guessed.

    Attributes:
        judged: the output of data without right answers, which a judge scores.
    """

    answers: tuple[str, ...] = ()
    inputs: tuple[str, ...] = ()
    group: str | None = None
    judged: str | None = None


@dataclass(frozen=True, slots=True)
class Frame:
    """What the writer of a data file knows of it, which no guess finds.

    Attributes:
        head: the comment at the top of the program.
        fields: text columns that are declared without being used.
        statements: whether the column `assertions` has the statements that a judge answers about the judged output.
        split: the value of `split`; empty for the default.
        batch: examples in a batch; 0 for the default.
    """

    head: str
    fields: tuple[str, ...] = ()
    statements: bool = False
    split: str = ""
    batch: int = 0


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a column or a metric is used.

    Attributes:
        role: `input`, `answer`, `group`, `compare by`, `metric` or `not used`.
        subject: the column, or the metric.
        why: one phrase.
    """

    role: str
    subject: str
    why: str


@dataclass(frozen=True, slots=True)
class StarterProgram:
    """A first program, and the reason for each choice in it."""

    text: str
    rows: int
    reasons: tuple[Reason, ...]


@dataclass(frozen=True, slots=True)
class _Guess:
    """The role of each column; `judged` if the output is none of them, and a judge scores it.

    `evals` if the data is an `evals.json`, whose assertions are what the judge is asked.
    """

    inputs: tuple[ColumnProfile, ...]
    outputs: tuple[ColumnProfile, ...]
    group: ColumnProfile | None
    slice: ColumnProfile | None
    others: tuple[ColumnProfile, ...]
    judged: bool = False
    evals: bool = False
    split: str = ""
    fields: tuple[str, ...] = ()


RULEBOOK_MODELS = (
    "# Not a language model: a small rule reader that ships with skillc and needs no key. Put a real one here,\n"
    '# such as "openai/gpt-5.5-mini", when you have one.\n'
    'model target    = "rulebook/v1"\nmodel optimizer = "rulebook/v1"'
)


_EMPTY = "It starts empty. What is here after a compile was learned and has passed the gates."
_REFEREE = (
    "# The judge. One of another family than the target's does not favour its own kind.\nmodel referee   = optimizer"
)


def start(
    path: Path,
    relative_to: Path | None = None,
    choice: ColumnChoice | None = None,
    existing: Existing | None = None,
    models: str = RULEBOOK_MODELS,
    frame: Frame | None = None,
) -> StarterProgram:
    """Write a `.skill` program for a data file.

    The answer is the most likely column by its name and its number of distinct values; the inputs are the longer texts
    among the rest. The models are `rulebook/v1` by default, which needs no key.

    Args:
        path: the data.
        relative_to: the folder that the program will be in; None is the data's own.
        choice: columns that the user names.
        existing: a skill to start from.
        models: the statements of `target` and `optimizer`.
        frame: what is known of the data beside its columns.

    Raises:
        SkillcError: the file cannot be read, has too few usable columns, or lacks a chosen column.
    """
    columns = profile(path)
    choice = choice or ColumnChoice()
    evals = {column.name for column in columns} >= EVAL_COLUMNS and choice == ColumnChoice()
    guess = _guess_evals(columns) if evals else _guess(columns, path.name, choice)
    if frame is not None:
        used = {*frame.fields, *(["assertions"] if frame.statements else [])}
        others = tuple(column for column in guess.others if column.name not in used)
        guess = replace(guess, evals=frame.statements, split=frame.split, fields=frame.fields, others=others)
    names = _names([*guess.inputs, *guess.outputs, *(c for c in (guess.group, guess.slice) if c)])
    goals = ("correct", "score", "right", "hit", "goal_score", "goal_mean")[guess.judged :]
    goal = next(name for name in goals if name not in names.values())
    source = Path(os.path.relpath(path, relative_to)).as_posix() if relative_to is not None else path.name
    parts = [
        _head(path, columns[0].rows) if frame is None else frame.head,
        "language 1",
        _task(guess, names),
        _skill(guess, names) if existing is None else _existing(existing, guess, names),
        f"{models}\n{_REFEREE}" if guess.judged else models,
        _data(guess, names, source),
        *([_rubric(guess, names)] if guess.judged else []),
        f"# The metric to improve.\ngoal {goal} = {_goal(guess, names)}",
        *([f"optimize {{ batch = {frame.batch} }}    # train is small"] if frame is not None and frame.batch else []),
        _budget(guess),
        _gates(guess, names, goal),
    ]
    text = "\n\n".join(parts) + "\n"
    text = format_source(Source(path.name, text)).text or text
    return StarterProgram(text, columns[0].rows, tuple(_reasons(guess, names, choice)))


# ---- guesses --------------------------------------------------------------------------------------


def _guess(columns: Sequence[ColumnProfile], file: str, choice: ColumnChoice) -> _Guess:
    named = {name: _column_of(name, columns, file) for name in (*choice.answers, *choice.inputs)}
    answers = tuple(dict.fromkeys(named[name].name for name in choice.answers))
    both = [column.name for name in choice.inputs if (column := named[name]).name in answers]
    if both:
        raise SkillcError(f"column `{both[0]}` is both --answer and --input", hint="name it once")
    chosen_group = None if choice.group is None else _column_of(choice.group, columns, file)
    if chosen_group is not None and chosen_group.name in answers:
        raise SkillcError(f"column `{chosen_group.name}` is both --answer and --group", hint="name it once")
    usable = [c for c in columns if c.name.lower() != "id" and c.name.strip() and c.empty < c.rows]
    if len(usable) < (2 if choice.judged is None else 1):
        if choice.judged is not None:
            raise SkillcError(f"`{file}` has no usable column", hint="it needs an input column")
        raise SkillcError(
            f"`{file}` has fewer than two usable columns",
            hint="it needs an input column and a column with the right answer of each row; without right answers, name "
            "what a judge scores: `--judge reply`",
        )
    candidates = [c for c in usable if c.name not in choice.inputs and c is not chosen_group] or usable
    if choice.judged is not None:
        outputs: tuple[ColumnProfile, ...] = (_judged_output(choice, columns, file),)
    else:
        outputs = tuple(named[name] for name in choice.answers) or (
            max(candidates, key=lambda c: _answer_likeness(c, candidates)),
        )
    rest = [c for c in usable if not any(c is output for output in outputs)]
    texts = [c for c in rest if c.kind in _FILES or (c.kind == "text" and c.mean_length >= _LONG_TEXT)]
    group = chosen_group or next((c for c in rest if c not in texts and _repeats(c) and _named(c, _GROUPS)), None)
    complete = [c for c in rest if c not in texts and c is not group and c.kind == "text" and c.empty == 0]
    sliced = next((c for c in complete if 2 <= c.distinct <= _MOST_LABELS and _named(c, _SLICES)), None)
    chosen = [named[name] for name in dict.fromkeys(choice.inputs)]
    inputs = chosen or [c for c in texts if c is not chosen_group] or [c for c in rest if c is not group] or rest
    if not inputs:
        raise SkillcError(f"`{file}` has no column left for the input", hint="name fewer with --answer")
    if any(sliced is column for column in inputs):
        sliced = None
    if chosen_group is None and any(group is column for column in inputs):
        group = None
    used = [*inputs, *outputs, group, sliced]
    others = tuple(c for c in columns if not any(c is u for u in used))
    return _Guess(tuple(inputs), outputs, group, sliced, others, judged=choice.judged is not None)


def _guess_evals(columns: Sequence[ColumnProfile]) -> _Guess:
    """Return the roles of the columns of an `evals.json`."""
    prompt, files, used = (_by_name(columns, name) for name in ("prompt", "files", "assertions"))
    rows = columns[0].rows
    answer = ColumnProfile("answer", csv=False, rows=rows, characters=rows * _LONG_ANSWER, kinds={"text": rows})
    has_files = any(value != "[]" for value in files.values)
    inputs = (prompt, files) if has_files else (prompt,)
    others = tuple(each for each in columns if each not in (*inputs, used) and each.name != "id")
    return _Guess(inputs, (answer,), None, None, others, judged=True, evals=True)


def _by_name(columns: Sequence[ColumnProfile], name: str) -> ColumnProfile:
    return next(column for column in columns if column.name == name)


def _judged_output(choice: ColumnChoice, columns: Sequence[ColumnProfile], file: str) -> ColumnProfile:
    """Return the profile of an output that no column has.

    Raises:
        SkillcError: a column has it, or the user names right answers too.
    """
    name, rows = choice.judged or "", columns[0].rows
    if choice.answers:
        raise SkillcError("`--judge` is for data without right answers", hint="leave out `--answer` or `--judge`")
    if any(column.name == name for column in columns):
        hint = f"leave out `--judge` and write `--answer {name}` if it has the right answers, else choose another name"
        raise SkillcError(f"`{file}` has a column `{name}`", hint=hint)
    if not _writable(name) or name in _RESERVED:
        raise SkillcError(f"`{name}` is not a name for an output", hint="use letters, digits and `_`: `--judge reply`")
    return ColumnProfile(name, csv=False, rows=rows, characters=rows * _LONG_ANSWER, kinds={"text": rows})


def _column_of(name: str, columns: Sequence[ColumnProfile], file: str) -> ColumnProfile:
    """Return a column that the user chose.

    Raises:
        SkillcError: the file lacks it, or it has no value.
    """
    found = next((column for column in columns if column.name == name), None)
    if found is None:
        known = [column.name for column in columns]
        near = closest_name(name, known)
        raise SkillcError(
            f"`{file}` has no column `{name}`",
            hint=f"did you mean `{near}`?" if near else f"columns: {name_list(known)}",
        )
    if found.empty == found.rows:
        raise SkillcError(f"column `{name}` of `{file}` has no value")
    return found


def _reasons(guess: _Guess, names: dict[str, str], choice: ColumnChoice) -> Iterator[Reason]:
    """Yield the role of each column with the reason."""
    if guess.evals:
        yield Reason("input", listed(column.name for column in guess.inputs), "an `evals.json` of Agent Skills")
        yield Reason("output", guess.outputs[0].name, "what the model answers; an eval describes it, and has none")
        yield Reason("metric", _goal(guess, names), "the share of the assertions that hold; code checks what it can")
        if guess.others:
            yield Reason("not used", name_list([column.name for column in guess.others]), "declare a field to use one")
        return
    for column in guess.inputs:
        if column.kind in _FILES and not choice.inputs:
            yield Reason("input", column.name, f"its values are paths of {column.kind}s")
            continue
        long = column.kind == "text" and column.mean_length >= _LONG_TEXT
        why = f"text of {column.mean_length:,.0f} characters on average" if long else "no longer text is left"
        yield Reason("input", column.name, "named by --input" if choice.inputs else why)
    for column in guess.outputs if not guess.judged else ():
        likely = "named like an answer" if _named(column, _ANSWERS) else "looks most like an answer"
        why = f"{likely}, {column.distinct} values: labels" if _labels(column) else f"{likely}: {column.kind}"
        yield Reason("answer", column.name, "named by --answer" if choice.answers else why)
    if guess.judged:
        yield Reason("output", guess.outputs[0].name, "named by --judge: the data has no right answers")
    if guess.group:
        group = guess.group
        why = "named by --group" if choice.group else f"named like one, {group.distinct:,} values repeat"
        yield Reason("group", group.name, f"{why}: rows that share a value stay on one side of the split")
    else:
        yield Reason("group", "none", "no column is named like a customer, user or session")
    if guess.slice:
        yield Reason("compare by", guess.slice.name, f"{guess.slice.distinct} values: no value may get worse")
    why = "a judge scores it by the rubric `quality`: write down what is good"
    if not guess.judged:
        why = "; ".join(dict.fromkeys(map(_metric_reason, guess.outputs)))
    yield Reason("metric", _goal(guess, names), why)
    if guess.others:
        yield Reason("not used", name_list([column.name for column in guess.others]), "declare a field to use one")


def _metric_reason(column: ColumnProfile) -> str:
    if _labels(column) or column.kind == "bool":
        return "a label is right or wrong"
    return {
        "integer": "a number is right or wrong",
        "number": "a number is right or wrong",
        "json": "the share of right fields",
    }.get(column.kind, "a short text is right or wrong" if _is_short(column) else "the share of common words")


def _answer_likeness(column: ColumnProfile, columns: Sequence[ColumnProfile]) -> tuple[int, int]:
    """Score a column as the answer by its name, number of values and gaps; of equal ones the last wins."""
    points = 4 * _named(column, _ANSWERS) + 2 * (_labels(column) is not None) + 2 * (column.empty == 0)
    points -= 3 * (_named(column, _GROUPS) + _named(column, _SLICES) + _named(column, _QUESTIONS))
    points -= 2 * (column.kind == "text" and column.mean_length > 200)
    return points, columns.index(column)


def _named(column: ColumnProfile, words: Iterable[str]) -> bool:
    parts = re.split(r"[\W_]+", re.sub(r"(?<=[a-z])(?=[A-Z])", " ", column.name).lower())
    return not set(parts).isdisjoint(words)


def _labels(column: ColumnProfile) -> tuple[str, ...] | None:
    """Return the values as labels, most frequent first; None if there are too many or too long ones."""
    filled = column.rows - column.empty
    few = 2 <= column.distinct <= _MOST_LABELS and 2 * column.distinct <= filled
    if column.kind != "text" or not few or column.longest > _LABEL_CHARACTERS or column.lines:
        return None
    return tuple(sorted(column.values, key=lambda value: (-column.values[value], value)))


def _repeats(column: ColumnProfile) -> bool:
    return column.kind in ("text", "integer") and column.empty == 0 and 2 < column.distinct < column.rows


# ---- text -----------------------------------------------------------------------------------------


def _names(columns: Sequence[ColumnProfile]) -> dict[str, str]:
    """Return a valid and unique name for each column."""
    names: dict[str, str] = {}
    for column in columns:
        name = column.name
        if not _writable(name):
            name = "".join(c if _writable(f"a{c}") else "_" for c in name.lower()).strip("_")
            name = name if _writable(name) else f"column_{name}".rstrip("_")
        if name in _RESERVED:
            name += "_column"
        names[column.name] = free_name(name, names.values())
    return names


def _writable(name: str) -> bool:
    return name.isidentifier() and re.fullmatch(r"[^\W\d]\w*", name) is not None


def _head(path: Path, rows: int) -> str:
    program = f"{path.stem}.skill"
    return (
        f"# A first program for {_one_line(path.name)}, {rows:,} rows. Inputs, outputs and\n"
        "# groups were guessed from the columns: read it once, and correct it. Then:\n#\n"
        f"#     skillc plan {_one_line(program)}         # what may a compile cost, at most?\n"
        f"#     skillc compile {_one_line(program)}      # learn, gate, test, write SKILL.md"
    )


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _column(column: ColumnProfile, names: dict[str, str]) -> str:
    return "" if names[column.name] == column.name else f" {{ column = {quote(column.name)} }}"


def _type(column: ColumnProfile, *, labels: bool = False) -> str:
    kind = {"list": "list[text]"}.get(column.kind, column.kind)
    if column.name == "files" and column.kind == "list":
        kind = "list[file]" if all(_names_files(column, value) for value in column.values) else kind
    known = _labels(column) if labels else None
    if known:
        kind = " | ".join(map(quote, known))
    elif labels and column.kind == "list" and _any_of(column):
        kind = "text"
    return f"{kind} | none" if column.empty else kind


def _names_files(column: ColumnProfile, value: str) -> bool:
    """Return whether a list, as JSON, has the paths of files."""
    paths = json.loads(value)
    return column.folder is not None and all(isinstance(p, str) and (column.folder / p).is_file() for p in paths)


def _any_of(column: ColumnProfile) -> bool:
    """Return whether any answer of a list is likely to be right."""
    return column.name.lower() in ("answers", "aliases", "golds")


def _task(guess: _Guess, names: dict[str, str]) -> str:
    lines = [f"  input  {names[c.name]}: {_type(c)}{_column(c, names)}" for c in guess.inputs]
    for output in guess.outputs:
        lines.append(f"  output {names[output.name]}: {_type(output, labels=True)}{_column(output, names)}")
        if output.empty:
            rows = f"{counted(output.empty, 'row')} {'has' if output.empty == 1 else 'have'}"
            lines.append(f"  # {rows} no answer, so `none` counts as one: write theirs into the data if they have one.")
    return "\n".join(["task {", *lines, "}"])


def _skill(guess: _Guess, names: dict[str, str]) -> str:
    return f"""skill {_skill_name(guess, names)} {{
  # An agent reads this to decide whether to load the skill: what it is for, and when to use it.
  about = {quote(_about(guess, names))}

  # SKILL.md starts with the task in words, made from `task` above. Text that must never change is a frozen section:
  # frozen section role = "You work for a shop that sells lamps."
  # These start empty. What is here after a compile was learned and has passed the gates. The skill is read, and paid
  # for, each time, so each section has a limit.
  trainable section rules {{ limit = {WHOLE_TEXT:_} tokens }}
  slow section guidance {{ limit = 300 tokens }}
}}"""


def _skill_name(guess: _Guess, names: dict[str, str]) -> str:
    verb = "choose" if _labels(guess.outputs[0]) else "give"
    return f"{verb}_{names[guess.outputs[0].name]}".lower()[:64]


def _about(guess: _Guess, names: dict[str, str]) -> str:
    """Describe the purpose and use of the skill."""

    def words(column: ColumnProfile) -> str:
        return names[column.name].replace("_", " ")

    given = joined([f"the {words(column)}" for column in guess.inputs[:3]])
    wanted = joined([f"the {words(column)}" for column in guess.outputs])
    labels = _labels(guess.outputs[0])
    verb = "Choose" if labels else "Give"
    of = ""
    if labels and len(guess.outputs) == 1:
        most = labels[:8]
        of = f" ({joined([*most, 'others'] if len(labels) > len(most) else most, 'or')})"
    thing = words(guess.inputs[0])
    new = f"new {thing} need" if thing.endswith("s") and not thing.endswith("ss") else f"a new {thing} needs"
    need = words(guess.outputs[0])
    need = need if need.endswith("s") and not need.endswith("ss") else f"{'an' if need[:1] in 'aeio' else 'a'} {need}"
    return " ".join(f"{verb} {wanted}{of}, given {given}. Use it whenever {new} {need}.".split())


def _existing(skill: Existing, guess: _Guess, names: dict[str, str]) -> str:
    """Return the block of an existing skill."""
    about = skill.about or _about(guess, names)
    lines = [f"  about = {quote(about)}"]
    if skill.title is not None:
        lines.append(f"  title = {quote(skill.title)}")
    if skill.frontmatter:
        lines.append(f"  frontmatter = {literal_text(skill.frontmatter, '  ')}")
    if skill.folder is not None:
        lines.append(f"  files = {quote(skill.folder)}")
    for section in skill.sections:
        settings = [] if section.title is None else [f"title = {quote(section.title)}"]
        settings += [] if section.limit is None else [f"limit = {section.limit:_} tokens"]
        settings += [] if section.file is None else [f"file = {quote(section.file)}"]
        settings += [f"about = {quote(section.about)}"] if section.about else []
        block = f" {{ {'; '.join(settings)} }}" if settings else ""
        text = literal_text(section.text, "  ")
        lines += ["", f"  {section.mode} section {section.name} = {text}{block}"]
    if not any(section.mode == "trainable" for section in skill.sections):
        name = free_name("rules", [section.name for section in skill.sections])
        why = "No section above is a list of rules, so what is learned goes here." if skill.sections else _EMPTY
        lines += ["", f"  # {why}"]
        lines.append(f"  trainable section {name} {{ limit = {WHOLE_TEXT:_} tokens }}")
    name = skill.name or _skill_name(guess, names)
    return "\n".join([f"skill {name} {{", *lines, "}"])


def _data(guess: _Guess, names: dict[str, str], source: str) -> str:
    lines = [f"  source = {quote(source)}"]
    if guess.evals:
        lines.append("  field assertions: list[text]    # what has to be true of the answer of each eval")
    lines += [f"  field {name}: text" for name in guess.fields]
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
        rest = ", ".join(_one_line(c.name)[:40] for c in guess.others[:12] if c.name.strip())
        lines.append(f"  # not used: {rest}")
    return "\n".join(["data {", *lines, "}"])


def _budget(guess: _Guess) -> str:
    # So few examples make fewer steps than patience would wait.
    patience = "" if _counted(guess) else "  patience = 8 steps\n"
    return f"budget {{\n  epochs = 4\n{patience}  time = 20 min\n}}"


def _counted(guess: _Guess) -> bool:
    """Return whether to split by counts, because shares of few examples may leave a side empty."""
    return bool(guess.split) or (3 <= guess.outputs[0].rows < _SMALL and not guess.group)


def _split(guess: _Guess) -> str:
    rows = guess.outputs[0].rows
    if guess.split:
        return f"split = {guess.split}    # train : validation : test"
    if not _counted(guess):
        return "split = 2 : 1 : 2    # train : validation : test"
    validation = max(1, rows // 5)
    test = max(1, rows * 2 // 5)
    counts = (rows - validation - test, validation, test)
    return f"split = {' : '.join(written(n) for n in counts)}    # train : validation : test"


def _rubric(guess: _Guess, names: dict[str, str]) -> str:
    if guess.evals:
        return (
            "# Each assertion is a question to the judge, unless code can check it (docs/guides/formats.md).\n"
            "rubric met { each = assertions }"
        )
    given, wanted = (names[each[0].name].replace("_", " ") for each in (guess.inputs, guess.outputs))
    return f'''# What the judge scores by. Write down what is good and bad: a judge is as good as its rubric.
rubric quality = """
  Is the {wanted} right for the {given}?
  3  it does all that is asked for, and nothing in it is wrong
  2  it does most of it
  1  it is wrong, or beside the question
"""'''


def _goal(guess: _Guess, names: dict[str, str]) -> str:
    if guess.evals:
        return f"judge({names[guess.outputs[0].name]}, met, model = referee)"
    if guess.judged:
        return f"judge({names[guess.outputs[0].name]}, quality, model = referee)"
    metrics = [_metric(column, names) for column in guess.outputs]
    return metrics[0] if len(metrics) == 1 else f"({' + '.join(metrics)}) / {len(metrics)}"


def _is_short(column: ColumnProfile) -> bool:
    return column.mean_length <= _LABEL_CHARACTERS


def _metric(column: ColumnProfile, names: dict[str, str]) -> str:
    name = names[column.name]
    if column.kind in ("integer", "number"):
        return f"numeric({name})"
    if column.kind == "json":
        return f"json_fields({name})"
    short = _labels(column) is not None or column.kind == "bool" or _is_short(column)
    return f"exact_match({name})" if short and (column.kind != "list" or _any_of(column)) else f"f1({name})"


def _gates(guess: _Guess, names: dict[str, str], goal: str) -> str:
    lines = [
        "# A change is kept only if all of these hold.",
        f"gate better = candidate.{goal} > incumbent.{goal}",
        "gate steady = change(candidate) <= 50%    # one step may not rewrite a grown skill",
    ]
    if guess.slice:
        by = names[guess.slice.name]
        lines.append(f"gate safe   = regressed({goal}, by = {by}) <= 10%    # no {by} pays for the others' progress")
    return "\n".join(lines)

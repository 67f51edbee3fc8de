"""The examples of a program by split, and their sizes for the bounds of a plan."""

from __future__ import annotations

import gc
import hashlib
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import field
from functools import lru_cache
from pathlib import Path

from pydantic import JsonValue

from skillc.budget.spend import Extent, Sizes
from skillc.data.attachments import image_label, paths_in, read_image
from skillc.data.columns import DataColumn, DataFile, columns_of, convert_row
from skillc.data.problems import Problems, closest_name, location_text, name_list
from skillc.data.read import Row, is_csv, read_rows
from skillc.data.split import SIDES, Side, rank, split_groups
from skillc.data.withdrawn import SESSION, withdrawn_near
from skillc.dataclass import dataclass
from skillc.errors import SkillcError
from skillc.images import image_tokens, most_image_tokens, require_pillow, scaled_size
from skillc.json_values import JsonObject, as_text, canonical_ascii
from skillc.language.rollouts import STARTS_FROM_FIELDS
from skillc.outcomes import Example
from skillc.plan.judges import calls_python, compared_outputs
from skillc.plan.schema import DataPlan, Plan, SplitPlan, TaskPlan
from skillc.syntax.parser import collector_paused
from skillc.text import counted, free_name
from skillc.tokens import count_tokens

_ID_DIGITS = 12
_MANY = 20_000
_ID_COLUMN = "id"
# The assumed tokens of an answer of which no example has a right one.
_AN_ANSWER = 150


@dataclass(frozen=True, slots=True)
class Dataset:
    """Examples by side, each side in hash order.

    Attributes:
        digest: of all examples, their sides and the files that they name; the order of rows does not matter.
        warnings: one line each.
        places: file and line of each example by its id.
        cuts: tokens that were left out of an input in each example that exceeds its limit, by input.
        answered: whether any example has a right answer, or the outputs are actions in an environment.
    """

    # Left out of the repr: asyncio formats a task's result when it ends, which would take seconds.
    train: tuple[Example, ...] = field(repr=False)
    validation: tuple[Example, ...] = field(repr=False)
    test: tuple[Example, ...] = field(repr=False)
    digest: str
    warnings: tuple[str, ...] = ()
    places: Mapping[str, tuple[str, int]] = field(default_factory=dict, repr=False, compare=False)
    cuts: Mapping[str, tuple[int, ...]] = field(default_factory=dict, repr=False, compare=False)
    answered: bool = True


@dataclass(frozen=True, slots=True)
class _Draft:
    """A row on its way to an example.

    `content` is the hash of its inputs before any was cut, `whole` of all its values; `left_out` as in `TypedRow`.
    """

    file: str
    line: int
    id: str | None
    inputs: JsonObject
    gold: JsonObject
    fields: JsonObject
    content: str
    whole: str
    group: str
    left_out: Mapping[str, int]

    @property
    def place(self) -> str:
        return location_text(self.file, self.line)


def load_data(plan: Plan, root: Path) -> Dataset:
    """Read and split the data of a program, as `load`; only outputs that a metric compares need right answers."""
    return load(plan.task, plan.data, root, compared_outputs(plan), calls_python=calls_python(plan))


def load(
    task: TaskPlan,
    data: DataPlan,
    root: Path,
    compared: Mapping[str, str] | None = None,
    *,
    calls_python: bool = False,
) -> Dataset:
    """Read and split the data of a program.

    An example's id is its row's `id`, else a hash of its inputs. Its group is the value of the declared group, else a
    hash of its inputs, so that rows with the same inputs are on one side. If a declared group puts them on two, only
    the rows on test are kept, else those on validation, and a warning counts the others. Equal rows count once.

    Args:
        task: inputs and outputs.
        data: the files, fields, group, split and seed.
        root: the program's folder, from which the plan's paths and the values of `file` and `image` fields start.
        compared: the outputs that need right answers, each with the metric that compares them; None for all.
        calls_python: whether a function of the user may read right answers where there are some.

    Raises:
        SkillcError: a file or a row is wrong, an example or a group is on two sides, or a side is empty.
    """
    # The collector would visit all rows again and again, although they have no cycles.
    with collector_paused():
        dataset = _load(task, data, root, columns_of(task, data, compared), calls_python=calls_python)
        if len(dataset.train) + len(dataset.validation) + len(dataset.test) > _MANY:
            # The examples live until the end and have no cycles; each collection would visit them for 0.2 s.
            gc.freeze()
        return dataset


def load_rows(plan: Plan, root: Path, name: str) -> tuple[tuple[Example, ...], str]:
    """Read the examples of one file without splitting them; return them in hash order, and their digest.

    Raises:
        SkillcError: the file or a row is wrong.
    """
    compared, one_turn = compared_outputs(plan), plan.task.rollout.one_turn
    columns = columns_of(plan.task, plan.data, compared)
    problems = Problems()
    drafts = _read(name, columns, plan.data, root, problems, one_turn=one_turn)
    problems.check()
    drafts = _unique(drafts, problems, [])
    problems.check()
    images = {field.name: field.pixels for field in plan.task.inputs if field.type.file_kind == "image"}
    ordered, _ = _examples({"train": drafts, "validation": [], "test": []}, plan.data.seed, images, root)
    return ordered["train"], _digest(ordered, [], root)


def _load(
    task: TaskPlan, data: DataPlan, root: Path, columns: tuple[DataColumn, ...], *, calls_python: bool
) -> Dataset:
    one_turn = task.rollout.one_turn
    problems = Problems()
    warnings: list[str] = []
    if data.source is not None:
        drafts = _read(data.source, columns, data, root, problems, one_turn=one_turn)
        problems.check()
        drafts = _unique(drafts, problems, warnings)
        problems.check()
        sides = _split(drafts, data, warnings)
    else:
        by_fields = task.rollout.kind in STARTS_FROM_FIELDS
        sides = _from_files(columns, data, root, problems, warnings, one_turn=one_turn, by_fields=by_fields)
    if any(field.name == SESSION for field in data.fields):
        sides = _without_withdrawn(sides, withdrawn_near(root), warnings)
    every = [draft for side in SIDES for draft in sides[side]]
    _warn_conflicts(every, warnings)
    _warn_unanswered(every, columns, warnings, calls_python=calls_python)
    images = {field.name: field.pixels for field in task.inputs if field.type.file_kind == "image"}
    _check_scaling(every, images, root)
    ordered, places = _examples(sides, data.seed, images, root)
    read = {field.name for field in task.inputs if one_turn and field.type.file_kind == "file"}
    names = (column.field.name for column in columns if column.field.type.file_kind is not None)
    digest = _digest(ordered, [name for name in names if name not in read], root)
    cuts: dict[str, list[int]] = {}
    for draft in (draft for side in SIDES for draft in sides[side] if draft.left_out):
        for name, tokens in draft.left_out.items():
            cuts.setdefault(name, []).append(tokens)
    known = {name: tuple(tokens) for name, tokens in cuts.items()}
    return Dataset(
        ordered["train"],
        ordered["validation"],
        ordered["test"],
        digest,
        tuple(warnings),
        places,
        known,
        answered=task.rollout.kind == "environment" or any(draft.gold for draft in every),
    )


# ---- reading --------------------------------------------------------------------------------------


def _read(
    name: str, columns: tuple[DataColumn, ...], data: DataPlan, root: Path, problems: Problems, *, one_turn: bool
) -> list[_Draft]:
    path = root / name
    file = DataFile(name, is_csv(path), path.parent, root, one_turn)
    drafts: list[_Draft] = []
    for row in read_rows(path, name, problems):
        if not drafts:
            _check_group(row, columns, data)
        if file.csv and not drafts and _report_missing_columns(row, columns, file, problems):
            break
        draft = _draft(row, columns, data, file, problems)
        if draft:
            drafts.append(draft)
    return drafts


def _report_missing_columns(row: Row, columns: tuple[DataColumn, ...], file: DataFile, problems: Problems) -> bool:
    """Report a column that the whole table lacks, once."""
    missing = [c for c in columns if c.needed and c.field.column not in row.values and not c.field.type.optional]
    if missing:
        convert_row(Row(1, {**row.values}), tuple(missing), file, problems)
    return bool(missing)


def _check_group(row: Row, columns: tuple[DataColumn, ...], data: DataPlan) -> None:
    group = data.group
    if group is None or group in row.values or any(column.field.name == group for column in columns):
        return
    names = list(dict.fromkeys([*(column.field.name for column in columns), *row.values]))
    close = closest_name(group, names)
    hint = f"did you mean `{close}`?" if close else f"fields and columns: {name_list(names)}"
    raise SkillcError(f"`group = {group}` is neither a field nor a column of the data", hint=hint)


def _draft(
    row: Row, columns: tuple[DataColumn, ...], data: DataPlan, file: DataFile, problems: Problems
) -> _Draft | None:
    values = convert_row(row, columns, file, problems)
    row_id = row.values.get(_ID_COLUMN)
    if row_id is not None and (isinstance(row_id, bool) or not isinstance(row_id, str | int)):
        problems.add(file.name, row.line, "an `id` that is neither text nor an integer", "write text")
        return None
    if values is None:
        return None
    inputs = canonical_ascii(values.whole)
    content = _hash(inputs)
    # The bytes of a list of the three, without encoding the inputs twice.
    whole = _hash(f"[{inputs},{canonical_ascii(values.gold)},{canonical_ascii(values.fields)}]")
    group = content
    if data.group is not None:
        value = {**row.values, **values.gold, **values.inputs, **values.fields}.get(data.group)
        if value is None or value == "":
            message, hint = f"no value for the group `{data.group}`", "give each row its group"
            problems.add(file.name, row.line, message, hint, at=("data", None, "group"))
            return None
        group = value if isinstance(value, str) else canonical_ascii(value)
    identity = str(row_id) if row_id is not None and row_id != "" else None
    gold, fields = values.gold, values.fields
    return _Draft(file.name, row.line, identity, values.inputs, gold, fields, content, whole, group, values.left_out)


def _unique(drafts: Sequence[_Draft], problems: Problems, warnings: list[str]) -> list[_Draft]:
    """Drop equal rows without id; report duplicate ids."""
    ids: dict[str, _Draft] = {}
    wholes: set[tuple[str, str]] = set()
    kept: list[_Draft] = []
    for draft in drafts:
        if draft.id is not None:
            first = ids.setdefault(draft.id, draft)
            if first is not draft:
                hint = "give each row its own, or remove the column"
                problems.add(draft.file, draft.line, f"the id `{draft.id}` is already used at {first.place}", hint)
                continue
        elif (draft.whole, draft.group) in wholes:
            continue
        else:
            wholes.add((draft.whole, draft.group))
        kept.append(draft)
    left = len(drafts) - len(kept)
    if left and not problems.any:
        warnings.append(f"left out {counted(left, 'duplicate row')}")
    return kept


# ---- sides ----------------------------------------------------------------------------------------


def _split(drafts: Sequence[_Draft], data: DataPlan, warnings: list[str]) -> Mapping[Side, list[_Draft]]:
    plan = data.split or SplitPlan()
    of = split_groups((draft.group for draft in drafts), plan, data.seed, file=f"`{data.source}`")
    sides: dict[Side, list[_Draft]] = {side: [] for side in SIDES}
    taken: dict[str, Side] = {}
    apart = 0
    for side in reversed(SIDES):
        for draft in drafts:
            if of.get(draft.group) == side:
                if taken.setdefault(draft.content, side) == side:
                    sides[side].append(draft)
                else:
                    apart += 1
    if not (sides["train"] and sides["validation"]):
        raise SkillcError(f"all inputs of train or validation in `{data.source}` are on another side too")
    unused = sum(draft.group not in of for draft in drafts)
    if unused:
        warnings.append(f"left out {counted(unused, 'example')} beyond the counts of `split`")
    if apart:
        warnings.append(
            f"left out {counted(apart, 'example')}: the same inputs are on another side, under another `{data.group}`"
        )
    return sides


def _from_files(
    columns: tuple[DataColumn, ...],
    data: DataPlan,
    root: Path,
    problems: Problems,
    warnings: list[str],
    *,
    one_turn: bool,
    by_fields: bool,
) -> Mapping[Side, list[_Draft]]:
    files: dict[Side, str | None] = {"train": data.train, "validation": data.validation, "test": data.test}
    for side in ("train", "validation"):
        if files[side] is None:
            hint = f'write `{side} = "..."`, or one `source` that is split'
            raise SkillcError(f"the data has no {side} file", hint=hint)
    read = {
        side: _read(name, columns, data, root, problems, one_turn=one_turn) if name else []
        for side, name in files.items()
    }
    problems.check()
    # Side by side: an id on two sides is reported, while equal rows count once per side.
    seen: dict[str, _Draft] = {}
    sides: dict[Side, list[_Draft]] = {}
    for side in SIDES:
        sides[side] = _unique(read[side], problems, warnings)
        for draft in sides[side]:
            first = seen.setdefault(draft.id, draft) if draft.id is not None else draft
            if first is not draft:
                problems.add(
                    draft.file, draft.line, f"the id `{draft.id}` is already used at {first.place}", "rename one"
                )
    _check_apart(sides, data, problems, by_fields=by_fields)
    problems.check()
    return sides


def _check_apart(sides: Mapping[Side, list[_Draft]], data: DataPlan, problems: Problems, *, by_fields: bool) -> None:
    """Report examples and groups on two sides; with `by_fields`, examples differ if their fields do."""
    contents: dict[str, tuple[Side, _Draft]] = {}
    groups: dict[str, tuple[Side, _Draft]] = {}
    for side in SIDES:
        for draft in sides[side]:
            other, first = contents.setdefault(draft.whole if by_fields else draft.content, (side, draft))
            if other != side:
                problems.add(draft.file, draft.line, f"the same inputs are at {first.place}, on {other}", "keep one")
            other, first = groups.setdefault(draft.group, (side, draft))
            if other != side and data.group is not None:
                message = f"the `{data.group}` of this row is on {other} too, at {first.place}"
                problems.add(draft.file, draft.line, message, "put all rows of a group into one file")


def _without_withdrawn(
    sides: Mapping[Side, list[_Draft]], withdrawn: frozenset[str], warnings: list[str]
) -> Mapping[Side, list[_Draft]]:
    """Leave out the rows of withdrawn sessions, after the split, so that the others stay on their sides."""
    left = {
        side: [each for each in drafts if each.fields.get(SESSION) not in withdrawn] for side, drafts in sides.items()
    }
    out = sum(map(len, sides.values())) - sum(map(len, left.values()))
    if not out:
        return sides
    warnings.append(f"{counted(out, 'row')} of withdrawn sessions {'is' if out == 1 else 'are'} left out")
    for side, drafts in left.items():
        if sides[side] and not drafts:
            raise SkillcError(
                f"all examples on {side} are of withdrawn sessions",
                hint="add data, or clear a session with `skillc sessions clear`",
            )
    return left


def _warn_conflicts(drafts: Sequence[_Draft], warnings: list[str]) -> None:
    by_content: dict[str, list[_Draft]] = defaultdict(list)
    for draft in drafts:
        by_content[draft.content].append(draft)
    pairs = []
    for same in by_content.values():
        ordered = sorted(same, key=lambda draft: (draft.file, draft.line))
        other = next((draft for draft in ordered[1:] if _differ(draft.gold, ordered[0].gold)), None)
        if other:
            pairs.append((ordered[0], other))
    if pairs:
        first, other = min(pairs, key=lambda pair: (pair[0].file, pair[0].line))
        some = f"{counted(len(pairs), 'input')} {'has' if len(pairs) == 1 else 'have'}"
        warnings.append(f"{some} two different answers, the first at {first.place} and {other.place}")


def _differ(one: JsonObject, other: JsonObject) -> bool:
    """Return whether two rows have different right answers, where both have one."""
    return any(one[name] != other[name] for name in one.keys() & other.keys())


def _warn_unanswered(
    drafts: Sequence[_Draft], columns: tuple[DataColumn, ...], warnings: list[str], *, calls_python: bool
) -> None:
    """Say which outputs have no right answers in some rows, or in all where a function of the user may want them."""
    for column in columns:
        if column.needed:
            continue
        name = column.field.column
        missing = sum(column.field.name not in draft.gold for draft in drafts)
        if 0 < missing < len(drafts):
            warnings.append(f"{missing:,} of {counted(len(drafts), 'row')} have no `{name}`, and no right answer")
        elif missing and calls_python:
            warnings.append(f"no row has `{name}`, so `python` metrics are given no right answer for it")


# ---- examples -------------------------------------------------------------------------------------


def _examples(
    sides: Mapping[Side, list[_Draft]], seed: int, images: Mapping[str, int | None], root: Path
) -> tuple[Mapping[Side, tuple[Example, ...]], Mapping[str, tuple[str, int]]]:
    """Return the examples of each side in hash order, and the place of each.

    Of rows with the same inputs and no id, the second in the order of content gets the id `...-2`.
    """
    every = [(draft, side) for side in SIDES for draft in sides[side]]
    every.sort(key=lambda pair: (pair[0].whole, pair[0].group, pair[0].id or ""))
    taken = {draft.id for draft, _ in every}
    found: dict[Side, list[Example]] = {side: [] for side in SIDES}
    places: dict[str, tuple[str, int]] = {}
    for draft, side in every:
        name = draft.id
        if name is None:
            name = free_name(draft.content[:_ID_DIGITS], taken, "-")
            taken.add(name)
        labels = {
            image: label
            for image, pixels in images.items()
            if (label := _label(draft.inputs.get(image), pixels, root)) is not None
        }
        found[side].append(Example(name, draft.inputs, draft.gold, draft.fields, draft.group, labels))
        places[name] = (draft.file, draft.line)
    return {side: tuple(sorted(found[side], key=lambda e: (rank(seed, e.id), e.id))) for side in SIDES}, places


def _check_scaling(drafts: Sequence[_Draft], images: Mapping[str, int | None], root: Path) -> None:
    """Check that images above the declared dimensions can be scaled down.

    Raises:
        SkillcError: Pillow is not installed, and an image needs it.
    """
    for name, pixels in images.items():
        if pixels is None:
            continue
        paths = {path for draft in drafts for path in paths_in(draft.inputs.get(name))}
        infos = [read_image(root / path).info for path in paths]
        if any(max(info.width, info.height) > pixels for info in infos):
            require_pillow(f"`{name}` has images of more than {pixels:,} pixels a side")


def _digest(sides: Mapping[Side, tuple[Example, ...]], paths: Sequence[str], root: Path) -> str:
    total = hashlib.sha256()
    known: dict[str, bytes] = {}

    def digest_of(path: str) -> bytes:
        # Many examples may name the same file.
        if path not in known:
            known[path] = _content_digest(root / path)
        return known[path]

    for side in SIDES:
        for example in sides[side]:
            ids = ",".join(map(canonical_ascii, (side, example.id, example.group)))
            parts = ",".join(map(canonical_ascii, (example.inputs, example.gold, example.fields)))
            total.update(f"[{ids},{parts}]\n".encode())
            for name in paths:
                for values_by_name in (example.inputs, example.gold, example.fields):
                    total.update(b"".join(map(digest_of, paths_in(values_by_name.get(name)))) or b"-")
    return total.hexdigest()


def _content_digest(path: Path) -> bytes:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").digest()


def _label(value: JsonValue, pixels: int | None, root: Path) -> str | None:
    """Return the text that stands for the images of an input; None if it has none."""
    return "\n".join(image_label(path, read_image(root / path), pixels) for path in paths_in(value)) or None


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def sizes_of(plan: Plan, dataset: Dataset, root: Path) -> Sizes:
    """Count the examples, their tokens, and their groups on validation; `root` as in `load`.

    An image counts as its label among the inputs; the tokens that the target's provider charges for it are apart.
    """
    examples = (*dataset.train, *dataset.validation, *dataset.test)
    names = [field.name for field in plan.data.fields]
    images = {field.name: field.pixels for field in plan.task.inputs if field.type.file_kind == "image"}
    return Sizes(
        train=len(dataset.train),
        validation=len(dataset.validation),
        test=len(dataset.test),
        groups=len({example.group for example in dataset.test}),
        values={name: dict(Counter(str(e.fields.get(name)) for e in dataset.validation)) for name in names},
        inputs=Extent.of(_tokens({**e.inputs, **e.labels} if e.labels else e.inputs) for e in examples),
        outputs=_answer_extent(plan, dataset, examples),
        images=_image_extent(plan, examples, images, root) if images else Extent(),
        cuts={name: (len(tokens), Extent.of(tokens)) for name, tokens in dataset.cuts.items()},
        statements={
            each: _statements(each, examples)
            for each in dict.fromkeys(rubric.each for rubric in plan.rubrics.values())
            if each is not None
        },
    )


def _statements(name: str, examples: Sequence[Example]) -> tuple[Extent, Extent]:
    """Return the number of the statements of an example in a column, and their tokens."""
    values = [{**example.inputs, **example.fields}.get(name) for example in examples]
    return (
        Extent.of(len(value) if isinstance(value, list) else 1 for value in values),
        Extent.of(_tokens({name: value}) for value in values),
    )


def _answer_extent(plan: Plan, dataset: Dataset, examples: Sequence[Example]) -> Extent:
    """Return the tokens of a right answer; without any, of the labels, or of an answer as long as is assumed."""
    if dataset.answered:
        return Extent.of(_tokens(example.gold) for example in examples)
    sizes = [
        Extent.of(map(count_tokens, field.type.labels)) if field.type.labels else Extent(_AN_ANSWER, _AN_ANSWER)
        for field in plan.task.outputs
    ]
    return Extent(sum(size.mean for size in sizes), sum(size.most for size in sizes))


def _image_extent(plan: Plan, examples: Sequence[Example], images: Mapping[str, int | None], root: Path) -> Extent:
    """Return the tokens of an example's images: the mean of the estimates, and the most of the bounds."""
    model = plan.models["target"].model if "target" in plan.models else ""
    estimates, bounds = [], []
    for example in examples:
        found = [
            scaled_size(info.width, info.height, pixels)
            for name, pixels in images.items()
            for path in paths_in(example.inputs.get(name))
            for info in [read_image(root / path).info]
        ]
        estimates.append(sum(image_tokens(model, *size) for size in found))
        bounds.append(sum(most_image_tokens(model, *size) for size in found))
    return Extent(Extent.of(estimates).mean, Extent.of(bounds).most)


def _tokens(values: JsonObject) -> int:
    texts = map(as_text, values.values())
    return sum(_cached_count(text) if len(text) <= _SHORT else count_tokens(text) for text in texts)


# Labels and other short answers repeat.
_SHORT = 40
_cached_count = lru_cache(maxsize=4096)(count_tokens)

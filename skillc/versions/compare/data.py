"""Changes of the data: its files, its split, and the examples of each side."""

from __future__ import annotations

import posixpath
from collections import Counter
from collections.abc import Collection, Iterator, Mapping

from skillc.data.dataset import Dataset, load_data
from skillc.data.split import Side, split_digest
from skillc.dataclass import dataclass
from skillc.errors import SkillcError
from skillc.json_values import digest
from skillc.language.kinds import DATA_FILES
from skillc.outcomes import Example
from skillc.plan.schema import DataPlan, FieldPlan
from skillc.text import listed
from skillc.versions.change import Anchor, Change
from skillc.versions.compare.settings import entries_that_differ, fields_that_differ, render_value
from skillc.versions.version import CommitTree, DiskTree, Version


@dataclass(frozen=True, slots=True)
class ExampleDigest:
    """The side of one example, and a digest of its inputs and gold answers."""

    side: Side
    content: str


@dataclass(frozen=True, slots=True)
class ExampleSplits:
    """All examples by key.

    Attributes:
        digest: of the data, as in locks.
        test: digest of the inputs of the test split, as in locks.
    """

    rows: Mapping[str, ExampleDigest]
    digest: str
    test: str


def _data_files(data: DataPlan) -> tuple[str, ...]:
    return tuple(name for each in DATA_FILES if (name := getattr(data, each)) is not None)


def _splits_of(version: Version, other: Version, inputs: Collection[str] | None) -> ExampleSplits | str:
    """Return the examples of a version by `inputs`, or by id if None; if they cannot be read, the reason.

    The types of `other` read the data if those of `version` do not fit.
    """
    missing = _missing(version)
    if missing is not None:
        return missing
    reason = ""
    for task in (version.plan.task, other.plan.task):
        try:
            return _sides(load_data(version.plan.model_copy(update={"task": task}), version.root), inputs)
        except (SkillcError, OSError) as problem:
            reason = reason or str(problem).partition("\n")[0]
    return reason.rstrip(":")


def _missing(version: Version) -> str | None:
    """Write the data of a commit to disk; return why the first unavailable file is missing."""
    if isinstance(version.files, DiskTree):
        return None
    for name in _data_files(version.plan.data):
        path = posixpath.normpath(posixpath.join(version.folder, name.replace("\\", "/")))
        if path.startswith(("/", "..")):
            return f"`{name}` is outside the repository"
        content = version.files.read(path)
        if content is None:
            is_pointer = isinstance(version.files, CommitTree) and version.files.is_pointer(path)
            where = f"`{version.files.label}`"
            lfs = f"`{name}` of {where} is in Git LFS, and not on this machine"
            return lfs if is_pointer else f"`{name}` is not in git at {where}"
        place = version.root / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content)
    return None


def _sides(dataset: Dataset, inputs: Collection[str] | None) -> ExampleSplits:
    rows: dict[str, ExampleDigest] = {}
    by_side: dict[Side, tuple[Example, ...]] = {
        "train": dataset.train,
        "validation": dataset.validation,
        "test": dataset.test,
    }
    for side, examples in by_side.items():
        for example in examples:
            key = example.id if inputs is None else digest({name: example.inputs.get(name) for name in inputs})
            content = digest({"inputs": dict(example.inputs), "gold": dict(example.gold)})
            rows[key] = ExampleDigest(side, content)
    return ExampleSplits(rows, dataset.digest, split_digest(dataset.test))


_ANCHOR = Anchor("data")
_HINT = "keep the test split: gains on different splits do not compare, and moved examples were trained on"


def data_changes(old: Version, new: Version) -> Iterator[Change]:
    """Yield changes of the data's settings, and of the examples of each side."""
    before, after = old.plan.data, new.plan.data
    settings = list(fields_that_differ(before, after, but=("fields",)))
    for name, one, other in settings:
        anchor = Anchor("data", None, name if other is not None else None)
        if name != "group" or one is None:
            yield Change("data", name, render_value(one), render_value(other), anchor)
    if before.group is not None and before.group != after.group:
        yield _group(before.group, after.group)
    fields = list(_fields(before, after))
    yield from fields
    same_task = (old.plan.task.inputs, old.plan.task.outputs) == (new.plan.task.inputs, new.plan.task.outputs)
    if settings or fields or not same_task or not _has_same_files(old, new):
        causes = [name for name, *_ in settings if name in ("split", "group", "seed", *DATA_FILES)]
        yield from _examples(old, new, causes)


def _fields(old: DataPlan, new: DataPlan) -> Iterator[Change]:
    """Yield changes of the declared columns that gates and metrics read."""
    before, after = ({field.name: field for field in data.fields} for data in (old, new))
    for name, one, other in entries_that_differ(before, after):
        anchor = Anchor("field", name) if other is not None else _ANCHOR
        yield Change("data", f"field {name}", _field(one), _field(other), anchor)


def _field(field: FieldPlan | None) -> str | None:
    if field is None:
        return None
    column = f' {{ column = "{field.column}" }}' if field.column != field.name else ""
    return f"{field.type.text}{column}"


def _group(before: str, after: str | None) -> Change:
    message = f"examples were grouped by `{before}`, and are grouped by `{after}` now"
    if after is None:
        message = f"examples of one `{before}` are no longer on one side, so training examples may leak into test"
    anchor = Anchor("data", None, "group" if after is not None else None)
    hint = f"keep `group = {before}`"
    return Change("data", "group", before, render_value(after), anchor, "group-dropped", message, hint)


def _has_same_files(old: Version, new: Version) -> bool:
    """Return whether the data files are the same bytes, so that nothing needs to be read."""
    files = _data_files(new.plan.data)
    return all((content := new.read(name)) is not None and content == old.read(name) for name in files)


def _examples(old: Version, new: Version, causes: list[str]) -> Iterator[Change]:
    names, now = ({field.name for field in version.plan.task.inputs} for version in (old, new))
    inputs = None if names == now else sorted(names & now)
    before, after = _splits_of(old, new, inputs), _splits_of(new, old, inputs)
    if isinstance(before, ExampleSplits) and isinstance(after, ExampleSplits) and inputs != []:
        yield from _moved_examples(before, after, causes)
    else:
        yield from _by_lock(old, before, after, causes)


def _moved_examples(before: ExampleSplits, after: ExampleSplits, causes: list[str]) -> Iterator[Change]:
    old = {key: row for key, row in before.rows.items() if row.side == "test"}
    new = {key for key, row in after.rows.items() if row.side == "test"}
    gone = Counter(after.rows[key].side if key in after.rows else "gone" for key in old if key not in new)
    edited = sum(row.content != after.rows[key].content for key, row in old.items() if key in new)
    test_changed = bool(gone or edited)
    if test_changed:
        yield _changed_test(len(old), len(new), gone, edited, causes)
    for side in ("train", "validation", *([] if test_changed else ["test"])):
        one = {key for key, row in before.rows.items() if row.side == side}
        other = {key for key, row in after.rows.items() if row.side == side}
        if one != other:
            yield _resized(side, one, other, None if test_changed else "data-changed")
    if before.digest != after.digest and not edited and {*before.rows} == {*after.rows}:
        edits = sum(row.content != after.rows[key].content for key, row in before.rows.items() if row.side != "test")
        if edits:
            message = f"{edits} train or validation examples were edited"
            yield Change(
                "data", "examples", f"{len(before.rows)}", f"{edits} edited", Anchor(), "data-changed", message
            )


def _changed_test(was: int, is_: int, gone: Counter[str], edited: int, causes: list[str]) -> Change:
    counts = (
        (gone["train"], "are trained on now"),
        (gone["validation"], "are validated on now"),
        (gone["gone"], "are gone"),
        (edited, "were edited"),
    )
    parts = ", ".join(f"{count} {what}" for count, what in counts if count)
    by = f" by {listed(causes, 'and')}" if causes else ""
    message = f"the test split changed{by}: of {was} test examples {parts}"
    return _test_split_changed(message, f"{was}", f"{is_}", Anchor("data", None, causes[0]) if causes else _ANCHOR)


def _test_split_changed(message: str, was: str = "", is_: str = "", anchor: Anchor = _ANCHOR) -> Change:
    return Change("data", "test examples", was, is_, anchor, "test-split-changed", message, _HINT)


def _resized(side: str, old: set[str], new: set[str], rule: str | None) -> Change:
    added, removed = len(new - old), len(old - new)
    message = f"the {side} split has {len(new)} examples, before {len(old)}: {added} added, {removed} removed"
    before, after = f"{len(old)} examples", f"{len(new)} examples, {added} of them new"
    return Change("data", f"{side} split", before, after, _ANCHOR, rule, message)


def _by_lock(
    old: Version, before: ExampleSplits | str, after: ExampleSplits | str, causes: list[str]
) -> Iterator[Change]:
    """Compare with the lock of the old version if the data cannot be read; else report that it is unknown."""
    lock = old.lock
    if isinstance(after, ExampleSplits) and lock is not None:
        if lock.data.digest == after.digest:
            return
        if lock.tested == after.test:
            message = "the data changed, and the inputs of the test split did not"
            yield Change("data", "examples", "", "", _ANCHOR, "data-changed", message)
            return
        if lock.tested is not None:
            yield _test_split_changed("the test split differs from the tested one of the lock")
            return
    reasons = [each for each in (before, after) if isinstance(each, str)]
    reason = reasons[0] if reasons else "no input stayed the same"
    if {"split", "seed", "group"} & {*causes}:
        by = listed(causes, "and")
        yield _test_split_changed(f"the test split changed by {by}; the moved examples are unknown: {reason}")
        return
    message = f"cannot compare the test split: {reason}"
    hint = "keep the data in git, or compile, so that the lock has its digest"
    yield Change("data", "test examples", "", "", _ANCHOR, "data-not-compared", message, hint)

"""Changes of the data: where it is read from, how it is split, and which examples are on which side."""

from __future__ import annotations

import posixpath
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from skillc.data.dataset import Dataset, load
from skillc.data.split import Side, split_digest
from skillc.errors import SkillcError
from skillc.json_values import digest
from skillc.outcomes import Example
from skillc.plan.schema import DataPlan, FieldPlan
from skillc.text import listed
from skillc.versions.change import Anchor, Change
from skillc.versions.compare.settings import entries_that_differ, fields_that_differ, shown
from skillc.versions.version import CommitTree, DiskTree, Version

FILES = ("source", "train", "validation", "test")


@dataclass(frozen=True, slots=True)
class ExampleDigest:
    """One example: its side, and a digest of its inputs and its right answers."""

    side: Side
    content: str


@dataclass(frozen=True, slots=True)
class ExampleSplits:
    """All examples by key.

    Attributes:
        digest: of the data, as locks hold it.
        test: digest of the inputs of the test split, as locks hold it.
    """

    rows: Mapping[str, ExampleDigest]
    digest: str
    test: str


@dataclass(frozen=True, slots=True)
class Unreadable:
    """Why the data of a version cannot be read."""

    reason: str


def data_files(data: DataPlan) -> tuple[str, ...]:
    """Return the files that a program names."""
    return tuple(name for each in FILES if (name := getattr(data, each)) is not None)


def sides_of(version: Version, other: Version, inputs: Collection[str] | None = None) -> ExampleSplits | Unreadable:
    """Return the examples of a version.

    Args:
        version: the program in one place.
        other: the version that it is compared with, whose types read the data where its own do not fit it.
        inputs: what examples are told apart by, beside their ids: None for ids alone, which is right where both
            versions have the same inputs.
    """
    missing = _missing(version)
    if missing is not None:
        return missing
    reason = ""
    for task in (version.plan.task, other.plan.task):
        try:
            return _sides(load(task, version.plan.data, version.root), inputs)
        except (SkillcError, OSError) as problem:
            reason = reason or str(problem).partition("\n")[0]
    return Unreadable(reason.rstrip(":"))


def _missing(version: Version) -> Unreadable | None:
    """Write the data of a commit to disk; return the first file that is not available."""
    if isinstance(version.files, DiskTree):
        return None
    for name in data_files(version.plan.data):
        path = posixpath.normpath(posixpath.join(version.folder, name.replace("\\", "/")))
        if path.startswith(("/", "..")):
            return Unreadable(f"`{name}` lies outside the repository")
        content = version.files.read(path)
        if content is None:
            held = isinstance(version.files, CommitTree) and version.files.missing(path)
            where = f"`{version.files.label}`"
            lfs = f"`{name}` of {where} is kept by Git LFS, and is not on this machine"
            return Unreadable(lfs if held else f"`{name}` is not in git at {where}")
        place = version.root / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content)
    return None


def _sides(dataset: Dataset, inputs: Collection[str] | None) -> ExampleSplits:
    rows: dict[str, ExampleDigest] = {}
    by_side: tuple[tuple[Side, tuple[Example, ...]], ...] = (
        ("train", dataset.train),
        ("validation", dataset.validation),
        ("test", dataset.test),
    )
    for side, examples in by_side:
        for example in examples:
            key = example.id if inputs is None else digest({name: example.inputs.get(name) for name in inputs})
            content = digest({"inputs": dict(example.inputs), "gold": dict(example.gold)})
            rows[key] = ExampleDigest(side, content)
    return ExampleSplits(rows, dataset.digest, split_digest(dataset.test))


_PLACE = Anchor("data")
_HINT = "keep the test split as it is: a gain on another one does not compare, and examples that moved were learnt from"


def data_changes(old: Version, new: Version) -> Iterator[Change]:
    """Yield changes of the data's settings, and of the examples on test."""
    before, after = old.plan.data, new.plan.data
    settings = [_setting(name, one, other) for name, one, other in fields_that_differ(before, after, but=("fields",))]
    fields = [*_fields(before, after)]
    ungrouped = before.group is not None and before.group != after.group
    yield from (change for change in settings if not (ungrouped and change.subject == "group"))
    if before.group is not None and ungrouped:
        yield _group(before.group, after.group)
    yield from fields
    if not settings and not fields and _same_task(old, new) and _same_files(old, new):
        return
    causes = [change.subject for change in settings if change.subject in ("source", "split", "group", "seed", *FILES)]
    yield from _examples(old, new, causes)


def _setting(name: str, before: object, after: object) -> Change:
    place = Anchor("data", None, name if after is not None else None)
    return Change("data", name, shown(before), shown(after), place=place)


def _fields(old: DataPlan, new: DataPlan) -> Iterator[Change]:
    """Yield changes of the declared columns that gates and metrics read."""
    before, after = ({field.name: field for field in data.fields} for data in (old, new))
    for name, one, other in entries_that_differ(before, after):
        subject, place = f"field {name}", Anchor("field", name) if other is not None else _PLACE
        was, is_ = (_field(field, name) for field in (one, other))
        yield Change("data", subject, was, is_, place=place)


def _field(field: object, name: str) -> str | None:
    if not isinstance(field, FieldPlan):
        return None
    column = f' {{ column = "{field.column}" }}' if field.column != name else ""
    return f"{field.type.text}{column}"


def _group(before: str, after: str | None) -> Change:
    place = Anchor("data", None, "group" if after is not None else None)
    if after is None:
        message = (
            f"examples of one `{before}` are no longer kept on one side, so that what is learnt may leak into test"
        )
    else:
        message = f"examples were kept together by `{before}`, and are by `{after}` now"
    hint = f"keep `group = {before}`"
    return Change("data", "group", before, shown(after), "looser", "group-dropped", message, hint, place=place)


def _same_task(old: Version, new: Version) -> bool:
    return (old.plan.task.inputs, old.plan.task.outputs) == (new.plan.task.inputs, new.plan.task.outputs)


def _same_files(old: Version, new: Version) -> bool:
    """Return whether the data files are the same bytes, so that nothing has to be read."""
    for name in data_files(new.plan.data):
        content = new.read(name)
        if content is None or content != old.read(name):
            return False
    return True


def _examples(old: Version, new: Version, causes: list[str]) -> Iterator[Change]:
    names, now = ({field.name for field in version.plan.task.inputs} for version in (old, new))
    inputs = None if names == now else sorted(names & now)
    before, after = sides_of(old, new, inputs), sides_of(new, old, inputs)
    if isinstance(before, ExampleSplits) and isinstance(after, ExampleSplits) and inputs != []:
        yield from _compared(before, after, causes)
    else:
        yield from _by_lock(old, before, after, causes)


def _compared(before: ExampleSplits, after: ExampleSplits, causes: list[str]) -> Iterator[Change]:
    old = {key: row for key, row in before.rows.items() if row.side == "test"}
    new = {key: row for key, row in after.rows.items() if row.side == "test"}
    gone = Counter(after.rows[key].side if key in after.rows else "gone" for key in old if key not in new)
    edited = sum(row.content != new[key].content for key, row in old.items() if key in new)
    if gone or edited:
        yield _moved(len(old), len(new), gone, edited, causes)
    told = bool(gone or edited)
    for side in ("train", "validation", *([] if told else ["test"])):
        one = {key for key, row in before.rows.items() if row.side == side}
        other = {key for key, row in after.rows.items() if row.side == side}
        fresh, left = len(other - one), len(one - other)
        if fresh or left:
            yield _resized(side, len(one), len(other), fresh, left, told=told)
    if before.digest != after.digest and not edited and {*before.rows} == {*after.rows}:
        edits = sum(row.content != after.rows[key].content for key, row in before.rows.items() if row.side != "test")
        if edits:
            message = f"{edits} examples to learn from or select on were edited"
            yield Change("data", "examples", f"{len(before.rows)}", f"{edits} edited", "", "data-changed", message)


def _moved(was: int, is_: int, gone: Counter[str], edited: int, causes: list[str]) -> Change:
    said = []
    for side, words in (("train", "are trained on now"), ("validation", "are selected on now"), ("gone", "are gone")):
        if gone[side]:
            said.append(f"{gone[side]} {words}")
    if edited:
        said.append(f"{edited} were edited")
    by = f" by {listed(causes, 'and')}" if causes else ""
    message = f"the test split changed{by}: of {was} test examples {', '.join(said)}"
    place = Anchor("data", None, causes[0]) if causes else _PLACE
    return Change(
        "data", "test examples", f"{was}", f"{is_}", "unordered", "test-split-changed", message, _HINT, place=place
    )


def _resized(side: str, was: int, is_: int, fresh: int, left: int, *, told: bool) -> Change:
    message = f"the {side} split has {is_} examples where it had {was}: {fresh} new ones, {left} fewer of the old"
    rule = None if told else "data-changed"
    return Change(
        "data",
        f"{side} split",
        f"{was} examples",
        f"{is_} examples, {fresh} of them new",
        "",
        rule,
        message,
        place=_PLACE,
    )


def _by_lock(
    old: Version, before: ExampleSplits | Unreadable, after: ExampleSplits | Unreadable, causes: list[str]
) -> Iterator[Change]:
    """Compare by the lock of the old version when the data cannot be read; otherwise report that it is unknown."""
    lock = old.lock
    if isinstance(after, ExampleSplits) and lock is not None:
        if lock.data.digest == after.digest:
            return
        tests = [look.test for look in lock.looks if look.run == lock.run and look.test is not None]
        if tests and tests[-1] == after.test:
            message = "the data changed, and the inputs of the test split did not"
            yield Change("data", "examples", "", "", "", "data-changed", message, place=_PLACE)
            return
        if tests:
            message = "the test split is not the one that the lock was tested on"
            yield Change(
                "data", "test examples", "", "", "unordered", "test-split-changed", message, _HINT, place=_PLACE
            )
            return
    reasons = [each.reason for each in (before, after) if isinstance(each, Unreadable)] or ["no input stayed the same"]
    if {"split", "seed", "group"} & {*causes}:
        by = listed(causes, "and")
        message = f"the test split changed by {by}; which examples moved can't be told: {reasons[0]}"
        yield Change("data", "test examples", "", "", "unordered", "test-split-changed", message, _HINT, place=_PLACE)
        return
    message = f"whether the test split is the same can't be told: {reasons[0]}"
    hint = "keep the data in git, or compile, so that the lock names it"
    yield Change("data", "test examples", "", "", "unordered", "data-not-compared", message, hint, place=_PLACE)

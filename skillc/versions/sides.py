"""The examples of a version by side, as far as its data can be read."""

from __future__ import annotations

import posixpath
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from skillc.data.dataset import Dataset, load
from skillc.data.example import Example
from skillc.data.reuse import split_digest
from skillc.data.split import Side
from skillc.errors import SkillcError
from skillc.json_values import digest
from skillc.plan.schema import DataPlan
from skillc.versions.version import AtCommit, OnDisk, Version

FILES = ("source", "train", "validation", "test")


@dataclass(frozen=True, slots=True)
class Row:
    """One example: its side, and a digest of its inputs and its right answers."""

    side: Side
    content: str


@dataclass(frozen=True, slots=True)
class Sides:
    """All examples by key.

    Attributes:
        digest: of the data, as locks hold it.
        test: digest of the inputs of the test split, as locks hold it.
    """

    rows: Mapping[str, Row]
    digest: str
    test: str


@dataclass(frozen=True, slots=True)
class Unread:
    """Why the data of a version cannot be read."""

    reason: str


def data_files(data: DataPlan) -> tuple[str, ...]:
    """The files that a program names."""
    return tuple(name for each in FILES if (name := getattr(data, each)) is not None)


def sides_of(version: Version, other: Version, inputs: Collection[str] | None = None) -> Sides | Unread:
    """The examples of a version.

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
    return Unread(reason.rstrip(":"))


def _missing(version: Version) -> Unread | None:
    """Puts the data of a commit on the disk; the first file of it that is not to be had."""
    if isinstance(version.files, OnDisk):
        return None
    for name in data_files(version.plan.data):
        path = posixpath.normpath(posixpath.join(version.folder, name.replace("\\", "/")))
        if path.startswith(("/", "..")):
            return Unread(f"`{name}` lies outside the repository")
        content = version.files.read(path)
        if content is None:
            held = isinstance(version.files, AtCommit) and version.files.missing(path)
            where = f"`{version.files.label}`"
            lfs = f"`{name}` of {where} is kept by Git LFS, and is not on this machine"
            return Unread(lfs if held else f"`{name}` is not in git at {where}")
        place = version.root / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content)
    return None


def _sides(dataset: Dataset, inputs: Collection[str] | None) -> Sides:
    rows: dict[str, Row] = {}
    by_side: tuple[tuple[Side, tuple[Example, ...]], ...] = (
        ("train", dataset.train),
        ("validation", dataset.validation),
        ("test", dataset.test),
    )
    for side, examples in by_side:
        for example in examples:
            key = example.id if inputs is None else digest({name: example.inputs.get(name) for name in inputs})
            content = digest({"inputs": dict(example.inputs), "gold": dict(example.gold)})
            rows[key] = Row(side, content)
    return Sides(rows, dataset.digest, split_digest(dataset.test))

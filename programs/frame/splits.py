"""SkillOpt's splits: a folder with `train/`, `val/` and `test/`, each with one file of items or of ids alone.

Without such a folder, all items are drawn by SkillOpt's rule: shuffled with seed 42 and cut 2 : 1 : 7.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from skillc.data.problems import Problems
from skillc.data.read import read_rows
from skillc.errors import SkillcError
from skillc.json_values import JsonObject
from skillc.text import counted, shown

SPLITS = {"train": "train", "validation": "val", "test": "test"}
"""The splits, and the folder of each."""
RATIO = (2, 1, 7)
SEED = 42
KEYS = ("id", "key", "questionId", "uid")
"""Columns that hold the id of an item, by benchmark."""
_SHOWN = 5


def identity(item: JsonObject) -> str:
    """Return the id of an item.

    Raises:
        SkillcError: it has none.
    """
    for key in KEYS:
        value = item.get(key)
        if value is not None and str(value).strip():
            return str(value).strip()
    raise SkillcError(f"an item has no id: {shown(str(item)[:80])}", hint=f"an id is in one of {', '.join(KEYS)}")


def read_items(path: Path) -> list[JsonObject]:
    """Read a file of items: JSON, JSONL, CSV, TSV or Parquet.

    Raises:
        SkillcError: the file cannot be read, or a row of it.
    """
    problems = Problems()
    found = [row.values for row in read_rows(path, path.name, problems)]
    problems.check()
    return found


def read_splits(folder: Path) -> dict[str, list[JsonObject]]:
    """Read the items of each split.

    Raises:
        SkillcError: a split is missing, has no file or more than one, or two splits share an item.
    """
    found: dict[str, list[JsonObject]] = {}
    seen: dict[str, str] = {}
    for split, name in SPLITS.items():
        files = [each for each in sorted((folder / name).glob("*")) if each.suffix in (".json", ".jsonl", ".csv")]
        if len(files) != 1:
            what = "has no file of items" if not files else f"has {counted(len(files), 'file')}"
            raise SkillcError(
                f"`{folder / name}` {what}", hint="a split is a folder with one .json, .jsonl or .csv file"
            )
        found[split] = read_items(files[0])
        for item in found[split]:
            own = identity(item)
            if own in seen:
                raise SkillcError(f"item `{own}` is in {seen[own]} and in {split}", hint="remove it from one of them")
            seen[own] = split
    return found


def draw(items: Sequence[JsonObject]) -> dict[str, list[JsonObject]]:
    """Divide all items as SkillOpt does: shuffled with its seed, and the shares rounded by the largest remainders."""
    shuffled = list(items)
    random.Random(SEED).shuffle(shuffled)
    exact = [len(shuffled) * share / sum(RATIO) for share in RATIO]
    counts = [int(each) for each in exact]
    largest = sorted(range(len(RATIO)), key=lambda i: (exact[i] - counts[i], RATIO[i]), reverse=True)
    for i in largest[: len(shuffled) - sum(counts)]:
        counts[i] += 1
    ends = [sum(counts[: i + 1]) for i in range(len(counts))]
    return {split: shuffled[end - count : end] for split, end, count in zip(SPLITS, ends, counts, strict=True)}


def joined(splits: Mapping[str, Sequence[JsonObject]], rows: Mapping[str, JsonObject]) -> dict[str, list[JsonObject]]:
    """Return the rows of each split, by the ids of its items.

    Raises:
        SkillcError: rows are missing.
    """
    ids = {split: [identity(item) for item in items] for split, items in splits.items()}
    lost = [each for every in ids.values() for each in every if each not in rows]
    if lost:
        raise SkillcError(
            f"the benchmark's files lack {counted(len(lost), 'item')} of the splits: {_first(lost)}",
            hint="use the version of the benchmark that the splits were made for",
        )
    return {split: [rows[each] for each in every] for split, every in ids.items()}


def _first(ids: Iterable[str]) -> str:
    names = [f"`{each}`" for each in ids]
    return ", ".join(names[:_SHOWN]) + (", ..." if len(names) > _SHOWN else "")

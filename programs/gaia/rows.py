"""GAIA's own format: `metadata.jsonl` or `metadata.parquet`, with the attached files beside it."""

from __future__ import annotations

from pathlib import Path

from programs.frame.splits import read_items
from skillc.errors import SkillcError
from skillc.json_values import JsonObject

SIZES = (33, 16, 116)
"""No split is published: 2 : 1 : 7 of the 165 questions of the validation set, which has the answers."""
FILES = ("file_name",)
METADATA = ("metadata.parquet", "metadata.jsonl")
_QUESTION, _ANSWER = "Question", "Final answer"


def items(source: Path) -> list[JsonObject]:
    """Read the questions of a folder such as `2023/validation`, or of its file of metadata.

    Raises:
        SkillcError: there is no such file.
    """
    path = next((source / name for name in METADATA if (source / name).is_file()), source)
    if not path.is_file():
        raise SkillcError(
            f"`{source}` has no metadata.jsonl", hint="name the folder `2023/validation` of the benchmark"
        )
    return [{"id": item.get("task_id"), **item} for item in read_items(path)]


def row(item: JsonObject, folder: Path) -> JsonObject | None:
    """Return the columns of the program; None for an id alone.

    Raises:
        SkillcError: the answer is withheld, as in the test set.
    """
    if not item.get(_QUESTION):
        return None
    answer = str(item.get(_ANSWER) or "").strip()
    if answer in ("", "?"):
        raise SkillcError(f"question `{item['id']}` has no answer", hint="the test set has none: use `2023/validation`")
    name = str(item.get("file_name") or "")
    return {
        "id": str(item["id"]),
        _QUESTION: item[_QUESTION],
        "Level": str(item.get("Level", "")),
        _ANSWER: answer,
        "file_name": str((folder / name).resolve()) if name else None,
    }

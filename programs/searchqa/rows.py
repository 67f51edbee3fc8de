"""SearchQA's own format, as the data set `lucadiliello/searchqa` has it: `key`, `question`, `context`, `answers`."""

from __future__ import annotations

from pathlib import Path

from programs.frame.splits import identity, read_items
from skillc.errors import SkillcError
from skillc.json_values import JsonObject

SIZES = (400, 200, 1_400)
FILES = ()
LONGEST = 6_000
"""Characters of a context; SkillOpt leaves the rest out, at the beginning of a snippet."""


def items(source: Path) -> list[JsonObject]:
    """Read one file, or all files of a folder: Parquet, JSON or JSONL."""
    files = sorted(path for path in source.rglob("*") if path.suffix in (".parquet", ".json", ".jsonl"))
    return [item for path in (files if source.is_dir() else [source]) for item in read_items(path)]


def row(item: JsonObject, folder: Path) -> JsonObject | None:
    """Return id, question, context and answers; None for an id alone.

    Raises:
        SkillcError: the item has no answer.
    """
    if "question" not in item:
        return None
    answers = item.get("answers")
    if not isinstance(answers, list) or not any(str(each).strip() for each in answers):
        raise SkillcError(f"item `{identity(item)}` has no answer")
    context = cut(str(item.get("context", "")))
    return {"id": identity(item), "question": item["question"], "context": context, "answers": answers}


def cut(context: str) -> str:
    """Return the snippets that fit into 6,000 characters; of a first one that does not fit, its beginning."""
    first, *rest = context.split("[DOC]")
    kept = first
    for snippet in rest:
        if len(f"{kept}[DOC]{snippet}") > LONGEST:
            break
        kept = f"{kept}[DOC]{snippet}"
    return kept[:LONGEST] if kept.strip() else context[:LONGEST]

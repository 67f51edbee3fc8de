"""OfficeQA's own format: `officeqa_full.csv` or `officeqa_pro.csv`, and a folder with the source documents."""

from __future__ import annotations

import json
from pathlib import Path

from programs.frame.splits import identity, read_items
from skillc.errors import SkillcError
from skillc.json_values import JsonObject

SIZES = (50, 24, 172)
FILES = ("files",)


def items(source: Path) -> list[JsonObject]:
    """Read a CSV file, or all of a folder that have questions; a question that two of them have is read once."""
    files = sorted(source.rglob("*.csv")) if source.is_dir() else [source]
    folder = source if source.is_dir() else source.parent
    found = {}
    for path in files:
        for item in read_items(path):
            if item.get("question"):
                found[identity(item)] = {**item, "beside": str(folder)}
    if not found:
        raise SkillcError(
            f"`{source}` has no questions", hint="name the folder with `officeqa_full.csv` and the documents"
        )
    return list(found.values())


def row(item: JsonObject, folder: Path) -> JsonObject | None:
    """Return question, answer and source files; None for an id alone.

    Raises:
        SkillcError: there is no answer, or a source file is missing.
    """
    if not item.get("question"):
        return None
    own = identity(item)
    answer = str(item.get("answer") or item.get("ground_truth") or "").strip()
    if not answer:
        raise SkillcError(f"question `{own}` has no answer")
    start = Path(str(item.get("beside") or folder))
    names = names_of(item.get("source_files") or item.get("files"))
    if not names:
        raise SkillcError(f"question `{own}` names no source files")
    return {
        "id": own,
        "question": item["question"],
        "answer": answer,
        "difficulty": str(item.get("difficulty") or item.get("category") or ""),
        "files": [str(_find(name, start, own)) for name in names],
    }


def names_of(given: object) -> list[str]:
    """Return the names in a list, or in a text with one on each line, with commas between, or as JSON."""
    if isinstance(given, str) and given.strip().startswith("["):
        given = json.loads(given)
    if isinstance(given, str):
        given = given.replace(",", "\n").splitlines()
    return [str(each).strip() for each in (given if isinstance(given, list) else ()) if str(each).strip()]


def _find(name: str, start: Path, own: str) -> Path:
    """Return a document by its name, wherever it is below the folder."""
    if (start / name).is_file():
        return (start / name).resolve()
    found = sorted(start.rglob(Path(name).name))
    if not found:
        raise SkillcError(
            f"question `{own}` names `{name}`, which is not below `{start}`", hint="download the documents too"
        )
    return found[0].resolve()

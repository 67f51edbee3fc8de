"""SpreadsheetBench's own format: `dataset.json` beside a folder `spreadsheet/ID` with the workbooks of each task.

Three layouts are read: `N_ID_input.xlsx` and `N_ID_answer.xlsx` of the first release, `N_ID_init.xlsx` and
`N_ID_golden.xlsx`, and `initial.xlsx` and `golden.xlsx`, which the verified release has.
"""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

from programs.frame.splits import identity, read_items
from skillc.errors import SkillcError
from skillc.json_values import JsonObject
from skillc.sandbox.run import choose

SIZES = (80, 40, 280)
FILES = ("inputs", "answers")
_PAIRS = (("_input.xlsx", "_answer.xlsx"), ("_init.xlsx", "_golden.xlsx"))
_SINGLE = ("initial.xlsx", "golden.xlsx")


def missing() -> str:
    """Return why the programs cannot run here; empty if they can."""
    if importlib.util.find_spec("openpyxl") is None:
        return 'needs openpyxl: `pip install "skillc[spreadsheets]"`'
    try:
        choose()
    except SkillcError as problem:
        return problem.message
    return ""


def items(source: Path) -> list[JsonObject]:
    """Read `dataset.json`, or that of a folder."""
    files = sorted(source.rglob("dataset.json")) if source.is_dir() else [source]
    if not files:
        raise SkillcError(
            f"`{source}` has no `dataset.json`", hint="unpack the archive of the benchmark, and name its folder"
        )
    return [{**item, "beside": str(path.parent)} for path in files for item in read_items(path)]


def row(item: JsonObject, folder: Path) -> JsonObject | None:
    """Return instruction, answer position and the workbooks of all cases; None for an id alone.

    Raises:
        SkillcError: the task has no case.
    """
    if not item.get("instruction"):
        return None
    own = identity(item)
    start = Path(str(item.get("beside") or folder))
    named = str(item.get("spreadsheet_path") or f"spreadsheet/{own}")
    found = next((base / named for base in (start, *start.resolve().parents) if (base / named).is_dir()), None)
    cases = [] if found is None else cases_of(found)
    if not cases:
        raise SkillcError(
            f"task `{own}` has no workbooks in `{named}`", hint="unpack the workbooks beside `dataset.json`"
        )
    return {
        "id": own,
        "instruction": item["instruction"],
        "instruction_type": str(item.get("instruction_type") or ""),
        "answer_position": str(item.get("answer_position") or ""),
        "inputs": [str(given.resolve()) for given, _ in cases],
        "answers": [str(gold.resolve()) for _, gold in cases],
    }


def cases_of(folder: Path) -> list[tuple[Path, Path]]:
    """Return input and answer of each case of a task, in the order of their numbers."""
    for given, gold in _PAIRS:
        pairs = [(path, path.with_name(path.name.removesuffix(given) + gold)) for path in folder.glob(f"*{given}")]
        whole = [pair for pair in pairs if pair[1].is_file()]
        if whole:
            return sorted(whole, key=lambda pair: (_number(pair[0]), pair[0].name))
    single = folder / _SINGLE[0], folder / _SINGLE[1]
    return [single] if all(path.is_file() for path in single) else []


def _number(path: Path) -> int:
    found = re.match(r"\d+", path.name)
    return int(found[0]) if found else 0

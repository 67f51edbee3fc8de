"""Inside the sandbox: compare workbooks cell by cell, by the official rule of SpreadsheetBench.

`python grader.py POSITION MADE GOLD [MADE GOLD ...]` prints one JSON line for each pair. Formulas that a solution
wrote have no values yet, so they are computed first: by LibreOffice where it is installed, else by the package
`formulas`.

The rule: numbers, also those in texts, are rounded to 2 places; a date is a whole number of days since 1899-12-30; a
time is its text without the last three characters; nothing equals an empty text; else type and value are the same.
"""

from __future__ import annotations

import datetime
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

_EPOCH = datetime.datetime(1899, 12, 30)
_SHOWN = 20
_OFFICE_SECONDS = 60


def value_of(value: Any) -> Any:
    """Return the value by which a cell is compared."""
    if isinstance(value, int | float):
        return round(float(value), 2)
    if isinstance(value, datetime.time):
        return str(value)[:-3]
    if isinstance(value, datetime.datetime):
        since = value - _EPOCH
        return round(since.days + since.seconds / 86_400, 0)
    if isinstance(value, str):
        try:
            return round(float(value), 2)
        except ValueError:
            return value
    return value


def same(made: Any, gold: Any) -> bool:
    """Return whether two values of cells count as equal."""
    ours, theirs = value_of(made), value_of(gold)
    if ours in (None, "") and theirs in (None, ""):
        return True
    return type(ours) is type(theirs) and bool(ours == theirs)


def areas(position: str, first: str) -> list[tuple[str, str]]:
    """Return sheet and range of each part of an answer position; `first` is the sheet where none is named."""
    found = []
    for part in _parts(position):
        sheet, mark, area = part.rpartition("!")
        found.append((sheet.strip().strip("'\"") if mark else first, area.strip().strip("'\"")))
    return found


def _parts(position: str) -> list[str]:
    """Divide at commas, but not within the quotes of a sheet's name."""
    parts, quoted = [""], False
    for character in position:
        quoted ^= character == "'"
        if character == "," and not quoted:
            parts.append("")
        else:
            parts[-1] += character
    return [part.strip() for part in parts if part.strip()]


def cells(area: str) -> list[str]:
    """Return the names of the cells of a range such as `B2:C9`, column by column."""
    from openpyxl.utils import get_column_letter, range_boundaries

    left, top, right, bottom = range_boundaries(area)
    return [f"{get_column_letter(column)}{row}" for column in range(left, right + 1) for row in range(top, bottom + 1)]


def compare(made: Any, gold: Any, position: str) -> dict[str, Any]:
    """Compare two workbooks; return whether all cells agree, and those that differ."""
    wrong, right = [], 0
    for sheet, area in areas(position, gold.sheetnames[0]):
        if sheet not in made.sheetnames or sheet not in gold.sheetnames:
            return {"passed": False, "wrong": [], "right": right, "problem": f"there is no sheet `{sheet}`"}
        for name in cells(area):
            own, other = made[sheet][name].value, gold[sheet][name].value
            if same(own, other):
                right += 1
            else:
                wrong.append(f"{sheet}!{name}: {own!r}"[:200])
    return {"passed": not wrong, "wrong": wrong[:_SHOWN], "right": right, "problem": ""}


# ---- formulas -------------------------------------------------------------------------------------


def has_open_formulas(path: Path) -> bool:
    """Return whether a cell has a formula without a value."""
    from openpyxl import load_workbook

    written, values = load_workbook(path), load_workbook(path, data_only=True)
    return any(
        cell.data_type == "f" and values[sheet.title][cell.coordinate].value is None
        for sheet in written.worksheets
        for row in sheet.iter_rows()
        for cell in row
    )


def computed(path: Path, folder: Path) -> tuple[Any, str]:
    """Return a workbook with the values of its formulas, and why some could not be computed."""
    from openpyxl import load_workbook

    if not has_open_formulas(path):
        return load_workbook(path, data_only=True), ""
    office = shutil.which("soffice") or shutil.which("libreoffice")
    if office is not None:
        made = _by_office(office, path, folder)
        if made is not None:
            return load_workbook(made, data_only=True), ""
    try:
        return _by_formulas(path), ""
    except ImportError:
        problem = 'formulas were not computed: install LibreOffice, or `pip install "skillc[spreadsheets]"`'
    except Exception as raised:
        problem = f"formulas were not computed: {type(raised).__name__}: {raised}"[:300]
    return load_workbook(path, data_only=True), problem


def _by_office(office: str, path: Path, folder: Path) -> Path | None:
    out = folder / "computed"
    profile = f"-env:UserInstallation=file://{folder}/profile"
    command = [office, profile, "--headless", "--convert-to", "xlsx", "--outdir", str(out), str(path)]
    try:
        subprocess.run(command, capture_output=True, timeout=_OFFICE_SECONDS, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    made = out / path.name
    return made if made.is_file() else None


def _by_formulas(path: Path) -> Any:
    """Compute with the package `formulas`, and put the values into a workbook."""
    import formulas
    import numpy
    from openpyxl import load_workbook

    model = formulas.ExcelModel().loads(str(path)).finish()
    model.calculate()
    book = load_workbook(path)
    (written,) = model.write().values()
    (values,) = written.values()
    # The package writes names of sheets in capitals.
    found = {sheet.title.upper(): sheet for sheet in values.worksheets}
    for sheet in book.worksheets:
        for row in sheet.iter_rows():
            for cell in row:
                if cell.data_type == "f":
                    value = found[sheet.title.upper()][cell.coordinate].value
                    cell.value = value.item() if isinstance(value, numpy.generic) else value
    return book


def main() -> None:
    """Compare all pairs."""
    from openpyxl import load_workbook

    position, *paths = sys.argv[1:]
    for made, gold in zip(paths[::2], paths[1::2], strict=True):
        with tempfile.TemporaryDirectory() as folder:
            try:
                book, problem = computed(Path(made), Path(folder))
                found = compare(book, load_workbook(gold, data_only=True), position)
                found["problem"] = found["problem"] or ("" if found["passed"] else problem)
            except Exception as raised:
                found = {
                    "passed": False,
                    "wrong": [],
                    "right": 0,
                    "problem": f"{type(raised).__name__}: {raised}"[:300],
                }
        print(json.dumps(found), flush=True)  # noqa: T201


if __name__ == "__main__":
    main()

"""The rounds of SpreadsheetBench: a target writes a program, which runs in the sandbox, and reads what went wrong.

A program gets `INPUT_PATH` and `OUTPUT_PATH`. The round ends well if it ends without an error on the first case and has
written the output; only its errors are shown, as in the benchmark. Then, and after the last round, the last program is
scored on every case: `cases` is what counts, `soft` the share of the cases that pass, `hard` whether all do.
"""

from __future__ import annotations

import asyncio
import json
import re
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

from skillc.sandbox.policy import declared_sandbox
from skillc.tasks.agents.workspace import Workspace
from skillc.tasks.programs import Programs, default_limits

HERE = Path(__file__).resolve().parent
_BLOCK = re.compile(r"```[ \t]*(?:python3?|py)?[ \t]*\n(.*?)```", re.DOTALL | re.IGNORECASE)
_ROWS, _COLUMNS, _CELL = 5, 20, 40
_LONGEST = 1_500
_WRONG = 10


class Workbook:
    """One task at a time.

    Args:
        cases: the score, `soft` or `hard`.
        feedback: what is shown of a program that runs: `errors`, nothing; or `cells`, which cells of the first case are
            wrong, without the right values. SkillOpt shows them in training only, and in validation and test nothing.
        seconds: time limit of a program on all cases.
    """

    def __init__(self, cases: str = "hard", feedback: str = "errors", seconds: float = 120) -> None:
        if cases not in ("soft", "hard") or feedback not in ("errors", "cells"):
            raise ValueError("`cases` is soft or hard, and `feedback` errors or cells")
        self._cases = cases
        self._feedback = feedback
        self._loop = asyncio.new_event_loop()
        self._programs = Programs(
            declared_sandbox(None, replace(default_limits(), time=float(seconds))),
            HERE,
            what="the sandbox of the workbooks",
            # Solutions see neither the folder of the program nor the right answers.
            reads=[str(HERE / "runner.py"), str(HERE / "grader.py")],
        )
        self._results: list[dict[str, Any]] = []

    def reset(self, example: Mapping[str, Any]) -> str:
        """Begin a task; return the first rows of each sheet."""
        self._inputs = [HERE / each for each in example["inputs"]]
        self._golds = [HERE / each for each in example["answers"]]
        self._position = str(example["answer_position"])
        self._results = []
        return f"The workbook at INPUT_PATH:\n{preview(self._inputs[0])}"

    def step(self, action: str) -> tuple[str, float, bool, dict[str, Any]]:
        """Run the program in a reply on every case; return its errors on the first one."""
        code = code_of(action)
        if not code:
            return (
                "there is no program in the reply: write one whole Python program in a ```python block",
                0.0,
                False,
                {},
            )
        with tempfile.TemporaryDirectory(prefix="skillc-") as place:
            ran, problem, workspace = self._run(code, Path(place))
            if not ran:
                return problem, 0.0, False, {}
            first = ran[0]
            if not first["ended"]:
                return f"the program failed:\n{first['printed'][-_LONGEST:]}", 0.0, False, {}
            if not first["wrote"]:
                return "the program ended, and wrote no workbook to OUTPUT_PATH", 0.0, False, {}
            self._results = self._grade(workspace, ran)
        done = self._feedback == "errors" or self._results[0]["passed"]
        return ("the program ran" if done else _told(self._results[0])), self.score(), done, {}

    def score(self) -> float:
        """Return the share of cases that pass, or whether all of them do."""
        passed = [bool(each["passed"]) for each in self._results]
        if self._cases == "hard":
            return float(bool(passed) and all(passed))
        return sum(passed) / len(self._golds) if passed else 0.0

    def close(self) -> None:
        """Close the event loop."""
        self._loop.close()

    def _run(self, code: str, place: Path) -> tuple[list[dict[str, Any]], str, Workspace]:
        workspace = Workspace.make(place, self._programs.kind)
        paths = []
        for number, given in enumerate(self._inputs, 1):
            shutil.copy2(given, workspace.folder / f"{number}_input.xlsx")
            paths += [f"{number}_input.xlsx", f"{number}_output.xlsx"]
        solution = workspace.write("solution.py", code)
        lines, problem = self._python(workspace, "runner.py", [solution, *paths])
        return lines, problem, workspace

    def _grade(self, workspace: Workspace, ran: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """Compare what a program wrote. Another workspace has the right answers, which the program never sees."""
        failed = {"passed": False, "wrong": [], "right": 0, "problem": "the program failed on this case"}
        results = [dict(failed) for _ in self._golds]
        with tempfile.TemporaryDirectory(prefix="skillc-") as place:
            other = Workspace.make(Path(place), self._programs.kind)
            paths, compared = [], []
            for index, gold in enumerate(self._golds):
                made = workspace.folder / f"{index + 1}_output.xlsx"
                # A link could name any file of this machine.
                if index < len(ran) and ran[index]["ended"] and made.is_file() and not made.is_symlink():
                    shutil.copyfile(made, other.folder / f"{index}_made.xlsx")
                    shutil.copyfile(gold, other.folder / f"{index}_gold.xlsx")
                    paths += [f"{index}_made.xlsx", f"{index}_gold.xlsx"]
                    compared.append(index)
            if compared:
                lines, problem = self._python(other, "grader.py", [self._position, *paths])
                for place_of, index in enumerate(compared):
                    results[index] = lines[place_of] if place_of < len(lines) else {**failed, "problem": problem}
        return results

    def _python(self, workspace: Workspace, script: str, words: Sequence[str]) -> tuple[list[dict[str, Any]], str]:
        """Run a script of this folder in the sandbox; return the JSON lines that it printed, and what stopped it."""
        call = [self._programs.python, str(HERE / script), *words]
        result = self._loop.run_until_complete(self._programs.run(workspace, call, workspace.seen))
        lines = [json.loads(line) for line in result.stdout.decode("utf-8", "replace").splitlines() if line[:1] == "{"]
        problem = "" if result.why == "ended" else self._programs.stopped(result)
        return lines, problem or self._programs.shown(result.stderr, workspace, 300) or "the program did not run"


def code_of(reply: str) -> str:
    """Return the last block of code in a reply; the whole reply if it has none and reads as Python."""
    blocks = _BLOCK.findall(reply)
    if blocks:
        return str(blocks[-1]).strip()
    try:
        compile(reply, "solution.py", "exec")
    except (SyntaxError, ValueError):
        return ""
    return reply.strip() if "OUTPUT_PATH" in reply else ""


def preview(path: Path) -> str:
    """Return the first rows of each sheet, as the benchmark shows them."""
    from openpyxl import load_workbook

    parts = []
    with closing(load_workbook(path)) as book:
        for sheet in book.worksheets:
            parts.append(f"## Sheet {sheet.title} ({sheet.dimensions})")
            for row in sheet.iter_rows(max_row=min(sheet.max_row, _ROWS), max_col=min(sheet.max_column, _COLUMNS)):
                texts = ("" if cell.value is None else str(cell.value) for cell in row)
                names = (cell.coordinate for cell in row)
                cells = [
                    f"{n}={t if len(t) <= _CELL else t[: _CELL - 3] + '...'}" for n, t in zip(names, texts, strict=True)
                ]
                parts.append(" | ".join(cells))
            if sheet.max_row > _ROWS:
                parts.append(f"... {sheet.max_row - _ROWS} more rows")
    return "\n".join(parts)


def _told(result: Mapping[str, Any]) -> str:
    """Say which cells are wrong, without the right values."""
    if result["problem"]:
        return f"the program ran, and its workbook cannot be compared: {result['problem']}"
    wrong = "\n".join(result["wrong"][:_WRONG])
    return (
        f"the program ran. These cells are wrong, with the values that it wrote:\n{wrong}\n{result['right']} are right"
    )

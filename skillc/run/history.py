"""`history.jsonl`: every decision of every compile, pure values, for git.

A line is one decision of one run. Lines of other runs are kept, so two branches merge as a union of lines.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from pydantic import JsonValue

from skillc.errors import SkillcError
from skillc.files import write_whole
from skillc.run.journal import Record, canonical


def read_history(path: Path) -> list[dict[str, JsonValue]]:
    """The decisions in a history file, none if there is no file.

    Raises:
        SkillcError: a line is not JSON, with its number.
    """
    if not path.exists():
        return []
    lines = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        try:
            entry = json.loads(line)
        except ValueError as problem:
            raise SkillcError(
                f"line {number} of `{path}` is not JSON",
                hint="after a merge: keep the lines of both sides, drop the marks",
            ) from problem
        if isinstance(entry, dict):
            lines.append(entry)
    return lines


def with_completion(decisions: Sequence[Record], completion: Record) -> list[Record]:
    """The decisions with the whole validation of one folded in: its goal is then known, not only bounded."""
    return [
        {**decision, "completed": completion["goal"]}
        if decision.get("decision") == completion["completed"]
        else decision
        for decision in decisions
    ]


def history_text(old: Sequence[Record], run: str, decisions: Sequence[Record]) -> str:
    """The new content of the file: other runs' lines as they stand, then this run's decisions.

    A run that is compiled again replaces its own lines, so that the same compile gives the same bytes.
    """
    kept = [canonical(line) for line in old if line.get("run") != run]
    new = [canonical({"run": run, **decision}) for decision in decisions]
    return "".join(line + "\n" for line in [*kept, *new])


def write_history(path: Path, text: str) -> None:
    """Writes the file whole or not at all.

    Raises:
        SkillcError: it cannot be written.
    """
    try:
        write_whole(path, text)
    except OSError as problem:
        raise SkillcError(f"the history `{path}` cannot be written: {problem.strerror}") from problem

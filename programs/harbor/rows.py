"""Tasks in Harbor's own format: a folder of folders, at any depth."""

from __future__ import annotations

from pathlib import Path

import click

from skillc.data.task_folders import SETTINGS, read_task
from skillc.errors import SkillcError
from skillc.json_values import JsonObject
from skillc.sandbox.run import problem_of
from skillc.text import counted

SIZES = (18, 9, 62)
"""Those of Terminal-Bench 2.0, which has 89 tasks and no published split: 2 : 1 : 7."""
FILES = ("task",)


def items(source: Path) -> list[JsonObject]:
    """Read the tasks below a folder; those that one container without services cannot run are left out, with a note.

    Raises:
        SkillcError: there is none.
    """
    folders = sorted(path.parent for path in source.rglob(SETTINGS))
    found: list[JsonObject] = []
    for folder in folders:
        try:
            task = read_task(folder)
        except SkillcError as problem:
            click.echo(f"left out: {problem.message}", err=True)
            continue
        metadata = {name: str(task.metadata.get(name, "")) for name in ("difficulty", "category")}
        found.append({"id": task.name, "task": str(folder), "instruction": task.instruction, **metadata})
    if not found:
        left_out = f"; {counted(len(folders), 'task')} cannot" if folders else ""
        raise SkillcError(f"`{source}` has no task that can be run{left_out}", hint="name a folder of tasks")
    return found


def row(item: JsonObject, folder: Path) -> JsonObject | None:
    """Return the columns of the program; None for an id alone."""
    return dict(item) if item.get("task") else None


def missing() -> str:
    """Return why tasks cannot be run without a container here; empty if they can."""
    problem = problem_of("bubblewrap")
    return f"bubblewrap does not work here: {problem}" if problem else ""

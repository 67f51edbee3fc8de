"""The history of a skill: every decision of every compile as plain values, for git.

A line is one decision of one run, with its link: a hash chain over the decision and all earlier decisions of its run.
The link identifies the decision in any file and order. So two branches merge as a union of their lines, and two
compiles of one run that got different replies stay separate.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

from pydantic import JsonValue

from skillc.conflict import is_mark
from skillc.errors import SkillcError
from skillc.files import write_atomically
from skillc.json_values import canonical

Decision: TypeAlias = Mapping[str, JsonValue]

# Fields of a line that are not part of the decision.
_NOT_LINKED = ("run", "link", "completed")


def read_history(path: Path) -> list[dict[str, JsonValue]]:
    """Return the decisions in a history file, each once; none without a file.

    Raises:
        SkillcError: a line is not JSON, with its number.
    """
    if not path.exists():
        return []
    return parse_history(path.read_text(encoding="utf-8"), str(path))


def parse_history(text: str, name: str) -> list[dict[str, JsonValue]]:
    """Return the decisions in the text of a history file, each once.

    Conflict marks are skipped: everything between them is history.

    Raises:
        SkillcError: a line is not JSON, with its number.
    """
    lines = []
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip() or is_mark(line):
            continue
        try:
            entry = json.loads(line)
        except ValueError as problem:
            raise SkillcError(f"line {number} of `{name}` is not JSON", hint="take the file from git") from problem
        if isinstance(entry, dict):
            lines.append(entry)
    return union(lines)


def union(lines: Iterable[Decision]) -> list[dict[str, JsonValue]]:
    """Return each decision once, at its first position. Of duplicates, keep the one with the whole validation."""
    found: dict[str, dict[str, JsonValue]] = {}
    for line in lines:
        link = line.get("link")
        key = link if isinstance(link, str) else canonical(line)
        if key not in found or ("completed" in line and "completed" not in found[key]):
            found[key] = dict(line)
    return list(found.values())


def with_completion(decisions: Sequence[Decision], completion: Decision) -> list[Decision]:
    """Return the decisions with the whole validation of one: its goal is exact then, not only bounded."""
    return [
        {**decision, "completed": completion["goal"]}
        if decision.get("decision") == completion["completed"]
        else decision
        for decision in decisions
    ]


def linked(run: str, decisions: Sequence[Decision]) -> list[dict[str, JsonValue]]:
    """Return the lines of a run, in the order of its decisions."""
    lines, link = [], head_of(run, ())
    for decision in decisions:
        link = _link(link, decision)
        lines.append({"run": run, **decision, "link": link})
    return lines


def head_of(run: str, decisions: Sequence[Decision]) -> str:
    """Return the link of the last decision, which identifies the whole run; without decisions, the link of the run."""
    link = hashlib.sha256(f"history\0{run}".encode()).hexdigest()
    for decision in decisions:
        link = _link(link, decision)
    return link


def _link(previous: str, decision: Decision) -> str:
    own = {name: value for name, value in decision.items() if name not in _NOT_LINKED}
    return hashlib.sha256((previous + canonical(own)).encode()).hexdigest()


def decisions_until(lines: Iterable[Decision], run: str, head: str) -> list[Decision] | None:
    """Return the decisions of the run that ends with a link, in order, from lines of any runs in any order.

    None if one is missing or was changed.
    """
    by_link = {str(line.get("link")): line for line in lines if line.get("run") == run}
    by_number: dict[JsonValue, list[Decision]] = {}
    for each in by_link.values():
        by_number.setdefault(each.get("decision"), []).append(each)
    start, found = head_of(run, ()), list[Decision]()
    line: Decision | None
    while head != start:
        line = by_link.get(head)
        if line is None:
            return None
        number = line.get("decision")
        earlier = by_number.get(number - 1, []) if isinstance(number, int) else []
        links = [start, *(str(one["link"]) for one in earlier)]
        before = next((link for link in links if _link(link, line) == head), None)
        if before is None:
            return None
        found.append(line)
        head = before
    return found[::-1]


def history_text(old: Sequence[Decision], run: str, decisions: Sequence[Decision]) -> str:
    """Return the new text of the file: the old lines, then the decisions of this run.

    A repeated or resumed run replaces its own lines, so that the same compile writes the same bytes. Lines of a compile
    that decided differently are kept.
    """
    new = linked(run, decisions)
    again = {line["link"] for line in new}
    kept = [line for line in union(old) if line.get("run") != run or line.get("link", "") not in {"", *again}]
    return text_of([*kept, *new])


def text_of(lines: Iterable[Decision]) -> str:
    """Return the text of a history file."""
    return "".join(canonical(line) + "\n" for line in lines)


def write_history(path: Path, text: str) -> None:
    """Write the file atomically.

    Raises:
        SkillcError: it cannot be written.
    """
    try:
        write_atomically(path, text)
    except OSError as problem:
        raise SkillcError(f"the history `{path}` cannot be written: {problem.strerror}") from problem

"""The report of an audit: what was never opened or quoted, with counts, as text and as JSON."""

from __future__ import annotations

from dataclasses import asdict

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from skillc.audit.run import Audit
from skillc.pipeline.report import spent_lines
from skillc.text import counted, in_bytes, listed


def audit_json(found: Audit) -> dict[str, object]:
    """Return the object that `audit --json` prints."""
    return {
        "format_version": 1,
        "skill": found.skill,
        "program": str(found.program),
        "rollout": found.kind,
        "reads_whole_skill": found.whole,
        "openings_known": found.known,
        "rollouts": found.rollouts,
        "failures": found.failures,
        "files": [asdict(each) for each in found.files],
        "sections": [asdict(each) for each in found.sections],
        "never_opened": list(found.never_opened),
        "never_quoted": list(found.never_quoted),
        "stopped": found.stopped,
        "spent": found.spent,
    }


def audit_table(found: Audit) -> RenderableType:
    """Return a row per file with its sections, and what was never opened or quoted."""
    table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0))
    table.add_column(f"{found.skill}")
    for name in ("tokens", "opened", "quoted"):
        table.add_column(name, justify="right")
    of = f" of {found.rollouts}"
    for file in found.files:
        size = f"{file.tokens:,}" if file.tokens is not None else in_bytes(file.size)
        opened = "unknown" if file.opened is None else f"{file.opened}{of}"
        table.add_row(file.path, size, opened, "")
        for section in found.sections:
            if section.file == file.path:
                table.add_row(f"  {section.name}", f"{section.tokens:,}", "", f"{section.quoted}{of}")
    return Group(table, Text(), Text("\n".join([*_notes(found), *spent_lines(found.spent)])))


def _notes(found: Audit) -> list[str]:
    lines = []
    if found.whole and found.kind == "code":
        lines.append("`code` has the skill's scripts and kept files in its workspace, and reads all sections")
    elif found.whole:
        lines.append(f"`{found.kind}` has no folder to open: the target reads all sections, and no other file")
    elif not found.known:
        lines.append(f"no rollout reported a call of a tool, so what `{found.kind}` opens is unknown")
    if found.known:
        never = found.never_opened
        lines.append(f"never opened: {listed(never)}" if never else "every file was opened")
    if found.never_quoted:
        lines.append(f"never quoted: {listed(found.never_quoted)}")
    for kind, number in sorted(found.failures.items()):
        lines.append(f"{counted(number, 'rollout')} failed ({kind}) and say nothing")
    if found.stopped is not None:
        lines.append(f"stopped by the budget's `{found.stopped}` after {counted(found.rollouts, 'rollout')}")
    return lines

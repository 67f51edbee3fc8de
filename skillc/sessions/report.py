"""Show the store of sessions: what an import read, what is usable, set apart or removed, and single sessions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from skillc.diagnostics.render import printable
from skillc.sessions.audit import REASONS
from skillc.text import counted
from skillc.trajectories.trajectory import Trajectory, render

if TYPE_CHECKING:
    from skillc.sessions.importing import Imported
    from skillc.sessions.store import Row, SessionStore
    from skillc.sessions.verdicts import Suspect


def imported_table(found: Imported, store: SessionStore) -> RenderableType:
    """Return what an import read, by format, and what is in the store now."""
    known = f", {counted(found.known, 'file')} unchanged since the last import" if found.known else ""
    by_format = ", ".join(f"{number:,} {name}" for name, number in sorted(found.formats.items()))
    lines = [
        f"read {counted(found.sessions, 'session')} of {counted(found.files, 'file')}{known}; {found.new:,} are new"
    ]
    lines += [f"formats: {by_format}"] if by_format else []
    if found.unreadable:
        lines.append(f"not read: {counted(found.unreadable, 'record')}")
        for problem in found.problems[:5]:
            line = f":{problem.line}" if problem.line else ""
            lines.append(f"  {printable(problem.source)}{line}: {printable(problem.reason)}")
    return Group(*map(Text, lines), Text(""), store_table(store))


def store_table(store: SessionStore) -> RenderableType:
    """Return the sessions of the store, usable and apart by reason, and what was removed from them."""
    counts = store.counts()
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("sessions", justify="right", no_wrap=True)
    table.add_column("", no_wrap=True)
    table.add_column("")
    table.add_row(f"{counts[None]:,}", "usable", "")
    for reason, about in REASONS.items():
        if counts[reason]:
            table.add_row(f"{counts[reason]:,}", reason, about)
    table.add_section()
    table.add_row(f"{counts.total():,}", "in all", "")
    removed = store.removed()
    values = ", ".join(f"{number:,} {kind}" for kind, number in removed.most_common())
    said = f"removed before storing: {values}" if removed else "no secrets or personal data were found"
    return Group(table, Text(f"{said}\nnames of people are not looked for"))


def groups_text(sizes: Counter[str]) -> RenderableType:
    """Return how many groups of like requests there are."""
    several = [number for number in sizes.values() if number > 1]
    text = f"usable sessions by request: {counted(len(sizes), 'group')}"
    return Text(f"{text}, {len(several):,} of several sessions, the largest of {max(several):,}" if several else text)


def list_table(rows: Sequence[Row], total: int) -> RenderableType:
    """Return a row for each session, of so many in all."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in ("", "turns", "calls", "tokens"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("began", no_wrap=True)
    table.add_column("agent", max_width=12, overflow="ellipsis", no_wrap=True)
    table.add_column("project", min_width=8, overflow="fold")
    apart = any(row.reason for row in rows)
    if apart:
        table.add_column("apart", no_wrap=True)
    for row in rows:
        tokens = row.tokens.sent + row.tokens.received
        cells = (f"{row.turns:,}", f"{row.calls:,}", f"{tokens:,}" if tokens else "–", (row.began or "–")[:10])
        texts = (*cells, row.agent.split(" ")[0], row.project, *([row.reason or ""] if apart else []))
        table.add_row(str(row.id), *(Text(printable(each)) for each in texts))
    left = f"{counted(total, 'session')}" + (f", the last {len(rows):,} shown" if total > len(rows) else "")
    return Group(table, Text(left))


def session_text(row: Row, whole: Any) -> RenderableType:
    """Return the facts of one session and its steps."""
    facts = [f"{row.key}  {row.agent}  {row.model}", f"from {whole.source}, began {row.began or 'at an unknown time'}"]
    if row.reason:
        of = f" ({row.copy_of})" if row.copy_of else ""
        facts.append(f"set apart: {row.reason}, {REASONS[row.reason]}{of}")
    if row.removed:
        facts.append("removed: " + ", ".join(f"{number:,} {kind}" for kind, number in row.removed.items()))
    facts += [f"mark: {mark.name} = {mark.value} {mark.source}".rstrip() for mark in whole.marks]
    body = render(Trajectory(whole.steps), None)
    return Text("\n".join(printable(line) for line in [*facts, "", *body.split("\n")]))


def suspects_text(found: Sequence[Suspect], total: int) -> RenderableType:
    """Return each suspect with what was found in it, of so many in all."""
    lines: list[str] = []
    for each in found:
        lines.append(f"{each.row.id}  {each.row.key}  {each.row.project}")
        lines += [f"   step {finding.step}, {finding.kind}: {finding.excerpt}" for finding in each.findings]
    left = f"{counted(total, 'suspect')}" + (f", the first {len(found):,} shown" if total > len(found) else "")
    return Text("\n".join(printable(line) for line in [*lines, left]))

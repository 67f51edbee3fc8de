"""What is kept in a cache folder, as a table."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from rich import box
from rich.console import Group as Lines
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from skillc.models.cache.folder import Group
from skillc.models.cache.sizes import in_bytes
from skillc.text import counted


def table(groups: Sequence[Group], folder: Path, disk: int) -> RenderableType:
    """A line per endpoint and model, and the total; days are local."""
    count, size = sum(group.entries for group in groups), sum(group.size for group in groups)
    total = Text(f"{counted(count, 'reply', 'replies')}, {in_bytes(size)} of text, {in_bytes(disk)} on disk")
    total.append(f"\n{folder}", style="dim")
    if not groups:
        return total
    drawn = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in ("endpoint", "model"):
        drawn.add_column(name, overflow="fold")
    for name in ("replies", "size"):
        drawn.add_column(name, justify="right", no_wrap=True)
    for name in ("oldest", "newest"):
        drawn.add_column(name, no_wrap=True)
    for group in groups:
        drawn.add_row(
            Text(group.label.endpoint or "–"),
            Text(group.label.model or "–"),
            f"{group.entries:,}",
            in_bytes(group.size),
            _day(group.oldest),
            _day(group.newest),
        )
    return Lines(drawn, total)


def _day(stored: float) -> str:
    return datetime.fromtimestamp(stored).astimezone().strftime("%Y-%m-%d")

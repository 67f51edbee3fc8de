"""What the terminal views of a run share: escaped texts, rows of facts, differences."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from skillc.diagnostics.render import printable
from skillc.review.decisions import Result
from skillc.review.differences import Part

RESULT_STYLES: dict[Result, str] = {"accepted": "green", "rejected": "red", "undecided": "yellow", "beaten": "dim"}
MARK_STYLES = {"right": "green", "wrong": "red", "unmeasured": "yellow", "not run": "dim"}
_INDENT = 2


def safe(words: str) -> str:
    """Escape the characters of a text that would move the cursor, except line ends."""
    return "\n".join(printable(line) for line in words.split("\n"))


def plain(words: str, style: str = "") -> Text:
    """Return a text of data or a model without markup and control characters."""
    return Text(safe(words), style=style)


def table() -> Table:
    """Return a table without lines, which fits a narrow terminal."""
    return Table(box=None, show_header=False, show_edge=False, pad_edge=False, padding=(0, 2, 0, 0))


def aligned(rows: Sequence[Sequence[Text]], right: Sequence[bool]) -> list[Text]:
    """Return a line for each row, with the columns below each other; other lines can be put between them."""
    widths = [max(row[i].cell_len for row in rows) for i in range(len(right))]
    lines = []
    for row in rows:
        line = Text()
        for i, cell in enumerate(row):
            gap = " " * (widths[i] - cell.cell_len)
            line.append(gap if right[i] else "").append_text(cell).append("  " if right[i] else gap + "  ")
        line.rstrip()
        lines.append(line)
    return lines


def facts(rows: Iterable[tuple[str, str | RenderableType]]) -> Table:
    """Return rows of a name and a text, which is wrapped below itself."""
    found = table()
    found.add_column(no_wrap=True, style="bold")
    found.add_column(ratio=1, overflow="fold")
    for name, content in rows:
        found.add_row(Text(name), plain(content) if isinstance(content, str) else content)
    return found


def block(*parts: RenderableType) -> Padding:
    """Return parts below each other, indented."""
    return Padding(Group(*parts), (0, 0, 0, _INDENT))


def difference_lines(parts: Sequence[Part]) -> list[RenderableType]:
    """Return a text before and after an edit, with `-` and `+` before them and the changed words emphasized."""
    kinds = {kind for kind, _ in parts}
    if kinds <= {"same"}:
        return [_marked(" ", parts, "same", "")] if parts else []
    found: list[RenderableType] = []
    if "old" in kinds or ("same" in kinds and "new" in kinds):
        found.append(_marked("-", parts, "old", "red"))
    if "new" in kinds or ("same" in kinds and "old" in kinds):
        found.append(_marked("+", parts, "new", "green"))
    return found


def _marked(mark: str, parts: Sequence[Part], own: str, style: str) -> Table:
    whole = len({kind for kind, _ in parts}) == 1
    text = Text(style=style)
    for kind, words in parts:
        if kind in ("same", own):
            text.append(safe(words), style="" if kind == "same" or whole else "bold underline")
    rows = Table(box=None, show_header=False, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
    rows.add_column(no_wrap=True, width=1)
    rows.add_column(ratio=1, overflow="fold")
    rows.add_row(Text(mark, style=style), text)
    return rows


def changed_lines(parts: Sequence[Part]) -> list[RenderableType]:
    """Return lines that already have their marks."""
    styles = {"old": "red", "new": "green", "same": ""}
    return [plain(words, styles[kind]) for kind, words in parts]

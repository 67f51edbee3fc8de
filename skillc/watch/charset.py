"""Characters for terminals whose encoding lacks some."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.segment import Segment

from skillc.text import text_width

# One column each, so that nothing moves.
_ASCII = str.maketrans(
    {
        **dict.fromkeys("━─╌", "-"),
        **dict.fromkeys("┃│╎▏▕┆", "|"),
        **dict.fromkeys("╋┼┬┴├┤┌┐└┘╭╮╰╯", "+"),
        **dict.fromkeys("█▇■", "#"),
        **dict.fromkeys("▆▅▄", "="),
        **dict.fromkeys("▃▂▁", "_"),
        **dict.fromkeys("·•", "."),
        **dict.fromkeys("●◆", "*"),
        **dict.fromkeys("○□", "o"),
        **dict.fromkeys("→›▶", ">"),
        **dict.fromkeys("←‹", "<"),
        **dict.fromkeys("↑", "^"),
        **dict.fromkeys("↓", "v"),
        **dict.fromkeys("–−", "-"),
        "…": "~",
        "✓": "+",
        "✗": "x",
        "×": "x",
        "\N{NO-BREAK SPACE}": " ",
    }
)


class Encodable:
    """A renderable in the characters that the console's encoding has."""

    def __init__(self, content: RenderableType) -> None:
        self._content = content

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield the segments of the content, with characters replaced."""
        yield from encodable(console.render(self._content, options), console.encoding)


def encodable(segments: Iterable[Segment], encoding: str) -> Iterable[Segment]:
    """Replace characters that an encoding lacks by others of the same width."""
    if encoding.replace("-", "").startswith("utf"):
        yield from segments
        return
    for segment in segments:
        yield Segment(_encoded(segment.text, encoding), segment.style, segment.control)


def _encoded(text: str, encoding: str) -> str:
    if text.isascii():
        return text
    try:
        text.encode(encoding)
    except (UnicodeEncodeError, LookupError):
        return "".join(_character(each, encoding) for each in text.translate(_ASCII))
    return text


def _character(character: str, encoding: str) -> str:
    try:
        character.encode(encoding)
    except (UnicodeEncodeError, LookupError):
        return "?" * text_width(character)
    return character

"""One pass over the text before the parser: comments, blank lines, what `///` documents, texts that never close.

It needs no grammar, so that it holds for a text with mistakes too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from skillc.syntax.nodes import Trivia
from skillc.syntax.source import Span

TEXT = r'"""[^"\\]*+(?:(?:\\.|"(?!""))[^"\\]*+)*+"""'
STRING = r'"(?!"")(?:[^"\\\n]|\\[^\n])*+"?'
_TRIVIA = re.compile(
    rf'(?P<text>{TEXT})|(?P<fence>""")|(?P<string>{STRING})|(?P<doc>///[^\n]*)|(?P<comment>\#[^\n]*)'
    r"|(?:\A|(?<=\n))(?P<blank>(?:[ \t\f\r]*+\n)++)",
    re.DOTALL,
)
_COLUMN_0 = re.compile(r"^[^\W\d]|^\}", re.MULTILINE)
_SPACE = re.compile(r"\s*+")
_OPENS = re.compile(r"[=({\[,][ \t]*\Z")


@dataclass(frozen=True, slots=True)
class Fault:
    """A text whose end is wrong.

    Attributes:
        kind: `unclosed`, or `fence` when the closing fence shares its line with words.
        span: where the text is taken to stand.
        fence: the fence that looked like its end, None where there is none.
    """

    kind: Literal["unclosed", "fence"]
    span: Span
    fence: Span | None


@dataclass(frozen=True, slots=True)
class Scan:
    """What the pass found. The documentation is keyed by an offset of code.

    Attributes:
        above: documentation that stands above, by the offset at which the documented code begins.
        behind: documentation that ends a line, by the offset of the last character of code before it.
    """

    trivia: tuple[Trivia, ...]
    above: dict[int, str]
    behind: dict[int, str]
    faults: tuple[Fault, ...]


def scan(text: str) -> Scan:
    """Find comments, blank lines, documentation and texts with a wrong end."""
    found = list(_walk(text))
    trivia = [each for each in found if isinstance(each, Trivia)]
    faults = [each for each in found if isinstance(each, Fault)]
    above, behind = _documentation(text, trivia)
    return Scan(tuple(trivia), above, behind, tuple(faults))


def faults(text: str) -> Iterator[Fault]:
    """Find texts with a wrong end."""
    return (each for each in _walk(text) if isinstance(each, Fault))


def _walk(text: str) -> Iterator[Trivia | Fault]:
    position = 0
    while match := _TRIVIA.search(text, position):
        kind, position = match.lastgroup, match.end()
        if kind in ("comment", "doc"):
            words = match[0].rstrip()
            yield Trivia(Span(match.start(), match.start() + len(words)), kind, words)  # type: ignore[arg-type]
        elif kind == "blank":
            yield Trivia(Span(match.start("blank"), match.end()), "blank", "")
        elif kind == "text":
            fault = _fault(text, match.start(), match.end())
            if fault:
                yield fault
                position = fault.span.end
        elif kind == "fence":
            stop = _COLUMN_0.search(text, position)
            end = stop.start() if stop else len(text)
            end = match.start() + len(text[match.start() : end].rstrip())
            yield Fault("unclosed", Span(match.start(), max(end, match.end())), None)
            position = max(end, match.end())


def _fault(text: str, start: int, end: int) -> Fault | None:
    line = text.rfind("\n", start, end - 3) + 1
    if line <= start or not (before := text[line : end - 3]).strip():
        return None
    fence = Span(end - 3, end)
    if _OPENS.search(before):
        return Fault("unclosed", Span(start, start + max(3, len(text[start:line].rstrip()))), fence)
    return Fault("fence", Span(start, end), fence)


def _documentation(text: str, trivia: list[Trivia]) -> tuple[dict[int, str], dict[int, str]]:
    above: dict[int, str] = {}
    behind: dict[int, str] = {}
    waiting: list[str] = []
    for i, item in enumerate(trivia):
        if item.kind != "doc":
            continue
        words = item.text[3:].removeprefix(" ")
        code = text[text.rfind("\n", 0, item.span.start) + 1 : item.span.start].rstrip(" \t;")
        if code:
            behind[item.span.start - _gap(text, item.span.start)] = words
            continue
        waiting.append(words)
        place = _code_after(text, trivia, i)
        if not text.startswith("///", place):
            above[place] = "\n".join(waiting)
            waiting = []
    return above, behind


def _code_after(text: str, trivia: list[Trivia], i: int) -> int:
    """Where code goes on after a comment, or the next documentation."""
    while True:
        space = _SPACE.match(text, trivia[i].span.end)
        place = space.end() if space else trivia[i].span.end
        while i + 1 < len(trivia) and trivia[i + 1].span.start < place:
            i += 1
        if i + 1 == len(trivia) or trivia[i + 1].span.start != place or trivia[i + 1].kind == "doc":
            return place
        i += 1


def _gap(text: str, place: int) -> int:
    """How many characters lie between `place` and the last character of code before it, that one included."""
    start = place
    while text[start - 1] in " \t;":
        start -= 1
    return place - start + 1

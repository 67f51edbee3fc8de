"""The code blocks of a markdown page, in order: those that a reader sees, and those that set the page's folder up.

A block is fenced by three backticks or more. Behind them stands a language, and `title="name"` where the block is a
file of the page's folder; `{ .skill .wrong }` is the same with a class. An HTML comment whose first word is a language
is a block that is run and not shown.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_FENCE = re.compile(
    r"^(?P<indent> *)(?P<fence>`{3,})(?P<info>[^`\n]*)\n(?P<body>.*?)^(?P=indent)(?P=fence) *$", re.M | re.S
)
_COMMENT = re.compile(
    r"^<!-- (?P<info>(?:console|python|skill|json|jsonl|csv)\b[^\n]*)\n(?P<body>.*?)^-->$", re.M | re.S
)
_TITLE = re.compile(r'title="([^"]+)"')


@dataclass(frozen=True, slots=True)
class Block:
    """One block. `start` and `end` are the offsets of its text in the page, `line` is the line of its fence."""

    language: str
    text: str
    title: str | None
    classes: frozenset[str]
    hidden: bool
    line: int
    start: int
    end: int
    indent: int


def blocks_of(page: str) -> list[Block]:
    """All blocks of a page, in the order in which they stand."""
    return sorted(_found(page), key=lambda block: block.start)


def _found(page: str) -> Iterator[Block]:
    fenced = []
    for match in _FENCE.finditer(page):
        fenced.append(match.span())
        yield _block(page, match, hidden=False)
    for match in _COMMENT.finditer(page):
        if not any(start <= match.start() < end for start, end in fenced):
            yield _block(page, match, hidden=True)


def _block(page: str, match: re.Match[str], *, hidden: bool) -> Block:
    info = match["info"].strip()
    title = _TITLE.search(info)
    words = _TITLE.sub("", info).strip("{} ").split()
    language = words[0].removeprefix(".") if words else ""
    indent = 0 if hidden else len(match["indent"])
    text = "".join(line[indent:] if line.strip() else "\n" for line in match["body"].splitlines(keepends=True))
    return Block(
        language,
        text,
        title[1] if title else None,
        frozenset(word.removeprefix(".") for word in words[1:]),
        hidden,
        page.count("\n", 0, match.start()) + 1,
        match.start("body"),
        match.end("body"),
        indent,
    )

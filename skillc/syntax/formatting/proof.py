"""The proof that a text and its canonical form are the same program, and that the form is its own.

The parser makes its tree of tokens, of where statements end, and of the places of `///`. So two texts that agree in
these have the same tree. Compared are tokens and not trees, for a second tree costs as much as all the rest.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import zip_longest

from skillc.syntax.formatting.layout import lay_out
from skillc.syntax.formatting.tokens import Token, UnknownTokenError, tokenize
from skillc.syntax.formatting.tree import Block, Statement, read, walk
from skillc.syntax.texts import text_value


class FlawError(Exception):
    """The canonical form is wrong, which is a mistake of the formatter; `place` is an offset in the source."""

    def __init__(self, place: int, message: str) -> None:
        super().__init__(message)
        self.place = place
        self.message = message


@dataclass(frozen=True, slots=True)
class Facts:
    """What a tree is made of, kept before the layout moves comments in it.

    Attributes:
        words: the tokens, with the beginning and the end of each statement.
        places: the offset of each of the words.
        comments: all comments in the order of the text.
        docs: documentation, with the number of its statement; None where it documents nothing.
    """

    words: list[str]
    places: list[int]
    comments: list[str]
    docs: list[tuple[int | None, str]]


def prove(before: Facts, made: str) -> None:
    """Compare a text, by its facts, with its canonical form.

    Raises:
        FlawError: they are not the same program, or the form is not its own.
    """
    try:
        again = read(*tokenize(made))
    except UnknownTokenError:
        raise FlawError(0, "the canonical form of this program does not parse") from None
    after = facts(again)
    for place, old, new in zip_longest(before.places, before.words, after.words):
        if old != new:
            raise FlawError(place or 0, "the canonical form of this statement is another statement")
    if before.comments != after.comments or before.docs != after.docs:
        raise FlawError(0, "the canonical form of this program has other comments")
    if lay_out(again) != made:
        raise FlawError(0, "the canonical form of this program has another canonical form")


def facts(program: Block) -> Facts:
    """The tokens, comments and documentation of a tree."""
    found = Facts([], [], [], [])
    open_: list[int] = []
    count = 0
    for item in walk(program):
        if isinstance(item, Statement):
            count += 1
            open_.append(count)
            _add(found, "\n", item.first)
            for i, token in enumerate(item.head):
                trailing = token.kind == "," and item.head[i + 1].kind in (")", "]")
                if not trailing:
                    _add(found, text_value(token.text) if token.kind == "text" else token.text, token)
                _comments(found, token, count if not i else None, count)
            if item.block:
                _add(found, "{", item.block.open)
                _comments(found, item.block.open, None, count)
            else:
                open_.pop()
        else:
            _add(found, "}", item.close)
            _comments(found, item.close, None, open_.pop())
    _comments(found, program.close, None, 0)
    return found


def _add(to: Facts, word: str, token: Token) -> None:
    to.words.append(word)
    to.places.append(token.start)


def _comments(to: Facts, token: Token, begun: int | None, inside: int) -> None:
    """The comments of a token that is the first of the statement `begun` and stands in the statement `inside`."""
    for _, comment in token.above:
        to.comments.append(comment)
        if comment.startswith("///"):
            to.docs.append((begun, comment))
    if token.behind is not None:
        to.comments.append(token.behind)
        if token.behind.startswith("///"):
            to.docs.append((inside, token.behind))

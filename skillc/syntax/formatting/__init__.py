"""Format programs.

Before a result is returned, it is proved to be the same program and to format to itself. The tree depends only on the
tokens, on where statements end, and on the positions of `///`, so the proof compares these instead of trees.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import zip_longest
from pathlib import Path

from skillc.dataclass import dataclass
from skillc.diagnostics.diagnostic import Diagnostic, Label, Severity
from skillc.errors import SkillcError
from skillc.syntax.files import SourceError, decode, read_program, write_source
from skillc.syntax.formatting.layout import lay_out
from skillc.syntax.formatting.words import FormatBlock, FormatStatement, FormatToken, group_tokens, walk
from skillc.syntax.literals import text_value
from skillc.syntax.parser import collector_paused, parse
from skillc.syntax.reader import Derivation, derive
from skillc.syntax.source import Source, Span
from skillc.syntax.tokens import tokenize


@dataclass(frozen=True, slots=True)
class Formatted:
    r"""A formatted text.

    Attributes:
        text: the formatted text, with `\n` as its line end; None if there are diagnostics.
        diagnostics: syntax errors, or a bug of the formatter (SK901).
    """

    text: str | None
    diagnostics: tuple[Diagnostic, ...] = ()


class _FormatterError(Exception):
    """The result is wrong; `place` is an offset in the source."""

    def __init__(self, place: int, message: str) -> None:
        super().__init__(message)
        self.place = place
        self.message = message


def format_source(source: Source) -> Formatted:
    """Format a program."""
    with collector_paused():
        parsed = parse(source)
        errors = tuple(each for each in parsed.diagnostics if each.severity is Severity.ERROR)
        if errors:
            return Formatted(None, errors)
        try:
            program = group_tokens(parsed.tokens)
            before = _facts(program)
            made = lay_out(program)
            if made != source.text:
                _prove(before, made)
        except _FormatterError as bug:
            return Formatted(None, (_bug(source, bug.place, bug.message),))
        except Exception as crash:  # Whatever went wrong, the source is unchanged.
            return Formatted(None, (_bug(source, 0, f"the formatter crashed with {type(crash).__name__}"),))
    return Formatted(made)


def _bug(source: Source, place: int, message: str) -> Diagnostic:
    place = min(place, len(source.text))
    hint = "this is a bug in skillc, and the file is unchanged; please report it with this statement"
    return Diagnostic("SK901", message, Label(source, Span(place, min(place + 1, len(source.text)))), hint=hint)


# ---- files ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class FormattedFile:
    """A file and its formatted text.

    Attributes:
        name: as the user wrote it.
        before: its bytes; empty if it could not be read.
        text: the formatted text; None if there are diagnostics or a problem.
        diagnostics: syntax errors, or a bug of the formatter.
        problem: why it could not be read or written.
    """

    name: str
    before: bytes
    text: str | None
    diagnostics: tuple[Diagnostic, ...] = ()
    problem: SkillcError | None = None

    @property
    def failed(self) -> bool:
        """Whether the file could not be formatted."""
        return self.text is None or self.problem is not None

    @property
    def changed(self) -> bool:
        """Whether formatting changes the file, including its line ends."""
        return self.text is not None and self.text.encode() != self.before


def format_bytes(name: str, data: bytes) -> FormattedFile:
    """Format the content of a file."""
    try:
        source = Source(name, decode(name, data))
    except SourceError as problem:
        return FormattedFile(name, data, None, problem=problem)
    formatted = format_source(source)
    return FormattedFile(name, data, formatted.text, formatted.diagnostics)


def format_file(path: Path) -> FormattedFile:
    """Format a file, without writing it."""
    try:
        data = read_program(path)
    except SourceError as problem:
        return FormattedFile(str(path), b"", None, problem=problem)
    return format_bytes(str(path), data)


def save(path: Path, outcome: FormattedFile) -> FormattedFile:
    """Write a formatted file atomically, following links and keeping permissions, unless it is unchanged.

    Returns:
        The outcome, with a problem if the file can't be written; its content is then unchanged.
    """
    if not outcome.changed or outcome.text is None:
        return outcome
    try:
        write_source(path, outcome.text, keep_mark=False)
    except SourceError as problem:
        return replace(outcome, problem=problem)
    return outcome


# ---- the proof ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Facts:
    """The parts that make two programs the same, recorded before the layout moves comments.

    Attributes:
        words: the tokens, with the beginning and the end of each statement.
        places: their offsets.
        comments: all comments in the order of the text.
        docs: documentation, with the number of its statement, or None.
    """

    words: list[str]
    places: list[int]
    comments: list[str]
    docs: list[tuple[int | None, str]]


def _prove(before: _Facts, made: str) -> None:
    """Check that the formatted text is the same program and formats to itself."""
    derived = derive(tokenize(made).found)
    if not isinstance(derived, Derivation):
        raise _FormatterError(0, "the formatted program does not parse")
    again = group_tokens(derived.tokens)
    after = _facts(again)
    for place, old, new in zip_longest(before.places, before.words, after.words):
        if old != new:
            raise _FormatterError(place or 0, "formatting would change this statement")
    if before.comments != after.comments or before.docs != after.docs:
        raise _FormatterError(0, "formatting would change the comments of this program")
    if lay_out(again) != made:
        raise _FormatterError(0, "formatting this program twice would change it again")


def _facts(program: FormatBlock) -> _Facts:
    found = _Facts([], [], [], [])
    open_: list[int] = []
    count = 0
    for item in walk(program):
        if isinstance(item, FormatStatement):
            count += 1
            open_.append(count)
            _add(found, "\n", item.first)
            for i, word in enumerate(item.head):
                trailing = word.role == "," and item.head[i + 1].role in (")", "]")
                if not trailing:
                    _add(found, text_value(word.text) if word.kind == "TEXT" else word.text, word)
                _comments(found, word, count if not i else None, count)
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


def _add(to: _Facts, text: str, word: FormatToken) -> None:
    to.words.append(text)
    to.places.append(word.start)


def _comments(to: _Facts, word: FormatToken, begun: int | None, inside: int) -> None:
    """Add the comments of a token that begins the statement `begun` and is part of the statement `inside`."""
    for comment in word.above:
        to.comments.append(comment.text)
        if comment.documents:
            to.docs.append((begun, comment.text))
    if word.behind is not None:
        to.comments.append(word.behind.text)
        if word.behind.documents:
            to.docs.append((inside, word.behind.text))

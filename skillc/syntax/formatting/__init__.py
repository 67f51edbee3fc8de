"""`format_source`: a program in its one canonical form, or why there is none.

The result is the same program and formats to itself; both is proved before it is returned. The parser makes its tree of
tokens, of where statements end, and of the places of `///`. So two texts that agree in these have the same tree, and
the proof compares tokens instead of trees.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import zip_longest
from pathlib import Path

from skillc.diagnostics.diagnostic import Diagnostic, Label, Severity
from skillc.errors import SkillcError
from skillc.syntax.files import SourceError, decode, read_program, write_source
from skillc.syntax.formatting.layout import lay_out
from skillc.syntax.formatting.words import Block, Statement, Word, read, walk
from skillc.syntax.literals import text_value
from skillc.syntax.parser import collector_paused, parse
from skillc.syntax.reader import Derivation, derive
from skillc.syntax.source import Source, Span
from skillc.syntax.tokens import tokenize


@dataclass(frozen=True, slots=True)
class Formatted:
    r"""The result for a text.

    Attributes:
        text: the canonical form, with `\n` as its line end; None where formatting was refused.
        diagnostics: why it was refused: what is wrong with the syntax, or a mistake of skillc itself (SK901).
    """

    text: str | None
    diagnostics: tuple[Diagnostic, ...] = ()


class _FlawError(Exception):
    """The canonical form is wrong, which is a mistake of the formatter; `place` is an offset in the source."""

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
            program = read(parsed.tokens)
            before = _facts(program)
            made = lay_out(program)
            if made != source.text:
                _prove(before, made)
        except _FlawError as flaw:
            return Formatted(None, (_bug(source, flaw.place, flaw.message),))
        except Exception as crash:  # Whatever goes wrong here, the file is sound and stays as it is.
            return Formatted(None, (_bug(source, 0, f"the formatter broke on this program ({type(crash).__name__})"),))
    return Formatted(made)


def _bug(source: Source, place: int, message: str) -> Diagnostic:
    place = min(place, len(source.text))
    hint = "this is a bug in skillc, and the file is as it was; please report it with this statement"
    return Diagnostic("SK901", message, Label(source, Span(place, min(place + 1, len(source.text)))), hint=hint)


# ---- files ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class FormattedFile:
    """A file and its canonical form.

    Attributes:
        name: as the user wrote it.
        before: its bytes; empty where it could not be read.
        text: its canonical form; None where there is none.
        diagnostics: why there is none.
        problem: why it could not be read or written.
    """

    name: str
    before: bytes
    text: str | None
    diagnostics: tuple[Diagnostic, ...] = ()
    problem: SkillcError | None = None

    @property
    def failed(self) -> bool:
        """Whether the file is neither in its canonical form nor could be brought into it."""
        return self.text is None or self.problem is not None

    @property
    def changed(self) -> bool:
        """Whether formatting changes the file, be it only by its line ends."""
        return self.text is not None and self.text.encode() != self.before


def format_bytes(name: str, data: bytes) -> FormattedFile:
    """Format what a file of that name holds."""
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
    """Write a file's canonical form atomically, following a link and keeping permissions; leave a formatted one alone.

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
    """What a program is made of, kept before the layout moves comments in it.

    Attributes:
        words: the words, with the beginning and the end of each statement.
        places: the offset of each of them.
        comments: all comments in the order of the text.
        docs: documentation, with the number of its statement; None where it documents nothing.
    """

    words: list[str]
    places: list[int]
    comments: list[str]
    docs: list[tuple[int | None, str]]


def _prove(before: _Facts, made: str) -> None:
    """Compare a program, by its facts, with its canonical form.

    Raises:
        _FlawError: they are not the same program, or the form does not format to itself.
    """
    derived = derive(tokenize(made).found)
    if not isinstance(derived, Derivation):
        raise _FlawError(0, "the canonical form of this program does not parse")
    again = read(derived.tokens)
    after = _facts(again)
    for place, old, new in zip_longest(before.places, before.words, after.words):
        if old != new:
            raise _FlawError(place or 0, "the canonical form of this statement is another statement")
    if before.comments != after.comments or before.docs != after.docs:
        raise _FlawError(0, "the canonical form of this program has other comments")
    if lay_out(again) != made:
        raise _FlawError(0, "the canonical form of this program has another canonical form")


def _facts(program: Block) -> _Facts:
    """The words, comments and documentation of a program."""
    found = _Facts([], [], [], [])
    open_: list[int] = []
    count = 0
    for item in walk(program):
        if isinstance(item, Statement):
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


def _add(to: _Facts, text: str, word: Word) -> None:
    to.words.append(text)
    to.places.append(word.start)


def _comments(to: _Facts, word: Word, begun: int | None, inside: int) -> None:
    """Add the comments of a word that is the first of the statement `begun` and part of the statement `inside`."""
    for comment in word.above:
        to.comments.append(comment.text)
        if comment.documents:
            to.docs.append((begun, comment.text))
    if word.behind is not None:
        to.comments.append(word.behind.text)
        if word.behind.documents:
            to.docs.append((inside, word.behind.text))

"""The input and output of the detectors of syntax errors, and the message for an error without a detector."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from skillc.dataclass import dataclass
from skillc.diagnostics.diagnostic import Diagnostic, Fix, Label
from skillc.syntax.reader import Failure
from skillc.syntax.source import Source, Span
from skillc.text import joined


class TextPatch(NamedTuple):
    """Replace the characters `start` to `end` with `text`."""

    start: int
    end: int
    text: str


@dataclass(frozen=True, slots=True)
class PatchedText:
    """A copy of a part of the source that recovery may change.

    Attributes:
        text: the copy.
        places: the offset in the source of each of its characters, and one more for the end.
    """

    source: Source
    text: str
    places: Sequence[int]

    def span(self, start: int, end: int) -> Span:
        """Return the span in the source of a range of the copy."""
        last = min(max(start, end), len(self.text))
        first = min(start, last)
        # `places[last]` would include what was removed after the range.
        stop = self.places[last - 1] + 1 if last > first else self.places[last]
        return Span(self.places[first], max(stop, self.places[first]))

    def patched(self, patches: Sequence[TextPatch]) -> PatchedText:
        """Apply patches that do not overlap."""
        text, places = self.text, list(self.places)
        for each in sorted(patches, reverse=True):
            places[each.start : each.end] = [places[each.start]] * len(each.text)
            text = text[: each.start] + each.text + text[each.end :]
        return PatchedText(self.source, text, places)

    def blanked(self, start: int, end: int) -> PatchedText:
        """Replace a range with spaces, except for its line ends."""
        blank = "".join(c if c in "\r\n" else " " for c in self.text[start:end])
        return PatchedText(self.source, self.text[:start] + blank + self.text[end:], self.places)


@dataclass(frozen=True, slots=True)
class Mistake:
    """A diagnostic, and the patches after which parsing can continue; none if the statement is dropped."""

    diagnostic: Diagnostic
    repair: tuple[TextPatch, ...] = ()


@dataclass(frozen=True, slots=True)
class ErrorContext:
    """A failure of the parser with its surroundings.

    Attributes:
        draft: the parsed text.
        failure: where parsing stopped.
        statement: start and end in the draft of the innermost statement around it.
    """

    draft: PatchedText
    failure: Failure
    statement: tuple[int, int]

    @property
    def kind(self) -> str:
        """The kind of the token at the failure."""
        return self.failure.at.kind

    @property
    def start(self) -> int:
        """The offset of the failure."""
        return self.failure.at.start

    @property
    def word(self) -> str:
        """The text of the token at the failure."""
        return self.draft.text[self.failure.at.start : self.failure.at.end]

    @property
    def last_kind(self) -> str:
        """The kind of the token before, empty at the beginning."""
        return self.failure.last.kind if self.failure.last else ""

    @property
    def last_end(self) -> int:
        """The end of the token before."""
        return self.failure.last.end if self.failure.last else 0

    @property
    def inside(self) -> str:
        """The kind of the innermost open bracket, empty outside brackets."""
        return self.failure.opened[-1].kind if self.failure.opened else ""

    def ahead(self, count: int = 1) -> str:
        """Return the characters that begin at the failure."""
        return self.draft.text[self.start : self.start + count]

    def behind(self, count: int = 1) -> str:
        """Return the characters that end at the failure."""
        return self.draft.text[max(0, self.start - count) : self.start]

    def first_on_line(self) -> bool:
        """Return whether only spaces precede the failure on its line."""
        text = self.draft.text
        return not text[text.rfind("\n", 0, self.start) + 1 : self.start].strip()

    def label(self, start: int, end: int, text: str = "") -> Label:
        """Return a label for a range of the draft."""
        return Label(self.draft.source, self.draft.span(start, end), text)

    def mistake(
        self,
        code: str,
        message: str,
        place: tuple[int, int],
        *,
        hint: str | None = None,
        secondary: Sequence[Label] = (),
        repair: Sequence[TextPatch] = (),
        fix: Sequence[TextPatch] | None = None,
        safe: bool | None = None,
    ) -> Mistake:
        """Build a mistake. With `safe` given, `fix` or else `repair` is offered to the user as a fix."""
        offered = None if safe is None else self._fix(repair if fix is None else fix, safe)
        found = Diagnostic(code, message, self.label(*place), secondary=tuple(secondary), hint=hint, fix=offered)
        return Mistake(found, tuple(repair))

    def replacement(
        self,
        code: str,
        message: str,
        place: tuple[int, int],
        text: str,
        *,
        hint: str | None = None,
        secondary: Sequence[Label] = (),
        safe: bool = True,
    ) -> Mistake:
        """Build a mistake whose repair and fix replace its range with a text; the default hint is to write the text."""
        repair = [TextPatch(*place, text)]
        return self.mistake(
            code, message, place, hint=hint or f"write `{text}`", secondary=secondary, repair=repair, safe=safe
        )

    def _fix(self, patches: Sequence[TextPatch], safe: bool) -> Fix | None:
        if not patches:
            return None
        start, end = min(each.start for each in patches), max(each.end for each in patches)
        text, span = self.draft.text[start:end], self.draft.span(start, end)
        if self.draft.source.slice(span) != text:
            return None
        for each in sorted(patches, reverse=True):
            text = text[: each.start - start] + each.text + text[each.end - start :]
        return Fix(span, text, safe)


Detector = Callable[[ErrorContext], Mistake | None]


def padded(text: str, place: tuple[int, int], word: str, opened: str = "") -> str:
    """Return a word for a range of a text, with spaces where none are around the range; none after `opened`."""
    before, after = text[: place[0]][-1:], text[place[1] : place[1] + 1]
    left = "" if before.isspace() or (opened and (not before or before in opened)) else " "
    return f"{left}{word}{'' if after.isspace() else ' '}"


# ---- the general message --------------------------------------------------------------------------

WORDS = {
    "LBRACE": "`{`",
    "RBRACE": "`}`",
    "LPAR": "`(`",
    "RPAR": "`)`",
    "LSQB": "`[`",
    "RSQB": "`]`",
    "EQUAL": "`=`",
    "COMMA": "`,`",
    "COLON": "`:`",
    "DOT": "`.`",
    "VBAR": "`|`",
    "AND": "`and`",
    "OR": "`or`",
    "NOT": "`not`",
    "AS": "`as`",
    "USE": "`use`",
    "NAME": "a name",
    "NUMBER": "a number",
    "MONEY": "an amount of money",
    "STRING": "a string",
    "TEXT": "a text",
    "PERCENT": "`%`",
    "COMPARE": "a comparison",
    "SIGN": "`+` or `-`",
    "SCALE": "`*` or `/`",
    "_END": "the end of the line",
    "$END": "the end of the file",
}
"""The names of the grammar's terminals in messages; a test compares the keys with the grammar."""

HIDDEN = {"UNCLOSED", "COMMENT"}
_VALUE = {"NUMBER", "STRING", "NAME", "LPAR"}
VALUES = {"NUMBER", "MONEY", "STRING", "TEXT", "NAME", "LPAR", "LSQB", "NOT", "SIGN"}
_OPERATORS = {"COMPARE", "SIGN", "SCALE", "AND", "OR", "DOT", "PERCENT"}
_ORDER = ("EQUAL", "COLON", "COMMA", "RPAR", "RSQB", "RBRACE", "LBRACE", "NAME", "STRING", "TEXT", "_END", "$END")


def expected(accepts: frozenset[str]) -> list[str]:
    """Return the names of what was expected, the likeliest first, at most four."""
    if accepts >= _VALUE:
        rest = accepts - VALUES - _OPERATORS
        return ["a value", *_named(rest)][:4]
    if accepts >= {"COMPARE", "SIGN"}:
        return ["an operator", *_named(accepts - _OPERATORS - VALUES)][:4]
    if "$END" in accepts and "NAME" in accepts:
        return ["a statement"]
    if "RBRACE" in accepts and accepts <= {"RBRACE", "NAME", "USE", "_END"}:
        return ["a statement", "`}`"]
    return _named(accepts)[:4]


def _named(accepts: frozenset[str]) -> list[str]:
    order = {kind: i for i, kind in enumerate(_ORDER)}
    if "_END" in accepts:
        accepts = accepts - {"$END"}
    kinds = sorted(accepts - HIDDEN, key=lambda kind: (order.get(kind, len(order)), kind))
    return [WORDS.get(kind, kind) for kind in kinds]


def unexpected(s: ErrorContext) -> Mistake:
    """Build the general message."""
    words = expected(s.failure.accepts)
    wanted = f"expected {joined(words, 'or')}" if words else "expected nothing more"
    if s.kind == "$END":
        end = max(s.last_end, 1)
        return s.mistake("SK001", f"{wanted}, but the statement ends here", (end - 1, end))
    if s.kind == "_END" and s.word != ";":
        return s.mistake("SK001", f"{wanted}, but the line ends here", (s.last_end, s.last_end))
    word = s.word if len(s.word) <= 30 else s.word[:29] + "…"
    word = word.splitlines()[0] if word else ""
    secondary = [
        s.label(each.start, each.end, "inside this") for each in s.failure.opened[-1:] if each.kind != "LBRACE"
    ]
    return s.mistake("SK001", f"{wanted}, found `{word}`", (s.start, s.failure.at.end), secondary=secondary)

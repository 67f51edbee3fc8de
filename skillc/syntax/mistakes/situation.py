"""The input and output of a detector of mistakes, and the message for a mistake that has no detector."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from skillc.diagnostics.diagnostic import Diagnostic, Fix, Label
from skillc.syntax.reader import Failure
from skillc.syntax.source import Source, Span
from skillc.text import joined


class Edit(NamedTuple):
    """Characters `start` to `end` of a draft, replaced by `text`."""

    start: int
    end: int
    text: str


@dataclass(frozen=True, slots=True)
class Draft:
    """A copy of a part of the source that recovery may change.

    Attributes:
        text: the copy.
        places: the offset in the source of each of its characters, and one more for the end.
    """

    source: Source
    text: str
    places: Sequence[int]

    def span(self, start: int, end: int) -> Span:
        """The place in the source of a range of the draft."""
        last = min(max(start, end), len(self.text))
        first = min(start, last)
        # Not `places[last]` alone: what was removed behind the range is no part of it.
        stop = self.places[last - 1] + 1 if last > first else self.places[last]
        return Span(self.places[first], max(stop, self.places[first]))

    def edited(self, edits: Sequence[Edit]) -> Draft:
        """The draft after edits that do not overlap, in any order."""
        text, places = self.text, list(self.places)
        for edit in sorted(edits, reverse=True):
            places[edit.start : edit.end] = [places[edit.start]] * len(edit.text)
            text = text[: edit.start] + edit.text + text[edit.end :]
        return Draft(self.source, text, places)

    def blanked(self, start: int, end: int) -> Draft:
        """The draft with a range turned into spaces, line ends kept."""
        blank = "".join(c if c in "\r\n" else " " for c in self.text[start:end])
        return Draft(self.source, self.text[:start] + blank + self.text[end:], self.places)

    def unchanged(self, start: int, end: int) -> bool:
        """Whether a range still reads as it does in the source."""
        return self.source.slice(self.span(start, end)) == self.text[start:end]


@dataclass(frozen=True, slots=True)
class Mistake:
    """A message, and the edits of the draft after which reading can continue; none if the statement is dropped."""

    diagnostic: Diagnostic
    repair: tuple[Edit, ...] = ()


@dataclass(frozen=True, slots=True)
class Situation:
    """A failure with its surroundings.

    Attributes:
        draft: the text that was read.
        failure: where reading stopped.
        statement: first character and end of the innermost statement around it, in the draft.
    """

    draft: Draft
    failure: Failure
    statement: tuple[int, int]

    @property
    def kind(self) -> str:
        """The kind of the token at the failure."""
        return self.failure.at.kind

    @property
    def start(self) -> int:
        """Where reading stopped."""
        return self.failure.at.start

    @property
    def word(self) -> str:
        """The text of the token at the failure."""
        return self.draft.text[self.failure.at.start : self.failure.at.end]

    @property
    def last_kind(self) -> str:
        """The grammar's name for the token before, empty at the beginning."""
        return self.failure.last.kind if self.failure.last else ""

    @property
    def last_end(self) -> int:
        """Where the token before ends."""
        return self.failure.last.end if self.failure.last else 0

    @property
    def inside(self) -> str:
        """The grammar's name for the innermost open bracket, empty outside of all."""
        return self.failure.opened[-1].kind if self.failure.opened else ""

    def ahead(self, count: int = 1) -> str:
        """The characters that begin at the failure."""
        return self.draft.text[self.start : self.start + count]

    def behind(self, count: int = 1) -> str:
        """The characters that end at the failure."""
        return self.draft.text[max(0, self.start - count) : self.start]

    def first_on_line(self) -> bool:
        """Whether there is only space on the line before the failure."""
        text = self.draft.text
        return not text[text.rfind("\n", 0, self.start) + 1 : self.start].strip()

    def label(self, start: int, end: int, text: str = "") -> Label:
        """A label for a range of the draft."""
        return Label(self.draft.source, self.draft.span(start, end), text)

    def mistake(
        self,
        code: str,
        message: str,
        place: tuple[int, int],
        *,
        hint: str | None = None,
        label: str = "",
        secondary: Sequence[Label] = (),
        repair: Sequence[Edit] = (),
        fix: Sequence[Edit] | None = None,
        safe: bool | None = None,
    ) -> Mistake:
        """A mistake; with `safe` given, the edits are offered to the user as a fix too, or those of `fix` instead."""
        edits = repair if fix is None else fix
        offered = self._fix(edits, safe) if edits and safe is not None else None
        found = Diagnostic(code, message, self.label(*place, label), secondary=tuple(secondary), hint=hint, fix=offered)
        return Mistake(found, tuple(repair))

    def _fix(self, edits: Sequence[Edit], safe: bool) -> Fix | None:
        start, end = min(edit.start for edit in edits), max(edit.end for edit in edits)
        if not self.draft.unchanged(start, end):
            return None
        text = self.draft.text[start:end]
        for edit in sorted(edits, reverse=True):
            text = text[: edit.start - start] + edit.text + text[edit.end - start :]
        return Fix(self.draft.span(start, end), text, safe)


Detector = Callable[[Situation], Mistake | None]


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
"""What each terminal of the grammar is called in a message; a test compares the keys with the grammar."""

HIDDEN = {"UNCLOSED", "COMMENT"}
_VALUE = {"NUMBER", "STRING", "NAME", "LPAR"}
_STARTS_VALUE = {"NUMBER", "MONEY", "STRING", "TEXT", "NAME", "LPAR", "LSQB", "NOT", "SIGN"}
_OPERATORS = {"COMPARE", "SIGN", "SCALE", "AND", "OR", "DOT", "PERCENT"}
_ORDER = ("EQUAL", "COLON", "COMMA", "RPAR", "RSQB", "RBRACE", "LBRACE", "NAME", "STRING", "TEXT", "_END", "$END")


def expected(accepts: frozenset[str]) -> list[str]:
    """Name what was expected, the likeliest first, at most four."""
    if accepts >= _VALUE:
        rest = accepts - _STARTS_VALUE - _OPERATORS
        return ["a value", *_named(rest)][:4]
    if accepts >= {"COMPARE", "SIGN"}:
        return ["an operator", *_named(accepts - _OPERATORS - _STARTS_VALUE)][:4]
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


def unexpected(s: Situation) -> Mistake:
    """The general message."""
    words = expected(s.failure.accepts)
    wanted = f"expected {joined(words, 'or')}" if words else "nothing more was expected"
    if s.kind == "$END":
        end = max(s.last_end, 1)
        return s.mistake("SK001", f"{wanted}, but the statement ends here", (end - 1, end))
    if s.kind == "_END" and s.word != ";":
        return s.mistake("SK001", f"{wanted}, but the line ends here", (s.last_end, s.last_end))
    shown = s.word if len(s.word) <= 30 else s.word[:29] + "…"
    shown = shown.splitlines()[0] if shown else ""
    secondary = [
        s.label(each.start, each.end, "inside this") for each in s.failure.opened[-1:] if each.kind != "LBRACE"
    ]
    return s.mistake("SK001", f"{wanted}, found `{shown}`", (s.start, s.failure.at.end), secondary=secondary)

"""What a detector of mistakes is given, and what it answers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from skillc.diagnostics.diagnostic import Diagnostic, Fix, Label
from skillc.syntax.draft import Draft, Edit
from skillc.syntax.reader import Failure


@dataclass(frozen=True, slots=True)
class Mistake:
    """A message, and the edits of the draft after which reading can go on; none where the statement is given up."""

    diagnostic: Diagnostic
    mend: tuple[Edit, ...] = ()


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
        """The grammar's name for what stands at the failure."""
        return self.failure.at.kind

    @property
    def start(self) -> int:
        """Where reading stopped."""
        return self.failure.at.start

    @property
    def word(self) -> str:
        """What stands at the failure."""
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
        """Whether nothing but space stands on the line before the failure."""
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
        mend: Sequence[Edit] = (),
        fix: Sequence[Edit] | None = None,
        safe: bool | None = None,
    ) -> Mistake:
        """A mistake; with `safe` given, the edits are offered to the user as a fix too, or those of `fix` instead."""
        edits = mend if fix is None else fix
        offered = self._fix(edits, safe) if edits and safe is not None else None
        found = Diagnostic(code, message, self.label(*place, label), secondary=tuple(secondary), hint=hint, fix=offered)
        return Mistake(found, tuple(mend))

    def _fix(self, edits: Sequence[Edit], safe: bool) -> Fix | None:
        start, end = min(edit.start for edit in edits), max(edit.end for edit in edits)
        if not self.draft.unchanged(start, end):
            return None
        text = self.draft.text[start:end]
        for edit in sorted(edits, reverse=True):
            text = text[: edit.start - start] + edit.text + text[edit.end - start :]
        return Fix(self.draft.span(start, end), text, safe)


Detector = Callable[[Situation], Mistake | None]

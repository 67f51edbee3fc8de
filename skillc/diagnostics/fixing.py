"""Apply the fixes of diagnostics to a text, round by round, until no applicable fix is left."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Generic, Protocol, TypeVar

from skillc.dataclass import dataclass
from skillc.diagnostics.diagnostic import Diagnostic, Fix, Severity
from skillc.syntax.source import Source, Span

ROUNDS = 20
"""Fixes may uncover findings with further fixes; after this many rounds the rest is left."""

# What a statement or the program lacks is reported once all of it can be parsed, so no fix causes it.
_MISSING = frozenset({"SK206", "SK207", "SK401", "SK405", "SK406", "SK407", "SK408", "SK508"})


class HasDiagnostics(Protocol):
    """The result of checking a text."""

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """Its findings."""


R = TypeVar("R", bound=HasDiagnostics)


@dataclass(frozen=True, slots=True)
class FixResult(Generic[R]):
    """A text after its fixes.

    Attributes:
        source: the text.
        checked: the result of checking it.
        applied: the findings that were fixed, in that order.
        refused: findings that remain because their fix would have caused a new error.
    """

    source: Source
    checked: R
    applied: tuple[Diagnostic, ...] = ()
    refused: tuple[Diagnostic, ...] = ()


def fix(source: Source, check: Callable[[Source], R], *, unsafe: bool = False) -> FixResult[R]:
    """Apply the safe fixes of a program, and with `unsafe` all others too.

    Args:
        source: the program. Fixes of findings in other files are not applied.
        check: checks a text; called again after each round.
        unsafe: also apply fixes that may change the meaning of the program.
    """
    checked, applied, refused = check(source), list[Diagnostic](), list[Diagnostic]()
    for _ in range(ROUNDS):
        fixable = [
            each
            for each in checked.diagnostics
            if each.fix and (each.fix.safe or unsafe) and each.primary.source == source and each not in refused
        ]
        if not fixable:
            break
        source, checked, done, not_done = _round(source, checked, _disjoint(fixable), check)
        applied += done
        # In another text they may do no harm.
        refused = [*refused, *not_done] if not done else []
    return FixResult(source, checked, tuple(applied), tuple(refused))


def _round(
    source: Source, checked: R, chosen: Sequence[Diagnostic], check: Callable[[Source], R]
) -> tuple[Source, R, list[Diagnostic], list[Diagnostic]]:
    """Return the new text, its check result, the findings that were fixed, and those whose fix was refused."""

    def attempt(edits: Sequence[Fix]) -> tuple[Source, R] | None:
        after = apply_fixes(source, edits)
        result = check(after)
        return (after, result) if _is_harmless(checked, result, source.name, _inserted(edits, source)) else None

    fixes = list(dict.fromkeys(each.fix for each in chosen if each.fix))
    if passed := attempt(fixes):
        return *passed, list(chosen), []
    done, refused = list[Diagnostic](), list[Diagnostic]()
    # One by one from the end, so that the offsets of the remaining ones stay valid.
    for edit in reversed(fixes):
        same = [each for each in chosen if each.fix == edit]
        if passed := attempt([edit]):
            source, checked = passed
            done += same
        else:
            refused += same
    return source, checked, done, refused


def apply_fixes(source: Source, fixes: Iterable[Fix]) -> Source:
    """Return a text after fixes that do not overlap, with its own line endings."""
    text = source.text
    for each in sorted(set(fixes), key=lambda fix: fix.span, reverse=True):
        text = text[: each.span.start] + with_line_ends_of(source, each.text) + text[each.span.end :]
    return Source(source.name, text)


def with_line_ends_of(source: Source, text: str) -> str:
    """Return a text with the line ends of a source."""
    return text.replace("\n", "\r\n") if "\r\n" in source.text else text


def _disjoint(found: Sequence[Diagnostic]) -> list[Diagnostic]:
    """Return findings whose fixes do not touch, in the order of the text; findings with equal fixes stay together."""
    chosen: list[Diagnostic] = []
    last: Fix | None = None
    for each in sorted(found, key=lambda d: d.fix.span if d.fix is not None else Span(0, 0)):
        assert each.fix is not None
        if last is None or each.fix == last or each.fix.span.start > last.span.end:
            chosen.append(each)
            last = each.fix
    return chosen


def _inserted(fixes: Iterable[Fix], source: Source) -> list[Span]:
    """Return the spans of the new texts in the fixed text."""
    spans, shift = [], 0
    for each in fixes:
        start, length = each.span.start + shift, len(with_line_ends_of(source, each.text))
        spans.append(Span(start, start + length))
        shift += length - (each.span.end - each.span.start)
    return spans


def _is_harmless(before: HasDiagnostics, after: HasDiagnostics, name: str, inserted: Sequence[Span]) -> bool:
    """Return whether the fixes in the file of this name caused no errors.

    A fix may reveal errors in a statement that could not be parsed before. But there must be no more syntax errors
    than before, and no new error in an inserted text.
    """
    old, new = _errors(before), _errors(after)
    if sum(each.code.startswith("SK0") for each in new) > sum(each.code.startswith("SK0") for each in old):
        return False
    added = Counter((each.code, each.message) for each in new) - Counter((each.code, each.message) for each in old)
    return not any(
        (each.code, each.message) in added
        and each.code not in _MISSING
        and each.primary.source.name == name
        and any(each.primary.span.start < span.end and span.start < each.primary.span.end for span in inserted)
        for each in new
    )


def _errors(checked: HasDiagnostics) -> list[Diagnostic]:
    return [each for each in checked.diagnostics if each.severity is Severity.ERROR]

"""Apply the fixes of diagnostics to a text, round by round, until none is left that may be applied."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from skillc.diagnostics.diagnostic import Diagnostic, Fix, Severity
from skillc.syntax.source import Source, Span

ROUNDS = 20
"""Fixes may uncover findings with further fixes; after so many rounds the rest is left."""

# What a statement or the program lacks is reported once all of it can be read, so no fix causes it.
_MISSING = frozenset({"SK206", "SK207", "SK401", "SK405", "SK406", "SK407", "SK408", "SK508"})


class Examined(Protocol):
    """The result of checking a text."""

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """Its findings."""


E = TypeVar("E", bound=Examined)


@dataclass(frozen=True, slots=True)
class FixResult(Generic[E]):
    """A text after its fixes.

    Attributes:
        source: the text.
        checked: the result of checking it.
        applied: the findings that were fixed, in that order.
        refused: findings that are left, because their fix would have left a new error.
    """

    source: Source
    checked: E
    applied: tuple[Diagnostic, ...] = ()
    refused: tuple[Diagnostic, ...] = ()


def fix(source: Source, examine: Callable[[Source], E], *, unsafe: bool = False) -> FixResult[E]:
    """Apply the safe fixes of a program, and with `unsafe` all others too.

    Args:
        source: the program. Fixes of findings in other files are not applied.
        examine: checks a text, in each round the text of the round before.
        unsafe: whether fixes that may change what the program means are applied.
    """
    checked, applied, refused = examine(source), list[Diagnostic](), list[Diagnostic]()
    for _ in range(ROUNDS):
        found = [each for each in checked.diagnostics if _may_fix(each, source, unsafe=unsafe)]
        chosen = _apart([each for each in found if each not in refused])
        if not chosen:
            break
        source, checked, done, not_done = _round(source, checked, chosen, examine)
        applied += done
        # In another text they may do no harm.
        refused = [*refused, *not_done] if not done else []
    return FixResult(source, checked, tuple(applied), tuple(refused))


def _may_fix(found: Diagnostic, source: Source, *, unsafe: bool) -> bool:
    return found.fix is not None and (found.fix.safe or unsafe) and found.primary.source == source


def _round(
    source: Source, checked: E, chosen: Sequence[Diagnostic], examine: Callable[[Source], E]
) -> tuple[Source, E, list[Diagnostic], list[Diagnostic]]:
    """Return the new text, the result of checking it, the findings that were fixed, and those whose fix was refused."""
    fixes = list(dict.fromkeys(_fixes(chosen)))
    after = apply_fixes(source, fixes)
    result = examine(after)
    if _sound(checked, result, source.name, _written(fixes, source)):
        return after, result, list(chosen), []
    done, refused = list[Diagnostic](), list[Diagnostic]()
    # One by one, from the end, so that the places of those before stay as they are.
    for edit in reversed(fixes):
        mended = [each for each in chosen if each.fix == edit]
        after = apply_fixes(source, [edit])
        result = examine(after)
        if _sound(checked, result, source.name, _written([edit], source)):
            source, checked = after, result
            done += mended
        else:
            refused += mended
    return source, checked, done, refused


def apply_fixes(source: Source, fixes: Iterable[Fix]) -> Source:
    """A text after fixes that do not overlap, with the line ends that it has."""
    text = source.text
    for each in sorted(set(fixes), key=lambda fix: fix.span, reverse=True):
        text = text[: each.span.start] + _in_lines_of(source, each.text) + text[each.span.end :]
    return Source(source.name, text)


def _in_lines_of(source: Source, text: str) -> str:
    return text.replace("\n", "\r\n") if "\r\n" in source.text else text


def _fixes(found: Iterable[Diagnostic]) -> list[Fix]:
    return [each.fix for each in found if each.fix is not None]


def _apart(found: Sequence[Diagnostic]) -> list[Diagnostic]:
    """Findings whose fixes do not touch, in the order of the text; findings with equal fixes are kept together."""
    chosen: list[Diagnostic] = []
    last: Fix | None = None
    for each in sorted(found, key=lambda d: d.fix.span if d.fix is not None else Span(0, 0)):
        assert each.fix is not None
        if last is None or each.fix == last or each.fix.span.start > last.span.end:
            chosen.append(each)
            last = each.fix
    return chosen


def _written(fixes: Iterable[Fix], source: Source) -> list[Span]:
    """The places of the new texts afterwards."""
    spans, moved = [], 0
    for each in dict.fromkeys(fixes):
        start, length = each.span.start + moved, len(_in_lines_of(source, each.text))
        spans.append(Span(start, start + length))
        moved += length - (each.span.end - each.span.start)
    return spans


def _sound(before: Examined, after: Examined, name: str, written: Sequence[Span]) -> bool:
    """Whether fixes in the file of this name did no harm.

    A fix may well bring errors to light, in a statement that could not be read before. But there must be no more
    errors of syntax than there were, and no new error where a fix has written.
    """
    if _unread(after) > _unread(before):
        return False
    new = Counter(_told(each) for each in _errors(after)) - Counter(_told(each) for each in _errors(before))
    return not any(
        _told(each) in new
        and each.code not in _MISSING
        and each.primary.source.name == name
        and any(_overlap(each.primary.span, place) for place in written)
        for each in _errors(after)
    )


def _errors(checked: Examined) -> Iterable[Diagnostic]:
    return (each for each in checked.diagnostics if each.severity is Severity.ERROR)


def _unread(checked: Examined) -> int:
    return sum(each.code.startswith("SK0") for each in _errors(checked))


def _told(found: Diagnostic) -> tuple[str, str]:
    return found.code, found.message


def _overlap(a: Span, b: Span) -> bool:
    return a.start < b.end and b.start < a.end

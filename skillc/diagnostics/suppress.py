"""Suppress findings that a comment ignores with a reason: `# skillc: ignore[SK409, SK504] the report shows it`.

At the end of a line a suppression covers the findings that begin on that line, on a separate line those that begin in
the statement below, its block included. Only warnings and notes can be suppressed, and only with a reason.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from skillc.diagnostics.codes import CODES, RETIRED
from skillc.diagnostics.diagnostic import LATER_VERSION, Diagnostic, Fix, Label, Severity, Suppressed
from skillc.syntax import nodes
from skillc.syntax.source import Source, Span
from skillc.text import listed

MARK = "skillc:"
"""A text without it has no suppression."""

# A comment that only mentions skillc is none; one that begins like a suppression, of any tool, is meant as one.
_MEANT = re.compile(r"#+[ \t]*skillc[ \t]*:[ \t]*(?:ign\w*|noqa|disable|suppress|allow|expect)\b", re.IGNORECASE)
_RIGHT = re.compile(r"#+[ \t]*skillc:[ \t]*ignore\[(?P<codes>[^\]]*)\](?P<reason>.*)")
_CODE = re.compile(r"[^,\s]+")
_PUNCTUATION = " \t:,;.–—-"
_SHAPE = "write `# skillc: ignore[SK409] why it may stay`"


@dataclass(frozen=True, slots=True)
class FilteredDiagnostics:
    """Findings after suppression: those that are shown, with what is wrong with suppressions, and the others."""

    kept: tuple[Diagnostic, ...]
    suppressed: tuple[Suppressed, ...] = ()


@dataclass(frozen=True, slots=True)
class _Suppression:
    source: Source
    comment: Span
    codes: tuple[tuple[str, Span], ...]
    reason: str
    covers: Span

    def at(self, code: str) -> Span:
        return next(span for word, span in self.codes if word == code)


def apply_suppressions(
    found: Sequence[Diagnostic], program: nodes.Program, phases: Collection[str]
) -> FilteredDiagnostics:
    """Remove suppressed findings, and add what is wrong with the suppressions of the program.

    Args:
        found: what one or several phases found, in any file of the program.
        program: the main file. Only its suppressions are judged, since other programs use the other files too.
        phases: the phases that are whole in `found`: suppressions of their codes are judged. With `check` also those
            that can't be read.
    """
    programs = {program.source.name: program} if MARK in program.source.text else {}
    programs |= _others(found, program)
    if not programs:
        return FilteredDiagnostics(tuple(found))
    wrong: list[Diagnostic] = []
    read: dict[str, tuple[_Suppression, ...]] = {}
    for name, each in programs.items():
        problems = wrong if "check" in phases and each is program else []
        read[name] = tuple(_read(each, problems))
    kept, suppressed, used, refused = _applied(found, read)
    if program.source.name in read:
        own = read[program.source.name]
        wrong += [each for each in refused if each.primary.source == program.source]
        if not any(each.severity is Severity.ERROR and each.code != LATER_VERSION for each in kept):
            wrong += _unused(own, used, phases)
    return FilteredDiagnostics((*kept, *wrong), tuple(suppressed))


def _others(found: Iterable[Diagnostic], program: nodes.Program) -> dict[str, nodes.Program]:
    """The other files in which something was found and something is suppressed."""
    from skillc.syntax.parser import parse

    sources = {each.primary.source.name: each.primary.source for each in found}
    sources.pop(program.source.name, None)
    return {name: parse(source).program for name, source in sources.items() if MARK in source.text}


def _applied(
    found: Sequence[Diagnostic], read: Mapping[str, tuple[_Suppression, ...]]
) -> tuple[list[Diagnostic], list[Suppressed], set[tuple[int, str]], list[Diagnostic]]:
    """What is kept, what is suppressed, the (place, code) pairs that were of use, and errors that can't be."""
    kept: list[Diagnostic] = []
    suppressed: list[Suppressed] = []
    used: set[tuple[int, str]] = set()
    refused: list[Diagnostic] = []
    for each in found:
        by = _suppression(each, read.get(each.primary.source.name, ()))
        if by is None:
            kept.append(each)
            continue
        used.add((by.comment.start, each.code))
        if each.severity is Severity.ERROR:
            kept.append(each)
            refused.append(_error(by, each))
        else:
            suppressed.append(Suppressed(each, by.reason, Label(by.source, by.comment)))
    return kept, suppressed, used, list(dict.fromkeys(refused))


def _suppression(found: Diagnostic, among: Iterable[_Suppression]) -> _Suppression | None:
    """The suppression of a finding; the closest of several."""
    start = found.primary.span.start
    fit = [
        each
        for each in among
        if each.covers.start <= start < each.covers.end and found.code in {code for code, _ in each.codes}
    ]
    return min(fit, key=lambda each: each.covers.end - each.covers.start, default=None)


# ---- reading --------------------------------------------------------------------------------------


def _read(program: nodes.Program, problems: list[Diagnostic]) -> Iterator[_Suppression]:
    """The suppressions of a file that have a reason; what is wrong with it and the others is added to `problems`."""
    for comment in program.comments:
        if comment.documents or not _MEANT.match(comment.text):
            continue
        right = _RIGHT.fullmatch(comment.text)
        words = list(_CODE.finditer(right["codes"])) if right is not None else []
        if right is None or not words:
            message = "this reads like a suppression, and is none"
            problems.append(_warning("SK041", program.source, comment.span, message, _SHAPE))
            continue
        start = comment.span.start + right.start("codes")
        codes = tuple((RETIRED.get(w[0], w[0]), Span(start + w.start(), start + w.end())) for w in words)
        problems += [_unknown(program.source, code, span) for code, span in codes if code not in CODES]
        reason = right["reason"].strip(_PUNCTUATION)
        if not reason:
            hint = "write the reason behind the `]`"
            problems.append(_warning("SK042", program.source, comment.span, "this suppression has no reason", hint))
            continue
        yield _Suppression(program.source, comment.span, codes, reason, _covered(program, comment.span))


def _covered(program: nodes.Program, comment: Span) -> Span:
    """The line that a comment ends, or the statement below it."""
    text = program.source.text
    begin = text.rfind("\n", 0, comment.start) + 1
    if text[begin : comment.start].strip():
        return Span(begin, comment.end)
    below = _code_below(program, comment.end)
    return _statement_at(program.statements, below) or Span(below, program.source.line_end(below))


def _code_below(program: nodes.Program, place: int) -> int:
    text, ends = program.source.text, {each.span.start: each.span.end for each in program.comments}
    while place < len(text) and (text[place].isspace() or place in ends):
        place = max(ends.get(place, 0), place + 1)
    return place


def _statement_at(statements: Iterable[nodes.Statement], place: int) -> Span | None:
    for each in statements:
        if each.span.start == place:
            return each.span
        if each.span.start < place < each.span.end:
            block = None if isinstance(each, nodes.Use) else each.block
            return _statement_at(block.statements, place) if block is not None else None
    return None


# ---- what is wrong with suppressions --------------------------------------------------------------


def _warning(code: str, source: Source, span: Span, message: str, hint: str, fix: Fix | None = None) -> Diagnostic:
    return Diagnostic(code, message, Label(source, span), Severity.WARNING, hint=hint, fix=fix)


def _unknown(source: Source, word: str, span: Span) -> Diagnostic:
    from skillc.diagnostics.suggest import suggest

    near = word.upper() if word.upper() in CODES else suggest(word.upper(), CODES)
    hint = f"did you mean `{near}`?" if near else "`skillc explain` lists all codes"
    fix = Fix(span, near, safe=False) if near else None
    return _warning("SK043", source, span, f"there is no code `{word}`", hint, fix)


def _error(by: _Suppression, found: Diagnostic) -> Diagnostic:
    label = Label(found.primary.source, found.primary.span, "this is the error")
    message = f"`{found.code}` is an error here, and errors can't be suppressed"
    span = by.at(found.code)
    hint = "mend the error, and remove this"
    return Diagnostic("SK044", message, Label(by.source, span), Severity.WARNING, (label,), hint)


def _unused(
    suppressions: Iterable[_Suppression], used: Collection[tuple[int, str]], phases: Collection[str]
) -> Iterator[Diagnostic]:
    for each in suppressions:
        idle = [
            (code, span)
            for code, span in each.codes
            if code in CODES
            and (CODES[code].settled_by or CODES[code].found_by) in phases
            and (each.comment.start, code) not in used
        ]
        if not idle:
            continue
        names = listed([code for code, _ in idle], "and")
        whole = len(idle) == len(each.codes)
        place = each.comment if whole else idle[0][1].to(idle[-1][1])
        message = f"nothing here has the code {names}, so there is nothing to suppress"
        fix = _removed(each) if whole else _without(each, {code for code, _ in idle})
        yield _warning("SK045", each.source, place, message, "remove it", fix)


def _removed(each: _Suppression) -> Fix:
    """Remove a comment, with its line if nothing else is on it."""
    text = each.source.text
    begin = text.rfind("\n", 0, each.comment.start) + 1
    before = text[begin : each.comment.start]
    if before.strip():
        return Fix(Span(begin + len(before.rstrip()), each.comment.end), "")
    end = each.source.line_end(each.comment.end)
    return Fix(Span(begin, min(end + 1, len(text))), "")


def _without(each: _Suppression, idle: Collection[str]) -> Fix:
    listed = each.codes[0][1].to(each.codes[-1][1])
    return Fix(listed, ", ".join(code for code, _ in each.codes if code not in idle))

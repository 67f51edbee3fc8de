"""Suppress findings that a comment ignores with a reason: `# skillc: ignore[SK409, SK504] the report shows it`.

At the end of a line a suppression covers the findings that begin on that line; on a separate line, those that begin in
the statement below, including its block. Only warnings and notes can be suppressed, and only with a reason.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence

from skillc.dataclass import dataclass
from skillc.diagnostics.codes import CODES, RETIRED
from skillc.diagnostics.diagnostic import LATER_VERSION, Diagnostic, Fix, Label, Severity, Suppressed
from skillc.syntax import nodes
from skillc.syntax.source import Source, Span
from skillc.text import listed

MARK = "skillc:"
"""A text without it has no suppression."""

# A comment that begins like a suppression of any tool is meant as one; a comment that only mentions skillc is not.
_INTENDED = re.compile(r"#+[ \t]*skillc[ \t]*:[ \t]*(?:ign\w*|noqa|disable|suppress|allow|expect)\b", re.IGNORECASE)
_VALID = re.compile(r"#+[ \t]*skillc:[ \t]*ignore\[(?P<codes>[^\]]*)\](?P<reason>.*)")
_CODE = re.compile(r"[^,\s]+")
_PUNCTUATION = " \t:,;.–—-"


@dataclass(frozen=True, slots=True)
class FilteredDiagnostics:
    """Findings after suppression, including those about the suppressions themselves."""

    kept: tuple[Diagnostic, ...]
    suppressed: tuple[Suppressed, ...] = ()


@dataclass(frozen=True, slots=True)
class _Suppression:
    source: Source
    comment: Span
    codes: tuple[tuple[str, Span], ...]
    reason: str
    covers: Span


def apply_suppressions(
    found: Sequence[Diagnostic], program: nodes.Program, phases: Collection[str]
) -> FilteredDiagnostics:
    """Remove suppressed findings, and add findings about the suppressions of the program.

    Args:
        found: the findings of one or several phases, in any file of the program.
        program: the main file. Only its suppressions are checked, because other programs share the other files.
        phases: the phases whose findings are complete, so that unused suppressions of their codes are reported. With
            `check`, malformed suppressions are reported too.
    """
    programs = {program.source.name: program} if MARK in program.source.text else {}
    programs |= _other_programs(found, program)
    if not programs:
        return FilteredDiagnostics(tuple(found))
    problems: list[Diagnostic] = []
    suppressions: dict[str, tuple[_Suppression, ...]] = {}
    for name, each in programs.items():
        ignored: list[Diagnostic] = []
        suppressions[name] = tuple(_read(each, problems if "check" in phases and each is program else ignored))
    kept: list[Diagnostic] = []
    suppressed: list[Suppressed] = []
    used: set[tuple[int, str]] = set()
    for finding in found:
        by = _suppression_of(finding, suppressions.get(finding.primary.source.name, ()))
        if by is not None:
            used.add((by.comment.start, finding.code))
        if by is not None and finding.severity is not Severity.ERROR:
            suppressed.append(Suppressed(finding, by.reason, Label(by.source, by.comment)))
            continue
        kept.append(finding)
        if by is not None and by.source == program.source:
            problems.append(_suppressed_error(by, finding))
    own = suppressions.get(program.source.name, ())
    if not any(each.severity is Severity.ERROR and each.code != LATER_VERSION for each in kept):
        problems += _unused(own, used, phases)
    return FilteredDiagnostics((*kept, *dict.fromkeys(problems)), tuple(suppressed))


def _other_programs(found: Iterable[Diagnostic], program: nodes.Program) -> dict[str, nodes.Program]:
    """Parse the other files that have findings and suppressions."""
    from skillc.syntax.parser import parse

    sources = {each.primary.source.name: each.primary.source for each in found}
    sources.pop(program.source.name, None)
    return {name: parse(source).program for name, source in sources.items() if MARK in source.text}


def _suppression_of(found: Diagnostic, among: Iterable[_Suppression]) -> _Suppression | None:
    """Return the innermost suppression that covers a finding."""
    start = found.primary.span.start
    covering = [
        each
        for each in among
        if each.covers.start <= start < each.covers.end and found.code in {code for code, _ in each.codes}
    ]
    return min(covering, key=lambda each: each.covers.end - each.covers.start, default=None)


# ---- reading --------------------------------------------------------------------------------------


def _read(program: nodes.Program, problems: list[Diagnostic]) -> Iterator[_Suppression]:
    """Yield the suppressions of a file that have a reason; add what is wrong with any to `problems`."""
    for comment in program.comments:
        if comment.documents or not _INTENDED.match(comment.text):
            continue
        match = _VALID.fullmatch(comment.text)
        words = list(_CODE.finditer(match["codes"])) if match is not None else []
        if match is None or not words:
            hint = "write `# skillc: ignore[SK409] why it may stay`"
            problems.append(_warning("SK041", program.source, comment.span, "malformed suppression", hint))
            continue
        start = comment.span.start + match.start("codes")
        codes = tuple((RETIRED.get(w[0], w[0]), Span(start + w.start(), start + w.end())) for w in words)
        problems += [_unknown(program.source, code, span) for code, span in codes if code not in CODES]
        reason = match["reason"].strip(_PUNCTUATION)
        if not reason:
            hint = "write the reason after the `]`"
            problems.append(_warning("SK042", program.source, comment.span, "the suppression has no reason", hint))
            continue
        yield _Suppression(program.source, comment.span, codes, reason, _covered(program, comment.span))


def _covered(program: nodes.Program, comment: Span) -> Span:
    """Return the line that a comment ends, or the statement below it."""
    text = program.source.text
    begin = program.source.line_start(comment.start)
    if text[begin : comment.start].strip():
        return Span(begin, comment.end)
    below, ends = comment.end, {each.span.start: each.span.end for each in program.comments}
    while below < len(text) and (text[below].isspace() or below in ends):
        below = max(ends.get(below, 0), below + 1)
    return _statement_at(program.statements, below) or Span(below, program.source.line_end(below))


def _statement_at(statements: Iterable[nodes.Statement], offset: int) -> Span | None:
    for each in statements:
        if each.span.start == offset:
            return each.span
        if each.span.start < offset < each.span.end:
            block = None if isinstance(each, nodes.Use) else each.block
            return _statement_at(block.statements, offset) if block is not None else None
    return None


# ---- findings about suppressions ------------------------------------------------------------------


def _warning(code: str, source: Source, span: Span, message: str, hint: str, fix: Fix | None = None) -> Diagnostic:
    return Diagnostic(code, message, Label(source, span), Severity.WARNING, hint=hint, fix=fix)


def _unknown(source: Source, word: str, span: Span) -> Diagnostic:
    from skillc.diagnostics.suggest import suggest

    near = word.upper() if word.upper() in CODES else suggest(word.upper(), CODES)
    hint = f"did you mean `{near}`?" if near else "`skillc explain` lists all codes"
    fix = Fix(span, near, safe=False) if near else None
    return _warning("SK043", source, span, f"unknown code `{word}`", hint, fix)


def _suppressed_error(by: _Suppression, found: Diagnostic) -> Diagnostic:
    label = Label(found.primary.source, found.primary.span, "the error")
    message = f"`{found.code}` is an error here, and errors can't be suppressed"
    span = next(span for code, span in by.codes if code == found.code)
    hint = "fix the error and remove the suppression"
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
        whole = len(idle) == len(each.codes)
        span = each.comment if whole else idle[0][1].to(idle[-1][1])
        message = f"unused suppression: no finding here has the code {listed([code for code, _ in idle], 'and')}"
        rest = ", ".join(code for code, span in each.codes if (code, span) not in idle)
        fix = _removal(each) if whole else Fix(each.codes[0][1].to(each.codes[-1][1]), rest)
        yield _warning("SK045", each.source, span, message, "remove it", fix)


def _removal(each: _Suppression) -> Fix:
    """Remove a comment, with its line if nothing else is on it."""
    text = each.source.text
    begin = each.source.line_start(each.comment.start)
    before = text[begin : each.comment.start]
    if before.strip():
        return Fix(Span(begin + len(before.rstrip()), each.comment.end), "")
    end = each.source.line_end(each.comment.end)
    return Fix(Span(begin, min(end + 1, len(text))), "")

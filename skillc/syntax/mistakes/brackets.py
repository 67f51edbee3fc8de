"""Brackets and strings that never close, and brackets that close nothing."""

from __future__ import annotations

import re

from skillc.syntax.draft import Draft, Edit
from skillc.syntax.mistakes.situation import Mistake, Situation
from skillc.syntax.outline import braces, indentation
from skillc.syntax.reader import DEPTH_LIMIT, GOES_ON, LENGTH_LIMIT
from skillc.syntax.texts import quote
from skillc.syntax.tokens import Token

_CLOSERS = {"LPAR": ")", "LSQB": "]", "LBRACE": "}"}
_ENDS = re.compile(r"\s*;|\s*[)\]}][)\]}\s]*$")
_OPENERS = {"RPAR": "LPAR", "RSQB": "LSQB", "RBRACE": "LBRACE"}


def open_string(s: Situation) -> Mistake | None:
    """A `"` without its partner on the line."""
    if s.kind != "UNCLOSED":
        return None
    word, start = s.word, s.start
    curly = next((i for i, c in enumerate(word) if c in "“”„«»"), None)
    if curly is not None:
        right = quote(word[1:curly])
        place = (start, start + curly + 1)
        mend = [Edit(*place, right)]
        message = 'a text that begins with `"` must end with it, not with a curly quote'
        return s.mistake("SK018", message, place, hint=f"write `{right}`", mend=mend, safe=True)
    stripped = word.rstrip()
    hint = 'end it with `"`; a text of several lines stands between two `"""`'
    ended = stripped[: _end(s, stripped)]
    mend = [Edit(start, start + len(ended), quote(ended[1:]))]
    return s.mistake("SK005", "this string has no end", (start, start + len(ended)), hint=hint, mend=mend, safe=False)


def _end(s: Situation, stripped: str) -> int:
    """Where a string without an end had better end: before what closes the bracket that its line opens."""
    opened = s.failure.opened
    if not opened or "\n" in s.draft.text[opened[-1].start : s.start]:
        return len(stripped)
    found = _ENDS.search(stripped)
    return found.start() if found is not None and found.start() > 0 else len(stripped)


def nesting(s: Situation) -> Mistake | None:
    """Brackets and operators within each other, or operators behind each other, without end."""
    if s.kind not in ("DEEP", "LONG"):
        return None
    hint = "give parts of it a name: `metric part = ...`"
    deep = s.kind == "DEEP"
    message = f"nested more than {DEPTH_LIMIT} deep" if deep else f"more than {LENGTH_LIMIT:,} operators in a row"
    return s.mistake("SK010", message, (s.start, s.failure.at.end), hint=hint)


def closes_nothing(s: Situation) -> Mistake | None:
    """A `}`, `)` or `]` without an opener, or with another kind of opener."""
    if s.kind not in _OPENERS:
        return None
    place = (s.start, s.failure.at.end)
    if not s.failure.opened:
        return _stray(s)
    opened = s.failure.opened[-1]
    if opened.kind == _OPENERS[s.kind]:
        return None
    right = _CLOSERS[opened.kind]
    if any(each.kind == _OPENERS[s.kind] for each in s.failure.opened):
        return _unclosed(s, opened, s.last_end)
    if opened.kind == "LBRACE":
        return _stray(s)
    label = s.label(opened.start, opened.end, f"this waits for `{right}`")
    return s.mistake(
        "SK004",
        f"this `{s.word}` closes nothing",
        place,
        hint=f"write `{right}`",
        secondary=[label],
        mend=[Edit(*place, right)],
        safe=False,
    )


def _stray(s: Situation) -> Mistake:
    place = (s.start, s.failure.at.end)
    # Behind an `=` the statement would go on with the next line.
    mend = [] if s.last_kind in GOES_ON else [Edit(*place, "")]
    return s.mistake("SK004", f"this `{s.word}` closes nothing", place, hint="remove it", mend=mend, safe=False)


def open_bracket(s: Situation) -> Mistake | None:
    """A bracket that is still open where the next statement, or nothing, follows."""
    if not s.failure.opened:
        return None
    opened = s.failure.opened[-1]
    if opened.kind == "LBRACE":
        return _open_block(s) if s.kind == "$END" else None
    text = s.draft.text
    if s.kind == "$END":
        return _unclosed(s, opened, max(s.last_end, opened.end))
    if s.first_on_line() and indentation(text, s.start) <= indentation(text, opened.start):
        return _unclosed(s, opened, s.last_end)
    return None


def _unclosed(s: Situation, opened: Token, end: int) -> Mistake:
    sign, closer = s.draft.text[opened.start : opened.end], _CLOSERS[opened.kind]
    mend = [Edit(end, end, closer)]
    return s.mistake(
        "SK003",
        f"this `{sign}` is never closed",
        (opened.start, opened.end),
        hint=f"close it with `{closer}`",
        mend=mend,
        safe=False,
    )


def _open_block(s: Situation) -> Mistake:
    guilty = _misaligned(s.draft) or s.failure.opened[-1]
    mend = [Edit(s.start, s.start, "\n" + "}" * sum(each.kind == "LBRACE" for each in s.failure.opened))]
    place = (guilty.start, guilty.end)
    return s.mistake("SK003", "this `{` is never closed", place, hint="close it with `}`", mend=mend)


def _misaligned(draft: Draft) -> Token | None:
    """The first `{` whose `}` stands at the head of a line that is less indented than the line of the `{`."""
    for start, end in braces(draft.text):
        line = draft.text.rfind("\n", 0, end) + 1
        alone = not draft.text[line:end].strip()
        if alone and indentation(draft.text, end) < indentation(draft.text, start):
            return Token("LBRACE", "{", start, 0)
    return None

"""Operators and comments of other languages that begin like one of ours; brackets and strings without a partner."""

from __future__ import annotations

import re

from skillc.syntax.literals import quote
from skillc.syntax.mistakes.situation import Draft, Edit, Mistake, Situation
from skillc.syntax.outline import braces, indentation
from skillc.syntax.reader import DEPTH_LIMIT, GOES_ON, LENGTH_LIMIT
from skillc.syntax.tokens import Token

_BLOCK_COMMENT = re.compile(r"/\*.*?(?:\*/|\Z)", re.DOTALL)
_HEAD_BEHIND_EQUALS = re.compile(r"=[ \t\r]*(?:(?:#[^\n]*+)?\n\s*)++(?:[^\W\d]\w*[ \t]+)*[^\W\d]\w*[ \t]*\Z")
_NUMBER = re.compile(r"\.[0-9][0-9_]*")
VALUES = {"NUMBER", "MONEY", "STRING", "TEXT", "NAME", "LPAR", "LSQB", "NOT", "SIGN"}
_CLOSERS = {"LPAR": ")", "LSQB": "]", "LBRACE": "}"}
_ENDS = re.compile(r"\s*;|\s*[)\]}][)\]}\s]*$")
_OPENERS = {"RPAR": "LPAR", "RSQB": "LSQB", "RBRACE": "LBRACE"}


def or_sign(s: Situation) -> Mistake | None:
    """`||`, between values or between labels."""
    if s.kind != "VBAR":
        return None
    start = s.start - 1 if s.behind() == "|" else s.start
    if s.draft.text[start : start + 2] != "||":
        return None
    right = "|" if s.last_kind == "VBAR" else "or"
    text = s.draft.text
    padded = "" if text[start - 1 : start].isspace() else " "
    after = "" if text[start + 2 : start + 3].isspace() else " "
    edit = Edit(start, start + 2, right if right == "|" else f"{padded}{right}{after}")
    return s.mistake(
        "SK015", "`||` is not an operator", (start, start + 2), hint=f"write `{right}`", repair=[edit], safe=True
    )


def comment_sign(s: Situation) -> Mistake | None:
    """`// note` and `/* note */`."""
    if s.kind != "SCALE":
        return None
    text = s.draft.text
    start = s.start - 1 if s.behind() == "/" and s.word in "/*" else s.start
    if text.startswith("/*", start):
        match = _BLOCK_COMMENT.match(text, start)
        end = match.end() if match else len(text)
        repair = [Edit(start, end, re.sub(r"[^\n]", " ", text[start:end]))]
        message, hint = "`/* */` does not make a comment", "write `#` before each line of it"
        lines = _lines_of_comment(text, start, end) if match and match[0].endswith("*/") else None
        fix = [Edit(start, end, lines)] if lines is not None else []
        return s.mistake("SK019", message, (start, start + 2), hint=hint, repair=repair, fix=fix, safe=True)
    if text.startswith("//", start):
        edit = Edit(start, start + 2, "#")
        return s.mistake(
            "SK019", "`//` does not begin a comment", (start, start + 2), hint="write `#`", repair=[edit], safe=True
        )
    return None


def _lines_of_comment(text: str, start: int, end: int) -> str | None:
    """`/* ... */` with a `#` before each line; None where code follows on its last line."""
    line_end = text.find("\n", end)
    if text[end : line_end if line_end >= 0 else len(text)].strip():
        return None
    lines = text[start + 2 : end - 2].split("\n")
    indent = text[text.rfind("\n", 0, start) + 1 : start]
    margin = indent if not indent.strip() else ""
    words = [line.strip().removeprefix("*").strip() for line in lines]
    while len(words) > 1 and not words[-1]:
        words.pop()
    while len(words) > 1 and not words[0]:
        words.pop(0)
    return f"\n{margin}".join(f"# {each}".rstrip() for each in words)


def arithmetic(s: Situation) -> Mistake | None:
    """`**` and `%` between values."""
    if s.kind == "SCALE" and s.word == "*" and s.behind() == "*":
        return s.mistake("SK028", "there is no power", (s.start - 1, s.start + 1), hint="write `x * x`")
    if s.kind == "PERCENT":
        hint = "`%` stands behind a number: `5%`"
        return s.mistake("SK028", "there is no modulo", (s.start, s.start + 1), hint=hint)
    return None


def comparison_sign(s: Situation) -> Mistake | None:
    """`=>`, `=<`, `<>`, `===` between values, and one `=` where two are meant."""
    text, start = s.draft.text, s.start
    pair = text[start - 1 : start + 1] if s.kind == "COMPARE" and s.behind() == "<" else s.ahead(2)
    right = {"=>": ">=", "=<": "<=", "<>": "!="}.get(pair)
    if right and s.kind in ("EQUAL", "COMPARE"):
        start = start if s.ahead(2) == pair else start - 1
        edit = Edit(start, start + 2, right)
        return s.mistake(
            "SK016",
            f"`{pair}` is not an operator",
            (start, start + 2),
            hint=f"write `{right}`",
            repair=[edit],
            safe=True,
        )
    if s.kind == "EQUAL" and s.behind(2) in ("==", "!="):
        return s.mistake(
            "SK016",
            f"`{s.behind(2)}=` is not an operator",
            (start - 2, start + 1),
            hint=f"write `{s.behind(2)}`",
            repair=[Edit(start, start + 1, "")],
            safe=True,
        )
    if s.kind != "EQUAL" or not _in_value(s):
        return None
    if head := _HEAD_BEHIND_EQUALS.search(text, s.statement[0], s.start):
        place = (head.start(), head.start() + 1)
        repair = [Edit(s.statement[0], place[1], "")]
        return s.mistake("SK026", "no value follows the `=`", place, hint="write the value behind it", repair=repair)
    hint = "write `==` to compare; one `=` gives a name its value"
    edit = Edit(start, start + 1, "==")
    return s.mistake("SK014", "`=` does not compare", (start, start + 1), hint=hint, repair=[edit], safe=True)


def _in_value(s: Situation) -> bool:
    return "COMPARE" in s.failure.accepts


def setting_sign(s: Situation) -> Mistake | None:
    """`==`, `:=`, `+=` or `->` where `=` gives a value."""
    text, start = s.draft.text, s.start
    if s.kind == "COMPARE" and s.word == "==" and "EQUAL" in s.failure.accepts and s.ahead(3) != "===":
        message, place = "`==` compares; it gives no value", (start, start + 2)
        return s.mistake("SK027", message, place, hint="write `=`", repair=[Edit(*place, "=")], safe=True)
    if s.kind == "EQUAL" and s.last_kind in ("COLON", "SIGN", "SCALE") and s.last_end == start:
        place = (start - 1, start + 1)
        return s.mistake(
            "SK027",
            f"`{text[start - 1 : start + 1]}` is not an operator",
            place,
            hint="write `=`",
            repair=[Edit(*place, "=")],
            # `+=` adds to what there is, elsewhere.
            safe=s.last_kind == "COLON",
        )
    return None


def bare_point(s: Situation) -> Mistake | None:
    """`.5` and `5.`."""
    if s.kind != "DOT" and s.last_kind != "DOT":
        return None
    text = s.draft.text
    if s.kind == "DOT" and (match := _NUMBER.match(text, s.start)) and not s.behind().isalnum():
        right = "0" + match[0]
        repair = [Edit(s.start, s.start, "0")]
        message = "a number begins with a digit"
        return s.mistake("SK021", message, (s.start, match.end()), hint=f"write `{right}`", repair=repair, safe=True)
    point = s.start if s.kind == "DOT" else s.last_end - 1
    if point and text[point - 1].isdigit() and not text[point + 1 : point + 2].isalnum():
        place = (point, point + 1)
        hint = "write `5` or `5.0`"
        return s.mistake(
            "SK021", "no digit follows the point", place, hint=hint, repair=[Edit(*place, ".0")], safe=True
        )
    return None


# ---- brackets and strings -------------------------------------------------------------------------


def open_string(s: Situation) -> Mistake | None:
    """A `"` without its partner on the line."""
    if s.kind != "UNCLOSED":
        return None
    word, start = s.word, s.start
    curly = next((i for i, c in enumerate(word) if c in "“”„«»"), None)
    if curly is not None:
        right = quote(word[1:curly])
        place = (start, start + curly + 1)
        repair = [Edit(*place, right)]
        message = 'a text that begins with `"` must end with it, not with a curly quote'
        return s.mistake("SK018", message, place, hint=f"write `{right}`", repair=repair, safe=True)
    stripped = word.rstrip()
    hint = 'end it with `"`; a text of several lines stands between two `"""`'
    ended = stripped[: _end(s, stripped)]
    repair = [Edit(start, start + len(ended), quote(ended[1:]))]
    return s.mistake(
        "SK005", "this string has no end", (start, start + len(ended)), hint=hint, repair=repair, safe=False
    )


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
        repair=[Edit(*place, right)],
        safe=False,
    )


def _stray(s: Situation) -> Mistake:
    place = (s.start, s.failure.at.end)
    # Behind an `=` the statement would go on with the next line.
    repair = [] if s.last_kind in GOES_ON else [Edit(*place, "")]
    return s.mistake("SK004", f"this `{s.word}` closes nothing", place, hint="remove it", repair=repair, safe=False)


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
    repair = [Edit(end, end, closer)]
    return s.mistake(
        "SK003",
        f"this `{sign}` is never closed",
        (opened.start, opened.end),
        hint=f"close it with `{closer}`",
        repair=repair,
        safe=False,
    )


def _open_block(s: Situation) -> Mistake:
    guilty = _misaligned(s.draft) or s.failure.opened[-1]
    repair = [Edit(s.start, s.start, "\n" + "}" * sum(each.kind == "LBRACE" for each in s.failure.opened))]
    place = (guilty.start, guilty.end)
    return s.mistake("SK003", "this `{` is never closed", place, hint="close it with `}`", repair=repair)


def _misaligned(draft: Draft) -> Token | None:
    """Find the first `{` whose `}` begins a line that is less indented than the line of the `{`."""
    for start, end in braces(draft.text):
        line = draft.text.rfind("\n", 0, end) + 1
        alone = not draft.text[line:end].strip()
        if alone and indentation(draft.text, end) < indentation(draft.text, start):
            return Token("LBRACE", "{", start, 0)
    return None

"""Operators and comments of other languages that begin like something of ours."""

from __future__ import annotations

import re

from skillc.syntax.draft import Edit
from skillc.syntax.mistakes.situation import Mistake, Situation

_BLOCK_COMMENT = re.compile(r"/\*.*?(?:\*/|\Z)", re.DOTALL)
_HEAD_BEHIND_EQUALS = re.compile(r"=[ \t\r]*(?:(?:#[^\n]*+)?\n\s*)++(?:[^\W\d]\w*[ \t]+)*[^\W\d]\w*[ \t]*\Z")
_NUMBER = re.compile(r"\.[0-9][0-9_]*")
VALUES = {"NUMBER", "MONEY", "STRING", "TEXT", "NAME", "LPAR", "LSQB", "NOT", "SIGN"}


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
        "SK015", "`||` is not an operator", (start, start + 2), hint=f"write `{right}`", mend=[edit], safe=True
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
        mend = [Edit(start, end, re.sub(r"[^\n]", " ", text[start:end]))]
        message, hint = "`/* */` does not make a comment", "write `#` before each line of it"
        lines = _lines_of_comment(text, start, end) if match and match[0].endswith("*/") else None
        fix = [Edit(start, end, lines)] if lines is not None else []
        return s.mistake("SK019", message, (start, start + 2), hint=hint, mend=mend, fix=fix, safe=True)
    if text.startswith("//", start):
        edit = Edit(start, start + 2, "#")
        return s.mistake(
            "SK019", "`//` does not begin a comment", (start, start + 2), hint="write `#`", mend=[edit], safe=True
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
            "SK016", f"`{pair}` is not an operator", (start, start + 2), hint=f"write `{right}`", mend=[edit], safe=True
        )
    if s.kind == "EQUAL" and s.behind(2) in ("==", "!="):
        return s.mistake(
            "SK016",
            f"`{s.behind(2)}=` is not an operator",
            (start - 2, start + 1),
            hint=f"write `{s.behind(2)}`",
            mend=[Edit(start, start + 1, "")],
            safe=True,
        )
    if s.kind != "EQUAL" or not _in_value(s):
        return None
    if head := _HEAD_BEHIND_EQUALS.search(text, s.statement[0], s.start):
        place = (head.start(), head.start() + 1)
        mend = [Edit(s.statement[0], place[1], "")]
        return s.mistake("SK026", "no value follows the `=`", place, hint="write the value behind it", mend=mend)
    hint = "write `==` to compare; one `=` gives a name its value"
    edit = Edit(start, start + 1, "==")
    return s.mistake("SK014", "`=` does not compare", (start, start + 1), hint=hint, mend=[edit], safe=True)


def _in_value(s: Situation) -> bool:
    return "COMPARE" in s.failure.accepts


def setting_sign(s: Situation) -> Mistake | None:
    """`==`, `:=`, `+=` or `->` where `=` gives a value."""
    text, start = s.draft.text, s.start
    if s.kind == "COMPARE" and s.word == "==" and "EQUAL" in s.failure.accepts and s.ahead(3) != "===":
        message, place = "`==` compares; it gives no value", (start, start + 2)
        return s.mistake("SK027", message, place, hint="write `=`", mend=[Edit(*place, "=")], safe=True)
    if s.kind == "EQUAL" and s.last_kind in ("COLON", "SIGN", "SCALE") and s.last_end == start:
        place = (start - 1, start + 1)
        return s.mistake(
            "SK027",
            f"`{text[start - 1 : start + 1]}` is not an operator",
            place,
            hint="write `=`",
            mend=[Edit(*place, "=")],
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
        mend = [Edit(s.start, s.start, "0")]
        message = "a number begins with a digit"
        return s.mistake("SK021", message, (s.start, match.end()), hint=f"write `{right}`", mend=mend, safe=True)
    point = s.start if s.kind == "DOT" else s.last_end - 1
    if point and text[point - 1].isdigit() and not text[point + 1 : point + 2].isalnum():
        place = (point, point + 1)
        hint = "write `5` or `5.0`"
        return s.mistake("SK021", "no digit follows the point", place, hint=hint, mend=[Edit(*place, ".0")], safe=True)
    return None

"""Operators and comments of other languages that begin like ours; brackets and strings without a partner."""

from __future__ import annotations

import re

from skillc.syntax.literals import quote
from skillc.syntax.mistakes.context import ErrorContext, Mistake, PatchedText, TextPatch, padded
from skillc.syntax.outline import braces, indentation
from skillc.syntax.reader import CONTINUES, DEPTH_LIMIT, LENGTH_LIMIT
from skillc.syntax.source import blank
from skillc.syntax.tokens import Token

_BLOCK_COMMENT = re.compile(r"/\*.*?(?:\*/|\Z)", re.DOTALL)
_HEAD_AFTER_EQUALS = re.compile(r"=[ \t\r]*(?:(?:#[^\n]*+)?\n\s*)++(?:[^\W\d]\w*[ \t]+)*[^\W\d]\w*[ \t]*\Z")
_NUMBER = re.compile(r"\.[0-9][0-9_]*")
_CLOSERS = {"LPAR": ")", "LSQB": "]", "LBRACE": "}"}
_ENDS = re.compile(r"\s*;|\s*[)\]}][)\]}\s]*$")
_OPENERS = {"RPAR": "LPAR", "RSQB": "LSQB", "RBRACE": "LBRACE"}


def or_sign(s: ErrorContext) -> Mistake | None:
    """`||`, between values or between labels."""
    if s.kind != "VBAR":
        return None
    start = s.start - 1 if s.behind() == "|" else s.start
    place, message = (start, start + 2), "`||` is not an operator"
    if s.draft.text[slice(*place)] != "||":
        return None
    if s.last_kind == "VBAR":
        return s.replacement("SK015", message, place, "|")
    return s.replacement("SK015", message, place, padded(s.draft.text, place, "or"), hint="write `or`")


def comment_sign(s: ErrorContext) -> Mistake | None:
    """`// note` and `/* note */`."""
    if s.kind != "SCALE":
        return None
    text = s.draft.text
    start = s.start - 1 if s.behind() == "/" and s.word in "/*" else s.start
    place = (start, start + 2)
    if text.startswith("/*", start):
        match = _BLOCK_COMMENT.match(text, start)
        end = match.end() if match else len(text)
        repair = [TextPatch(start, end, blank(text[start:end]))]
        lines = _lines_of_comment(text, start, end) if match and match[0].endswith("*/") else None
        fix = [TextPatch(start, end, lines)] if lines is not None else []
        message, hint = "block comments are not supported", "write `#` before each line"
        return s.mistake("SK019", message, place, hint=hint, repair=repair, fix=fix, safe=True)
    if text.startswith("//", start):
        return s.replacement("SK019", "`//` does not begin a comment", place, "#")
    return None


def _lines_of_comment(text: str, start: int, end: int) -> str | None:
    """Return `/* ... */` with a `#` before each line; None if code follows on its last line."""
    line_end = text.find("\n", end)
    if text[end : line_end if line_end >= 0 else len(text)].strip():
        return None
    indent = text[text.rfind("\n", 0, start) + 1 : start]
    margin = indent if not indent.strip() else ""
    words = "\n".join(line.strip().removeprefix("*").strip() for line in text[start + 2 : end - 2].split("\n"))
    return f"\n{margin}".join(f"# {each}".rstrip() for each in words.strip("\n").split("\n"))


def arithmetic(s: ErrorContext) -> Mistake | None:
    """`**` and `%` between values."""
    if s.kind == "SCALE" and s.word == "*" and s.behind() == "*":
        return s.mistake("SK028", "the language has no power", (s.start - 1, s.start + 1), hint="write `x * x`")
    if s.kind == "PERCENT":
        message, hint = "the language has no modulo", "write `%` after a number: `5%`"
        return s.mistake("SK028", message, (s.start, s.start + 1), hint=hint)
    return None


def comparison_sign(s: ErrorContext) -> Mistake | None:
    """`=>`, `=<`, `<>`, `===` between values, and `=` instead of `==`."""
    text, start = s.draft.text, s.start
    pair = text[start - 1 : start + 1] if s.kind == "COMPARE" and s.behind() == "<" else s.ahead(2)
    right = {"=>": ">=", "=<": "<=", "<>": "!="}.get(pair)
    if right and s.kind in ("EQUAL", "COMPARE"):
        start = start if s.ahead(2) == pair else start - 1
        return s.replacement("SK016", f"`{pair}` is not an operator", (start, start + 2), right)
    if s.kind == "EQUAL" and s.behind(2) in ("==", "!="):
        place, right = (start - 2, start + 1), s.behind(2)
        repair = [TextPatch(start, start + 1, "")]
        message = f"`{right}=` is not an operator"
        return s.mistake("SK016", message, place, hint=f"write `{right}`", repair=repair, safe=True)
    if s.kind != "EQUAL" or "COMPARE" not in s.failure.accepts:
        return None
    if head := _HEAD_AFTER_EQUALS.search(text, s.statement[0], s.start):
        place = (head.start(), head.start() + 1)
        repair = [TextPatch(s.statement[0], place[1], "")]
        return s.mistake("SK026", "no value follows the `=`", place, hint="write the value after it", repair=repair)
    hint = "write `==` to compare; `=` assigns a value"
    return s.replacement("SK014", "`=` does not compare", (start, start + 1), "==", hint=hint)


def setting_sign(s: ErrorContext) -> Mistake | None:
    """`==`, `:=`, `+=` or `->` instead of `=`."""
    start = s.start
    if s.kind == "COMPARE" and s.word == "==" and "EQUAL" in s.failure.accepts and s.ahead(3) != "===":
        return s.replacement("SK027", "`==` compares; it does not assign a value", (start, start + 2), "=")
    if s.kind == "EQUAL" and s.last_kind in ("COLON", "SIGN", "SCALE") and s.last_end == start:
        place = (start - 1, start + 1)
        message = f"`{s.draft.text[slice(*place)]}` is not an operator"
        # In other languages `+=` adds to the value.
        return s.replacement("SK027", message, place, "=", safe=s.last_kind == "COLON")
    return None


def bare_point(s: ErrorContext) -> Mistake | None:
    """`.5` and `5.`."""
    if s.kind != "DOT" and s.last_kind != "DOT":
        return None
    text = s.draft.text
    if s.kind == "DOT" and (match := _NUMBER.match(text, s.start)) and not s.behind().isalnum():
        message, hint, repair = (
            "a number begins with a digit",
            f"write `0{match[0]}`",
            [TextPatch(s.start, s.start, "0")],
        )
        return s.mistake("SK021", message, match.span(), hint=hint, repair=repair, safe=True)
    point = s.start if s.kind == "DOT" else s.last_end - 1
    if point and text[point - 1].isdigit() and not text[point + 1 : point + 2].isalnum():
        hint = "write `5` or `5.0`"
        return s.replacement("SK021", "no digit follows the decimal point", (point, point + 1), ".0", hint=hint)
    return None


# ---- brackets and strings -------------------------------------------------------------------------


def open_string(s: ErrorContext) -> Mistake | None:
    """A `"` without its partner on the line."""
    if s.kind != "UNCLOSED":
        return None
    word, start = s.word, s.start
    curly = next((i for i, c in enumerate(word) if c in "“”„«»"), None)
    if curly is not None:
        message = 'a string that begins with `"` must end with `"`, not with a curly quote'
        return s.replacement("SK018", message, (start, start + curly + 1), quote(word[1:curly]))
    ended = _likely_string(s, word.rstrip())
    hint = 'end it with `"`; a text of several lines is between two `"""`'
    place = (start, start + len(ended))
    return s.replacement("SK005", "unterminated string", place, quote(ended[1:]), hint=hint, safe=False)


def _likely_string(s: ErrorContext, word: str) -> str:
    """Return an unterminated string up to what closes the bracket that its line opens."""
    opened = s.failure.opened
    if not opened or "\n" in s.draft.text[opened[-1].start : s.start]:
        return word
    found = _ENDS.search(word)
    return word[: found.start()] if found is not None and found.start() > 0 else word


def nesting(s: ErrorContext) -> Mistake | None:
    """Brackets or operators that nest too deeply, or too many operators in a row."""
    if s.kind not in ("DEEP", "LONG"):
        return None
    deep = s.kind == "DEEP"
    message = f"nested more than {DEPTH_LIMIT} deep" if deep else f"more than {LENGTH_LIMIT:,} operators in a row"
    hint = "move parts of it into metrics: `metric part = ...`"
    return s.mistake("SK010", message, (s.start, s.failure.at.end), hint=hint)


def closes_nothing(s: ErrorContext) -> Mistake | None:
    """A `}`, `)` or `]` without an opening bracket, or with another kind of opening bracket."""
    if s.kind not in _OPENERS:
        return None
    if not s.failure.opened:
        return _stray(s)
    opened = s.failure.opened[-1]
    if opened.kind == _OPENERS[s.kind]:
        return None
    if any(each.kind == _OPENERS[s.kind] for each in s.failure.opened):
        return _unclosed(s, opened, s.last_end)
    if opened.kind == "LBRACE":
        return _stray(s)
    right, place = _CLOSERS[opened.kind], (s.start, s.failure.at.end)
    label = s.label(opened.start, opened.end, f"this needs a `{right}`")
    return s.replacement("SK004", f"unmatched `{s.word}`", place, right, secondary=[label], safe=False)


def _stray(s: ErrorContext) -> Mistake:
    place = (s.start, s.failure.at.end)
    # After `=` the statement would continue on the next line.
    repair = [] if s.last_kind in CONTINUES else [TextPatch(*place, "")]
    return s.mistake("SK004", f"unmatched `{s.word}`", place, hint="remove it", repair=repair, safe=False)


def open_bracket(s: ErrorContext) -> Mistake | None:
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


def _unclosed(s: ErrorContext, opened: Token, end: int) -> Mistake:
    sign, closer = s.draft.text[opened.start : opened.end], _CLOSERS[opened.kind]
    message, place, repair = f"unclosed `{sign}`", (opened.start, opened.end), [TextPatch(end, end, closer)]
    return s.mistake("SK003", message, place, hint=f"close it with `{closer}`", repair=repair, safe=False)


def _open_block(s: ErrorContext) -> Mistake:
    guilty = _misaligned(s.draft) or s.failure.opened[-1]
    repair = [TextPatch(s.start, s.start, "\n" + "}" * sum(each.kind == "LBRACE" for each in s.failure.opened))]
    return s.mistake("SK003", "unclosed `{`", (guilty.start, guilty.end), hint="close it with `}`", repair=repair)


def _misaligned(draft: PatchedText) -> Token | None:
    """Find the first `{` whose `}` begins a line that is less indented than the line of the `{`."""
    for start, end in braces(draft.text):
        line = draft.text.rfind("\n", 0, end) + 1
        alone = not draft.text[line:end].strip()
        if alone and indentation(draft.text, end) < indentation(draft.text, start):
            return Token("LBRACE", "{", start, 0)
    return None

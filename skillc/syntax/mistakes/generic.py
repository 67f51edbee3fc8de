"""The message for whatever has none of its own, from what the parser could have gone on with."""

from __future__ import annotations

from skillc.syntax.mistakes.situation import Mistake, Situation
from skillc.text import joined

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
    """What could have stood there, in words, the likeliest first, at most four."""
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

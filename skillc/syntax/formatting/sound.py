"""Whether a text is a program, by the tokens of the formatter and the tables of the parser, without a tree.

A parse makes nodes and diagnostics, which the formatter does not need for a sound program, and takes most of its time.
The answer is one-sided: a text that is sound here parses without an error; any other may parse too.
"""

from __future__ import annotations

from collections.abc import Sequence

from skillc.syntax.formatting.tokens import Token
from skillc.syntax.newlines import DEPTH_LIMIT
from skillc.syntax.parser import MERGED
from skillc.syntax.reader import table
from skillc.syntax.scan import faults
from skillc.syntax.texts import number_value, string_value

_NAMED = {
    **dict.fromkeys(("sum", "sign"), "SIGN"),
    **dict.fromkeys(("(", "call"), "LPAR"),
    **dict.fromkeys(("[", "type"), "LSQB"),
    ")": "RPAR",
    "]": "RSQB",
    "{": "LBRACE",
    "}": "RBRACE",
    "=": "EQUAL",
    ",": "COMMA",
    ":": "COLON",
    "|": "VBAR",
    ".": "DOT",
    "%": "PERCENT",
    **{each: each.upper() for each in ("name", "number", "money", "string", "text", "compare", "scale")},
    **{each: each.upper() for each in ("and", "or", "not")},
}
"""The grammar's names for the kinds of tokens."""

_WORDS_OF_A_USE = {"use": "USE", "as": "AS"}
_NESTING = frozenset(("SIGN", "SCALE", "DOT", "NOT", "LPAR", "LSQB", "RPAR", "RSQB"))


def is_sound(text: str, tokens: Sequence[Token | None]) -> bool:
    """Whether a text of these tokens certainly parses without an error."""
    if MERGED in text or "\r" in text.replace("\r\n", "") or ('"""' in text and next(faults(text), None)):
        return False
    return _plain(text, tokens) and _derives(tokens)


def _plain(text: str, tokens: Sequence[Token | None]) -> bool:
    """Whether the parser has nothing to say about any single token, and no limit is near."""
    ascii_only, nesting, most, depth, deepest = text.isascii(), 0, 0, 1, 1
    for token in tokens:
        if token is None:
            nesting = 0
            continue
        kind = token.kind
        if kind == "name":
            if not ascii_only and not token.text.isidentifier():
                return False
        elif kind == "number" or kind == "money":
            if number_value(token.text.removeprefix("$")) is None:
                return False
        elif kind == "string":
            if string_value(token.text)[1]:
                return False
        elif kind == "{":
            depth, nesting = depth + 1, 0
            deepest = max(deepest, depth)
        elif kind == "}":
            depth -= 1
        elif _NAMED[kind] in _NESTING:
            nesting += 1
            most = max(most, nesting)
    # Every token of these kinds nests what is open once more, at most.
    return (most + 1) * deepest <= DEPTH_LIMIT


def _derives(tokens: Sequence[Token | None]) -> bool:
    """Whether the grammar derives the tokens: the parser's loop, without a value of anything."""
    found = table()
    states, end = found.states, found.end_state
    stack = [found.start_state]
    for token in [*tokens, ...]:
        if token is None:
            kind = "_END"
        elif token is ...:
            kind = "$END"
        else:
            kind = _NAMED[token.kind]
            if kind == "NAME" and token.text in _WORDS_OF_A_USE and _WORDS_OF_A_USE[token.text] in states[stack[-1]]:
                # As the contextual lexer does: a keyword where one may be.
                kind = _WORDS_OF_A_USE[token.text]
        while True:
            step = states[stack[-1]].get(kind)
            if step is None:
                return False
            rule = step[1]
            if type(rule) is int:
                stack.append(rule)
                break
            size = len(rule.expansion)
            if size:
                del stack[-size:]
            stack.append(states[stack[-1]][rule.origin.name][1])
            if stack[-1] == end:
                return True
    return False

"""The LALR parser: its loop over the grammar's tables.

It also decides which newlines end a statement: none inside brackets or after an operator. The grammar's `_END` already
covers that a line which begins with an operator or a `{` continues the one before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from typing import Any

from skillc.dataclass import dataclass
from skillc.diagnostics.diagnostic import Diagnostic
from skillc.syntax import nodes
from skillc.syntax.builder import Builder
from skillc.syntax.source import Source
from skillc.syntax.tokens import WORDS, Token, Tokens, table, tokenize

DEPTH_LIMIT = 100
"""Maximum nesting of brackets and operators; later passes walk the tree by recursion."""

LENGTH_LIMIT = 10_000
"""Maximum number of consecutive arithmetic operators; `a + b * c - d` has three."""

CONTINUES = frozenset(("EQUAL", "COMMA", "COLON", "VBAR", "COMPARE", "SIGN", "SCALE", "DOT", "AND", "OR", "NOT"))
"""Kinds of tokens after which a newline does not end the statement."""

OPENERS = frozenset(("LPAR", "LSQB", "LBRACE"))
CLOSERS = frozenset(("RPAR", "RSQB", "RBRACE"))
OPERANDS = frozenset(("NAME", "NUMBER", "MONEY", "STRING", "TEXT", "PERCENT", "RPAR", "RSQB"))
"""Kinds that end an operand: a sign after one is binary, any other sign is unary."""

_WORDS = frozenset(WORDS.values())
_RESETS = frozenset(("COMMA", "COLON", "EQUAL", "AND", "OR", "VBAR", "_END"))
_COUNTED = _RESETS | OPENERS | CLOSERS | {"SIGN", "SCALE", "DOT", "NOT", "COMPARE"}

Makers = Mapping[str, Callable[[list[Any]], Any]]


@dataclass(frozen=True, slots=True)
class Derivation:
    """A derivation of tokens by the grammar.

    Attributes:
        value: the value that the makers built; None if the tokens are only a prefix of a program.
        tokens: the tokens, without newlines that end no statement.
        accepts: the kinds that may come next.
    """

    value: Any
    tokens: tuple[Token, ...]
    accepts: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class ParsedText:
    """A text without syntax errors, apart from those within single tokens."""

    statements: tuple[nodes.Statement, ...]
    diagnostics: tuple[Diagnostic, ...]
    tokens: tuple[Token, ...]


@dataclass(frozen=True, slots=True)
class Failure:
    """The position at which parsing stopped.

    Attributes:
        at: the unexpected token; its kind is `CHARACTER` if no token begins with its character, `DEEP` if the nesting
            is too deep, `LONG` if too many operators follow each other, `$END` at the end.
        accepts: the kinds that were expected.
        last: the token before.
        opened: the open brackets, outermost first.
    """

    at: Token
    accepts: frozenset[str]
    last: Token | None
    opened: tuple[Token, ...]

    def anchor(self, text: str) -> int:
        """Return an offset in the statement with the error; a token that ends a statement is not part of it."""
        if self.at.kind in ("_END", "RBRACE", "$END") and self.last:
            return self.last.start
        return min(self.at.start, max(0, len(text) - 1))


def parse_tokens(source: Source, tokens: Tokens, places: Sequence[int], whole: Tokens) -> ParsedText | Failure:
    """Parse a text.

    Args:
        source: the source that contains it.
        tokens: its tokens.
        places: the offset in the source of each of its characters, and one more for the end.
        whole: the tokens of the source, for the documentation.
    """
    builder = Builder(source, places, whole)
    found = derive(tokens.found, builder.makers)
    return found if isinstance(found, Failure) else ParsedText(found.value, tuple(builder.diagnostics), found.tokens)


def parse_prefix(text: str) -> Derivation | Failure:
    """Parse a text that may end between any two tokens, for completion."""
    return derive(tokenize(text, whole=False).found[:-1])


# ---- the parser -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Rule:
    """A rule of the grammar.

    Attributes:
        name: its maker; empty if its only child is kept, `_` if its children become those of another rule.
        children: 1 for a token or a value, 2 for the children of another rule, 0 for an absent one; empty if all are 1.
    """

    name: str
    origin: str
    size: int
    children: tuple[int, ...]


_Step = int | _Rule


@cache
def _states() -> tuple[list[dict[str, _Step]], int]:
    """Return for each state its step on each kind, a next state or a complete rule; and the final state."""
    rules = []
    for name, origin, *children in table()["rules"]:
        given = tuple(each for each in children if each)
        plain = all(each == 1 for each in children)
        rules.append(_Rule(name, origin, len(given), () if plain else tuple(children)))
    states = [
        {kind: step if step >= 0 else rules[-1 - step] for kind, step in state.items()} for state in table()["states"]
    ]
    return states, table()["end"]


class _Level:
    """Counters for the part of an expression between two brackets.

    Attributes:
        deep: signs, dots and calls of the current operand, each of which adds a level.
        nots: the `not` of the current condition.
        long: consecutive arithmetic operators.
    """

    __slots__ = ("deep", "long", "nots")

    def __init__(self) -> None:
        self.deep = self.nots = self.long = 0


def derive(tokens: Iterable[Token], makers: Makers | None = None) -> Derivation | Failure:
    """Run the parser.

    Args:
        tokens: a program if the last is `$END`, else the beginning of one.
        makers: build the value of each rule from the values of its children; None builds no values.
    """
    table, final = _states()
    states, values = [0], list[Any]()
    read, opened = list[Token](), list[Token]()
    last: Token | None = None
    levels = [_Level()]
    total = 0
    for token in tokens:
        kind = token.kind
        if kind == "_END":
            in_brackets = bool(opened) and opened[-1].kind != "LBRACE"
            if token.text != ";" and (in_brackets or (last is not None and last.kind in CONTINUES)):
                continue
        elif kind in _WORDS and kind not in (actions := table[states[-1]]) and "NAME" in actions:
            token, kind = token.of_kind("NAME"), "NAME"
        while True:
            step = table[states[-1]].get(kind)
            if isinstance(step, int):
                states.append(step)
                if makers is not None:
                    values.append(token)
                break
            if step is None:
                return Failure(token, _accepts(states), last, tuple(opened))
            if step.size:
                del states[-step.size :]
            states.append(table[states[-1]][step.origin])  # type: ignore[arg-type]
            if makers is not None and step.name:
                _make(step, values, makers)
            if states[-1] == final:
                return Derivation(values[-1] if values else None, (*read, token))
        read.append(token)
        if kind in _COUNTED:
            total += _counted(kind, token, last, opened, levels)
            if total > DEPTH_LIMIT:
                return Failure(token.of_kind("DEEP"), frozenset(), token, tuple(opened))
            if levels[-1].long > LENGTH_LIMIT:
                return Failure(token.of_kind("LONG"), frozenset(), token, tuple(opened))
        last = token
    return Derivation(None, tuple(read), _accepts(states))


def _make(rule: _Rule, values: list[Any], makers: Makers) -> None:
    """Replace the values of a rule's children with the rule's value."""
    first = len(values) - rule.size
    children = values[first:]
    if rule.children:
        given = iter(children)
        children = []
        for each in rule.children:
            if each == 0:
                children.append(None)
            elif each == 1:
                children.append(next(given))
            elif children:
                children += next(given)
            else:
                # Do not copy a list that grows to the right each time.
                children = next(given)
    del values[first:]
    values.append(children if rule.name == "_" else makers[rule.name](children))


def _accepts(states: list[int]) -> frozenset[str]:
    table, _ = _states()
    return frozenset(kind for kind in table[states[-1]] if kind.isupper() and _takes(states, kind))


def _takes(states: list[int], kind: str) -> bool:
    """Return whether the parser can shift a token of a kind."""
    table, final = _states()
    states = list(states)
    while True:
        step = table[states[-1]].get(kind)
        if not isinstance(step, _Rule):
            return step is not None
        if step.size:
            del states[-step.size :]
        states.append(table[states[-1]][step.origin])  # type: ignore[arg-type]
        if states[-1] == final:
            return True


def _counted(kind: str, token: Token, before: Token | None, opened: list[Token], levels: list[_Level]) -> int:
    """Count a token that adds or removes levels; return the change of the depth.

    An operator ends the operand before it, so `-a + -b + -c` is long but not deep.
    """
    level = levels[-1]
    joins = kind == "SCALE" or (kind == "SIGN" and before is not None and before.kind in OPERANDS)
    if joins or kind == "COMPARE":
        gone, level.deep = level.deep, 0
        level.long = level.long + 1 if joins else 0
        return -gone
    if kind in _RESETS:
        gone = level.deep + level.nots
        level.deep = level.nots = level.long = 0
        return -gone
    if kind == "NOT":
        level.nots += 1
        return 1
    if kind in OPENERS:
        opened.append(token)
        levels.append(_Level())
        return 1
    if kind in CLOSERS:
        if not opened:
            return 0
        opened.pop()
        closed = levels.pop()
        # The bracket itself still counts: `f()()()`.
        levels[-1].deep += 1
        return -closed.deep - closed.nots
    level.deep += 1
    return 1

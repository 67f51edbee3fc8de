"""Build nodes from the parser's rules: one method for each rule, called when the rule is complete.

The grammar keeps every token, so a node spans its first to its last child. A child is a token, a node, a tuple of
nodes, or None for an absent optional part.
"""

# ruff: noqa: D102 -- a method is named after its rule, which the grammar defines.

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any, NamedTuple

from skillc.diagnostics.diagnostic import Diagnostic, Fix, Label
from skillc.syntax import nodes
from skillc.syntax.literals import number_value, string_value, text_value
from skillc.syntax.source import Source, Span
from skillc.syntax.tokens import Token, Tokens

_ESCAPES_SHOWN = 5
# The parser takes these words for names where it accepts nothing else.
_RESERVED = {"and", "or", "not"}


RULES = (
    *("start", "block", "words", "path", "declaration", "header", "use"),
    *("params", "param", "union", "label", "named"),
    *("ratio", "logic", "comparison", "binary", "unary", "member", "call", "argument", "reference", "items", "group"),
    *("quantity", "unit", "money", "string", "text"),
)
"""The rules of the grammar that build a value."""


class Builder:
    """Builds the nodes of one text.

    Attributes:
        diagnostics: errors in single tokens.
    """

    def __init__(self, source: Source, places: Sequence[int], whole: Tokens) -> None:
        """Build a text whose i-th character is at `places[i]` in the source with the tokens `whole`."""
        self.source = source
        self.places = places
        self.diagnostics: list[Diagnostic] = []
        self.makers = {rule: getattr(self, rule) for rule in RULES}
        self._above = whole.above
        self._behind = whole.behind
        self._lines = sorted(whole.behind)
        self._claimed: set[int] = set()

    # ---- places ----

    def _of(self, token: Token) -> Span:
        return Span(self.places[token.start], self.places[token.end])

    def _start(self, child: Any) -> int:
        return self.places[child.start] if isinstance(child, Token) else child.span.start

    def _end(self, child: Any) -> int:
        return self.places[child.end] if isinstance(child, Token) else child.span.end

    def _span(self, children: Sequence[Any]) -> Span:
        first = children[0]
        start = first[0].span.start if type(first) is tuple else self._start(first)
        i = len(children) - 1
        while children[i] is None:
            i -= 1
        last = children[i]
        return Span(start, last[-1].span.end if type(last) is tuple else self._end(last))

    def _name(self, token: Token) -> nodes.Name:
        return nodes.Name(self._of(token), self._word(token))

    def _word(self, token: Token) -> str:
        if token.text in _RESERVED:
            message = f"`{token.text}` is reserved and can't be a name"
            self._wrong("SK030", message, self._of(token), "choose another name")
        elif not token.text.isidentifier():
            hint = "a name consists of letters, digits and `_`, and begins with a letter"
            self._wrong("SK022", f"`{token.text}` is not a name", self._of(token), hint)
        return token.text

    def _wrong(self, code: str, message: str, span: Span, hint: str | None = None, fix: Fix | None = None) -> None:
        self.diagnostics.append(Diagnostic(code, message, Label(self.source, span), hint=hint, fix=fix))

    # ---- statements ----

    def start(self, children: list[Any]) -> tuple[nodes.Statement, ...]:
        return tuple(c for c in children if _is_made(c))

    def block(self, children: list[Any]) -> nodes.Block:
        return nodes.Block(self._span(children), self.start(children))

    def words(self, children: list[Token]) -> tuple[nodes.Name, ...]:
        return tuple(self._name(token) for token in children if token.kind == "NAME")

    path = words

    def declaration(self, children: list[Any]) -> nodes.Declaration:
        words, parameters, _, type_, _, value, block = children
        span = self._span(children)
        found = parameters.items if parameters else None
        return nodes.Declaration(span, words, found, type_, value, block, self._doc(span))

    def header(self, children: list[Any]) -> nodes.Header:
        words, value, block = children
        span = self._span(children)
        return nodes.Header(span, words, value, block, self._doc(span))

    def use(self, children: list[Any]) -> nodes.Use:
        _, target, _, alias = children
        name = self._name(alias) if alias else None
        if isinstance(target, Token):
            return nodes.Use(self._span(children), None, self.string([target]), name)
        return nodes.Use(self._span(children), target, None, name)

    def _doc(self, span: Span) -> str | None:
        found = [self._above[span.start]] if span.start in self._above else []
        # Blocks are complete before their statements, so the innermost statement claims the comment.
        for i in range(bisect_left(self._lines, span.start), bisect_left(self._lines, span.end)):
            if self._lines[i] not in self._claimed:
                self._claimed.add(self._lines[i])
                found.append(self._behind[self._lines[i]])
        return "\n".join(found) if found else None

    # ---- parameters and types ----

    def params(self, children: list[Any]) -> _Parameters:
        return _Parameters(self._span(children), tuple(c for c in children if _is_made(c)))

    def param(self, children: list[Any]) -> nodes.Parameter:
        name, _, type_, _, default = children
        return nodes.Parameter(self._span(children), self._name(name), type_, default)

    def union(self, children: list[Any]) -> nodes.UnionType:
        return nodes.UnionType(self._span(children), tuple(c for c in children if _is_made(c)))

    def label(self, children: list[Token]) -> nodes.LabelType:
        return nodes.LabelType(self._of(children[0]), self.string(children).value)

    def named(self, children: list[Any]) -> nodes.NamedType:
        return nodes.NamedType(self._span(children), self._word(children[0]), children[2])

    # ---- expressions ----

    def ratio(self, children: list[Any]) -> nodes.Ratio:
        return nodes.Ratio(self._span(children), tuple(children[::2]))

    def logic(self, children: list[Any]) -> nodes.Logic:
        return nodes.Logic(self._span(children), children[1].text, tuple(children[::2]))

    def comparison(self, children: list[Any]) -> nodes.Compare:
        operators = tuple(token.text for token in children[1::2])
        return nodes.Compare(self._span(children), operators, tuple(children[::2]))

    def binary(self, children: list[Any]) -> nodes.Binary:
        left, operator, right = children
        return nodes.Binary(self._span(children), operator.text, left, right)

    def unary(self, children: list[Any]) -> nodes.Unary:
        operator, operand = children
        return nodes.Unary(self._span(children), operator.text, operand)

    def member(self, children: list[Any]) -> nodes.Member:
        return nodes.Member(self._span(children), children[0], self._name(children[2]))

    def call(self, children: list[Any]) -> nodes.Call:
        arguments = tuple(c for c in children[2:] if _is_made(c))
        return nodes.Call(self._span(children), children[0], arguments)

    def argument(self, children: list[Any]) -> nodes.Argument:
        name, _, value = children
        span = self._span(children if name else children[2:])
        return nodes.Argument(span, self._name(name) if name else None, value)

    def reference(self, children: list[Token]) -> nodes.Reference:
        return nodes.Reference(self._of(children[0]), self._word(children[0]))

    def items(self, children: list[Any]) -> nodes.List:
        return nodes.List(self._span(children), tuple(c for c in children if _is_made(c)))

    def group(self, children: list[Any]) -> nodes.Node:
        """Return the inner node with the span of its parentheses: `(a + b) / 2` begins at the `(`."""
        inner: nodes.Node = children[1]
        return replace(inner, span=self._span(children))

    # ---- literals ----

    def quantity(self, children: list[Any]) -> nodes.Quantity:
        return nodes.Quantity(self._span(children), self._number(children[0], children[0].text), children[1])

    def unit(self, children: list[Token]) -> nodes.Name:
        token = children[0]
        return nodes.Name(self._of(token), "%") if token.kind == "PERCENT" else self._name(token)

    def money(self, children: list[Token]) -> nodes.Money:
        return nodes.Money(self._of(children[0]), self._number(children[0], children[0].text[1:]))

    def _number(self, token: Token, digits: str) -> Fraction:
        value = number_value(digits)
        if value is None:
            self._wrong("SK009", "the number has too many digits", self._of(token))
            return Fraction(0)
        return value

    def string(self, children: list[Token]) -> nodes.String:
        token = children[0]
        value, wrong = string_value(token.text)
        for start, end in wrong[:_ESCAPES_SHOWN]:
            base = token.start
            span = Span(self.places[base + start], self.places[base + end])
            hint = r"escapes are `\"`, `\\`, `\n`, `\t`, `\r` and `\u{e9}`; write `\\` for a backslash"
            # The value of an unknown escape is its text, so the fix does not change it.
            fix = Fix(Span(span.start, span.start), "\\") if self.source.slice(span).startswith("\\") else None
            self._wrong("SK008", f"unknown escape sequence `{token.text[start:end]}`", span, hint, fix)
        return nodes.String(self._of(token), value)

    def text(self, children: list[Token]) -> nodes.Text:
        return nodes.Text(self._of(children[0]), text_value(children[0].text))


def _is_made(child: Any) -> bool:
    return child is not None and not isinstance(child, Token)


class _Parameters(NamedTuple):
    """The parameters with their parentheses, whose span counts even without parameters."""

    span: Span
    items: tuple[nodes.Parameter, ...]

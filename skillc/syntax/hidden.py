"""Characters that mislead a reader: invisible ones in comments and texts, and look-alike letters in names.

Between tokens they are mistakes of syntax already; this checks the places where any character may be.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from itertools import islice

from skillc.diagnostics.diagnostic import Diagnostic, Fix, Label, Severity
from skillc.syntax.source import Source, Span
from skillc.syntax.tokens import WORDS, tokenize

FINDINGS_LIMIT = 20
"""The number of findings after which no more are reported."""

_FLAG = "\U0001f3f4[\U000e0020-\U000e007f]+"
_DIRECTION = "\u202a-\u202e\u2066-\u2069"
_TAGS = "\U000e0000-\U000e007f"
_LINE_ENDS = "\x0b\x0c\x85\u2028\u2029"
_CONTROL = "\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f"
_HIDDEN = re.compile(rf"{_FLAG}|(?P<hidden>[{_DIRECTION}{_TAGS}{_LINE_ENDS}{_CONTROL}]|\r(?!\n))")
_WHERE = {"TEXT": "text", "STRING": "string", "UNCLOSED": "string", **dict.fromkeys(("NAME", *WORDS.values()), "name")}
# Letters of other scripts, each with the Latin one that looks the same.
_TWINS = dict(
    zip(
        "аеорсухіјѕһԁԛԝАВЕКМНОРСТУХІЈЅΑΒΕΖΗΙΚΜΝΟΡΤΥΧονα",
        "aeopcyxijshdqwABEKMHOPCTYXIJSABEZHIKMNOPTYXova",
        strict=True,
    )
)


def hidden(source: Source) -> list[Diagnostic]:
    """Find what is hidden in comments, strings and texts, and names with letters that look like others."""
    found: list[Diagnostic] = []
    names: set[str] = set()
    for start, where, words in sorted(_written(source)):
        if where == "name":
            if not words.isascii() and words not in names:
                names.add(words)
                found += _in_name(source, words, start)
        else:
            more = _in_words(source, words, start, where)
            found += islice(more, FINDINGS_LIMIT - len(found))
        if len(found) >= FINDINGS_LIMIT:
            break
    return found


def _written(source: Source) -> Iterator[tuple[int, str, str]]:
    """The places where any character may be: the offset of each, what it is, and its text."""
    tokens = tokenize(source.text, whole=False)
    for token in tokens.found:
        if token.kind in _WHERE:
            yield token.start, _WHERE[token.kind], token.text
    for comment in tokens.comments:
        start = comment.span.start
        yield start, "comment", source.text[start : source.line_end(start)]


def _in_words(source: Source, words: str, start: int, where: str) -> Iterator[Diagnostic]:
    # A comment reaches to the line feed, and so holds the carriage return before it.
    for match in _HIDDEN.finditer(words.removesuffix("\r")):
        sign = match["hidden"]
        if not sign:
            continue
        span = Span(start + match.start(), start + match.end())
        if sign in "\r\x0b\x0c\x85\u2028\u2029":
            does, hint = "which many an editor shows as the end of the line", "end the line, or write a space"
        elif "\u2000" < sign < "\u2070":
            does, hint = "which shows the text in another order than it is read", "remove it"
        else:
            does, hint = "which nobody sees", "remove it"
        if where == "string":
            hint = f"remove it, or write `\\u{{{ord(sign):x}}}`"
        message = f"this {where} holds {_named(sign)}, {does}"
        yield Diagnostic("SK031", message, Label(source, span), Severity.WARNING, hint=hint)


def _in_name(source: Source, name: str, start: int) -> Iterator[Diagnostic]:
    plain = unicodedata.normalize("NFKC", name)
    wrong = next((c for c in name if unicodedata.normalize("NFKC", c) != c), None)
    if plain == name:
        latin = any(c.isascii() and c.isalpha() for c in name)
        wrong = next((c for c in name if c in _TWINS), None) if latin else None
        plain = "".join(_TWINS.get(c, c) for c in name)
    if wrong is None or plain == name:
        return
    twin = _TWINS.get(wrong) or unicodedata.normalize("NFKC", wrong)
    message = f"in the name `{name}`, `{wrong}` is {_named(wrong)}, which only looks like `{twin}`"
    span = Span(start, start + len(name))
    yield Diagnostic("SK024", message, Label(source, span), hint=f"write `{plain}`", fix=Fix(span, plain, safe=False))


def _named(sign: str) -> str:
    name = unicodedata.name(sign, "").lower() or ("carriage return" if sign == "\r" else "control character")
    return f"{'an' if name[0] in 'aeiou' else 'a'} {name} (U+{ord(sign):04X})"

"""Characters that mislead a reader: invisible ones in comments and texts, and lookalike letters in names.

Between tokens they are syntax errors; this checks names, strings, texts and comments.
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
"""Findings of this kind that are reported for one file."""

_FLAG = "\U0001f3f4[\U000e0020-\U000e007f]+"
_BIDI = "\u202a-\u202e\u2066-\u2069"
_TAGS = "\U000e0000-\U000e007f"
_LINE_ENDS = "\x0b\x0c\x85\u2028\u2029"
_CONTROL = "\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f"
_HIDDEN = re.compile(rf"{_FLAG}|(?P<hidden>[{_BIDI}{_TAGS}{_LINE_ENDS}{_CONTROL}]|\r(?!\n))")
_WHERE = {"TEXT": "text", "STRING": "string", "UNCLOSED": "string", **dict.fromkeys(("NAME", *WORDS.values()), "name")}
# Letters of other scripts, each with the Latin one that looks the same.
_LOOKALIKES = dict(
    zip(
        "аеорсухіјѕһԁԛԝАВЕКМНОРСТУХІЈЅΑΒΕΖΗΙΚΜΝΟΡΤΥΧονα",
        "aeopcyxijshdqwABEKMHOPCTYXIJSABEZHIKMNOPTYXova",
        strict=True,
    )
)


def hidden(source: Source) -> list[Diagnostic]:
    """Find invisible characters in comments, strings and texts, and lookalike letters in names."""
    found: list[Diagnostic] = []
    names: set[str] = set()
    for start, where, words in sorted(_free_text(source)):
        if where == "name":
            if not words.isascii() and words not in names:
                names.add(words)
                found += _in_name(source, words, start)
        else:
            found += islice(_in_text(source, words, start, where), FINDINGS_LIMIT - len(found))
        if len(found) >= FINDINGS_LIMIT:
            break
    return found


def _free_text(source: Source) -> Iterator[tuple[int, str, str]]:
    """Yield offset, kind and text of everything that may contain any character."""
    tokens = tokenize(source.text, whole=False)
    for token in tokens.found:
        if token.kind in _WHERE:
            yield token.start, _WHERE[token.kind], token.text
    for comment in tokens.comments:
        start = comment.span.start
        yield start, "comment", source.text[start : source.line_end(start)]


def _in_text(source: Source, words: str, start: int, where: str) -> Iterator[Diagnostic]:
    # A comment extends to the line feed and includes the carriage return before it.
    for match in _HIDDEN.finditer(words.removesuffix("\r")):
        sign = match["hidden"]
        if not sign:
            continue
        span = Span(start + match.start(), start + match.end())
        if sign in "\r\x0b\x0c\x85\u2028\u2029":
            effect, hint = "which some editors show as a line break", "end the line, or write a space"
        elif "\u2000" < sign < "\u2070":
            effect, hint = "which displays the text in another order than it is read", "remove it"
        else:
            effect, hint = "which is invisible", "remove it"
        if where == "string":
            hint = f"remove it, or write `\\u{{{ord(sign):x}}}`"
        message = f"this {where} contains {_describe(sign)}, {effect}"
        yield Diagnostic("SK031", message, Label(source, span), Severity.WARNING, hint=hint)


def _in_name(source: Source, name: str, start: int) -> Iterator[Diagnostic]:
    plain = unicodedata.normalize("NFKC", name)
    bad = next((c for c in name if unicodedata.normalize("NFKC", c) != c), None)
    if plain == name:
        latin = any(c.isascii() and c.isalpha() for c in name)
        bad = next((c for c in name if c in _LOOKALIKES), None) if latin else None
        plain = "".join(_LOOKALIKES.get(c, c) for c in name)
    if bad is None or plain == name:
        return
    similar = _LOOKALIKES.get(bad) or unicodedata.normalize("NFKC", bad)
    message = f"in the name `{name}`, `{bad}` is {_describe(bad)}, which only looks like `{similar}`"
    span = Span(start, start + len(name))
    yield Diagnostic("SK024", message, Label(source, span), hint=f"write `{plain}`", fix=Fix(span, plain, safe=False))


def _describe(sign: str) -> str:
    name = unicodedata.name(sign, "").lower() or ("carriage return" if sign == "\r" else "control character")
    return f"{'an' if name[0] in 'aeiou' else 'a'} {name} (U+{ord(sign):04X})"

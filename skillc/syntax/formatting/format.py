"""`format_source`: a program in its canonical form, or why there is none."""

from __future__ import annotations

from dataclasses import dataclass

from skillc.diagnostics.diagnostic import Diagnostic, Label, Severity
from skillc.syntax.formatting.layout import lay_out
from skillc.syntax.formatting.proof import FlawError, facts, prove
from skillc.syntax.formatting.sound import is_sound
from skillc.syntax.formatting.tokens import Token, UnknownTokenError, tokenize
from skillc.syntax.formatting.tree import read
from skillc.syntax.parser import collector_paused, parse
from skillc.syntax.source import Source, Span


@dataclass(frozen=True, slots=True)
class Formatted:
    r"""What became of a text.

    Attributes:
        text: the canonical form, with `\n` as its line end; None where formatting was refused.
        diagnostics: why it was refused: what is wrong with the syntax, or a mistake of skillc itself (SK901).
    """

    text: str | None
    diagnostics: tuple[Diagnostic, ...] = ()


def format_source(source: Source) -> Formatted:
    """Lay a program out anew.

    The result holds the same statements and the same comments in the same order, and formats to itself; both is proved
    before it is returned. A tree of nodes costs most of the time of a parse, so the tokens are checked against the
    parser's tables, and the proof compares tokens, from which the parser can only make the same tree. A text that this
    check does not accept is parsed, for the diagnostics.
    """
    with collector_paused():
        tokens, unknown = _tokens(source.text)
        if tokens is None or not is_sound(source.text, tokens[0]):
            errors = tuple(each for each in parse(source).diagnostics if each.severity is Severity.ERROR)
            if errors:
                return Formatted(None, errors)
        if tokens is None:
            return Formatted(None, (_bug(source, unknown, "the formatter can't read what the parser can"),))
        try:
            tree = read(*tokens)
            before = facts(tree)
            made = lay_out(tree)
            if made != source.text:
                prove(before, made)
        except FlawError as flaw:
            return Formatted(None, (_bug(source, flaw.place, flaw.message),))
        except Exception as crash:  # Whatever goes wrong here, the file is sound and stays as it is.
            return Formatted(None, (_bug(source, 0, f"the formatter broke on this program ({type(crash).__name__})"),))
    return Formatted(made)


def _tokens(text: str) -> tuple[tuple[list[Token | None], Token] | None, int]:
    """Return the tokens and the end of a text, or None and the place at which no token begins."""
    try:
        return tokenize(text), 0
    except UnknownTokenError as unknown:
        return None, unknown.place


def _bug(source: Source, place: int, message: str) -> Diagnostic:
    place = min(place, len(source.text))
    hint = "this is a bug in skillc, and the file is as it was; please report it with this statement"
    return Diagnostic("SK901", message, Label(source, Span(place, min(place + 1, len(source.text)))), hint=hint)

"""The context of the cursor: what the parser accepts next, and in which block, call or string."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Literal

from skillc.language.forms import Form, SettingKind
from skillc.language.kinds import Kind, kinds_in
from skillc.syntax.outline import chunks, statement_at
from skillc.syntax.reader import Derivation, Failure, parse_prefix
from skillc.syntax.tokens import Token, opaque

_WORD = re.compile(r"[^\W\d]\w*\Z")
_ATTEMPTS = 20
_CONTEXT = 200_000

Section = Literal["words", "parameters", "type", "value", "string", "none"]


@dataclass(frozen=True, slots=True)
class Call:
    """A call around the cursor: the words before its `(`, and which argument the cursor is in."""

    function: tuple[str, ...]
    index: int
    option: str | None


@dataclass(frozen=True, slots=True)
class Place:
    """The block around a place.

    Attributes:
        kind: the word of the kind, the empty word at the top; None behind a setting.
        settings: what may be set here.
        passes: whether any other name may be set too.
        owner: the kind, or the setting whose block it is.
    """

    kind: str | None = ""
    settings: tuple[SettingKind, ...] = ()
    passes: bool = False
    owner: str = ""


@dataclass(frozen=True, slots=True)
class Cursor:
    """What is known of a place in a text that may break off there.

    Attributes:
        start: where the word begins that is being typed.
        word: that word, as far as it is typed.
        accepts: the grammar's names for what may come in its place.
        section: the part of the statement; `string` inside quotes, `none` where there is nothing to offer.
        place: the block.
        words: the words of the statement before its value, without that which is being typed.
        given: first words of the statements before it in the same block.
        before: the words that a dot joins to the one that is being typed.
        call: the innermost call around it.
        value: the form of value that the setting or kind takes.
        last: the kind of the token before.
        quoted: the start of the string, inside quotes.
        parameters: of the statement, behind them; None where it has none.
    """

    start: int
    word: str = ""
    accepts: frozenset[str] = frozenset()
    section: Section = "none"
    place: Place = Place()
    words: tuple[str, ...] = ()
    given: frozenset[str] = frozenset()
    before: tuple[str, ...] = ()
    call: Call | None = None
    last: str = ""
    quoted: str = ""
    parameters: tuple[str, ...] | None = None


def cursor_at(text: str, offset: int) -> Cursor:
    """Find the context of a place. It never raises, whatever the text."""
    quoted, start = "", offset
    for match in opaque(text):
        if match.start() >= offset:
            break
        if match["comment"] and offset <= match.end():
            return Cursor(offset)
        if match["text"] and (offset < match.end() or match[0] == '"""'):
            return Cursor(offset)
        if match["string"] and (offset < match.end() or not _closed(match[0])):
            quoted, start = text[match.start() : offset], match.start()
    if not quoted:
        word = _WORD.search(text, max(0, offset - 200), offset)
        start = word.start() if word else offset
    prefix = _prefix(text, start)
    if prefix is None:
        return Cursor(start, text[start:offset])
    shown, read = prefix
    cursor = _walk(shown, read, start, text[start:offset])
    if quoted:
        return _replaced(cursor, section="string", quoted=quoted)
    return cursor


def _closed(string: str) -> bool:
    return len(string) > 1 and string.endswith('"')


def _prefix(text: str, start: int) -> tuple[str, Derivation] | None:
    """What the parser makes of the statement before the cursor; those before it that are wrong are left out."""
    begins = max((a for a, _ in chunks(text) if a <= start), default=0)
    # A name in the first column begins a chunk; here it is being typed.
    shown = text[begins:start]
    if len(shown) > _CONTEXT:
        return None
    for _ in range(_ATTEMPTS):
        found = parse_prefix(shown)
        if isinstance(found, Derivation):
            return shown, found
        shown = _repaired(shown, found)
        if not shown:
            return None
    return None


def _repaired(shown: str, failure: Failure) -> str:
    at = failure.last.start if failure.at.kind in ("_END", "RBRACE", "$END") and failure.last else failure.at.start
    first, last = statement_at(shown, min(at, max(0, len(shown) - 1)))
    if last <= first or last >= len(shown.rstrip()):
        return ""
    return shown[:first] + "".join(c if c == "\n" else " " for c in shown[first:last]) + shown[last:]


# ---- tokens ---------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Frame:
    bracket: str
    place: Place
    call: tuple[str, ...] = ()
    tokens: list[Token] = field(default_factory=list)
    given: set[str] = field(default_factory=set)
    commas: int = 0
    names: list[str] = field(default_factory=list)
    parameters: tuple[str, ...] | None = None


def _walk(text: str, prefix: Derivation, start: int, word: str) -> Cursor:
    frames = [_Frame("", Place())]
    for token in prefix.tokens:
        frame = frames[-1]
        if token.kind == "LBRACE":
            frames.append(_Frame("{", _inside(frame.place, text, frame.tokens)))
        elif token.kind in ("LPAR", "LSQB"):
            frames.append(_Frame("(" if token.kind == "LPAR" else "[", frame.place, _called(text, frame.tokens)))
        elif token.kind in ("RBRACE", "RPAR", "RSQB"):
            if len(frames) > 1:
                frames.pop()
                frame.names += _head(text, frame.tokens)[:1]
                _take_parameters(frames[-1], frame)
            frames[-1].tokens.append(token.of_kind("GROUP"))
        elif token.kind == "_END":
            if frame.tokens:
                frame.given.add(_last_word(text, frame.tokens))
            frame.tokens, frame.parameters = [], None
        elif token.kind == "COMMA" and frame.bracket in ("(", "["):
            frame.commas += 1
            frame.names += _head(text, frame.tokens)[:1]
            frame.tokens = []
        else:
            frame.tokens.append(token)
    return _located(text, prefix, frames, start, word)


def _located(text: str, prefix: Derivation, frames: list[_Frame], start: int, word: str) -> Cursor:
    last = prefix.tokens[-1].kind if prefix.tokens else ""
    statement = next(frame for frame in reversed(frames) if frame.bracket in ("", "{"))
    kinds = [token.kind for token in statement.tokens]
    words = _head(text, statement.tokens)
    inner = frames[-1]
    section: Section = "words"
    if "EQUAL" in kinds:
        section = "value"
    elif inner.bracket == "(" and statement is not inner:
        own = [token.kind for token in inner.tokens]
        section = "value" if "EQUAL" in own else "type" if "COLON" in own else "parameters"
    elif "COLON" in kinds:
        section = "type"
    elif "USE" in kinds:
        section = "value"
        words = ("use", *words)
    cursor = Cursor(start, word, prefix.accepts, section, statement.place, words, frozenset(statement.given))
    called = next((f for f in reversed(frames) if f.bracket == "(" and f.call), None)
    call = None
    if called is not None and section == "value":
        option = called.tokens[0] if len(called.tokens) > 1 and called.tokens[1].kind == "EQUAL" else None
        call = Call(called.call, called.commas, text[option.start : option.end] if option else None)
    before = _before_dot(text, inner.tokens)
    return _replaced(cursor, last=last, before=before, call=call, parameters=statement.parameters)


def _take_parameters(statement: _Frame, closed: _Frame) -> None:
    """Parentheses before the `=` hold the parameters of the statement."""
    before = all(token.kind != "EQUAL" for token in statement.tokens)
    if before and closed.bracket == "(" and statement.bracket in ("", "{"):
        statement.parameters = tuple(closed.names)


def _replaced(cursor: Cursor, **changes: object) -> Cursor:
    from dataclasses import replace

    return replace(cursor, **changes)  # type: ignore[arg-type]


def _head(text: str, tokens: list[Token]) -> tuple[str, ...]:
    """The words of a statement up to the first other token."""
    found = []
    for token in tokens:
        if token.kind != "NAME":
            break
        found.append(text[token.start : token.end])
    return tuple(found)


def _last_word(text: str, tokens: list[Token]) -> str:
    head = _head(text, tokens)
    return head[-1] if head else ""


def _called(text: str, tokens: list[Token]) -> tuple[str, ...]:
    """The name right before a `(`."""
    if not tokens or tokens[-1].kind != "NAME":
        return ()
    return (*_before_dot(text, tokens[:-1]), text[tokens[-1].start : tokens[-1].end])


def _before_dot(text: str, tokens: list[Token]) -> tuple[str, ...]:
    found: list[str] = []
    rest = list(tokens)
    while len(rest) > 1 and rest[-1].kind == "DOT" and rest[-2].kind == "NAME":
        found.insert(0, text[rest[-2].start : rest[-2].end])
        rest = rest[:-2]
    return tuple(found)


# ---- blocks ---------------------------------------------------------------------------------------


def kind_of(place: Place, words: tuple[str, ...]) -> Kind | None:
    """The kind of a statement by its words, as in `trainable section rules`."""
    known = {} if place.kind is None else kinds_in(place.kind)
    settings = {setting.name for setting in place.settings}
    if words and words[0] in known and (len(words) > 1 or words[0] not in settings):
        return known[words[0]]
    if len(words) > 1 and words[1] in known and words[0] in known[words[1]].modifiers:
        return known[words[1]]
    return None


def setting_of(place: Place, words: tuple[str, ...]) -> SettingKind | None:
    """The setting that the words of a statement name."""
    return next((each for each in place.settings if words and each.name == words[-1]), None)


def _inside(place: Place, text: str, tokens: list[Token]) -> Place:
    words = _head(text, tokens)
    kind = kind_of(place, words)
    if kind is not None:
        return Place(kind.word, kind.settings or (), kind.passes, kind.word)
    setting = setting_of(place, words)
    if setting is None:
        return Place(None, (), place.passes, words[-1] if words else "")
    values = [token for token in tokens if token.kind in ("NAME", "STRING", "TEXT")][len(words) :]
    form = _form(setting, text[values[0].start : values[0].end] if values else "")
    return Place(None, (form.block if form else None) or (), form.passes if form else False, setting.name)


def _form(setting: SettingKind, value: str) -> Form | None:
    for form in setting.forms:
        if (form.kind == "block" and not value) or (form.kind == "text" and value.startswith('"')):
            return form
        if value in form.words or (form.name and value == form.name):
            return form
    return None

"""The context of the cursor: what the parser accepts next, and the block, call or string around it."""

from __future__ import annotations

import re
from dataclasses import field, replace
from itertools import takewhile
from typing import Literal

from skillc.dataclass import dataclass
from skillc.language.forms import Form, SettingKind
from skillc.language.kinds import Kind, kinds_in
from skillc.syntax.outline import chunks, statement_at
from skillc.syntax.reader import Derivation, Failure, parse_prefix
from skillc.syntax.source import blank
from skillc.syntax.tokens import Token, opaque

_WORD = re.compile(r"[^\W\d]\w*\Z")
_ATTEMPTS = 20
_CONTEXT = 200_000

StatementPart = Literal["words", "parameters", "type", "value", "string", "none"]


@dataclass(frozen=True, slots=True)
class CallContext:
    """A call around the cursor: the function's name, and the index or option of the argument."""

    function: tuple[str, ...]
    index: int
    option: str | None


@dataclass(frozen=True, slots=True)
class BlockContext:
    """The block around the cursor.

    Attributes:
        kind: the word of the kind, empty at the top level; None for the block of a setting.
        settings: the settings of the block.
        passes: whether other settings are allowed too.
        owner: the kind or setting with the block.
    """

    kind: str | None = ""
    settings: tuple[SettingKind, ...] = ()
    passes: bool = False
    owner: str = ""


@dataclass(frozen=True, slots=True)
class Cursor:
    """The context of an offset in an incomplete text.

    Attributes:
        start: the start of the word at the cursor.
        word: the typed part of that word.
        accepts: the kinds of tokens that are valid in its place.
        section: the part of the statement; `string` inside quotes, `none` if nothing can be offered.
        place: the block.
        words: the words of the statement before its value, without the one at the cursor.
        given: the names of earlier statements in the same block.
        before: the words that dots join to the one at the cursor.
        call: the innermost call.
        last: the kind of the token before.
        quoted: the typed part of the string, inside quotes.
        parameters: of the statement, after them; None if it has none.
    """

    start: int
    word: str = ""
    accepts: frozenset[str] = frozenset()
    section: StatementPart = "none"
    place: BlockContext = BlockContext()
    words: tuple[str, ...] = ()
    given: frozenset[str] = frozenset()
    before: tuple[str, ...] = ()
    call: CallContext | None = None
    last: str = ""
    quoted: str = ""
    parameters: tuple[str, ...] | None = None


def cursor_at(text: str, offset: int) -> Cursor:
    """Return the context of an offset. Never raises, whatever the text."""
    quoted, start = "", offset
    for match in opaque(text):
        if match.start() >= offset:
            break
        in_text = match["text"] and (offset < match.end() or match[0] == '"""')
        if in_text or (match["comment"] and offset <= match.end()):
            return Cursor(offset)
        if match["string"] and (offset < match.end() or len(match[0]) < 2 or not match[0].endswith('"')):
            quoted, start = text[match.start() : offset], match.start()
    if not quoted:
        word = _WORD.search(text, max(0, offset - 200), offset)
        start = word.start() if word else offset
    prefix = _prefix(text, start)
    if prefix is None:
        return Cursor(start, text[start:offset])
    chunk, read = prefix
    cursor = _walk(chunk, read, start, text[start:offset])
    if quoted:
        return replace(cursor, section="string", quoted=quoted)
    return cursor


def _prefix(text: str, start: int) -> tuple[str, Derivation] | None:
    """Parse the statement up to the cursor; statements with errors before it are left out."""
    begins = max((a for a, _ in chunks(text) if a <= start), default=0)
    # A name in the first column begins a chunk, unless it is the word at the cursor.
    chunk = text[begins:start]
    if len(chunk) > _CONTEXT:
        return None
    for _ in range(_ATTEMPTS):
        found = parse_prefix(chunk)
        if isinstance(found, Derivation):
            return chunk, found
        chunk = _blank_error(chunk, found)
        if not chunk:
            return None
    return None


def _blank_error(chunk: str, failure: Failure) -> str:
    """Replace the statement with the error with spaces; return an empty text if it is the last one."""
    first, last = statement_at(chunk, failure.anchor(chunk))
    if last <= first or last >= len(chunk.rstrip()):
        return ""
    return chunk[:first] + blank(chunk[first:last]) + chunk[last:]


# ---- tokens ---------------------------------------------------------------------------------------


@dataclass(slots=True)
class _BracketLevel:
    bracket: str
    place: BlockContext
    call: tuple[str, ...] = ()
    tokens: list[Token] = field(default_factory=list)
    given: set[str] = field(default_factory=set)
    commas: int = 0
    names: list[str] = field(default_factory=list)
    parameters: tuple[str, ...] | None = None


def _walk(text: str, prefix: Derivation, start: int, word: str) -> Cursor:
    levels = [_BracketLevel("", BlockContext())]
    for token in prefix.tokens:
        level = levels[-1]
        if token.kind == "LBRACE":
            levels.append(_BracketLevel("{", _inside(level.place, text, level.tokens)))
        elif token.kind in ("LPAR", "LSQB"):
            levels.append(_BracketLevel("(" if token.kind == "LPAR" else "[", level.place, _called(text, level.tokens)))
        elif token.kind in ("RBRACE", "RPAR", "RSQB"):
            if len(levels) > 1:
                levels.pop()
                level.names += _head(text, level.tokens)[:1]
                _take_parameters(levels[-1], level)
            levels[-1].tokens.append(token.of_kind("GROUP"))
        elif token.kind == "_END":
            if level.tokens:
                level.given.add(next(reversed(_head(text, level.tokens)), ""))
            level.tokens, level.parameters = [], None
        elif token.kind == "COMMA" and level.bracket in ("(", "["):
            level.commas += 1
            level.names += _head(text, level.tokens)[:1]
            level.tokens = []
        else:
            level.tokens.append(token)
    return _located(text, prefix, levels, start, word)


def _located(text: str, prefix: Derivation, levels: list[_BracketLevel], start: int, word: str) -> Cursor:
    last = prefix.tokens[-1].kind if prefix.tokens else ""
    statement = next(level for level in reversed(levels) if level.bracket in ("", "{"))
    kinds = [token.kind for token in statement.tokens]
    words = _head(text, statement.tokens)
    inner = levels[-1]
    section: StatementPart = "words"
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
    called = next((f for f in reversed(levels) if f.bracket == "(" and f.call), None)
    call = None
    if called is not None and section == "value":
        option = called.tokens[0] if len(called.tokens) > 1 and called.tokens[1].kind == "EQUAL" else None
        call = CallContext(called.call, called.commas, text[option.start : option.end] if option else None)
    before = _before_dot(text, inner.tokens)
    return replace(cursor, last=last, before=before, call=call, parameters=statement.parameters)


def _take_parameters(statement: _BracketLevel, closed: _BracketLevel) -> None:
    """Record the parameters of a statement, which are in parentheses before the `=`."""
    before = all(token.kind != "EQUAL" for token in statement.tokens)
    if before and closed.bracket == "(" and statement.bracket in ("", "{"):
        statement.parameters = tuple(closed.names)


def _head(text: str, tokens: list[Token]) -> tuple[str, ...]:
    """Return the leading words of a statement."""
    names = takewhile(lambda token: token.kind == "NAME", tokens)
    return tuple(text[token.start : token.end] for token in names)


def _called(text: str, tokens: list[Token]) -> tuple[str, ...]:
    """Return the name directly before a `(`."""
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


def kind_of(place: BlockContext, words: tuple[str, ...]) -> Kind | None:
    """Return the kind of a statement from its words, such as `trainable section rules`."""
    known = {} if place.kind is None else kinds_in(place.kind)
    settings = {setting.name for setting in place.settings}
    if words and words[0] in known and (len(words) > 1 or words[0] not in settings):
        return known[words[0]]
    if len(words) > 1 and words[1] in known and words[0] in known[words[1]].modifiers:
        return known[words[1]]
    return None


def setting_of(place: BlockContext, words: tuple[str, ...]) -> SettingKind | None:
    """Return the setting that a statement sets."""
    return next((each for each in place.settings if words and each.name == words[-1]), None)


def _inside(place: BlockContext, text: str, tokens: list[Token]) -> BlockContext:
    words = _head(text, tokens)
    kind = kind_of(place, words)
    if kind is not None:
        return BlockContext(kind.word, kind.settings or (), kind.passes, kind.word)
    setting = setting_of(place, words)
    if setting is None:
        return BlockContext(None, (), place.passes, words[-1] if words else "")
    values = [token for token in tokens if token.kind in ("NAME", "STRING", "TEXT")][len(words) :]
    form = _form(setting, text[values[0].start : values[0].end] if values else "")
    return BlockContext(None, (form.block if form else None) or (), form.passes if form else False, setting.name)


def _form(setting: SettingKind, value: str) -> Form | None:
    for form in setting.forms:
        if (form.kind == "block" and not value) or (form.kind == "text" and value.startswith('"')):
            return form
        if value in form.words or (form.name and value == form.name):
            return form
    return None

"""Pygments lexers: `skill` for programs, `skillc-console` for the terminal sessions of the documentation."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

from pygments.lexer import Lexer
from pygments.lexers.shell import BashLexer
from pygments.token import Comment, Generic, Keyword, Name, Number, Operator, Punctuation, String, Text, Whitespace

from skillc.language.vocabulary import CONSTANTS, vocabulary
from skillc.syntax.tokens import WORDS, Token, tokenize

_KNOWN = vocabulary()
_ALONE = {word for word in _KNOWN.kinds if word not in _KNOWN.settings}
_NAMES = frozenset(("NAME", *WORDS.values()))
_BY_KIND = {
    **dict.fromkeys(("NUMBER", "MONEY"), Number),
    **dict.fromkeys(("COMPARE", "SIGN", "SCALE", "VBAR", "EQUAL"), Operator),
    **dict.fromkeys(("LBRACE", "RBRACE", "LPAR", "RPAR", "LSQB", "RSQB", "COMMA", "COLON", "DOT", "_END"), Punctuation),
    **dict.fromkeys(("AND", "OR", "NOT"), Operator.Word),
    **dict.fromkeys(("STRING", "UNCLOSED"), String.Double),
    "TEXT": String.Heredoc,
    "PERCENT": Keyword.Type,
}


class SkillLexer(Lexer):  # type: ignore[misc]
    """Highlights programs; any text has tokens."""

    name = "skill"
    aliases: ClassVar[list[str]] = ["skill", "skillc"]
    filenames: ClassVar[list[str]] = ["*.skill"]
    url = "https://pypi.org/project/skillc/"

    def get_tokens_unprocessed(self, text: str) -> Iterator[tuple[int, Any, str]]:
        """Yield index, token type and text of each token."""
        lexed = tokenize(text)
        unclosed = (fault.span for fault in lexed.faults if fault.kind == "unclosed")
        found = [(span.start, span.end, String.Heredoc) for span in unclosed]
        for each in lexed.comments:
            found.append((each.span.start, each.span.end, String.Doc if each.documents else Comment.Single))
        found += _highlight(lexed.found)
        at = 0
        for start, end, colour in sorted(found, key=lambda each: (each[0], -each[1])):
            # The empty string that replaces an unclosed text is part of that text.
            if start >= at and end > start:
                if start > at:
                    yield at, Whitespace, text[at:start]
                yield start, colour, text[start:end]
                at = end
        if at < len(text):
            yield at, Whitespace, text[at:]


def _highlight(tokens: Sequence[Token]) -> Iterator[tuple[int, int, Any]]:
    """Yield start, end and type of the tokens; the path of a `use` is one token."""
    words: list[Token] = []
    for token in tokens:
        words.append(token)
        if token.kind in ("_END", "LBRACE", "RBRACE", "$END"):
            yield from _statement(words)
            words = []


def _statement(words: list[Token]) -> Iterator[tuple[int, int, Any]]:
    """Highlight a statement up to its block, its end, or the end of the enclosing block; that token is the last."""
    head = _head(words)
    yield from head
    done = head[-1][1] if head else 0
    for i, word in enumerate(words):
        if word.start >= done and (word.kind != "_END" or word.text == ";"):
            yield word.start, word.end, _type_of(words, i)


def _head(words: list[Token]) -> list[tuple[int, int, Any]]:
    """Highlight the first words of a statement: modifiers, kind and name, or a setting with its value."""

    def is_name(at: int) -> bool:
        return at < len(words) and words[at].kind in _NAMES

    def typed(word: Token, type_: Any) -> tuple[int, int, Any]:
        return word.start, word.end, type_

    found = []
    i = 0
    while is_name(i) and words[i].text in _KNOWN.modifiers and is_name(i + 1):
        found.append(typed(words[i], Keyword.Declaration))
        i += 1
    if not is_name(i):
        return found
    word, following = words[i], words[i + 1].kind if i + 1 < len(words) else ""
    if word.kind == "USE" and (is_name(i + 1) or following == "STRING"):
        found.append(typed(word, Keyword.Namespace))
        if is_name(i + 1):
            last = i + 1
            while words[last + 1].kind == "DOT" and is_name(last + 2):
                last += 2
            found.append((words[i + 1].start, words[last].end, Name.Namespace))
    elif (word.text == "language" and following == "NUMBER") or (
        word.text in _KNOWN.kinds and (following == "LBRACE" or (following == "EQUAL" and word.text in _ALONE))
    ):
        found.append(typed(word, Keyword.Declaration))
    elif word.text in _KNOWN.kinds and is_name(i + 1):
        found += typed(word, Keyword.Declaration), typed(words[i + 1], Name.Variable)
    elif following == "EQUAL" and is_name(i + 2) and words[i + 2].text in _KNOWN.values:
        found += typed(word, Name.Attribute), typed(words[i + 1], Operator), typed(words[i + 2], Keyword.Constant)
    elif following in ("EQUAL", "LBRACE"):
        found.append(typed(word, Name.Attribute))
    return found


def _type_of(words: list[Token], i: int) -> Any:
    """Return the type of a token after the head of a statement."""
    word = words[i]
    before, behind = words[i - 1].kind if i else "", words[i + 1] if i + 1 < len(words) else words[-1]
    if word.kind in _BY_KIND:
        return _BY_KIND[word.kind]
    if word.kind not in _NAMES:
        return Text
    if word.kind == "AS" and behind.kind in _NAMES:
        return Keyword.Namespace
    if before == "NUMBER" and word.text in _KNOWN.units:
        return Keyword.Type
    if word.text in _KNOWN.states:
        return Name.Builtin.Pseudo
    if behind.kind == "LPAR":
        return Name.Builtin if word.text in _KNOWN.functions and before != "DOT" else Name.Function
    if word.text in _KNOWN.types and (before == "COLON" or (before == "LSQB" and behind.kind == "RSQB")):
        return Keyword.Type
    if word.text in CONSTANTS:
        return Keyword.Constant
    if (word.text == "for" and behind.text in _KNOWN.modifiers) or (
        word.text in _KNOWN.modifiers and i and words[i - 1].text == "for"
    ):
        return Keyword
    return Name


class ConsoleLexer(Lexer):  # type: ignore[misc]
    """Highlights a terminal session: `$ command`, continuation lines with `> `, then plain output.

    Pygments' own `console` treats output lines that begin with `#` or `>` as comments and prompts.
    """

    name = "skillc console"
    aliases: ClassVar[list[str]] = ["skillc-console"]
    url = "https://pypi.org/project/skillc/"

    def get_tokens_unprocessed(self, text: str) -> Iterator[tuple[int, Any, str]]:
        """Yield index, token type and text of each token."""
        bash = BashLexer(**self.options)
        at, prompt = 0, "$ "
        for line in re.findall(r"[^\n]*\n|[^\n]+", text):
            if line.startswith(("$ ", prompt)):
                yield at, Generic.Prompt, line[:2]
                yield from ((at + 2 + i, kind, part) for i, kind, part in bash.get_tokens_unprocessed(line[2:]))
                prompt = "> "
            else:
                yield at, Generic.Output, line
                prompt = "$ "
            at += len(line)

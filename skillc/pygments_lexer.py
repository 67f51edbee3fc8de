"""Pygments lexers: `.skill` programs by the name `skill`, terminal sessions of the docs by `skillc-console`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, ClassVar

from pygments.lexer import Lexer, RegexLexer, bygroups, default, include, words
from pygments.lexers.shell import BashLexer
from pygments.token import Comment, Generic, Keyword, Name, Number, Operator, Punctuation, String, Text, Whitespace

from skillc.language.highlighting import CONSTANTS, OPERATORS
from skillc.language.highlighting import words as known_words
from skillc.syntax.tokens import terminals

_WORDS = known_words()
_TERMINALS = terminals()
_NAME = _TERMINALS["NAME"]
_ALONE = tuple(word for word in _WORDS.kinds if word not in _WORDS.settings)


class SkillLexer(RegexLexer):  # type: ignore[misc]
    """Colours programs; any text has tokens, also one that is no program."""

    name = "skill"
    aliases: ClassVar[list[str]] = ["skill", "skillc"]
    filenames: ClassVar[list[str]] = ["*.skill"]
    url = "https://pypi.org/project/skillc/"

    # The state `root` is the beginning of a statement, `rest` what follows its first words.
    tokens: ClassVar = {
        "trivia": [
            (r"\s+", Whitespace),
            (r"///[^\n]*", String.Doc),
            (r"#[^\n]*", Comment.Single),
        ],
        "root": [
            include("trivia"),
            (words(_WORDS.modifiers, r"\b", r"\b(?=[ \t]+[^\W\d])"), Keyword.Declaration),
            (
                rf"(use)([ \t]+)({_NAME}(?:\.{_NAME})*)",
                bygroups(Keyword.Namespace, Whitespace, Name.Namespace),
                "rest",
            ),
            (r"use(?=[ \t]*\")", Keyword.Namespace, "rest"),
            (r"language\b(?=[ \t]+\d)", Keyword.Declaration, "rest"),
            (words(_WORDS.kinds, "", r"\b(?=[ \t]*\{)"), Keyword.Declaration, "rest"),
            (words(_ALONE, "", r"\b(?=[ \t]*=)"), Keyword.Declaration, "rest"),
            (words(_WORDS.kinds, "", r"\b(?=[ \t]+[^\W\d])"), Keyword.Declaration, ("rest", "named")),
            (
                rf"({_NAME})([ \t]*)(=)([ \t]*)({'|'.join(_WORDS.values)})\b",
                bygroups(Name.Attribute, Whitespace, Operator, Whitespace, Keyword.Constant),
                "rest",
            ),
            (rf"{_NAME}(?=\s*[={{])", Name.Attribute, "rest"),
            default("rest"),
        ],
        "named": [
            (r"[ \t]+", Whitespace),
            (_NAME, Name.Variable, "#pop"),
            default("#pop"),
        ],
        "rest": [
            (r"\n", Whitespace, "#pop"),
            (r"[;{}]", Punctuation, "#pop"),
            include("trivia"),
            (_TERMINALS["TEXT"].replace("(?s)", "").replace(r"\\.", r"\\[\s\S]"), String.Heredoc),
            (r'"""[\s\S]*', String.Heredoc),
            (_TERMINALS["STRING"], String.Double),
            (r'"(?:[^"\\\n]|\\[^\n])*', String.Double),
            (_TERMINALS["MONEY"], Number),
            (
                rf"({_TERMINALS['NUMBER']})([ \t]*)(%|(?:{'|'.join(_WORDS.units)})\b)",
                bygroups(Number, Whitespace, Keyword.Type),
            ),
            (_TERMINALS["NUMBER"], Number),
            (words(OPERATORS, r"\b", r"\b"), Operator.Word),
            (r"as\b(?=[ \t]+[^\W\d])", Keyword.Namespace),
            (words(_WORDS.states, r"\b", r"\b"), Name.Builtin.Pseudo),
            (words(_WORDS.functions, r"(?<!\.)\b", r"\b(?=[ \t]*\()"), Name.Builtin),
            (rf"{_NAME}(?=[ \t]*\()", Name.Function),
            (rf"(:)([ \t]*)({'|'.join(_WORDS.types)})\b", bygroups(Punctuation, Whitespace, Keyword.Type)),
            (
                rf"(\[)([ \t]*)({'|'.join(_WORDS.types)})([ \t]*)(\])",
                bygroups(Punctuation, Whitespace, Keyword.Type, Whitespace, Punctuation),
            ),
            (words(CONSTANTS, r"\b", r"\b"), Keyword.Constant),
            (rf"(for)([ \t]+)({'|'.join(_WORDS.modifiers)})\b", bygroups(Keyword, Whitespace, Keyword)),
            (_NAME, Name),
            (rf"{_TERMINALS['COMPARE']}|[-+*/|=]", Operator),
            (r"[()\[\],:.]", Punctuation),
            (r".", Text),
        ],
    }


class ConsoleLexer(Lexer):  # type: ignore[misc]
    """Colours a terminal session: `$ command`, lines `> ` that continue it, then its output as it is.

    Pygments' own `console` colours output lines that begin with `#` or `>` as comments and prompts.
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


__all__ = ["ConsoleLexer", "SkillLexer"]

"""The TextMate grammar, made from the vocabulary of the language and the grammar.

Patterns can't resolve names, so only words whose position decides their meaning are highlighted: a word that begins a
statement, one before `=`, a function before `(`. The language server adds semantic tokens.
"""

from __future__ import annotations

import json
from typing import Any

from skillc.language.vocabulary import CONSTANTS, Vocabulary, vocabulary
from skillc.syntax.tokens import terminals

_OPERATORS = ("and", "or", "not")


def _portable(pattern: str) -> str:
    """Translate a terminal to the syntax of Oniguruma, which editors use: without possessive quantifiers."""
    return pattern.replace("*+", "*").replace("++", "+").replace(r"[^\W\d]\w*", r"[\p{L}_][\p{L}\p{N}_]*")


def textmate() -> dict[str, Any]:
    """Make the TextMate grammar, as JSON values; the first pattern that matches applies."""
    found, known = terminals(), vocabulary()
    name = _portable(found["NAME"])
    repository: dict[str, Any] = {
        "documentation": {"name": "comment.line.documentation.skill", "match": "///.*$"},
        "comment": {"name": "comment.line.number-sign.skill", "match": "#.*$"},
        "text": _text(),
        "string": {
            "name": "string.quoted.double.skill",
            "begin": '"(?!"")',
            "end": '"|$',
            "patterns": [{"name": "constant.character.escape.skill", "match": r"\\(?:u\{[0-9A-Fa-f]+\}|.)"}],
        },
        "use": _use(name),
        "statement": _statement(known, name),
        "type": {
            "match": rf"(:)\s*({_any(known.types)})\b",
            "captures": {
                "1": {"name": "punctuation.separator.colon.skill"},
                "2": {"name": "support.type.skill"},
            },
        },
        "money": {"name": "constant.numeric.money.skill", "match": _portable(found["MONEY"])},
        "number": {
            "match": rf"(?<![\w.])({_portable(found['NUMBER'])})\s*(%|(?:{_any(known.units)})\b)?",
            "captures": {
                "1": {"name": "constant.numeric.skill"},
                "2": {"name": "keyword.other.unit.skill"},
            },
        },
        "word-operator": {"name": "keyword.operator.word.skill", "match": rf"\b(?:{_any(_OPERATORS)})\b"},
        "member": {
            "match": rf"(?:\b({_any(known.states)})\b|({name}))(?=\s*\.)",
            "captures": {
                "1": {"name": "variable.language.skill"},
                "2": {"name": "entity.name.namespace.skill"},
            },
        },
        "builtin": {
            "name": "support.function.skill",
            "match": rf"(?<!\.)\b(?:{_any(known.functions)})\b(?=\s*\()",
        },
        "function": {"name": "entity.name.function.skill", "match": rf"{name}(?=\s*\()"},
        "constant": {
            "name": "constant.language.skill",
            "match": rf"\b(?:{_any(CONSTANTS)})\b",
        },
        "operator": {
            "name": "keyword.operator.skill",
            "match": f"{_portable(found['COMPARE'])}|[-+*/|=]",
        },
    }
    return {
        "comment": "Made from the table of kinds and the grammar by `python -m editors.make`; changes are lost.",
        "name": "skill",
        "scopeName": "source.skill",
        "fileTypes": ["skill"],
        "patterns": [{"include": f"#{each}"} for each in repository],
        "repository": repository,
    }


def _any(choices: tuple[str, ...]) -> str:
    # The longest first: one alternative may be a prefix of another.
    return "|".join(sorted(choices, key=lambda word: (-len(word), word)))


def _text() -> dict[str, Any]:
    return {
        "name": "string.quoted.triple.skill",
        "begin": '"""',
        "beginCaptures": {"0": {"name": "punctuation.definition.string.begin.skill"}},
        "end": '"""',
        "endCaptures": {"0": {"name": "punctuation.definition.string.end.skill"}},
        "contentName": "meta.embedded.block.markdown",
        "patterns": [
            {"name": "constant.character.escape.skill", "match": r'\\"""'},
            {
                # End before the closing quotes, so that no markdown construct continues after the text.
                # The indentation belongs to the program, not to the text.
                "begin": r"(^|\G)[ \t]*(?!\s*\"\"\")",
                "while": r'(^|\G)(?!\s*""")(?!.*(?<!\\)""")[ \t]*',
                "patterns": [{"include": "text.html.markdown"}],
            },
        ],
    }


def _use(name: str) -> dict[str, Any]:
    return {
        "match": rf"(?:^|(?<=;))\s*(use)\s+(?:({name}(?:\.{name})*)|(\"[^\"\n]*\"))(?:\s+(as)\s+({name}))?",
        "captures": {
            "1": {"name": "keyword.control.import.skill"},
            "2": {"name": "entity.name.namespace.skill"},
            "3": {"name": "string.quoted.double.skill"},
            "4": {"name": "keyword.control.import.skill"},
            "5": {"name": "entity.name.namespace.skill"},
        },
    }


def _statement(known: Vocabulary, name: str) -> dict[str, Any]:
    """`trainable section rules`, `language 1`, `limit = 300 tokens`: only where a statement may begin.

    A kind with the name of a setting is highlighted as a kind only before a name or a `{`.
    """
    modifiers = _any(known.modifiers)
    alone = _any(tuple(word for word in known.kinds if word not in known.settings))
    kinds = rf"(?:{_any((*known.kinds, 'language'))})\b(?=\s*[\p{{L}}_{{0-9])|(?:{alone})\b(?=\s*=)"
    value = rf"(?:\s*(=)\s*({_any(known.values)})\b)?"
    return {
        "match": (
            rf"(?:^|(?<=[;{{]))\s*(?:({modifiers})\s+)?"
            rf"(?:({kinds})(?:\s+({name})(?:\s+({modifiers})\s+({modifiers}))?)?|({name})(?=\s*[={{]){value})"
        ),
        "captures": {
            "1": {"name": "storage.modifier.skill"},
            "2": {"name": "keyword.declaration.skill"},
            "3": {"name": "entity.name.skill"},
            "4": {"name": "storage.modifier.skill"},
            "5": {"name": "storage.modifier.skill"},
            "6": {"name": "support.type.property-name.skill"},
            "7": {"name": "keyword.operator.skill"},
            "8": {"name": "constant.language.skill"},
        },
    }


def as_file(value: dict[str, Any]) -> str:
    """Format the grammar as in the repository."""
    return json.dumps(value, ensure_ascii=False, indent=2) + "\n"

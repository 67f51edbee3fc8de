"""The grammar as readers write one: the notation of the XML specification, without what only a parser needs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from skillc.files import shipped_folder

_RULE = re.compile(r"^[?!]*(?P<name>[a-z_]+)(?:\{\w+\})?: (?P<body>.*(?:\n +\|.*)*)", re.MULTILINE)
_TERMINAL = re.compile(r"^(?P<name>[A-Z_]+)(?:\.-?\d+)?: (?P<body>.*)", re.MULTILINE)
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|->\s*\w+|_?\w+\{\w+\}|\w+|[\[\]()|*+?]')

# What a terminal is, in words; its expression is in grammar/skill.lark.
_TERMINALS = {
    "COMPARE": "one of `<`, `<=`, `>`, `>=`, `==`, `!=`",
    "SIGN": "`+` or `-`",
    "SCALE": "`*` or `/`",
    "PERCENT": "`%`",
    "NAME": "a letter of any script or `_`, then letters, digits and `_`. No word is kept but `and`, `or`, `not`, "
    "and `use` at the start of a statement",
    "NUMBER": "digits with `_` between them, a fraction, an exponent, and `k` or `M` for thousands and millions: "
    "`1_500`, `0.5`, `1e-6`, `31M`. There is no `.5`",
    "MONEY": "`$` and a number without a blank between them: `$3`, `$0.05`",
    "STRING": r'a text in double quotes on one line: `"billing"`. Escapes: `\"`, `\\`, `\n`, `\t`, `\r`, `\u00e9`, '
    r"`\u{1F600}`",
    "TEXT": 'a text between two `"""`. It is raw, but for `\\"""`; common indentation goes, and so do the line breaks '
    "beside the quotes",
    "_END": "a newline or `;`. A newline ends no statement within `( )` and `[ ]`, after an operator, `=`, `,`, `:` or "
    "`.`, and before a line that begins with one of them or with `{`",
    "COMMENT": "`#` to the end of the line; `///` documents the declaration below it, or the one whose line it ends. A "
    "comment may stand anywhere between two tokens",
}
_UNSEEN = {"UNCLOSED"}


@dataclass(frozen=True, slots=True)
class Terminal:
    """A kind of token: its name and what it is."""

    name: str
    about: str


def data() -> Mapping[str, Any]:
    """What the page of the grammar is made of."""
    text = (shipped_folder("grammar") / "skill.lark").read_text(encoding="utf-8")
    return {"rules": list(_rules(text)), "terminals": list(_terminals(text))}


def _rules(text: str) -> Iterator[str]:
    """Each rule, its alternatives below each other."""
    for match in _RULE.finditer(text):
        if "{" in match[0].split(":")[0]:
            continue
        body = re.sub(r" +// .*", "", match["body"])
        alternatives = [_readable(part) for part in body.split("\n")]
        head = f"{match['name'].lstrip('_'):<9} ::= "
        yield head + f"\n{' ' * 10}    ".join(alternatives)


def _terminals(text: str) -> Iterator[Terminal]:
    for match in _TERMINAL.finditer(text):
        if match["name"] not in _UNSEEN:
            yield Terminal(match["name"].lstrip("_"), _TERMINALS[match["name"]])


def _readable(line: str) -> str:
    """One line of lark in the other notation: `[x]` is `x?`, `_list{x}` is written out, names of nodes go."""
    out: list[str] = []
    opened: list[int] = []
    tokens = [token for token in _TOKEN.findall(line) if not token.startswith("->")]
    for token in tokens:
        if token == "[":
            opened.append(len(out))
        elif token == "]":
            start = opened.pop()
            inner = " ".join(out[start:])
            single = len(out) - start == 1 and not _is_list(inner)
            out[start:] = [f"{inner}?" if single else f"({inner})?"]
        elif "{" in token and not token.startswith('"'):
            item = token[token.index("{") + 1 : -1]
            out.append(f'{item} ("," {item})* ","?')
        elif token in "*+?" and out:
            out[-1] += token
        else:
            out.append(token if token.startswith('"') else token.lstrip("_"))
    text = " ".join(out).replace("( ", "(").replace(" )", ")")
    # `x | x (y)+` makes one node less in a tree; a reader has `x (y)*`.
    return re.sub(r"^(\w+) \| \1 \((.*)\)\+$", r"\1 (\2)*", text)


def _is_list(text: str) -> bool:
    return text.endswith(' ","?')

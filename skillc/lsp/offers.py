"""One thing that may be typed."""

from __future__ import annotations

from dataclasses import dataclass

from lsprotocol import types

from skillc.language.statements import Stated
from skillc.lsp.hover import head, signature

ITEM = types.CompletionItemKind


@dataclass(frozen=True, slots=True)
class Offer:
    """One thing that may be typed; `snippet` is what is put in where the editor knows snippets."""

    label: str
    kind: types.CompletionItemKind
    detail: str = ""
    text: str = ""
    snippet: str = ""
    rank: int = 5


def declared(stated: Stated, kind: types.CompletionItemKind) -> Offer:
    """The name of a declaration."""
    name = stated.name.text if stated.name is not None else ""
    return Offer(name, kind, stated.kind.word, stated.node.doc or "", rank=2)


def called(name: str, stated: Stated) -> Offer:
    """A function of the program or of a module, with its parentheses."""
    text = f"```skill\n{head(stated)}\n```\n\n{stated.node.doc or ''}".strip()
    return Offer(name, ITEM.Function, signature(stated), text, f"{name}($1)", rank=3)

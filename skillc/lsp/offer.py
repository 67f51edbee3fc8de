"""What the server offers in its reply to `initialize`, which needs nothing of the language."""

from __future__ import annotations

from lsprotocol import types

TRIGGERS = [".", '"', "/", "=", "(", ",", ":", " "]
"""Characters that ask for completion."""

ACTIONS = (types.CodeActionKind.QuickFix, types.CodeActionKind.SourceFixAll)

TYPES = (
    *("namespace", "type", "class", "enumMember", "parameter", "variable", "property", "function", "keyword"),
    *("string", "number", "comment", "operator"),
)
MODIFIERS = ("declaration", "readonly", "documentation", "defaultLibrary")
LEGEND = types.SemanticTokensLegend(list(TYPES), list(MODIFIERS))

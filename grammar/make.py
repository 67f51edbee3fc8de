"""Makes the parser's tables from the grammar: `python -m grammar.make` writes `skillc/syntax/table.json`.

lark builds them, so that skillc itself needs no parser generator. A test compares the file with what this makes.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from lark import Lark
from lark.grammar import NonTerminal

GRAMMAR = Path(__file__).with_name("skill.lark")
TABLE = GRAMMAR.parents[1] / "skillc" / "syntax" / "table.json"


class _Unused:
    """Keeps the terminals that are in no rule."""

    always_accept = ("UNCLOSED",)
    process = staticmethod(iter)


def build(text: str, **options: Any) -> Lark:
    """Build the parser that lark makes of a grammar."""
    return Lark(text, parser="lalr", lexer="contextual", keep_all_tokens=True, postlex=_Unused(), **options)


def table() -> str:
    """The text of the file."""
    grammar = GRAMMAR.read_text(encoding="utf-8")
    lark = build(grammar)
    conf = lark.parse_interactive("").parser_state.parse_conf
    rules = {rule: i for i, rule in enumerate(lark.rules)}
    # Numbered from the start on, for lark's own numbers differ from run to run.
    numbers = {conf.start_state: 0}
    for state in (waiting := [conf.start_state]):
        for _, (_, target) in sorted(conf.states[state].items()):
            if isinstance(target, int) and target not in numbers:
                numbers[target] = len(numbers)
                waiting.append(target)
    states = [
        {
            kind: numbers[target] if isinstance(target, int) else -1 - rules[target]
            for kind, (_, target) in sorted(conf.states[state].items())
        }
        for state in waiting
    ]
    # In lark's order: of two terminals that match, the first is meant.
    order = sorted(
        (each for each in lark.terminals if not each.name.startswith("__")),
        key=lambda each: (-each.priority, -each.pattern.max_width, -len(each.pattern.value), each.name),
    )
    parts = {
        "grammar": hashlib.sha256(grammar.encode()).hexdigest(),
        "end": numbers[conf.end_state],
        "terminals": {each.name: each.pattern.to_regexp() for each in order},
        "rules": [_rule(rule) for rule in lark.rules],
        "states": states,
    }
    lines = (f"{json.dumps(key)}: {_lines(value)}" for key, value in parts.items())
    return "{" + ",\n".join(lines) + "}\n"


def _rule(rule: Any) -> list[Any]:
    """What a rule makes: the name of the method, empty where the only child stays, and `_` where all do.

    Then its nonterminal, and of each child whether it is a token or node (1), children to be spliced in (2), or an
    optional part that is absent (0).
    """
    origin = rule.origin.name
    name = rule.alias or origin
    if origin.startswith("_"):
        name = "_"
    elif rule.options.expand1 and not rule.alias:
        name = ""
    given = [2 if isinstance(each, NonTerminal) and each.name.startswith("_") else 1 for each in rule.expansion]
    children = [0 if absent else given.pop(0) for absent in rule.options.empty_indices] or given
    return [name, origin, *children]


def _lines(value: Any) -> str:
    """JSON with an item a line."""
    if isinstance(value, list):
        return "[\n" + ",\n".join(json.dumps(each, separators=(",", ":")) for each in value) + "]"
    return json.dumps(value, ensure_ascii=False)


if __name__ == "__main__":
    TABLE.write_text(table(), encoding="utf-8", newline="\n")

"""The tools of the agent: search the documents, read an attached file, calculate."""

from __future__ import annotations

import ast
import json
import math
import operator
import re
from collections import Counter
from datetime import date
from functools import cache
from pathlib import Path

DATA = Path(__file__).with_name("data")
_FOUND = 3
_WORD = re.compile(r"\w+")
_OPERATIONS = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
}
_FUNCTIONS = {"sum": lambda *values: sum(values), "min": min, "max": max, "round": round, "abs": abs}


def search(query: str) -> str:
    """Search the documents about the harbour country, and return the three that fit best.

    Args:
        query: words that a document about it has, such as a place and a subject
    """
    words = Counter(_WORD.findall(query.casefold()))
    documents, frequency = _documents()
    total = len(documents)

    def score(place: int) -> float:
        own = documents[place][1]
        return sum(math.log(1 + total / frequency[word]) for word in words if word in own)

    best = sorted(range(total), key=lambda place: (-score(place), place))[:_FOUND]
    return "\n\n".join(documents[place][0] for place in best if score(place) > 0) or "nothing found"


def read_file(name: str) -> str:
    """Return the text of an attached file.

    Args:
        name: the name of the file, as the question has it
    """
    path = DATA / "files" / Path(name).name
    if not path.is_file():
        raise FileNotFoundError(f"no file `{name}` is attached")
    return path.read_text(encoding="utf-8")


def calculate(expression: str) -> str:
    """Calculate with numbers, and with days: `days("2026-03-01", "2026-04-01")` is 31.

    Args:
        expression: arithmetic in Python's notation, with sum, min, max, round and abs
    """
    return f"{_value(ast.parse(expression.strip(), mode='eval').body):.12g}"


def _value(node: ast.expr) -> float:
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        return node.value
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATIONS:
        return _OPERATIONS[type(node.op)](_value(node.left), _value(node.right))
    if isinstance(node, ast.UnaryOp) and type(node.op) in _OPERATIONS:
        return _OPERATIONS[type(node.op)](_value(node.operand))
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        if node.func.id == "days":
            first, second = (date.fromisoformat(ast.literal_eval(each)) for each in node.args)
            return (second - first).days
        if node.func.id in _FUNCTIONS:
            return _FUNCTIONS[node.func.id](*map(_value, node.args))
    raise ValueError(f"`{ast.unparse(node)}` is no arithmetic")


@cache
def _documents() -> tuple[list[tuple[str, frozenset[str]]], Counter[str]]:
    """Return each document with its words, and in how many documents a word is."""
    rows = [json.loads(line) for line in (DATA / "documents.jsonl").read_text(encoding="utf-8").splitlines()]
    texts = [f"{row['title']}\n{row['text']}" for row in rows]
    found = [(text, frozenset(_WORD.findall(text.casefold()))) for text in texts]
    return found, Counter(word for _, words in found for word in words)

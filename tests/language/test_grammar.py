"""The grammar itself: no conflicts, one method a rule, a word for every terminal."""

from __future__ import annotations

import pytest

from skillc import resources
from skillc.syntax import grammar
from skillc.syntax.mistakes import generic
from skillc.syntax.newlines import Newlines
from skillc.syntax.transform import Builder

TEXT = (resources.folder("grammar") / "skill.lark").read_text("utf-8")


def test_there_are_no_conflicts() -> None:
    pytest.importorskip("interegular")
    # It knows no possessive repeats; without them the same texts match.
    grammar.build(TEXT.replace("*+", "*").replace("++", "+"), postlex=Newlines(), strict=True)


def test_every_rule_has_its_method() -> None:
    parser = grammar.build(TEXT, postlex=Newlines())
    names = {rule.alias or rule.origin.name for rule in parser.rules}
    # What keeps its only child, and what is spliced into its parent, makes no node.
    silent = {
        "statement",
        "type",
        "option",
        "value",
        "expr",
        "conj",
        "neg",
        "compare",
        "sum",
        "term",
        "unary",
        "postfix",
    }
    made = {name for name in names if not name.startswith("_")} - silent - {"atom", "literal"}
    assert {name for name in made if not callable(getattr(Builder, name, None))} == set()


def test_every_terminal_has_a_name() -> None:
    parser = grammar.build(TEXT, postlex=Newlines())
    visible = {each.name for each in parser.terminals if not each.name.startswith("__")}
    assert visible - generic.HIDDEN - set(parser.ignore_tokens) == set(generic.WORDS) - {"$END"}

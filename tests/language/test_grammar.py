"""The grammar itself: no conflicts, tables in step with it, one maker a rule, a word for every terminal."""

from __future__ import annotations

import pytest

from grammar import make
from skillc.syntax.builder import RULES
from skillc.syntax.mistakes.context import HIDDEN, WORDS
from skillc.syntax.tokens import terminals

TEXT = make.GRAMMAR.read_text("utf-8")


def test_there_are_no_conflicts() -> None:
    pytest.importorskip("interegular")
    # It knows no possessive repeats; without them the same texts match.
    make.build(TEXT.replace("*+", "*").replace("++", "+"), strict=True)


def test_the_tables_are_those_of_the_grammar() -> None:
    assert make.TABLE.read_text("utf-8") == make.table(), "run `python -m grammar.make`"


def test_every_rule_has_its_maker() -> None:
    names = {rule.alias or rule.origin.name for rule in make.build(TEXT).rules}
    # What keeps its only child, and what is spliced into its parent, makes nothing.
    silent = {"statement", "type", "option", "value", "expr", "conj", "neg", "compare", "sum", "term", "postfix"}
    assert {name for name in names if not name.startswith("_")} - silent - {"atom", "literal"} == set(RULES)


def test_every_terminal_has_a_name() -> None:
    words = {"AND", "OR", "NOT", "USE", "AS"}
    assert {*terminals(), *words} - HIDDEN == set(WORDS) - {"$END"}

"""A mistake costs at most its statement, and is told once, at its place."""

from __future__ import annotations

from skillc.syntax import nodes
from skillc.syntax.parser import Parsed, parse
from skillc.syntax.source import Source


def read(text: str) -> Parsed:
    return parse(Source("test.skill", text))


def found(text: str) -> list[tuple[int, int, str]]:
    parsed = read(text)
    return [(*parsed.program.source.position(d.primary.span.start), d.code) for d in parsed.diagnostics]


def heads(text: str) -> list[str]:
    return [
        " ".join(word.text for word in s.words) for s in read(text).program.statements if not isinstance(s, nodes.Use)
    ]


FOUR = """\
language 1

/// What it is for.
task {
  input ticket: text, output team: text
}

skill route {
  about = "Route."
  section rules { limit: 800 tokens }
}

goal score = a ? b : c

data { source = "a.csv" }

budget { cost = ; epochs = 4 }
"""


def test_four_mistakes_give_four_diagnostics() -> None:
    assert found(FOUR) == [(5, 21, "SK012"), (10, 24, "SK013"), (13, 16, "SK017"), (17, 15, "SK026")]
    assert heads(FOUR) == ["language", "task", "skill route", "data", "budget"]
    assert read(FOUR).dropped == {"goal", "score", "cost"}


def test_two_mistakes_in_one_block() -> None:
    text = "budget {\n  cost = )\n  epochs = 4\n  time = * 3\n}\n"
    assert found(text) == [(2, 10, "SK004"), (4, 10, "SK001")]
    block = read(text).program.statements[0].block  # type: ignore[union-attr]
    assert block
    assert len(block.statements) == 1


def test_a_mended_statement_stays() -> None:
    text = "gate g = a && b"
    gate = read(text).program.statements[0]
    assert isinstance(gate, nodes.Declaration)
    assert isinstance(gate.value, nodes.Logic)
    assert text[gate.value.operands[1].span.start :] == "b"


def test_one_statement_is_reported_once() -> None:
    assert found("goal x = a b c * * d ] (") == [(1, 12, "SK001")]


def test_names_inside_texts_begin_nothing() -> None:
    text = 'section a = """\ngoal x = )\n"""\ngoal y = ? 3\n'
    assert found(text) == [(4, 10, "SK017")]
    assert heads(text) == ["section a"]


def test_blocks_in_the_first_column() -> None:
    text = "task {\ninput a: text\noutput b: text\n}\ngoal x = ? 1\n"
    assert found(text) == [(5, 10, "SK017")]
    assert heads(text) == ["task"]


def test_an_open_brace_is_named_by_indentation() -> None:
    text = "skill a {\n  section x {\n    limit = 3\n}\n\ngoal y = b\n"
    assert found(text) == [(2, 13, "SK003")]
    assert heads(text) == ["skill a", "goal y"]


def test_an_open_text_ends_before_the_next() -> None:
    text = 'skill a {\n  section b = """\n    one\n  section c = """\n    two\n  """\n}\ngoal x = a\n'
    assert found(text) == [(2, 15, "SK006")]
    assert heads(text) == ["skill a", "goal x"]


def test_a_closing_fence_stands_alone() -> None:
    text = 'section x = """\n  one\n  two"""\nsection y = """\n  lost\n\ngoal a = b\n'
    assert found(text) == [(3, 6, "SK007"), (4, 13, "SK006")]
    assert heads(text) == ["section x", "section y", "goal a"]


def test_a_comment_of_several_lines() -> None:
    text = "/* one\n   two */\ngoal a = b /* three\n four */\ngoal c = d\n"
    assert found(text) == [(1, 1, "SK019"), (3, 12, "SK019")]
    assert heads(text) == ["goal a", "goal c"]


def test_an_open_parenthesis_ends_with_its_statement() -> None:
    text = "gate a = f(x,\n  y\ngate b = f(x)\n"
    assert found(text) == [(1, 11, "SK003")]
    assert heads(text) == ["gate a", "gate b"]


def test_documentation_survives_mistakes_elsewhere() -> None:
    text = "/// about a\ngoal a = 1\ngoal b = ?\n/// about c\ngoal c = 1\n"
    docs = [s.doc for s in read(text).program.statements if isinstance(s, nodes.Declaration)]
    assert docs == ["about a", "about c"]


def test_a_file_that_is_no_program_ends_soon() -> None:
    parsed = read("a @\n" * 20_000)
    assert len(parsed.diagnostics) == 101
    assert parsed.diagnostics[-1].code == "SK011"

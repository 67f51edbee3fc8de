"""`parse` never raises, every span lies in the file and in its parent, and good programs are read as they stand."""

from __future__ import annotations

import gc
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from thorough import example_count

from skillc.syntax import nodes
from skillc.syntax.parser import Parsed, parse
from skillc.syntax.source import Source

PIECES = [
    *"(){}[]=:;,.|+-*/<>!&?%$#'`@\\\"\n",
    *["goal", "x", "and", "or", "not", "use", "as", "section", "if", "route-tickets", "é", "²"],
    *['"""', '"a"', '"a\\q"', "///", "//", "/* a */", "==", "=>", "&&", "||", "≥", "“a”", "5%", "$3", "€3", ".5", "2k"],
    *[" ", "  ", "\n\n", "\n  ", "\t", "\r\n", "\u00a0", "\u200b", "\ufeff", "\0", "\ud800", "=", " = ", "task {\n"],
]
LINES = [
    "goal x = a",
    "budget { a = 1, b = 2 }",
    "task {",
    "}",
    "  a: 3",
    '  s = """',
    "gate g = f(a",
    "/// doc",
    "# c",
]
TEXTS = st.one_of(
    st.text(),
    st.lists(st.sampled_from(PIECES), max_size=40).map("".join),
    st.lists(st.sampled_from(LINES), max_size=12).map("\n".join),
)


def read(text: str) -> Parsed:
    return parse(Source("test.skill", text))


def value(text: str) -> Any:
    found = read(f"a = {text}")
    assert not found.diagnostics, found.diagnostics
    statement = found.program.statements[0]
    assert isinstance(statement, nodes.Declaration)
    return statement.value


def children(node: nodes.Node) -> Iterator[nodes.Node]:
    for field in fields(node):
        inner = getattr(node, field.name)
        for each in inner if isinstance(inner, tuple) else (inner,):
            if isinstance(each, nodes.Node):
                yield each


def check_spans(found: Parsed, size: int) -> None:
    waiting: list[nodes.Node] = [found.program]
    while waiting:
        node = waiting.pop()
        assert 0 <= node.span.start <= node.span.end <= size
        for child in children(node):
            assert node.span.start <= child.span.start
            assert child.span.end <= node.span.end, (node, child)
            waiting.append(child)
    for each in found.diagnostics:
        for label in (each.primary, *each.secondary):
            assert 0 <= label.span.start <= label.span.end <= size
        if each.fix:
            assert 0 <= each.fix.span.start <= each.fix.span.end <= size


@given(TEXTS)
@settings(max_examples=example_count(600), deadline=None)
def test_parse_never_raises_and_spans_are_sound(text: str) -> None:
    check_spans(read(text), len(text))


@given(TEXTS)
@settings(max_examples=example_count(300), deadline=None)
def test_a_safe_fix_removes_its_mistake(text: str) -> None:
    for each in read(text).diagnostics:
        if each.fix and each.fix.safe:
            span = each.fix.span
            assert text[span.start : span.end] != each.fix.text


@given(TEXTS)
@settings(max_examples=example_count(200), deadline=None)
def test_parse_gives_the_same_each_time(text: str) -> None:
    assert read(text) == read(text)


def test_all_programs_parse(programs: list[Path]) -> None:
    assert len(programs) == 8
    for path in programs:
        text = path.read_text("utf-8")
        found = parse(Source(path.name, text))
        assert found.diagnostics == ()
        assert found.dropped == frozenset()
        check_spans(found, len(text))


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "\ufeff",
        "\0" * 1000,
        "\ud800 = \udfff",
        "PK\x03\x04",
        "goal x = " + "(" * 10_000,
        "goal x = " + "(" * 10_000 + "1" + ")" * 10_000,
        "goal x = " + "[" * 10_000,
        "a {" * 10_000,
        "a {\n" * 10_000,
        "}" * 10_000,
        "goal x = " + "not " * 10_000 + "a",
        "goal x = " + "a + " * 10_000 + "a",
        "goal x = f" + "()" * 10_000,
        "goal x = f" + ".a" * 10_000,
        "goal x = " + "-" * 10_000 + "1",
        "goal x: " + "list[" * 10_000,
        "goal x = 1e999999999",
        "goal x = " + "9" * 10_000,
        "([{" * 5_000,
        "a\n" + " " * 200_000 + "@",
        '"' * 200_001,
        "a" * 500_000,
        'goal x = "' + "a" * 500_000,
        'goal x = """' + 'a"b' * 150_000,
        "@" * 200_000,
    ],
    ids=lambda text: f"{text[:12]!r}-{len(text)}",
)
def test_hostile_texts(text: str) -> None:
    began = time.process_time()
    found = read(text)
    # Quadratic time would take minutes.
    assert time.process_time() - began < 10
    check_spans(found, len(text))


def test_ten_thousand_lines_take_about_a_second() -> None:
    program = (Path(__file__).parent / "programs" / "tickets.skill").read_text("utf-8")
    text = program * (10_000 // program.count("\n"))
    began = time.process_time()
    assert not read(text).diagnostics
    assert time.process_time() - began < 5  # measured 0.4 s of CPU time


def test_the_collector_is_restored() -> None:
    read("goal x = a")
    assert gc.isenabled()
    gc.disable()
    try:
        read("goal x = @")
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_values() -> None:
    assert value("1_500 tokens").value == 1500
    assert value("1_500 tokens").unit.text == "tokens"
    assert value("5%").unit.text == "%"
    assert value("0.1").value == Fraction(1, 10)
    assert value("31M").value == 31_000_000
    assert value("2k").unit is None
    assert value("$0.50").value == Fraction(1, 2)
    assert value(r'"a\n\"b\" \u{1F600}"').value == 'a\n"b" \U0001f600'
    assert value('"""a"""').value == "a"
    assert isinstance(value("2 : 1 : 2"), nodes.Ratio)
    assert value("[]").items == ()
    assert [each.name for each in value("[a, b,]").items] == ["a", "b"]


def test_operators() -> None:
    assert value("a + b * c").operator == "+"
    assert value("(a + b) * c").operator == "*"
    assert value("a - b - c").left.operator == "-"
    assert value("not a and b or c").operator == "or"
    assert len(value("a and b and c").operands) == 3
    assert value("a < x <= b").operators == ("<", "<=")
    assert value("-a").operator == "-"
    call = value("worst(candidate.m, by = f)")
    assert [each.name and each.name.text for each in call.arguments] == [None, "by"]


def test_parentheses_belong_to_the_span() -> None:
    text = "a = (x + y) / 2"
    statement = read(text).program.statements[0]
    assert isinstance(statement, nodes.Declaration)
    assert isinstance(statement.value, nodes.Binary)
    assert text[statement.value.span.start : statement.value.span.end] == "(x + y) / 2"
    assert text[statement.value.left.span.start : statement.value.left.span.end] == "(x + y)"


def test_statements() -> None:
    text = 'language 1\nuse std.gates\nuse "./lab.skill" as lab\ngate g(m: metric, most: share = 5%): a | "b" = m {}'
    header, plain, named, gate = read(text).program.statements
    assert isinstance(header, nodes.Header)
    assert isinstance(plain, nodes.Use)
    assert plain.path
    assert [name.text for name in plain.path] == ["std", "gates"]
    assert isinstance(named, nodes.Use)
    assert named.file
    assert named.alias
    assert (named.file.value, named.alias.text) == ("./lab.skill", "lab")
    assert isinstance(gate, nodes.Declaration)
    assert [word.text for word in gate.words] == ["gate", "g"]
    assert gate.parameters
    assert [each.name.text for each in gate.parameters] == ["m", "most"]
    assert isinstance(gate.type, nodes.UnionType)
    assert gate.block
    assert gate.block.statements == ()


@pytest.mark.parametrize(
    "text",
    [
        "goal x =\n  a",
        "goal x = a +\n  b",
        "goal x = a\n  + b",
        "goal x = a\n\n  # why\n\n  and b",
        "goal x = f(\n  a,\n\n  b\n)",
        "task\n{\n}",
        'output team: "a" |\n  "b"',
        'output team: "a"\n  | "b"',
        "goal x = a;",
        "goal x = a\r\n  + b\r\n",
        "\n\n\ngoal x = a" + "\n" * 50 + "  + b",
    ],
)
def test_one_statement_over_lines(text: str) -> None:
    found = read(text)
    assert not found.diagnostics
    assert len(found.program.statements) == 1


def test_every_word_is_a_name() -> None:
    words = "task data model section optimize budget gate goal metric as use_ none trainable input"
    found = read("a {\n" + "\n".join(f"  {word} = 1" for word in words.split()) + "\n}")
    assert not found.diagnostics
    assert len(found.program.statements[0].block.statements) == len(words.split())  # type: ignore[union-attr]


def test_parsing_imports_nothing_heavy() -> None:
    code = "import sys; from skillc.syntax.parser import parse; from skillc.syntax.source import Source; "
    code += "assert not parse(Source('x', 'goal x = a')).diagnostics; print(*sys.modules)"
    loaded = set(
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    )
    heavy = {"dspy", "litellm", "numpy", "pydantic", "rich", "click", "socket", "asyncio", "skillc.syntax.mistakes"}
    assert loaded & heavy == set()


def test_many_threads_at_once() -> None:
    texts = [f"goal x{i} = a + {i}\ngoal y = ? {i}" for i in range(40)]
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(read, texts)) == [read(text) for text in texts]


def test_a_line_goes_on_behind_comments_of_both_kinds() -> None:
    text = "goal x = a\n  # one\n  /// two\n\n  \f\n  + b\n"
    assert parse(Source("a.skill", text)).diagnostics == ()

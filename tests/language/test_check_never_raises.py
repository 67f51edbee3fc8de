"""Checking never raises on any text, and ends soon."""

from __future__ import annotations

import re
from fractions import Fraction
from pathlib import Path

import pytest
from checking import codes, metric, program, run
from hypothesis import given, settings
from hypothesis import strategies as st
from thorough import example_count

from skillc.gates.terms import CallTerm, Constant, Operation, Term, show_term, size_and_depth

PROGRAMS = [path.read_text("utf-8") for path in sorted((Path(__file__).parent / "programs").glob("*.skill"))]
PIECES = re.compile(r'"""(?:.|\n)*?"""|"[^"\n]*"|\w+|\s+|[^\w\s]')
CUT = [PIECES.findall(text) for text in PROGRAMS]
WORDS = sorted({piece for pieces in CUT for piece in pieces} | {"none", "0", "5%", "$1", "best", "x(x: metric)", "\n"})


@st.composite
def mutated(draw: st.DrawFn) -> str:
    """A program with a few pieces lost, doubled, or replaced by others."""
    pieces = list(draw(st.sampled_from(CUT)))
    for _ in range(draw(st.integers(1, 6))):
        at = draw(st.integers(0, len(pieces) - 1))
        pieces[at : at + draw(st.integers(0, 2))] = draw(st.lists(st.sampled_from(WORDS), max_size=2))
        if not pieces:
            pieces = ["\n"]
    return "".join(pieces)


def holds(text: str) -> None:
    checked = run(text)
    for found in checked.diagnostics:
        for label in (found.primary, *found.secondary):
            assert 0 <= label.span.start <= label.span.end <= len(label.source.text)
        assert not found.message.endswith(".")
        assert "\n" not in found.message + (found.hint or "")
    if not checked.failed:
        assert checked.library or sum(metric.goal for metric in checked.metrics) == 1
        assert all(metric.low is not None and metric.high is not None for metric in checked.metrics)


@given(mutated())
@settings(max_examples=example_count(400), deadline=None)
def test_checking_never_raises_on_programs_with_mistakes(text: str) -> None:
    holds(text)


@given(st.lists(st.sampled_from(WORDS), max_size=40).map(" ".join))
@settings(max_examples=example_count(300), deadline=None)
def test_checking_never_raises_on_words(text: str) -> None:
    holds("language 1\n" + text)


@given(st.text(max_size=200))
@settings(max_examples=example_count(200), deadline=None)
def test_checking_never_raises_on_any_text(text: str) -> None:
    holds(text)


EXPRESSIONS = st.recursive(
    st.sampled_from(
        [
            "correct",
            "team",
            "product",
            "urgent",
            "price",
            "candidate.correct",
            "best",
            "0",
            "5%",
            "3 tokens",
            '"billing"',
            "none",
        ]
    ),
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(["+", "-", "*", "/", "<", "<=", "==", "and", "or"]), inner).map(
            lambda parts: f"({parts[0]} {parts[1]} {parts[2]})"
        ),
        inner.map(lambda x: f"not {x}"),
        st.tuples(
            st.sampled_from(
                ["max", "clamp", "tokens", "regressed", "worst", "confidence", "exact_match", "gates.strict"]
            ),
            st.lists(inner, max_size=3),
            st.sampled_from(["", ", by = product", ", on = batch"]),
        ).map(lambda parts: f"{parts[0]}({', '.join(parts[1])}{parts[2]})"),
    ),
    max_leaves=12,
)


@given(EXPRESSIONS, EXPRESSIONS)
@settings(max_examples=example_count(500), deadline=None)
def test_checking_never_raises_on_expressions(first: str, second: str) -> None:
    holds(program(f"metric m = {first}\ngate g = {second}", use="use std.gates"))


def nested(opening: str, inner: str, closing: str, depth: int) -> str:
    return opening * depth + inner + closing * depth


@pytest.mark.parametrize(
    "more",
    [
        "metric twice(m: metric) = m + m\nmetric big = " + nested("twice(", "correct", ")", 60),
        "metric h0(m: metric) = m\n"
        + "\n".join(f"metric h{i}(m: metric) = h{i - 1}(m) + h{i - 1}(m) + h{i - 1}(m)" for i in range(1, 30))
        + "\nmetric big = h29(correct)",
        "metric m0 = exact_match(team)\n" + "\n".join(f"metric m{i} = m{i - 1} / 2" for i in range(1, 150)),
        "gate g = " + "not " * 99 + "candidate.correct > 50%",
        # What the result is made of is deeper than what was written.
        f"metric own(m: metric) = {nested('max(', 'm', ', 1)', 20)}\nmetric big = {nested('own(', 'correct', ')', 50)}",
        f"metric own(m: metric) = {nested('-', 'm', '', 50)}\nmetric big = {nested('own(', 'correct', ')', 20)}",
    ],
)
def test_no_program_keeps_the_checker_busy(more: str) -> None:
    assert set(codes(program(more))) <= {"SK320", "SK010"}


LONG = 2000
IN_A_ROW = {
    "metrics": ([f"metric m{i} = m{i + 1}" for i in range(LONG)], f"metric m{LONG} = exact_match(team)", set()),
    "deep metrics": (
        [f"metric m{i} = {nested('max(', f'm{i + 1}', ', 0.1)', 60)}" for i in range(100)],
        "metric m100 = exact_match(team)",
        set(),
    ),
    "metrics in a circle": ([f"metric m{i} = m{i + 1}" for i in range(LONG)], f"metric m{LONG} = m0", {"SK320"}),
    "functions": (
        [f"metric fn{i}(m: metric) = fn{i + 1}(m)" for i in range(LONG)],
        f"metric fn{LONG}(m: metric) = m",
        {"SK320"},
    ),
    "deep functions": (
        [f"metric fn{i}(m: metric) = {nested('max(', f'fn{i + 1}(m)', ', 0.1)', 60)}" for i in range(30)],
        "metric fn30(m: metric) = m",
        {"SK320"},
    ),
    "functions in a circle": (
        [f"gate fn{i}(m: metric) = fn{i + 1}(m)" for i in range(LONG)],
        f"gate fn{LONG}(m: metric) = fn0(m)",
        {"SK320"},
    ),
    "models": ([f"model m{i} = m{i + 1}" for i in range(LONG)], f"model m{LONG} = target", {"SK603"}),
    "sections": (
        [f"frozen section s{i} = s{i + 1}" for i in range(LONG)],
        f'frozen section s{LONG} = "a"',
        {"SK603"},
    ),
}


@pytest.mark.parametrize("forwards", [True, False])
@pytest.mark.parametrize("name", IN_A_ROW)
@pytest.mark.quick_cases(8)
def test_no_row_of_declarations_is_too_long(name: str, forwards: bool) -> None:
    found, last, wanted = IN_A_ROW[name]
    lines = [*found, last] if forwards else [last, *reversed(found)]
    assert set(codes(program("\n".join(lines)))) == wanted


FLAT = {
    "sum": f"({' + '.join(['ok'] * LONG)}) / {LONG}",
    "difference": f"1 - {' - '.join([f'ok / {LONG}'] * LONG)}",
    "product": " * ".join(["ok"] * LONG),
    "quotient": "ok" + " / 2" * LONG,
    "signs": f"({' + '.join(['-ok'] * LONG)}) / {LONG}",
    "or": " or ".join(["ok > 50%"] * LONG),
    "and": " and ".join(["ok > 50%"] * LONG),
}


@pytest.mark.parametrize("name", FLAT)
def test_a_chain_may_be_long(name: str) -> None:
    more = f"metric ok = exact_match(team)\nmetric whole = {FLAT[name]}"
    checked = run(program(f"{more}\ngate g = candidate.whole > incumbent.whole"))
    assert not checked.failed
    (whole,) = (metric for metric in checked.metrics if metric.name == "whole")
    assert size_and_depth(whole.term)[1] < 30
    assert show_term(whole.term).count("ok") >= 1


def test_a_gate_may_be_a_long_sum_of_means() -> None:
    means = " + ".join(["candidate.correct"] * LONG)
    assert codes(program(f"gate g = {means} - {' - '.join(['incumbent.correct'] * LONG)} > 0")) == []


@pytest.mark.parametrize("terms", [33, 34, 65, 1000])
def test_a_long_chain_keeps_its_value(terms: int) -> None:
    operators = "+-*/-+/*"
    row = [f"{i % 7 + 1}" for i in range(terms)]
    text = row[0] + "".join(f" {operators[i % 8]} {each}" for i, each in enumerate(row[1:]))
    checked = run(program(f"metric whole = exact_match(team) * 0 + {text}"))
    wanted = eval(re.sub(r"\d+", r"Fraction(\g<0>)", text), {"Fraction": Fraction})
    assert metric(checked, "whole").low == metric(checked, "whole").high == wanted
    assert _value(metric(checked, "whole").term) == wanted


def _value(term: Term) -> Fraction:
    if isinstance(term, Constant):
        return term.value
    assert isinstance(term, Operation | CallTerm)
    if isinstance(term, CallTerm):
        return Fraction(0)
    left, right = map(_value, term.operands)
    return (
        {"+": left + right, "-": left - right, "*": left * right}[term.operator]
        if term.operator != "/"
        else left / right
    )


def test_a_chain_ends_somewhere() -> None:
    found = run(program(f"metric a = {'1 + ' * 10_001}1")).diagnostics
    assert "more than 10,000 operators in a row" in [each.message for each in found if each.code == "SK010"]


def test_a_circle_is_shown_in_a_few_names() -> None:
    lines = [f"metric m{i} = m{(i + 1) % 60}" for i in range(60)]
    messages = [d.message for d in run(program("\n".join(lines))).diagnostics if d.code == "SK212"]
    assert len(messages) == 1
    assert messages[0].endswith("circular metrics: `m0` → `m1` → `m2` → `m3` → `m4` → `m5` → `m6` → `m7` → ... → `m0`")


def test_suggestions_come_to_an_end() -> None:
    lines = [f"metric correct_{i} = exact_match(team)\nmetric wrong_{i} = corect_{i}" for i in range(1500)]
    found = [d for d in run(program("\n".join(lines))).diagnostics if d.code == "SK204"]
    assert len(found) == 1500
    assert found[0].hint == "did you mean `correct_0`?"
    assert found[-1].hint is None

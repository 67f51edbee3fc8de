"""Checking never raises on any text, and ends soon."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from checking import codes, program, run
from hypothesis import given, settings
from hypothesis import strategies as st

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
@settings(max_examples=400, deadline=None)
def test_checking_never_raises_on_programs_with_mistakes(text: str) -> None:
    holds(text)


@given(st.lists(st.sampled_from(WORDS), max_size=40).map(" ".join))
@settings(max_examples=300, deadline=None)
def test_checking_never_raises_on_words(text: str) -> None:
    holds("language 1\n" + text)


@given(st.text(max_size=200))
@settings(max_examples=200, deadline=None)
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
@settings(max_examples=500, deadline=None)
def test_checking_never_raises_on_expressions(first: str, second: str) -> None:
    holds(program(f"metric m = {first}\ngate g = {second}", use="use std.gates"))


@pytest.mark.parametrize(
    "more",
    [
        "metric twice(m: metric) = m + m\nmetric big = " + "twice(" * 60 + "correct" + ")" * 60,
        "metric h0(m: metric) = m\n"
        + "\n".join(f"metric h{i}(m: metric) = h{i - 1}(m) + h{i - 1}(m) + h{i - 1}(m)" for i in range(1, 30))
        + "\nmetric big = h29(correct)",
        "metric m0 = exact_match(team)\n" + "\n".join(f"metric m{i} = m{i - 1} / 2" for i in range(1, 150)),
        "gate g = " + "not " * 99 + "candidate.correct > 50%",
    ],
)
def test_no_program_keeps_the_checker_busy(more: str) -> None:
    assert set(codes(program(more))) <= {"SK320", "SK010"}

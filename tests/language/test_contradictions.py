"""What is said of gates holds for all data: no finding is refuted by examples that were drawn at random."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import pytest
from checking import program, run
from hypothesis import given, settings
from hypothesis import strategies as st
from thorough import example_count

from skillc.gates.terms import CallTerm, Constant, FieldTerm, MeanTerm, MetricTerm, Operation, Term
from skillc.language.checked import Checked

_FOUND = ("SK510", "SK511", "SK512", "SK513")
_METRICS = "metric close = f1(reply)\nmetric both = 0.5 * correct + 0.5 * close\n"


def found(gates: str) -> list[str]:
    text = program(_METRICS + gates).replace("gate better = candidate.correct > initial.correct\n", "")
    return [each.code for each in run(text).diagnostics if each.code in _FOUND]


def alone(condition: str) -> list[str]:
    return found(f"gate g = {condition}\ngate apart = cost(candidate) <= $1")


# ---- one gate, written out ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "condition",
    [
        "candidate.correct > 90% and candidate.correct < 50%",
        "candidate.correct > 50% and not candidate.correct > 50%",
        "improved(correct) > 0 and improved(correct) <= 0",
        "worst(candidate.correct, by = product) > candidate.correct",
        "regressed(correct, by = product) < regressed(correct)",
        "improved(correct) - regressed(correct) > candidate.correct - incumbent.correct",
        "improved(correct) + regressed(correct) > 1",
        "candidate.both < 20% and candidate.close > 50% and candidate.correct > 10%",
        "cost(candidate) > 2 * cost(incumbent) and cost(candidate) <= 1.1 * cost(incumbent)",
        "max(candidate.correct, incumbent.correct) < min(candidate.correct, incumbent.correct)",
        "change(candidate) <= 0",
        "candidate.correct == 50% and candidate.correct != 50%",
        "candidate.correct * incumbent.correct > 50% and incumbent.correct * candidate.correct < 40%",
    ],
)
def test_never(condition: str) -> None:
    assert alone(condition) == ["SK510"]


@pytest.mark.parametrize(
    "condition",
    [
        "candidate.correct > 50% or not candidate.correct > 50%",
        "candidate.correct + 1% > candidate.correct",
        "not (candidate.correct > 90% and candidate.correct < 50%)",
        "max(candidate.correct, incumbent.correct) >= candidate.correct",
        "worst(candidate.correct, by = product) <= candidate.correct",
    ],
)
def test_always(condition: str) -> None:
    assert alone(condition) == ["SK511"]


@pytest.mark.parametrize(
    "condition",
    [
        "candidate.correct >= 50% and candidate.correct <= 50%",
        "candidate.correct > 50% or candidate.correct < 10%",
        "candidate.correct > incumbent.correct and candidate.close < incumbent.close",
        "improved(correct) > 0 and regressed(correct) > 0",
        "improved(correct, on = batch) <= 0 and candidate.correct > incumbent.correct",
        "candidate.both < 50% and candidate.close > 50%",
        "change(candidate) <= 1%",
        "tokens(candidate) < tokens(incumbent) or candidate.correct >= incumbent.correct + 2%",
        "candidate.correct * incumbent.correct > 90%",
        "confidence(candidate.correct > incumbent.correct) >= 95%",
        "e_value(candidate.correct > incumbent.correct) >= 20",
        "confidence(candidate.correct > incumbent.correct) > 95% and candidate.correct <= incumbent.correct",
    ],
)
def test_open(condition: str) -> None:
    assert alone(condition) == []


def test_alternatives_without_number_are_given_up_quietly() -> None:
    each = " and ".join(f"(candidate.correct > {i}% or candidate.close > {i}%)" for i in range(1, 20))
    assert alone(each) == []
    terms = " + ".join(f"max(candidate.correct, {i}%, incumbent.close)" for i in range(1, 9))
    assert alone(f"{terms} > 3") == []


@pytest.mark.parametrize("count", [3, 5, 7, 12, 40])
def test_many_gates_with_alternatives_end_soon(count: int) -> None:
    parts = (
        "candidate.correct > {}%",
        "regressed(correct, by = product) < 9%",
        "worst(candidate.both, by = product) > {}%",
    )
    each = " or ".join(parts)
    more = " and ".join(f"({each.format(i + 1, i + 2)})" for i in range(count))
    assert set(found("\n".join(f"gate g{i} = {each.format(i + 1, i + 2)}" for i in range(count)))) <= set(_FOUND)
    assert found(f"gate g = {more}\ngate h = candidate.correct > incumbent.correct") == []


def test_gates_that_exclude_each_other_are_named_with_their_places() -> None:
    gates = (
        "gate a = candidate.correct >= 80%\ngate b = tokens(candidate) < 900 tokens\ngate c = candidate.correct < 70%"
    )
    text = program(gates)
    (one,) = [each for each in run(text).diagnostics if each.code == "SK512"]
    assert one.primary.source.slice(one.primary.span) == "gate c"
    assert [each.source.slice(each.span) for each in one.secondary] == ["gate a"]
    assert one.hint == "`candidate.correct >= 80%` and `candidate.correct < 70%` exclude each other"


def test_gates_for_slow_stand_by_themselves() -> None:
    assert found("gate a = candidate.correct > 80%\ngate b for slow = candidate.correct < 70%") == []
    assert found("gate a = candidate.correct > 80%\ngate b = candidate.correct < 70%") == ["SK512"]


def test_a_gate_within_a_function_is_judged_where_it_is_called() -> None:
    more = "gate most(m: metric, more: share) = candidate.m > incumbent.m + more\n"
    assert found(more + "gate a = most(correct, 2%)\ngate b = most(correct, 1%)") == ["SK513"]


# ---- drawn data -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Run:
    """Scores of some examples under three skills, by metric, and a group for each example."""

    scores: dict[tuple[str, str], list[Fraction]]
    groups: list[int]

    def mean(self, state: str, metric: str) -> Fraction:
        return _mean(self.scores[state, metric])

    def value(self, term: Term) -> Fraction:
        if isinstance(term, Constant):
            return term.value
        if isinstance(term, MeanTerm):
            return self.mean(term.state, term.metric)
        if isinstance(term, CallTerm):
            return self._call(term)
        assert isinstance(term, Operation)
        parts = [self.value(each) for each in term.operands]
        return {"+": lambda: parts[0] + parts[1], "-": lambda: parts[0] - parts[1], "negate": lambda: -parts[0]}[
            term.operator
        ]()

    def _call(self, term: CallTerm) -> Fraction:
        if term.function in ("min", "max"):
            return (min if term.function == "min" else max)(self.value(each) for each in term.arguments)
        by = isinstance(term.option("by"), FieldTerm)
        if term.function == "worst":
            mean = term.arguments[0]
            assert isinstance(mean, MeanTerm)
            return min(self._of_groups(self.scores[mean.state, mean.metric]))
        metric = term.arguments[0]
        assert isinstance(metric, MetricTerm)
        after, before = self.scores["candidate", metric.name], self.scores["incumbent", metric.name]
        sign = 1 if term.function == "improved" else -1
        moved = [max(Fraction(0), sign * (a - b)) for a, b in zip(after, before, strict=True)]
        if not by:
            return _mean(moved)
        return (min if term.function == "improved" else max)(self._of_groups(moved))

    def _of_groups(self, values: list[Fraction]) -> list[Fraction]:
        return [
            _mean([v for v, g in zip(values, self.groups, strict=True) if g == group]) for group in set(self.groups)
        ]

    def holds(self, term: Term) -> bool:
        assert isinstance(term, Operation)
        if term.operator in ("and", "or"):
            return (all if term.operator == "and" else any)(self.holds(each) for each in term.operands)
        if term.operator == "not":
            return not self.holds(term.operands[0])
        a, b = (self.value(each) for each in term.operands)
        compared: dict[str, Callable[[], bool]] = {
            "<": lambda: a < b,
            "<=": lambda: a <= b,
            ">": lambda: a > b,
            ">=": lambda: a >= b,
            "==": lambda: a == b,
            "!=": lambda: a != b,
        }
        return compared[term.operator]()


def _mean(values: list[Fraction]) -> Fraction:
    return sum(values, Fraction(0)) / len(values)


@st.composite
def runs(draw: st.DrawFn) -> Run:
    size = draw(st.integers(1, 4))
    scores = {}
    for state in ("candidate", "incumbent", "initial"):
        correct = [Fraction(draw(st.integers(0, 1))) for _ in range(size)]
        close = [Fraction(draw(st.integers(0, 4)), 4) for _ in range(size)]
        scores[state, "correct"], scores[state, "close"] = correct, close
        scores[state, "both"] = [(a + b) / 2 for a, b in zip(correct, close, strict=True)]
    return Run(scores, [draw(st.integers(0, 1)) for _ in range(size)])


_MEANS = [
    f"{state}.{metric}" for state in ("candidate", "incumbent", "initial") for metric in ("correct", "close", "both")
]
_QUANTITIES = st.sampled_from(
    [
        *_MEANS[:6],
        *_MEANS,
        *(
            f"{move}({metric}{by})"
            for move in ("improved", "regressed")
            for metric in ("correct", "both")
            for by in ("", ", by = product")
        ),
        "worst(candidate.both, by = product)",
        "max(candidate.correct, incumbent.close)",
        "min(candidate.both, 60%)",
    ]
)
_SUMS = st.one_of(
    _QUANTITIES,
    st.builds("{} + {}%".format, _QUANTITIES, st.integers(0, 50)),
    st.builds("({} - {})".format, _QUANTITIES, _QUANTITIES),
)
_COMPARED = st.builds(
    "{} {} {}".format,
    _SUMS,
    st.sampled_from(["<", "<=", ">", ">=", "==", "!="]),
    st.one_of(_SUMS, st.integers(0, 100).map("{}%".format)),
)
_CONDITIONS = st.recursive(
    _COMPARED,
    lambda inner: st.one_of(
        st.builds("({} and {})".format, inner, inner),
        st.builds("({} or {})".format, inner, inner),
        st.builds("not ({})".format, inner),
    ),
    max_leaves=3,
)


def _checked(conditions: list[str]) -> Checked:
    gates = "\n".join(f"gate g{i} = {each}" for i, each in enumerate(conditions))
    text = program(_METRICS + gates).replace("gate better = candidate.correct > initial.correct\n", "")
    return run(text)


@given(st.lists(_CONDITIONS, min_size=1, max_size=3), st.lists(runs(), min_size=1, max_size=12))
def test_no_finding_is_refuted_by_data(conditions: list[str], drawn: list[Run]) -> None:
    checked = _checked(conditions)
    if checked.failed:
        return
    terms = {gate.name: gate.term for gate in checked.gates}
    for each in checked.diagnostics:
        if each.code not in _FOUND:
            continue
        named = [label.source.slice(label.span).removeprefix("gate ") for label in (*each.secondary, each.primary)]
        if " in the " in each.message:
            continue
        for data in drawn:
            truths = [data.holds(terms[name]) for name in named]
            if each.code == "SK510":
                assert truths == [False], each
            elif each.code == "SK511":
                assert truths == [True], each
            elif each.code == "SK512":
                assert not all(truths), each
            elif all(truths[:-1]):
                assert truths[-1], each


@given(st.lists(_CONDITIONS, min_size=1, max_size=3))
@settings(max_examples=example_count(40))
def test_gates_are_judged_alike_in_any_order(conditions: list[str]) -> None:
    one, other = _checked(conditions), _checked(conditions[::-1])
    if one.failed or other.failed:
        return
    for code in ("SK510", "SK511", "SK512"):
        assert any(d.code == code for d in one.diagnostics) == any(d.code == code for d in other.diagnostics)


def test_gates_in_their_thousands_are_checked_and_the_end_of_the_reasoning_is_told() -> None:
    # All of them against all others took more than a minute.
    gates = "\n".join(f"gate g{i} = candidate.correct >= incumbent.correct - {i + 1} / 10000" for i in range(2000))
    found = [d for d in run(program(gates)).diagnostics if d.code == "SK518"]
    assert [d.message for d in found] == ["only the first 64 of 2,001 gates were compared with each other"]

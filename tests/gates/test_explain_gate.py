from fractions import Fraction
from textwrap import dedent

import pytest

from skillc.data.example import Example
from skillc.language.terms import CallTerm, Constant, FieldTerm, MeanTerm, MetricTerm, Operation, StateTerm
from skillc.metrics.cells import MICRO, Scored
from skillc.optimize.evidence import Evidence, Range, SplitEvidence, TextEvidence
from skillc.optimize.explain_gate import draw

CANDIDATE, INCUMBENT = MeanTerm("candidate", "m"), MeanTerm("incumbent", "m")
BETTER = Operation(">", (CANDIDATE, INCUMBENT))


def number(value, unit=""):
    return Constant(Fraction(value), unit)


def call(function, *arguments, **options):
    return CallTerm(function, arguments, tuple(options.items()))


def evidence(known=80):
    """80 examples, half of each product; the incumbent is right on four of five, the candidate on two of three."""

    def lookup(state, example, sample):
        i = int(example.id)
        if state == "candidate":
            return {"m": Scored(MICRO * (i % 3 > 0))} if i < known else None
        return {"m": Scored(MICRO * (i % 5 > 0))}

    examples = tuple(Example(str(i), {}, {}, {"f": "hub" if i < 40 else "cam"}, str(i)) for i in range(80))
    split = SplitEvidence(examples, 1, lookup, {"m": Range(0, MICRO)})
    return Evidence(split, split, TextEvidence({"candidate": 2013, "incumbent": 900}, Fraction(31, 100)), seed=7)


@pytest.mark.parametrize(
    ("term", "known", "drawn"),
    [
        (
            Operation(">", (CANDIDATE, Operation("+", (INCUMBENT, number("2/100"))))),
            80,
            """
            candidate.m > incumbent.m + 2%
            |             |
            0.6625        0.8
            """,
        ),
        (
            BETTER,
            63,
            """
            candidate.m > incumbent.m
            |             |
            |             0.8
            0.525 to 0.7375 (63 of 80)
            """,
        ),
        (
            Operation("<=", (call("regressed", MetricTerm("m"), by=FieldTerm("f")), number("1/10"))),
            80,
            """
            regressed(m, by = f) <= 10%
            |
            27.5% in `hub`
            """,
        ),
        (
            Operation(
                "and", (Operation("<=", (call("tokens", StateTerm("candidate")), number(2000, "tokens"))), BETTER)
            ),
            80,
            """
            tokens(candidate) <= 2000 tokens
            |
            2,013 tokens

            candidate.m > incumbent.m
            |             |
            0.6625        0.8
            """,
        ),
        (
            Operation("and", (Operation("<=", (call("change", StateTerm("candidate")), number("1/2"))), BETTER)),
            80,
            """
            candidate.m > incumbent.m
            |             |
            0.6625        0.8
            """,
        ),
        (
            Operation("<=", (call("cost", StateTerm("candidate")), call("cost", StateTerm("incumbent")))),
            80,
            """
            cost(candidate) <= cost(incumbent)
            |                  |
            at least $0        at least $0
            """,
        ),
        (
            Operation("not", (Operation("<", (CANDIDATE, INCUMBENT)),)),
            80,
            """
            not candidate.m < incumbent.m
                |             |
                0.6625        0.8
            """,
        ),
    ],
)
def test_a_failed_gate_is_drawn_with_its_values(term, known, drawn):
    assert draw(term, evidence(known)) == dedent(drawn).strip()


def test_equal_operands_are_drawn_each_in_its_place():
    term = Operation(">", (call("min", CANDIDATE, CANDIDATE), call("worst", CANDIDATE, by=FieldTerm("f"))))
    first, bars, *_ = draw(term, evidence()).splitlines()
    assert first == "min(candidate.m, candidate.m) > worst(candidate.m, by = f)"
    assert [i for i, c in enumerate(bars) if c == "|"] == [4, 17, 32]

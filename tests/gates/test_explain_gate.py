from fractions import Fraction
from textwrap import dedent

import pytest

from skillc.gates.draw import brief, draw, gate_state
from skillc.gates.evidence import Evidence, MetricRange, SplitEvidence, TextEvidence
from skillc.gates.intervals import Truth
from skillc.gates.terms import CallTerm, Constant, FieldTerm, MeanTerm, MetricTerm, Operation, StateTerm
from skillc.outcomes import MICRO, Example, Scored

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
    split = SplitEvidence(examples, 1, lookup, {"m": MetricRange(0, MICRO)})
    return Evidence(
        split, split, TextEvidence({"candidate": 2013, "incumbent": 900}, Fraction(31, 100), base=1100), seed=7
    )


@pytest.mark.parametrize(
    ("term", "known", "drawn"),
    [
        (
            Operation(">", (CANDIDATE, Operation("+", (INCUMBENT, number("2/100"))))),
            80,
            """
            candidate.m > incumbent.m + 2%
            |             |
            66.25 %       80 %
            """,
        ),
        (
            Operation(">=", (call("e_value", BETTER), number(20))),
            80,
            """
            e_value(candidate.m > incumbent.m) >= 20
            |
            0.0314
            """,
        ),
        (
            BETTER,
            63,
            """
            candidate.m > incumbent.m
            |             |
            |             80 %
            52.5 % to 73.75 % (63 of 80)
            """,
        ),
        (
            Operation("<=", (call("regressed", MetricTerm("m"), by=FieldTerm("f")), number("1/10"))),
            80,
            """
            regressed(m, by = f) <= 10%
            |
            27.5 % in `hub`
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
            66.25 %       80 %
            """,
        ),
        (
            Operation("and", (Operation("<=", (call("change", StateTerm("candidate")), number("1/2"))), BETTER)),
            80,
            """
            candidate.m > incumbent.m
            |             |
            66.25 %       80 %
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
            Operation("<=", (call("change", StateTerm("candidate")), number("3/10"))),
            80,
            """
            change(candidate) <= 30%
            |
            31 % of 1,100 tokens
            """,
        ),
        (
            Operation("not", (Operation("<", (CANDIDATE, INCUMBENT)),)),
            80,
            """
            not candidate.m < incumbent.m
                |             |
                66.25 %       80 %
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


def scored(candidate, incumbent, known=None, unit="", low=0, high=1):
    """One example a score, in order; of the candidate the first `known`."""

    def lookup(state, example, sample):
        i = int(example.id)
        if state == "candidate":
            return {"m": Scored(candidate[i])} if known is None or i < known else None
        return {"m": Scored(incumbent[i])}

    examples = tuple(Example(str(i), {}, {}, {}, str(i)) for i in range(len(incumbent)))
    split = SplitEvidence(examples, 1, lookup, {"m": MetricRange(low * MICRO, high * MICRO, unit)})
    return Evidence(split, split, TextEvidence({"candidate": 2013}, Fraction(31, 100), base=1100))


def right(count, of):
    return [MICRO * (i < count) for i in range(of)]


@pytest.mark.parametrize(
    ("term", "evidence", "said"),
    [
        (BETTER, scored(right(79, 118), right(79, 118)), "66.95 %, needs more than 66.95 %"),
        # 78 right, one not measured yet: at best as good.
        (BETTER, scored(right(78, 118), right(79, 118)[::-1], 117), "at best 66.95 %, needs more than 66.95 %"),
        (Operation("<", (INCUMBENT, CANDIDATE)), scored(right(1, 2), right(1, 2)), "50 %, needs more than 50 %"),
        (Operation("not", (Operation("<=", (CANDIDATE, INCUMBENT)),)), scored(right(1, 2), right(1, 2)),
         "50 %, needs more than 50 %"),
        # Two values that round to the same two places are told apart.
        (Operation(">=", (CANDIDATE, INCUMBENT)), scored([333_333, 0], [333_334, 0]),
         "16.6666 %, needs at least 16.6667 %"),
        (Operation(">", (CANDIDATE, Operation("+", (INCUMBENT, number("2/100"))))), scored(right(1, 4), right(1, 4)),
         "25 %, needs more than 27 % (`incumbent.m + 2%`)"),
        (Operation(">", (Operation("-", (CANDIDATE, INCUMBENT)), number("2/100"))), scored(right(2, 4), right(2, 4)),
         "0 points, needs more than 2 points"),
        (Operation("<=", (CANDIDATE, number(40, "tokens"))), scored([45 * MICRO] * 2, [0] * 2, unit="tokens", high=90),
         "45 tokens, needs at most 40 tokens"),
        (Operation("<=", (CANDIDATE, number("1/100", "$"))), scored([12_000] * 2, [0] * 2, unit="$"),
         "$0.012, needs at most $0.01"),
        (Operation("<=", (CANDIDATE, number("1/2", "s"))), scored([800_000] * 2, [0] * 2, unit="s"),
         "0.8 s, needs at most 0.5 s"),
        (Operation(">=", (CANDIDATE, number(5))), scored([4_500_000] * 2, [0] * 2, high=10), "4.5, needs at least 5"),
        (Operation("<=", (call("change", StateTerm("candidate")), number("3/10"))), scored([0], [0]),
         "31 % of 1,100 tokens, needs at most 30 %"),
        (Operation("<=", (call("tokens", StateTerm("candidate")), number(2000, "tokens"))), scored([0], [0]),
         "2,013 tokens, needs at most 2,000 tokens"),
        (Operation("<=", (call("regressed", MetricTerm("m")), number("1/10"))), scored([0] * 4, right(3, 4), 2),
         "at best 50 %, needs at most 10 %"),
        (Operation("or", (BETTER, Operation(">=", (CANDIDATE, number("9/10"))))), scored(right(1, 2), right(1, 2)),
         "`candidate.m` 50 %, needs more than 50 %; `candidate.m` 50 %, needs at least 90 %"),
        # Open: what is known so far.
        (BETTER, scored(right(1, 4), right(2, 4), 2), "25 % to 75 %, needs more than 50 %"),
    ],
)  # fmt: skip
def test_a_gate_says_what_it_has_and_what_it_needs(term, evidence, said):
    assert brief(term, evidence) == said


def test_a_worst_group_is_named():
    term = Operation("<=", (call("regressed", MetricTerm("m"), by=FieldTerm("f")), number("1/10")))
    assert brief(term, evidence()) == "27.5 % in `hub`, needs at most 10 %"


def test_the_state_of_a_gate_has_the_intervals_of_both_sides_and_narrows():
    widths = []
    for known in (0, 40, 80):
        state = gate_state("better", Truth.UNKNOWN, BETTER, evidence(known))
        (each,) = state.comparisons
        assert (state.name, state.truth, each.operator) == ("better", "unknown", ">")
        assert each.left.text == "candidate.m"
        assert (each.right.low, each.right.high, each.right.shown) == (0.8, 0.8, "80 %")
        widths.append(each.left.high - each.left.low)
        assert ("of 80)" in each.left.shown) == (known < 80)
        assert each.truth == ("false" if known == 80 else "unknown")
    assert widths == sorted(widths, reverse=True)
    assert widths[-1] == 0


def test_the_state_of_a_denied_comparison_shows_what_has_to_hold():
    state = gate_state("not better", Truth.UNKNOWN, Operation("not", (BETTER,)), evidence())
    (each,) = state.comparisons
    assert (each.operator, each.truth) == ("<=", "true")
    tokens = call("tokens", StateTerm("candidate"))
    small = Operation("<=", (tokens, number(2000, "tokens")))
    both = gate_state("both", Truth.FALSE, Operation("and", (Operation("not", (BETTER,)), small)), evidence())
    assert [(each.left.shown, each.truth) for each in both.comparisons] == [("2,013 tokens", "false")]

from fractions import Fraction

import pytest
from metric_plans import TEXT, example, metric, on_team, plan, python

from skillc.gates.terms import CallTerm, Constant, FieldTerm, MetricTerm, Operation, TextConstant
from skillc.metrics.meter import Meter, MetricError, unmeasured
from skillc.outcomes import Scored, Unmeasured
from skillc.plan.schema import TypePlan
from skillc.trajectories.trajectory import Trajectory


def number(value, unit=""):
    return Constant(Fraction(value), unit)


CORRECT = metric("correct", on_team("exact_match"))
BRIEF = metric(
    "brief",
    CallTerm(
        "clamp",
        (
            Operation(
                "-",
                (
                    number(1),
                    Operation("/", (CallTerm("tokens", (FieldTerm("team"),)), number(20, "tokens"))),
                ),
            ),
            number(0),
            number(1),
        ),
    ),
)
SCORE = metric(
    "score",
    Operation(
        "+",
        (
            Operation("*", (number("0.9"), MetricTerm("correct"))),
            Operation("*", (number("0.1"), MetricTerm("brief"))),
        ),
    ),
)


def cells(metrics, prediction, root, *, item=None, **options):
    measured = Meter(plan(*metrics, **options), root).measure(item or example(), Trajectory(answer=prediction))
    return {name: cell.value for name, cell in measured.cells.items()}


def of(term, prediction, root, *, item=None, low=-100, high=100):
    return cells([metric("m", term, low=low, high=high)], prediction, root, item=item)["m"]


def test_metrics_read_each_other_and_scores_are_exact_millionths(tmp_path):
    found = cells([CORRECT, BRIEF, SCORE], {"team": "billing"}, tmp_path)
    assert found == {"correct": 1_000_000, "brief": 950_000, "score": 995_000}


@pytest.mark.parametrize(("share", "micro"), [("1/3", 333_333), ("1/2000000", 0), ("3/2000000", 2), ("-1/2000000", 0)])
def test_a_score_is_rounded_once_and_halves_go_to_even(share, micro, tmp_path):
    assert of(number(share), {"team": "x"}, tmp_path) == micro


@pytest.mark.parametrize(
    ("operator", "operands", "value"),
    [
        ("+", (2, 3), 5),
        ("-", (2, 3), -1),
        ("*", (2, 3), 6),
        ("/", (3, 2), "1.5"),
        ("negate", (2,), -2),
        ("<", (2, 3), 1),
        ("<=", (3, 3), 1),
        (">", (3, 3), 0),
        (">=", (3, 3), 1),
        ("==", (3, 3), 1),
        ("!=", (3, 3), 0),
        ("and", (1, 1, 0), 0),
        ("or", (0, 0, 1), 1),
        ("not", (0,), 1),
    ],
)
def test_operations(operator, operands, value, tmp_path):
    term = Operation(operator, tuple(number(o) for o in operands))
    assert of(term, {"team": "x"}, tmp_path) == Fraction(value) * 1_000_000


@pytest.mark.parametrize(("name", "value"), [("min", 1), ("max", 3), ("clamp", 2)])
def test_min_max_and_clamp(name, value, tmp_path):
    parts = (number(3), number(1), number(2))
    assert of(CallTerm(name, parts), {"team": "x"}, tmp_path) == value * 1_000_000


def test_fields_are_compared_with_labels_and_read_as_numbers(tmp_path):
    right = Operation("==", (FieldTerm("team"), TextConstant("billing")))
    assert of(right, {"team": " billing"}, tmp_path) == 1_000_000
    assert of(right, {"team": "shipping"}, tmp_path) == 0
    assert of(FieldTerm("weight"), {"team": "x"}, tmp_path, item=example(weight=2.5)) == 2_500_000
    equal = Operation("==", (FieldTerm("weight"), number("0.1")))
    assert of(equal, {"team": "x"}, tmp_path, item=example(weight=0.1)) == 1_000_000


def test_an_output_stands_for_the_answer_and_never_for_the_example(tmp_path):
    tokens = CallTerm("tokens", (FieldTerm("team"),))
    assert of(tokens, {}, tmp_path, item=example(team="three words here")) == 0
    assert of(tokens, {"team": ["one two", "three"]}, tmp_path) == 3_000_000


def test_an_answer_that_cannot_be_read_is_the_worst_of_each_metric(tmp_path):
    meter = Meter(plan(metric("m", number(0), low=-2, high=1), CORRECT), tmp_path)
    measured = meter.measure(example(), Trajectory(problem="no field `team` in the reply"))
    assert measured.cells == {"m": Scored(-2_000_000), "correct": Scored(0)}
    assert measured.feedback == "no field `team` in the reply"


def test_unmeasured_is_no_score():
    assert unmeasured(plan(CORRECT), "transport") == {"correct": Unmeasured("transport")}


def test_a_score_outside_the_range_stops_the_run_and_names_the_example(tmp_path):
    with pytest.raises(MetricError, match="`m` on example `t001`: 5 is outside the range 0 to 1") as caught:
        of(number(5), {"team": "x"}, tmp_path, low=0, high=1)
    assert "clamp" in caught.value.hint


def test_what_fails_in_a_metric_is_a_message(tmp_path):
    with pytest.raises(MetricError, match="`m` on example `t001`: ZeroDivisionError"):
        of(Operation("/", (number(1), FieldTerm("weight"))), {"team": "x"}, tmp_path, item=example(weight=0))
    with pytest.raises(MetricError, match="`m` on example `t001`: no right answer for `team`"):
        of(on_team("exact_match"), {"team": "x"}, tmp_path, item=example(gold=None))
    with pytest.raises(MetricError, match="`abc` is not a finite number"):
        of(FieldTerm("weight"), {"team": "x"}, tmp_path, item=example(weight="abc"))


def test_feedback_is_said_once_and_hides_what_the_program_withholds(tmp_path):
    metrics = (CORRECT, metric("again", on_team("exact_match")))
    told = Meter(plan(*metrics), tmp_path).measure(example(), Trajectory(answer={"team": "shipping"}))
    assert told.feedback == "expected `billing`, got `shipping`"
    hidden = Meter(plan(*metrics, sees=("feedback",)), tmp_path).measure(
        example(), Trajectory(answer={"team": "shipping"})
    )
    assert hidden.feedback == "`shipping` is wrong"


def test_options_reach_the_primitive(tmp_path):
    near = metric("m", on_team("numeric", within=number(3)))
    assert cells([near], {"team": "103"}, tmp_path, item=example(gold="100"), output=TEXT) == {"m": 1_000_000}
    below = metric("m", on_team("numeric", within=Operation("negate", (number(3),))))
    assert cells([below], {"team": "103"}, tmp_path, item=example(gold="100"), output=TEXT) == {"m": 0}


def test_a_list_output_is_compared_as_a_list(tmp_path):
    listed = TypePlan(kind="list", item=TEXT)
    item = example(gold=["a", "b"])
    assert cells([CORRECT], {"team": ["a", "b"]}, tmp_path, item=item, output=listed) == {"correct": 1_000_000}


def test_a_primitive_runs_once_however_many_metrics_use_it(tmp_path):
    (tmp_path / "counting.py").write_text(
        "calls = []\ndef m(e, p):\n    calls.append(1)\n    return len(calls) / 10, 'said'\n"
    )
    term = python("counting:m")
    metrics = [metric("a", term), metric("b", Operation("+", (term, number("0.5"))))]
    measured = Meter(plan(*metrics), tmp_path).measure(example(), Trajectory(answer={"team": "x"}))
    assert {name: cell.value for name, cell in measured.cells.items()} == {"a": 100_000, "b": 600_000}
    assert measured.feedback == "said"

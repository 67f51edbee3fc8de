"""How far an answer lies from the right one, what a text holds, and whether it is JSON."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from metric_plans import example, field, metric, on_team, plan, python

from skillc.errors import SkillcError
from skillc.gates.terms import CallTerm, Constant, FieldTerm, ListTerm, TextConstant
from skillc.metrics.meter import Meter, MetricError
from skillc.metrics.primitives import PRIMITIVES, Subject, covers, lines, mentions, phrases_of, words
from skillc.outcomes import MICRO
from skillc.plan.schema import TypePlan
from skillc.trajectories.trajectory import Trajectory

LABELS = ("low", "medium", "high", "highest")
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)


def measured(name, value, gold, *, kind="text", labels=(), **options):
    return PRIMITIVES[name](Subject("team", TypePlan(kind=kind, labels=labels), value, gold, options))


def score(*args, **options):
    return measured(*args, **options).score


# ---- numbers --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "gold", "scale", "expected"),
    [
        ("100", "100", None, 0),
        ("$1,100", "1000", None, Fraction(1, 10)),
        (90, 100, None, Fraction(1, 10)),
        ("-100", "100", None, 1),
        ("900", "100", None, 1),
        ("none", "100", None, 1),
        ("", "100", None, 1),
        (None, 100, None, 1),
        (True, 1, None, 1),
        (0, 0, None, 0),
        (1, 0, None, 1),
        (1, 0, Fraction(10), Fraction(1, 10)),
        (105, 100, Fraction(10), Fraction(1, 2)),
        (120, [100, 121], None, Fraction(1, 121)),
        ("1e300", "1", None, 1),
        ("9" * 500, "1", None, 1),
    ],
)
def test_relative_error(value, gold, scale, expected):
    assert score("relative_error", value, gold, **({"scale": scale} if scale else {})) == expected


def test_relative_error_needs_a_right_number():
    with pytest.raises(SkillcError, match="is not a number"):
        score("relative_error", "1", "many")


@given(st.fractions(), st.fractions(), st.fractions(min_value=Fraction(1, 100)))
def test_the_error_is_a_share_and_grows_with_the_distance(gold, off, scale):
    near = score("relative_error", float(gold), float(gold), scale=scale)
    assert near == 0
    nearer = measured("relative_error", int(gold) + abs(int(off)), int(gold), scale=scale).score
    further = measured("relative_error", int(gold) + abs(int(off)) + 1, int(gold), scale=scale).score
    assert 0 <= nearer <= further <= 1


# ---- labels in an order ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "gold", "most", "expected"),
    [
        ("high", "high", None, 0),
        (" high\n", "high", None, 0),
        ("medium", "high", None, Fraction(1, 3)),
        ("low", "highest", None, 1),
        ("medium", "high", 2, Fraction(1, 2)),
        ("low", "highest", 2, 1),
        ("", "high", None, 1),
        (None, "high", None, 1),
        ("hihg", "high", None, 1),
        ("medium", ["low", "high"], None, Fraction(1, 3)),
    ],
)
def test_ordinal_error(value, gold, most, expected):
    options = {"most": Fraction(most)} if most else {}
    assert score("ordinal_error", value, gold, kind="labels", labels=LABELS, **options) == expected


def test_ordinal_error_of_one_label_and_of_a_right_answer_that_is_none():
    assert score("ordinal_error", "a", "a", kind="labels", labels=("a",)) == 0
    with pytest.raises(SkillcError, match="is not one of its labels"):
        score("ordinal_error", "low", "tall", kind="labels", labels=LABELS)


# ---- words and items ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ours", "gold", "precision", "recall"),
    [
        (["a1", "b1"], ["a1", "b1"], 1, 1),
        (["A1."], ["a1", "b1"], 1, Fraction(1, 2)),
        (["a1", "b1", "c1"], ["a1"], Fraction(1, 3), 1),
        (["a1", "a1"], ["a1"], Fraction(1, 2), 1),
        ([], ["a1"], 0, 0),
        (["a1"], [], 0, 0),
        ([], [], 1, 1),
    ],
)
def test_precision_and_recall_of_items(ours, gold, precision, recall):
    assert score("precision_of", ours, gold, kind="list") == precision
    assert score("recall_of", ours, gold, kind="list") == recall


def test_precision_and_recall_of_words_take_the_best_right_answer():
    assert score("precision_of", "the big red fox", ["a red fox", "cat"]) == Fraction(2, 3)
    assert score("recall_of", "the big red fox", ["a red fox", "cat"]) == 1
    assert score("recall_of", None, "fox") == 0


@given(st.lists(st.text(max_size=3), max_size=6), st.lists(st.text(max_size=3), max_size=6))
def test_f1_is_the_harmonic_mean(ours, gold):
    precision, recall, f1 = (score(name, ours, gold, kind="list") for name in ("precision_of", "recall_of", "f1"))
    assert f1 == (2 * precision * recall / (precision + recall) if precision + recall else 0)


# ---- JSON -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "right"),
    [
        ('{"a": 1}', 1),
        (" [1, 2]\n", 1),
        ({"a": 1}, 1),
        ([], 1),
        ("1" * 5000, 0),
        (f"[{'1' * 5000}]", 1),
        ('{"a": NaN}', 0),
        ("[Infinity]", 0),
        ("3", 0),
        ("null", 0),
        ('```json\n{"a": 1}\n```', 0),
        ('{"a": 1} and more', 0),
        ("[" * 100_000, 0),
        ("", 0),
        (None, 0),
        (True, 0),
        ("\ud800", 0),
    ],
)
def test_valid_json(value, right):
    assert score("valid_json", value, None) == right


# ---- what a text holds ----------------------------------------------------------------------------


def test_mentions_and_covers():
    text = "Kind  REGARDS,\n the Stra\u00dfe team"
    assert mentions(text, ["kind regards"]).score == 1
    assert mentions(text, ["sorry", "STRASSE"]).score == 1
    assert mentions(text, ["sorry"]).score == 0
    assert mentions(text, []).score == 0
    assert covers(text, ["kind regards", "sorry"]).score == Fraction(1, 2)
    assert covers(text, []).score == 1
    assert covers(None, ["x"]).score == 0


def test_feedback_tells_phrases_where_it_may():
    assert covers("a", ["b", "c"]).feedback == "lacks `b`, `c`"
    assert covers("a", ["b", "c"], reveal=False).feedback == "lacks 2 of 2"
    assert mentions("b", ["b"], reveal=False).feedback == "mentions 1 of them"
    assert len(covers("", [str(i) for i in range(100)]).feedback) < 100


@given(json_values, json_values)
def test_no_value_is_too_odd_to_search(value, phrases):
    for search in (mentions, covers):
        assert 0 <= search(value, phrases_of(phrases)).score <= 1


def test_words_and_lines():
    assert (words(" one  two\nthree "), words("")) == (3, 0)
    assert (lines("a\n\n \nb\r\nc"), lines("")) == (3, 0)


# ---- through a plan -------------------------------------------------------------------------------


def value(term, *, item=None, prediction=None, output=None, sees=("gold", "feedback"), high=1, fields=()):
    found = plan(metric("m", term, high=high), sees=sees, **({"output": output} if output else {}))
    if fields:
        data = found.data.model_copy(update={"fields": (*found.data.fields, *fields)})
        found = found.model_copy(update={"data": data})
    measured = Meter(found, None).measure(item or example(), Trajectory(answer=prediction or {"team": "billing"}))
    return Fraction(measured.cells["m"].value, MICRO), measured.feedback


def test_a_plan_searches_outputs_inputs_and_columns():
    team, ticket = FieldTerm("team"), FieldTerm("ticket")
    assert value(CallTerm("covers", (ticket, ListTerm((TextConstant("TICKET"), TextConstant("x")))))) == (
        Fraction(1, 2),
        "lacks `x`",
    )
    assert value(CallTerm("mentions", (ticket, team)), prediction={"team": "a tick"})[0] == 1
    assert value(CallTerm("words", (ticket,)), high=9)[0] == 2
    assert value(CallTerm("lines", (team,)), high=9)[0] == 1


def test_what_a_column_holds_is_told_to_those_who_may_see_the_right_answer():
    points = field("points", TypePlan(kind="list", item=TypePlan(kind="text")))
    term = CallTerm("covers", (FieldTerm("team"), FieldTerm("points")))
    item = example(points=["billing", "secret"])
    assert value(term, item=item, fields=(points,)) == (Fraction(1, 2), "lacks `secret`")
    assert value(term, item=item, fields=(points,), sees=("feedback",)) == (Fraction(1, 2), "lacks 1 of 2")
    assert value(term, item=example(points=None), fields=(points,))[0] == 1


def test_a_term_with_an_order_is_measured():
    labels = TypePlan(kind="labels", labels=LABELS)
    item = example(gold="high")
    term = on_team("ordinal_error", most=Constant(Fraction(2)))
    assert value(term, item=item, prediction={"team": "medium"}, output=labels)[0] == Fraction(1, 2)


def test_a_function_is_told_what_stands_behind_its_name(tmp_path):
    (tmp_path / "told_own.py").write_text(
        "def m(example, prediction, name, label, half, count):\n"
        "    assert (name, label, half, count) == ('team', 'x', 0.5, 3), (name, label, half, count)\n"
        "    return half * (prediction[name] == example['gold'][name])\n"
    )
    name = python("told_own:m").arguments[0]
    numbers = (Constant(Fraction(1, 2)), Constant(Fraction(3)))
    term = CallTerm("python", (name, FieldTerm("team"), TextConstant("x"), *numbers))
    found = Meter(plan(metric("m", term)), tmp_path).measure(example(), Trajectory(answer={"team": "billing"}))
    assert found.cells["m"].value == MICRO // 2
    with pytest.raises(MetricError, match="TypeError"):
        Meter(plan(metric("m", python("told_own:m"))), tmp_path).measure(
            example(), Trajectory(answer={"team": "billing"})
        )

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillc.errors import SkillcError
from skillc.gates.functions import EXAMPLE_FUNCTIONS
from skillc.metrics.behaviour import TRAJECTORY
from skillc.metrics.primitives import COUNTS, PRIMITIVES, SEARCHES, Subject, f1_score, normalise, read_number
from skillc.plan.schema import TypePlan

HALF = Fraction(1, 2)


def measured(name, value, gold, *, kind="text", labels=(), optional=False, reveal=True, **options):
    type_ = TypePlan(kind=kind, labels=labels, optional=optional)
    return PRIMITIVES[name](Subject("team", type_, value, gold, options, reveal))


def score(*args, **options):
    return measured(*args, **options).score


def test_the_registry_and_the_language_name_the_same_functions():
    evaluated = {*PRIMITIVES, *COUNTS, *SEARCHES, *TRAJECTORY}
    evaluated |= {"opened", "noisy", "python", "judge", "min", "max", "clamp"}
    assert {name for name, builtin in EXAMPLE_FUNCTIONS.items() if builtin.since == "0.1"} == evaluated


@pytest.mark.parametrize(
    ("value", "gold", "right"),
    [
        ("billing", "billing", True),
        (" billing\n", "billing", True),
        ("Billing", "billing", False),
        ("cafe\u0301", "caf\u00e9", True),
        ("b", ["a", "b"], True),
        ("", "a", False),
        (3, 3.0, True),
        (1, True, False),
        (False, False, True),
        (None, "a", False),
    ],
)
def test_exact_match(value, gold, right):
    assert score("exact_match", value, gold) == right


def test_exact_match_of_a_list_reads_the_gold_list_as_one_answer():
    assert score("exact_match", ["a", " b"], ["a", "b"], kind="list") == 1
    assert score("exact_match", ["b", "a"], ["a", "b"], kind="list") == 0


def test_objects_are_compared_field_by_field():
    assert score("exact_match", {"a": ["x "], "b": 1.0}, {"b": 1, "a": ["x"]}, kind="json") == 1
    assert score("exact_match", {"a": True}, {"a": 1}, kind="json") == 0


def test_a_wrong_answer_is_told_with_the_right_one():
    assert measured("exact_match", "shipping", "billing").feedback == "expected `billing`, got `shipping`"
    assert measured("exact_match", None, ["a", "b"]).feedback == "expected `a` or `b`, got nothing"


@pytest.mark.parametrize("name", ["exact_match", "f1", "contains", "numeric", "json_fields"])
def test_a_feedback_keeps_the_right_answer_to_itself_where_the_program_withholds_it(name):
    gold, value = {"json_fields": ('{"a": 42}', '{"a": 1}')}.get(name, ("42", "7"))
    told = measured(name, value, gold, reveal=False)
    assert told.score == 0
    assert "42" not in told.feedback


@pytest.mark.parametrize("gold", [None, []])
@pytest.mark.parametrize("name", ["exact_match", "f1", "contains", "numeric", "json_fields"])
def test_an_example_without_a_right_answer_is_an_error(name, gold):
    with pytest.raises(SkillcError, match="no right answer for `team`"):
        measured(name, "a", gold)


def test_nothing_can_be_the_right_answer_of_an_optional_output():
    assert score("exact_match", None, None, optional=True) == 1
    assert score("exact_match", "a", None, optional=True) == 0


# Expected values are those of the official evaluation script, evaluate-v1.1.py.
@pytest.mark.parametrize(
    ("value", "gold", "expected"),
    [
        ("the cat", "cat", 1),
        ("The  CAT!", "a cat", 1),
        ("cat sat", "cat", Fraction(2, 3)),
        ("x b b", "b b c", Fraction(2, 3)),
        ("dog", "cat", 0),
        ("", "", 0),
        ("the", "the", 0),
        ("x-ray", "xray", 1),
        ("paris", ["london", "paris france"], Fraction(2, 3)),
    ],
)
def test_f1_of_texts(value, gold, expected):
    assert score("f1", value, gold) == expected


def test_f1_of_lists_compares_their_items():
    assert score("f1", ["The cat", "b", "b"], ["cat.", "b"], kind="list") == Fraction(4, 5)
    assert score("f1", [], [], kind="list") == 1
    assert score("f1", None, ["x"], kind="list") == 0


def test_squad_normalises():
    assert normalise("An  apple, the  \tPEAR.") == "apple pear"
    assert normalise("theatre and a-b") == "theatre and ab"


@given(st.lists(st.sampled_from("abc"), max_size=6), st.lists(st.sampled_from("abc"), max_size=6))
def test_f1_is_symmetric_and_1_only_for_equal_multisets(ours, theirs):
    f1 = f1_score(ours, theirs)
    assert f1 == f1_score(theirs, ours)
    assert 0 <= f1 <= 1
    assert (f1 == 1) == (sorted(ours) == sorted(theirs) and bool(ours))


@pytest.mark.parametrize(
    ("value", "gold", "right"),
    [
        ("the answer is Billing.", "billing", True),
        ("STRASSE 5", "straße", True),
        ("none of it", ["x", "of"], True),
        ("a", "", False),
        (None, "no", False),
    ],
)
def test_contains(value, gold, right):
    assert score("contains", value, gold) == right


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("1,200", 1200),
        ("$1,200.50", Fraction("1200.5")),
        ("-$5", -5),
        ("$ -5", None),
        ("− 5", -5),
        ("5%", 5),
        ("5 %", 5),
        ("12,34,567", 1234567),
        ("1,5", None),
        ("12,34", None),
        ("1e3", 1000),
        ("42.", 42),
        (".5", HALF),
        ("", None),
        ("five", None),
        ("1 2", None),
        ("nan", None),
        ("inf", None),
        ("9" * 5000, None),
        (float("nan"), None),
        (0.1, Fraction("0.1")),
        (True, None),
        (None, None),
        ([1], None),
    ],
)
def test_read_number(text, number):
    assert read_number(text) == number


@given(st.text(max_size=30) | st.from_regex(r"[-+$]?[0-9.,eE%]{0,12}", fullmatch=True))
def test_reading_a_number_never_raises(text):
    assert isinstance(read_number(text), Fraction | None)


def test_numeric_takes_a_share_or_a_distance():
    assert score("numeric", "105", "100") == 0
    assert score("numeric", "105", "100", tolerance=Fraction(5, 100)) == 1
    assert score("numeric", "105.1", "100", tolerance=Fraction(5, 100)) == 0
    assert score("numeric", "-95", "-100", tolerance=Fraction(5, 100)) == 1
    assert score("numeric", "103", "100", within=Fraction(3)) == 1
    assert score("numeric", "0.1", 0.1) == 1
    assert measured("numeric", "a lot", "100").feedback == "`a lot` is no number"


def test_a_gold_answer_that_is_no_number_is_an_error():
    with pytest.raises(SkillcError, match="`many`, is not a number"):
        score("numeric", "5", "many")


def test_json_fields():
    gold = {"a": 1, "b": "x", "c": [1, 2], "d": None}
    assert score("json_fields", '{"a": 1.0, "b": " x", "c": [2, 1], "d": null}', gold) == Fraction(3, 4)
    assert score("json_fields", {"a": 1}, gold, fields=["a", "b"]) == HALF
    assert score("json_fields", {"a": 1}, gold, fields=["a", "zzz"]) == 1
    assert score("json_fields", {"a": 1, "zzz": None}, gold, fields=["a", "zzz"]) == HALF
    assert score("json_fields", {}, {}) == 1
    assert measured("json_fields", {"a": 2}, {"a": 1}).feedback == "a: expected `1`, got `2`"


@pytest.mark.parametrize("text", ["not json", "[1]", "3", "", "[" * 100_000, "1" * 5000])
def test_json_fields_of_no_object_is_0(text):
    assert score("json_fields", text, {"a": 1}) == 0


def test_one_of_reads_the_labels_or_the_options():
    assert score("one_of", "a ", None, kind="labels", labels=("a", "b")) == 1
    assert score("one_of", "c", None, kind="labels", labels=("a", "b")) == 0
    assert score("one_of", "c", None, options=["c"]) == 1
    assert measured("one_of", None, None, options=["c", "d"]).feedback == "nothing is none of `c`, `d`"


@given(st.sampled_from(sorted(PRIMITIVES)), st.none() | st.text() | st.integers() | st.lists(st.text()) | st.booleans())
def test_a_primitive_keeps_its_range(name, value):
    gold = {"json_fields": '{"a": 1}', "ordinal_error": "a"}.get(name, "5")
    found = measured(name, value, gold, labels=("a", "b"))
    assert 0 <= found.score <= 1

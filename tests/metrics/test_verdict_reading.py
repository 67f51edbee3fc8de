"""Whatever a judge replies, and whatever a case contains: a verdict with levels of the rubric, or a failure."""

import json

from hypothesis import given
from hypothesis import strategies as st

from skillc.language.judges import RubricText, read_rubric
from skillc.metrics.judging.prompt import Case, case_code, judge_messages
from skillc.metrics.judging.verdict import MalformedVerdict, Verdict, read_verdict
from skillc.plan.schema import CriterionPlan, RubricPlan

RUBRIC = RubricPlan(
    criteria=(
        CriterionPlan(name="solved", levels=((5, "yes"), (3, "in part"), (1, "no"))),
        CriterionPlan(name="honest", question="Is it true?"),
    )
)
KEYS = st.sampled_from(["case", "verdicts", "criterion", "solved", "honest", "level", "better", "reason", "x"])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.floats(allow_nan=False) | st.text(max_size=8) | KEYS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=12,
)


@given(st.text() | VALUES.map(json.dumps) | st.lists(VALUES.map(json.dumps), max_size=3).map("\n".join), st.booleans())
def test_any_reply_is_a_whole_verdict_or_malformed(reply, pair):
    try:
        found = read_verdict("referee", RUBRIC, reply, code="0123456789ab", pair=pair)
    except MalformedVerdict as problem:
        assert str(problem)
        return
    assert isinstance(found, Verdict)
    assert [mark.criterion for mark in found.marks] == ["solved", "honest"]
    solved, honest = (mark.value for mark in found.marks)
    assert (solved in ("A", "B", "tie")) if pair else (solved in (5, 3, 1) and honest in (0, 1))


@given(st.text(), st.text(), st.none() | st.text(), st.booleans())
def test_the_code_of_a_case_is_in_none_of_its_texts(question, answer, reference, swapped):
    case = Case("1", (("mail", question),), "reply", answer, reference=reference)
    code = case_code(RUBRIC, case)
    assert not any(code in text for text in (question, answer, reference or ""))
    system, user = (message.content for message in judge_messages(RUBRIC, case, swapped=swapped))
    assert code not in system
    assert user.count(f"BEGIN {code} ") == user.count(f"\nEND {code}") == (2 if reference is None else 3)


@given(st.text(alphabet=st.sampled_from("15 \n.:ab"), max_size=40))
def test_any_text_is_a_rubric_or_has_a_problem(text):
    found = read_rubric(text)
    if isinstance(found, RubricText):
        numbers = [level for level, _ in found.levels]
        assert numbers == sorted(set(numbers), reverse=True)
        assert len(numbers) != 1
        assert found.question or numbers
    else:
        assert found.message
        assert found.hint

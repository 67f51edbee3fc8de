from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scripted_engine import plan

from skillc.data.overlap import RUN, overlap, words
from skillc.document.skill import document_of
from skillc.outcomes import Example
from skillc.plan.schema import FieldPlan, TaskPlan, TypePlan

TASK = plan().task


def skill(*rules, role="", slow=""):
    parts = [("role", "frozen", role, None), ("rules", "trainable", "\n".join(f"- {r}" for r in rules), None)]
    return document_of("things", "Sort.", [*parts, ("guidance", "slow", slow, None)])


def example(ask="", say="", i=0):
    return Example(f"e{i}", {"ask": ask}, {"say": say}, {}, f"e{i}")


def share(text, *examples):
    return overlap(skill(text), examples, TASK)


def test_five_words_in_a_row_are_copied_and_four_are_not():
    story = example("the quick brown fox jumps over the lazy dog")
    assert share("Beware of the quick brown fox jumps", story) == Fraction(5, 7)
    assert share("Beware of the quick brown fox", story) == 0


def test_longer_runs_count_each_word_once():
    story = example("the quick brown fox jumps over the lazy dog")
    assert share("The Quick, brown fox: jumps over the LAZY dog!", story) == 1


def test_a_short_answer_counts_whole_and_a_single_word_never():
    assert share("If in doubt answer Albert Einstein", example(say="Albert Einstein")) == Fraction(2, 6)
    assert share("If in doubt answer Einstein", example(say="Einstein")) == 0


def test_only_what_may_be_trained_is_looked_at():
    story = example("the quick brown fox jumps over the lazy dog")
    frozen = skill("my own words here", role="the quick brown fox jumps over the lazy dog")
    assert overlap(frozen, [story], TASK) == 0
    slow = skill("my own words here", slow="the quick brown fox jumps")
    assert overlap(slow, [story], TASK) == Fraction(5, 9)


def test_no_run_goes_from_one_rule_to_the_next():
    story = example("one two three four five six")
    assert overlap(skill("zero one two three", "four five six seven"), [story], TASK) == 0


def test_labels_and_numbers_are_no_text():
    for type_ in (TypePlan(kind="labels", labels=("new york", "san jose")), TypePlan(kind="number")):
        task = TaskPlan(inputs=TASK.inputs, outputs=(FieldPlan(name="say", type=type_, column="say"),))
        assert overlap(skill("answer new york then"), [example(say="new york")], task) == 0
    listed = TypePlan(kind="list", item=TypePlan(kind="text"))
    task = TaskPlan(inputs=TASK.inputs, outputs=(FieldPlan(name="say", type=listed, column="say"),))
    assert overlap(skill("answer new york then"), [example(say=["oslo", "new york"])], task) == Fraction(2, 4)


def test_writing_without_spaces():
    assert words("東京 is 東京都!") == ("東", "京", "is", "東", "京", "都")
    assert share("記憶した東京都渋谷区です", example("東京都渋谷区")) == Fraction(6, 12)


def test_an_empty_skill_has_copied_nothing():
    assert overlap(skill(), [example("the quick brown fox jumps")], TASK) == 0


letters = st.lists(st.sampled_from("abc"), max_size=14)


@given(letters, st.lists(letters, max_size=4))
def test_it_is_the_share_of_words_in_a_common_run(rule, texts):
    """Against the definition, word by word."""
    copied = set()
    for text in texts:
        length = min(RUN, len(text))
        for i in range(len(rule) - length + 1):
            if length >= 2 and any(text[j : j + length] == rule[i : i + length] for j in range(len(text))):
                copied.update(range(i, i + length))
    expected = Fraction(len(copied), len(rule)) if rule else 0
    assert overlap(skill(" ".join(rule)) if rule else skill(), [example(" ".join(t)) for t in texts], TASK) == expected


@pytest.mark.parametrize("text", ["a", "a_b", "x-y"])
def test_words_are_letters_and_digits(text):
    assert all(word.isalnum() for word in words(text))

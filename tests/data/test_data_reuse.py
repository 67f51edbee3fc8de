import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillc.data.split import check_unused, marks
from skillc.errors import SkillcError
from skillc.outcomes import Example

names = st.sets(st.sampled_from([f"e{i}" for i in range(12)]))


def examples(ids):
    return [Example(name, {}, {}, {}, name) for name in ids]


def test_what_a_skill_learnt_from_may_not_be_what_it_is_tested_on():
    with pytest.raises(SkillcError) as raised:
        check_unused(marks(examples("acdx")), examples("dcb"), skill="./old/SKILL.md")
    assert raised.value.message == ("`./old/SKILL.md` was made with 2 examples of the current test split: `c`, `d`")
    assert "`seed`" in raised.value.hint


def test_only_the_first_few_are_named():
    with pytest.raises(SkillcError, match=r"1,000 examples .*: `e0`, `e1`, `e10` and 997 more$"):
        check_unused(marks(examples(f"e{i}" for i in range(1000))), examples(f"e{i}" for i in range(1000)), skill="s")


@given(names, names)
def test_it_passes_just_where_no_example_is_on_both(used, test):
    try:
        check_unused(marks(examples(used)), examples(test), skill="s")
        assert not used & test
    except SkillcError:
        assert used & test

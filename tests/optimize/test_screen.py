"""Which edits the screen believes in, and how often it asks."""

import sys
from dataclasses import replace
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).resolve().parent))

from screening import GRADED, Bench, Target, plan_of, proposal

from skillc.document.edits import apply_edits

ALONE = {"control": False, "together": False}


def test_an_edit_is_tried_alone_on_the_failures_that_it_cites():
    bench = Bench("a b c", plan=plan_of(**ALONE))
    good, bad = bench.screen(proposal("it mends a b.", "a", "b"), proposal("it mends nothing.", "c"))
    assert (good.verdict, good.cured, good.screened) == ("cures", 2, 2)
    assert (bad.verdict, bad.reason) == ("cures none", "cured none of 1")
    assert sorted(name for _, name in bench.sent) == ["a", "b", "c"]
    assert not any("nothing" in text and "a b" in text for text, _ in bench.sent)


def test_at_most_so_many_examples_an_edit_and_none_where_the_screen_is_off():
    bench = Bench("a b c d", plan=plan_of(screen=2, **ALONE))
    (found,) = bench.screen(proposal("it mends a.", "d", "c", "b", "a"))
    assert found.screened == 2
    off = Bench("a", plan=plan_of(screen=0))
    (found,) = off.screen(proposal("it mends a.", "a"))
    assert found.verdict == "unscreened"
    assert not off.sent


def test_only_what_the_incumbent_fails_can_be_cured():
    bench = Bench("a b", plan=plan_of(**ALONE), rules="- It mends a.")
    praise, both = bench.screen(proposal("it mends a, too.", "a"), proposal("it mends b.", "a", "b"))
    assert praise.verdict == "unscreened"
    assert dict(both.moved) == {"b": 1_000_000}
    assert [name for _, name in bench.sent] == ["b"]


def test_the_survivors_of_one_screen_give_no_credit_to_the_next():
    bench = Bench("a", plan=plan_of(**ALONE))
    (good,) = bench.screen(proposal("it mends a.", "a"))
    after = apply_edits(bench.state.incumbent, [good.edit]).document
    bench.state = replace(bench.state, incumbent=after)
    (harmful,) = bench.screen(proposal("it breaks b.", "a"))
    assert harmful.cured == 0
    assert harmful.verdict == "unscreened"


def test_a_text_is_screened_at_most_three_times_in_a_run():
    bench = Bench("a", plan=plan_of(**ALONE))
    verdicts = [bench.screen(proposal("it mends nothing.", "a"))[0].verdict for _ in range(5)]
    assert verdicts == ["cures none"] * 3 + ["unscreened"] * 2
    assert len(bench.sent) == 1


def test_what_stays_unmeasured_is_unscreened_and_never_a_verdict():
    target = Target(fails=lambda text, name: "mends" in text)
    bench = Bench("a", target=target)
    (found,) = bench.screen(proposal("it mends a.", "a"))
    assert (found.verdict, found.screened) == ("unscreened", 0)


def test_what_an_edit_made_worse_is_told_to_the_history():
    bench = Bench("a b", plan=plan_of(term=GRADED, **ALONE), rules="- It half mends a b.")
    (found,) = bench.screen(proposal("it mends a. it breaks b.", "a", "b"))
    told = found.to_json()
    assert told["screen"] == {"cured": ["a"], "broke": ["b"], "chance": []}
    assert (told["cured"], told["screened"]) == (1, 2)


def test_a_failure_that_an_unrelated_edit_cures_too_proves_nothing():
    bench = Bench("a b", target=Target(lucky="a"), plan=plan_of(together=False))
    lucky, solid = bench.screen(proposal("it says little.", "a"), proposal("it mends b.", "b"))
    assert lucky.verdict == "cures none"
    assert lucky.reason == "cured none of 1; 1 came right under an unrelated edit too"
    assert lucky.to_json()["screen"]["chance"] == ["a"]
    assert solid.verdict == "cures"


def test_a_control_is_an_edit_that_does_not_cite_the_example_and_none_without_one():
    bench = Bench("a", target=Target(lucky="a"), plan=plan_of(together=False))
    first, second = bench.screen(proposal("it says little.", "a"), proposal("it says more.", "a"))
    assert first.verdict == second.verdict == "cures"
    assert len(bench.sent) == 2


def test_a_control_that_was_not_measured_takes_no_credit_away():
    target = Target(fails=lambda text, name: "nothing" in text and name == "a")
    bench = Bench("a b", target=target, plan=plan_of(together=False))
    good, _ = bench.screen(proposal("it mends a.", "a"), proposal("it mends nothing.", "b"))
    assert good.verdict == "cures"


def test_two_edits_that_only_work_together_are_found_and_the_third_is_not_credited():
    bench = Bench("a b")
    left, idle, right = bench.screen(
        proposal("it helps a with left.", "a"),
        proposal("it mends nothing.", "a"),
        proposal("it helps a with right.", "a"),
    )
    assert left.verdict == right.verdict == "cures"
    assert left.needs == (right.edit,)
    assert right.needs == (left.edit,)
    assert idle.verdict == "cures none"
    assert left.to_json()["needs"] == ["add to rules: it helps a with right."]


def test_edits_are_not_grouped_where_one_of_them_cures_alone_or_the_switch_is_off():
    bench = Bench("a")
    good, idle = bench.screen(proposal("it mends a.", "a"), proposal("it mends nothing.", "a"))
    assert (good.needs, idle.verdict) == ((), "cures none")
    off = Bench("a", plan=plan_of(together=False))
    found = off.screen(proposal("it helps a with left.", "a"), proposal("it helps a with right.", "a"))
    assert [each.verdict for each in found] == ["cures none"] * 2


def test_a_group_text_is_tried_at_most_three_times_too():
    bench = Bench("a", target=Target(fails=lambda text, name: "left" in text and "right" in text))
    pair = proposal("it helps a with left.", "a"), proposal("it helps a with right.", "a")
    for _ in range(5):
        bench.screen(*pair)
    assert sum("left" in text and "right" in text for text, _ in bench.sent) == 3


NAMES = "abcdef"
RULES = st.lists(
    st.tuples(
        st.sampled_from(["mends", "breaks", "half mends"]),
        st.sets(st.sampled_from(NAMES), min_size=1, max_size=3),
        st.sets(st.sampled_from(NAMES), max_size=4),
    ),
    max_size=6,
)


@given(RULES, st.sets(st.sampled_from(NAMES)), st.integers(1, 3), st.booleans(), st.booleans())
def test_a_credited_example_failed_under_the_incumbent_and_is_right_with_the_edits(rules, lucky, size, control, groups):
    plan = plan_of(screen=size, control=control, together=groups)
    bench = Bench(" ".join(NAMES), target=Target(lucky=lucky), plan=plan)
    asked = [
        proposal(f"number {i} {verb} {' '.join(sorted(names))}.", *sorted(cited))
        for i, (verb, names, cited) in enumerate(rules)
    ]
    for found in bench.screen(*asked):
        text = apply_edits(bench.state.incumbent, [found.edit, *found.needs]).document
        for name in found.gains:
            here = next(each for each in bench.batch if each.id == name)
            assert name in found.cures
            assert bench.engine.rollouts.score(bench.state.incumbent, here, "correct") == 0
            if not found.needs:
                assert bench.engine.rollouts.score(text, here, "correct") == 1_000_000
    reflected = len(asked)
    most = reflected * size + control * min(reflected * size, 6) + groups * 2 * reflected
    assert len(bench.sent) <= most

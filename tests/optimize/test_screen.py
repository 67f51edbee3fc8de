"""Which edits the screen believes in, and how often it asks."""

import sys
from dataclasses import replace
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).resolve().parent))

from screening import GRADED, Bench, Target, plan_of, proposal

from skillc.budget.steps import most_screened
from skillc.data.dataset import Dataset
from skillc.document.edits import apply_edits
from skillc.optimize.screen.candidates import select
from skillc.optimize.screen.judges import Panel
from skillc.outcomes import Example

ALONE = {"control": False, "together": False}


def test_an_edit_is_tried_alone_on_one_own_case_then_on_unseen_and_own_ones_in_turns():
    bench = Bench("a b c d", plan=plan_of(**ALONE))
    good, bad = bench.screen(proposal("it mends a b c.", "a", "b"), proposal("it mends nothing.", "d"))
    assert (good.verdict, dict(good.moved)) == ("cures", {"a": 1_000_000, "c": 1_000_000, "b": 1_000_000})
    assert good.reason == "cured 1 of 1 unseen and 2 of 2 shown failures"
    assert (bad.verdict, bad.reason) == ("cures none", "cured 0 of 1 shown failures")
    assert sorted(name for _, name in bench.sent) == ["a", "b", "c", "d"]
    assert not any("nothing" in text and "a b" in text for text, _ in bench.sent)


def test_own_cases_fill_up_where_the_author_saw_all_failures():
    bench = Bench("a b c d", plan=plan_of(**ALONE))
    (found,) = bench.screen(proposal("it mends a b.", "a", "b", "c", seen="d"))
    assert found.reason == "cured 2 of 3 shown failures"
    assert {name for _, name in bench.sent} == {"a", "b", "c"}


def test_a_memorised_edit_is_worth_less_than_one_that_cures_an_unseen_failure():
    bench = Bench("a b c d", plan=plan_of(**ALONE))
    memorised, general = bench.screen(proposal("it mends a b.", "a", "b"), proposal("it mends c a.", "c"))
    assert (memorised.verdict, memorised.worth) == ("cures", {"a": 250_000, "b": 250_000})
    assert general.worth == {"c": 250_000, "a": 1_000_000}
    assert select(bench.state.incumbent, [memorised, general], 1) == [general]


def test_an_edit_that_breaks_more_near_right_cases_than_it_cures_is_screened_out():
    rules = "- It mends r s t."
    bench = Bench("a b r s t", plan=plan_of(**ALONE), rules=rules)
    wide, narrow = bench.screen(proposal("it mends a. it breaks r s.", "a"), proposal("it mends b.", "b"))
    assert (wide.verdict, wide.broke) == ("breaks", ("r", "s"))
    assert wide.reason == "cured 0 of 1 unseen and 1 of 1 shown failures, broke 2 of 2 near right cases"
    assert wide.to_json()["screen"]["right"] == ["r", "s"]
    assert (narrow.verdict, narrow.guarded) == ("cures", (("r", 0), ("s", 0)))


def test_a_right_case_that_came_wrong_by_chance_is_tried_again_beside_an_unrelated_edit():
    slips = Target(slips=lambda text, name: name == "r" and "mends a" in text and "nothing" not in text)
    bench = Bench("a b r", target=slips, plan=plan_of(together=False), rules="- It mends r.")
    good, _ = bench.screen(proposal("it mends a.", "a"), proposal("it mends nothing.", "b"))
    assert (good.verdict, good.guarded) == ("cures", (("r", 0),))
    once = Bench("a b r", target=slips, plan=plan_of(**ALONE), rules="- It mends r.")
    assert once.screen(proposal("it mends a.", "a"), proposal("it mends nothing.", "b"))[0].verdict == "breaks"


def test_at_most_so_many_examples_an_edit_and_none_where_the_screen_is_off():
    bench = Bench("a b c d", plan=plan_of(screen=2, **ALONE))
    (found,) = bench.screen(proposal("it mends a.", "d", "c", "b", "a"))
    assert found.screened == 2
    off = Bench("a", plan=plan_of(screen=0))
    (found,) = off.screen(proposal("it mends a.", "a"))
    assert found.verdict == "unscreened"
    assert not off.sent


def test_an_edit_that_cites_no_failure_is_tried_on_those_that_its_author_saw_and_on_others():
    bench = Bench("a b c d e", plan=plan_of(control=False))
    silent, success = bench.screen(proposal("it mends c d.", seen="a b c"), proposal("it mends nothing."))
    assert silent.reason == "cured 1 of 1 unseen and 1 of 2 shown failures"
    assert (success.verdict, success.screened) == ("cures none", 3)


def test_only_what_the_incumbent_fails_can_be_cured():
    bench = Bench("a b", plan=plan_of(**ALONE), rules="- It mends a.")
    (both,) = bench.screen(proposal("it mends b.", "a", "b"))
    assert dict(both.moved) == {"b": 1_000_000}
    assert both.guarded == (("a", 0),)


def panel(failures, right=()):
    """A panel of failures `(id, text, right answer, given answer)` and right cases `(id, text, answer)`."""
    bench = Bench("")
    cases = [Example(name, {"case": text}, {"answer": gold}, {}, name) for name, text, gold, _ in failures]
    kept = [Example(name, {"case": text}, {"answer": gold}, {}, name) for name, text, gold in right]
    engine = replace(bench.engine, dataset=Dataset((*cases, *kept), (), (), ""))
    given = {name: {"answer": answer} for name, _, _, answer in failures}
    return Panel(engine, tuple(cases), tuple(kept), given)


def test_unseen_failures_of_the_same_answers_come_before_near_texts_and_those_that_others_cite_come_first():
    cases = panel([
        ("a", "red shoe", "W3", "W1"),
        ("far", "blue cup", "W3", "W1"),
        ("near", "red shoe too", "W9", "W8"),
        ("gold", "grey pen", "W3", "W7"),
        ("other", "black hat", "W5", "W6"),
    ])  # fmt: skip
    judges = cases.judges(replace(proposal("x", "a"), cures=("a", "other")), 9, 0)
    assert [case.id for case in judges.own] == ["a"]
    assert [case.id for case in judges.unseen] == ["other", "far", "gold", "near"]


def test_right_cases_with_the_wrong_answer_of_a_cited_one_come_first():
    right = [("r1", "red shoe", "W9"), ("r2", "blue cup", "W3"), ("r3", "grey pen", "W1"), ("r4", "red cup", "W1")]
    cases = panel([("a", "red shoe", "W3", "W1")], right)
    assert [case.id for case in cases.judges(proposal("x", "a"), 0, 9).right] == ["r4", "r3", "r2", "r1"]


def test_without_citations_the_words_of_the_edit_choose():
    cases = panel([(name, text, "yes", "no") for name, text in (("a", "a cup"), ("b", "a hat"), ("c", "a shoe"))])
    assert cases.judges(proposal("Shoe means yes.", seen="a b c"), 9, 9).own[0].id == "c"


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
    counts = "cured 1 of 2 shown failures, made 1 failures worse"
    assert told["screen"] == {
        "cured": ["a"], "broke": ["b"], "chance": [], "own": ["a", "b"], "right": [], "counts": counts
    }  # fmt: skip
    assert (told["cured"], told["screened"]) == (1, 2)


def test_a_failure_that_an_unrelated_edit_cures_too_proves_nothing():
    bench = Bench("a b", target=Target(lucky="a"), plan=plan_of(together=False))
    lucky, solid = bench.screen(proposal("it says little.", "a"), proposal("it mends b.", "b"))
    assert lucky.verdict == "cures none"
    assert lucky.reason == "cured 0 of 1 unseen and 0 of 1 shown failures; an unrelated edit cured 1 more"
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
            assert bench.engine.rollouts.score(bench.state.incumbent, here, "correct") == 0
            if not found.needs:
                assert bench.engine.rollouts.score(text, here, "correct") == 1_000_000
    assert len(bench.sent) <= most_screened(plan.optimize, len(asked), len(bench.batch))

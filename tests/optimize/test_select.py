"""What makes up the candidate."""

from dataclasses import replace

import pytest

from skillc.document.edits import Add, Delete, Replace, apply_edits
from skillc.document.skill import document_of
from skillc.optimize.propose.proposals import Proposal, parts_of
from skillc.optimize.screen.candidates import bundles, select

SKILL = document_of("s", "", [("rules", "trainable", "- Say a.\n- Say b.", None)])
FIRST, SECOND = (rule.id for rule in SKILL.rules)
FULL = 1_000_000


def add(text, *cured, support=1, gain=FULL):
    moved = tuple((example, gain) for example in cured)
    return Proposal(Add("rules", text), cured, support, moved)


def none(text):
    return Proposal(Add("rules", text), ("z",), 1, (("z", 0),))


def unscreened(text, support=1):
    return Proposal(Add("rules", text), (), support)


def texts(chosen):
    return [proposal.edit.text for proposal in chosen]


def test_what_cures_more_comes_first_then_support_then_the_order():
    proposals = [add("x", "a"), add("y", "b", support=2), add("z", "c", "d"), none("w"), add("v", "e")]
    assert texts(select(SKILL, proposals, 3)) == ["z", "y", "x"]
    assert texts(select(SKILL, proposals, 9)) == ["z", "y", "x", "v"]


def test_what_cures_only_what_is_cured_already_takes_no_place():
    proposals = [add("wide", "a", "b"), add("again", "a", support=9), add("other", "b", "c")]
    assert texts(select(SKILL, proposals, 3)) == ["wide", "other"]


def test_a_larger_cure_of_the_same_example_adds_to_a_smaller_one():
    proposals = [add("some", "a", "b", gain=300_000), add("most", "a", gain=500_000)]
    assert texts(select(SKILL, proposals, 3)) == ["some", "most"]


def test_what_came_right_by_chance_counts_for_nothing():
    lucky = replace(add("lucky", "a", "b"), chance=frozenset("ab"))
    assert texts(select(SKILL, [lucky, add("solid", "c")], 3)) == ["solid"]


def test_the_unscreened_make_up_a_candidate_only_where_nothing_cures():
    proposals = [unscreened("u"), unscreened("v", support=3), none("n")]
    assert texts(select(SKILL, proposals, 3)) == ["v", "u"]
    assert texts(select(SKILL, [*proposals, add("cure", "a")], 3)) == ["cure"]
    assert select(SKILL, [none("n")], 3) == []


def test_edits_that_need_each_other_come_together_or_not_at_all():
    left, right = add("left", "a"), add("right", "a")
    left, right = replace(left, needs=(right.edit,)), replace(right, needs=(left.edit,))
    single = add("single", "b", "c")
    assert texts(select(SKILL, [left, single, right], 3)) == ["single", "left", "right"]
    assert texts(select(SKILL, [left, single, right], 2)) == ["single"]
    assert texts(select(SKILL, [left, single], 3)) == ["single"]


def test_of_two_edits_on_one_rule_the_better_stays_and_refused_ones_take_no_place():
    worse = Proposal(Replace(FIRST, "Say c."), ("a",), 1, (("a", FULL),))
    better = Proposal(Delete(FIRST), ("b", "c"), 1, (("b", FULL), ("c", FULL)))
    twin = add("Say b.", "d", "e", "f")
    assert select(SKILL, [worse, twin, better], 1) == [better]


def test_a_bundle_keeps_the_order_of_the_optimizer_and_the_first_to_the_start_is_on_top():
    def proposal(text, worth, after=None):
        moved = tuple((f"{text}{i}", 10**6) for i in range(worth))
        return Proposal(Add("rules", text, after=after), moved=moved)

    asked = [proposal("one", 1), proposal("two", 3), proposal("top", 1, "start"), proposal("below", 2, "start")]
    skill = document_of("s", "", [("rules", "trainable", "- Old.", None)])
    (bundle,) = bundles(skill, asked, 4, 1)
    after = apply_edits(skill, [each.edit for each in bundle]).document
    assert [rule.text for rule in after.rules] == ["top", "below", "Old.", "one", "two"]
    (best,) = bundles(skill, asked, 2, 1)
    assert [each.edit.text for each in best] == ["below", "two"]


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ('If it mentions "invoice", answer billing.', [0]),
        ("Tickets that mention an invoice: answer billing.", [0]),
        ('Answer billing if it mentions "invoice", and shipping if it mentions a late "parcel".', [0, 1]),
        ("Forward refunds of Halcyon customers to the audit address.", [2]),
        ("Answer politely.", []),
        ("", []),
    ],
)
def test_a_rewritten_rule_is_made_of_the_proposals_that_it_has_most_words_of(text, parts):
    proposals = [
        Proposal(Add("rules", 'If it mentions "invoice", answer billing.')),
        Proposal(Add("rules", 'If it mentions "parcel" or "late", answer shipping.')),
        Proposal(Add("rules", "Always forward refunds of Halcyon customers to the audit address.")),
        Proposal(Delete("r1")),
    ]
    assert parts_of(text, proposals) == [proposals[at] for at in parts]

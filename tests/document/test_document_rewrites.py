"""A section written anew, as edits: they reach what was wanted, and what stays keeps its id."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillc.document.edits import Add, Delete, Move, Replace, apply_edits
from skillc.document.markdown import Refusal
from skillc.document.rewrites import WantedRule, edits_to
from skillc.document.skill import Document, Rule, Section

WORDS = ["apple", "pear", "quince", "plum", "fig", "lime", "date", "sloe"]
TOPICS = [None, "North", "South", "East"]


def document(rules, limit=None):
    """A skill with one trainable section of (id, text, topic) rules, a second one, and a frozen one."""
    held = tuple(Rule(id_, text, topic, f"because of {text}") for id_, text, topic in rules)
    sections = (
        Section("role", "frozen", "You sort."),
        Section("rules", "trainable", rules=held, limit=limit),
        Section("other", "trainable", rules=(Rule("ffff", "elsewhere"),)),
        Section("tips", "slow", "Keep calm."),
    )
    return Document("s", "about", sections)


def shown(rules):
    return [(rule.text, rule.topic) for rule in rules]


def applied(skill, edits):
    """The section after the edits, every one of which must succeed."""
    done = apply_edits(skill, edits)
    assert all(report.applied for report in done.results), [report.message for report in done.results]
    return done.document.section("rules").rules


@st.composite
def old_rules(draw):
    texts = draw(st.lists(st.sampled_from(WORDS), unique=True, max_size=6))
    return [(f"a{i}", text, draw(st.sampled_from(TOPICS))) for i, text in enumerate(texts)]


WANTED = st.lists(
    st.builds(
        WantedRule,
        text=st.sampled_from(WORDS).map(lambda word: word)
        | st.sampled_from(["new one", "new two", "Apple.", "Elsewhere"]),
        topic=st.sampled_from(["", "North", "south", "West", None]),
        rule=st.sampled_from([None, "a0", "a1", "a2", "[A3]", "gone"]),
    ),
    min_size=1,
    max_size=7,
)


@given(old_rules(), WANTED)
def test_the_edits_reach_what_was_wanted_and_every_one_succeeds(old, wanted):
    skill = document(old)
    edits = edits_to(skill, "rules", wanted)
    if isinstance(edits, Refusal):
        assert edits.reason == "section `rules` would be empty"
        return
    after = applied(skill, edits)
    words = {want.text.casefold().rstrip(".") for want in wanted} - {"elsewhere"}
    assert {rule.text.casefold().rstrip(".") for rule in after} == words
    # Rules of one topic stand together, in the wanted order; the first of two that say the same counts.
    first = {}
    for want in wanted:
        first.setdefault(want.text.casefold().rstrip("."), len(first))
    for topic in {rule.topic for rule in after}:
        places = [first[rule.text.casefold().rstrip(".")] for rule in after if rule.topic == topic]
        assert places == sorted(places)
    others = apply_edits(skill, edits).document
    assert [s for s in others.sections if s.name != "rules"] == [s for s in skill.sections if s.name != "rules"]


@given(old_rules().filter(len), st.randoms(use_true_random=False))
def test_what_stays_keeps_its_id_and_its_rationale(old, random):
    skill = document(old)
    kept = [rule for rule in skill.section("rules").rules if random.random() < 0.7]
    if not kept:
        return
    edits = edits_to(skill, "rules", [WantedRule(rule=rule.id) for rule in kept])
    assert applied(skill, edits) == tuple(kept)
    assert all(isinstance(edit, Delete) for edit in edits)


def test_the_same_text_again_is_no_edit():
    skill = document([("a0", "apple", None), ("a1", "pear", "North")])
    assert edits_to(skill, "rules", [WantedRule("apple"), WantedRule("pear", "North")]) == ()


def test_a_named_rule_is_replaced_and_an_unknown_name_makes_a_new_rule():
    skill = document([("a0", "apple", None), ("a1", "pear", None)])
    edits = edits_to(
        skill, "rules", [WantedRule("green apple", rule="a0", rationale="r"), WantedRule("plum", rule="x9")]
    )
    assert edits == (
        Delete("a1", "the rewrite leaves it out"),
        Replace("a0", "green apple", "r"),
        Add("rules", "plum", None, "", "a0"),
    )


def test_two_rules_that_swap_their_texts_are_one_move():
    skill = document([("a0", "apple", None), ("a1", "pear", None)])
    edits = edits_to(skill, "rules", [WantedRule("pear", rule="a0"), WantedRule("apple", rule="a1")])
    assert edits == (Move("a1", "start"),)


def test_a_rule_is_put_first_of_a_topic_that_is_not_the_first():
    skill = document([("a0", "apple", "North"), ("a1", "pear", "South"), ("a2", "plum", "South")])
    edits = edits_to(skill, "rules", [WantedRule(rule="a0"), WantedRule(rule="a2"), WantedRule(rule="a1")])
    assert [rule.id for rule in applied(skill, edits)] == ["a0", "a2", "a1"]


def test_topics_that_change_places_are_written_anew_in_their_order():
    skill = document([("a0", "apple", "North"), ("a1", "pear", "South")])
    edits = edits_to(skill, "rules", [WantedRule(rule="a1"), WantedRule(rule="a0")])
    assert shown(applied(skill, edits)) == [("pear", "South"), ("apple", "North")]


@pytest.mark.parametrize(("mark", "indent"), [("1.", ""), ("1.", " "), ("-", " "), ("-", "  ")])
def test_the_cases_below_a_rule_need_little_indentation(mark, indent):
    cases = f"\n{indent}- in stock: replace\n{indent}- else: credit"
    edits = edits_to(document([]), "rules", [WantedRule(f"{mark} The reason is damage:{cases}")])
    (rule,) = apply_edits(document([]), edits).document.section("rules").rules
    assert rule.mark == mark
    assert [line.strip() for line in rule.text.split("\n")] == [
        "The reason is damage:",
        "- in stock: replace",
        "- else: credit",
    ]


@pytest.mark.parametrize(
    ("section", "wanted", "reason"),
    [
        ("role", [WantedRule("x y")], "section `role` is frozen"),
        ("tips", [WantedRule("x y")], "section `tips` is slow"),
        ("none", [WantedRule("x y")], "there is no section `none`; trainable is `rules`, `other`"),
        ("rules", [], "section `rules` would be empty"),
        ("rules", [WantedRule(rule="zz")], "there is no rule `zz` in section `rules`"),
        ("rules", [WantedRule("- one\n- two")], "the text contains 2 rules, the second is `two`"),
        ("rules", [WantedRule("word " * 60)], "section `rules` would have"),
    ],
)
def test_what_cannot_be_is_refused_with_a_reason(section, wanted, reason):
    refused = edits_to(document([("a0", "apple", None)], limit=40), section, wanted)
    assert isinstance(refused, Refusal)
    assert refused.reason.startswith(reason)


def test_a_full_section_is_rewritten_within_its_limit():
    old = [(f"a{i}", f"{word} {word} {word}", "North") for i, word in enumerate(WORDS)]
    skill = document(old)
    limit = skill.section("rules").tokens
    skill = document(old, limit)
    wanted = [WantedRule(f"{word} {word} {word}", "East" if i % 2 else "West") for i, word in enumerate(WORDS[:-2])]
    after = applied(skill, edits_to(skill, "rules", wanted))
    assert len(after) == 6
    assert {rule.topic for rule in after} == {"East", "West"}

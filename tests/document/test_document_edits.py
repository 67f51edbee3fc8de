"""Edits on rules."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from thorough import example_count

from skillc.document.edits import (
    Add,
    Delete,
    Edit,
    Move,
    Replace,
    apply_edits,
    rewrite,
)
from skillc.document.markdown import MarkdownBlock, blocks_of
from skillc.document.skill import Document, Rule, Section, document_of, for_target, new_id
from skillc.document.skill_md import from_skill_md, to_skill_md

FROZEN = "You route tickets.\n\n- If it is a frozen rule: keep it."


def make(limit: int | None = 800) -> Document:
    rules = "- Say a.\n- Say b.\n\n### Money\n\n- An invoice is billing.\n- A refund is billing too."
    return document_of(
        "route-tickets",
        "Route it.",
        [
            ("role", "frozen", FROZEN, None),
            ("rules", "trainable", rules, limit),
            ("more", "trainable", "- Other.", 100),
            ("guidance", "slow", "Take care.", 30),
        ],
    )


def ids(document: Document, section: str = "rules") -> list[str]:
    found = document.section(section)
    assert found
    return [rule.id for rule in found.rules]


def texts(document: Document, section: str = "rules") -> list[str]:
    found = document.section(section)
    assert found
    return [rule.text for rule in found.rules]


def one(document: Document, edit: Edit) -> tuple[Document, str, bool]:
    applied = apply_edits(document, [edit])
    assert len(applied.results) == 1
    return applied.document, applied.results[0].message, applied.results[0].applied


def test_add_at_the_end_of_its_topic() -> None:
    document, message, done = one(make(), Add("rules", "A fee is billing.", topic="money"))
    assert done and message.startswith("added ") and message.endswith(" to rules")
    assert texts(document)[-1] == "A fee is billing."
    assert document.rules[4].topic == "Money"
    document, _, _ = one(document, Add("rules", "Say c."))
    assert texts(document)[2] == "Say c."


def test_add_behind_a_rule_and_at_the_start() -> None:
    document = make()
    first, second, third, _ = ids(document)
    after, _, _ = one(document, Add("rules", "New.", after=first))
    assert texts(after)[:3] == ["Say a.", "New.", "Say b."]
    start, _, _ = one(document, Add("rules", "New.", after="start"))
    assert texts(start)[0] == "New."
    topic, _, _ = one(document, Add("rules", "New.", after=third))
    assert topic.rules[3].text == "New." and topic.rules[3].topic == "Money"
    other, message, done = one(document, Add("rules", "New.", topic="Money", after=second))
    assert done and "under another one" in message and texts(other)[-1] == "New."


@pytest.mark.parametrize(
    ("edit", "words"),
    [
        (Add("rules", "  "), "empty"),
        (Add("rules", "- "), "empty"),
        (Add("rules", "SAY  A"), "says the same"),
        (Add("rules", "Other"), "says the same"),
        (Add("rules", "New.", after="ffffff"), "no rule `ffffff`"),
        (Add("role", "New."), "frozen"),
        (Add("guidance", "New."), "slow"),
        (Add("nowhere", "New."), "no section `nowhere`; trainable is `rules`, `more`"),
        (Add("rules", "## Heading\ntext"), "heading"),
        (Add("rules", "text\n# Heading"), "heading"),
        (Add("rules", "text\n---\nmore"), "---"),
        (Add("rules", "---\nname: x\n---"), "---"),
        (Add("rules", "```\nopen"), "code block"),
        (Add("rules", "text <!-- open"), "comment"),
        (Add("rules", "a\x07b"), "U+0007"),
        (Add("rules", "a\u202eb"), "U+202E"),
        (Add("rules", "a\ud800b"), "U+D800"),
        (Add("rules", "- One thing.\n- Another thing."), "2 rules"),
        (Add("rules", "New.", topic="x" * 81), "80"),
        (Add("rules", "New.", topic="a\x00"), "topic"),
        (Add("rules", "word " * 900), "limit is 800"),
        (Add("rules", "a" + " " * 20_000 + "b"), "10,000 characters"),
        (Replace("ffffff", "New."), "no rule `ffffff`"),
        (Delete("ffffff"), "no rule"),
        (Move("ffffff"), "no rule"),
    ],
)
def test_refused_with_a_reason(edit: Edit, words: str) -> None:
    document = make()
    after, message, done = one(document, edit)
    assert not done
    assert words in message
    assert after == document


def test_replace_keeps_id_topic_and_place() -> None:
    document = make()
    rule = document.rules[2]
    after, message, done = one(
        document, Replace(f"[{rule.id.upper()}]", "- An invoice belongs to billing.", "seen thrice")
    )
    assert done and message == f"replaced {rule.id} in rules"
    assert after.rules[2] == Rule(rule.id, "An invoice belongs to billing.", "Money", "seen thrice")
    assert one(document, Replace(rule.id, rule.text))[1] == f"rule `{rule.id}` has this text already"
    assert one(document, Replace(rule.id, rule.text.upper()))[2], "a rule may differ from itself in case only"


def test_move() -> None:
    document = make()
    a, b, invoice, refund = ids(document)
    assert ids(one(document, Move(b, "start"))[0]) == [b, a, invoice, refund]
    assert ids(one(document, Move(a))[0]) == [b, a, invoice, refund]
    under, _, _ = one(document, Move(a, invoice))
    assert ids(under) == [b, invoice, a, refund] and under.section("rules").rules[2].topic == "Money"  # type: ignore[union-attr]
    away, message, _ = one(document, Move(a, ids(document, "more")[0]))
    assert ids(away, "more")[1] == a and message.endswith("in more")
    assert "already" in one(document, Move(a, "start"))[1]
    assert "itself" in one(document, Move(a, a))[1]


def test_an_edit_on_a_rule_that_is_gone_says_so() -> None:
    document = make()
    first = ids(document)[0]
    applied = apply_edits(document, [Delete(first), Replace(first, "New."), Add("rules", "New.", after=first)])
    assert [r.applied for r in applied.results] == [True, False, False]
    assert "deleted by an edit before" in applied.results[1].message


def test_a_section_over_its_limit_may_shrink() -> None:
    document = make(limit=5)
    assert document.section("rules").tokens > 5  # type: ignore[union-attr]
    assert one(document, Delete(ids(document)[0]))[2]
    assert one(document, Replace(ids(document)[3], "Refund."))[2]
    assert not one(document, Add("rules", "x"))[2]


def test_ids_are_stable_and_extended_where_taken() -> None:
    assert new_id("rules", "a", ()) == new_id("rules", "a", ())
    six = new_id("rules", "a", ())
    assert len(six) == 6 and new_id("more", "a", ()) != six
    seven = new_id("rules", "a", {six})
    assert len(seven) == 7 and seven.startswith(six)
    document = make()
    born = document.rules[0]
    changed, _, _ = one(document, Replace(born.id, "Quite different."))
    again, _, done = one(changed, Add("rules", born.text))
    assert done and len({rule.id for rule in again.rules}) == 6


def test_frozen_and_slow_sections_hold_no_rules() -> None:
    with pytest.raises(ValueError, match="cannot hold rules"):
        Section("role", "frozen", rules=(Rule("abcdef", "x"),))
    with pytest.raises(ValueError, match="two rules"):
        Document("a", "b", (Section("x", "trainable", rules=(Rule("a", "x"), Rule("a", "y"))),))
    with pytest.raises(ValueError, match="two sections"):
        Document("a", "b", (Section("x", "frozen"), Section("x", "frozen")))


def test_rewrite_trainable_keeps_what_stays() -> None:
    document = make()
    applied = rewrite(document, "rules", "- say b\n\n## Money\n- A refund is billing too.\n- Other\n- Brand new.")
    assert applied.results[0].applied
    assert texts(applied.document) == ["say b", "A refund is billing too.", "Brand new."]
    assert ids(applied.document)[:2] == [ids(document)[1], ids(document)[3]]


@pytest.mark.parametrize(
    ("section", "text", "words"),
    [
        ("role", "x", "frozen"),
        ("nowhere", "x", "no section"),
        ("guidance", "word " * 31, "limit is 30"),
        ("guidance", "Take care.\n", "already"),
        ("guidance", "```\nopen", "code block"),
        ("rules", "", "no rule"),
        ("rules", "- a\x00", "U+0000"),
        ("rules", "word " * 900, "limit is 800"),
    ],
)
def test_rewrite_refused(section: str, text: str, words: str) -> None:
    document = make()
    applied = rewrite(document, section, text)
    assert not applied.results[0].applied and words in applied.results[0].message
    assert applied.document == document


def test_rewrite_slow_keeps_headings_below_its_own() -> None:
    applied = rewrite(make(), "guidance", "## Guidance\nBe brief.")
    assert applied.document.section("guidance").text == "### Guidance\nBe brief."  # type: ignore[union-attr]
    assert rewrite(make(), "guidance", "").results[0].applied


# ---- any sequence of edits ------------------------------------------------------------------------

TEXTS = st.one_of(
    st.sampled_from(
        [
            "Say a.",
            "If x:\n- y\n- z",
            "- item",
            "1. one",
            "a\n\nb",
            "```\n# c\n```",
            "## h",
            "x\n---",
            "a\n```py\nb",
            "word " * 40,
        ]
    ),
    st.text(st.sampled_from("ab#-*`~>1. \n\t_=<!\"'é漢\u2028\x00"), max_size=30),
    st.text(max_size=30),
)
RULES = st.sampled_from([*ids(make()), *ids(make(), "more"), "ffffff", "", "start"])
SECTIONS = st.sampled_from(["rules", "more", "role", "guidance", "nowhere"])
PLACES = st.one_of(st.none(), RULES)
EDITS = st.one_of(
    st.builds(Add, SECTIONS, TEXTS, st.one_of(st.none(), TEXTS), TEXTS, PLACES),
    st.builds(Replace, RULES, TEXTS, TEXTS),
    st.builds(Delete, RULES),
    st.builds(Move, RULES, PLACES),
)


@settings(max_examples=example_count(300), deadline=None)
@given(st.lists(EDITS, max_size=8), st.sampled_from([None, 10, 60]))
def test_an_edit_never_touches_a_frozen_section_and_never_misses_silently(edits: list[Edit], limit: int | None) -> None:
    before = make(limit)
    applied = apply_edits(before, edits)
    after = applied.document
    assert len(applied.results) == len(edits)
    assert after.section("role") == before.section("role")
    assert after.section("guidance") == before.section("guidance")
    assert len({rule.id for rule in after.rules}) == len(after.rules)
    for old, new in zip(before.sections, after.sections, strict=True):
        assert new.limit is None or new.tokens <= max(new.limit, old.tokens)
    if not any(report.applied for report in applied.results):
        assert after == before
    assert FROZEN in for_target(after)
    for section in after.sections:
        if section.mode == "trainable":
            assert blocks_of(section.body) == [
                MarkdownBlock(rule.topic, rule.text, rule.mark) for rule in section.rules
            ]
    again = from_skill_md(to_skill_md(after))
    assert for_target(again) == for_target(after)
    assert apply_edits(before, edits) == applied


@settings(max_examples=example_count(200), deadline=None)
@given(SECTIONS, TEXTS)
def test_a_rewrite_is_applied_whole_or_not_at_all(section: str, text: str) -> None:
    before = make(60)
    applied = rewrite(before, section, text)
    assert len(applied.results) == 1
    assert applied.results[0].applied or applied.document == before
    assert applied.document.section("role") == before.section("role")
    assert for_target(from_skill_md(to_skill_md(applied.document))) == for_target(applied.document)

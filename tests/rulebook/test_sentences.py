from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillc.models.rulebook.induce import rule_text
from skillc.models.rulebook.sentences import applies, normal, read_rules, read_sentence


def decides(rule: str, **inputs: str) -> bool:
    read = read_sentence(rule, tuple(inputs))
    assert read is not None, rule
    return applies(read, {name: normal(text) for name, text in inputs.items()})


@pytest.mark.parametrize(
    ("rule", "text", "expected"),
    [
        ('If the ticket mentions "chargeback" or "invoice", answer billing.', "Where is my INVOICE?", True),
        ('If the ticket mentions "chargeback" or "invoice", answer billing.', "Where are my invoices?", False),
        ('When the ticket contains "parcel" and "late", answer billing.', "late again", False),
        ('When the ticket contains "parcel" and "late", answer billing.', "my parcel, late again", True),
        ('If the ticket mentions "card" and not "gift card", answer billing.', "my gift card", False),
        ('If the ticket mentions "card" and not "gift card", answer billing.', "my card", True),
        ('If the ticket mentions "card", unless it mentions "gift" or "key", answer billing.', "a key card", False),
        ('If the ticket mentions "card", answer billing, unless it mentions "gift".', "a gift card", False),
        ('If the ticket mentions "card", answer billing, unless it mentions "gift".', "a card", True),
        ('If the ticket starts with "dear", choose billing.', "Dear all", True),
        ('If the ticket starts with "dear", choose billing.', "My dear all", False),
        ('If the ticket ends with "thanks", the team is billing.', "Pay. Thanks!", True),
        ("If the ticket mentions 'two words', reply with billing.", "in two-words", True),
        ("If it says “sign in” then answer `billing`.", "please SIGN IN now", True),
        ("If the ticket mentions one of card, bank account or money, answer billing.", "my bank account", True),
        ('If the ticket does not mention "x" but mentions "y", answer billing.', "y", True),
        ('If the ticket mentions "card" → billing', "card", True),
        ('If the ticket asks for "a refund", route it to billing.', "a refund", True),
        ('If the ticket mentions "say, answer x.", answer billing.', "say answer x", True),
    ],
)
def test_a_rule_applies_or_not(rule: str, text: str, expected: bool) -> None:
    read = read_sentence(rule, ("ticket",))
    assert read is not None
    assert read.answer == "billing"
    assert applies(read, {"ticket": normal(text)}) is expected


@pytest.mark.parametrize(
    "text",
    [
        "Route each ticket to one team.",
        "If the customer is angry, answer billing.",
        "If you are unsure, answer billing.",
        'Tickets that mention "x" are billing.',
        'If the ticket mentions "x".',
        "If the ticket mentions, answer billing.",
        'If the ticket does not mention "x", answer billing.',
        "",
        "Otherwise.",
    ],
)
def test_other_sentences_are_ignored(text: str) -> None:
    assert read_rules(text) == ()


@pytest.mark.parametrize("text", ["Otherwise, answer a.", "By default answer a", "If no rule applies, answer a."])
def test_defaults(text: str) -> None:
    (rule,) = read_rules(text)
    assert rule.is_default
    assert rule.answer == "a"


def test_a_field_is_looked_at_alone_and_it_means_any() -> None:
    assert not decides('If the product mentions "owl", answer a.', ticket="my owl", product="hub")
    assert decides('If it mentions "owl", answer a.', ticket="my owl", product="hub")
    assert decides('If the order number mentions "7", answer a.', order_number="no 7", ticket="")


def test_bullets_numbers_and_two_sentences_on_a_line() -> None:
    text = '# Rules\n- If it mentions "a. B", answer x. If it mentions "b", answer y.\n2. Otherwise, answer "z w".\n'
    assert [rule.answer for rule in read_rules(text)] == ["x", "y", "z w"]


@given(st.text())
def test_any_text_can_be_read(text: str) -> None:
    read_rules(text, ("ticket",))


GRAMMAR = [
    "and",
    "or",
    "not",
    "unless",
    "has",
    "names",
    "the",
    "word",
    "one",
    "of",
    "answer",
    "label",
    "is",
    "it",
    "if",
]
WORDS = st.from_regex(r"[a-z]{2,8}", fullmatch=True) | st.sampled_from(GRAMMAR)
SIGNS = st.lists(st.lists(WORDS, min_size=1, max_size=2).map(" ".join), min_size=1, max_size=9, unique=True)


@given(SIGNS, st.sampled_from(["billing", "tech support", "Lu", "n/a"]))
def test_what_rulebook_writes_it_reads(signs: list[str], label: str) -> None:
    rule = read_sentence(rule_text("the_field", signs, label), ("the_field",))
    assert rule is not None
    assert rule.answer == label
    assert [trigger for group in rule.clauses for trigger in group.triggers] == [normal(sign) for sign in signs]
    assert rule.clauses[0].field == "the_field"


@pytest.mark.parametrize("label", ["tool", "italy", "asset", "within", "themed", "thistle", "assistant"])
@pytest.mark.parametrize("verb", ["answer", "answer with", "route it to", "label this as"])
def test_a_label_that_begins_like_a_small_word_stays_whole(verb: str, label: str) -> None:
    (rule,) = read_rules(f'If the text mentions "saw", {verb} {label}.')
    assert rule.answer == label

"""The sentences that say where in an input an answer is: read, followed, written and induced."""

from __future__ import annotations

import json
from collections.abc import Sequence

import dspy
import pytest
from hypothesis import given
from hypothesis import strategies as st
from prompt_parts import prompt

from skillc.document.skill import Document, Rule, Section, for_optimizer
from skillc.models.rulebook import answer
from skillc.models.rulebook.copying import ORDINALS, CopyRule, copied_texts, copy_rule_text, number_of, read_copy_rule
from skillc.models.rulebook.sentences import read_rules
from skillc.models.rulebook.target import read_skill
from skillc.optimize.propose.prompting import TrajectoryView, reflect_messages
from skillc.optimize.propose.replies import ProposedEdit, ReflectReply, read_reply
from skillc.plan.schema import FieldPlan, TaskPlan, TypePlan

TEXT = "Dear Anna Berg,\nORDER INV-204 of 2026-05-31, shipped in Ghent, today.\nTotal: 1,200.50 EUR for 12 lamps"


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        ("Answer total with the first number.", "204"),
        ("Answer total with the last number.", "12"),
        ('Answer total with the number after "Total:".', "1,200.50"),
        ('Answer total with the number after "total:" in the note.', "1,200.50"),
        ('Answer amount with the number before "lamps".', "12"),
        ('Take city from the text between "in" and ",".', "Ghent"),
        ('Take price from the rest of the line after "Total:".', "1,200.50 EUR for 12 lamps"),
        ('Answer date with the first text that looks like "1999-01-20".', "2026-05-31"),
        ("Answer date with the first text that looks like 1999-01-20.", "2026-05-31"),
        ('For id, copy the text that looks like "AB-1".', "INV-204"),
        ('Answer customer with the name after "Dear".', "Anna Berg"),
        ('Answer id with the word after "order".', "INV-204"),
        ("Answer greeting with the first line.", "Dear Anna Berg,"),
        ('If the note mentions "shipped", take city from the text between "in" and ",".', "Ghent"),
    ],
)
def test_a_sentence_names_a_place(sentence: str, expected: str) -> None:
    take = read_copy_rule(sentence, ("note",))
    assert take is not None
    assert copied_texts(take, {"note": TEXT}) == [expected]


@pytest.mark.parametrize(
    "sentence",
    [
        'Answer total with the number after "Sum:".',
        'If the note mentions "cancelled", answer total with the first number.',
        'Take city from the text between "at" and "!".',
    ],
)
def test_a_place_that_is_not_there_is_no_answer(sentence: str) -> None:
    take = read_copy_rule(sentence, ("note",))
    assert take is not None
    assert copied_texts(take, {"note": TEXT}) == []


def test_every_gives_a_list() -> None:
    take = read_copy_rule("Answer amounts with every number.")
    assert take is not None
    assert copied_texts(take, {"note": "3 of 4, then 5"}) == ["3", "4", "5"]


@pytest.mark.parametrize(
    "text",
    [
        "Given the receipt, answer with the total (with tax, in euros): a number.",
        "Given the letter, answer with the fields (with the keys `name`, `street` and `city`): a JSON object.",
        'Answer with the team: one of "billing", "shipping" or "account".',
        "- `orders`: a JSON list of whole numbers",
        "Answer with the number only.",
        "Follow the rules below; they come before your own judgement.",
        "Follow the rules below. If several rules fit and none says which, the first one decides.",
        "Follow the rules below. If several rules for one field fit and none says which, the first one decides.",
    ],
)
def test_the_text_of_the_task_is_no_rule(text: str) -> None:
    read = read_skill(text, ("receipt",))
    assert (read.rules, read.copies, read.majority) == ((), (), False)


def test_a_sentence_with_a_place_is_no_rule_with_an_answer() -> None:
    assert read_rules('If the note mentions "x", answer total with the number after "Total:".', ("note",)) == ()


ANCHORS = st.text("abcXYZ :,#.-/", min_size=1, max_size=9).map(str.strip).filter(bool)
NAMES = st.sampled_from(["total", "order_id", "orderId", "due date", "Name"])
FIELDS = st.sampled_from([None, "note", "the_mail"])
SHAPES = st.sampled_from(["2024-05-31", "AB-12", "a@b.org"])
COPY_RULES = st.one_of(
    st.builds(
        CopyRule,
        NAMES,
        st.sampled_from(["number", "word", "name", "line"]),
        st.sampled_from([*ORDINALS, "last", "every"]),
    ),
    st.builds(
        CopyRule, NAMES, st.sampled_from(["number", "word"]), where=st.sampled_from(["after", "before"]), anchor=ANCHORS
    ),
    st.builds(CopyRule, NAMES, st.just("between"), anchor=ANCHORS, end=ANCHORS, field=FIELDS),
    st.builds(CopyRule, NAMES, st.just("rest"), anchor=ANCHORS, field=FIELDS),
    st.builds(
        CopyRule, NAMES, st.just("shape"), shape=st.sampled_from(["2024-05-31", "AB-12", "a@b.org"]), field=FIELDS
    ),
)


@given(COPY_RULES)
def test_what_rulebook_writes_of_places_it_reads(rule: CopyRule) -> None:
    assert read_copy_rule(copy_rule_text(rule), ("note", "the_mail")) == rule


@pytest.mark.parametrize(
    ("text", "number"),
    [("1,200.50", 1200.5), ("1.200,50", 1200.5), ("1,200", 1200), ("3,5", 3.5), ("-7 °C", -7), ("none", None)],
)
def test_numbers_are_read_as_people_write_them(text: str, number: float | None) -> None:
    assert number_of(text) == number


class Order(dspy.Signature):
    note: str = dspy.InputField()
    order: dict[str, object] = dspy.OutputField()
    urgent: bool = dspy.OutputField()
    total: float = dspy.OutputField()


def test_the_target_fills_json_booleans_and_numbers() -> None:
    skill = """- Take city from the text between "in" and ",".
- Answer amount with the number before "lamps".
- If the note mentions "today", answer priority with high.
- Otherwise, answer priority with normal.
- If the note mentions "shipped", answer urgent with true.
- Answer total with the number after "Total:".
"""
    for adapter in (dspy.ChatAdapter(), dspy.JSONAdapter()):
        sent = adapter.format(Order.with_instructions(skill), [], {"note": TEXT})
        assert adapter.parse(Order, answer(sent)) == {
            "order": {"city": "Ghent", "amount": 12, "priority": "high"},
            "urgent": True,
            "total": 1200.5,
        }


def task(*outputs: tuple[str, TypePlan]) -> TaskPlan:
    note = FieldPlan(name="note", type=TypePlan(kind="text"), column="note")
    return TaskPlan(inputs=(note,), outputs=tuple(FieldPlan(name=n, type=t, column=n) for n, t in outputs))


def learned(plan: TaskPlan, cases: Sequence[tuple[str, str]], *rules: str) -> list[ProposedEdit]:
    held = tuple(Rule(f"a{i}", text) for i, text in enumerate(rules, 1))
    document = Document("s", "about", (Section("rules", "trainable", rules=held, limit=900),))
    views = [TrajectoryView(f"t{i}", {"note": n}, "?", gold, None, None, "0") for i, (n, gold) in enumerate(cases, 1)]
    messages = prompt(
        reflect_messages, kind="failures", skill=for_optimizer(document), task=plan, trajectories=views, edit_budget=8
    )
    return list(read_reply(ReflectReply, answer(messages)).edits)


RECEIPTS = [
    ("2 cups\nTotal: 7.50 EUR, card 1234", "7.5"),
    ("1 plate, 3 forks\nTotal: 12.00 USD", "12"),
    ("thanks 8 times\nTotal: 1,150.00 GBP, room 9", "1150"),
]


def test_a_number_is_found_by_the_words_around_it() -> None:
    edits = learned(task(("total", TypePlan(kind="number"))), RECEIPTS)
    assert 'Answer total with the number after "Total:".' in {edit.text for edit in edits}
    assert edits[0].cures == ("t1", "t2", "t3")
    assert edits[0].rationale == "right in 3 of 3 cases"


def test_a_second_place_is_put_where_the_first_finds_nothing() -> None:
    cases = [*RECEIPTS, ("sum due 5 EUR on 7 May", "5"), ("sum due 9 EUR, until 8", "9")]
    present = 'Answer total with the number after "Total:".'
    (edit,) = learned(task(("total", TypePlan(kind="number"))), cases[3:], present)
    assert (edit.op, edit.after, edit.cures) == ("add", "end", ("t1", "t2"))
    assert read_copy_rule(edit.text) is not None


def test_json_is_learned_key_by_key() -> None:
    places = ["Ghent", "Graz", "Oslo", "Leeds"]
    cases = [
        (f"To {place} street {i}. {'Please hurry' if i % 2 else 'Slowly'}!", {"city": place, "fast": bool(i % 2)})
        for i, place in enumerate(places)
    ]
    edits = learned(task(("order", TypePlan(kind="json"))), [(note, json.dumps(gold)) for note, gold in cases])
    texts = {edit.text for edit in edits}
    assert any(
        text.startswith(("Answer city with the word", "Answer city with the name", "Take city")) for text in texts
    )
    assert 'If the note mentions "hurry", answer fast with true.' in texts
    for edit in edits:
        assert read_copy_rule(edit.text, ("note",)) or read_rules(edit.text, ("note",))


def test_one_case_is_no_reason_for_a_place_and_a_sum_is_none() -> None:
    total = task(("total", TypePlan(kind="number")))
    assert learned(total, [("2 and 3", "5"), ("10 and 4", "14"), ("1 and 1", "2"), ("3 and 9", "12")]) == []


def test_a_place_beside_a_label() -> None:
    both = task(("kind", TypePlan(kind="labels", labels=("bill", "gift"))), ("total", TypePlan(kind="number")))
    cases = [
        ("invoice, Total: 7 EUR 2", '{"kind": "bill", "total": 7}'),
        ("an invoice, Total: 9 EUR 3", '{"kind": "bill", "total": 9}'),
        ("a present, Total: 4 EUR 4", '{"kind": "gift", "total": 4}'),
        ("the present, Total: 3 EUR 3", '{"kind": "gift", "total": 3}'),
    ]
    texts = {edit.text for edit in learned(both, cases)}
    assert 'If the note mentions "invoice", answer kind with bill.' in texts
    assert any(text.startswith("Answer total with the") for text in texts)

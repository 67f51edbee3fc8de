"""The evaluation's cases: what each condition of the card tests is in its documents, on both sides."""

import random

import pytest
from local_model.making import prompts
from local_model.making.conditions import CONDITIONS, case
from local_model.making.forms import SLOTS, Forms, grouped
from local_model.making.rules import Rule, deciding

UNMET = [condition for condition in CONDITIONS if condition.unmet]
RULES = (
    Rule("any", ("alpha", "beta"), "red"),
    Rule("both", ("gamma", "delta"), "blue"),
    Rule("except", ("zeta", "eta"), "red"),
    Rule("default", (), "green"),
)


def test_each_name_is_used_once():
    names = [condition.name for condition in CONDITIONS]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("condition", CONDITIONS, ids=lambda condition: condition.name)
def test_a_case_is_the_same_each_time_and_asks_for_a_label_that_is_offered(condition):
    one = case(condition, 3, 7)
    assert one == case(condition, 3, 7)
    system, user = (message["content"] for message in one.messages)
    label = one.reply.splitlines()[1] if condition.prompt != "plain" else one.reply
    assert label in system
    assert (repr(label) in user) == (condition.prompt != "plain")


@pytest.mark.parametrize("kind", ["both", "except"])
def test_each_kind_of_rule_is_tested_where_it_holds_and_where_it_does_not(kind):
    of_kind = [condition for condition in CONDITIONS if condition.kind == kind]
    assert {bool(condition.unmet) for condition in of_kind} == {True, False}
    assert {condition.instead for condition in of_kind if condition.unmet} == {"default", "rule"}


@pytest.mark.parametrize("condition", UNMET, ids=lambda condition: condition.name)
def test_where_a_condition_fails_the_near_rule_would_answer_otherwise(condition, monkeypatch):
    """A model that takes `and` for `or`, ignores exceptions, or finds words in words is wrong on every one."""
    from local_model.making import conditions as module

    seen, fooled = [], 0
    made = module._unmet
    monkeypatch.setattr(module, "_unmet", lambda *given: seen.append(made(*given)) or seen[-1])
    for number in range(20):
        seen.clear()
        module.case(condition, number, 7)
        (found,) = [each for each in seen if each is not None]
        text = "\n".join(found.texts)
        if condition.unmet in ("inside", "in the skill"):
            words = [trigger.lower() for rule in found.rules for trigger in rule.triggers]
            fooled += any(word in (text + found.aside).lower() for word in words)
        elif condition.unmet == "present":
            fooled += found.rules[-2].triggers[0] in text.lower()
        else:
            careless = [Rule("any", rule.triggers, rule.label) if rule.triggers else rule for rule in found.rules]
            fooled += careless[deciding(careless, text)].label != found.rules[found.decides].label
    # Two rules share a word now and then.
    assert fooled >= 18


@pytest.mark.parametrize("form", ["arrows", "table", "headings", "series"])
def test_a_form_holds_all_words_and_labels_of_its_rules(form):
    from local_model.making.conditions import source_of

    source = source_of("new")
    for number in range(30):
        rules = grouped(RULES) if form == "headings" else RULES
        written = Forms(random.Random(number), source, {"N": "ticket", "O": "team"}).blocks(form, rules)
        text, places = prompts.places("\n\n".join(written))
        for at, rule in enumerate(rules):
            first = next(n for n, other in enumerate(rules) if other.label == rule.label) if form == "headings" else at
            for slot, word in enumerate((rule.label, *rule.triggers)):
                start, end = places[(at if slot else first) * SLOTS + slot]
                assert text[start:end] == word


def test_headings_show_the_rules_of_a_label_together():
    assert [rule.label for rule in grouped(RULES)] == ["red", "red", "blue", "green"]

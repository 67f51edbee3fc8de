"""The documents that the local model is trained and tested on: their answers are right, and the two share nothing."""

import random
import re
from dataclasses import replace
from pathlib import Path

import dspy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from local_model.making import phrasings, prompts, sources, words
from local_model.making.documents import document
from local_model.making.rules import Rule, deciding
from local_model.making.sources import Level, training_source
from thorough import example_count

from skillc.frontend import plan_file
from skillc.models.rulebook.sentences import applies, normal, read_rules
from skillc.plan.initial import lead_text, task_text
from skillc.program.module import SkillModule
from skillc.program.names import instructions

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "local_model"
PLACEHOLDERS = {
    "any": {"T", "L"},
    "both": {"A", "B", "L"},
    "except": {"T", "B", "L"},
    "starts": {"T", "L"},
    "ends": {"T", "L"},
    "default": {"L"},
    "first": set(),
    "unless": {"T", "B", "L"},
    "but_not": {"T", "B", "L"},
    "only_if": {"A", "B", "L"},
    "without": {"T", "L"},
    "field": {"T", "L", "N"},
    "noun_any": {"T"},
    "noun_both": {"A", "B"},
    "noun_except": {"T", "B"},
    "noun_default": set(),
    "arrow": {"C", "L"},
    "columns": set(),
    "series": {"C", "L"},
}


def templates(folder):
    return phrasings.sections(EXAMPLE / folder / "phrasings.txt")


@pytest.mark.parametrize("folder", ["making", "evaluation"])
def test_each_phrasing_has_its_placeholders_once(folder):
    for kind, lines in templates(folder).items():
        for line in lines:
            found = re.findall(r"\{(\w+)\}", line)
            assert set(found) - {"N", "O"} == PLACEHOLDERS[kind] - {"N", "O"}, line
            assert all(found.count(name) == 1 for name in PLACEHOLDERS[kind]), line
            assert "[" not in phrasings.expand(line, random.Random(1)), line


def test_there_are_hundreds_of_phrasings_and_the_evaluation_has_none_of_them():
    trained, new = templates("making"), templates("evaluation")
    assert len(trained["any"]) >= 200
    assert len(new["any"]) >= 80

    def every(sections):
        chance = random.Random(2)
        expanded = (phrasings.expand(line, chance) for lines in sections.values() for line in lines for _ in range(20))
        return {re.sub(r"\W+", " ", line.lower()).strip() for line in expanded}

    shared = every(trained) & every(new)
    # Terse notes such as `{L}: {T}` leave little room to differ.
    assert all(len(line.split()) <= 6 for line in shared), shared


@pytest.mark.parametrize("pieces", [0.0, 0.6])
def test_no_kept_word_is_drawn_in_training(pieces):
    chance = random.Random(3)
    for _ in range(3000):
        for drawn in (sources.training_word(chance, pieces), sources.training_label(chance, pieces)):
            assert not [part for part in re.findall(r"[a-z]{4,}", drawn.lower()) if words.kept(part)]
    assert not set(words.training()) & set(words.evaluation())
    assert all(words.kept(words.invented_kept(chance)) for _ in range(50))


def test_no_label_of_the_evaluation_is_made_of_words_of_the_training():
    labels = (EXAMPLE / "evaluation" / "labels.txt").read_text().split()
    parts = {part for label in labels for part in re.findall(r"[a-z]{3,}", label.lower())}
    assert len(labels) > 100
    assert not parts & {*words.training(), *sources._nouns()}


@settings(max_examples=example_count(60), deadline=None)
@given(st.integers(0, 10**9))
def test_places_and_answers_are_those_of_the_rules(seed):
    level = Level(odd=0.3, bare=0.1)
    if seed % 2:
        level = replace(level, forms=0.4, written=0.4, pages=0.7)
    made = document(random.Random(seed), level, training_source())
    for (number, slot), (start, end) in made.places.items():
        rule = made.rules[number]
        wanted = rule.triggers[slot - 1] if slot else rule.label
        assert made.system[start:end].lower() == wanted.lower()
    assert all((number, 0) in made.places for number in range(len(made.rules)))
    for query in made.queries:
        text = query.user[slice(*query.text)]
        number = deciding(made.rules, text)
        assert query.rule == number
        assert query.label in made.task.labels
        if number is not None:
            assert query.label == made.rules[number].label
        for start, end, rule, slot in query.hits:
            assert query.user[start:end].lower() == made.rules[rule].triggers[slot - 1].lower()


@pytest.mark.parametrize(
    ("rule", "text", "holds"),
    [
        (Rule("any", ("card", "gift"), "a"), "A Card, please", True),
        (Rule("any", ("card",), "a"), "cards and discard", False),
        (Rule("any", ("gift card",), "a"), "a card as a gift", False),
        (Rule("both", ("late", "parcel"), "a"), "my parcel is late", True),
        (Rule("both", ("late", "parcel"), "a"), "my parcel", False),
        (Rule("except", ("card", "gift"), "a"), "the card", True),
        (Rule("except", ("card", "gift"), "a"), "the gift card", False),
        (Rule("starts", ("hello",), "a"), "  - Hello you", True),
        (Rule("ends", ("bye",), "a"), "and bye!", True),
        (Rule("ends", ("bye",), "a"), "bye bye love", False),
        (Rule("without", ("bye",), "a"), "hello", True),
        (Rule("without", ("bye",), "a"), "bye", False),
        (Rule("any", ("car",), "a"), "the cargo of a scar", False),
    ],
)
def test_when_a_rule_holds(rule, text, holds):
    assert (deciding([rule], text) == 0) is holds


def test_the_first_rule_wins_and_a_default_waits_for_all():
    rules = [Rule("default", (), "d"), Rule("any", ("b",), "1"), Rule("any", ("a",), "2")]
    assert deciding(rules, "a b") == 1
    assert deciding(rules, "a") == 2
    assert deciding(rules, "c") == 0
    assert deciding(rules[1:], "c") is None


def test_a_rule_that_names_an_input_searches_that_one_only():
    rules = [Rule("any", ("a",), "1", "page"), Rule("any", ("a",), "2")]
    assert deciding(rules, "a\nb", {"page": "b", "chat": "a"}) == 1
    assert deciding(rules, "a\nb", {"page": "a", "chat": "b"}) == 0


def test_the_rulebook_reads_the_sentences_that_are_called_its_own():
    conditions = (EXAMPLE / "making" / "conditions.py").read_text()
    own = re.findall(r'^    "(.*\{L\}\.?)",$', conditions, re.MULTILINE)
    assert len(own) == 8
    for line in own:
        text = phrasings.fill(line, {"N": "ticket", "O": "team", "L": "sales", "T": '"gift card" or "quote"'})
        (rule,) = read_rules(text, ("ticket",))
        assert rule.answer == "sales", text
        assert applies(rule, {"ticket": normal("a quote, please")}), text
        assert not applies(rule, {"ticket": normal("a gift, please")}), text


@pytest.mark.parametrize("skill", ['# Route\n\n## Rules\n\n- If the ticket mentions "a", answer billing.\n\nDone.', ""])
def test_prompts_are_those_that_a_rollout_sends(skill):
    plan = plan_file(EXAMPLE.parent / "tickets" / "tickets.skill").plan
    ticket = "It's late.\n\nPlease [[hurry]]"
    (given_,), (output,) = plan.task.inputs, plan.task.outputs
    task = prompts.Task("ticket", "team", given_.about, tuple(output.type.labels))
    assert prompts.task_text(task) == task_text(plan.task)
    assert lead_text(plan.skill, plan.task) == prompts.LEAD
    body = prompts.page(task, skill) if skill else None
    module = SkillModule(plan.task, plan.skill.name, instructions(plan.task, body))
    adapter = dspy.ChatAdapter(use_json_adapter_fallback=False)
    system, user = adapter.format(module.answer.signature, [], {"ticket": ticket})
    assert system["content"] == prompts.page_system(task, skill)
    assert user["content"] == prompts.chat_user(task, ticket)
    reply = "".join(prompts.chat_reply(task, "sales"))
    assert adapter.parse(module.answer.signature, reply) == {"team": "sales"}


def test_a_prompt_of_two_inputs_is_that_of_the_adapter():
    signature = dspy.Signature("page, chat -> team: Literal['sales', 'legal']", "Do it.")
    adapter = dspy.ChatAdapter(use_json_adapter_fallback=False)
    system, user = adapter.format(signature, [], {"page": "one", "chat": "two"})
    task = prompts.Task("page", "team", "", ("sales", "legal"), ("chat",))
    upper = system["content"].split("your objective is:")[0]
    assert prompts.chat_system(task, "# A").startswith(upper)
    assert user["content"] == prompts.chat_user(task, "one", "two")

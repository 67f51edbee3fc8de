"""The tokenizer of the local model: a word is one code wherever it stands, and what it writes is what was read."""

import random
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st
from local_model.making import prompts, sources, tokenizer, words
from tokenizers.decoders import DecodeStream


@cache
def shared():
    return tokenizer.build()


@pytest.fixture
def made():
    return shared()


def test_it_is_the_same_each_time(made):
    assert tokenizer.build().to_str() == made.to_str()


@pytest.mark.parametrize(
    "around", ["a {} b", '"{}"', "{}", "\n{}\n", "({}),", "**{}**", "`{}`", "{}: x", "{}.", "['{}']"]
)
def test_a_word_is_the_same_tokens_wherever_it_stands(made, around):
    for word in ("invoice", "refund", "gift", "thermostat", words.training()[0]):
        alone = made.encode(word).ids
        found = made.encode(around.format(word)).ids
        assert any(found[at : at + len(alone)] == alone for at in range(len(found)))


def test_the_first_stage_writes_a_capital_as_a_mark_before_the_same_word():
    first = tokenizer.build(marks=True)
    assert first.encode("Invoice").tokens == [tokenizer.MARK, *first.encode("invoice").tokens]


@pytest.mark.parametrize("word", ["invoice", "refund", "thermostat", "obliging", words.training()[0]])
def test_a_word_with_capitals_is_as_many_tokens_and_each_knows_that_in_lower_case(made, word):
    lower, twins = made.encode(word).tokens, tokenizer.twins()
    for written in (word.capitalize(), word.upper()):
        tokens = made.encode(written).tokens
        assert [twins.get(token, token) for token in tokens] == lower
        assert made.decode(made.encode(written).ids) == written


@pytest.mark.parametrize("label", ["Q&A", "Gift & Card", "A/B", "gift (card)", "gift+", "L12", "B-3", "iOS", "HR"])
def test_a_label_with_signs_or_capitals_comes_back_as_it_was(made, label):
    assert made.decode(made.encode(label).ids) == label


def test_what_the_adapter_writes_is_one_token(made):
    task = prompts.Task("ticket", "team", "as it came", ("billing", "sales"))
    for text in (prompts.chat_system(task, "# A"), prompts.chat_user(task, "Hello")):
        assert made.encode(text).tokens.count(tokenizer.UNKNOWN) == 0
    assert len(made.encode(prompts.chat_user(task, "hello")).ids) < 40


def lines(text):
    return [line.strip() for line in text.splitlines()]


def test_replies_come_back_as_they_were(made):
    chance = random.Random(5)
    for _ in range(500):
        label = sources.training_label(chance)
        if "/ " in label or " /" in label:
            continue
        task = prompts.Task("ticket", chance.choice(["team", "ticket_type"]), "", (label, "other"))
        reply = "".join(prompts.chat_reply(task, label))
        assert lines(made.decode(made.encode(reply).ids)) == lines(reply)


def test_a_stream_of_tokens_gives_the_same_text(made):
    ids = made.encode("[[ ## team ## ]]\nGift Card-X of iOS\n\n[[ ## completed ## ]]").ids
    stream = DecodeStream(skip_special_tokens=True)
    assert "".join(stream.step(made, each) or "" for each in ids) == made.decode(ids)


@given(st.text())
def test_no_text_is_too_much(text):
    shared().decode(shared().encode(text).ids)

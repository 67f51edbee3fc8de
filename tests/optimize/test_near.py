"""Examples that read alike are found by the words of their inputs."""

from skillc.optimize.propose.near import Alike, Near
from skillc.outcomes import Example


def example(name, **inputs):
    return Example(name, inputs, {"answer": "x"}, {}, name)


SPLIT = [
    example("cat", text="the cat sat on the mat"),
    example("dog", text="a dog ran far"),
    example("both", text="a cat and a dog"),
    example("empty", text=""),
    example("again", text="The CAT sat on the mat!"),
    example("nested", text={"said": ["a dog", 3]}),
]
ALL = {each.id for each in SPLIT}


def names(found):
    return [each.id for each in found]


def test_the_nearest_come_first_and_the_example_itself_is_left_out():
    assert names(Near(SPLIT).to(SPLIT[0], 2, among=ALL)) == ["again", "both"]


def test_only_what_may_be_found_is_found():
    assert names(Near(SPLIT).to(SPLIT[1], 5, among={"cat", "nested"})) == ["nested", "cat"]
    assert Near(SPLIT).to(SPLIT[1], 5, among=()) == []
    assert Near(SPLIT).to(SPLIT[1], 0, among=ALL) == []


def test_without_a_common_word_the_order_is_that_of_the_split():
    assert names(Near(SPLIT).to(example("q", text="zebra"), 3, among=ALL)) == ["cat", "dog", "both"]
    assert names(Near(SPLIT).to(SPLIT[3], 2, among=ALL)) == ["cat", "dog"]
    assert names(Near([SPLIT[3], example("e", text="...")]).to(SPLIT[0], 2, among={"e"})) == ["e"]


def test_texts_are_alike_by_the_words_that_set_them_apart():
    rules = ["If it says refund, answer.", "If it says parcel, answer."]
    again, other = Alike(rules).within("Where it says refund or money, answer.")
    assert again == 1.0
    assert other < 0.5
    # A rule of the skill shows that `says` is how rules are worded.
    lone = Alike(rules[1:]).within(rules[0])
    assert Alike(rules[1:], ["If it says horse, answer."]).within(rules[0]) < lone
    assert Alike(["", "the of"]).within("a") == [0.0, 0.0]

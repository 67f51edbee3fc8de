"""Which sessions a rule is from and which it cites, by the decisions that write it."""

import pytest

from skillc.document.edits import Add, Delete, Replace, apply_edits
from skillc.document.skill import Document, Section, digest
from skillc.optimize.screen.candidates import apply_and_report
from skillc.plan.lock import text_key
from skillc.provenance.rules import RuleSessions, sessions_of_rules

EVERY = "abcd"


def skill():
    return Document("imitate", "about", (Section("rules", "trainable"), Section("guidance", "slow")))


def step(before, edits, sessions, cited=(), **more):
    """A candidate with its accepted decision; an edit without an entry in `cited`, or with None, names no case."""
    document, rows = apply_and_report(before, edits)
    named = [*cited, *([None] * (len(edits) - len(cited)))]
    rows = [
        {**row, "sessions": read, **({"cited": own} if own is not None else {})}
        for row, read, own in zip(rows, sessions, named, strict=True)
    ]
    line = {"result": "accept", "incumbent": digest(before), "candidate": digest(document), "edits": rows, **more}
    return document, line


def found(lines, start, best, known=None):
    return sessions_of_rules(lines, start, best, EVERY, known or {})


def of(read, cited="", before=""):
    """The sessions of a rule; each letter is one."""
    return RuleSessions(frozenset(read), frozenset(cited), frozenset(before))


def test_each_rule_has_the_sessions_of_its_edit_and_a_replaced_one_those_of_both():
    start = skill()
    one, first = step(start, (Add("rules", "One."), Add("rules", "Two.")), (["a"], ["b"]))
    two, second = step(one, (Replace(one.rules[0].id, "One and more."),), (["c"],))
    rejected = {
        **second,
        "result": "reject",
        "candidate": "other",
        "edits": [{**second["edits"][0], "sessions": ["d"]}],
    }
    got = found([first, rejected, second], start, two)
    assert got == {text_key("One and more."): of("ac"), text_key("Two."): of("b")}


def test_a_merged_rule_has_the_sessions_of_all_its_parents_and_cites_none():
    start = skill()
    one, first = step(start, (Add("rules", "One."), Add("rules", "Two.")), (["a"], ["b"]), (["a"], ["b"]))
    edits = (Replace(one.rules[0].id, "Both."), Delete(one.rules[1].id))
    two, second = step(one, edits, ([], []), kind="tidy")
    assert found([first, second], start, two) == {text_key("Both."): of("ab")}


def test_a_rule_that_no_decision_explains_is_from_all_and_one_by_hand_from_none():
    start = skill()
    made = apply_edits(start, (Add("rules", "Unexplained."),)).document
    assert found([], start, made) == {text_key("Unexplained."): of(EVERY)}
    assert found([], made, made) == {}
    known = {text_key("Unexplained."): of("ab", "a")}
    assert found([], made, made, known) == known
    # Its words are others than those that a decision gave it.
    changed = apply_edits(made, (Replace(made.rules[0].id, "Send all."),)).document
    assert found([], made, changed, known) == {text_key("Send all."): of(EVERY)}


def test_a_rule_that_names_all_is_not_recorded_like_one_that_names_none():
    start = skill()
    edits = (Add("rules", "One."), Add("rules", "Two."), Add("rules", "Three."))
    one, first = step(start, edits, (["a", "b"],) * 3, (["b"], ["a", "b"]), maker="draft")
    assert found([first], start, one) == {
        text_key("One."): of("ab", "b"),
        text_key("Two."): of("ab", "ab"),
        text_key("Three."): of("ab", ""),
    }


@pytest.mark.parametrize("more", [{}, {"maker": "draft"}, {"suggestions": []}, {"kind": "tidy"}])
def test_a_replacement_that_names_no_case_does_not_inherit_those_of_the_rule_before_it(more):
    start = skill()
    one, first = step(start, (Add("rules", "One."),), (["a", "b", "c"],), (["a", "b"],))
    two, second = step(one, (Replace(one.rules[0].id, "Send all."),), (["c"],), **more)
    assert found([first, second], start, two) == {text_key("Send all."): of("abc")}
    # Nor does one that a later compile makes of the rule of a lock.
    later = found([second], one, two, found([first], start, one))
    assert later[text_key("Send all.")].cited == frozenset()


@pytest.mark.parametrize("more", [{}, {"maker": "draft"}, {"suggestions": []}])
def test_a_replacement_that_names_cases_cites_those_alone_and_knows_what_the_rule_before_it_cited(more):
    start = skill()
    one, first = step(start, (Add("rules", "One."),), (["a", "b", "c"],), (["a", "b"],))
    two, second = step(one, (Replace(one.rules[0].id, "One and more."),), (["c", "d"],), (["d"],), **more)
    three, third = step(two, (Replace(one.rules[0].id, "Send all."),), (["c"],), (["c"],), **more)
    key = text_key("One and more.")
    assert found([first, second], start, two)[key] == of(EVERY, "d", "ab")
    key = text_key("Send all.")
    assert found([first, second, third], start, three)[key] == of(EVERY, "c", "abd")


def test_what_a_rule_that_names_none_was_read_from_counts_as_cited_before_its_replacement():
    start = skill()
    one, first = step(start, (Add("rules", "One."),), (["a", "b"],))
    two, second = step(one, (Replace(one.rules[0].id, "One and more."),), (["c", "d"],), (["d"],))
    assert found([first, second], start, two)[text_key("One and more.")] == of(EVERY, "d", "ab")


@pytest.mark.parametrize("more", [{}, {"maker": "draft"}, {"kind": "tidy"}])
@pytest.mark.parametrize("text", ["One  two", "- one two!", "1. One two."])
def test_a_rule_with_the_same_words_keeps_what_it_had(text, more):
    start = skill()
    one, first = step(start, (Add("rules", "One two."),), (["a", "b"],), (["b"],))
    two, second = step(one, (Replace(one.rules[0].id, text),), (["c"],), **more)
    assert [each.applied for each in apply_edits(one, (Replace(one.rules[0].id, text),)).results] == [True]
    kept = found([first, second], start, two)[text_key(two.rules[0].text)]
    assert kept == of("abc", "b")
    # Cases that are named for the same words are further ones.
    two, second = step(one, (Replace(one.rules[0].id, text),), (["c"],), (["c"],), **more)
    assert found([first, second], start, two)[text_key(two.rules[0].text)].cited == {"b", "c"}


def test_a_rule_that_is_deleted_and_added_again_with_the_same_words_keeps_what_it_had():
    start = skill()
    one, first = step(start, (Add("rules", "One."), Add("rules", "Two.")), (["a", "b"],) * 2, (["b"], ["a"]))
    edits = (Delete(one.rules[0].id), Add("rules", "One"), Add("rules", "Three."))
    two, second = step(one, edits, (["c"],) * 3, maker="draft")
    after = found([first, second], start, two)
    assert after[text_key("One")].cited == {"b"} and after[text_key("Two.")].cited == {"a"}
    assert after[text_key("Three.")].cited == frozenset()


def test_a_changed_place_of_a_script_cites_what_its_own_edit_names():
    start = Document("imitate", "about", (Section("run", "trainable", file="scripts/run.py"),))
    start = start.with_section(Section("run", "trainable", rules=script("print(1)\n"), file="scripts/run.py"))
    known = {text_key("print(1)\n"): of("ab", "ab")}
    for cited, after in (((), set()), ((["c"],), {"c"})):
        two, line = step(start, (Replace(start.rules[0].id, "2", old="1"),), (["c"],), cited)
        assert two.rules[0].text == "print(2)\n"
        assert found([line], start, two, known)[text_key("print(2)\n")].cited == after


def script(text):
    from skillc.document.skill import Rule

    return (Rule("5c71b7", text),)


def test_a_rewritten_section_without_edits_has_the_sessions_of_both_and_cites_none():
    start = skill().with_section(Section("guidance", "slow", text="Be brief."))
    best = start.with_section(Section("guidance", "slow", text="Be very brief."))
    line = {"result": "accept", "incumbent": digest(start), "candidate": digest(best), "section": "guidance"}
    line |= {"guidance": "Be very brief.", "sessions": ["c"]}
    known = {text_key("Be brief."): of("ab", "b")}
    assert found([line], start, best, known) == {text_key("Be very brief."): of("abc")}
    assert found([], start, start, known) == {text_key("Be brief."): of("ab", "b")}
    # Another method rewrites it without saying who read what.
    assert found([], start, best, known) == {text_key("Be very brief."): of(EVERY)}

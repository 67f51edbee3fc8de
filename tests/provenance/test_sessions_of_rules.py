"""Which sessions a rule is from, by the decisions that wrote it."""

from skillc.document.edits import Add, Delete, Replace, apply_edits
from skillc.document.skill import Document, Section, digest
from skillc.plan.lock import text_key
from skillc.provenance.rules import sessions_of_rules


def skill():
    return Document("imitate", "about", (Section("rules", "trainable"), Section("guidance", "slow")))


def step(before, edits, sessions, **more):
    after = apply_edits(before, edits)
    rows = []
    for edit, report, keys in zip(edits, after.results, sessions, strict=True):
        op = {Add: "add", Replace: "replace", Delete: "delete"}[type(edit)]
        rows.append({"op": op, "rule": report.rule, "sessions": keys})
    line = {"result": "accept", "incumbent": digest(before), "candidate": digest(after.document), "edits": rows, **more}
    return after.document, line


def found(lines, start, best, known=None):
    return sessions_of_rules(lines, start, best, ["a", "b", "c", "d"], known or {})


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
    assert got == {text_key("One and more."): ("a", "c"), text_key("Two."): ("b",)}


def test_a_merged_rule_has_the_sessions_of_all_its_parents():
    start = skill()
    one, first = step(start, (Add("rules", "One."), Add("rules", "Two.")), (["a"], ["b"]))
    edits = (Replace(one.rules[0].id, "Both."), Delete(one.rules[1].id))
    two, second = step(one, edits, ([], []), kind="tidy")
    assert found([first, second], start, two) == {text_key("Both."): ("a", "b")}


def test_a_rule_that_no_decision_explains_is_from_all_and_one_by_hand_from_none():
    start = skill()
    made = apply_edits(start, (Add("rules", "Unexplained."),)).document
    assert found([], start, made) == {text_key("Unexplained."): ("a", "b", "c", "d")}
    assert found([], made, made) == {}
    assert found([], made, made, {text_key("Unexplained."): ("a",)}) == {text_key("Unexplained."): ("a",)}


def test_cited_sessions_are_those_that_an_edit_names_and_all_of_one_that_names_none():
    start = skill()
    one, first = step(start, (Add("rules", "One."), Add("rules", "Two.")), (["a", "b"], ["a", "b"]))
    first["edits"][0]["cited"] = ["b"]
    two, second = step(one, (Replace(one.rules[0].id, "One and more."),), (["c", "d"],))
    second["edits"][0]["cited"] = ["d"]
    cited = sessions_of_rules([first, second], start, two, ["a", "b", "c", "d"], {}, cited=True)
    assert cited == {text_key("One and more."): ("b", "d"), text_key("Two."): ("a", "b")}


def test_new_words_of_a_draft_have_the_support_that_it_names_and_none_of_the_rules_around_them():
    start = skill()
    one, first = step(start, (Add("rules", "One."), Add("rules", "Two.")), (["a", "b"], ["a", "b"]))
    first["edits"][0]["cited"] = ["a", "b"]
    edits = (Replace(one.rules[0].id, "Send all."), Add("rules", "Three."))
    two, second = step(one, edits, (["a", "b", "c", "d"],) * 2)
    second["maker"] = "draft"
    second["edits"][0]["cited"], second["edits"][1]["cited"] = ["c"], ["d"]
    every = ["a", "b", "c", "d"]
    cited = sessions_of_rules([first, second], start, two, every, {}, cited=True)
    assert cited[text_key("Send all.")] == ("c",) and cited[text_key("Three.")] == ("d",)
    read = sessions_of_rules([first, second], start, two, every, {})
    assert read[text_key("Send all.")] == read[text_key("Three.")] == ("a", "b", "c", "d")

"""The merge of two parents: which two, rule by rule, through the gates, and never the same twice."""

from hypothesis import given
from hypothesis import strategies as st
from scripted import BETTER, engine_of, plan_of, results, solves, trained

from skillc.document.skill import Document, Rule, Section, tokens
from skillc.optimize.engine import Member
from skillc.optimize.merge import ancestors
from skillc.optimize.merge_rules import merge_rules

SEED = b"s" * 32
ON = "parents = pareto; merge = on"


def skill(*rules, limit=None, guidance=""):
    made = tuple(Rule(name, text, topic, "why") for name, text, topic in rules)
    return Document(
        "x", "about", (Section("rules", "trainable", rules=made, limit=limit), Section("guidance", "slow", guidance))
    )


def rule(name, text=None, topic=None):
    return name, text or f"the rule {name}", topic


A, B, C = (rule(name) for name in "abc")


def merged(base, first, second, wins=(1, 1)):
    return merge_rules(base, first, second, wins=wins, seed=SEED)


def texts(document):
    return [r.text for r in document.rules]


def test_a_rule_that_one_side_added_changed_or_deleted_is_as_that_side_has_it():
    base = skill(A, B, C)
    first = skill(A, rule("b", "first says b"), C, rule("d"))
    second = skill(rule("a", "second says a"), B, rule("e"))
    found = merged(base, first, second)
    assert texts(found.document) == ["second says a", "first says b", "the rule e", "the rule d"]
    assert [(e["op"], e["rule"]) for e in found.edits] == [("replace", "a"), ("add", "e"), ("delete", "c")]


def test_what_both_did_alike_is_done_once():
    both = skill(A, rule("d"))
    assert merged(skill(A, B), both, both).edits == ()


def test_in_a_conflict_the_side_with_more_right_answers_has_its_way():
    base = skill(A)
    first, second = skill(rule("a", "first")), skill(rule("a", "second"))
    assert texts(merged(base, first, second, (3, 1)).document) == ["first"]
    assert texts(merged(base, first, second, (1, 3)).document) == ["second"]


def test_a_tie_is_settled_by_the_seed_alone():
    base = skill(*(rule(str(i)) for i in range(40)))
    first, second = (skill(*(rule(str(i), f"{who} {i}") for i in range(40))) for who in ("first", "second"))
    found = merged(base, first, second)
    assert found == merged(base, first, second)
    assert 5 < sum(text.startswith("second") for text in texts(found.document)) < 35
    assert found.document != merge_rules(base, first, second, wins=(1, 1), seed=b"t" * 32).document


def test_a_rule_deleted_here_and_changed_there_is_a_conflict():
    base, first, second = skill(A, B), skill(A), skill(A, rule("b", "changed"))
    assert texts(merged(base, first, second, (1, 2)).document) == ["the rule a", "changed"]
    assert texts(merged(base, first, second, (2, 1)).document) == ["the rule a"]
    assert texts(merged(base, second, first, (1, 2)).document) == ["the rule a"]


def test_a_rule_keeps_its_id_its_rationale_and_its_topic():
    found = merged(skill(A), skill(A, B), skill(A, rule("c", topic="cases"))).document
    assert (found.rule("c").topic, found.rule("c").rationale) == ("cases", "why")
    moved = merged(skill(A, C), skill(A, B, C), skill(A, rule("c", topic="cases"))).document
    assert [(r.id, r.topic) for r in moved.rules] == [("a", None), ("b", None), ("c", "cases")]


def test_a_section_never_grows_over_its_limit_and_nothing_is_said_twice():
    base, first = skill(A, limit=12), skill(A, B, limit=12)
    assert (
        merged(base, first, skill(A, rule("c", "a rule that is much too long for what is left of the limit"))).edits
        == ()
    )
    assert merged(base, first, skill(A, rule("c", "The rule  B."))).edits == ()


def test_guidance_of_a_slow_section_is_merged_as_a_whole():
    base = skill(A, guidance="old")
    found = merged(base, skill(A, B, guidance="old"), skill(A, guidance="new"))
    assert found.document.section("guidance").text == "new"
    assert merged(base, skill(A, guidance="mine"), skill(A, guidance="new"), (2, 1)).edits == ()


rules = st.dictionaries(st.sampled_from("abcdef"), st.sampled_from(["x", "y", "z"]), max_size=6)


def made(content):
    return skill(*(rule(name, f"{name} is {text}") for name, text in sorted(content.items())))


@given(rules, rules, rules)
def test_each_rule_of_a_merge_is_one_sides_and_undisputed_changes_are_all_there(base, first, second):
    found = {r.id: r.text for r in merged(made(base), made(first), made(second)).document.rules}
    for name in {*base, *first, *second}:
        old, ours, theirs = (made(d).rule(name) for d in (base, first, second))
        old, ours, theirs = (r and r.text for r in (old, ours, theirs))
        assert found.get(name) in (ours, theirs)
        if old == ours:
            assert found.get(name) == theirs
        if old == theirs:
            assert found.get(name) == ours


def test_ancestors_are_found_through_merges():
    def member(name, *parents):
        return Member(name, skill(A), parents, True, name)

    pool = (member("i"), member("a", "i"), member("b", "i"), member("m", "a", "b"), member("c", "m"))
    assert ancestors(pool[4], pool) == {"m", "a", "b", "i"}
    assert ancestors(pool[0], pool) == frozenset()


# ---- in a run -------------------------------------------------------------------------------------


def two_lines(tmp_path, *, optimize=ON, gates=BETTER, budget="epochs = 1"):
    """Two skills that grow from the initial one and complement each other."""
    script = {
        1: solves("v0", "v1", "v2", "v3"),
        2: solves("v4", "v5", "v6"),
    }
    plan = plan_of(tmp_path, optimize=optimize, gates=gates, budget=budget)
    return engine_of(plan, script, train_size=2)


def test_two_parents_are_merged_through_the_gates_at_the_epochs_end(tmp_path, monkeypatch):
    engine = two_lines(tmp_path)
    initial_is_drawn(monkeypatch)
    done = trained(engine)
    assert [(d["kind"], d["result"]) for d in engine.observer.decisions] == [
        ("step", "accept"),
        ("step", "accept"),
        ("merge", "accept"),
    ]
    merge = engine.observer.decisions[-1]
    assert merge["place"] == "merge 1"
    first, second = (member.id for member in done.state.pool[1:3])
    assert merge["parents"] == [first, second]
    assert merge["ancestor"] == done.state.pool[0].id
    assert merge["incumbent"] == first
    assert [edit["op"] for edit in merge["edits"]] == ["add"]
    assert merge["goal"]["candidate"] == "0.875"
    assert done.state.best == done.state.pool[-1].skill


def test_a_merge_never_counts_for_patience(tmp_path, monkeypatch):
    initial_is_drawn(monkeypatch)
    engine = two_lines(tmp_path, gates=BETTER + "\ngate short = tokens(candidate) <= 68 tokens")
    done = trained(engine)
    assert results(engine.observer) == ["accept", "accept", "reject"]
    assert engine.observer.decisions[-1]["blame"] == "short"
    assert tokens(done.state.best) <= 68
    # One for the second step, whose accept is below what the first one reached; none for the merge.
    assert done.state.patience.waited == 1


def test_the_same_two_are_never_merged_twice(tmp_path, monkeypatch):
    initial_is_drawn(monkeypatch)
    engine = two_lines(tmp_path, gates=BETTER + "\ngate short = tokens(candidate) <= 68 tokens", budget="epochs = 5")
    trained(engine)
    assert [d["place"] for d in engine.observer.decisions if d["kind"] == "merge"] == ["merge 1"]


def test_a_batch_gate_reads_the_last_batch_of_the_epoch(tmp_path, monkeypatch):
    """The first parent is run on it too: it was not the parent of the last step."""
    initial_is_drawn(monkeypatch)
    gates = BETTER + "\ngate cures = improved(correct, on = batch) >= 0.5"
    engine = two_lines(tmp_path, gates=gates)
    engine.optimizer._edits = {1: solves("v0", "v1", "t0", "t1"), 2: solves("v4", "v5", "t0", "t1")}
    trained(engine)
    merge = engine.observer.decisions[-1]
    assert (merge["kind"], merge["result"], merge["blame"]) == ("merge", "reject", "cures")
    assert merge["evaluated"] == 0


def test_incumbents_alone_have_nothing_to_merge(tmp_path):
    engine = two_lines(tmp_path, optimize="merge = on")
    trained(engine)
    assert "merge" not in {d["kind"] for d in engine.observer.decisions}


def initial_is_drawn(monkeypatch):
    """Each step grows from the initial skill, so that each accept is a line of its own."""
    monkeypatch.setattr("skillc.optimize.parents.drawn", lambda weights, seed: 0)
    monkeypatch.setattr("skillc.optimize.parents.frequencies", lambda columns: [1] * len(columns))

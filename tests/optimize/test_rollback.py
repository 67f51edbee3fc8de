"""`accept = always`: every candidate is taken once it is measured whole, and what falls too far is taken back."""

from fractions import Fraction

from hypothesis import given, settings
from hypothesis import strategies as st
from scripted import World, engine_of, plan_of, results, solves, trained
from thorough import example_count

from skillc.document.edits import apply_edits
from skillc.document.skill import Document, Rule, Section, digest
from skillc.optimize.strategies.acceptance import differences

ALWAYS = "accept = always"
GOOD, WORSE = solves("v0", "v1", "v2", "v3"), "breaks v0."


def test_every_candidate_is_taken_after_its_whole_validation(tmp_path):
    world = World()
    engine = engine_of(plan_of(tmp_path, optimize=ALWAYS), {1: WORSE, 2: GOOD, 3: "no use"}, train_size=3, world=world)
    done = trained(engine)
    assert results(engine.observer) == ["accept"] * 3
    assert {d["reason"] for d in engine.observer.decisions} == {"taken, as each candidate is"}
    assert all(d["evaluated"] == 8 for d in engine.observer.decisions)
    assert world.count("gate") == 3 * 8
    assert done.state.accepted == 3


def test_what_the_gates_would_have_said_is_written_down(tmp_path):
    engine = engine_of(plan_of(tmp_path, optimize=ALWAYS), {1: GOOD, 2: WORSE}, train_size=2)
    trained(engine)
    assert [d["gates"] for d in engine.observer.decisions] == [{"better": "true"}, {"better": "false"}]


def test_the_best_is_the_highest_goal_that_was_taken_and_not_the_last(tmp_path):
    engine = engine_of(plan_of(tmp_path, optimize=ALWAYS), {1: GOOD, 2: WORSE}, train_size=2)
    done = trained(engine)
    assert GOOD in done.state.best.rules[0].text
    assert done.state.incumbent != done.state.best


def test_a_fall_of_more_than_rollback_goes_back_to_the_best_and_is_told(tmp_path):
    optimize = ALWAYS + "; rollback = 20%"
    script = {1: GOOD, 2: WORSE, 3: "breaks v1.", 4: "breaks v2."}
    engine = engine_of(plan_of(tmp_path, optimize=optimize), script, train_size=4)
    done = trained(engine)
    # 4/8, 3/8, 2/8: the third is 25 points below the best, the second only 12.5.
    assert results(engine.observer) == ["accept", "accept", "accept", "rollback", "accept"]
    assert [d["decision"] for d in engine.observer.decisions] == [1, 2, 3, 4, 5]
    event = engine.observer.decisions[3]
    assert (event["place"], event["kind"]) == ("step 3/4", "rollback")
    assert event["reason"] == "the goal fell from 0.5 to 0.25"
    assert event["candidate"] == digest(done.state.best)
    # The step after it grows from the best again.
    assert engine.observer.decisions[4]["incumbent"] == digest(done.state.best)
    assert done.state.decisions == 5
    assert done.state.accepted == 4


def test_a_fall_of_just_rollback_stays(tmp_path):
    engine = engine_of(plan_of(tmp_path, optimize=ALWAYS + "; rollback = 12.5%"), {1: GOOD, 2: WORSE}, train_size=2)
    trained(engine)
    assert results(engine.observer) == ["accept", "accept"]


def test_what_led_away_from_the_best_is_remembered_as_rejected(tmp_path):
    script = {1: GOOD, 2: ["breaks v0.", "breaks v1."]}
    engine = engine_of(plan_of(tmp_path, optimize=ALWAYS + "; rollback = 0%"), script, train_size=2)
    done = trained(engine)
    (entry,) = done.state.memory.rejected
    assert entry.text == "add to rules: breaks v0.; add to rules: breaks v1."
    assert entry.reason == "taken back: the goal fell from 0.5 to 0.25"


def test_gates_have_no_rollback(tmp_path):
    engine = engine_of(plan_of(tmp_path, optimize="rollback = 0%"), {1: GOOD, 2: WORSE}, train_size=2)
    trained(engine)
    assert results(engine.observer) == ["accept", "reject"]


def test_a_failure_is_no_score_here_either(tmp_path):
    """What stays unmeasured is undecided: neither taken nor taken back on missing evidence."""

    def fails(text, example, sample, stage):
        return WORSE in text and example.id in ("v6", "v7")

    world = World(fails)
    engine = engine_of(
        plan_of(tmp_path, optimize=ALWAYS + "; rollback = 0%"), {1: GOOD, 2: WORSE}, train_size=2, world=world
    )
    done = trained(engine)
    assert results(engine.observer) == ["accept", "undecided", "undecided"]
    assert engine.observer.decisions[-1]["kind"] == "retry"
    assert done.state.incumbent == done.state.best


def test_the_run_ends_when_all_is_right_and_not_when_the_gates_are_hopeless(tmp_path):
    gates = "gate never = candidate.correct > incumbent.correct + 99%"
    script = {1: GOOD, 2: solves("v4", "v5", "v6", "v7"), 3: "no use"}
    engine = engine_of(plan_of(tmp_path, optimize=ALWAYS, gates=gates), script, train_size=3)
    assert trained(engine).stopped == "perfect"
    assert results(engine.observer) == ["accept", "accept"]


@settings(deadline=None, max_examples=example_count(30))
@given(st.lists(st.sampled_from(["v0", "v1", "v2", "v3", "v4"]), min_size=1, max_size=8), st.integers(0, 60))
def test_the_incumbent_is_never_left_further_below_the_best_than_rollback(tmp_path_factory, broken, percent):
    folder = tmp_path_factory.mktemp("rollback")
    plan = plan_of(folder, optimize=f"{ALWAYS}; rollback = {percent}%")
    script = {1: solves("v0", "v1", "v2", "v3", "v4")} | {i: f"{i} breaks {v}." for i, v in enumerate(broken, 2)}
    engine = engine_of(plan, script, train_size=len(broken) + 1, validation=5)
    done = trained(engine)
    right = [
        sum(bool(engine.rollouts.score(s, e, "correct")) for e in engine.dataset.validation)
        for s in (done.state.best, done.state.incumbent)
    ]
    assert Fraction(right[0] - right[1], 5) <= Fraction(percent, 100)


texts = st.dictionaries(st.sampled_from("abcdef"), st.sampled_from("xyz"), max_size=5)


@given(texts, texts)
def test_the_differences_of_two_skills_lead_from_one_to_the_other(before, after):
    def made(content):
        rules = tuple(Rule(name, f"{name} says {text}") for name, text in content.items())
        return Document("x", "about", (Section("rules", "trainable", rules=rules),))

    applied = apply_edits(made(before), differences(made(before), made(after)))
    assert all(report.applied for report in applied.results)
    assert {r.text for r in applied.document.rules} == {r.text for r in made(after).rules}

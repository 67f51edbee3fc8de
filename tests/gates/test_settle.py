"""What follows from decisions: the state, the history, smaller patches, and a cap at a bad moment."""

import asyncio
from dataclasses import replace
from fractions import Fraction

import pytest
from scripted_engine import Script, engine, gate, measured, plan, skill, state

from skillc.document.edits import Add, apply_edits
from skillc.document.skill import digest
from skillc.gates.terms import MeanTerm, Operation
from skillc.models.failures import BudgetReached
from skillc.optimize.engine import Position
from skillc.optimize.gate.decide import CutOff, Patch, is_better, settle
from skillc.optimize.gate.gate import goal_of
from skillc.optimize.host import SilentObserver
from skillc.optimize.loop.train import _retry
from skillc.optimize.schedule import Patience
from skillc.outcomes import Example
from skillc.run.history import with_completion

START = skill("You sort.", "- Be kind.")
STEP = Position(1, 1, 8)


def items(count=20):
    """Half of the examples speak of apples and half of hammers; every fourth is plain."""
    words = ["an apple", "a hammer", "an apple", "something"]
    return [Example(f"e{i}", {"ask": f"{words[i % 4]} {i}"}, {}, {}, f"e{i}") for i in range(count)]


def patch(*texts, onto=START):
    edits = tuple(Add("rules", text) for text in texts)
    return Patch(edits, apply_edits(onto, edits).document, {"edits": [{"text": text} for text in texts]})


class World:
    """Which examples are right: those that a rule of the skill cures, without those that one breaks."""

    def __init__(self, rules, right=(), *, lost=(), size=20, optimize=None, observer=None, budget=None, gates=()):
        self.rules, self.right, self.lost = rules, set(right), set(lost)
        self.script = Script(self.scores)
        program = plan(gates, optimize=optimize, budget=budget)
        self.run = engine(program, self.script, items(size), wave=4, observer=observer)
        asyncio.run(measured(self.run, START))
        self.script.sent.clear()

    def scores(self, text, example, sample):
        held = [rule for rule in self.rules if rule in text]
        if held and example in self.lost:
            return None
        right = example in self.right or any(example in self.rules[rule][0] for rule in held)
        wrong = any(example in self.rules[rule][1] for rule in held)
        return {"m": int(right and not wrong), "wide": 0}

    def settle(self, *patches, now=None, place=STEP, **options):
        return asyncio.run(settle(self.run, now or state(START), patches, (), place, **options))

    @property
    def told(self):
        return self.run.observer.decisions


def some(*numbers):
    return [f"e{i}" for i in numbers]


# ---- accept and completion ------------------------------------------------------------------------


def test_an_accept_is_told_with_what_is_known_and_completed_after():
    world = World({"cure": (some(0, 1, 2), [])})
    after = world.settle(patch("cure"))
    (record,) = world.told
    assert (record["result"], record["evaluated"]) == ("accept", 8)
    assert record["goal"] == {"incumbent": "0", "candidate": ["0.05", "0.65"]}
    assert world.run.observer.completions == [{"completed": 1, "goal": "0.15"}]
    assert with_completion([record], world.run.observer.completions[0])[0]["completed"] == "0.15"
    assert (after.accepted, after.decisions, after.best) == (1, 1, after.incumbent)


def test_a_cap_inside_the_completion_leaves_the_accept_standing():
    world = World({"cure": (some(*range(20)), [])})
    world.script.cap = 6
    with pytest.raises(CutOff) as cut:
        world.settle(patch("cure"))
    after = cut.value.state
    assert cut.value.reason == "calls"
    assert digest(after.incumbent) == digest(after.best) == digest(patch("cure").candidate)
    assert (after.accepted, after.decisions) == (1, 1)
    goal = goal_of(world.run, after.best)
    assert goal.low > 0
    assert goal.high == 1 > goal.low
    assert [record["result"] for record in world.told] == ["accept"]
    assert world.run.observer.completions == []


def test_a_user_who_stops_the_completion_keeps_the_accept():
    class Asked(SilentObserver):
        def stop_wanted(self):
            return "interrupted"

    world = World({"cure": (some(*range(20)), [])}, observer=Asked())
    world.script.cap, world.script.stop = 6, asyncio.CancelledError()
    with pytest.raises(CutOff) as cut:
        world.settle(patch("cure"))
    assert (cut.value.reason, cut.value.state.accepted) == ("interrupted", 1)


def test_a_cap_before_the_decision_leaves_nothing_of_it():
    world = World({"cure": ([], [])})
    world.script.cap = 6
    with pytest.raises(BudgetReached):
        world.settle(patch("cure"))
    assert world.told == []


def test_best_is_compared_by_what_is_sure():
    """One is right on all four examples that were run, the other on nine of all ten."""
    world = World({"cut off": (some(*range(20)), []), "whole": (some(*range(18)), [])})
    open_, whole = patch("cut off").candidate, patch("whole").candidate
    asyncio.run(world.run.rollouts.measure(open_, items()[:4], stage="validation"))
    asyncio.run(measured(world.run, whole))
    assert not is_better(world.run, open_, whole)
    assert is_better(world.run, whole, open_)
    assert not is_better(world.run, whole, whole)


# ---- pools ----------------------------------------------------------------------------------------


def test_each_candidate_of_a_pool_is_a_decision_and_the_step_counts_once():
    world = World({"good": (some(0, 1), []), "better": (some(0, 1, 2), []), "bad": ([], some(5))}, right=some(5, 6))
    after = world.settle(patch("bad"), patch("good"), patch("better"))
    assert [(d["decision"], d["result"]) for d in world.told] == [(1, "reject"), (2, "beaten"), (3, "accept")]
    assert [d["pool"] for d in world.told] == [{"candidate": i, "of": 3} for i in (1, 2, 3)]
    assert world.told[1]["reason"] == "candidate 3 of the pool was better"
    assert [entry.text for entry in after.memory.rejected] == ["add to rules: bad"]
    assert (after.decisions, after.accepted) == (3, 1)
    assert world.run.observer.completions[0]["completed"] == 3


def test_a_pool_without_an_accept_is_one_step_for_patience():
    world = World({"bad": ([], []), "worse": ([], some(5))}, right=some(5))
    now = replace(state(START), patience=Patience(8, Fraction(0), Fraction(0)))
    assert world.settle(patch("bad"), patch("worse"), now=now).patience.waited == 1


def test_two_patches_that_make_one_text_are_one_candidate():
    world = World({"bad": ([], [])})
    world.settle(patch("bad"), patch("bad"))
    assert [d["result"] for d in world.told] == ["reject"]
    assert "pool" not in world.told[0]


def test_a_pool_of_one_carries_no_mark():
    world = World({"bad": ([], [])})
    world.settle(patch("bad"))
    assert "pool" not in world.told[0]


# ---- what was decided before ----------------------------------------------------------------------


def test_a_reject_that_comes_again_is_free():
    world = World({"bad": ([], [])})
    after = world.settle(patch("bad"))
    world.script.sent.clear()
    again = world.settle(patch("bad"), now=after)
    assert world.script.sent == []
    assert [d["result"] for d in world.told] == ["reject", "reject"]
    assert again.decisions == 2


def test_an_undecided_patch_is_tried_again_and_not_remembered_as_undecided():
    world = World({"cure": (some(*range(10)), [])}, lost=some(*range(20)))
    after = world.settle(patch("cure"))
    assert world.told[0]["result"] == "undecided"
    assert (after.memory.rejected, after.decided, len(after.undecided)) == ((), {}, 1)
    world.lost.clear()
    retried = asyncio.run(_retry(world.run, after, Position(1, 2, 8, "retry")))
    assert [d["result"] for d in world.told] == ["undecided", "accept"]
    assert retried.undecided == ()


def test_a_retry_that_stays_undecided_is_given_up():
    world = World({"cure": (some(*range(10)), [])}, lost=some(*range(20)))
    after = world.settle(patch("cure"))
    assert asyncio.run(_retry(world.run, after, Position(1, 2, 8, "retry"))).undecided == ()


def test_three_undecided_in_a_row_end_the_run_and_a_decision_between_them_does_not_count():
    world = World({"lost": ([], []), "bad": ([], [])}, lost=some(*range(20)))
    now = state(START)
    for number in range(3):
        assert now.patience.reason is None
        now = world.settle(patch(f"lost {number}"), now=now)
    assert now.patience.reason == "undecided"
    world.lost.clear()
    between = world.settle(patch("bad"), now=now, place=Position(1, 2, 8, "retry"))
    assert between.patience.reason is None


def test_an_undecided_rewrite_without_edits_is_not_kept():
    world = World({"lost": ([], [])}, lost=some(*range(20)))
    rewritten = Patch((), patch("lost").candidate, {})
    after = asyncio.run(settle(world.run, state(START), [rewritten], (), Position(1, 1, 8, "slow update")))
    assert after.undecided == ()


# ---- flips ----------------------------------------------------------------------------------------


def test_flips_are_counted_over_candidates_that_did_not_win():
    world = World({"one": (some(0), some(5)), "two": (some(0), some(6))}, right=some(5, 6))
    after = world.settle(patch("one"))
    assert after.counters.flips == {"e0": 1, "e5": 1}
    assert world.settle(patch("two"), now=after).counters.flips == {"e0": 2, "e5": 1, "e6": 1}


def test_what_an_accepted_candidate_changed_is_no_flip():
    world = World({"good": (some(*range(20)), [])})
    assert world.settle(patch("good")).counters.flips == {}


# ---- smaller patches ------------------------------------------------------------------------------


def test_a_rejected_patch_is_tried_again_without_the_edit_that_goes_with_breakage():
    apples, hammers = some(0, 2, 4, 6), some(5, 9, 13, 17)
    rules = {"An apple is fruit.": (apples, []), "A hammer is none.": ([], [*hammers, "e1"])}
    world = World(rules, right=[*hammers, "e1"], optimize={"retries": 1})
    after = world.settle(patch(*rules))
    assert [(d["result"], len(d["edits"])) for d in world.told] == [("reject", 2), ("accept", 1)]
    assert world.told[1]["edits"] == [{"text": "An apple is fruit."}]
    assert world.told[1]["smaller"] == 1
    assert (after.accepted, after.decisions) == (1, 2)
    assert digest(after.incumbent) == digest(patch("An apple is fruit.").candidate)


def test_no_more_than_the_declared_retries_and_one_edit_stays():
    rules = {text: ([], [f"e{i}"]) for i, text in enumerate(["one", "two", "three"])}
    world = World(rules, right=some(0, 1, 2), optimize={"retries": 5})
    world.settle(patch(*rules))
    assert [len(d["edits"]) for d in world.told] == [3, 2, 1]
    none = World(rules, right=some(0, 1, 2))
    none.settle(patch(*rules))
    assert len(none.told) == 1


def test_a_cap_in_a_smaller_patch_leaves_the_first_decision_standing():
    rules = {"one": ([], some(0)), "two": ([], some(1))}
    world = World(rules, right=some(0, 1), optimize={"retries": 1})
    world.settle(patch(*rules))
    needed = len(world.script.sent)
    world = World(rules, right=some(0, 1), optimize={"retries": 1})
    world.script.cap = needed - 1
    with pytest.raises(CutOff) as cut:
        world.settle(patch(*rules))
    assert [d["decision"] for d in world.told] == [1]
    assert cut.value.state.decisions == 1
    assert len(cut.value.state.memory.rejected) == 1


# ---- credit ---------------------------------------------------------------------------------------


def test_what_changed_goes_to_the_edit_whose_words_stand_there_and_the_rest_is_shared():
    rules = {"An apple is fruit.": (some(0, 2), []), "A hammer is none.": (some(3), some(1))}
    world = World(rules, right=some(1, 5), gates=[gate(Operation(">=", (MeanTerm("candidate", "m"),) * 2))])
    world.settle(patch(*rules))
    asyncio.run(measured(world.run, patch(*rules).candidate))
    world.told.clear()
    world.settle(patch(*rules))
    credit = world.told[0]["credit"]
    apple, hammer = credit["association"]
    assert (apple["examples"], hammer["examples"]) == (
        {"cured": ["e0", "e2"], "broke": []},
        {"cured": [], "broke": ["e1"]},
    )
    assert credit["shared"]["examples"] == {"cured": ["e3"], "broke": []}

"""The world of `benchmarks/search`: neutral, repeatable, and under its cap."""

import sys
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.search.arms import BUNDLES, DEFAULT, EDITS, PLAIN
from benchmarks.search.run import Job, run
from benchmarks.search.world import World, rules_in, worded

SMALL = replace(PLAIN, train=60, validation=30)


def test_the_ideal_skill_has_all_of_the_gain_and_the_empty_one_none():
    world = World(SMALL, 1)
    ideal = frozenset({f"S{i}" for i in range(12)} | {f"P{i}{half}" for i in range(2) for half in "ab"})
    assert world.gain(frozenset()) == 0
    assert world.gain(ideal) == 1
    assert world.gain(ideal | {"U7"}) == 1
    assert world.gain(ideal | {"H3"}) < 1
    assert world.gain(frozenset({"P0a"})) == 0


def test_a_rule_is_known_in_any_wording():
    assert all(rules_in(worded("P1b", number)) == {"P1b"} for number in range(3))


def test_a_run_repeats_itself_and_a_shorter_one_is_its_beginning():
    job = Job(SMALL, 3, DEFAULT, 300)
    first, again, shorter = run(job), run(job), run(replace(job, calls=150))
    assert first == again
    assert sum(first.stages.values()) <= 300
    assert first.curve[: len(shorter.curve)] == shorter.curve


def test_edits_chosen_by_evidence_do_better_at_equal_calls():
    evidence, rank = (sum(run(Job(SMALL, seed, arm, 400)).at(400) for seed in range(2)) for arm in (EDITS, BUNDLES))
    assert evidence > rank

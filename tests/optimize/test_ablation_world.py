"""The scripted optimizer of `benchmarks/ablation` answers what each mechanism asks, and the same each time."""

import sys
from dataclasses import replace
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.ablation.__main__ import PROGRAM
from benchmarks.ablation.arms import ARMS
from benchmarks.ablation.optimizer import EveryStage
from benchmarks.search.run import Job, run
from benchmarks.search.world import Settings

SMALL = replace(Settings(), train=60, validation=30)


def ran(*changes, seed=3):
    settings = ("optimize.batch=20", *(f"optimize.{change}" for change in changes))
    return run(Job(SMALL, seed, settings, 400, PROGRAM, EveryStage))


@pytest.mark.parametrize("change", ["update=rewrite_all", "update=rewrite_section", "edits=model", "rule_counts=on"])
@pytest.mark.quick_cases(1)
def test_a_run_with_the_mechanism_learns_and_repeats_itself(change):
    first = ran(change)
    assert first == ran(change)
    assert first.gain > 0
    assert first.asked > 0


def test_guidance_is_written_at_the_ends_of_epochs():
    assert ran().stages["slow update"] > 0
    assert "slow update" not in ran("slow_update=off").stages


def test_the_rejected_edit_buffer_changes_what_is_proposed():
    assert any(ran(seed=seed).gain != ran("rejected_buffer=off", seed=seed).gain for seed in range(3))


def test_each_arm_has_a_name_of_its_own():
    assert len({arm.name for arm in ARMS}) == len(ARMS)

"""What one example weighs in a gate, against the gates and the test of the run itself."""

from __future__ import annotations

from fractions import Fraction

import pytest
from lint_samples import SIDES, found, numbered, write

from skillc.stats.power import e_value
from skillc.stats.subsets import Confidence


def told(tmp_path, gate, size=40, more=""):
    program = write(tmp_path, f"{more}gate g = {gate}\n", validation=numbered("val", size))
    return [(code, message) for code, message in found(program) if code in ("SK520", "SK521")]


@pytest.mark.parametrize(
    ("gate", "says"),
    [
        ("regressed(correct) <= 1%", "holds only if nothing gets worse"),
        ("regressed(correct) <= 2.49%", "holds only if nothing gets worse"),
        ("regressed(correct) < 2.5%", "holds only if nothing gets worse"),
        ("1% >= regressed(correct)", "holds only if nothing gets worse"),
        ("candidate.correct >= 99%", "holds only if all are right"),
        ("candidate.correct > 97.5%", "holds only if all are right"),
        ("candidate.correct > incumbent.correct + 1%", "accepts any gain"),
        ("candidate.correct >= initial.correct - 2%", "allows no loss at all"),
        ("regressed(correct) <= 1% and cost(candidate) <= $1", "holds only if nothing gets worse"),
    ],
)
def test_a_threshold_below_the_step(tmp_path, gate, says):
    ((code, message),) = told(tmp_path, gate)
    assert code == "SK520"
    assert message.endswith(f"{says}: validation has 40 examples, and one is 2.5%")


@pytest.mark.parametrize(
    "gate",
    [
        "regressed(correct) <= 2.5%",
        "regressed(correct) <= 5%",
        "regressed(correct) <= 0%",
        "regressed(correct, on = batch) <= 1%",
        "candidate.correct >= 97.5%",
        "candidate.correct >= 100%",
        "candidate.correct > incumbent.correct + 2.5%",
        "candidate.correct > incumbent.correct",
        "cost(candidate) <= $0.001",
    ],
)
def test_a_threshold_that_means_what_it_says(tmp_path, gate):
    assert told(tmp_path, gate) == []


def test_a_metric_with_values_between_has_no_step(tmp_path):
    assert told(tmp_path, "regressed(close) <= 1%", more="metric close = 0.5 * correct + 0.5 * correct\n") == []
    assert len(told(tmp_path, "regressed(same) <= 1%", more="metric same = correct\n")) == 1


def test_samples_make_the_step_smaller(tmp_path):
    more = "optimize { samples = 4 }\n"
    assert told(tmp_path, "regressed(correct) <= 1%", more=more) == []
    assert len(told(tmp_path, "regressed(correct) <= 0.5%", more=more)) == 1


def test_the_smallest_group_counts(tmp_path):
    rows = [
        {"ticket": f"val ticket {i}", "team": "billing" if i % 2 else "shipping", "who": "a" if i < 25 else "b"}
        for i in range(40)
    ]
    sides = {
        side: [{"ticket": t, "team": team, "who": "a"} for t, team in examples] for side, examples in SIDES.items()
    }
    data = 'train = "train.jsonl"; validation = "validation.jsonl"; test = "test.jsonl"; field who: text'
    gate = "gate g = regressed(correct, by = who) <= 5%\n"
    program = write(tmp_path, gate, data=data, **{**sides, "validation": rows})
    assert [message for code, message in found(program) if code == "SK520"] == [
        "`regressed(correct, by = who) <= 5%` holds only if nothing gets worse: the group `other` of `who` has 15 "
        "examples, and one is 6.667%"
    ]


# ---- confidence -----------------------------------------------------------------------------------


def surest(size, improved):
    """What the run's own test says where so many of the examples improve, and none gets worse."""
    differences = [1] * improved + [0] * (size - improved)
    return Confidence(size, 0).bounds(differences, differences)[0]


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 8])
@pytest.mark.parametrize("least", ["70%", "90%", "95%", "99%"])
def test_a_confidence_that_is_said_to_be_out_of_reach_is(tmp_path, size, least):
    gate = f"confidence(candidate.correct > incumbent.correct) >= {least}"
    messages = [message for _, message in told(tmp_path, gate, size=size)]
    never = any("can never hold" in message for message in messages)
    assert never == (surest(size, size) < Fraction(least.rstrip("%")) / 100)
    for message in messages:
        if "improve" in message:
            needed = int(message.split(" requires that ")[1].split(" of ")[0])
            wanted = Fraction(least.rstrip("%")) / 100
            assert surest(size, needed) >= wanted > surest(size, needed - 1)


def test_over_a_whole_run_the_error_is_shared(tmp_path):
    gate = "confidence(candidate.correct > incumbent.correct, over = run) >= 95%"
    ((code, message),) = told(tmp_path, gate, size=6)
    assert code == "SK521"
    assert "as 4 decisions share the error" in message
    assert told(tmp_path, gate, size=40) == []


@pytest.mark.parametrize("size", [1, 4, 7, 8, 12, 60])
@pytest.mark.parametrize("least", [1, 2, 20, 100])
def test_an_e_value_that_is_said_to_be_out_of_reach_is(tmp_path, size, least):
    gate = f"e_value(candidate.correct > incumbent.correct) >= {least}"
    messages = [message for _, message in told(tmp_path, gate, size=size)]
    never = [message for message in messages if "can never hold" in message]
    assert bool(never) == (e_value({1: size}, 1) < least)
    for message in never:
        figure = Fraction(message.rpartition("at most ")[2].replace(",", ""))
        assert e_value({1: size}, 1) * 99 / 100 < figure < least
    for message in messages:
        if "improve" in message:
            needed = int(message.split(" requires that ")[1].split(" of ")[0])
            assert e_value({1: needed}, 1) >= least > e_value({1: needed - 1}, 1)


def test_over_a_whole_run_an_e_value_is_shared(tmp_path):
    gate = "e_value(candidate.correct > incumbent.correct, over = run) >= 20"
    ((code, message),) = told(tmp_path, gate, size=8)
    assert code == "SK521"
    assert "at most 12, as 4 decisions share the error" in message
    assert told(tmp_path, gate, size=80) == []

"""The lock: stable bytes, whole or not at all, and a clear word where it is damaged."""

import json
import os
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillc.errors import SkillcError
from skillc.plan.lock import (
    ArmLock,
    ChargedLock,
    DataLock,
    Lock,
    LookLock,
    ModelLock,
    ProgramLock,
    SkillLock,
    ValidationLock,
    add_look,
    lock_text,
    read_lock,
    write_lock,
)
from skillc.plan.lock import TestLock as PairedTest

A, B, C = "a" * 64, "b" * 64, "c" * 64
LOOK = LookLock(run=A, initial=B, best=C)


def a_lock(**changes):
    whole = {
        "decision_version": "1",
        "run": A,
        "program": ProgramLock(file="tickets.skill", plan=B),
        "data": DataLock(digest=C, train=160, validation=80, test=160),
        "skill": SkillLock(initial=A, best=B),
        "files": {"SKILL.md": A, "route_tickets.py": B},
        "models": {"target": ModelLock(model="openai/x", parameters={"temperature": 0.7, "stop": ["END", 0.5]})},
        "verdict": "improved",
        "test": PairedTest(
            initial=ArmLock(mean=Fraction(1, 2), n=160),
            best=ArmLock(mean=Fraction(3, 4), n=160),
            gain=Fraction(1, 4),
            interval=(Fraction(1, 8), Fraction(3, 8)),
            p=Fraction(1, 100_000),
            n=160,
            groups=120,
            look=1,
            alpha=Fraction(1, 20),
            smallest_detectable=Fraction(9, 100),
        ),
        "validation": ValidationLock(best=ArmLock(mean=Fraction(1, 3), n=79)),
        "charged": ChargedLock(calls=1234, prompt_tokens=5, reply_tokens=6, cost=Fraction(123, 100_000_000)),
        "stopped": "patience",
        "looks": (LOOK,),
    }
    return Lock(**{**whole, **changes})


def test_a_lock_can_be_read_back(tmp_path):
    path = tmp_path / "things.lock"
    write_lock(path, a_lock())
    again = read_lock(path)
    assert lock_text(again) == path.read_text()
    assert again.test.p == Fraction(1, 100_000)
    assert again.charged.cost == Fraction(123, 100_000_000)
    assert again.models["target"].parameters == {"temperature": 0.7, "stop": ["END", 0.5]}
    assert again.model_copy(update={"validation": a_lock().validation}) == a_lock()
    assert list(tmp_path.iterdir()) == [path]


def test_the_layout_is_sorted_and_people_can_read_it():
    text = lock_text(a_lock())
    value = json.loads(text)
    assert list(value) == sorted(value)
    assert text.endswith("}\n")
    assert value["test"]["best"] == {"mean": 0.75, "n": 160}
    assert value["validation"]["best"]["mean"] == 0.333333
    assert value["validation"]["selected_on"] is True
    assert value["charged"]["cost"] == "0.00000123"
    assert value["test"]["p"] == 0.00001


def test_the_order_of_insertion_does_not_count():
    files = dict(reversed(list(a_lock().files.items())))
    assert lock_text(a_lock(files=files)) == lock_text(a_lock())


@given(st.fractions(min_value=0, max_value=1), st.fractions(min_value=0, max_value=10_000))
def test_writing_what_was_read_gives_the_same_bytes(mean, cost):
    lock = a_lock(validation=ValidationLock(best=ArmLock(mean=mean, n=3)), charged=ChargedLock(cost=cost))
    again = Lock.model_validate(json.loads(lock_text(lock), parse_float=Fraction) | {"models": a_lock().models})
    assert lock_text(again) == lock_text(lock)
    assert abs(again.charged.cost - cost) <= Fraction(1, 10**9)


def test_a_failed_write_leaves_the_old_lock(tmp_path):
    path = tmp_path / "things.lock"
    write_lock(path, a_lock())
    before = path.read_bytes()
    (tmp_path / f".things.lock.{os.getpid()}.new").mkdir()
    with pytest.raises(SkillcError, match="cannot be written"):
        write_lock(path, a_lock(verdict="worse"))
    assert path.read_bytes() == before


def test_a_lock_that_is_missing(tmp_path):
    with pytest.raises(SkillcError, match="does not exist") as error:
        read_lock(tmp_path / "things.lock")
    assert "skillc compile" in error.value.hint


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda text: text[:-30], "is not JSON"),
        (lambda text: "", "is not JSON"),
        (lambda text: "<<<<<<< ours\n" + text, "contains merge conflicts"),
        (lambda text: text.replace('"format_version": 1', '"format_version": 2'), "has format 2"),
        (lambda text: text.replace('"improved"', '"splendid"'), "`verdict`"),
        (lambda text: text.replace(f'"run": "{A}",\n  "skill"', '"run": "zz",\n  "skill"'), "`run`"),
        (lambda text: text.replace('"stopped"', '"stoppd"'), "`stopped`"),
        (lambda text: "[]", "the whole"),
        (lambda text: text.replace('"n": 160', '"n": "many"', 1), "`test.best"),
    ],
)
def test_a_damaged_lock_says_what_is_wrong(tmp_path, change, message):
    path = tmp_path / "things.lock"
    text = change(lock_text(a_lock()))
    path.write_text(text)
    with pytest.raises(SkillcError) as error:
        read_lock(path)
    assert message in error.value.message
    assert error.value.hint


def test_bytes_that_are_no_text(tmp_path):
    path = tmp_path / "things.lock"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(SkillcError, match="cannot be read"):
        read_lock(path)


def test_an_identical_look_keeps_its_number():
    other = LookLock(run=B, initial=B, best=C)
    assert add_look((), LOOK) == ((LOOK,), 1)
    assert add_look((LOOK,), other) == ((LOOK, other), 2)
    assert add_look((LOOK, other), LOOK) == ((LOOK, other), 1)


@pytest.mark.parametrize("cost", [Fraction(0), Fraction(3), Fraction(1, 3), Fraction(-1, 2)])
def test_dollars_are_decimals(cost):
    assert Fraction(json.loads(lock_text(a_lock(charged=ChargedLock(cost=cost))))["charged"]["cost"]) == round(cost, 9)


def look_at(split, number=0):
    return LookLock(run=f"{number:064x}", initial=B, best=C, test=split)


def test_looks_at_a_replaced_split_do_not_count_as_looks_at_this_one():
    looks = (look_at(A, 1), look_at(A, 2), look_at(B, 3))
    assert add_look(looks, look_at(B, 4)) == ((*looks, look_at(B, 4)), 2)
    assert add_look(looks, look_at(A, 4))[1] == 3
    assert add_look(looks, look_at(C, 4))[1] == 1


def test_looks_that_do_not_say_which_split_they_were_at_count_against_each():
    old = (look_at(None, 1), look_at(None, 2))
    assert add_look(old, look_at(A, 3))[1] == 3
    assert add_look((look_at(B, 1),), look_at(None, 3))[1] == 2


def test_an_identical_look_keeps_its_number_when_it_learns_its_split():
    old = (look_at(None, 1), look_at(None, 2))
    assert add_look(old, look_at(A, 2)) == (old, 2)
    mixed = (look_at(A, 1), look_at(B, 2), look_at(A, 3))
    assert add_look(mixed, look_at(A, 3)) == (mixed, 2)
    assert add_look(mixed, look_at(B, 2)) == (mixed, 1)


@given(st.lists(st.integers(0, 8), max_size=12))
def test_a_new_look_counts_all_looks_at_its_split_and_an_old_one_keeps_its_number(runs):
    """A run's name fixes its data, and so its split."""
    looks, numbers = (), {}
    for run in runs:
        split = (None, A, B)[run % 3]
        known = len(looks)
        looks, number = add_look(looks, look_at(split, run))
        at_it = [each for each in looks if each.test in (None, split) or split is None]
        assert numbers.setdefault(run, len(at_it) if len(looks) > known else None) == number
    assert len({each.run for each in looks}) == len(looks)

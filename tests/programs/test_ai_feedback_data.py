"""The experiment's own scorer, tools and data."""

import importlib.util
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from skillc.metrics.quasi_match import is_quasi_match

FOLDER = Path(__file__).resolve().parents[2] / "programs/ai_feedback"
SPLITS = ("train", "validation", "test")


def module(name):
    """A module of the program, under a name of its own."""
    spec = importlib.util.spec_from_file_location(f"ai_feedback_{name}", FOLDER / f"{name}.py")
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


def rows(name):
    return [json.loads(line) for line in (FOLDER / "data" / f"{name}.jsonl").read_text().splitlines()]


def test_the_scorer_says_nothing_to_the_optimizer():
    score = module("scorer").quasi_exact_match
    assert score({"gold": {"answer": "17"}}, {"answer": "17"}) is True
    assert score({"gold": {"answer": "17"}}, {"answer": None}) is False


def test_the_data_is_what_its_script_makes(tmp_path):
    done = subprocess.run([sys.executable, FOLDER / "make_data.py"], cwd=tmp_path, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    made = {path.relative_to(tmp_path): path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    there = {path.relative_to(FOLDER): path.read_bytes() for path in (FOLDER / "data").rglob("*") if path.is_file()}
    assert made == there


def test_no_split_has_a_place_of_another_one():
    """Questions, attached files and the documents that answer them are about places."""
    documents = rows("documents")
    places = {}
    for split in SPLITS:
        places[split] = set()
        for row in rows(split):
            own = set(re.findall(r"\b[A-Z][a-z]{4,}\b", row["Question"]))
            about = [each["text"] for each in documents if own & set(each["title"].split())]
            assert about or row["file_name"]
            places[split] |= {
                word for text in [row["Question"], *about] for word in re.findall(r"[A-Z][a-z]{4,}", text)
            }
    assert [len(rows(split)) for split in SPLITS] == [32, 24, 40]
    towns = re.compile("beck|dale|fjord|gard|haven|holm|mere|ness|ryd|stad|vik|wick")
    named = {split: {place for place in found if towns.search(place)} for split, found in places.items()}
    assert all(len(found) >= 24 for found in named.values())
    assert not named["train"] & named["validation"]
    assert not (named["train"] | named["validation"]) & named["test"]
    assert len({row["Question"] for split in SPLITS for row in rows(split)}) == 96


def test_every_question_can_be_answered_with_the_tools(monkeypatch):
    """The judge that works answers out with care finds the right one of each, and so can an agent."""
    monkeypatch.syspath_prepend(FOLDER)
    for name in ("tools", "players"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    import players

    for split in SPLITS:
        for row in rows(split):
            found = players._solution(row["Question"], {"input file_name": row["file_name"]})
            assert is_quasi_match(found, row["Final answer"]), row
    for name in ("tools", "players"):
        sys.modules.pop(name, None)


def test_the_calculator_does_arithmetic_and_nothing_else():
    calculate = module("tools").calculate
    assert calculate("sum(1, 2) * 3.5 - -1") == "11.5"
    assert calculate('days("2026-03-01", "2026-04-01")') == "31"
    for text in ("__import__('os')", "(1).__class__", "open('x')", "[1]", "'a' * 9"):
        with pytest.raises((ValueError, SyntaxError)):
            calculate(text)


def test_a_file_outside_the_attachments_is_not_read():
    with pytest.raises(FileNotFoundError):
        module("tools").read_file("../train.jsonl")

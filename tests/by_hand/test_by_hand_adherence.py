"""Marks that a language model gave to the prompts of `adherence`, against those of code for the rules that it reads."""

import json
import re
from pathlib import Path
from types import SimpleNamespace

from skillc.evaluate.adherence.marks import read_marks

FILE = Path(__file__).parents[2] / "benchmarks/by_hand/adherence/judged.jsonl"


def test_a_models_marks_are_those_of_code_where_code_can_tell():
    agree = total = 0
    for line in FILE.read_text().splitlines():
        case = json.loads(line)
        code = re.match(r"Rollout (\w+)", case["user"])[1]
        rules = [SimpleNamespace(id=number) for number in re.findall(rf"BEGIN {code} rule (\d+)", case["user"])]
        marks = {mark.rule: mark for mark in read_marks(case["reply"], rules, code)}
        planted = "Note to the checker" in case["user"]
        assert {mark.instructions for mark in marks.values()} == {planted}
        for rule, (applies, followed) in case["by_code"].items():
            total += 1
            agree += (marks[rule].applies, marks[rule].followed if applies else None) == (applies, followed)
    assert (agree, total) == (140, 140)

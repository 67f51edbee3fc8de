"""Rechecks of programs whose goal is a judge's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from evaluations import Failing
from planted import PAYS, of, planted_in, rechecked

RUBRIC = """rubric fits = \"\"\"
  3  the kind is that of the thing
  1  it is another
\"\"\"
model referee = "own/judge" { backend = python("judges:judge") }
"""
# By levels, it knows the tools; of a pair it prefers the tool.
JUDGE = """
import json, re

def judge(messages, model, parameters):
    text = messages[-1]["content"]
    case = re.search(r"Case (\\w+)", text)[1]
    pair = dict(re.findall(r"BEGIN \\w+ answer (A|B) kind\\n(.*?)\\nEND", text, re.DOTALL))
    better = next((side for side, kind in pair.items() if kind == "tool"), "tie")
    tool = re.search("hammer|saw|chisel|wrench", text)
    level = 3 if bool(tool) == ("answer kind\\ntool" in text) else 1
    verdict = {"reason": "tools", "better": better} if pair else {"reason": "tools", "level": level}
    return json.dumps({"case": case, "verdicts": [verdict]})
"""


def judged_in(folder: Path, more: str) -> Path:
    """The planted program with a judge as its goal, and no right answers."""
    planted_in(folder, PAYS)
    (folder / "judges.py").write_text(JUDGE)
    text = (
        (folder / "things.skill").read_text().replace("exact_match(kind)", f"judge(kind, fits, model = referee{more})")
    )
    (folder / "things.skill").write_text(text.replace("data {", RUBRIC + "data {"))
    data = folder / "things.jsonl"
    data.write_text("".join(line.partition(', "kind"')[0] + "}\n" for line in data.read_text().splitlines()))
    return folder


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("more", [", against = initial", ""])
def test_judges_are_asked_anew_within_the_bound_and_then_come_from_the_cache(tmp_path: Path, more: str) -> None:
    folder = judged_in(tmp_path / "things", more)
    found = rechecked(folder)
    assert not any(example.gold for example in found.job.examples)
    assert (found.whole.finding, of(found, PAYS).finding) == ("pays", "pays")
    charged: Any = found.spent["charged"]
    assert len(found.job.examples) * 3 < charged["total"]["calls"] <= found.job.bound.most.calls
    again: Any = rechecked(folder).spent["paid"]
    assert again["total"]["calls"] == 0


@pytest.mark.thorough
def test_a_judge_that_is_lost_leaves_it_unmeasured(tmp_path: Path) -> None:
    class Lossy(Failing):
        @staticmethod
        def fails(call: Any) -> str | None:
            return "cut" if call.role == "referee" else None

    found = rechecked(judged_in(tmp_path / "things", ""), client=Lossy)
    assert {each.finding for each in found.results} == {"not measured"}
    assert set(found.unmeasured) == {"judge"}
    assert found.status == 2

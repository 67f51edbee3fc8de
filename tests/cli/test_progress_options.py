"""`--json-lines`, `--quiet` and the table of a weighted goal, as a user sees them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from conftest_cli import PROGRAM, shop_in, skillc

Ran = tuple[Path, list[dict[str, Any]], str]
WEIGHTED = PROGRAM.replace(
    "goal correct = exact_match(kind)",
    "metric right = exact_match(kind)\nmetric size = clamp(tokens(kind), 0 tokens, 9 tokens)\n"
    "goal score = 0.7 * right + 0.3 * (1 - size / 9 tokens)",
).replace("candidate.correct > incumbent.correct", "candidate.score > incumbent.score")


@pytest.fixture(scope="module")
def weighted(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    """A compile with `--json-lines`: its folder, its events, and what it printed on standard error."""
    folder = shop_in(tmp_path_factory.mktemp("weighted"), WEIGHTED)
    done = skillc("compile", "things.skill", "--json-lines", "--set", "budget.steps=3", folder=folder)
    assert done.returncode == 0, done.stderr
    return folder, [json.loads(line) for line in done.stdout.splitlines()], done.stderr


def test_each_line_is_an_event_and_the_result_is_the_last(weighted: Ran) -> None:
    folder, events, stderr = weighted
    names = [event["event"] for event in events]
    assert names[0] == "start"
    assert names[-1] == "result"
    assert {"step", "stage", "progress", "candidates", "evidence", "decision"} <= {*names}
    assert events[0]["goal"] == "score"
    history = [json.loads(line) for line in (folder / "skills/sort-things.history.jsonl").read_text().splitlines()]
    decisions = [event for event in events if event["event"] == "decision"]
    assert [each["decision"] for each in decisions] == [line["decision"] for line in history]
    assert "step 1/3" not in stderr


def test_the_table_shows_each_part_of_a_weighted_goal_and_quiet_shows_nothing_else(weighted: Ran) -> None:
    folder, events, _ = weighted
    done = skillc("compile", "things.skill", "--quiet", "--set", "budget.steps=3", folder=folder)
    assert done.returncode == 0
    assert done.stderr == ""
    lines = done.stdout.splitlines()
    assert sum(line.startswith("  right ") for line in lines) == 3
    sizes = [line for line in lines if line.startswith("  size ")]
    assert len(sizes) == 3
    assert all(line.rstrip().endswith("tokens") for line in sizes)
    assert any(line.startswith("compared  ") and "against no skill on test" in line for line in lines)
    result = events[-1]
    assert {*result["parts"]} == {"right", "size"}
    best = {name: part["test"]["best"]["mean"] for name, part in result["parts"].items()}
    expected = 0.7 * best["right"] + 0.3 * (1 - best["size"] / 9)
    assert result["test"]["best"]["mean"] == pytest.approx(expected, abs=1e-5)
    gain = result["test"]["best"]["mean"] - result["test"]["none"]["mean"]
    assert result["gain_over_none"] == pytest.approx(gain, abs=1e-5)


@pytest.mark.parametrize("other", ["--json", "--quiet"])
def test_what_contradicts_json_lines_is_refused(shop: Path, other: str) -> None:
    done = skillc("compile", "things.skill", "--json-lines", other, folder=shop)
    assert done.returncode == 2
    assert f"`--json-lines` and `{other}` can't be used together" in done.stderr
    (event,) = [json.loads(line) for line in done.stdout.splitlines()]
    assert event["event"] == "error"

"""The experiment with scripts in place of models: what its output says of judges and of gains, and after a kill."""

import json
import shutil
import signal
import subprocess
import time
from pathlib import Path

import forked
import pytest
from click.testing import CliRunner

from skillc.cli import skillc as verbs

ROOT = Path(__file__).resolve().parents[2]
EXACT = "referee=scripts/exact"
GENERAL = "optimizer=scripts/general"


def run(folder, *arguments):
    """Start a verb; what it prints is in `stdout.txt` and `stderr.txt`."""
    with (folder / "stdout.txt").open("w") as out, (folder / "stderr.txt").open("w") as err:
        return subprocess.Popen([*forked.command(), *arguments], cwd=folder, stdout=out, stderr=err)


def experiment(folder, rows=16):
    """The programs with the first rows of each split; None for all."""
    shutil.copytree(ROOT / "programs/ai_feedback", folder, ignore=shutil.ignore_patterns(".skillc", "skills*"))
    for split in ("train", "validation", "test"):
        path = folder / "data" / f"{split}.jsonl"
        path.write_text("".join(path.read_text().splitlines(keepends=True)[:rows]))
    return folder


LISTEN = """

def _heard(play, name):
    def playing(messages, model, parameters):
        with open("heard.jsonl", "a") as file:
            file.write(json.dumps([name, [message["content"] for message in messages]]) + "\\n")
        return play(messages, model, parameters)
    return playing


act, referee, evolve = _heard(act, "agent"), _heard(referee, "judge"), _heard(evolve, "evolver")
"""


def heard(folder):
    """All prompts by who got them, of an experiment whose players listen."""
    found = {"agent": [], "judge": [], "evolver": []}
    for line in (folder / "heard.jsonl").read_text().splitlines():
        name, texts = json.loads(line)
        found[name].append("\n".join(texts))
    return found


def compiled(folder, program, *models, epochs=2, rows=16):
    """The report and the printed grid of a compile."""
    experiment(folder, rows)
    options = [word for model in models for word in ("--model", model)]
    options += ["--set", f"budget.epochs={epochs}", "--set", "budget.cost=none", "--set", "optimize.null_arm=never"]
    assert run(folder, "compile", f"{program}.skill", "--json", *options).wait() == 0, (
        folder / "stderr.txt"
    ).read_text()
    return json.loads((folder / "stdout.txt").read_text()), printed(folder / f"{program}.skill")


def printed(program, *options):
    done = CliRunner().invoke(verbs, ["history", str(program), "--items", *options], standalone_mode=False)
    if done.exception:
        raise done.exception
    return done.output


def gain(report, metric, split):
    rows = [row for row in report["gains"] if row["metric"] == metric and row["compiled"]]
    return rows[0]["splits"][split]["gain"] if rows else None


def test_a_judge_that_is_a_coin_is_called_one(tmp_path):
    report, text = compiled(tmp_path / "a", "blind")
    (found,) = report["judging"]
    assert (found["judged"], found["truth"]) == ("verdict", "correct")
    low, high = found["correlation_interval"]
    assert low < 0 < high
    assert found["by_chance"] is True
    assert 0.3 < found["agreement"] < 0.7
    assert found["flips"] > 2 * found["true_flips"] > 0
    assert "not distinguishable from chance" in " ".join(text.split())


def history(folder):
    (path,) = folder.glob("skills/*.history.jsonl")
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    return [line for line in lines if line.get("edits")]


def test_a_judge_that_is_right_and_rules_that_are_general_gain_everywhere(tmp_path):
    report, text = compiled(tmp_path / "a", "blind", EXACT, GENERAL, rows=12)
    (found,) = report["judging"]
    assert found["by_chance"] is False
    assert found["correlation"] > 0.9
    assert all(gain(report, "correct", split) > 0.3 for split in ("validation", "test"))
    assert report["verdict"] == "improved"
    assert "vanishes" not in text
    assert "apart" not in text
    assert not any(row["vanishes"] for row in report["gains"])


@pytest.mark.thorough
def test_answers_learned_by_heart_are_a_gain_that_vanishes(tmp_path):
    report, text = compiled(tmp_path / "a", "informed", rows=24)
    later = [row for row in report["gains"] if row["metric"] == "correct"][-1]
    train, validation = later["splits"]["train"], later["splits"]["validation"]
    assert train["interval"][0] > 0
    assert train["gain"] > 0.3
    assert abs(validation["gain"]) < 0.1
    assert later["vanishes"]
    assert "vanishes `correct`" in " ".join(text.split())
    grid = json.loads(printed(tmp_path / "a/informed.skill", "--json"))["grids"]
    on_train = next(each for each in grid if (each["split"], each["metric"]) == ("train", "correct"))
    assert on_train["columns"] == ["epoch 1", "epoch 2"]
    assert on_train["right"] == sorted(on_train["right"])
    assert on_train["fates"]["newly solved"] >= 5


@pytest.mark.parametrize("marks", [("accept",), ("reflect", "gate", "final test")])
@pytest.mark.thorough
def test_a_run_that_is_killed_ends_with_the_same_bytes(tmp_path, marks):
    def files(folder):
        found = [*folder.glob("skills/**/*"), *folder.glob(".skillc/runs/*/items.json")]
        return {str(path.relative_to(folder)): path.read_bytes() for path in found if path.is_file()}

    found = []
    for name, kills in (("whole", ()), ("killed", marks)):
        folder = experiment(tmp_path / name, 8)
        models = ("--model", EXACT, "--model", GENERAL, "--set", "budget.cost=none")
        command = ("compile", "blind.skill", "--set", "budget.epochs=2", *models)
        for mark in kills:
            child = run(folder, *command)
            until = time.monotonic() + 60
            while mark not in (folder / "stderr.txt").read_text() and time.monotonic() < until:
                time.sleep(0.005)
            child.kill()
            assert child.wait() == -signal.SIGKILL
        assert run(folder, *command).wait() == 0, (folder / "stderr.txt").read_text()
        found.append(files(folder))
    assert found[0] == found[1]
    assert len(found[0]) >= 5


def test_the_agent_reads_no_notes_and_the_evolver_no_truth(tmp_path):
    folder = experiment(tmp_path / "a", 8)
    with (folder / "players.py").open("a") as file:
        file.write(LISTEN)
    done = run(folder, "compile", "blind.skill", "--set", "budget.epochs=2", "--set", "data.seed=1", "--quiet").wait()
    assert done == 0, (folder / "stderr.txt").read_text()
    prompts = heard(folder)
    notes = {edit["rationale"] for line in history(folder) for edit in line["edits"]}
    assert notes
    later = [text for text in prompts["evolver"] if "why: asked for by" in text]
    assert later or not any(line["result"] == "accept" for line in history(folder)[:-1])
    skill = next(folder.glob("skills/*/SKILL.md")).read_text()
    for text in [*prompts["agent"], *prompts["judge"], skill]:
        assert not any(note in text for note in notes)
        assert "why:" not in text
    for text in prompts["evolver"]:
        cases = text.partition("<trajectories")[2].partition("<request")[0]
        assert "<feedback>" in cases
        assert "<gold>" not in cases
        assert "correct" not in cases
    assert prompts["judge"]
    assert not any("right answer\n" in text for text in prompts["judge"])


@pytest.mark.thorough
def test_the_whole_experiment_shows_both_findings(tmp_path):
    blind, _ = compiled(tmp_path / "a", "blind", epochs=5, rows=None)
    assert blind["judging"][0]["by_chance"] is True
    assert gain(blind, "verdict", "test") > 0 > gain(blind, "correct", "test")
    informed, _ = compiled(tmp_path / "b", "informed", epochs=5, rows=None)
    assert informed["judging"][0]["correlation"] > 0.99
    assert gain(informed, "correct", "train") > 0.3
    assert abs(gain(informed, "correct", "test")) < 0.05
    assert [row["vanishes"] for row in informed["gains"] if row["metric"] == "correct"] == [True, True]


@pytest.mark.thorough
def test_without_a_record_the_message_says_how_to_get_one(tmp_path):
    folder = experiment(tmp_path / "a", 8)
    assert run(folder, "compile", "blind.skill", "--set", "budget.epochs=1", "--quiet").wait() == 0
    (record,) = folder.glob(".skillc/runs/*/items.json")
    record.unlink()
    with pytest.raises(Exception, match="are not recorded here"):
        printed(folder / "blind.skill")

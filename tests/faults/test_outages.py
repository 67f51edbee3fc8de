"""A model's server that dies in mid-run: it is named at once, calls wait for it, and the run stops or goes on whole."""

import json
import sqlite3
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "cli"))
sys.path.insert(0, str(Path(__file__).resolve().parent))

from loopback import Loopback
from nursery import Nursery
from test_resume import compiled, is_prefix, shop

from skillc.frontend import estimate, plan_file

TARGET = '"openai/rulebook" { base_url = env("SERVER"); key = env("KEY"); down = 1 s; concurrency = 16 }'
# What was sent to nobody is not paid: two tries of the models, and what was on its way when a connection broke, of at
# most 16 calls at once.
LOST = 2 + 16
OPTIMIZER = '"openai/rulebook" { base_url = env("OTHER"); key = env("KEY"); down = 1 s; concurrency = 16 }'


@pytest.fixture(scope="module")
def nursery():
    return Nursery()


def program(down="1 s"):
    from conftest_cli import PROGRAM

    text = PROGRAM.replace("epochs = 2", "steps = 2")
    text = text.replace('target    = "rulebook/v1"', f"target = {TARGET}").replace("1 s", down)
    return text.replace('optimizer = "rulebook/v1"', f"optimizer = {OPTIMIZER}")


def start(nursery, folder, target, optimizer, verb="compile", *arguments):
    nursery.start(folder, verb, "things.skill", *arguments, SERVER=target.url, OTHER=optimizer.url, KEY="k")


def run(nursery, folder, target, optimizer, *arguments):
    start(nursery, folder, target, optimizer, *arguments)
    return nursery.wait()


def told(folder):
    """What was printed, without the line breaks of a narrow terminal."""
    return " ".join((folder / "stderr.txt").read_text().split()), (folder / "stdout.txt").read_text()


def lock_of(folder):
    return json.loads((folder / "skills" / "sort-things.lock").read_text())


def attempts(query, folder):
    """The rows of a query over the attempts of the one run in a folder."""
    (path,) = folder.glob(".skillc/runs/*/run.db")
    with closing(sqlite3.connect(path)) as base:
        return base.execute(query).fetchall()


def paid_of(folder):
    """Calls that were paid, by the receipts of the run."""
    return len(attempts("SELECT number FROM attempts WHERE state != 'refused'", folder))


@pytest.fixture(scope="module")
def whole(nursery, tmp_path_factory):
    """An undisturbed run: its folder, its bytes, and the requests of each stage in order."""
    folder = shop(tmp_path_factory.mktemp("whole") / "things", program())
    with Loopback(0.002) as target, Loopback(0.002) as optimizer:
        assert run(nursery, folder, target, optimizer) == 0, told(folder)
        return folder, compiled(folder), target.total, optimizer.total


def moment(folder, stage, role="target"):
    """The number of the request in the middle of a stage, among those that a role's server gets."""
    of_role = attempts(f"SELECT stage FROM attempts WHERE role = '{role}' ORDER BY number", folder)
    sent = [name for (name,) in of_role if name != "preflight"]
    places = [number for number, name in enumerate(sent, 1) if name == stage]
    assert places, f"no `{stage}` in {sorted(set(sent))}"
    return places[len(places) // 2]


def dying_at(count):
    return lambda body, total: total >= count


def stays_away(nursery, folder, target, optimizer, dying, role, verb="compile", *arguments):
    """Runs a verb whose server dies and stays away; everything that must be said is said."""
    assert run(nursery, folder, target, optimizer, verb, *arguments) == 3, told(folder)
    assert dying.died.is_set()
    stderr, stdout = told(folder)
    named = f"model `{role}` (`openai/rulebook` at `{dying.url}`)"
    refused = "no connection to `127.0.0.1`: connection refused"
    assert f"note: {named} cannot be reached: {refused}; its calls wait for up to 1 s" in stderr
    assert stderr.count("cannot be reached") == 1
    assert f"{named} could not be reached for 1 s: {refused}" in stderr + " ".join(stdout.split())
    assert "run the same command" in stderr + " ".join(stdout.split())
    assert "Traceback" not in stderr


@pytest.mark.thorough
def test_a_target_that_dies_in_the_baseline_stops_the_run_with_nothing_written(nursery, tmp_path, whole):
    folder = shop(tmp_path / "things", program())
    with Loopback(0.002) as target, Loopback(0.002) as optimizer:
        target.dies = dying_at(moment(whole[0], "baseline"))
        stays_away(nursery, folder, target, optimizer, target, "target")
        assert not (folder / "skills").exists()
        assert paid_of(folder) <= target.total + optimizer.total + LOST
        with target.revived() as again:
            assert run(nursery, folder, again, optimizer) == 0
    assert compiled(folder) == whole[1]


@pytest.mark.parametrize("stage", ["rollout", "gate", "test"])
@pytest.mark.quick_cases(1)
def test_a_target_that_dies_later_leaves_a_prefix_that_is_unverified_and_goes_on(nursery, tmp_path, whole, stage):
    folder = shop(tmp_path / "things", program())
    with Loopback(0.002) as target, Loopback(0.002) as optimizer:
        target.dies = dying_at(moment(whole[0], stage))
        stays_away(nursery, folder, target, optimizer, target, "target")
        stopped, lock = compiled(folder), lock_of(folder)
        assert lock["verdict"] == "unverified"
        assert lock["reason"].startswith("a model stayed out of reach")
        assert lock["stopped"].startswith("steps after decision" if stage == "test" else "down after decision")
        assert lock["looks"] == []
        assert is_prefix(stopped, whole[1])
        assert paid_of(folder) <= target.total + optimizer.total + LOST
        with target.revived() as again:
            assert run(nursery, folder, again, optimizer) == 0, told(folder)
    assert compiled(folder) == whole[1]


@pytest.mark.thorough
def test_an_optimizer_that_dies_stops_the_run_too(nursery, tmp_path, whole):
    folder = shop(tmp_path / "things", program())
    with Loopback(0.002) as target, Loopback(0.002) as optimizer:
        optimizer.dies = dying_at(moment(whole[0], "reflect", "optimizer"))
        stays_away(nursery, folder, target, optimizer, optimizer, "optimizer")
        assert lock_of(folder)["verdict"] == "unverified"
        assert lock_of(folder)["stopped"].startswith("down after decision")
        with optimizer.revived() as again:
            assert run(nursery, folder, target, again) == 0
    assert compiled(folder) == whole[1]


def test_calls_wait_for_a_server_that_comes_back(nursery, tmp_path, whole):
    folder = shop(tmp_path / "things", program(down="60 s"))
    with Loopback(0.002) as target, Loopback(0.002) as optimizer:
        target.dies = dying_at(moment(whole[0], "gate"))
        start(nursery, folder, target, optimizer)
        assert target.died.wait(60)
        for _ in range(600):
            if "cannot be reached" in told(folder)[0]:
                break
            time.sleep(0.02)
        with target.revived() as again:
            assert nursery.wait() == 0, told(folder)
        assert paid_of(folder) <= target.total + again.total + optimizer.total + LOST
    stderr, _ = told(folder)
    assert "its calls wait for up to 1 min" in stderr
    assert f"note: model `target` (`openai/rulebook` at `{target.url}`) answers again after " in stderr
    ended = compiled(folder)
    assert {name: ended[name] for name in ("sort-things/SKILL.md", "sort-things.history.jsonl")} == {
        name: whole[1][name] for name in ("sort-things/SKILL.md", "sort-things.history.jsonl")
    }


def test_an_evaluation_stops_alike_and_goes_on(nursery, tmp_path, whole):
    folder = shop(tmp_path / "things", program())
    with Loopback(0.002) as target, Loopback(0.002) as optimizer:
        target.dies = dying_at(10)
        stays_away(nursery, folder, target, optimizer, target, "target", "eval")
        with target.revived() as again:
            assert run(nursery, folder, again, optimizer, "eval") == 0, told(folder)


def test_a_sanity_check_says_that_its_model_went_away(nursery, tmp_path):
    folder = shop(tmp_path / "things", program())
    with Loopback(0.002) as target, Loopback(0.002) as optimizer:
        target.dies = dying_at(15)
        stays_away(nursery, folder, target, optimizer, target, "target", "compile", "--sanity")


def test_how_long_a_model_may_be_away_is_not_part_of_the_run(tmp_path):
    from skillc.plan.digest import run_parts

    parts = []
    for down in ("1 s", "9 min"):
        folder = shop(tmp_path / down.replace(" ", ""), program(down))
        planned = plan_file(folder / "things.skill")
        assert planned.plan.models["target"].pacing.down == {"1 s": 1, "9 min": 540}[down]
        parts.append(run_parts(planned.plan, estimate(planned).dataset.digest, "0" * 64, {}, "1"))
    assert parts[0] == parts[1]

"""Whole compiles, and `skillc serve`, with a server that dies, is killed, or is kept."""

import contextlib
import json
import os
import signal
import subprocess

import pytest
from forked import command
from nursery import Nursery
from places import SERVED, Place, laid_out, wait

from skillc.models.serving.records import running_servers, stop_server

FILES = ("sort-things/SKILL.md", "sort-things.lock", "sort-things.history.jsonl", "sort_things.py")


@pytest.fixture(scope="module")
def nursery():
    return Nursery()


def compiled(place: Place):
    return {name: (place.folder / "skills" / name).read_bytes() for name in FILES}


def said(place):
    return (place.folder / "stderr.txt").read_text()


def finish(nursery, place, **environment):
    status = nursery.run(place.folder, "compile", "things.skill", "--json", **place.variables, **environment)
    assert status == 0, said(place)
    return json.loads((place.folder / "stdout.txt").read_text())


@pytest.fixture(scope="module")
def undisturbed(nursery, tmp_path_factory):
    """The bytes of a compile that nothing happened to, and what it said."""
    place = laid_out(tmp_path_factory.mktemp("undisturbed"))
    place.program()
    summary = finish(nursery, place)
    assert not place.running()
    return compiled(place), summary


def test_a_compile_serves_its_model_and_reports_the_prefix_cache(undisturbed):
    _, summary = undisturbed
    served = summary["served"][0]
    assert (served["roles"], served["model"], served["how"]) == (["target"], "./models/tiny", "started")
    assert 0 < served["prefix_cache"]["hits"] < served["prefix_cache"]["queries"]
    assert summary["spent"]["charged"]["total"]["cost_nano"] == 0


def test_a_server_that_dies_in_mid_run_changes_nothing(nursery, undisturbed, place):
    place.program()
    summary = finish(nursery, place, FAKE_DIES_AFTER="60")
    assert summary["served"][0]["restarts"] == 1
    assert compiled(place) == undisturbed[0]
    assert "restarting it, 1 of 3" in said(place)
    assert not place.running()


def test_a_run_that_is_killed_leaves_no_server_and_goes_on(nursery, undisturbed, place):
    place.program()
    pid = nursery.start(place.folder, "compile", "things.skill", **place.variables)
    wait(lambda: any(path.stat().st_size > 90_000 for path in place.folder.glob(".skillc/runs/*/run.db*")))
    os.kill(pid, signal.SIGKILL)
    assert nursery.wait() == -signal.SIGKILL
    wait(lambda: not place.running())
    finish(nursery, place)
    assert compiled(place) == undisturbed[0]
    assert len(place.starts) == 2
    assert not place.running()


def test_a_run_that_is_answered_by_its_record_starts_nothing(nursery, undisturbed, place):
    place.program()
    finish(nursery, place)
    finish(nursery, place)
    assert len(place.starts) == 1
    assert compiled(place) == undisturbed[0]


def test_a_server_that_cannot_start_ends_the_run_with_its_log_and_the_same_command_goes_on(nursery, undisturbed, place):
    place.program()
    status = nursery.run(place.folder, "compile", "things.skill", **place.variables, FAKE_DIES_AT_START="1")
    assert status == 2
    assert "CUDA out of memory" in said(place) and "Traceback" not in said(place)
    finish(nursery, place)
    assert compiled(place) == undisturbed[0]


def test_ctrl_c_while_the_server_starts_ends_both(nursery, place):
    place.program()
    pid = nursery.start(place.folder, "compile", "things.skill", **place.variables, FAKE_SLOW="60")
    place.wait_for_starts(1)
    os.kill(pid, signal.SIGINT)
    assert nursery.wait() == 130
    assert not place.running()


@contextlib.contextmanager
def serving(place, *arguments):
    """`skillc serve` in the foreground."""
    made = subprocess.Popen(
        [*command(), "serve", "things.skill", *arguments],
        cwd=place.folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield made
    finally:
        made.kill()
        made.communicate()


def test_serve_stays_until_ctrl_c_and_a_compile_finds_it(nursery, undisturbed, place):
    place.program()
    with serving(place, "--json") as made:
        told = json.loads(made.stdout.readline())["servers"][0]
        assert told["names"] == ["./models/tiny"] and told["url"].startswith("http://127.0.0.1:")
        assert (told["roles"], told["how"]) == (["target"], "started")
        summary = finish(nursery, place)
        assert summary["served"][0]["how"] == "reused"
        assert compiled(place) == undisturbed[0]
        assert len(place.running()) == 1
        made.send_signal(signal.SIGINT)
        assert made.wait() == 0
    assert len(place.starts) == 1
    assert not place.running()
    assert not list((place.folder / ".skillc" / "serve").glob("tiny-*.json"))


def test_serve_starts_a_server_again_that_dies(place):
    place.program()
    with serving(place) as made:
        assert "served    ./models/tiny at http" in made.stdout.readline()
        os.killpg(place.running()[0], signal.SIGKILL)
        place.wait_for_starts(2)
        wait(lambda: len(place.running()) == 1)
        made.terminate()
        assert made.wait() == 0
    assert not place.running()


def test_serve_stop_ends_what_was_kept_and_what_stays_in_the_foreground(nursery, place):
    place.program("keep = on")
    finish(nursery, place)
    assert len(place.running()) == 1
    assert nursery.run(place.folder, "serve", "things.skill", "--stop", **place.variables) == 0
    assert "stopped ./models/tiny at http" in said(place)
    assert not place.running()
    with serving(place) as made:
        made.stdout.readline()
        for path, told in running_servers(place.folder / ".skillc" / "serve"):
            stop_server(path, told)
        assert made.wait() == 0
    assert nursery.run(place.folder, "serve", "things.skill", "--stop", **place.variables) == 0
    assert "no server runs" in said(place)


def test_offline_starts_nothing(nursery, place):
    place.program()
    assert nursery.run(place.folder, "compile", "things.skill", "--offline", **place.variables) == 0
    assert not place.starts


def test_doctor_looks_at_what_is_served_and_starts_nothing(nursery, place):
    place.program(text=SERVED.replace("{ serve", '{ base_url = "http://127.0.0.1:9/v1"; serve'))
    nursery.run(place.folder, "doctor", "things.skill", "--json", **place.variables)
    told = (place.folder / "stdout.txt").read_text()
    assert "does not answer yet, and is served by skillc" in told
    assert f"in {place.folder}/.venv-vllm/bin/python" in told
    assert not place.starts


@pytest.mark.parametrize("verb", [("compile",), ("compile", "--sanity"), ("eval",)])
@pytest.mark.thorough
def test_the_budgets_time_counts_from_the_first_call(nursery, place, verb):
    """Starting the server takes longer than the whole run may; the run itself does not."""
    place.program(text=SERVED.replace("budget {", "budget { time = 6 s; steps = 1;"))
    status = nursery.run(place.folder, *verb, "things.skill", **place.variables, FAKE_SLOW="7")
    assert "vLLM answers after" in said(place)
    assert status in ((0, 1) if "--sanity" in verb else (0,)), said(place)
    assert "time after decision" not in (place.folder / "stdout.txt").read_text()


def test_a_run_that_takes_longer_than_its_time_is_stopped_all_the_same(nursery, place):
    place.program(text=SERVED.replace("budget {", "budget { time = 200 ms;"))
    assert nursery.run(place.folder, "compile", "things.skill", **place.variables) == 3, said(place)

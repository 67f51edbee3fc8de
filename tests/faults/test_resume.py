"""A run that is killed goes on where it was: same bytes, and no call twice but those in flight."""

import contextlib
import json
import os
import random
import shutil
import signal
import sys
import time
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "cli"))
sys.path.insert(0, str(Path(__file__).resolve().parent))

from conftest_cli import PROGRAM, WORDS, rows
from loopback import Loopback
from nursery import Nursery

REMOTE = PROGRAM.replace('"rulebook/v1"', '"openai/rulebook" { base_url = env("SERVER"); key = env("KEY") }')
IN_FLIGHT = 16
FILES = ("sort-things/SKILL.md", "sort-things.lock", "sort-things.history.jsonl", "sort_things.py")


@pytest.fixture(scope="module")
def nursery():
    return Nursery()


@pytest.fixture
def server():
    with Loopback(latency=0.002) as server:
        yield server


def shop(folder, program=REMOTE, count=60):
    """A folder with a program and its data, of which a run makes about 300 calls by default."""
    folder.mkdir()
    (folder / "things.skill").write_text(program)
    (folder / "things.jsonl").write_text("".join(json.dumps(row) + "\n" for row in list(rows())[:count]))
    return folder


def compiled(folder):
    """The bytes of all that a compile writes for git."""
    return {name: (folder / "skills" / name).read_bytes() for name in FILES}


def start(nursery, server, folder, *arguments, verb="compile", **environment):
    return nursery.start(folder, verb, "things.skill", *arguments, SERVER=server.url, KEY="k", **environment)


def finish(nursery, server, folder, *arguments, **options):
    start(nursery, server, folder, *arguments, **options)
    status = nursery.wait()
    assert status == 0, (folder / "stderr.txt").read_text()


def is_prefix(stopped, whole):
    """Whether its decisions begin a whole run's; the last accept may have been cut off before its validation."""
    texts = (files["sort-things.history.jsonl"] for files in (stopped, whole))
    part, full = ([json.loads(line) for line in text.splitlines()] for text in texts)
    if part and "completed" not in part[-1]:
        full[len(part) - 1].pop("completed", None)
    return part == full[: len(part)]


def same_after_a_test(folder, stopped, whole):
    """A run that a cap or the clock ended was tested, so the one that goes on may be the second look at the split."""
    ended = compiled(folder)
    assert ended["sort-things/SKILL.md"] == whole["sort-things/SKILL.md"]
    assert ended["sort-things.history.jsonl"] == whole["sort-things.history.jsonl"]
    before, after, expected = (json.loads(files["sort-things.lock"]) for files in (stopped, ended, whole))
    assert after["looks"][: len(before["looks"])] == before["looks"]
    assert after["charged"] == expected["charged"]
    assert after["test"]["best"] == expected["test"]["best"]


def killed(nursery, server, folder, dice, most, *arguments, **options):
    """Starts a compile and kills it at a random moment: after some more requests, and some milliseconds."""
    child = start(nursery, server, folder, *arguments, **options)
    server.wait_for(server.total + dice.randrange(1, most), seconds=1.5)
    time.sleep(dice.random() * 0.02)
    with contextlib.suppress(ProcessLookupError):
        os.kill(child, signal.SIGKILL)
    return nursery.wait()


@pytest.fixture(scope="module")
def whole(nursery, tmp_path_factory):
    """An unkilled run: its folder, its bytes, and what the server was asked."""
    folder = shop(tmp_path_factory.mktemp("whole") / "things")
    with Loopback(latency=0.002) as server:
        finish(nursery, server, folder)
        return folder, compiled(folder), server.asked.copy()


def test_a_run_that_is_killed_again_and_again_ends_with_the_same_bytes(nursery, server, whole, tmp_path):
    _, bytes_of_whole, once = whole
    folder = shop(tmp_path / "things")
    dice = random.Random(5)
    kills = sum(killed(nursery, server, folder, dice, most=40) == -signal.SIGKILL for _ in range(8))
    finish(nursery, server, folder)
    assert kills > 4
    assert compiled(folder) == bytes_of_whole
    assert set(server.asked) == set(once)
    assert server.total - once.total() <= kills * IN_FLIGHT


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.quick_cases(1)
def test_one_kill_at_a_random_moment_sends_nothing_again_but_what_was_in_flight(nursery, server, whole, tmp_path, seed):
    _, bytes_of_whole, once = whole
    folder = shop(tmp_path / "things")
    killed(nursery, server, folder, random.Random(seed), most=once.total())
    finish(nursery, server, folder)
    assert compiled(folder) == bytes_of_whole
    assert server.total - once.total() <= IN_FLIGHT


@pytest.mark.parametrize("verb", ["compile", "tidy"])
@pytest.mark.thorough
def test_a_tidying_that_is_killed_ends_with_the_same_bytes(nursery, tmp_path, verb):
    """At an epoch's end, and by the verb; of the verb's own skill one rule is never needed."""
    program = REMOTE.replace("edits = cosine(4, 2)", "edits = 8; screen = 0; tidy = on").replace(
        "batch = 12", "batch = 6"
    )
    any_of = {kind: " or ".join(f'"{word}"' for word in words) for kind, words in WORDS.items()}
    rules = "".join(f"- If the text mentions {words}, answer {kind}.\n" for kind, words in any_of.items())
    given = ("--skill", "mine.md") if verb == "tidy" else ()
    found = []
    for kills in (0, 5):
        folder, dice = shop(tmp_path / f"{kills}", program, count=120), random.Random(5)
        (folder / "mine.md").write_text(f'## Rules\n\n- If the text mentions "zeppelin", answer tool.\n{rules}')
        with Loopback(latency=0.002) as server:
            for _ in range(kills):
                killed(nursery, server, folder, dice, 40, *given, verb=verb)
            finish(nursery, server, folder, *given, verb=verb)
            found.append((compiled(folder), server.total))
    (whole, once), (again, more) = found
    assert again == whole
    assert more - once <= kills * IN_FLIGHT
    decisions = [json.loads(line) for line in whole["sort-things.history.jsonl"].splitlines()]
    assert ("tidy", "accept") in [(decision["kind"], decision["result"]) for decision in decisions]


def test_an_ablation_that_is_killed_ends_with_the_same_bytes(nursery, tmp_path):
    """Killed while the skill is measured, and while rules are tried; two rules are never needed."""
    any_of = {kind: " or ".join(f'"{word}"' for word in words) for kind, words in WORDS.items()}
    rules = "".join(f"- If the text mentions {words}, answer {kind}.\n" for kind, words in any_of.items())
    idle = '- If the text mentions "zeppelin", answer tool.\n- Stay calm.\n'
    found = []
    for share in (None, 0.15, 0.5):
        folder = shop(tmp_path / f"{share}")
        (folder / "mine.md").write_text(f"## Rules\n\n{idle}{rules}")
        with Loopback(latency=0.002) as server:
            if share is not None:
                child = start(nursery, server, folder, "--skill", "mine.md", verb="ablate")
                server.wait_for(int(share * found[0][1]))
                os.kill(child, signal.SIGKILL)
                assert nursery.wait() == -signal.SIGKILL
            finish(nursery, server, folder, "--skill", "mine.md", verb="ablate")
            found.append((compiled(folder), server.total))
    (whole, once), *others = found
    for again, more in others:
        assert again == whole
        assert more - once <= IN_FLIGHT
    decisions = [json.loads(line) for line in whole["sort-things.history.jsonl"].splitlines()]
    assert ("ablate", "accept") in [(decision["kind"], decision["result"]) for decision in decisions]


@pytest.mark.thorough
def test_what_was_in_flight_at_a_kill_stays_paid_and_is_never_charged(nursery, server, tmp_path):
    folder = shop(tmp_path / "things")
    server.latency = 0.05
    child = start(nursery, server, folder)
    server.wait_for(40)
    os.kill(child, signal.SIGKILL)
    nursery.wait()
    server.latency = 0.002
    start(nursery, server, folder, "--json")
    assert nursery.wait() == 0
    spent = json.loads((folder / "stdout.txt").read_text())["spent"]
    again = server.total - spent["charged"]["total"]["calls"]
    assert 0 < again <= IN_FLIGHT
    preflights = 2  # one in each session
    paid = spent["paid"]["total"]["calls"] - preflights
    assert server.total <= paid <= spent["charged"]["total"]["calls"] + IN_FLIGHT
    assert spent["paid"]["total"]["tokens"] > spent["charged"]["total"]["tokens"]


def test_a_stopped_run_is_a_prefix_of_the_whole_one_and_a_raised_cap_goes_on(nursery, server, whole, tmp_path):
    _, bytes_of_whole, once = whole
    folder = shop(tmp_path / "things")
    start(nursery, server, folder, "--set", "budget.calls=170")
    assert nursery.wait() == 3, (folder / "stderr.txt").read_text()
    assert server.total <= 170
    written = compiled(folder)
    assert written["sort-things.history.jsonl"]
    assert is_prefix(written, bytes_of_whole)
    assert json.loads(written["sort-things.lock"])["stopped"].startswith("calls")
    finish(nursery, server, folder)
    same_after_a_test(folder, written, bytes_of_whole)
    # What the stopped run was tested with was not asked by the whole one; nothing else is asked twice.
    assert {prompt: server.asked[prompt] for prompt in once} == once


def test_a_finished_run_costs_nothing_again_even_without_its_cache(nursery, server, whole, tmp_path):
    folder, bytes_of_whole, _ = whole
    copy = tmp_path / "things"
    shutil.copytree(folder, copy)
    shutil.rmtree(copy / ".skillc" / "cache")
    finish(nursery, server, copy)
    assert server.total == 0
    assert compiled(copy) == bytes_of_whole


@pytest.mark.thorough
def test_a_run_that_an_earlier_version_recorded_begins_anew_with_the_cached_replies(nursery, server, tmp_path):
    folder = shop(tmp_path / "things", REMOTE.replace("epochs = 2", "steps = 1"))
    finish(nursery, server, folder)
    written, once = compiled(folder), server.total
    (store,) = folder.glob(".skillc/runs/*/run.db")
    store.unlink()
    (store.parent / "outcomes.jsonl").write_text("{}\n")
    finish(nursery, server, folder)
    told = " ".join((folder / "stderr.txt").read_text().split())
    assert "an earlier version of skillc recorded this run in another format, so it starts anew" in told
    assert server.total == once
    assert compiled(folder) == written
    assert not (store.parent / "outcomes.jsonl").exists()


@pytest.mark.thorough
def test_fresh_asks_everything_again_and_then_goes_on_from_itself(nursery, server, whole, tmp_path):
    folder, bytes_of_whole, once = whole
    copy = tmp_path / "things"
    shutil.copytree(folder, copy)
    finish(nursery, server, copy, "--fresh")
    assert server.total == once.total()
    finish(nursery, server, copy)
    assert server.total == once.total()
    assert compiled(copy)["sort-things/SKILL.md"] == bytes_of_whole["sort-things/SKILL.md"]


def test_a_model_that_changes_behind_its_name_stops_the_run(nursery, server, tmp_path):
    folder = shop(tmp_path / "things")
    server.model = "rulebook-2026-01-01"
    child = start(nursery, server, folder)
    server.wait_for(60)
    os.kill(child, signal.SIGKILL)
    nursery.wait()
    server.model = "rulebook-2026-06-01"
    start(nursery, server, folder)
    assert nursery.wait() == 2
    told = (folder / "stderr.txt").read_text()
    assert "`rulebook-2026-01-01` earlier in this run and answers as `rulebook-2026-06-01` now" in told
    assert "--fresh" in told
    assert not (folder / "skills").exists()


def write_program(folder, old, new):
    text = (folder / "things.skill").read_text()
    assert old in text
    (folder / "things.skill").write_text(text.replace(old, new, 1))


def drop_a_row(folder):
    data = folder / "things.jsonl"
    data.write_text("".join(data.read_text().splitlines(keepends=True)[1:]))


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (lambda folder: write_program(folder, "batch = 12", "batch = 11"), "the program"),
        (drop_a_row, "the data"),
        (lambda folder: write_program(folder, "openai/rulebook", "openai/other"), "the models"),
    ],
    ids=["program", "data", "model"],
)
@pytest.mark.quick_cases(1)
def test_a_change_under_an_unfinished_run_is_named_and_starts_another(nursery, server, tmp_path, change, named):
    folder = shop(tmp_path / "things", REMOTE.replace("epochs = 2", "steps = 2"))
    child = start(nursery, server, folder)
    server.wait_for(30)
    os.kill(child, signal.SIGKILL)
    nursery.wait()
    change(folder)
    finish(nursery, server, folder)
    told = " ".join((folder / "stderr.txt").read_text().split())
    assert f"is unfinished; changed since: {named}. a new run starts" in told
    assert len(list((folder / ".skillc" / "runs").iterdir())) == 2


def test_a_full_disk_stops_the_run_with_a_message_and_loses_nothing(nursery, server, whole, tmp_path):
    """A limit on the size of a file does what a full disk does, in the middle of a page too."""
    _, bytes_of_whole, once = whole
    folder = shop(tmp_path / "things")
    for size in (150_000, 400_000):
        start(nursery, server, folder, DISK=str(size))
        assert nursery.wait() == 2
        told = (folder / "stderr.txt").read_text()
        assert "cannot be written" in told
        assert "Traceback" not in told
    finish(nursery, server, folder)
    assert compiled(folder) == bytes_of_whole
    assert set(server.asked) == set(once)


def test_ctrl_c_writes_the_best_skill_so_far_at_once_and_says_how_to_go_on(nursery, server, whole, tmp_path):
    _, bytes_of_whole, once = whole
    folder = shop(tmp_path / "things")
    server.latency = 0.02
    child = start(nursery, server, folder)
    server.wait_for(120)
    os.kill(child, signal.SIGINT)
    before = server.total
    assert nursery.wait() == 130
    # At once means: what was in flight may end, and nothing more is sent. A busy machine may take its time for that.
    assert server.total - before <= 2 * IN_FLIGHT
    said = (folder / "stdout.txt").read_text()
    assert "interrupted after decision" in said
    assert "the same command" in said
    written = compiled(folder)
    assert written["sort-things/SKILL.md"]
    assert is_prefix(written, bytes_of_whole)
    assert json.loads(written["sort-things.lock"])["verdict"] in ("unverified", "no significant gain")
    server.latency = 0.002
    finish(nursery, server, folder)
    assert compiled(folder) == bytes_of_whole
    assert server.total - once.total() <= IN_FLIGHT


@pytest.mark.thorough
def test_ctrl_c_in_the_baseline_writes_nothing_and_goes_on(nursery, server, whole, tmp_path):
    _, bytes_of_whole, _ = whole
    folder = shop(tmp_path / "things")
    server.latency = 0.2
    child = start(nursery, server, folder)
    server.wait_for(10)
    os.kill(child, signal.SIGINT)
    assert nursery.wait() == 130
    told = (folder / "stderr.txt").read_text()
    assert "interrupted before the initial skill was measured, so there is nothing to write" in told
    assert "Traceback" not in told
    assert not (folder / "skills").exists()
    server.latency = 0.002
    finish(nursery, server, folder)
    assert compiled(folder) == bytes_of_whole


@pytest.mark.thorough
def test_the_clock_cuts_a_run_off_where_it_stands_and_a_later_run_goes_on(nursery, server, whole, tmp_path):
    _, bytes_of_whole, _ = whole
    folder = shop(tmp_path / "things")
    server.latency = 0.25
    start(nursery, server, folder, "--set", "budget.time=5s")
    assert nursery.wait() == 3, (folder / "stderr.txt").read_text()
    written = compiled(folder)
    assert is_prefix(written, bytes_of_whole)
    assert json.loads(written["sort-things.lock"])["stopped"].startswith("time after decision")
    server.latency = 0.002
    finish(nursery, server, folder)
    same_after_a_test(folder, written, bytes_of_whole)

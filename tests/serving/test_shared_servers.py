"""A server with several users: one restart for all of them, and a log for each process."""

import contextlib
import os
import signal
import subprocess

import pytest
from clients import ask, client, stop_all, user
from forked import command
from places import wait

from skillc.models.serving.process import new_log


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr("skillc.models.serving.process.GRACE", 0.3)


@contextlib.contextmanager
def serving(place):
    """`skillc serve`, when its server answers."""
    with (place.folder / "serve.txt").open("a") as errors:
        made = subprocess.Popen(
            [*command(), "serve", "things.skill"],
            cwd=place.folder,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        )
    try:
        assert "served" in made.stdout.readline()
        yield made
    finally:
        made.terminate()
        made.communicate()


def say(*users):
    for each in users:
        print("hello", os.urandom(4).hex(), file=each.stdin, flush=True)


def hear(*users):
    """What each user was answered: how it is served."""
    told = [each.stdout.readline().split() for each in users]
    assert all(line and line[0] == "True" for line in told), told
    return sorted(line[1] for line in told)


def kill_server(place):
    (pid,) = place.running()
    os.killpg(pid, signal.SIGKILL)
    wait(lambda: not place.running())


def logs(place):
    return [start["log"] for start in place.starts]


def test_serve_restarts_its_server_for_all_users(place):
    place.program()
    with serving(place), user(place, max_len=4096) as one, user(place, max_len=4096) as other:
        say(one, other)
        assert hear(one, other) == ["reused", "reused"]
        for count in (2, 3):
            kill_server(place)
            say(one, other)
            assert hear(one, other) == ["reused", "reused"]
            assert len(place.starts) == count
        assert len(place.running()) == 1
        assert len(set(logs(place))) == 3
        told = (place.folder / "serve.txt").read_text()
        assert all(log in told.replace("\n", "") for log in logs(place))
    assert not place.running()


@pytest.mark.thorough
def test_a_user_that_comes_while_serve_restarts_waits_for_it(place, monkeypatch):
    monkeypatch.setenv("FAKE_SLOW_AGAIN", "2")
    place.program()
    with serving(place), user(place, max_len=4096) as late:
        kill_server(place)
        place.wait_for_starts(2)
        say(late)
        assert hear(late) == ["reused"]
    assert len(place.starts) == 2


def test_one_user_restarts_a_kept_server_and_the_others_wait(place, monkeypatch):
    monkeypatch.setenv("FAKE_SLOW_AGAIN", "1")
    with user(place, keep=True) as one, user(place, keep=True) as other, user(place, keep=True) as third:
        users = (one, other, third)
        say(*users)
        assert hear(*users) == ["reused", "reused", "started"]
        kill_server(place)
        say(*users)
        assert hear(*users) == ["reused", "reused", "started"]
        assert len(place.starts) == 2
    assert len(place.running()) == 1
    stop_all(place)


@pytest.mark.thorough
def test_serve_is_killed_while_it_restarts_and_one_user_takes_over(place, monkeypatch):
    monkeypatch.setenv("FAKE_SLOW_AGAIN", "2")
    place.program()
    with serving(place) as keeper, user(place, max_len=4096) as one, user(place, max_len=4096) as other:
        say(one, other)
        hear(one, other)
        kill_server(place)
        place.wait_for_starts(2)
        say(one, other)
        keeper.kill()
        keeper.wait(60)
        assert hear(one, other) == ["reused", "started"]
        assert len(place.starts) == 3
        assert len(place.running()) == 1
        assert len(set(logs(place))) == 3
    wait(lambda: not place.running())


def test_a_restarter_that_is_killed_leaves_no_server_and_the_next_user_restarts(place, monkeypatch):
    monkeypatch.setenv("FAKE_SLOW_AGAIN", "2")
    with user(place, keep=True) as one, user(place, keep=True) as other:
        say(one, other)
        hear(one, other)
        kill_server(place)
        say(one)
        place.wait_for_starts(2)
        say(other)
        one.kill()
        one.wait(60)
        assert hear(other) == ["started"]
        assert len(place.starts) == 3
        assert len(place.running()) == 1
    stop_all(place)
    assert not place.running()


def test_serve_that_is_killed_while_idle_is_replaced_by_one_user(place):
    place.program()
    with serving(place) as keeper, user(place, max_len=4096) as one, user(place, max_len=4096) as other:
        say(one, other)
        hear(one, other)
        keeper.kill()
        wait(lambda: not place.running())
        say(one, other)
        assert hear(one, other) == ["reused", "started"]
        assert len(place.starts) == 2
    wait(lambda: not place.running())


def test_the_death_of_a_shared_server_is_told_with_the_end_of_its_own_log(place):
    with client(place, keep=True) as made:
        ask(made)
    with client(place, keep=True) as made:
        ask(made, "one")
        with open(place.starts[0]["log"], "a") as log:
            log.write("RuntimeError: the first one's end\n")
        kill_server(place)
        ask(made, "two")
        assert made.servers.all[0].log == place.log()
        death = next(note for note in made.notes.notes if "during the run" in note)
        assert "the first one's end" in death
    stop_all(place)


def test_two_private_servers_of_one_program_have_a_log_each(place):
    with user(place) as one, user(place) as other:
        say(one, other)
        assert hear(one, other) == ["started", "started"]
        assert len(set(logs(place))) == 2
    wait(lambda: not place.running())


def test_old_logs_are_removed_unless_a_process_writes_to_them(tmp_path):
    first, used = new_log(tmp_path, "tiny")
    with used:
        made = [new_log(tmp_path, "tiny") for _ in range(20)]
        for _, file in made:
            file.close()
        assert first.exists()
    _, last = new_log(tmp_path, "tiny")
    last.close()
    assert not first.exists()
    assert {path.name for path in tmp_path.glob("*.log")} == {f"tiny.{n}.log" for n in range(14, 23)}

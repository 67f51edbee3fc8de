"""Servers that skillc starts: found, waited for, reused, started again, and ended whatever happens."""

import asyncio
import contextlib
import json
import os
import signal
import stat
import subprocess
import sys
import threading

import pytest
from clients import NAME, ask, client, holder, socket_on_loopback, state, stop_all
from model_plans import model, plan_of
from places import runs, wait

from skillc.errors import SkillcError
from skillc.models.calls import Call, Message
from skillc.models.client import Client
from skillc.models.failures import CallFailed, PermanentFailure
from skillc.models.serving.process import ProcessIdentity, identify
from skillc.models.serving.records import running_servers


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """A server that ignores SIGTERM is killed soon."""
    monkeypatch.setattr("skillc.models.serving.process.GRACE", 0.3)


# ---- start ----


def test_a_server_is_started_by_the_first_call_and_ends_with_the_client(place):
    with client(place) as made:
        assert not place.starts
        assert ask(made).text
        ask(made, "again")
        assert len(place.starts) == 1
        served = made.servers.summaries()[0]
        assert (served.how, served.source, served.restarts) == ("started", "./models/tiny", 0)
        assert served.cache.hits > 0 and served.cache.queries > served.cache.hits
        assert place.running()
    assert not place.running()
    assert any("vLLM answers" in note for note in made.notes.notes)


def test_what_the_cache_answers_starts_no_server(place):
    plan = plan_of(model(name=NAME, base_url=None, serve={}), model("optimizer"))
    for _ in range(2):
        with Client(plan, root=place.folder, cache_folder=place.folder / "cache") as made:
            assert ask(made).text
    assert len(place.starts) == 1


def test_it_has_a_key_that_no_command_line_shows(place):
    with client(place) as made:
        ask(made)
        start = place.starts[0]
        key = start["env"]["VLLM_API_KEY"]
        assert key.startswith("sk-skillc-") and key not in " ".join(start["argv"])
        files = [path for path in place.folder.rglob("*") if path.is_file() and path.name != "starts.jsonl"]
        assert not [path for path in files if key.encode() in path.read_bytes()]
        assert stat.S_IMODE(place.log().stat().st_mode) == 0o600


def test_a_declared_key_is_the_servers_key(place, monkeypatch):
    monkeypatch.setenv("TEAM_KEY", "chosen")
    monkeypatch.setenv("OPENAI_API_KEY", "another")
    with client(place, key_env="TEAM_KEY") as made:
        ask(made)
    assert place.starts[0]["env"] == {"VLLM_API_KEY": "chosen"}


def test_all_calls_of_a_wave_wait_for_one_start(place, monkeypatch):
    monkeypatch.setenv("FAKE_SLOW", "0.5")

    async def wave(made):
        calls = [Call("target", "rollout", (Message("user", f"number {i}"),)) for i in range(8)]
        return await asyncio.gather(*(made.complete(call) for call in calls))

    with client(place) as made:
        assert len(asyncio.run(wave(made))) == 8
    assert len(place.starts) == 1
    assert any("Starting to load model" in (text or "") for text in made.notes.waits)
    assert made.notes.waits[-1] is None


def test_a_base_model_and_its_adapter_are_one_server(place):
    folder = place.folder / "adapters" / "poet"
    folder.mkdir(parents=True)
    (folder / "adapter_config.json").write_text('{"r": 8}')
    serve = {"model": "models/tiny", "lora": {"poet": "adapters/poet"}}
    models = [
        model(role, f"hosted_vllm/{name}", base_url=None, serve=serve)
        for role, name in (("target", "tiny"), ("optimizer", "poet"))
    ]
    with Client(plan_of(*models), root=place.folder) as made:
        assert ask(made).model == "tiny"
        assert ask(made, role="optimizer").model == "poet"
    assert len(place.starts) == 1
    argv = place.starts[0]["argv"]
    assert argv[argv.index("--served-model-name") + 1] == "tiny"


def test_all_servers_answer_before_the_first_call_where_a_run_asks_for_that(place, monkeypatch):
    other = model("optimizer", NAME, base_url=None, serve={"max_len": 9})
    plan = plan_of(model(name=NAME, base_url=None, serve={}), other)
    with Client(plan, root=place.folder, preflight=True) as made:
        ask(made)
        assert [served.roles for served in made.servers.summaries()] == [("target",), ("optimizer",)]
    assert len(place.starts) == 2
    monkeypatch.setenv("FAKE_DIES_AT_START", "9")
    with Client(plan, root=place.folder, preflight=True) as made, pytest.raises(PermanentFailure):
        ask(made)
    assert made.ledger.snapshot()["paid"]["total"]["calls"] == 0
    assert not place.running()


# ---- what goes wrong at the start ----


def test_a_death_at_the_start_shows_the_end_of_the_log_without_the_key(place, monkeypatch):
    monkeypatch.setenv("FAKE_DIES_AT_START", "9")
    with client(place) as made, pytest.raises(PermanentFailure) as failed:
        ask(made)
    assert "with status 1" in failed.value.message
    assert "CUDA out of memory" in failed.value.message
    assert place.starts[0]["env"]["VLLM_API_KEY"] not in failed.value.message
    assert str(place.log()) in failed.value.hint
    assert len(place.starts) == 1


def test_its_log_contains_no_secret_that_it_prints(place, monkeypatch):
    monkeypatch.setenv("FAKE_DIES_AT_START", "9")
    monkeypatch.setenv("TEAM_KEY", "planted-key/0123456789")
    with client(place, key_env="TEAM_KEY") as made, pytest.raises(PermanentFailure) as failed:
        ask(made)
    assert place.starts[0]["env"] == {"VLLM_API_KEY": "planted-key/0123456789"}
    assert "the key is [secret VLLM_API_KEY]\n" in place.log().read_text()
    for text in (failed.value.message, place.log().read_text()):
        assert "planted-key" not in text
        assert "CUDA out of memory" in text


def test_a_start_that_takes_too_long_is_given_up(place, monkeypatch):
    monkeypatch.setenv("FAKE_SLOW", "60")
    with client(place, timeout=1.5) as made, pytest.raises(PermanentFailure, match="did not answer within") as failed:
        ask(made)
    assert "timeout = 60 min" in failed.value.hint
    assert not place.running()


def test_an_option_that_vllm_does_not_know_is_shown_as_vllm_says_it(place):
    with client(place, args=["--no-such-flag"]) as made, pytest.raises(PermanentFailure, match="--no-such-flag"):
        ask(made)


# ---- the end ----


def test_a_server_that_ignores_sigterm_is_killed_with_its_children(place, monkeypatch):
    child = place.folder / "child"
    monkeypatch.setenv("FAKE_IGNORES_TERM", "1")
    monkeypatch.setenv("FAKE_CHILD", str(child))
    with client(place) as made:
        ask(made)
        assert runs(int(child.read_text()))
    assert not place.running()
    assert not runs(int(child.read_text()))


def test_children_of_a_server_that_died_are_killed(place, monkeypatch):
    child = place.folder / "child"
    monkeypatch.setenv("FAKE_CHILD", str(child))
    monkeypatch.setenv("FAKE_DIES_AT_START", "1")
    with client(place) as made, pytest.raises(PermanentFailure):
        ask(made)
    assert not runs(int(child.read_text()))


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_nothing_runs_on_when_skillc_is_ended_from_outside(place, monkeypatch, how):
    child = place.folder / "child"
    monkeypatch.setenv("FAKE_CHILD", str(child))
    with holder(place) as made:
        assert made.stdout.readline() == "answered\n"
        os.kill(made.pid_of_client, how)
        made.wait(60)
        wait(lambda: not place.running() and not runs(int(child.read_text())))


def test_nothing_runs_on_when_skillc_is_killed_while_its_server_starts(place, monkeypatch):
    monkeypatch.setenv("FAKE_SLOW", "60")
    with holder(place) as made:
        place.wait_for_starts(1)
        made.kill()
        made.wait(60)
        wait(lambda: not place.running())


def test_a_client_that_is_closed_while_its_server_starts_ends_it(place, monkeypatch):
    monkeypatch.setenv("FAKE_SLOW", "60")
    with client(place) as made:
        future = made.servers.all[0].start()
        place.wait_for_starts(1)
    assert not place.running()
    assert isinstance(future.exception(), SkillcError)


# ---- reuse ----


def test_a_kept_server_is_used_by_the_next_run_and_stopped_when_asked(place):
    with client(place, keep=True) as made:
        ask(made)
        told = state(place)
        assert stat.S_IMODE(next((place.folder / ".skillc" / "serve").glob("*-*.json")).stat().st_mode) == 0o600
    assert place.running() == [told["server"]["pid"]]
    for keep in (True, False):
        with client(place, keep=keep) as made:
            ask(made)
            assert made.servers.summaries()[0].how == "reused"
        assert place.running()
    assert len(place.starts) == 1
    stop_all(place)
    assert not place.running()
    assert not running_servers(place.folder / ".skillc" / "serve")


def test_a_kept_server_outlives_a_skillc_that_is_killed(place):
    with holder(place, keep=True) as made:
        assert made.stdout.readline() == "answered\n"
    assert len(place.running()) == 1
    with client(place, keep=True) as again:
        ask(again)
    assert len(place.starts) == 1
    stop_all(place)


def test_a_file_that_tells_of_another_process_is_not_believed(place):
    with client(place, keep=True) as made:
        ask(made)
    path, told = running_servers(place.folder / ".skillc" / "serve")[0]
    os.killpg(told.server.pid, signal.SIGKILL)
    wait(lambda: not place.running())
    lie = json.loads(path.read_text())
    lie["server"] = {"pid": os.getpid(), "born": "1"}
    path.write_text(json.dumps(lie))
    with client(place, keep=True) as made:
        ask(made)
        assert made.servers.summaries()[0].how == "started"
    assert len(place.starts) == 2
    stop_all(place)
    assert not place.running()


def test_other_weights_are_another_server(place):
    with client(place, keep=True) as made:
        ask(made)
    (place.folder / "models" / "tiny" / "model.safetensors").write_bytes(b"others")
    with client(place, keep=True) as made:
        ask(made)
    assert len(place.starts) == 2
    stop_all(place)


def test_two_that_start_at_once_share_one_server(place, monkeypatch):
    monkeypatch.setenv("FAKE_SLOW", "0.5")
    with client(place, keep=True) as one, client(place, keep=True) as other:
        told = []
        threads = [threading.Thread(target=lambda made=made: told.append(ask(made).text)) for made in (one, other)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(told) == 2
        assert sorted(each.servers.summaries()[0].how for each in (one, other)) == ["reused", "started"]
    assert len(place.starts) == 1
    stop_all(place)
    assert not place.running()


def test_the_users_own_key_stands_in_no_file(place, monkeypatch):
    monkeypatch.setenv("TEAM_KEY", "planted-key")
    for _ in range(2):
        with client(place, key_env="TEAM_KEY", keep=True) as made:
            ask(made)
    assert len(place.starts) == 1
    assert state(place)["key"] is None
    files = [path for path in place.folder.rglob("*") if path.is_file() and path.name != "starts.jsonl"]
    assert not [path for path in files if b"planted-key" in path.read_bytes()]
    stop_all(place)


# ---- an address that answers already ----


def test_an_address_that_answers_is_used_as_it_is(place, monkeypatch):
    monkeypatch.setenv("TEAM_KEY", "k")
    with client(place, key_env="TEAM_KEY") as first:
        ask(first)
        at = f"http://127.0.0.1:{place.starts[0]['port']}/v1"
        with client(place, base_url=at, key_env="TEAM_KEY") as made:
            ask(made)
            assert made.servers.summaries()[0].how == "found"
            assert made.roles["target"].endpoint.id != first.roles["target"].endpoint.id
        assert place.running()
        with (
            client(place, "hosted_vllm/models/tiny", at, "TEAM_KEY") as made,
            pytest.raises(PermanentFailure) as failed,
        ):
            ask(made)
        assert "which serves `./models/tiny`" in failed.value.message
        monkeypatch.setenv("TEAM_KEY", "wrong")
        with client(place, base_url=at, key_env="TEAM_KEY") as made, pytest.raises(PermanentFailure) as failed:
            ask(made)
        assert "status 401" in failed.value.message and "key" in failed.value.hint
    assert len(place.starts) == 1


def test_an_address_here_where_nobody_answers_is_where_it_starts(place):
    with socket_on_loopback() as free:
        pass
    with client(place, base_url=f"http://localhost:{free}/v1") as made:
        ask(made)
        assert made.servers.summaries()[0].how == "started"
    assert place.starts[0]["port"] == free


def test_an_address_elsewhere_where_nobody_answers_is_told(place):
    with (
        client(place, base_url="http://127.0.0.2:9/v1") as made,
        pytest.raises(PermanentFailure, match="no server answers"),
    ):
        ask(made)
    assert not place.starts


# ---- death in mid-run ----


def test_a_server_that_dies_is_started_again_on_its_port(place, monkeypatch):
    monkeypatch.setenv("FAKE_DIES_AFTER", "2")
    with client(place) as made:
        texts = [ask(made, f"number {i}").text for i in range(5)]
        assert all(texts)
        assert made.servers.summaries()[0].restarts == 1
    first, second = place.starts
    assert first["port"] == second["port"]
    death = next(note for note in made.notes.notes if "during the run" in note)
    assert "by signal 9" in death and "illegal memory access" in death and "1 of 3" in death
    assert not place.running()


def test_a_death_of_a_kept_server_in_mid_run_is_no_end_either(place):
    with client(place, keep=True) as made:
        ask(made)
    with client(place, keep=True) as made:
        ask(made, "one")
        os.killpg(place.running()[0], signal.SIGKILL)
        ask(made, "two")
        assert (made.servers.summaries()[0].how, made.servers.summaries()[0].restarts) == ("started", 1)
    assert len(place.running()) == 1
    stop_all(place)


def test_a_server_that_cannot_come_back_stops_the_run_with_its_log(place, monkeypatch):
    with client(place) as made:
        ask(made)
        server = made.servers.all[0]
        server._environ["FAKE_DIES_AT_START"] = "99"
        os.killpg(place.running()[0], signal.SIGKILL)
        with pytest.raises(PermanentFailure, match="repeatedly") as failed:
            for i in range(9):
                with contextlib.suppress(CallFailed):
                    ask(made, f"number {i}")
        assert "CUDA out of memory" in failed.value.message
        assert "the same command resumes" in failed.value.hint
    assert len(place.starts) == 4
    assert not place.running()


# ---- processes ----


def test_a_process_is_known_by_when_it_began():
    here = identify(os.getpid())
    assert here.is_alive
    assert not ProcessIdentity(here.pid, "another time").is_alive
    child = subprocess.Popen([sys.executable, "-c", ""])
    was = identify(child.pid)
    wait(lambda: not was.is_alive)
    child.wait(60)
    assert not was.is_alive

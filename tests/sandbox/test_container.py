"""Containers, with an engine that a program plays; `make test-containers` runs them in real ones."""

import asyncio
import os
import shutil
import subprocess
import time

import pytest
from played_engine import LIMITS, values

from skillc.errors import SkillcError
from skillc.sandbox.container import command_line, is_rootless
from skillc.sandbox.policy import IMAGE, WORK, Limits, Mount, Policy
from skillc.sandbox.run import choose, problem_of, run


@pytest.fixture
def work(tmp_path):
    (tmp_path / "work").mkdir()
    return tmp_path / "work"


def shell(engine, policy, code, environment=None, stdin=None):
    return asyncio.run(run(engine.name, policy, ["sh", "-c", code], environment=environment or {}, stdin=stdin))


def test_the_command_line_gives_a_container_nothing_but_its_folder_and_its_limits(engine, work):
    policy = Policy(work, (Mount(work / "a,b"), Mount(work, "/home/agent", writable=True)), (), LIMITS, "own/image:2")
    variables = {"KEY": "secret", "HOME": "/home/agent"}
    words = command_line(engine.name, policy, ["python3", "x.py"], name="n", variables=variables, stdin=False)
    for option, value in {
        "--network": ["none"],
        "--cap-drop": ["ALL"],
        "--security-opt": ["no-new-privileges", "label=disable"],
        "--label": ["skillc"],
        "--pull": ["never"],
        "--memory": ["300000000"],
        "--memory-swap": ["300000000"],
        "--pids-limit": ["20"],
        "--user": ["0:0"],
        "--workdir": [WORK],
        "--env": ["KEY", "HOME=/home/agent"],
        "--mount": [
            f'type=bind,"source={work}/a,b","target={work}/a,b",readonly',
            f"type=bind,source={work},target=/home/agent",
            f"type=bind,source={work},target={WORK}",
        ],
    }.items():
        assert values(words, option) == value, option
    assert values(words, "--ulimit")[:2] == ["fsize=1000000:1000000", "core=0:0"]
    assert "--read-only" in words
    assert "secret" not in " ".join(words)
    assert words[-7:-5] == ["own/image:2", "-c"]
    assert words[-5].startswith('timeout -s KILL "$@"')
    assert words[-4:] == ["n", "30", "python3", "x.py"]


def test_limits_that_podman_would_raise_are_those_of_this_process(engine, work, monkeypatch):
    import resource

    limits = {resource.RLIMIT_NOFILE: (1024, 20_000), resource.RLIMIT_NPROC: (resource.RLIM_INFINITY,) * 2}
    monkeypatch.setattr(resource, "getrlimit", limits.get)
    words = command_line(engine.name, Policy(work), ["true"], name="n", variables={}, stdin=False)
    assert values(words, "--ulimit")[2:] == (
        ["nofile=1024:20000", "nproc=32768:32768"] if engine.name == "podman" else []
    )


def test_with_the_rights_of_root_outside_the_user_inside_is_the_own(engine, work):
    engine.play(rootless=False)
    words = command_line(engine.name, Policy(work), ["true"], name="n", variables={}, stdin=True)
    assert values(words, "--user") == [f"{os.getuid()}:{os.getgid()}"]
    assert "--interactive" in words


def test_a_command_runs_with_its_variables_and_its_container_is_removed(engine, work):
    code = 'read word; echo "$word $KEY $HOME"; echo x > made; echo err >&2; exit 3'
    result = shell(engine, Policy(work, limits=LIMITS), code, {"KEY": "k", "HOME": "/home/agent"}, b"in\n")
    assert (result.why, result.status, result.stdout) == ("ended", 3, b"in k /home/agent\n")
    assert b"err" in result.stderr
    assert (work / "made").read_text() == "x\n"
    (started,) = engine.asked()
    (removed,) = engine.asked("rm")
    assert values(started["words"], "--name") == [removed["words"][-1]]
    assert "KEY" in started["environment"]


def test_variables_of_skillc_do_not_reach_the_engine(engine, work, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "planted")
    shell(engine, Policy(work, limits=LIMITS), "true")
    (started,) = engine.asked()
    assert "OPENAI_API_KEY" not in started["environment"]


def test_a_container_that_does_not_start_is_an_error_of_the_sandbox_and_a_command_with_that_status_is_not(engine, work):
    policy = Policy(work, limits=LIMITS)
    assert shell(engine, policy, "echo own >&2; exit 125").status == 125
    engine.play(broken="OCI runtime error")
    with pytest.raises(OSError, match="OCI runtime error"):
        shell(engine, policy, "true")
    assert engine.asked("rm")


def test_limits_that_the_engine_enforces_are_told_apart(engine, work):
    engine.play(out_of_memory=True)
    assert shell(engine, Policy(work, limits=LIMITS), "kill -9 $$").why == "memory"
    engine.play()
    assert shell(engine, Policy(work, limits=LIMITS), "kill -9 $$").why == "ended"
    assert shell(engine, Policy(work, limits=Limits(time=0.4)), "sleep 60").why == "timeout"


def test_the_kernel_s_count_of_kills_for_memory_is_read_and_not_shown(engine, work):
    """The kernel's counts are printed in the place of the engine's script."""
    program = engine.folder / "timeout"
    program.write_text("#!/bin/sh\necho own >&2; kill -9 $$\n")
    program.chmod(0o755)
    counts = work / "counts"
    cat = engine.folder / "cat"
    cat.write_text(f"#!/bin/sh\n/bin/cat {counts}\n")
    cat.chmod(0o755)
    for kills, why in ((0, "ended"), (2, "memory")):
        counts.write_text(f"max 7\noom 3\noom_kill {kills}\noom_group_kill 0\n")
        result = shell(engine, Policy(work, limits=LIMITS), "true")
        assert (result.why, result.status) == (why, 137)
        assert b"own" in result.stderr
        assert b"oom" not in result.stderr
        assert b"skillc-" not in result.stderr


def test_a_cancelled_run_removes_its_container(engine, work):
    async def scenario():
        task = asyncio.ensure_future(run(engine.name, Policy(work), ["sleep", "60"], environment={}))
        while not (engine.folder / "asked.jsonl").exists() or not engine.asked():
            await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    begun = time.monotonic()
    asyncio.run(scenario())
    assert engine.asked("rm")
    assert time.monotonic() - begun < 20


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({}, None),
        ({"down": "Cannot connect to the daemon"}, "Cannot connect to the daemon"),
        ({"images": []}, f"the image `{IMAGE}` is not on this machine; run `{{engine}} pull {IMAGE}`"),
        ({"broken": "permission denied"}, "permission denied"),
        ({"remote": True}, "what a container writes into its work folder does not arrive"),
        ({"limits": False}, "it ignores limits on memory and processes; it needs control groups of version 2"),
    ],
)
def test_the_probe_finds_what_is_missing(engine, changes, problem):
    engine.play(**changes)
    assert problem_of(engine.name) == (problem and problem.format(engine=engine.name))
    if problem:
        with pytest.raises(SkillcError, match=f"the sandbox `{engine.name}` does not work here") as refused:
            choose(engine.name)
        assert "unsafe" in refused.value.hint
    else:
        assert choose(engine.name) == engine.name


def test_an_engine_that_is_not_installed_is_named_and_never_chosen_by_itself(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    problem_of.cache_clear()
    assert problem_of("podman") == "`podman` is not installed"
    with pytest.raises(SkillcError, match="no sandbox works") as refused:
        monkeypatch.setattr("skillc.sandbox.run.problem_of", lambda *_: "no")
        choose()
    assert "docker" not in str(refused.value)


def test_a_container_is_connected_to_named_hosts_by_skillc_s_own_interpreter(engine, work):
    shell(engine, Policy(work, hosts=("localhost:4711",), limits=LIMITS), "true", {"KEY": "k"})
    (started,) = engine.asked()
    words = started["words"]
    assert values(words, "--network") == ["none"]
    mounts = [dict(part.partition("=")[::2] for part in each.split(",")) for each in values(words, "--mount")]
    inside = {each["target"]: each for each in mounts}
    assert "readonly" in inside["/run/skillc/python/bin/python3"]
    assert "readonly" in inside["/run/skillc/forward.py"]
    assert inside["/run/skillc/hosts"]["source"].endswith("/hosts")
    assert {"KEY", "HTTPS_PROXY", "no_proxy"} <= set(values(words, "--env"))
    forward = words.index("/run/skillc/forward.py")
    assert words[forward + 1 :] == ["/run/skillc/hosts", "3128", "4711", "sh", "-c", "true"]


def test_the_start_removes_what_a_killed_skillc_left_and_nothing_else(engine):
    old, own = "skillc-1700000000-ab", f"skillc-{int(time.time()) + 600}-cd"
    engine.play(left=[old, own, "skillc-web", "skillc"])
    assert problem_of(engine.name) is None
    removed = [each["words"][-1] for each in engine.asked("rm")]
    assert old in removed
    assert not {own, "skillc-web", "skillc"} & set(removed)


def test_the_real_client_accepts_the_options(work):
    """Without a daemon it fails only after it has read its command line."""
    if shutil.which("docker") is None:
        pytest.skip("docker is not installed")
    is_rootless.cache_clear()
    policy = Policy(work, (Mount(work, "/home/agent", writable=True),), limits=LIMITS)
    words = command_line("docker", policy, ["true"], name="skillc-test", variables={"A": "b"}, stdin=True)
    done = subprocess.run(
        words,
        capture_output=True,
        text=True,
        env={"PATH": os.environ["PATH"], "DOCKER_HOST": "unix:///nowhere"},
        timeout=60,
        check=False,
    )
    assert "unknown" not in done.stderr
    assert "invalid" not in done.stderr
    assert "daemon" in done.stderr

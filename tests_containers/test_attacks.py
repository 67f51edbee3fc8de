"""What code in a container cannot do: the attacks on all sandboxes, and those on limits that an engine enforces."""

import asyncio
import os
import subprocess
import time

import test_sandbox
from test_sandbox import IMAGE, LIMITS, MIB, outside, policy_of, python, work  # noqa: F401

from skillc.sandbox.container import LABEL, remove_stale
from skillc.sandbox.policy import Limits, Policy
from skillc.sandbox.run import run

# The attacks themselves, with the engines of this folder.
globals().update(
    {
        name: test
        for name, test in vars(test_sandbox).items()
        if name.startswith("test_") and "kind" in test.__code__.co_varnames
    }
)


def test_nothing_but_its_folders_can_be_written_and_memory_bounds_what_is_not_on_a_disk(kind, work):
    code = """
        import os
        for place in ("/", "/usr", "/etc", "/root"):
            try:
                open(os.path.join(place, "new"), "w")
                print("written", place)
            except OSError:
                pass
        print("end", flush=True)
        for i in range(400):
            for place in ("/dev/shm", "/var/tmp", "/run", "/tmp"):
                try:
                    with open(os.path.join(place, f"new{i}"), "wb") as file:
                        file.write(b"x" * 2**20)
                except OSError:
                    pass
    """
    result = python(kind, work, code, limits=Limits(time=60, memory=100 * MIB, disk=60 * MIB))
    assert result.stdout == b"end\n"
    assert result.why == "memory", result


def test_a_command_that_takes_too_much_memory_is_told_apart_from_one_that_is_killed(kind, work):
    assert python(kind, work, "x = bytearray(10**9)").why == "memory"
    killed = python(kind, work, "import os; os.kill(os.getpid(), 9)")
    assert (killed.why, killed.status) == ("ended", 137)


def test_an_image_without_python_and_with_another_c_library_reaches_named_hosts_only(kind, work):
    code = 'for port in "$@"; do wget -q -O - "http://127.0.0.1:$port/" || echo refused; done'
    with test_sandbox.web(b"hello\n") as open_port, test_sandbox.web(b"hidden\n") as closed_port:
        result = small(kind, work, code, open_port, closed_port, hosts=(f"127.0.0.1:{open_port}",))
    assert result.stdout == b"hello\nrefused\n", result.stderr


def test_busybox_ends_a_command_at_its_time_although_skillc_does_not(kind, work, monkeypatch):
    monkeypatch.setattr("skillc.sandbox.container._AROUND_SECONDS", 1000.0)
    begun = time.monotonic()
    result = small(kind, work, "trap '' TERM; while true; do sleep 60; done", limits=Limits(time=1))
    assert result.why == "timeout"
    assert time.monotonic() - begun < 20


def small(kind, work, code, *arguments, hosts=(), limits=LIMITS):
    policy = Policy(work, (), hosts, limits, f"{IMAGE}-small")
    return asyncio.run(run(kind, policy, ["sh", "-c", code, "sh", *map(str, arguments)], environment={}))


def test_what_a_killed_skillc_and_a_killed_guard_left_is_removed_at_a_start_after_its_time(kind, work):
    def made(until):
        name = f"{LABEL}-{until}-{os.getpid()}"
        words = [kind, "create", "--name", name, "--label", LABEL, "--network", "none", IMAGE, "true"]
        subprocess.run(words, check=True, capture_output=True)
        return name

    def there():
        return subprocess.run(
            [kind, "ps", "--all", "--format", "{{.Names}}"], capture_output=True, text=True, check=True
        ).stdout

    old, own = made(int(time.time()) - 5), made(int(time.time()) + 600)
    try:
        remove_stale(kind)
        assert old not in there()
        assert own in there()
    finally:
        for name in (old, own):
            subprocess.run([kind, "rm", "--force", name], capture_output=True, check=False)


def test_a_command_that_an_image_does_not_have_fails_in_its_words(kind, work):
    result = asyncio.run(run(kind, policy_of(kind, work), ["no-such-agent"], environment={}))
    assert (result.why, result.status) == ("ended", 127)
    assert b"no-such-agent" in result.stderr

"""What code in a sandbox cannot do: each attack is tried in each sandbox that works on this machine.

`make test-containers` tries them in containers.
"""

import asyncio
import os
import socket
import subprocess
import sys
import textwrap
import threading
import time
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from skillc.errors import SkillcError
from skillc.sandbox import run as sandboxes
from skillc.sandbox.container import ENGINES
from skillc.sandbox.hosts import gateway
from skillc.sandbox.monitor import used_disk
from skillc.sandbox.policy import MAPPED, WORK, Limits, Mount, Policy
from skillc.sandbox.run import choose, problem_of, run

SECRET = "planted-4711"
MIB = 2**20
LIMITS = Limits(time=20, memory=300 * MIB, processes=20, file_size=20 * MIB, disk=60 * MIB)


@pytest.fixture(params=["bubblewrap", "landlock"])
def kind(request):
    problem = problem_of(request.param)
    if problem:
        pytest.skip(f"{request.param}: {problem}")
    return request.param


@pytest.fixture
def outside(tmp_path):
    (tmp_path / "secret.txt").write_text(SECRET)
    return tmp_path


@pytest.fixture
def work(tmp_path):
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


PYTHON = tuple(Mount(Path(prefix)) for prefix in {sys.prefix, sys.base_prefix} if not prefix.startswith("/usr"))
# Of a container; `make test-containers` makes one.
IMAGE = os.environ.get("SKILLC_TEST_IMAGE", "skillc-test")


def policy_of(kind, work, mounts=(), hosts=(), limits=LIMITS):
    return Policy(work, (*mounts, *(() if kind in ENGINES else PYTHON)), hosts, limits, IMAGE)


def python_of(kind):
    return ["python3" if kind in ENGINES else os.path.realpath(sys.executable), "-I", "-S", "-c"]


def python(kind, work, code, *arguments, limits=LIMITS, mounts=(), hosts=(), **environment):
    command = [*python_of(kind), textwrap.dedent(code), *map(str, arguments)]
    policy = policy_of(kind, work, mounts, hosts, limits)
    return asyncio.run(run(kind, policy, command, environment={"PATH": "/usr/bin:/bin", **environment}))


def test_a_command_runs_in_its_folder_and_what_it_writes_there_stays(kind, work):
    result = python(kind, work, "import os; open('made', 'w').write('x'); print(os.getcwd())")
    assert (result.why, result.status) == ("ended", 0), result.stderr
    assert result.stdout.decode().strip() == WORK
    assert (work / "made").read_text() == "x"


def test_standard_input_and_the_given_variables_arrive_and_no_others(kind, work, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    command = [*python_of(kind), "import os, sys; print(sys.stdin.read(), dict(os.environ))"]
    result = asyncio.run(run(kind, policy_of(kind, work), command, environment={"GIVEN": "1"}, stdin=b"asked"))
    assert b"asked" in result.stdout
    assert b"'GIVEN': '1'" in result.stdout
    assert SECRET.encode() not in result.stdout


def test_a_secret_outside_cannot_be_read_directly_by_a_link_or_through_another_process(kind, outside, work):
    (work / "link").symlink_to(outside / "secret.txt")
    code = """
        import os, sys
        secret, pid = sys.argv[1:]
        other = f"/proc/{pid}"
        for path in (secret, "link", "../secret.txt", f"{other}/environ", f"{other}/root{secret}", "/proc/1/environ"):
            try:
                print(path, open(path, "rb").read())
            except OSError as problem:
                print(path, type(problem).__name__)
    """
    os.environ["PLANTED"] = SECRET
    try:
        result = python(kind, work, code, outside / "secret.txt", os.getpid())
    finally:
        del os.environ["PLANTED"]
    assert result.status == 0, result.stderr
    assert SECRET.encode() not in result.stdout


@contextmanager
def listening(family):
    with socket.socket(socket.AF_INET, family) as server:
        server.bind(("127.0.0.1", 0))
        if family == socket.SOCK_STREAM:
            server.listen()
        server.settimeout(0.2)
        yield server


@pytest.mark.parametrize("family", [socket.SOCK_STREAM, socket.SOCK_DGRAM], ids=["tcp", "udp"])
def test_no_socket_reaches_this_machine(kind, work, family):
    code = """
        import socket, sys
        try:
            s = socket.socket(socket.AF_INET, int(sys.argv[1]))
            s.settimeout(1)
            s.connect(("127.0.0.1", int(sys.argv[2])))
            s.send(b"out")
            print("sent")
        except OSError as problem:
            print("refused", problem)
    """
    with listening(family) as server:
        result = python(kind, work, code, int(family), server.getsockname()[1])
        with pytest.raises(TimeoutError):
            server.recvfrom(9) if family == socket.SOCK_DGRAM else server.accept()
    assert result.status == 0, result.stderr
    if family == socket.SOCK_STREAM:
        assert b"refused" in result.stdout


@pytest.mark.parametrize("place", ["file", "abstract"])
def test_no_unix_socket_of_this_machine_is_reached(kind, outside, work, place):
    """Such as that of a container engine, which would do anything."""
    name = str(outside / "engine.sock") if place == "file" else f"\0skillc-{os.getpid()}"
    code = """
        import socket, sys
        with socket.socket(socket.AF_UNIX) as s:
            s.settimeout(1)
            try:
                s.connect(sys.argv[1].replace("@", "\\0", 1) if sys.argv[1][0] == "@" else sys.argv[1])
                print("connected")
            except OSError as problem:
                print("refused", problem)
    """
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(name)
        server.listen()
        result = python(kind, work, code, name.replace("\0", "@"))
    assert result.stdout.startswith(b"refused"), (result.stdout, result.stderr)


def test_no_process_outside_gets_a_signal(kind, work):
    code = """
        import os, signal, sys
        try:
            os.kill(int(sys.argv[1]), signal.SIGKILL)
            print("killed")
        except OSError as problem:
            print("refused", problem)
    """
    with subprocess.Popen(["sleep", "30"]) as other:
        result = python(kind, work, code, other.pid)
        assert other.poll() is None
        other.kill()
    assert result.stdout.startswith(b"refused"), (result.stdout, result.stderr)


def test_a_command_that_forks_without_end_is_killed(kind, work):
    code = """
        import os, time
        while True:
            try:
                if os.fork() == 0:
                    time.sleep(60)
                    os._exit(0)
            except OSError:
                time.sleep(0.01)
    """
    begun = time.monotonic()
    result = python(kind, work, code, limits=Limits(time=4, memory=2**30, processes=20))
    assert result.why in {"processes", "timeout"}
    assert time.monotonic() - begun < 15


def test_memory_is_bounded_over_all_processes(kind, work):
    code = """
        import os, sys, time
        for _ in range(8):
            if os.fork() == 0:
                held = b"x" * (100 * 2**20)
                time.sleep(2)
                os._exit(0)
        sys.exit(any(os.wait()[1] for _ in range(8)))
    """
    result = python(kind, work, code)
    assert result.why == "memory" or (result.why, bool(result.status)) == ("ended", True)


def test_the_disk_cannot_be_filled(kind, work):
    code = """
        import time
        for i in range(200):
            with open(f"f{i}", "wb") as file:
                file.write(b"x" * (10 * 2**20))
            time.sleep(0.01)
    """
    result = python(kind, work, code)
    assert result.why == "disk"
    assert used_disk([work]) < 1500 * MIB


def test_the_disk_cannot_be_filled_with_empty_files(kind, work):
    code = """
        i = 0
        while True:
            open(f"f{i}", "w").close()
            i += 1
    """
    assert python(kind, work, code, limits=Limits(time=20, disk=4 * MIB)).why == "disk"


def test_one_file_cannot_grow_past_its_limit(kind, work):
    if kind == "landlock":
        pytest.skip("it has no such limit")
    python(kind, work, "open('big', 'wb').write(b'x' * (40 * 2**20))")
    assert (work / "big").stat().st_size <= LIMITS.file_size


def test_nothing_outlives_the_command(kind, work):
    code = """
        import os, signal, time
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                while True:
                    open("alive", "w").write(str(time.time()))
                    time.sleep(0.02)
            os._exit(0)
        time.sleep(0.3)
    """
    result = python(kind, work, code)
    assert result.why == "ended"
    time.sleep(0.2)
    last = (work / "alive").read_text()
    time.sleep(0.3)
    assert (work / "alive").read_text() == last


def test_a_command_does_not_outlive_the_process_that_started_it(kind, work):
    code = """
        import asyncio, os, sys
        from pathlib import Path
        from skillc.sandbox.policy import Mount, Policy
        from skillc.sandbox.run import run

        inside = (
            "import os, time\\n"
            "if os.fork() == 0: os.setsid()\\n"
            "while True: open(str(os.getpid()), 'w').write(str(time.time())); time.sleep(0.02)"
        )
        kind, image, work, python, *mounts = sys.argv[1:]
        policy = Policy(Path(work), tuple(Mount(Path(each)) for each in mounts), image=image)
        asyncio.run(run(kind, policy, [python, "-I", "-S", "-c", inside], environment={"PATH": "/usr/bin:/bin"}))
    """
    mounts = [str(mount.source) for mount in policy_of(kind, work).mounts]
    words = [sys.executable, "-c", textwrap.dedent(code), kind, IMAGE, str(work), python_of(kind)[0], *mounts]
    with subprocess.Popen(words) as parent:
        wait_for(lambda: len(list(work.iterdir())) == 2)
        parent.kill()
    wait_for(lambda: len({written(work) for _ in range(4)}) == 1)


def wait_for(condition, seconds=20):
    begun = time.monotonic()
    while not condition():
        assert time.monotonic() - begun < seconds
        time.sleep(0.02)


def written(folder):
    """The content of all files, after a moment."""
    time.sleep(0.1)
    return tuple(file.read_text() for file in sorted(folder.iterdir()))


def test_the_time_ends_a_command_that_ignores_signals(kind, work):
    code = """
        import signal, time
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        time.sleep(60)
    """
    begun = time.monotonic()
    assert python(kind, work, code, limits=Limits(time=1)).why == "timeout"
    assert time.monotonic() - begun < 10


def test_nothing_is_written_through_links_or_over_what_is_mounted(kind, outside, work):
    (work / "link").symlink_to(outside / "secret.txt")
    (work / "folder").symlink_to(outside)
    shared = outside / "shared"
    shared.mkdir()
    (shared / "file").write_text("kept")
    code = """
        import os, sys
        for path in ("link", "folder/new", "../new", sys.argv[1] + "/file", "/usr/new", "/etc/new"):
            try:
                open(path, "w").write("changed")
            except OSError as problem:
                print(path, type(problem).__name__)
        try:
            os.link(sys.argv[1] + "/file", "hard")
            open("hard", "w").write("changed")
        except OSError:
            pass
    """
    result = python(kind, work, code, shared, mounts=(Mount(shared),))
    assert result.status == 0, result.stderr
    assert (outside / "secret.txt").read_text() == SECRET
    assert (shared / "file").read_text() == "kept"
    assert not (outside / "new").exists()
    assert not Path("/usr/new").exists()
    assert not Path("/etc/new").exists()


def test_a_writable_mount_is_written_and_keeps_its_place(kind, outside, work):
    home = outside / "home"
    home.mkdir()
    target = "/home/agent" if kind in MAPPED else str(home)
    result = python(
        kind, work, "import sys; open(sys.argv[1] + '/x', 'w').write('1')", target, mounts=(Mount(home, target, True),)
    )
    assert result.status == 0, result.stderr
    assert (home / "x").read_text() == "1"


def test_the_path_of_the_folder_is_not_in_what_is_printed(kind, work):
    result = python(kind, work, "import os, sys; print(os.path.abspath('a')); sys.exit(os.path.abspath('b'))")
    assert str(work).encode() not in result.stdout + result.stderr
    assert result.stdout == f"{WORK}/a\n".encode()
    assert f"{WORK}/b".encode() in result.stderr


def test_output_without_end_is_cut(kind, work):
    result = python(kind, work, "while True: print('x' * 9999)", limits=Limits(time=20, output=MIB))
    assert result.why == "output"
    assert len(result.stdout) <= MIB


def test_the_best_sandbox_is_chosen_and_a_missing_one_is_refused_with_the_fix(monkeypatch):
    problems = {"bubblewrap": "no `bwrap`", "landlock": None}
    monkeypatch.setattr(sandboxes, "problem_of", lambda kind, *_: problems[kind])
    assert choose() == "landlock"
    with pytest.raises(SkillcError, match="the sandbox `bubblewrap` does not work here: no `bwrap`") as refused:
        choose("bubblewrap")
    assert "sandbox = unsafe" in refused.value.hint
    assert choose("unsafe") == "unsafe"


def test_without_a_sandbox_limits_still_end_a_command(work):
    assert python("unsafe", work, "import time; time.sleep(60)", limits=Limits(time=0.5)).why == "timeout"


@contextmanager
def web(text):
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_address[1]
        server.shutdown()


GET = """
    import sys, urllib.request
    for url in sys.argv[1:]:
        try:
            print(urllib.request.urlopen(url, timeout=5).read().decode())
        except OSError as problem:
            print("refused", problem)
"""


def test_a_declared_address_is_reached_and_no_other(kind, work):
    with web(b"hello") as open_port, web(b"hidden") as closed_port:
        urls = [f"http://127.0.0.1:{port}/" for port in (open_port, closed_port)]
        result = python(kind, work, GET, *urls, hosts=(f"127.0.0.1:{open_port}",))
    assert result.status == 0, result.stderr
    lines = result.stdout.decode().splitlines()
    assert lines[0] == "hello"
    assert lines[1].startswith("refused")


def test_a_connection_that_is_open_at_the_end_is_closed_without_a_word(caplog):
    """Clients keep connections open for their next request."""

    async def keep_open(host):
        async with gateway([host]) as socket_path:
            reader, writer = await asyncio.open_unix_connection(socket_path)
            writer.write(f"CONNECT {host} HTTP/1.1\r\n\r\n".encode())
            await reader.readuntil(b"\r\n\r\n")
        assert await asyncio.wait_for(reader.read(), 10) == b""
        writer.close()

    with web(b"hello") as port:
        asyncio.run(keep_open(f"127.0.0.1:{port}"))
    assert not caplog.records


def test_a_command_can_name_its_own_machine(kind, work):
    result = python(kind, work, "import socket; print(socket.gethostbyname('localhost'))")
    assert result.stdout == b"127.0.0.1\n", result.stderr


def test_the_proxy_connects_to_declared_addresses_only(work):
    async def ask(hosts, *requests):
        answers = []
        async with gateway(hosts) as socket_path:
            for request in requests:
                reader, writer = await asyncio.open_unix_connection(socket_path)
                writer.write(request)
                writer.write_eof()
                answers.append(await asyncio.wait_for(reader.read(), 10))
                writer.close()
        return answers

    with web(b"hello") as port:
        own = f"127.0.0.1:{port}"
        answers = asyncio.run(
            ask(
                [own],
                f"GET http://{own}/x HTTP/1.1\r\nHost: {own}\r\n\r\n".encode(),
                f"CONNECT localhost:{port} HTTP/1.1\r\n\r\nGET / HTTP/1.0\r\n\r\n".encode(),
                f"CONNECT 127.0.0.1:{port + 1} HTTP/1.1\r\n\r\n".encode(),
                b"CONNECT example.org:443 HTTP/1.1\r\n\r\n",
                b"nonsense\r\n\r\n",
            )
        )
    assert answers[0].endswith(b"hello")
    assert answers[1].startswith(b"HTTP/1.1 200 OK")
    assert answers[1].endswith(b"hello")
    assert [answer.split(b" ")[1] for answer in answers[2:4]] == [b"403", b"403"]
    assert answers[4] == b""

"""A server is used only where it is proven to be ours: nothing else on its port is taken for it."""

import contextlib
import json
import os
import socket
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from clients import ask, client, holder, socket_on_loopback, stop_all
from places import wait

from skillc.models.failures import PermanentFailure
from skillc.models.serving import server
from skillc.models.serving.probe import Address, Listener, classify_server, is_free, is_shared, listeners

NAMES = ["./models/tiny"]


class Foreign(BaseHTTPRequestHandler):
    """Serves a model of the same name, and asks nobody for a key."""

    def do_GET(self):
        known = self.server.key is None or self.headers.get("authorization") == f"Bearer {self.server.key}"
        data = json.dumps({"data": [{"id": name} for name in NAMES]}).encode() if known else b"{}"
        self.send_response(200 if known or self.path == "/health" else 401)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_):
        pass


@contextlib.contextmanager
def foreign(port=0, key=None):
    """The port of a server that skillc did not start."""
    with ThreadingHTTPServer(("127.0.0.1", port), Foreign) as other:
        other.key = key
        thread = threading.Thread(target=other.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield other.server_address[1]
        finally:
            other.shutdown()
            thread.join()


@pytest.fixture
def free():
    with socket_on_loopback() as port:
        pass
    return port


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr("skillc.models.serving.process.GRACE", 0.3)


def refused(made):
    with pytest.raises(PermanentFailure) as failed:
        ask(made)
    return failed.value


def test_a_foreign_server_on_the_declared_port_is_an_error_before_anything_starts(place):
    with foreign() as port, client(place, port=port) as made:
        problem = refused(made)
    assert (
        problem.message == f"port {port} for `./models/tiny` (`target`) is in use by `python` (process {os.getpid()})"
    )
    assert problem.hint == (
        "stop that process, or change `port` in its `serve` block; without it skillc chooses a free port"
    )
    assert not place.starts


def test_a_socket_that_does_not_listen_yet_takes_the_port_too(place, free):
    with socket.socket() as bound:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        bound.bind(("127.0.0.1", free))
        with client(place, port=free) as made:
            assert f"port {free} for" in refused(made).message
    assert not place.starts


@pytest.mark.parametrize("key", [None, "another"])
def test_a_port_that_is_taken_while_the_server_starts_is_an_error(place, monkeypatch, free, key):
    monkeypatch.setenv("FAKE_SLOW", "60")
    with client(place, port=free) as made, contextlib.ExitStack() as stack:
        future = made.servers.all[0].start()
        place.wait_for_starts(1)
        stack.enter_context(foreign(free, key))
        problem = future.exception(60)
        assert f"port {free} for `./models/tiny` (`target`) is in use by `python`" in problem.message
        assert not place.running()


@pytest.mark.thorough
def test_a_port_that_is_taken_between_the_check_and_the_bind_is_an_error(place, monkeypatch):
    # The foreign server is silent, so that only the failed bind shows it.
    monkeypatch.setattr("skillc.models.serving.server.is_free", lambda host, port: True)
    with socket_on_loopback() as port, client(place, port=port) as made:
        assert f"port {port} for" in refused(made).message
    assert len(place.starts) == 1
    assert not place.running()


def test_a_foreign_server_with_the_same_declared_key_is_not_ours(place, monkeypatch, free):
    monkeypatch.setenv("TEAM_KEY", "shared")
    monkeypatch.setenv("FAKE_SLOW", "60")
    with client(place, port=free, key_env="TEAM_KEY") as made, contextlib.ExitStack() as stack:
        future = made.servers.all[0].start()
        place.wait_for_starts(1)
        stack.enter_context(foreign(free, "shared"))
        assert classify_server(Address(f"http://127.0.0.1:{free}/v1", "shared"), NAMES) == "ours"
        assert f"port {free} for" in future.exception(60).message


def test_a_chosen_port_that_is_taken_is_given_up_for_another(place, monkeypatch):
    with foreign() as port:
        ports = iter([port, port])
        real = server.free_port
        monkeypatch.setattr(server, "free_port", lambda host: next(ports, None) or real(host))
        with client(place) as made:
            ask(made)
            assert place.starts[0]["port"] != port


def test_a_kept_server_on_the_port_is_named_with_the_command_that_stops_it(place, free):
    with client(place, keep=True, port=free) as made:
        ask(made)
    with client(place, keep=True, port=free, max_len=99) as made:
        problem = refused(made)
    assert f"port {free} for" in problem.message
    assert problem.hint.startswith("stop that server with `skillc serve PROGRAM --stop`, or change `port`")
    stop_all(place)


def test_a_server_of_the_run_before_that_is_still_ending_is_waited_for(place, monkeypatch, free):
    monkeypatch.setenv("FAKE_IGNORES_TERM", "1")
    monkeypatch.setattr("skillc.models.serving.process.GRACE", 2)
    with holder(place, port=free) as made:
        assert made.stdout.readline() == "answered\n"
        made.kill()
        made.wait(60)
        with client(place, port=free) as again:
            ask(again)
            assert again.servers.summaries()[0].how == "started"
    assert len(place.starts) == 2


def test_a_port_stays_awaited_after_a_server_that_took_long_to_end(place, monkeypatch, free):
    with client(place, port=free) as made:
        ask(made)
        earlier = listeners(free)
    nobody = [Listener(1, 1, ("",))]  # what is seen of a process that is just ending
    seen = [*[earlier] * 7, nobody, []]
    free_yet = iter([False] * len(seen))
    monkeypatch.setattr(server, "is_free", lambda host, port: next(free_yet, True))
    monkeypatch.setattr(server, "listeners", lambda port: seen.pop(0) if seen else [])
    monkeypatch.setattr(server, "_LINGERS", 1)
    with client(place, port=free) as again:
        ask(again)
    assert len(place.starts) == 2


def test_a_published_address_where_a_foreign_server_answers_is_not_believed(place, free):
    with client(place, keep=True, port=free) as made:
        ask(made)
    path = next((place.folder / ".skillc" / "serve").glob("tiny-*.json"))
    told = json.loads(path.read_text())
    with foreign() as port:
        path.write_text(json.dumps({**told, "url": f"http://127.0.0.1:{port}/v1"}))
        with client(place, keep=True) as made:
            ask(made)
            assert made.servers.summaries()[0].how == "started"
    path.write_text(json.dumps(told))
    stop_all(place)


def test_the_processes_that_listen_are_found():
    code = "import socket, time; s = socket.create_server(('127.0.0.1', 0)); print(s.getsockname()[1], flush=True)"
    code += "; time.sleep(600)"
    child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, start_new_session=True)
    try:
        port = int(child.stdout.readline())
        assert [each.pid for each in listeners(port)] == [child.pid]
        assert not is_free("127.0.0.1", port)
        assert not is_shared(port, child.pid) and is_shared(port, os.getpgid(0))
    finally:
        child.kill()
        child.communicate()
    wait(lambda: is_free("127.0.0.1", port))
    assert listeners(port) == []

"""`skillc` in forked processes: the libraries are imported once for a whole run of the tests, not for each command.

A server imports them, listens on a socket and forks for each request; it is shared by all processes of a test run. A
command is a small program that passes its folder, environment, arguments and standard streams to that server, forwards
SIGINT and SIGTERM, and ends with the status of the forked process, which a SIGKILL of the command kills too.
As a program: `serve SOCKET`, `skillc SOCKET [ARGUMENT ...]` and
`python SOCKET (SCRIPT | -c CODE | -m MODULE) [ARGUMENT ...]`.
"""

import atexit
import json
import os
import signal
import socket
import sys
from functools import cache

_READY = b"ready\n"
# The folder of the server's sockets; processes that inherit it share the server.
_FOLDER = "SKILLC_TESTS_SERVER"


def command(what="skillc"):
    """The start of a command line of `skillc`, or of `python`, that is run in a forked process."""
    return [sys.executable, "-I", "-S", __file__, what, _server()]


def share_server():
    """Let this process and those that it starts share one server."""
    import shutil
    import tempfile

    if _FOLDER not in os.environ:
        folder = os.environ[_FOLDER] = tempfile.mkdtemp(prefix="skillc-tests-")
        atexit.register(shutil.rmtree, folder, ignore_errors=True)


@cache
def _server():
    """The socket of the server, which the first process that needs it starts."""
    import fcntl
    import subprocess

    share_server()
    path = os.path.join(os.environ[_FOLDER], "server")
    with open(path + ".lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not _use(path):
            server = subprocess.Popen(
                [sys.executable, __file__, "serve", path],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                start_new_session=True,
            )
            assert server.stdout.readline() == _READY
            server.stdout.close()
            assert _use(path)
    return path


_uses = []


def _use(path):
    """Keep a running server alive until this process ends; False if none is running."""
    use = socket.socket(socket.AF_UNIX)
    try:
        use.connect(path + ".use")
        running = bool(use.recv(1))
    except OSError:
        running = False
    if running:
        _uses.append(use)
    else:
        use.close()
    return running


class Forked:
    """A forked process of the server, which is killed if this object is dropped.

    Args:
        what: `skillc` or `python`.
        folder: its working folder.
        environment: all of it.
        streams: the file descriptors of its standard streams.
        path: the socket of the server; by default of that which all share.

    Attributes:
        pid: its process id.
    """

    def __init__(self, what, folder, environment, arguments, streams, path=None):
        self._server = socket.socket(socket.AF_UNIX)
        self._server.connect(path or _server())
        data = json.dumps([what, str(folder), dict(environment), list(map(str, arguments))]).encode() + b"\n"
        sent = socket.send_fds(self._server, [data], streams)
        self._server.sendall(data[sent:])
        self._answers = self._server.makefile("rb")
        self.pid = int(self._answers.readline())

    def forward(self, number):
        """Send it a signal by its number."""
        self._server.send(bytes([number]))

    def wait(self):
        """Its exit status; minus the signal that ended it."""
        status = int(self._answers.readline())
        self._answers.close()
        self._server.close()
        return status


def import_libraries():
    """Import what a compile imports; the first call of litellm imports half of it."""
    import asyncio

    import dspy  # noqa: F401

    import skillc.cli.running
    import skillc.frontend
    import skillc.pipeline.compile  # noqa: F401
    from skillc.models.backends.litellm import load_litellm

    litellm = load_litellm()
    asyncio.run(litellm.acompletion(model="openai/x", messages=[{"role": "user", "content": "x"}], mock_response="y"))


def run_skillc(arguments):
    """Run `skillc` in this process, and end the process with its status."""
    from skillc.cli import main

    sys.argv = ["skillc", *arguments]
    _end_with(main)


def _run_python(arguments):
    import runpy

    how = arguments[0]
    if how in ("-c", "-m"):
        _, given, *rest = arguments
        sys.path.insert(0, "" if how == "-c" else os.getcwd())
    if how == "-c":
        sys.argv = ["-c", *rest]
        _end_with(lambda: exec(compile(given, "<string>", "exec"), {"__name__": "__main__"}))
    if how == "-m":
        sys.argv = [given, *rest]
        _end_with(lambda: runpy.run_module(given, run_name="__main__", alter_sys=True))
    sys.argv = arguments
    sys.path.insert(0, os.path.dirname(os.path.abspath(how)))
    _end_with(lambda: runpy.run_path(how, run_name="__main__"))


def _end_with(run):
    signal.signal(signal.SIGINT, signal.default_int_handler)
    status = 0
    try:
        run()
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        import traceback

        traceback.print_exc()
        status = 1
    finally:
        _run_exit_handlers()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def _run_exit_handlers():
    """What the interpreter would run at its end."""
    import threading

    threading._shutdown()
    atexit._run_exitfuncs()


def _serve(path):
    import gc
    import threading

    import_libraries()
    gc.freeze()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    listener, uses = _listening(path), _listening(path + ".use")
    sys.stdout.buffer.write(_READY)
    sys.stdout.buffer.flush()
    threading.Thread(target=_end_unused, args=(uses,), daemon=True).start()
    while True:
        asked, _ = listener.accept()
        if os.fork() == 0:
            listener.close()
            _watch(asked)
        asked.close()


def _listening(path):
    if os.path.exists(path):
        os.unlink(path)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen(128)
    return listener


def _end_unused(uses):
    """End this process when the last of its users has ended."""
    import select

    users = []
    while True:
        for ready in select.select([uses, *users], [], [])[0]:
            if ready is uses:
                users.append(uses.accept()[0])
                users[-1].send(b"y")
            else:
                users.remove(ready)
                ready.close()
        if not users:
            os._exit(0)


def _watch(asked):
    """Run one command in a forked process, and report its status; end it if the client has gone."""
    import select

    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    text, streams, _, _ = socket.recv_fds(asked, 1 << 16, 3)
    while not text.endswith(b"\n"):
        text += asked.recv(1 << 16)
    what, folder, environment, arguments = json.loads(text)
    child = os.fork()
    if child == 0:
        asked.close()
        _become(folder, environment, streams)
        (run_skillc if what == "skillc" else _run_python)(arguments)
    for stream in (*streams, 0, 1, 2):
        os.close(stream)
    ended = os.pidfd_open(child)
    asked.sendall(b"%d\n" % child)
    while ended not in select.select([asked, ended], [], [])[0]:
        forwarded = asked.recv(1)
        os.kill(child, forwarded[0] if forwarded else signal.SIGKILL)
        if not forwarded:
            break
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    try:
        asked.sendall(b"%d\n" % status)
    finally:
        os._exit(0)


def _become(folder, environment, streams):
    import importlib

    os.setsid()
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    # A thread of the server held the lock of the old one when it forked.
    sys.stdin = os.fdopen(0, closefd=False)
    sys.path[:0] = [path for path in environment.get("PYTHONPATH", "").split(os.pathsep) if path]
    importlib.invalidate_caches()


def _ask(what, path, arguments):
    forked = Forked(what, os.getcwd(), os.environ, arguments, [0, 1, 2], path)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda number, _: forked.forward(number))
    status = forked.wait()
    if status < 0:
        if -status != signal.SIGKILL:
            signal.signal(-status, signal.SIG_DFL)
        os.kill(os.getpid(), -status)
    sys.exit(status)


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        _serve(sys.argv[2])
    else:
        _ask(sys.argv[1], sys.argv[2], sys.argv[3:])

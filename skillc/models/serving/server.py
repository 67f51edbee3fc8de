"""One server during a run: found or started when it is first needed, started again when it dies, stopped at the end."""

from __future__ import annotations

import os
import secrets
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Literal

from skillc.errors import SkillcError
from skillc.json_values import digest
from skillc.models.failures import PermanentFailure
from skillc.models.serving.interpreter import find_interpreter
from skillc.models.serving.launch import HOST, Launch, command, environment
from skillc.models.serving.probe import (
    Address,
    PrefixCache,
    free_port,
    is_free,
    is_loopback,
    is_shared,
    listeners,
    port_of,
    prefix_cache,
    served_names,
    verdict,
)
from skillc.models.serving.process import GRACE, Identity, ServerProcess, identify, latest, tail
from skillc.models.serving.published import (
    Published,
    Served,
    Silent,
    StartLock,
    Stopped,
    Watcher,
    all_published,
    find_keeper,
    find_running,
    publish,
    withdraw,
)
from skillc.text import listed

RESTARTS = 3
"""How often a server that dies in mid-run is started again."""
_PORTS_TRIED = 3
_POLL = 0.2
_LINGERS = 2.0
_IN_USE = "address already in use"


class _Died(Exception):  # noqa: N818
    """A server ended before it answered."""

    def __init__(self, status: int, told: str) -> None:
        super().__init__(told)
        self.status = status
        self.told = told


class _Taken(Exception):  # noqa: N818
    """Another process uses the port."""

    def __init__(self, port: int) -> None:
        super().__init__(port)
        self.port = port


class Server:
    """One server.

    Args:
        launch: what is served.
        roles: whose models it serves, for messages.
        names: what callers call the base model; empty where they want its adapters alone.
        key: what callers have to show; None makes a random one.
        secret_names: variables that the server's environment does not get.
        home: the folder of logs and of the files of running servers.
        foreground: `skillc serve` runs it: other runs may use it, this process restarts it for all of them, and it ends
            with this process even where `keep` is on.
        environ: the process's variables by default.
    """

    def __init__(
        self,
        launch: Launch,
        *,
        roles: Sequence[str],
        names: Sequence[str],
        key: str | None,
        secret_names: Sequence[str],
        home: Path,
        foreground: bool = False,
        environ: dict[str, str] | None = None,
    ) -> None:
        self.launch = launch
        self.roles = tuple(roles)
        self.names = tuple(names)
        self.watcher: Watcher = Silent()
        self.lost: Callable[[], None] = lambda: None
        self.back: Callable[[], None] = lambda: None
        self._key = key
        self._secret_names = tuple(secret_names)
        self._home = home
        self.tied = foreground or not launch.options.keep
        self._foreground = foreground
        # A server that was shared once stays shared: a restart is for all of its users.
        self._shared = foreground or launch.options.keep
        self._environ = dict(os.environ) if environ is None else environ
        self._lock = threading.Lock()
        self._closed = threading.Event()
        self._future: Future[Address] | None = None
        self._thread: threading.Thread | None = None
        self._process: ServerProcess | None = None
        self._reused: Identity | None = None
        self._log: Path | None = None
        self._found = False
        self._given_up = False
        self._restarts = 0
        self._port: int | None = None
        self._seconds: float | None = None
        self._secret = ""
        self._before = PrefixCache()
        self._counted: PrefixCache | None = None

    @property
    def log(self) -> Path | None:
        """The log of the process that serves now, or that ended last; None where there was none."""
        return self._log

    @property
    def state(self) -> Path:
        """The file that publishes it to other runs."""
        return self._home / f"{self._name}.json"

    @property
    def _alike(self) -> str:
        """The common prefix of the names of servers with equal options."""
        short = "".join(each if each.isalnum() else "-" for each in Path(self.launch.source).name)[:32]
        return f"{short}-{self.launch.server[:12]}"

    @property
    def _name(self) -> str:
        return f"{self._alike}-{digest(self._base_names)[:6]}"

    def begin(self) -> Future[Address]:
        """Start it where it does not run yet, or no more; the address when it answers.

        The future's error is a `PermanentFailure` where it cannot be started.
        """
        with self._lock:
            future = self._future
            if future is not None and (not future.done() or self._given_up or self._runs()):
                return future
            again = future is not None
            self._future = future = Future()
            # So that a caller who gives up cancels nothing that others wait for.
            future.set_running_or_notify_cancel()
            self._thread = threading.Thread(
                target=self._run, args=(future, again), name=f"skillc serve {self._name}", daemon=True
            )
            self._thread.start()
            return future

    def look(self) -> None:
        """Start it again at once where it died; to be called when a call failed."""
        with self._lock:
            began = self._future is not None and self._future.done()
        if began and not self._closed.is_set():
            self.begin()

    def served(self) -> Served | None:
        """Its summary; None where it was not used."""
        future = self._future
        if future is None or not future.done() or future.exception() is not None:
            return None
        now = prefix_cache(future.result())
        counted = self._counted
        if now is not None:
            counted = now.since(self._before).plus(counted or PrefixCache())
        how: Literal["started", "reused", "found"] = "started"
        if self._process is None:
            how = "found" if self._found else "reused"
        return Served(self.roles, self.launch.shown, how, self._seconds, self._restarts, counted)

    @property
    def owned(self) -> bool:
        """Whether this process started it."""
        return self._process is not None

    @property
    def stopped(self) -> bool:
        """Whether it was stopped from outside, by removing its file first."""
        return self._shared and (self.owned or self._foreground) and not self.state.exists()

    def close(self) -> None:
        """Stop what was started here, unless it is kept. Waits until nothing of it runs."""
        self._closed.set()
        if self._thread is not None:
            self._thread.join()
        process = self._process
        if process is None or (not self.tied and process.ended() is None and self.state.exists()):
            return
        process.stop()
        withdraw(self.state, process.server)

    # ---- on the thread that starts it ----

    def _run(self, future: Future[Address], again: bool) -> None:
        try:
            address = self._restart() if again else self._open()
        except Stopped:
            future.set_exception(PermanentFailure("the run ended while its server was starting"))
        except _Died as died:
            self._give_up(future, PermanentFailure(self._ended("at its start", died), hint=self._log_hint()))
        except SkillcError as problem:
            self._give_up(future, problem)
        except _Taken as taken:
            self._give_up(future, self._in_use(taken.port))
        except OSError as problem:
            self._give_up(future, PermanentFailure(f"{self._what()} cannot be started: {problem}"))
        else:
            future.set_result(address)
        finally:
            if not future.done():
                self._give_up(future, PermanentFailure(f"{self._what()} cannot be started"))
            self.watcher.waiting(None)
            if again:
                self.back()

    def _give_up(self, future: Future[Address], problem: SkillcError) -> None:
        self._given_up = True
        future.set_exception(problem)

    def _restart(self) -> Address:
        """Start it again, a bounded number of times in a run."""
        self.lost()
        status = self._process.ended() if self._process is not None else None
        died = _Died(status if status is not None else -1, self._tail())
        if self.stopped:
            raise PermanentFailure(f"vLLM for {self._what()} was stopped", hint="`skillc serve` starts it again")
        while self._restarts < RESTARTS:
            self._restarts += 1
            which = f"starting it again, {self._restarts} of {RESTARTS}"
            self.watcher.note(f"{self._ended('in mid-run', died)}\n{which}")
            if self._process is not None:
                self._process.stop()
            try:
                return self._open()
            except _Died as problem:
                died = problem
        raise PermanentFailure(
            f"{self._ended('again and again', died)}",
            hint=f"the same command goes on when the server can run; {self._log_hint()}",
        )

    def _open(self) -> Address:
        """A server that answers: at the declared address, one that another run left, or a new one."""
        address = self._declared()
        if address is not None:
            self._found = True
            self.watcher.note(f"{self._what()} is served at {address.url} already")
            return self._entered(address)
        last = time.monotonic() + self.launch.options.timeout
        waits = False
        while True:
            with self._start_lock():
                running = find_running(self._home, self._alike, self._wanted, self._key)
                if running is not None:
                    return self._reuse(running)
                keeper = find_keeper(self._home, self._alike, self._wanted)
                if keeper is None:
                    self._reused = None
                    return self._entered(self._start())
            if not waits:
                self.watcher.note(f"waiting for `skillc serve` (process {keeper.pid}) to restart {self._what()}")
                waits = True
            if time.monotonic() > last:
                raise PermanentFailure(
                    f"`skillc serve` (process {keeper.pid}) did not restart {self._what()}",
                    hint="restart that command; the same compile then resumes",
                )
            if self._closed.wait(_POLL):
                raise Stopped

    def _reuse(self, running: Published) -> Address:
        self._reused, self._process, self._log = running.server, None, running.log
        self._secret, self._shared = running.address.key, True
        self.watcher.note(f"{self._what()} is served at {running.address.url} already, by an earlier start")
        return self._entered(running.address)

    def _entered(self, address: Address) -> Address:
        self._before = prefix_cache(address) or PrefixCache()
        return address

    def _declared(self) -> Address | None:
        """The declared address, if a server answers there with the right models."""
        url = self.launch.address
        if url is None or self._process is not None:
            return None
        address = Address(url, self._key or "none-needed")
        status, names = served_names(address)
        if status is None:
            if is_loopback(url):
                return None
            raise PermanentFailure(
                f"{self._what()} is declared to be at {url}, where nobody answers",
                hint="start the server there, or leave `base_url` out, so that skillc starts one here",
            )
        if set(self._wanted) <= set(names):
            return address
        if status != 200:
            raise PermanentFailure(
                f"{self._what()} is declared to be at {url}, which answers with status {status}",
                hint='declare its key: `key = env("NAME")`' if status in (401, 403) else "check `base_url`",
            )
        shown = listed(names) or "nothing"
        raise PermanentFailure(
            f"{self._what()} is declared to be at {url}, which serves {shown}",
            hint="name one of those, or leave `base_url` out, so that skillc starts a server of its own",
        )

    def _start(self) -> Address:
        python = find_interpreter(self.launch.options.python, self.launch.root, self._environ)
        for tried in range(_PORTS_TRIED):
            port = self._choose_port()
            try:
                return self._start_at(python, port)
            except _Taken:
                if self._declared_port is not None or tried + 1 == _PORTS_TRIED:
                    raise
                self._port = None
        raise AssertionError("unreachable")

    def _start_at(self, python: Path, port: int) -> Address:
        key = self._key or f"sk-skillc-{secrets.token_hex(16)}"
        self._secret = key
        address = Address(self.launch.address or f"http://{HOST}:{port}/v1", key)
        line = command(self.launch, python, self._base_names, port)
        self._await_port(port, line)
        variables = environment(self.launch, key, self._secret_names, self._environ)
        began = time.monotonic()
        self._process = process = ServerProcess(line, variables, self.launch.root, self._home, self._name)
        self._log = process.log
        self.watcher.note(f"starting vLLM for {self._what()}; its log is `{process.log}`")
        try:
            self._wait(process, address, began)
            self._seconds = time.monotonic() - began
            if self._shared:
                keeper = identify(os.getpid()) if self._foreground else None
                told = Published(process.server, process.guard, address, self.served_names, process.log, keeper)
                publish(self.state, told, with_key=self._key is None)
            if not self.tied:
                # Only now: a server that no file names could not be stopped.
                process.release()
        except BaseException:
            process.stop()
            raise
        self.watcher.note(f"vLLM answers after {self._seconds:.0f} s")
        return address

    def _await_port(self, port: int, line: Sequence[str]) -> None:
        """Return when the port is free. Wait only for an earlier process of this very server that is still ending."""
        began = seen = time.monotonic()
        while not is_free(HOST, port):
            now = time.monotonic()
            # A process that is just ending has no command line any more, and its port takes a moment to become free.
            others = [each for each in listeners(port) if any(each.command)]
            if others:
                seen = now
            ending = all(each.command[1:] == tuple(line[1:]) for each in others)
            if not ending or now - began > GRACE + 5 or now - seen > _LINGERS:
                raise _Taken(port)
            self.watcher.waiting(f"port {port} is still in use by an earlier server")
            if self._closed.wait(_POLL):
                raise Stopped

    def _wait(self, process: ServerProcess, address: Address, began: float) -> None:
        """Until it is well and serves its models."""
        last = began + self.launch.options.timeout
        while True:
            status = process.ended()
            if status is not None:
                died = _Died(status, self._tail())
                if _IN_USE in died.told.lower():
                    raise _Taken(port_of(address.url)) from died
                raise died
            who = verdict(address, self.served_names)
            if who == "foreign" or (who == "ours" and is_shared(port_of(address.url), process.server.pid)):
                raise _Taken(port_of(address.url))
            if who == "ours" and process.ended() is None:
                return
            passed = time.monotonic() - began
            if time.monotonic() > last:
                raise PermanentFailure(
                    f"vLLM for {self._what()} gave no answer in {passed:.0f} s; the end of its log:\n{self._tail()}",
                    hint="allow more: `timeout = 60 min` in its `serve` block",
                )
            self.watcher.waiting(f"vLLM starts, {passed:.0f} s: {latest(process.log)}")
            if self._closed.wait(_POLL):
                raise Stopped

    def _start_lock(self) -> StartLock:
        self._home.mkdir(parents=True, exist_ok=True)
        return StartLock(self._home / f"{self._alike}.lock", self._closed, self.launch.options.timeout)

    # ---- small things ----

    @property
    def served_names(self) -> tuple[str, ...]:
        """The names that it serves: the base model's, then the adapters'."""
        return (*self._base_names, *(name for name, _ in self.launch.lora))

    @property
    def _wanted(self) -> tuple[str, ...]:
        """The names that its callers need."""
        return (*self.names, *(name for name, _ in self.launch.lora))

    @property
    def _base_names(self) -> tuple[str, ...]:
        return self.names or (self.launch.shown,)

    def _runs(self) -> bool:
        if self._process is not None:
            return self._process.ended() is None
        return self._reused is None or self._reused.lives

    @property
    def _declared_port(self) -> int | None:
        return port_of(self.launch.address) if self.launch.address is not None else self.launch.options.port

    def _choose_port(self) -> int:
        """The declared one, else the one of the last start, else a free one."""
        if self._port is None:
            self._port = self._declared_port or free_port(HOST)
        return self._port

    def _in_use(self, port: int) -> PermanentFailure:
        """The error for a port that another process uses."""
        found = listeners(port)
        who = f"by {found[0].shown}" if found else "by another process"
        hint = "stop that process" if found else f"stop what listens there (`ss -ltnp 'sport = :{port}'` shows it)"
        ours = [told for _, told in all_published(self._home) if port_of(told.address.url) == port]
        if ours:
            hint = "stop that server with `skillc serve PROGRAM --stop`"
        where = "`base_url`" if self.launch.address is not None else "`port` in its `serve` block"
        return PermanentFailure(
            f"port {port} for {self._what()} is in use {who}",
            hint=f"{hint}, or change {where}; without it skillc chooses a free port",
        )

    def _tail(self) -> str:
        if self._log is None:
            return "    (there is no log)"
        return tail(self._log, [self._secret, *(self._environ.get(n, "") for n in self._secret_names)])

    def _what(self) -> str:
        roles = listed(self.roles, "and")
        return f"`{self.launch.shown}` ({roles})"

    def _ended(self, when: str, died: _Died) -> str:
        if died.status < 0:
            how = ""
        elif died.status > 128:
            how = f" by signal {died.status - 128}"
        else:
            how = f" with status {died.status}"
        return f"vLLM for {self._what()} ended {when}{how}; the end of its log:\n{died.told}"

    def _log_hint(self) -> str:
        return f"its whole log is `{self._log}`"

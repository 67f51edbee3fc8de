"""One server during a run: found or started when first needed, restarted when it dies, stopped at the end."""

from __future__ import annotations

import os
import secrets
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Literal

from skillc.dataclass import dataclass
from skillc.errors import SkillcError
from skillc.json_values import digest
from skillc.models.failures import PermanentFailure
from skillc.models.serving.installed import COST, find_interpreter
from skillc.models.serving.launch import HOST, KEY_VARIABLE, Launch, command, environment
from skillc.models.serving.probe import (
    Address,
    PrefixCache,
    classify_server,
    free_port,
    is_free,
    is_loopback,
    is_shared,
    listeners,
    port_of,
    prefix_cache,
    served_names,
)
from skillc.models.serving.process import GRACE, ProcessIdentity, ServerProcess, identify, last_line, tail
from skillc.models.serving.records import (
    NullWatcher,
    ServerRecord,
    ServerSummary,
    StartCancelled,
    Watcher,
    find_keeper,
    find_server,
    publish,
    running_servers,
    start_lock,
    withdraw,
)
from skillc.redaction import Redactor, Secret
from skillc.text import listed

RESTARTS = 3
"""Limit of restarts in a run."""
_PORTS_TRIED = 3
_POLL = 0.2
_LINGERS = 2.0
_IN_USE = "address already in use"


@dataclass(eq=False)
class _ServerExited(Exception):  # noqa: N818
    """A server ended before it answered."""

    status: int
    log_tail: str


@dataclass(eq=False)
class _PortInUse(Exception):  # noqa: N818
    """Another process uses the port."""

    port: int


class Server:
    """One server.

    Args:
        launch: what is served.
        roles: whose models it serves, for messages.
        names: names that callers use for the base model; empty if they only use its adapters.
        key: key that callers must send; None generates one.
        secret_names: variables that the server's environment does not get.
        hidden: what to redact in its log, besides its key.
        home: the folder of logs and of the records of running servers.
        foreground: `skillc serve` runs it: other runs may use it, this process restarts it for all of them, and it ends
            with this process even if `keep` is on.

    Attributes:
        watcher: receives its reports.
        on_lost, on_back: called before and after a restart.
        log: the log of the process that serves now or ended last; None if there was none.
    """

    def __init__(
        self,
        launch: Launch,
        *,
        roles: Sequence[str],
        names: Sequence[str],
        key: str | None,
        secret_names: Sequence[str],
        hidden: Iterable[Secret],
        home: Path,
        foreground: bool,
    ) -> None:
        self.launch = launch
        self.roles = tuple(roles)
        self.names = tuple(names)
        self.watcher: Watcher = NullWatcher()
        self.on_lost: Callable[[], None] = lambda: None
        self.on_back: Callable[[], None] = lambda: None
        self.log: Path | None = None
        self._key = key
        self._secret_names = tuple(secret_names)
        self._secrets = tuple(hidden)
        self._printed = {KEY_VARIABLE, *(secret.name for secret in self._secrets)}
        self._home = home
        self._foreground = foreground
        self._outlives_run = launch.options.keep and not foreground
        # A server that was shared once stays shared: a restart serves all of its users.
        self._shared = foreground or launch.options.keep
        self._environ = dict(os.environ)
        self._lock = threading.Lock()
        self._closed = threading.Event()
        self._future: Future[Address] | None = None
        self._thread: threading.Thread | None = None
        self._process: ServerProcess | None = None
        self._reused: ProcessIdentity | None = None
        self._found = False
        self._given_up = False
        self._restarts = 0
        self._port: int | None = None
        self._seconds: float | None = None
        self._secret = ""
        self._counters_before = PrefixCache()

    @property
    def state(self) -> Path:
        """The record by which other runs find it."""
        return self._home / f"{self._name}.json"

    @property
    def is_owned(self) -> bool:
        """Whether this process started it."""
        return self._process is not None

    @property
    def is_stopped(self) -> bool:
        """Whether it was stopped from outside, which removes its record first."""
        return self._shared and (self.is_owned or self._foreground) and not self.state.exists()

    @property
    def served_names(self) -> tuple[str, ...]:
        """The names that it serves: the base model's, then the adapters'."""
        return (*self._base_names, *(name for name, _ in self.launch.lora))

    def start(self) -> Future[Address]:
        """Start it unless it runs; the future has its address once it answers, or a `PermanentFailure`."""
        with self._lock:
            future = self._future
            if future is not None and (not future.done() or self._given_up or self._runs()):
                return future
            again = future is not None
            self._future = future = Future()
            # A caller that gives up must not cancel it for the others.
            future.set_running_or_notify_cancel()
            self._thread = threading.Thread(
                target=self._run, args=(future, again), name=f"skillc serve {self._name}", daemon=True
            )
            self._thread.start()
            return future

    def check(self) -> None:
        """Restart it at once if it died; to be called after a failed call."""
        with self._lock:
            started = self._future is not None and self._future.done()
        if started and not self._closed.is_set():
            self.start()

    def summary(self) -> ServerSummary | None:
        """Return its summary; None if it was not used."""
        future = self._future
        if future is None or not future.done() or future.exception() is not None:
            return None
        counters = prefix_cache(future.result())
        how: Literal["started", "reused", "found"] = "started"
        if self._process is None:
            how = "found" if self._found else "reused"
        cache = None if counters is None else counters.since(self._counters_before)
        invariant = self.launch.batch_invariant
        return ServerSummary(self.roles, self.launch.model_name, how, self._seconds, self._restarts, cache, invariant)

    def close(self) -> None:
        """Stop the process that was started here, unless it is kept; wait until none of it runs."""
        self._closed.set()
        if self._thread is not None:
            self._thread.join()
        process = self._process
        if process is None or (self._outlives_run and process.ended() is None and self.state.exists()):
            return
        process.stop()
        withdraw(self.state, process.server)

    # ---- on its starting thread ----

    def _run(self, future: Future[Address], again: bool) -> None:
        try:
            address = self._restart() if again else self._open()
            self._counters_before = prefix_cache(address) or PrefixCache()
        except StartCancelled:
            future.set_exception(PermanentFailure("the run ended while its server was starting"))
        except _ServerExited as exited:
            hint = self._log_hint()
            if self.launch.batch_invariant:
                hint += "; `batch_invariant = off` in its `serve` block starts it with vLLM's usual kernels"
            self._give_up(future, PermanentFailure(self._describe_exit("at its start", exited), hint=hint))
        except SkillcError as problem:
            self._give_up(future, problem)
        except _PortInUse as in_use:
            self._give_up(future, self._port_error(in_use.port))
        except OSError as problem:
            self._give_up(future, PermanentFailure(f"{self._label} cannot be started: {problem}"))
        else:
            future.set_result(address)
        finally:
            if not future.done():
                self._give_up(future, PermanentFailure(f"{self._label} cannot be started"))
            self.watcher.waiting(None)
            if again:
                self.on_back()

    def _give_up(self, future: Future[Address], problem: SkillcError) -> None:
        self._given_up = True
        future.set_exception(problem)

    def _restart(self) -> Address:
        self.on_lost()
        status = self._process.ended() if self._process is not None else None
        exited = _ServerExited(status if status is not None else -1, self._tail())
        if self.is_stopped:
            raise PermanentFailure(f"vLLM for {self._label} was stopped", hint="`skillc serve` starts it again")
        while self._restarts < RESTARTS:
            self._restarts += 1
            self.watcher.note(
                f"{self._describe_exit('during the run', exited)}\nrestarting it, {self._restarts} of {RESTARTS}"
            )
            if self._process is not None:
                self._process.stop()
            try:
                return self._open()
            except _ServerExited as problem:
                exited = problem
        raise PermanentFailure(
            self._describe_exit("repeatedly", exited),
            hint=f"the same command resumes once the server can run; {self._log_hint()}",
        )

    def _open(self) -> Address:
        """Return the address of a server at the declared address, of one that another run left, or of a new one."""
        address = self._declared()
        if address is not None:
            self._found = True
            self.watcher.note(f"{self._label} is already served at {address.url}")
            return address
        timeout = self.launch.options.timeout
        deadline = time.monotonic() + timeout
        waits = False
        self._home.mkdir(parents=True, exist_ok=True)
        while True:
            with start_lock(self._home / f"{self._prefix}.lock", self._closed, timeout):
                running = find_server(self._home, self._prefix, self._required, self._key)
                if running is not None:
                    return self._reuse(running)
                keeper = find_keeper(self._home, self._prefix, self._required)
                if keeper is None:
                    self._reused = None
                    return self._start()
            if not waits:
                self.watcher.note(f"waiting for `skillc serve` (process {keeper.pid}) to restart {self._label}")
                waits = True
            if time.monotonic() > deadline:
                raise PermanentFailure(
                    f"`skillc serve` (process {keeper.pid}) did not restart {self._label}",
                    hint="restart that command; the same compile then resumes",
                )
            if self._closed.wait(_POLL):
                raise StartCancelled

    def _reuse(self, running: ServerRecord) -> Address:
        self._reused, self._process, self.log = running.server, None, running.log
        self._secret, self._shared = running.address.key, True
        self.watcher.note(f"{self._label} is already served at {running.url} by an earlier start")
        return running.address

    def _declared(self) -> Address | None:
        """Return the declared address if a server answers there with the right models."""
        url = self.launch.address
        if url is None or self._process is not None:
            return None
        address = Address(url, self._key or "none-needed")
        status, names = served_names(address)
        if status is None:
            if is_loopback(url):
                return None
            raise PermanentFailure(
                f"{self._label} is declared at {url}, where no server answers",
                hint="start the server there, or remove `base_url`, and skillc starts one here",
            )
        if set(self._required) <= set(names):
            return address
        if status != 200:
            raise PermanentFailure(
                f"{self._label} is declared at {url}, which answers with status {status}",
                hint='declare its key: `key = env("NAME")`' if status in (401, 403) else "check `base_url`",
            )
        raise PermanentFailure(
            f"{self._label} is declared at {url}, which serves {listed(names) or 'no model'}",
            hint="name one of its models, or remove `base_url`, and skillc starts a server",
        )

    def _start(self) -> Address:
        python = find_interpreter(self.launch.options.python, self.launch.root, self._environ)
        for attempt in range(_PORTS_TRIED):
            # The declared port, else the one of the last start, else a free one.
            self._port = self._port or self._declared_port or free_port(HOST)
            try:
                return self._start_at(python, self._port)
            except _PortInUse:
                if self._declared_port is not None or attempt + 1 == _PORTS_TRIED:
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
        # The guard may outlive this process, so it learns no secret that the server does not have.
        hide = Redactor(Secret(name, value) for name, value in variables.items() if name in self._printed)
        self._process = process = ServerProcess(line, variables, self.launch.root, self._home, self._name, hide)
        self.log = process.log
        self.watcher.note(f"starting vLLM for {self._label}; its log is `{process.log}`")
        if self.launch.batch_invariant and not self._restarts:
            self.watcher.note(f"vLLM for {self._label} is batch-invariant: {COST}")
        try:
            self._await_answer(process, address, began)
            self._seconds = time.monotonic() - began
            if self._shared:
                keeper = identify(os.getpid()) if self._foreground else None
                record = ServerRecord(
                    server=process.server,
                    guard=process.guard,
                    url=address.url,
                    key=address.key if self._key is None else None,
                    names=self.served_names,
                    log=process.log,
                    keeper=keeper,
                )
                publish(self.state, record)
            if self._outlives_run:
                # Only after publishing: a server without a record could not be stopped.
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
            # A process that is just ending has lost its command line, and its port is freed a moment later.
            others = [each for each in listeners(port) if any(each.command)]
            if others:
                seen = now
            ending = all(each.command[1:] == tuple(line[1:]) for each in others)
            if not ending or now - began > GRACE + 5 or now - seen > _LINGERS:
                raise _PortInUse(port)
            self.watcher.waiting(f"port {port} is still in use by an earlier server")
            if self._closed.wait(_POLL):
                raise StartCancelled

    def _await_answer(self, process: ServerProcess, address: Address, began: float) -> None:
        """Return once it is healthy and serves its models."""
        deadline = began + self.launch.options.timeout
        while True:
            status = process.ended()
            if status is not None:
                exited = _ServerExited(status, self._tail())
                if _IN_USE in exited.log_tail.lower():
                    raise _PortInUse(port_of(address.url)) from exited
                raise exited
            who = classify_server(address, self.served_names)
            if who == "foreign" or (who == "ours" and is_shared(port_of(address.url), process.server.pid)):
                raise _PortInUse(port_of(address.url))
            if who == "ours" and process.ended() is None:
                return
            seconds = time.monotonic() - began
            if time.monotonic() > deadline:
                problem = f"vLLM for {self._label} did not answer within {seconds:.0f} s"
                raise PermanentFailure(
                    f"{problem}; the end of its log:\n{self._tail()}",
                    hint="raise the limit: `timeout = 60 min` in its `serve` block",
                )
            self.watcher.waiting(f"vLLM starts, {seconds:.0f} s: {last_line(process.log, self._hide)}")
            if self._closed.wait(_POLL):
                raise StartCancelled

    # ---- names, state and messages ----

    @property
    def _prefix(self) -> str:
        """The common prefix of the names of servers with equal options."""
        short = "".join(each if each.isalnum() else "-" for each in Path(self.launch.source).name)[:32]
        return f"{short}-{self.launch.server_id[:12]}"

    @property
    def _name(self) -> str:
        return f"{self._prefix}-{digest(self._base_names)[:6]}"

    @property
    def _label(self) -> str:
        return f"`{self.launch.model_name}` ({listed(self.roles, 'and')})"

    @property
    def _required(self) -> tuple[str, ...]:
        """The names that its callers need."""
        return (*self.names, *(name for name, _ in self.launch.lora))

    @property
    def _base_names(self) -> tuple[str, ...]:
        return self.names or (self.launch.model_name,)

    @property
    def _declared_port(self) -> int | None:
        return port_of(self.launch.address) if self.launch.address is not None else self.launch.options.port

    def _runs(self) -> bool:
        if self._process is not None:
            return self._process.ended() is None
        return self._reused is None or self._reused.is_alive

    def _port_error(self, port: int) -> PermanentFailure:
        found = listeners(port)
        user = f"by {found[0].label}" if found else "by another process"
        hint = "stop that process" if found else f"stop the process that listens there: `ss -ltnp 'sport = :{port}'`"
        if any(port_of(record.url) == port for _, record in running_servers(self._home)):
            hint = "stop that server with `skillc serve PROGRAM --stop`"
        where = "`base_url`" if self.launch.address is not None else "`port` in its `serve` block"
        return PermanentFailure(
            f"port {port} for {self._label} is in use {user}",
            hint=f"{hint}, or change {where}; without it skillc chooses a free port",
        )

    def _tail(self) -> str:
        if self.log is None:
            return "    (no log)"
        return tail(self.log, self._hide)

    @property
    def _hide(self) -> Redactor:
        return Redactor([*self._secrets, Secret(KEY_VARIABLE, self._secret)])

    def _describe_exit(self, when: str, exited: _ServerExited) -> str:
        status = exited.status
        how = "" if status < 0 else f" by signal {status - 128}" if status > 128 else f" with status {status}"
        return f"vLLM for {self._label} ended {when}{how}; the end of its log:\n{exited.log_tail}"

    def _log_hint(self) -> str:
        return f"its whole log is `{self.log}`"

"""Servers under the eyes of a user: progress, the addresses, Ctrl-C."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from types import FrameType, TracebackType

from rich.console import Console
from rich.text import Text

from skillc.errors import SkillcError
from skillc.frontend import Planned
from skillc.models.endpoint import endpoint_of
from skillc.models.roles import servers_of
from skillc.models.serving.published import all_published, stop_published
from skillc.models.serving.server import Server
from skillc.plan.models import named

_POLL = 0.5


class Lines:
    """Notes as lines, and a spinner for what is waited for."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._status = console.status("starting") if console.is_terminal else None

    def __enter__(self) -> Lines:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.waiting(None)

    def note(self, message: str) -> None:
        """One line, or more."""
        self._console.print(Text(message, style="dim"), soft_wrap=True)

    def waiting(self, text: str | None) -> None:
        """What is waited for."""
        if self._status is None:
            return
        if text is None:
            self._status.stop()
        else:
            self._status.update(text)
            self._status.start()


def run_servers(planned: Planned, lines: Lines, tell: Callable[[list[dict[str, object]]], None]) -> None:
    """Starts a program's servers one after the other, tells where they are, and stays until it is interrupted.

    Where all of them run already there is nothing to stay for.

    Raises:
        SkillcError: the program serves no model, or a server cannot be started, or not again.
        KeyboardInterrupt: it was interrupted before all answered.
    """
    models = named(planned.plan, os.environ).models.values()
    endpoints = [endpoint_of(model, os.environ, planned.root) for model in models if model.serve is not None]
    if not endpoints:
        raise SkillcError(
            f"`{planned.path}` serves no model itself", hint="write `serve = vllm {}` in the block of a model"
        )
    with closing(servers_of(endpoints, models, planned.root, foreground=True)) as servers, _ended() as ended:
        servers.watched(lines)
        for server in servers.each:
            _answer(server, ended)
        tell([_told(server) for server in servers.each])
        owned = [server for server in servers.each if server.owned]
        while owned and not ended.wait(_POLL):
            for server in owned:
                if server.stopped:
                    return
                server.look()
                future = server.begin()
                if future.done() and future.exception() is not None and not server.stopped:
                    future.result()


def stop_servers(root: Path) -> list[str]:
    """Stops the servers that run on beside a program; their names."""
    running = all_published(root / ".skillc" / "serve")
    for state, told in running:
        stop_published(state, told)
    return [f"{', '.join(told.names)} at {told.address.url}" for _, told in running]


def _answer(server: Server, ended: threading.Event) -> None:
    future = server.begin()
    while not future.done():
        if ended.wait(_POLL / 5):
            raise KeyboardInterrupt
    future.result()


def _told(server: Server) -> dict[str, object]:
    address = server.begin().result()
    served = server.served()
    own = f"in `{server.state}`, for this user alone" if server.state.exists() else "as declared"
    return {
        **(served.to_json() if served is not None else {}),
        "url": address.url,
        "names": list(server.served_names),
        "key": own,
        "log": str(server.log) if server.log is not None else None,
    }


@contextmanager
def _ended() -> Iterator[threading.Event]:
    """Set by Ctrl-C and by the signals that ask a process to end; a second one ends it at once."""
    ended = threading.Event()

    def ask(number: int, frame: FrameType | None) -> None:
        if ended.is_set():
            raise KeyboardInterrupt
        ended.set()

    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {number: signal.signal(number, ask) for number in numbers}
    try:
        yield ended
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)

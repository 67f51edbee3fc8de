"""The servers of a plan: they start when first needed, calls wait for them, and a failed call checks on them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from skillc.errors import SkillcError
from skillc.models.endpoint import Transport
from skillc.models.serving.launch import Launch
from skillc.models.serving.probe import Address
from skillc.models.serving.published import Served, Watcher
from skillc.models.serving.server import Server


class Servers:
    """All servers that skillc starts for a plan. None is started before it is needed.

    Args:
        launches: what each role asks for, with the key that its calls show; None where skillc makes one.
        secret_names: variables that hold keys of providers.
        home: the folder of logs and of the files of running servers.
        foreground: other runs may use them while they run, and none outlives this process.
    """

    def __init__(
        self,
        launches: Iterable[tuple[Launch, str | None]],
        *,
        secret_names: Iterable[str] = (),
        home: Path,
        foreground: bool = False,
    ) -> None:
        together: dict[str, list[tuple[Launch, str | None]]] = {}
        for launch, key in launches:
            together.setdefault(launch.endpoint_id, []).append((launch, key))
        hidden = sorted(set(secret_names))
        self.all: dict[str, Server] = {}
        for endpoint, same in together.items():
            first, key = same[0]
            for other, _ in same:
                if other.server != first.server:
                    raise SkillcError(
                        f"models `{first.role}` and `{other.role}` want one server with two `serve` blocks",
                        hint=f"say it once: `model {other.role} = {first.role}`, or make the blocks equal",
                    )
            server = Server(
                first,
                roles=[launch.role for launch, _ in same],
                names=sorted({name for launch, _ in same for name in launch.base_names}),
                key=key,
                secret_names=hidden,
                home=home,
                foreground=foreground,
            )
            self.all[endpoint] = server

    def __bool__(self) -> bool:
        return bool(self.all)

    @property
    def each(self) -> tuple[Server, ...]:
        """The servers, by their first roles."""
        return tuple(self.all.values())

    def watched(self, watcher: Watcher) -> None:
        """Report what the servers do to a watcher."""
        for server in self.each:
            server.watcher = watcher

    def holds(self, hold: Callable[[str], None], free: Callable[[str], None]) -> None:
        """Set how a role's calls are held while its server restarts, and freed after."""
        for server in self.each:
            server.lost = lambda server=server: _for_all(hold, server.roles)  # type: ignore[misc]
            server.back = lambda server=server: _for_all(free, server.roles)  # type: ignore[misc]

    async def ready(self, endpoint: str) -> Address | None:
        """The address of an endpoint's server when it answers; None where the endpoint is no server of ours.

        Raises:
            SkillcError: it cannot be started, or not again.
        """
        server = self.all.get(endpoint)
        if server is None:
            return None
        return await asyncio.wrap_future(server.begin())

    async def all_ready(self) -> None:
        """Return once all servers answer. They start one after the other, because each looks for memory that is free.

        Raises:
            SkillcError: one cannot be started, or not again.
        """
        for endpoint in self.all:
            await self.ready(endpoint)

    def transport(self, send: Transport) -> Transport:
        """The transport that waits for the server, fills in its address and key, and sees when it dies."""
        if not self.all:
            return send

        async def sending(arguments: Mapping[str, Any]) -> Any:
            endpoint = str(arguments.get("api_base"))
            address = await self.ready(endpoint)
            if address is None:
                return await send(arguments)
            try:
                return await send({**arguments, "api_base": address.url, "api_key": address.key})
            except Exception:
                self.all[endpoint].look()
                raise

        return sending

    def served(self) -> tuple[Served, ...]:
        """The summaries of the servers that were used."""
        return tuple(told for server in self.each if (told := server.served()) is not None)

    def close(self) -> None:
        """Stop what was started and is not kept."""
        for server in self.each:
            server.close()


def _for_all(act: Callable[[str], None], roles: Iterable[str]) -> None:
    for role in roles:
        act(role)

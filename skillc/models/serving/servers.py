"""The servers of a plan: they start when first needed, calls wait for them, and a failed call checks on them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from skillc.errors import SkillcError
from skillc.models.endpoint import Transport
from skillc.models.serving.launch import Launch
from skillc.models.serving.probe import Address
from skillc.models.serving.records import ServerSummary, Watcher
from skillc.models.serving.server import Server
from skillc.redaction import Secret


class Servers:
    """All servers that skillc starts for a plan. None is started before it is needed.

    Args:
        launches: one for each role, with the key that its calls send; None if skillc generates one.
        secret_names: variables with keys of providers.
        hidden: what to redact in the logs.
        home: the folder of logs and of the records of running servers.
        foreground: other runs may use them while they run, and none outlives this process.

    Attributes:
        all: by their first roles.
    """

    def __init__(
        self,
        launches: Iterable[tuple[Launch, str | None]],
        *,
        secret_names: Iterable[str],
        hidden: Iterable[Secret],
        home: Path,
        foreground: bool,
    ) -> None:
        by_endpoint: dict[str, list[tuple[Launch, str | None]]] = {}
        for launch, key in launches:
            by_endpoint.setdefault(launch.endpoint_id, []).append((launch, key))
        names, found = sorted(set(secret_names)), frozenset(hidden)
        self._by_endpoint: dict[str, Server] = {}
        for endpoint, group in by_endpoint.items():
            first, key = group[0]
            for other, _ in group:
                if other.server_id != first.server_id:
                    raise SkillcError(
                        f"models `{first.role}` and `{other.role}` configure one server in two `serve` blocks",
                        hint=f"write `model {other.role} = {first.role}`, or make the blocks equal",
                    )
            self._by_endpoint[endpoint] = Server(
                first,
                roles=[launch.role for launch, _ in group],
                names=sorted({name for launch, _ in group for name in launch.base_names}),
                key=key,
                secret_names=names,
                hidden=found,
                home=home,
                foreground=foreground,
            )
        self.all = tuple(self._by_endpoint.values())

    def watch(self, watcher: Watcher) -> None:
        """Send the servers' reports to a watcher."""
        for server in self.all:
            server.watcher = watcher

    def on_restart(self, hold: Callable[[str], None], free: Callable[[str], None]) -> None:
        """Set the callbacks that hold a role's calls while its server restarts, and free them afterwards."""
        for server in self.all:
            server.on_lost = partial(_for_each, hold, server.roles)
            server.on_back = partial(_for_each, free, server.roles)

    async def ready(self, endpoint: str) -> Address | None:
        """Return the address of an endpoint's server once it answers; None if skillc serves no such endpoint.

        Raises `SkillcError` if it cannot be started or restarted.
        """
        server = self._by_endpoint.get(endpoint)
        if server is None:
            return None
        return await asyncio.wrap_future(server.start())

    async def ready_all(self) -> None:
        """Return once all servers answer, as `ready`. They start in turn, because each measures the free memory."""
        for endpoint in self._by_endpoint:
            await self.ready(endpoint)

    def transport(self, send: Transport) -> Transport:
        """Wrap a transport: wait for the server, fill in its address and key, and check on it after a failure."""
        if not self.all:
            return send

        async def send_to_server(arguments: Mapping[str, Any]) -> Any:
            endpoint = str(arguments.get("api_base"))
            address = await self.ready(endpoint)
            if address is None:
                return await send(arguments)
            try:
                return await send({**arguments, "api_base": address.url, "api_key": address.key})
            except Exception:
                self._by_endpoint[endpoint].check()
                raise

        return send_to_server

    def summaries(self) -> tuple[ServerSummary, ...]:
        """Return the summaries of the servers that were used."""
        return tuple(found for server in self.all if (found := server.summary()) is not None)

    def close(self) -> None:
        """Stop the servers that were started here and are not kept."""
        for server in self.all:
            server.close()


def _for_each(act: Callable[[str], None], roles: Iterable[str]) -> None:
    for role in roles:
        act(role)

"""The tools of a program: what it declares, opened for a run."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import JsonValue

from skillc.errors import SkillcError
from skillc.redaction import Redactor, Secret
from skillc.tools.functions import function_tool
from skillc.tools.servers import ServerAddress, ServerLoop, ToolServer
from skillc.tools.tool import Tool
from skillc.user_code import load_function, source_digest

RESERVED = frozenset({"finish"})
"""Names that an agent's own tools have."""


class Toolbox:
    """The declared tools, by name in declared order; servers run until `close`.

    Attributes:
        secrets: the values of variables that servers are given, which no prompt and no record may contain.

    Args:
        declared: as in the plan: `{"function": "python", "arguments": ["shop:find_order"]}`.
        root: the program's folder, where functions are searched first and commands run.
        inside: whether functions may act in an environment.

    Raises:
        SkillcError: a function lacks what an agent needs, a server cannot be used, or two tools have one name.
    """

    def __init__(self, declared: Sequence[JsonValue], root: Path, *, inside: bool = False) -> None:
        self._inside = inside
        self.tools: dict[str, Tool] = {}
        self._loop: ServerLoop | None = None
        self._servers: list[ToolServer] = []
        self.secrets: list[Secret] = []
        try:
            for each in declared:
                for tool in self._open(each, root):
                    self._add(tool)
        except BaseException:
            self._stop()
            raise

    async def close(self) -> None:
        """End the sessions and the servers."""
        await asyncio.gather(*(server.close() for server in self._servers))
        self._servers = []
        if self._loop is not None:
            self._loop.close()
            self._loop = None

    def _open(self, declared: JsonValue, root: Path) -> list[Tool]:
        assert isinstance(declared, dict)
        if declared["function"] == "python":
            return [function_tool(_first(declared), root, inside=self._inside)]
        if self._loop is None:
            self._loop = ServerLoop()
        address = address_of(declared, root, os.environ)
        self.secrets += [Secret(name, value) for name, value in (address.environment or {}).items()]
        self.secrets += [Secret("key", address.key)] if address.key else []
        server = ToolServer(address, self._loop)
        self._servers.append(server)
        try:
            return server.start()
        except SkillcError as problem:
            hide = Redactor(self.secrets)
            raise SkillcError(hide.message(problem.message), hint=problem.hint) from None

    def _add(self, tool: Tool) -> None:
        other = self.tools.get(tool.name)
        if other is not None:
            raise SkillcError(
                f"two tools are named `{tool.name}`, of {other.origin} and {tool.origin}",
                hint="an agent calls a tool by its name: rename one of them",
            )
        if tool.name in RESERVED:
            raise SkillcError(f"`{tool.name}` of {tool.origin} is how an agent ends its work", hint="rename the tool")
        self.tools[tool.name] = tool

    def _stop(self) -> None:
        """Close without a loop of the caller."""
        if self._loop is not None:
            for server in self._servers:
                self._loop.wait(server.closed())
            self._loop.close()


def address_of(declared: Mapping[str, Any], root: Path, environ: Mapping[str, str]) -> ServerAddress:
    """Return where a declared server is, with the values of the variables that it names.

    Raises:
        SkillcError: a variable is not set.
    """
    text = _first(declared)
    key = declared.get("key")
    names = [_first(each) for each in declared.get("environment", ())]
    return ServerAddress(
        text,
        root,
        key=_variable(_first(key), text, environ) if key else None,
        environment={name: _variable(name, text, environ) for name in names},
    )


def tools_source(declared: Sequence[JsonValue], root: Path) -> str:
    """Return the digests of the declared functions and of the files that they import.

    Raises:
        SkillcError: a function does not exist.
    """
    functions = (each for each in declared if isinstance(each, dict) and each["function"] == "python")
    names = [_first(each) for each in functions]
    return " ".join(source_digest(name, load_function(name, root, "tool"), root) for name in names)


def _variable(name: str, server: str, environ: Mapping[str, str]) -> str:
    if name not in environ:
        raise SkillcError(f'the variable `{name}` of `mcp("{server}")` is not set', hint=f"set it: `export {name}=...`")
    return environ[name]


def _first(declared: Mapping[str, Any]) -> str:
    return str(declared["arguments"][0])

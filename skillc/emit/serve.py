"""Serve one skill over MCP: its files as `skill://NAME/PATH` resources, with the Skills extension, SEP-2640.

The specification: https://modelcontextprotocol.io/seps/2640-skills-extension. `skills/list` and `skills/get` return the
frontmatter and a manifest with a digest of each file; `resources/directory/read` lists a folder. Hosts without the
extension see ordinary resources and a prompt with the skill's text.

The files are read once, before serving: what is served is what the digests are of, and a path is a key of a table, so
that nothing outside of the skill's folder can be named.
"""

from __future__ import annotations

import base64
import hashlib
import importlib
import mimetypes
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote

from skillc.artifact_paths import SKILL_FILE
from skillc.emit.forms import CompiledSkill
from skillc.errors import SkillcError
from skillc.text import in_bytes

if TYPE_CHECKING:
    from mcp.server.lowlevel import Server

EXTENSION = "io.modelcontextprotocol/skills"
SCHEME = "skill://"
MOST_FILES, MOST_BYTES = 512, 16 * 1024 * 1024
"""What every conforming host accepts of one skill, by the specification."""
_DIRECTORY = "inode/directory"
# The served files never change, but the next server on this command line may have others.
_FRESH = {"ttlMs": 60_000, "cacheScope": "private"}


class SkillResources:
    """The resources of one skill, by URI.

    Raises:
        SkillcError: it has more files or bytes than hosts accept.
    """

    def __init__(self, skill: CompiledSkill) -> None:
        size = sum(map(len, skill.files.values()))
        if len(skill.files) > MOST_FILES or size > MOST_BYTES:
            raise SkillcError(
                f"the skill `{skill.name}` has {len(skill.files):,} files with {in_bytes(size)}; hosts of skills over "
                f"MCP accept {MOST_FILES:,} files with {in_bytes(MOST_BYTES)}",
                hint="move files out of the skill's folder",
            )
        self.skill = skill
        self.root = f"{SCHEME}{skill.name}"
        self.files = {f"{self.root}/{quote(path)}": path for path in sorted(skill.files)}
        self.folders: dict[str, list[str]] = {self.root: []}
        for uri in self.files:
            child = uri
            while child != self.root:
                parent = child.rpartition("/")[0]
                children = self.folders.setdefault(parent, [])
                if child not in children:
                    children.append(child)
                child = parent

    @property
    def main(self) -> str:
        """The URI of SKILL.md."""
        return f"{self.root}/{SKILL_FILE}"

    def resource(self, uri: str) -> dict[str, Any]:
        """Return the metadata of a file or a folder."""
        if uri in self.folders:
            return {"uri": uri, "name": unquote(uri.rpartition("/")[2]), "mimeType": _DIRECTORY}
        path = self.files[uri]
        found: dict[str, Any] = {"uri": uri, "name": path.rpartition("/")[2], "mimeType": _type_of(path)}
        if path == SKILL_FILE:
            found |= {"name": self.skill.name, "description": self.skill.about}
        return {**found, "size": len(self.skill.files[path])}

    def read(self, uri: str) -> dict[str, Any] | None:
        """Return the content of a file; None for any other URI."""
        path = self.files.get(uri)
        if path is None:
            return None
        content, head = self.skill.files[path], {"uri": uri, "mimeType": _type_of(path)}
        try:
            return {**head, "text": content.decode("utf-8")}
        except UnicodeDecodeError:
            return {**head, "blob": base64.b64encode(content).decode()}

    def entry(self) -> dict[str, Any]:
        """Return the skill's entry: its frontmatter, and digest and size of each file."""
        files = [
            {"uri": uri, "digest": f"sha256:{hashlib.sha256(content).hexdigest()}", "size": len(content)}
            for uri, path in self.files.items()
            for content in (self.skill.files[path],)
        ]
        return {"uri": self.main, "frontmatter": dict(self.skill.keys), "resources": files}


def _type_of(path: str) -> str:
    if path.endswith(".md"):
        return "text/markdown"
    return mimetypes.guess_type(path)[0] or "application/octet-stream"


def server_of(skill: CompiledSkill, version: str) -> Server[Any]:
    """Return the MCP server of a skill; `version` is skillc's.

    Raises:
        SkillcError: the extra `mcp` is not installed, or the skill is too large for hosts.
    """
    _check_installed()
    import mcp_types as types
    from mcp.server.lowlevel import Server
    from mcp.shared.exceptions import MCPError
    from mcp_types import INVALID_PARAMS

    resources = SkillResources(skill)

    def unknown(what: str) -> MCPError:
        return MCPError(INVALID_PARAMS, what)

    class Uri(types.RequestParams):
        uri: str

    class DirectoryUri(types.PaginatedRequestParams):
        uri: str

    async def list_resources(ctx: Any, params: Any) -> types.ListResourcesResult:
        return types.ListResourcesResult.model_validate(
            {"resources": [resources.resource(uri) for uri in resources.files]}
        )

    async def list_templates(ctx: Any, params: Any) -> types.ListResourceTemplatesResult:
        template = {
            "uriTemplate": f"{resources.root}/{{+path}}",
            "name": skill.name,
            "description": f"a file of the skill {skill.name}, by its path in the folder of the skill",
        }
        return types.ListResourceTemplatesResult.model_validate({"resourceTemplates": [template]})

    async def read_resource(ctx: Any, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
        found = resources.read(str(params.uri))
        if found is None:
            raise unknown(f"no file is served at {params.uri}")
        return types.ReadResourceResult.model_validate({"contents": [found], **_FRESH})

    async def list_prompts(ctx: Any, params: Any) -> types.ListPromptsResult:
        return types.ListPromptsResult.model_validate({"prompts": [{"name": skill.name, "description": skill.about}]})

    async def get_prompt(ctx: Any, params: types.GetPromptRequestParams) -> types.GetPromptResult:
        if params.name != skill.name:
            raise unknown(f"no prompt is named {params.name}")
        message = {"role": "user", "content": {"type": "text", "text": skill.body}}
        return types.GetPromptResult.model_validate({"description": skill.about, "messages": [message]})

    async def list_skills(ctx: Any, params: Any) -> Mapping[str, Any]:
        return {"resultType": "complete", "skills": [resources.entry()], **_FRESH}

    async def get_skill(ctx: Any, params: Uri) -> Mapping[str, Any]:
        if params.uri != resources.main:
            raise unknown(f"no skill is served at {params.uri}")
        return {"resultType": "complete", "skill": resources.entry(), **_FRESH}

    async def read_directory(ctx: Any, params: DirectoryUri) -> Mapping[str, Any]:
        children = resources.folders.get(params.uri)
        if children is None:
            raise unknown(f"{params.uri} is not a directory resource")
        return {"resultType": "complete", "resources": [resources.resource(uri) for uri in children]}

    server: Server[Any] = Server(
        f"skillc-{skill.name}",
        version=version,
        instructions=f"Serves the skill {resources.main}: {skill.about}",
        on_list_resources=list_resources,
        on_list_resource_templates=list_templates,
        on_read_resource=read_resource,
        on_list_prompts=list_prompts,
        on_get_prompt=get_prompt,
    )
    server.extensions = {EXTENSION: {"directoryRead": True}}
    server.add_request_handler("skills/list", types.PaginatedRequestParams, list_skills)  # type: ignore[arg-type]
    server.add_request_handler("skills/get", Uri, get_skill)  # type: ignore[arg-type]
    server.add_request_handler("resources/directory/read", DirectoryUri, read_directory)  # type: ignore[arg-type]
    return server


def serve_stdio(skill: CompiledSkill, version: str) -> None:
    """Serve a skill on standard input and output until the input is closed.

    Raises:
        SkillcError: as `server_of`.
    """
    import asyncio

    server = server_of(skill, version)
    from mcp.server.stdio import stdio_server

    async def run() -> None:
        async with stdio_server() as (read, write):
            await server.run(read, write, server.create_initialization_options())

    asyncio.run(run())


def _check_installed() -> None:
    try:
        importlib.import_module("mcp.server.lowlevel")
    except ImportError as problem:
        hint = 'install it: `pip install "skillc[mcp]"`'
        raise SkillcError("`--serve` needs the MCP SDK, which is not installed", hint=hint) from problem

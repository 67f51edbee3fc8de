"""A skill over MCP, read by the client of the MCP SDK over standard input and output."""

import asyncio
import hashlib
import subprocess
import sys

import pytest

mcp = pytest.importorskip("mcp")

import mcp_types as types  # noqa: E402
from mcp import Client  # noqa: E402
from mcp.client.stdio import StdioServerParameters, stdio_client  # noqa: E402
from mcp.shared.exceptions import MCPError  # noqa: E402
from pydantic import ConfigDict  # noqa: E402

from skillc.emit import serve  # noqa: E402
from skillc.emit.forms import CompiledSkill  # noqa: E402
from skillc.emit.serve import SkillResources, server_of  # noqa: E402
from skillc.errors import SkillcError  # noqa: E402
from skillc.skill_files import read_folder  # noqa: E402
from tests.emit.made import ABOUT, BODY, skill_folder  # noqa: E402

ROOT = "skill://route-tickets"


class Anything(types.Result):
    model_config = ConfigDict(extra="allow")


async def request(client, method, **params):
    asked = types.Request[dict, str](method=method, params=params)
    return (await client.session.send_request(asked, Anything)).model_extra


def asked(skill, work):
    """Start the server as a host does and do some work with its client."""

    async def run():
        arguments = ["-m", "skillc", "emit", str(skill), "--form", "mcp", "--serve"]
        transport = stdio_client(StdioServerParameters(command=sys.executable, args=arguments))
        async with Client(transport) as client:
            return await work(client)

    return asyncio.run(asyncio.wait_for(run(), 60))


def test_a_host_lists_reads_and_verifies_a_skill_over_stdio(tmp_path):
    skill = skill_folder(tmp_path, further="license: MIT\n", files={"references/a b.md": b"x\n"})
    (tmp_path / "skills/secret.txt").write_text("not for hosts")

    async def work(client):
        extensions = client.server_capabilities.extensions
        assert extensions["io.modelcontextprotocol/skills"] == {"directoryRead": True}
        every = {str(each.uri): each for each in (await client.list_resources()).resources}
        assert set(every) == {
            f"{ROOT}/{path}"
            for path in ("SKILL.md", "references/teams.md", "references/a%20b.md", "scripts/run.sh", "logo.png")
        }
        main = every[f"{ROOT}/SKILL.md"]
        assert (main.name, main.description, main.mime_type) == ("route-tickets", ABOUT, "text/markdown")
        (template,) = (await client.list_resource_templates()).resource_templates
        assert template.uri_template == f"{ROOT}/{{+path}}"

        (found,) = (await request(client, "skills/list"))["skills"]
        got = await request(client, "skills/get", uri=f"{ROOT}/SKILL.md")
        assert got["skill"] == found and got["resultType"] == "complete" and got["ttlMs"] > 0
        assert found["frontmatter"] == {"name": "route-tickets", "description": ABOUT, "license": "MIT"}
        # As a host must: each file that the manifest lists has its size and digest.
        assert {each["uri"] for each in found["resources"]} == set(every)
        for each in found["resources"]:
            (content,) = (await client.read_resource(each["uri"])).contents
            if hasattr(content, "text"):
                raw = content.text.encode()
            else:
                import base64

                raw = base64.b64decode(content.blob)
            assert (len(raw), f"sha256:{hashlib.sha256(raw).hexdigest()}") == (each["size"], each["digest"])

        listed = (await request(client, "resources/directory/read", uri=ROOT))["resources"]
        assert [(each["name"], each["mimeType"]) for each in listed] == [
            ("route-tickets", "text/markdown"),
            ("logo.png", "image/png"),
            ("references", "inode/directory"),
            ("scripts", "inode/directory"),
        ]
        below = (await request(client, "resources/directory/read", uri=f"{ROOT}/references"))["resources"]
        assert [each["name"] for each in below] == ["a b.md", "teams.md"]
        (prompt,) = (await client.list_prompts()).prompts
        (message,) = (await client.get_prompt(prompt.name)).messages
        assert message.content.text == BODY

        for uri in (
            *(f"{ROOT}/../secret.txt", f"{ROOT}/..%2Fsecret.txt", f"{ROOT}/%2e%2e/secret.txt"),
            *("skill://secret.txt", "skill://other/SKILL.md", f"file://{tmp_path}/skills/secret.txt"),
            *(f"{ROOT}/references", f"{ROOT}//SKILL.md", f"{ROOT}/SKILL.md?x", "skill:///etc/passwd"),
        ):
            with pytest.raises(MCPError) as refused:
                await client.read_resource(uri)
            assert refused.value.code == -32602, uri
        for method in ("skills/get", "resources/directory/read"):
            with pytest.raises(MCPError) as refused:
                await request(client, method, uri=f"{ROOT}/references/teams.md")
            assert refused.value.code == -32602
        return True

    assert asked(skill, work)


def test_standard_output_has_nothing_but_the_protocol(tmp_path):
    skill = skill_folder(tmp_path)
    command = [sys.executable, "-m", "skillc", "emit", str(skill), "--form", "mcp", "--serve"]
    done = subprocess.run(command, input=b"", capture_output=True, timeout=60)
    assert (done.returncode, done.stdout) == (0, b"")


def test_a_skill_beyond_the_limits_of_hosts_is_refused(tmp_path):
    files = {f"references/{number}.md": b"x" for number in range(509)}
    skill = CompiledSkill.of(read_folder(skill_folder(tmp_path, files=files)))
    with pytest.raises(SkillcError, match=r"has 513 files .* accept 512 files"):
        SkillResources(skill)
    (tmp_path / "skills/route-tickets/references/0.md").unlink()
    assert len(SkillResources(CompiledSkill.of(read_folder(tmp_path / "skills/route-tickets"))).files) == 512


def test_without_the_sdk_the_error_names_the_extra(tmp_path, monkeypatch):
    def missing(name):
        raise ImportError(name)

    monkeypatch.setattr(serve.importlib, "import_module", missing)
    with pytest.raises(SkillcError, match="needs the MCP SDK") as found:
        server_of(CompiledSkill.of(read_folder(skill_folder(tmp_path))), "1")
    assert 'pip install "skillc[mcp]"' in found.value.hint

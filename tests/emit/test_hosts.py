"""The hosts' own loaders and validators find the emitted skill. Each test needs its command line, and no key."""

import os
import shutil
import subprocess

import pytest

from skillc.emit.write import emit_skill
from tests.emit.made import ABOUT, skill_folder


def ran(*command, home, cwd=None, **more):
    environment = {**os.environ, "HOME": str(home), "GEMINI_CLI_TRUST_WORKSPACE": "true", **more}
    done = subprocess.run(
        command, cwd=cwd, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def emitted(tmp_path, name):
    emit_skill(skill_folder(tmp_path), name, tmp_path / "out")
    (tmp_path / "home").mkdir()
    return tmp_path / "out", tmp_path / "home"


def needs(program):
    return pytest.mark.skipif(shutil.which(program) is None, reason=f"`{program}` is not installed")


@needs("claude")
@pytest.mark.thorough
def test_claude_code_validates_the_plugin(tmp_path):
    out, home = emitted(tmp_path, "claude-plugin")
    assert "Validation passed" in ran("claude", "plugin", "validate", str(out), home=home)
    shown = ran("claude", "--plugin-dir", str(out), "plugin", "details", "route-tickets", home=home)
    assert "Skills (1)" in shown and "route-tickets" in shown


@needs("claude")
@pytest.mark.thorough
def test_claude_code_connects_to_the_server(tmp_path):
    out, home = emitted(tmp_path, "mcp")
    command = ["skillc", "emit", str(out / "skills/route-tickets"), "--form", "mcp", "--serve"]
    ran("claude", "mcp", "add", "-s", "user", "routing", "--", *command, home=home)
    assert "✔ Connected" in ran("claude", "mcp", "list", home=home)


@needs("gemini")
@pytest.mark.thorough
@pytest.mark.parametrize("name", ["gemini", "gemini-context"])
def test_gemini_cli_validates_the_extension_and_finds_its_skill(tmp_path, name):
    out, home = emitted(tmp_path, name)
    assert "successfully validated" in ran("gemini", "extensions", "validate", str(out), home=home)
    ran("gemini", "extensions", "link", "--consent", str(out), home=home)
    found = ran("gemini", "skills", "list", home=home, cwd=home)
    assert ("route-tickets [Enabled]" in found and ABOUT in found) == (name == "gemini")


@needs("codex")
@pytest.mark.thorough
def test_codex_puts_name_and_description_in_front_of_its_model(tmp_path):
    out, home = emitted(tmp_path, "codex")
    subprocess.run(["git", "init", "-q", str(out)], check=True)
    shown = ran("codex", "debug", "prompt-input", "hi", home=home, cwd=out)
    assert f"route-tickets: {ABOUT}" in shown
    assert "Invoices go to billing" not in shown


@needs("codex")
@pytest.mark.thorough
def test_codex_puts_agents_md_in_front_of_its_model(tmp_path):
    out, home = emitted(tmp_path, "agents-md")
    subprocess.run(["git", "init", "-q", str(out)], check=True)
    assert "Invoices go to billing" in ran("codex", "debug", "prompt-input", "hi", home=home, cwd=out)


@needs("hermes")
@pytest.mark.thorough
def test_hermes_lists_the_skill(tmp_path):
    out, home = emitted(tmp_path, "hermes")
    shutil.copytree(out / "route-tickets", home / "hermes/skills/route-tickets")
    shown = ran("hermes", "skills", "list", home=home, HERMES_HOME=str(home / "hermes"))
    assert "route-tickets" in shown and "enabled" in shown


def test_the_reference_validator_accepts_every_skill_file(tmp_path):
    skills_ref = pytest.importorskip("skills_ref")
    for name in ("claude-plugin", "codex", "gemini", "hermes", "mcp"):
        out = tmp_path / name
        emit_skill(skill_folder(out), name, out / "out")
        (folder,) = (file.parent for file in (out / "out").rglob("SKILL.md"))
        assert skills_ref.validate(folder) == []

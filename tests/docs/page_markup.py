"""Blocks of YAML, of markdown and of grammar."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import yaml
from page_session import ROOT

from skillc.cli import VERBS
from skillc.document.skill_md import sections_of


def check_yaml(text: str) -> None:
    """YAML that a reader copies: the hooks of pre-commit, or a workflow that calls the action.

    Raises:
        AssertionError: it names a hook, an input or a key that is not there.
    """
    read = yaml.safe_load(text)
    assert isinstance(read, dict), "this is no mapping"
    if "repos" in read:
        _check_hooks(read)
    else:
        # YAML 1.1 reads the key `on` as true.
        assert "jobs" in read and (True in read or "on" in read), "this is neither a workflow nor a pre-commit file"
        for job in read["jobs"].values():
            assert "runs-on" in job
            for step in job["steps"]:
                check_step(step)


def _check_hooks(read: dict[str, Any]) -> None:
    known = {hook["id"]: hook for hook in yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())}
    for repo in read["repos"]:
        assert {"repo", "rev", "hooks"} <= set(repo)
        for hook in repo["hooks"]:
            assert hook["id"] in known, f"there is no hook `{hook['id']}`"


def check_step(step: dict[str, Any]) -> None:
    """A step of a workflow; one that uses our action names inputs that it has."""
    assert ("uses" in step) != ("run" in step), f"a step either runs or uses something: {step}"
    if "uses" in step and "skillc" in step["uses"]:
        inputs = yaml.safe_load((ROOT / "action.yml").read_text())["inputs"]
        stray = set(step.get("with", {})) - set(inputs)
        assert not stray, f"the action has no input {sorted(stray)}"
    elif "uses" in step:
        assert re.fullmatch(r"[\w-]+/[\w/-]+@v\d+", step["uses"]), step["uses"]


def check_toml(text: str) -> None:
    """TOML; a language server in it is one of our verbs.

    Raises:
        AssertionError: it calls what is not there.
    """
    for server in tomllib.loads(text).get("language-server", {}).values():
        _check_command([server["command"], *server["args"]])


def check_lua(text: str) -> None:
    """A configuration of Neovim: its brackets are closed, and the command that it starts is one of our verbs.

    Raises:
        AssertionError: it is not so.
    """
    closing = {"}": "{", ")": "("}
    opened: list[str] = []
    for sign in re.findall(r"[(){}]", re.sub(r'"[^"\n]*"', "", text)):
        if sign in closing:
            assert opened and opened.pop() == closing[sign], f"a `{sign}` too many"
        else:
            opened.append(sign)
    assert not opened, f"`{opened[-1]}` is not closed"
    commands = re.findall(r"cmd = \{([^}]*)\}", text)
    assert commands, "this starts nothing"
    for command in commands:
        _check_command(re.findall(r'"([^"]*)"', command))


def _check_command(words: list[str]) -> None:
    assert words[0] == "skillc" and words[1] in VERBS, f"there is no `{' '.join(words)}`"


def check_skill_md(text: str) -> None:
    """A SKILL.md with its sections, or any other markdown with a heading."""
    assert sections_of(text) or re.search(r"^#+ ", text, re.MULTILINE), "this markdown has no heading"


def check_grammar(text: str) -> None:
    """A grammar: the one that the reference's generator writes, and no other."""
    assert text in Path(ROOT / "docs/reference/grammar.md").read_text(), "this is no grammar of ours"

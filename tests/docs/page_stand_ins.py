"""Commands of pages that a test can't run, because they install or need a network: what is checked in their place."""

from __future__ import annotations

import json
import re
import shlex
import tomllib
from collections.abc import Callable

from page_session import ROOT


def stand_in(command: str) -> Callable[[], None] | None:
    """The check that stands for a command; None for one that is run."""
    words = shlex.split(command, comments=True)
    checks = {"make": _make, "pip": _pip, "uv": _pip, "pre-commit": _pre_commit}
    checks |= {".venv-vllm/bin/pip": _vllm, "hf": _download}
    checks |= dict.fromkeys(("npm", "npx", "code"), lambda _: _extension(words))
    if not words or words[0] not in checks:
        return None
    return lambda: checks[words[0]](words[1:])


def _make(words: list[str]) -> None:
    """Each target is one of the Makefile."""
    targets = re.findall(r"^([\w.-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    for word in words:
        assert word in targets, f"there is no target `{word}` in the Makefile"


def _pip(words: list[str]) -> None:
    """What is installed is skillc, with extras that it has, or the checkout."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert "install" in words
    for word in words[words.index("install") + 1 :]:
        name, _, extras = word.rstrip("]").partition("[")
        assert word.startswith("-") or name in (project["name"], ".", "~/skillc"), f"`{word}` is not skillc"
        for extra in filter(None, extras.split(",")):
            assert extra in project["optional-dependencies"], f"skillc has no extra `{extra}`"


def _vllm(words: list[str]) -> None:
    """It installs vLLM, and nothing else."""
    assert words == ["install", "vllm"]


def _download(words: list[str]) -> None:
    """It fetches one model of the hub, into its cache or a folder."""
    assert words[0] == "download" and re.fullmatch(r"[\w.-]+/[\w.-]+", words[1])
    assert words[2:] == [] or (words[2] == "--local-dir" and len(words) == 4)


def _extension(words: list[str]) -> None:
    """It packs and installs the extension of Visual Studio Code under the name that packing gives it."""
    package = json.loads((ROOT / "editors/vscode/package.json").read_text())
    known = ["npm install", "npx @vscode/vsce package"]
    known.append(f"code --install-extension {package['name']}-{package['version']}.vsix")
    assert " ".join(words) in known, f"known are {known}"


def _pre_commit(words: list[str]) -> None:
    """It is one of the commands that a reader needs."""
    assert words[0] in ("install", "run", "autoupdate")

"""Whole compiles of a small program against a server on this machine that fails."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections import Counter
from collections.abc import Callable, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "cli"))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "faults"))

import pytest
from conftest_cli import PROGRAM, rows, skillc  # noqa: F401 - for tests
from faulty_server import Asked, Step, say
from nursery import Nursery

from skillc.frontend import estimate, plan_file
from skillc.models.client import Client
from skillc.models.pace import RetryPolicy
from skillc.models.rulebook import answer as rulebook_answer
from skillc.optimize.host import SilentObserver
from skillc.pipeline.compile import Compiled, Job, compile_job
from skillc.tokens import count_tokens

FILES = ("sort-things/SKILL.md", "sort-things.lock", "sort-things.history.jsonl", "sort_things.py")
_PROVIDERS = {"openai": "openai/rulebook", "hosted_vllm": "hosted_vllm/rulebook", "anthropic": "anthropic/claude-x"}


def shop(folder: Path, protocol: str = "openai", settings: str = "", count: int = 60) -> Path:
    """A folder with a program, whose models are behind `$SERVER`, and its data."""
    folder.mkdir(parents=True)
    model = f'"{_PROVIDERS[protocol]}" {{ base_url = env("SERVER"); key = env("TEAM_KEY"); {settings} }}'
    program = PROGRAM.replace('"rulebook/v1"', model).replace("epochs = 2", "steps = 2")
    (folder / "things.skill").write_text(program)
    (folder / "things.jsonl").write_text("".join(json.dumps(row) + "\n" for row in list(rows())[:count]))
    return folder


async def _no_wait(seconds: float) -> None:
    await asyncio.sleep(0)


def compile_here(folder: Path, server: str, key: str) -> Compiled:
    """A compile in this process as the command line does it, but that nothing is waited for between attempts."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SERVER", server)
        patch.setenv("TEAM_KEY", key)
        planned = plan_file(folder / "things.skill", runnable=True)
        job = Job(planned, estimate(planned), folder / "skills", folder / ".skillc")
        with Client(
            planned.plan, cache_folder=job.home / "cache", retries=RetryPolicy(6, 0, 0), sleep=_no_wait, preflight=True
        ) as client:
            return compile_job(job, SilentObserver(), client)


def compile_in(nursery: Nursery, folder: Path, server: str, key: str, *arguments: str, **environment: str) -> int:
    """The exit status of a compile in a process of its own; what it prints stands in `stdout.txt` and `stderr.txt`."""
    kept = {name: os.environ[name] for name in ("SKILLC_LITELLM",) if name in os.environ}
    names = {"SERVER": server, "TEAM_KEY": key, **kept, **environment}
    return int(nursery.run(folder, "compile", "things.skill", *arguments, **names))


def compiled(folder: Path) -> dict[str, bytes]:
    """The bytes of all that a compile writes for git."""
    return {name: (folder / "skills" / name).read_bytes() for name in FILES}


def messages_of(asked: Asked) -> list[dict[str, Any]]:
    """The prompt as the OpenAI chat format has it, whatever protocol it came in."""
    system = asked.body.get("system")
    first = [{"role": "system", "content": _text(system)}] if system else []
    return first + [{"role": m["role"], "content": _text(m["content"])} for m in asked.body["messages"]]


def _text(content: Any) -> str:
    return content if isinstance(content, str) else "".join(str(part.get("text", "")) for part in content)


def well(asked: Asked) -> Step:
    """What the rulebook answers."""
    messages = messages_of(asked)
    parameters = {name: asked.body[name] for name in ("max_tokens", "temperature") if name in asked.body}
    text = rulebook_answer(messages, parameters)
    return say(text, usage=(sum(count_tokens(m["content"]) for m in messages), count_tokens(text)), model="stub")


def prompt_of(asked: Asked) -> str:
    """What tells one prompt from another."""
    return sha256(json.dumps(messages_of(asked)).encode()).hexdigest()


def share_of(prompt: str) -> float:
    """A number between 0 and 1 that belongs to a prompt."""
    return int(prompt[:8], 16) / 16**8


class Storm:
    """Fails the first time that a prompt comes, on a share of the prompts, in each of several ways a few times.

    Attributes:
        struck: how often each way was taken.
    """

    def __init__(self, ways: Mapping[str, Step | Callable[[Asked], Step]], share: float, most: int = 2) -> None:
        self._ways, self._share, self._most = dict(ways), share, most
        self._seen: Counter[str] = Counter()
        self.struck: Counter[str] = Counter()

    def __call__(self, asked: Asked) -> Step:
        """The step of one request."""
        prompt = prompt_of(asked)
        self._seen[prompt] += 1
        names = list(self._ways)
        name = names[int(prompt[8:16], 16) % len(names)]
        if self._seen[prompt] > 1 or share_of(prompt) >= self._share or self.struck[name] >= self._most:
            return well(asked)
        self.struck[name] += 1
        way: Any = self._ways[name]
        return way(asked) if getattr(way, "reads", False) else way


def reading(make: Callable[[Asked], Step]) -> Callable[[Asked], Step]:
    """Marks a way to fail that looks at the request."""
    make.reads = True  # type: ignore[attr-defined]
    return make

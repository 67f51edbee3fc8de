"""`rollout = opencode`: opencode, by `opencode run --format json`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, ClassVar

from skillc.models.calls import Usage
from skillc.processes.command import CommandResult
from skillc.tasks.agents.agent import KEY, AgentRollout, Job, Launch
from skillc.tasks.agents.report import (
    Report,
    all_known,
    json_lines,
    last_message,
    nano,
    object_of,
    text_of,
    tool_use,
    usage_of,
)
from skillc.tasks.kind import rollout_kind
from skillc.trajectories.trajectory import Message, Step

_PROVIDER = "skillc"
# What it may assume of a model that no list names.
_CONTEXT = 128_000


@rollout_kind("opencode")
class OpenCode(AgentRollout):
    """Runs opencode with the model as a provider of chat completions, or of Anthropic's protocol.

    The skill is in `~/.agents/skills`, which its `skill` tool reads; a skill that is always read is also one of the
    instructions of its configuration. It retries a failed server without end, so that only the time limit ends that.
    """

    protocols: ClassVar[frozenset[str]] = frozenset({"openai", "anthropic"})

    def launch(self, job: Job) -> Launch:
        """As `AgentRollout.launch`."""
        read = job.install(".agents/skills")
        limit = self.site.plan.models[self.site.role].max_reply
        configuration = _configuration(job, [read] if read else [], limit)
        job.workspace.write(".config/opencode/opencode.json", json.dumps(configuration, indent=2))
        return Launch(
            ["run", "--pure", "--format", "json", "--title", "rollout", "-m", f"{_PROVIDER}/{job.model.name}"],
            {KEY: job.model.key, "OPENCODE_DISABLE_AUTOUPDATE": "1", "OPENCODE_DISABLE_MODELS_FETCH": "1"},
            job.prompt.encode(),
        )

    def report(self, result: CommandResult, job: Job) -> Report:
        """As `AgentRollout.report`."""
        steps: list[Step] = []
        usages: list[Usage | None] = []
        failure, ended, cost = None, "", 0.0
        for event in json_lines(result.stdout):
            part = object_of(event.get("part"))
            match event.get("type"):
                case "text":
                    steps.append(Message(str(part.get("text", ""))))
                case "tool_use":
                    steps += _tool_use(part)
                case "step_finish":
                    usages.append(_usage(object_of(part.get("tokens"))))
                    cost += float(part.get("cost") or 0)
                    ended, failure = str(part.get("reason")), None
                case "error":
                    failure = _message(event.get("error"))
        if failure is None and ended in ("", "tool-calls", "error"):
            failure = "it did not finish"
        return Report(
            reply=last_message(steps),
            steps=tuple(steps),
            usages=all_known(usages),
            cost=nano(cost),
            turns=max(1, len(usages)),
            failure=failure,
        )


def _configuration(job: Job, instructions: list[str], max_reply: int) -> Mapping[str, Any]:
    url, package = job.model.url, "@ai-sdk/openai-compatible"
    if job.model.protocol == "anthropic":
        url, package = f"{url.rstrip('/').removesuffix('/v1')}/v1", "@ai-sdk/anthropic"
    return {
        "autoupdate": False,
        "share": "disabled",
        "permission": {"edit": "allow", "bash": "allow", "webfetch": "allow"},
        "instructions": instructions,
        "provider": {
            _PROVIDER: {
                "npm": package,
                "name": _PROVIDER,
                "options": {"baseURL": url, "apiKey": f"{{env:{KEY}}}"},
                "models": {
                    job.model.name: {"name": job.model.name, "limit": {"context": _CONTEXT, "output": max_reply}}
                },
            }
        },
    }


def _tool_use(part: Mapping[str, Any]) -> tuple[Step, ...]:
    state = object_of(part.get("state"))
    failed = state.get("status") == "error" or object_of(state.get("metadata")).get("exit") not in (0, None)
    return tool_use(part.get("tool"), state.get("input"), text_of(state.get("error") or state.get("output")), failed)


def _usage(tokens: Mapping[str, Any]) -> Usage | None:
    """Return the tokens of a step; its input excludes the cached tokens, its output the reasoning."""
    cache = object_of(tokens.get("cache"))
    thought = tokens.get("reasoning") or 0
    sent = (tokens.get("input") or 0) + (cache.get("write") or 0)
    received = (tokens.get("output") or 0) + thought
    return usage_of(sent, received, cached=cache.get("read"), reasoning=thought, apart=True)


def _message(error: Any) -> str:
    if isinstance(error, dict):
        return str(object_of(error.get("data")).get("message") or error.get("message") or error.get("name"))
    return str(error or "it failed")

"""`rollout = codex`: OpenAI's Codex CLI, by `codex exec --json`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from skillc.models.calls import Usage
from skillc.processes.command import CommandResult
from skillc.tasks.agents.agent import KEY, AgentRollout, Job, Launch
from skillc.tasks.agents.report import (
    Report,
    all_known,
    json_lines,
    last_message,
    object_of,
    text_of,
    tool_use,
    usage_of,
)
from skillc.tasks.kind import rollout_kind
from skillc.trajectories.trajectory import Message, Step, ToolCall


@rollout_kind("codex")
class Codex(AgentRollout):
    """Runs Codex with the model as a provider of the Responses API.

    The skill is in `~/.agents/skills`. Codex reads the body at once where the prompt begins with its name.
    """

    def launch(self, job: Job) -> Launch:
        """As `AgentRollout.launch`."""
        job.workspace.write(".codex/config.toml", _configuration(job))
        job.install(".agents/skills")
        # A colon after the name would prevent it.
        prompt = f"${job.skill.document.name} {job.prompt}" if job.skill is not None else job.prompt
        return Launch(
            # The sandbox around it is skillc's: its own cannot be made inside of another.
            ["exec", "--json", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", "-"],
            {"CODEX_HOME": f"{job.workspace.seen_home}/.codex", KEY: job.model.key},
            prompt.encode(),
        )

    def report(self, result: CommandResult, job: Job) -> Report:
        """As `AgentRollout.report`."""
        steps: list[Step] = []
        usages, failure, finished = [], None, False
        for event in json_lines(result.stdout):
            match event.get("type"):
                case "item.completed" if isinstance(event.get("item"), dict):
                    steps += _steps(event["item"])
                case "turn.completed":
                    finished, failure = True, None
                    usages.append(_usage(object_of(event.get("usage"))))
                case "turn.failed" | "error":
                    failure = _message(event)
        return Report(
            reply=last_message(steps),
            steps=tuple(steps),
            usages=all_known(usages),
            turns=1 + sum(isinstance(step, ToolCall) for step in steps),
            failure=failure if failure or finished else "it did not finish its turn",
        )


def _configuration(job: Job) -> str:
    """Return `config.toml`; its strings are those of JSON."""
    return "\n".join(
        [
            f"model = {json.dumps(job.model.name)}",
            'model_provider = "skillc"',
            "check_for_update_on_startup = false",
            "[skills.bundled]",
            "enabled = false",
            "[analytics]",
            "enabled = false",
            "[model_providers.skillc]",
            'name = "skillc"',
            f"base_url = {json.dumps(job.model.url)}",
            'wire_api = "responses"',
            # By default it reconnects for minutes.
            "request_max_retries = 2",
            "stream_max_retries = 2",
            f'env_key = "{KEY}"',
            "",
        ]
    )


def _steps(item: Mapping[str, Any]) -> Iterator[Step]:
    match item.get("type"):
        case "agent_message":
            yield Message(str(item.get("text", "")))
        case "command_execution":
            failed = item.get("exit_code") not in (0, None) or item.get("status") == "failed"
            yield from tool_use("shell", {"command": item.get("command")}, item.get("aggregated_output"), failed)
        case "file_change":
            yield from tool_use("apply_patch", {"changes": item.get("changes")}, "", item.get("status") == "failed")
        case "mcp_tool_call":
            name, result = f"{item.get('server')}.{item.get('tool')}", item.get("error") or item.get("result")
            yield from tool_use(name, item.get("arguments"), text_of(result), bool(item.get("error")))
        case "web_search":
            yield ToolCall("web_search", {"query": item.get("query")})


def _usage(reported: Mapping[str, Any]) -> Usage | None:
    """Return the tokens of a turn; its input includes the cached tokens."""
    return usage_of(
        reported.get("input_tokens"),
        reported.get("output_tokens"),
        cached=reported.get("cached_input_tokens"),
        reasoning=reported.get("reasoning_output_tokens"),
    )


def _message(event: Mapping[str, Any]) -> str:
    error = event.get("error")
    return str((error if isinstance(error, dict) else event).get("message") or "it failed")

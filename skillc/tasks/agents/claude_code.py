"""`rollout = claude_code`: Claude Code, by `claude -p --output-format stream-json`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from skillc.document.skill import for_target
from skillc.json_values import objects_in
from skillc.models.calls import Usage
from skillc.processes.command import CommandResult
from skillc.tasks.agents.agent import AgentRollout, Job, Launch, argument
from skillc.tasks.agents.report import Report, all_known, json_lines, nano, object_of, text_of, usage_of
from skillc.tasks.kind import rollout_kind
from skillc.trajectories.trajectory import Message, Observation, Step, ToolCall

_QUIET = ("DISABLE_AUTOUPDATER", "DISABLE_TELEMETRY", "DISABLE_ERROR_REPORTING")


@rollout_kind("claude_code")
class ClaudeCode(AgentRollout):
    """Runs Claude Code with a model that speaks Anthropic's protocol.

    The skill is in `~/.claude/skills`; one that is always read is also appended to the system prompt.
    """

    protocols: ClassVar[frozenset[str]] = frozenset({"anthropic"})

    def launch(self, job: Job) -> Launch:
        """As `AgentRollout.launch`."""
        job.install(".claude/skills")
        read = (
            ["--append-system-prompt", argument(for_target(job.skill.document, linked=True))]
            if job.skill is not None
            else []
        )
        return Launch(
            [
                *("-p", "--output-format", "stream-json", "--verbose", "--dangerously-skip-permissions"),
                *("--model", job.model.name, *read),
            ],
            {
                "ANTHROPIC_BASE_URL": job.model.url.rstrip("/").removesuffix("/v1"),
                "ANTHROPIC_API_KEY": job.model.key,
                "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
                # Without it root may not skip permissions.
                "IS_SANDBOX": "1",
                **dict.fromkeys(_QUIET, "1"),
            },
            job.prompt.encode(),
        )

    def report(self, result: CommandResult, job: Job) -> Report:
        """As `AgentRollout.report`."""
        steps: list[Step] = []
        end: Mapping[str, Any] = {}
        for event in json_lines(result.stdout):
            if event.get("type") in ("assistant", "user"):
                steps += _steps(event)
            elif event.get("type") == "result":
                end = event
        failure = None
        if not end:
            failure = "it printed no result"
        elif end.get("is_error") or end.get("subtype") != "success":
            failure = text_of(end.get("result")) or f"it ended with `{end.get('subtype')}`"
        turns = end.get("num_turns")
        return Report(
            reply=text_of(end.get("result")),
            steps=tuple(steps),
            usages=all_known([_usage(object_of(end.get("usage")))]),
            cost=nano(end.get("total_cost_usd")),
            turns=turns if isinstance(turns, int) else 1,
            failure=failure,
        )


def _steps(event: Mapping[str, Any]) -> Iterator[Step]:
    for part in objects_in(object_of(event.get("message")).get("content")):
        match part.get("type"):
            case "text" if event["type"] == "assistant":
                yield Message(str(part.get("text", "")))
            case "tool_use":
                yield ToolCall(str(part.get("name")), object_of(part.get("input")))
            case "tool_result":
                yield Observation(text_of(part.get("content")), bool(part.get("is_error")))


def _usage(reported: Mapping[str, Any]) -> Usage | None:
    """Return the tokens of a session; its input excludes what was read from the cache and written to it."""
    sent = (reported.get("input_tokens") or 0) + (reported.get("cache_creation_input_tokens") or 0)
    cached = reported.get("cache_read_input_tokens")
    return usage_of(sent, reported.get("output_tokens"), cached=cached, apart=True)

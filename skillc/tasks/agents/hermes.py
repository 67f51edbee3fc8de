"""`rollout = hermes`: Hermes Agent, by `hermes chat --query`."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from skillc.models.calls import Usage
from skillc.processes.command import CommandResult
from skillc.tasks.agents.agent import KEY, AgentRollout, Job, Launch, argument
from skillc.tasks.agents.report import Report, Unreadable, all_known, last_message, nano, tool_use, usage_of
from skillc.tasks.kind import rollout_kind
from skillc.trajectories.trajectory import Message, Step

_HOME = ".hermes"
_CONTEXT = 128_000


@rollout_kind("hermes")
class Hermes(AgentRollout):
    """Runs Hermes with the model as its custom provider, and reads what happened from its database of sessions.

    The skill is in `~/.hermes/skills`; one that is always read is preloaded by `--skills`. What it prints is no report:
    it also prints errors there, some with exit status 0.
    """

    def launch(self, job: Job) -> Launch:
        """As `AgentRollout.launch`."""
        model = {
            "provider": "custom",
            "base_url": job.model.url,
            "api_key": f"${{{KEY}}}",
            "default": job.model.name,
            # Or it asks the server for it in several ways.
            "context_length": _CONTEXT,
        }
        # JSON is YAML.
        job.workspace.write(f"{_HOME}/config.yaml", json.dumps({"model": model}, indent=2))
        job.install(f"{_HOME}/skills")
        preloaded = ["--skills", job.skill.document.name] if job.skill is not None else []
        options = ["--quiet", "--yolo", "--accept-hooks", "--model", job.model.name, "--provider", "custom"]
        return Launch(
            ["chat", *options, *preloaded, f"--query={argument(job.prompt)}"],
            {"HERMES_HOME": f"{job.workspace.seen_home}/{_HOME}", KEY: job.model.key},
        )

    def report(self, result: CommandResult, job: Job) -> Report:
        """As `AgentRollout.report`."""
        session, messages = _session(job.workspace.home / _HOME / "state.db")
        steps = list(_steps(messages))
        finished = bool(messages) and messages[-1].get("role") == "assistant" and not messages[-1].get("tool_calls")
        printed = " ".join(result.stdout.decode(errors="replace").split())
        return Report(
            reply=last_message(steps),
            steps=tuple(steps),
            usages=all_known([_usage(session)]),
            cost=nano(session.get("actual_cost_usd")),
            turns=max(1, int(session.get("api_call_count") or 0)),
            failure=None if finished else printed[-300:] or "it did not finish",
        )


def _session(file: Path) -> tuple[Mapping[str, Any], Sequence[Mapping[str, Any]]]:
    """Read the session and its messages, oldest first.

    Raises:
        Unreadable: there is none, or the database has another form.
    """
    if file.is_symlink() or not file.is_file():
        raise Unreadable("it recorded no session")
    try:
        with closing(sqlite3.connect(f"{file.as_uri()}?mode=ro", uri=True)) as database:
            database.row_factory = sqlite3.Row
            session = database.execute(
                "SELECT * FROM sessions WHERE parent_session_id IS NULL ORDER BY started_at LIMIT 1"
            ).fetchone()
            if session is None:
                raise Unreadable("it recorded no session")
            found = database.execute("SELECT * FROM messages WHERE session_id = ? ORDER BY id", (session["id"],))
            return dict(session), [dict(message) for message in found]
    except (sqlite3.Error, IndexError) as problem:
        raise Unreadable(f"its database of sessions cannot be read: {problem}") from None


def _steps(messages: Sequence[Mapping[str, Any]]) -> Iterator[Step]:
    calls: dict[str, tuple[str, Any]] = {}
    for message in messages:
        text = str(message.get("content") or "")
        if message.get("role") == "assistant":
            if text.strip():
                yield Message(text)
            for call in _json(message.get("tool_calls")) or ():
                function = call.get("function") or {}
                calls[str(call.get("id"))] = (str(function.get("name")), _json(function.get("arguments")))
        elif message.get("role") == "tool":
            name, arguments = calls.get(str(message.get("tool_call_id")), (str(message.get("tool_name")), {}))
            result = _json(text)
            failed = isinstance(result, dict) and bool(result.get("error") or result.get("exit_code"))
            yield from tool_use(name, arguments, text, failed)


def _usage(session: Mapping[str, Any]) -> Usage | None:
    """The tokens of a session; its input excludes the cached tokens."""
    sent = (session.get("input_tokens") or 0) + (session.get("cache_write_tokens") or 0)
    return usage_of(
        sent,
        session.get("output_tokens"),
        cached=session.get("cache_read_tokens"),
        reasoning=session.get("reasoning_tokens"),
        apart=True,
    )


def _json(text: Any) -> Any:
    if not isinstance(text, str):
        return text
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None

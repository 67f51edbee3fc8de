"""Recordings of `skillc sessions record`: a redacted line for each call, with the request and the whole reply."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from skillc.sessions.readers.calls import ModelCall, sessions_of_calls
from skillc.sessions.readers.records import Head, Problem, count_of, json_lines, list_of, object_of, tokens_of
from skillc.sessions.readers.spill import Keyed, grouped
from skillc.sessions.session import Session
from skillc.sessions.streams import asked_messages, reply_messages, system_of


def recognises(head: Head) -> bool:
    """Return whether the first objects are recorded calls."""
    return any("skillc_recording" in each for each in head.records)


def read(path: Path) -> Iterator[Session | Problem]:
    """Yield the conversations of each recording."""
    problems: list[Problem] = []

    def records() -> Iterator[Keyed]:
        for line, value in json_lines(path):
            if isinstance(value, Problem):
                problems.append(value)
            elif value.get("protocol") in ("chat", "responses", "anthropic"):
                yield str(value.get("skillc_recording")), f"{value.get('began') or ''} {line:012d}", value
            else:
                problems.append(Problem(str(path), line, "its protocol is not known"))

    for group, calls in grouped(records()):
        yield from sessions_of_calls(group, _calls(calls), format="recorded", source=str(path))
    yield from problems


def _calls(lines: list[Any]) -> Iterator[ModelCall]:
    # A request that names an earlier response does not repeat its contents.
    before: dict[str, list[Mapping[str, Any]]] = {}
    for line in lines:
        protocol, request, reply = line["protocol"], object_of(line.get("request")), object_of(line.get("reply"))
        asked = [*before.get(str(request.get("previous_response_id")), ()), *asked_messages(protocol, request)]
        answer = reply_messages(protocol, reply)
        if protocol == "responses" and reply.get("id"):
            before[str(reply["id"])] = [*asked, *answer]
        yield ModelCall(
            asked,
            answer,
            system=system_of(protocol, request),
            model=str(reply.get("model") or request.get("model") or ""),
            agent=str(line.get("agent") or ""),
            project=str(line.get("project") or ""),
            began=line.get("began"),
            ended=line.get("ended"),
            tokens=tokens_of(reply.get("usage")),
            failed=line.get("status") != 200 or bool(reply.get("error")) or not answer,
            tools=len(list_of(request.get("tools"))),
            most=next(filter(None, (count_of(request.get(name)) for name in _MOST)), None),
        )


_MOST = ("max_tokens", "max_completion_tokens", "max_output_tokens")

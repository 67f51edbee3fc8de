"""Langfuse: exported observations, whose generations have input and output; scores are marks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from skillc.sessions.readers.calls import ModelCall, sessions_of_calls
from skillc.sessions.readers.records import (
    Head,
    Problem,
    count_of,
    json_objects,
    list_of,
    object_of,
    parsed,
    text_of,
    time_of,
)
from skillc.sessions.readers.spill import Keyed, grouped
from skillc.sessions.session import Mark, Session, Tokens


def recognises(head: Head) -> bool:
    """Return whether the first objects are observations, traces or scores of Langfuse."""
    return any(
        _of(each, "trace_id") is not None
        and ("type" in each or "data_type" in each or "dataType" in each)
        and ("input" in each or "value" in each or "stringValue" in each)
        for each in head.records
    )


def read(path: Path) -> Iterator[Session | Problem]:
    """Yield the conversations of each session, or of each trace without one."""
    problems: list[Problem] = []

    def records() -> Iterator[Keyed]:
        for line, value in json_objects(path):
            if isinstance(value, Problem):
                problems.append(value)
                continue
            group = str(_of(value, "session_id") or _of(value, "trace_id") or value.get("id") or line)
            yield group, f"{time_of(_of(value, 'start_time') or value.get('timestamp')) or ''} {line:012d}", value

    for group, found in grouped(records()):
        marks = tuple(mark for each in found for mark in _marks(each))
        calls = [_call(each, marks) for each in found if _is_generation(each)]
        yield from sessions_of_calls(group, calls, format="langfuse", source=str(path))
    yield from problems


def _of(value: Mapping[str, Any], name: str) -> Any:
    """Return a value by its name in exports, `trace_id`, or in the API, `traceId`."""
    first, *rest = name.split("_")
    return value.get(name, value.get(first + "".join(part.title() for part in rest)))


def _is_generation(value: Mapping[str, Any]) -> bool:
    return str(value.get("type") or "").upper() == "GENERATION"


def _call(value: Mapping[str, Any], marks: tuple[Mark, ...]) -> ModelCall:
    usage = object_of(_of(value, "usage_details"))
    cost = object_of(_of(value, "cost_details")).get("total") or _of(value, "total_cost")
    read_ = count_of(usage.get("cache_read_input_tokens") or usage.get("input_cached_tokens"))
    sent = count_of(usage.get("input")) + read_ + count_of(usage.get("cache_creation_input_tokens"))
    given, output = value.get("input"), value.get("output")
    asked = object_of(given)
    parameters = object_of(_of(value, "model_parameters"))
    return ModelCall(
        _messages(asked.get("messages", given) if asked else given, "user"),
        _messages(output, "assistant"),
        system=text_of(asked.get("system")),
        model=str(_of(value, "provided_model_name") or value.get("model") or ""),
        project=str(_of(value, "project_id") or ""),
        began=time_of(_of(value, "start_time")),
        ended=time_of(_of(value, "end_time")),
        tokens=Tokens(sent, read_, count_of(usage.get("output"))),
        cost=float(cost) if isinstance(cost, int | float) else None,
        failed=value.get("level") == "ERROR",
        tools=len(list_of(asked["tools"])) if "tools" in asked else None,
        most=count_of(parameters.get("max_tokens")) or None,
        marks=marks,
        tags=tuple(map(str, list_of(value.get("tags")))),
    )


def _messages(value: object, role: str) -> Sequence[Mapping[str, Any]]:
    """Return messages, also from a single one or from a text."""
    value = parsed(value) if isinstance(value, str) and value.lstrip().startswith(("[", "{")) else value
    if isinstance(value, list) and all(isinstance(each, dict) and "role" in each for each in value):
        return value
    if isinstance(value, dict) and ("content" in value or "tool_calls" in value):
        return [{"role": role, **value}]
    return [{"role": role, "content": text_of(value)}] if value not in (None, "") else []


def _marks(value: Mapping[str, Any]) -> Iterator[Mark]:
    """Yield the scores that an observation or a trace has, or the one that a line is."""
    inner = [each for each in list_of(value.get("scores")) if isinstance(each, dict)]
    is_score = "name" in value and not value.get("type") and _of(value, "trace_id") is not None
    for each in [*inner, value] if is_score else inner:
        given = each.get("value") if each.get("value") is not None else _of(each, "string_value")
        if isinstance(given, int | float | bool | str):
            yield Mark(str(each.get("name")), given, str(each.get("source") or ""), str(each.get("comment") or ""))

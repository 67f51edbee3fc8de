"""OpenTelemetry GenAI spans: OTLP in JSON, or one span a line as the SDK's console exporter prints it.

Contents are in the attributes `gen_ai.input.messages`, `gen_ai.output.messages` and `gen_ai.system_instructions`, on
the span or on an event of it; they are recorded only where the application has opted in.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
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
    text_of,
    time_of,
)
from skillc.sessions.readers.spill import Keyed, grouped
from skillc.sessions.session import Session, Tokens

_CALLS = frozenset({"chat", "text_completion", "generate_content"})


def recognises(head: Head) -> bool:
    """Return whether the first objects are spans."""
    return any(
        "resourceSpans" in each or {"context", "attributes", "start_time"} <= each.keys() for each in head.records
    )


def read(path: Path) -> Iterator[Session | Problem]:
    """Yield the conversations of each `gen_ai.conversation.id`, or of each trace."""
    problems: list[Problem] = []

    def records() -> Iterator[Keyed]:
        for line, value in json_objects(path):
            if isinstance(value, Problem):
                problems.append(value)
                continue
            for span in _spans(value):
                attributes = span["attributes"]
                is_call = attributes.get("gen_ai.operation.name") in _CALLS
                if is_call and ("gen_ai.input.messages" in attributes or "gen_ai.output.messages" in attributes):
                    group = str(attributes.get("gen_ai.conversation.id") or span["trace"])
                    yield group, f"{span['began']} {line:012d}", span

    for group, spans in grouped(records()):
        yield from sessions_of_calls(group, map(_call, spans), format="opentelemetry", source=str(path))
    yield from problems


def _spans(value: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    if "resourceSpans" not in value:
        context, attributes = object_of(value.get("context")), object_of(value.get("attributes"))
        service = object_of(object_of(value.get("resource")).get("attributes")).get("service.name")
        failed = object_of(value.get("status")).get("status_code") == "ERROR"
        yield _span(
            context.get("trace_id"), value.get("start_time"), value.get("end_time"), attributes, service, failed
        )
        return
    for resource in list_of(value.get("resourceSpans")):
        service = _attributes(object_of(resource).get("resource")).get("service.name")
        for scope in list_of(object_of(resource).get("scopeSpans")):
            for span in map(object_of, list_of(object_of(scope).get("spans"))):
                attributes = _attributes(span)
                for event in map(object_of, list_of(span.get("events"))):
                    attributes |= {k: v for k, v in _attributes(event).items() if k.startswith("gen_ai.")}
                failed = object_of(span.get("status")).get("code") in (2, "STATUS_CODE_ERROR")
                times = span.get("startTimeUnixNano"), span.get("endTimeUnixNano")
                yield _span(span.get("traceId"), *times, attributes, service, failed)


def _span(
    trace: object, began: object, ended: object, attributes: Mapping[str, Any], service: object, failed: bool
) -> dict[str, Any]:
    return {
        "trace": str(trace or ""),
        "began": time_of(began) or "",
        "ended": time_of(ended),
        "attributes": dict(attributes),
        "service": str(service or ""),
        "failed": failed,
    }


def _attributes(owner: object) -> dict[str, Any]:
    """Return the attributes of OTLP's list of keys and typed values as an object."""
    found = {}
    for each in map(object_of, list_of(object_of(owner).get("attributes"))):
        found[str(each.get("key"))] = _plain(object_of(each.get("value")))
    return found


def _plain(value: Mapping[str, Any]) -> Any:
    match value:
        case {"arrayValue": {"values": list(values)}}:
            return [_plain(object_of(each)) for each in values]
        case {"kvlistValue": {"values": list(values)}}:
            return {str(each.get("key")): _plain(object_of(each.get("value"))) for each in map(object_of, values)}
        case {"intValue": number}:
            return int(number)
        case _:
            return next(iter(value.values()), None)


def _call(span: Mapping[str, Any]) -> ModelCall:
    attributes = span["attributes"]
    read_, written = (count_of(attributes.get(f"gen_ai.usage.cache_{of}.input_tokens")) for of in ("read", "creation"))
    # The conventions count the cache in the input.
    sent = max(count_of(attributes.get("gen_ai.usage.input_tokens")), read_ + written)
    return ModelCall(
        [_message(each) for each in list_of(attributes.get("gen_ai.input.messages"))],
        [_message(each) for each in list_of(attributes.get("gen_ai.output.messages"))],
        system=text_of([_part(each) for each in list_of(attributes.get("gen_ai.system_instructions"))]),
        model=str(attributes.get("gen_ai.response.model") or attributes.get("gen_ai.request.model") or ""),
        agent=str(attributes.get("gen_ai.agent.name") or ""),
        project=span["service"],
        began=span["began"] or None,
        ended=span["ended"],
        tokens=Tokens(sent, read_, count_of(attributes.get("gen_ai.usage.output_tokens"))),
        failed=span["failed"] or "error.type" in attributes,
        tools=len(list_of(attributes["gen_ai.tool.definitions"])) if "gen_ai.tool.definitions" in attributes else None,
        most=count_of(attributes.get("gen_ai.request.max_tokens")) or None,
    )


def _message(value: object) -> dict[str, Any]:
    """Return a message of the conventions, whose parts have a content, in the chat form."""
    message = object_of(value)
    return {"role": message.get("role"), "content": [_part(each) for each in list_of(message.get("parts"))]}


def _part(value: object) -> dict[str, Any]:
    part = object_of(value)
    return {"type": "text", "text": text_of(part.get("content"))} if part.get("type") == "text" else dict(part)

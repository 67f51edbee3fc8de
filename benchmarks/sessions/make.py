"""Write any number of sessions in the forms of six sources, the same ones each time.

The shapes are those of real ones: a file a session for Claude Code and Codex, a database for opencode, files of many
for the others; lengths from one turn to dozens, results of tools from a line to 20,000 characters, 14 KB on average.
The words are drawn at random. Some are of a sub-agent, a title request, interrupted or pasted again, one in ten has a
request that differs from another one's by a number or a path, and some have addresses or keys to be removed.
"""

from __future__ import annotations

import json
import random
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

Line = dict[str, Any]
Turn = tuple[str, str, dict[str, str], str]
"""Role or `call`; text or tool; arguments; the tool's result."""

SHARES = (
    ("claude-code", 60),
    ("codex", 20),
    ("openai", 8),
    ("opencode", 6),
    ("opentelemetry", 3),
    ("langfuse", 3),
)
_IN_A_FILE = 500
_WORDS = [
    "order",
    "invoice",
    "parcel",
    "customer",
    "export",
    "import",
    "warehouse",
    "login",
    "page",
    "search",
    "index",
    "query",
    "retry",
    "timeout",
    "cache",
    "price",
    "stock",
    "refund",
    "address",
    "report",
    "table",
    "column",
    "field",
    "value",
    "test",
    "build",
    "deploy",
    "branch",
    "commit",
    "release",
    "version",
    "header",
    "token",
    "session",
    "worker",
    "queue",
    "message",
    "payload",
    "schema",
    "route",
    "handler",
    "view",
    "model",
    "filter",
    "sort",
    "total",
    "tax",
    "currency",
    "country",
    "language",
    "button",
    "form",
    "label",
    "icon",
    "colour",
    "width",
    "height",
    "margin",
    "font",
    "theme",
    "layout",
    "chart",
    "legend",
    "axis",
    "series",
    "event",
    "log",
    "metric",
    "alert",
    "rule",
    "policy",
    "role",
    "user",
    "group",
    "team",
    "account",
    "profile",
    "setting",
    "option",
    "flag",
    "default",
    "limit",
    "quota",
    "window",
    "day",
    "week",
    "month",
    "quarter",
    "budget",
    "forecast",
    "plan",
    "draft",
    "review",
    "comment",
    "thread",
    "file",
    "folder",
    "path",
    "link",
    "image",
    "video",
    "audio",
]
_VERBS = [
    "fix",
    "add",
    "remove",
    "rename",
    "test",
    "document",
    "speed-up",
    "explain",
    "review",
    "move",
    "split",
    "merge",
    "sort",
    "validate",
    "cache",
]
_ENDS = (".", ".", ".", ",", ",", ":", "")


class _Writer:
    """Random text and turns of one session."""

    def __init__(self, number: int) -> None:
        self.draw = random.Random(number)
        self.number = number

    def prose(self, words: int) -> str:
        picked = self.draw.choices(_WORDS, k=words)
        return " ".join(word + self.draw.choice(_ENDS) if i % 9 == 8 else word for i, word in enumerate(picked)) + "."

    def request(self) -> str:
        draw = self.draw
        if self.number % 10 == 7:  # nearly that of another session
            first = random.Random(self.number % 2_000)
            shared = " ".join(first.choices(_WORDS, k=24))
            return (
                f"In src/{draw.choice(_WORDS)}/{draw.choice(_WORDS)}.py, since build {draw.randrange(9_999)}: {shared}"
            )
        return f"Please {draw.choice(_VERBS)} the {draw.choice(_WORDS)}: {self.prose(draw.randrange(8, 70))}"

    def result(self) -> str:
        draw = self.draw
        size = min(20_000, int(draw.lognormvariate(6.1, 1.3)))
        block = self.prose(60)
        lines: list[str] = []
        length = 0
        while length < size:
            at = draw.randrange(max(1, len(block) - 60))
            kind = draw.randrange(4)
            part = block[at : at + draw.randrange(20, 60)]
            line = (
                f"    def {part.split()[-1].strip('.,:')}_{draw.randrange(99)}(self, value):  # {part}",
                f"2026-11-{draw.randrange(1, 29):02d}T{draw.randrange(24):02d}:14:{draw.randrange(60):02d} INFO {part}",
                f"src/{draw.choice(_WORDS)}/{draw.choice(_WORDS)}.py:{draw.randrange(900)}: {part}",
                f'  "{draw.choice(_WORDS)}": {draw.randrange(10_000)}, "{draw.choice(_WORDS)}": "{part}",',
            )[kind]
            lines.append(line)
            length += len(line) + 1
        if draw.random() < 0.02:
            lines.insert(1, f"contact: {draw.choice(_WORDS)}.{draw.choice(_WORDS)}@{draw.choice(_WORDS)}-shop.com")
        if draw.random() < 0.01:
            lines.insert(1, f"GITHUB_TOKEN=ghp_{''.join(draw.choices('abcdefghijABCDEFGHIJ0123456789', k=36))}")
        return "\n".join(lines)[:size]

    def turns(self) -> Iterator[Turn]:
        draw = self.draw
        for number in range(draw.choices((1, 2, 3, 5, 9), (50, 22, 14, 9, 5))[0]):
            yield "user", self.request() if number == 0 else self.prose(draw.randrange(4, 30)), {}, ""
            for _ in range(min(40, int(draw.expovariate(1 / 3)))):
                tool = draw.choice(("Bash", "Read", "Grep", "Edit"))
                path = f"/home/{draw.choice(_WORDS)}/work/src/{draw.choice(_WORDS)}.py"
                arguments = {
                    "Bash": {"command": f"cd src && python -m pytest {path} -k {draw.choice(_WORDS)}"},
                    "Read": {"file_path": path},
                    "Grep": {"pattern": draw.choice(_WORDS), "path": path},
                    "Edit": {"file_path": path, "old_string": self.prose(20), "new_string": self.prose(24)},
                }[tool]
                yield "call", tool, arguments, self.result()
            yield "assistant", self.prose(draw.randrange(10, 160)), {}, ""


def write_sessions(folder: Path, first: int, end: int) -> None:
    """Write the sessions with the numbers from `first` to `end`, so that a folder can be added to."""
    many: dict[str, list[int]] = {}
    for number in range(first, end):
        form = format_of(number)
        if form in ("claude-code", "codex"):
            lines = (_claude if form == "claude-code" else _codex)(number)
            # As many in a folder as a project has.
            _write(folder / form / f"project-{number // 500:04d}" / f"rollout-{number:06d}.jsonl", lines)
        else:
            many.setdefault(form, []).append(number)
    for form, numbers in many.items():
        for at in range(0, len(numbers), _IN_A_FILE):
            some = numbers[at : at + _IN_A_FILE]
            if form == "opencode":
                _opencode(folder / form / f"opencode-{some[0]:06d}.db", some)
            else:
                made = {"openai": _openai, "opentelemetry": _spans, "langfuse": _langfuse}[form]
                _write(folder / form / f"calls-{some[0]:06d}.jsonl", (line for each in some for line in made(each)))


def format_of(number: int) -> str:
    """Return the format of a session, by its number."""
    left = number * 37 % 100
    for name, share in SHARES:
        left -= share
        if left < 0:
            return name
    return SHARES[0][0]


def _write(path: Path, lines: Iterator[Line]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8") as file:
        file.writelines(json.dumps(line) + "\n" for line in lines)


def _turns(number: int) -> tuple[Turn, ...]:
    # One in a hundred is an earlier session pasted again.
    return tuple(_Writer(number - 50 if number % 100 == 99 else number).turns())


def _at(number: int, step: int) -> str:
    day, rest = 1 + number % 28, number * 31 % 86_400 // 2 + step
    return f"2026-{1 + number % 11:02d}-{day:02d}T{rest // 3600:02d}:{rest // 60 % 60:02d}:{rest % 60:02d}.000Z"


def _claude(number: int) -> Iterator[Line]:
    session = f"{number:08x}-0000-4000-8000-000000000000"
    before: str | None = None
    side = number % 75 == 11
    title = number % 150 == 23

    def line(role: str, content: object, step: int) -> Line:
        nonlocal before
        uuid = f"{session[:8]}-{step}"
        message: Line = {"role": role, "content": content}
        if role == "assistant":
            usage = {"input_tokens": 10, "cache_read_input_tokens": 900, "output_tokens": 60}
            message |= {"id": f"msg_{uuid}", "type": "message", "model": "claude-test", "usage": usage}
        made = {
            "parentUuid": before,
            "isSidechain": side,
            "userType": "external",
            "cwd": f"/srv/project-{number // 500}",
            "sessionId": session,
            "version": "2.1.0",
            "gitBranch": "main",
            "type": role,
            "message": message,
            "uuid": uuid,
            "timestamp": _at(number, step),
        }
        before = uuid
        return made

    step = 0
    for kind, text, arguments, result in _turns(number):
        step += 1
        if kind == "user":
            yield line("user", f"<command-name>{text}</command-name>" if title else text, step)
        elif kind == "assistant":
            yield line("assistant", [{"type": "text", "text": text}], step)
            if title:
                return
        else:
            use = {"type": "tool_use", "id": f"toolu_{step}", "name": text, "input": arguments}
            yield line("assistant", [use], step)
            step += 1
            yield line("user", [{"type": "tool_result", "tool_use_id": f"toolu_{step - 1}", "content": result}], step)
    if number % 60 == 17:
        yield line("user", [{"type": "text", "text": "[Request interrupted by user]"}], step + 1)


def _codex(number: int) -> Iterator[Line]:
    step = 0

    def line(kind: str, payload: Line) -> Line:
        nonlocal step
        step += 1
        return {"timestamp": _at(number, step), "type": kind, "payload": payload}

    meta = {"id": f"cx-{number:06d}", "cwd": f"/srv/project-{number // 500}", "cli_version": "0.169.0"}
    yield line("session_meta", {**meta, "instructions": "Be brief. " * 40})
    yield line("turn_context", {"model": "gpt-test"})
    for kind, text, arguments, result in _turns(number):
        if kind == "call":
            name = {"name": "exec_command", "arguments": json.dumps(arguments), "call_id": f"c{step}"}
            output = json.dumps({"output": result, "metadata": {"exit_code": 0, "duration_seconds": 0.3}})
            yield line("response_item", {"type": "function_call", **name})
            yield line("response_item", {"type": "function_call_output", "call_id": name["call_id"], "output": output})
        else:
            part = {"type": "input_text" if kind == "user" else "output_text", "text": text}
            yield line("response_item", {"type": "message", "role": kind, "content": [part]})
    usage = {"input_tokens": 1_000, "cached_input_tokens": 900, "output_tokens": 100}
    yield line("event_msg", {"type": "token_count", "info": {"total_token_usage": usage}})
    yield line("event_msg", {"type": "task_complete"})


def _chat(number: int) -> list[Line]:
    messages: list[Line] = [{"role": "system", "content": "Be brief."}]
    for i, (kind, text, arguments, result) in enumerate(_turns(number)):
        if kind == "call":
            function = {"name": text, "arguments": json.dumps(arguments)}
            calls = [{"id": f"t{i}", "type": "function", "function": function}]
            messages.append({"role": "assistant", "content": None, "tool_calls": calls})
            messages.append({"role": "tool", "tool_call_id": f"t{i}", "content": result})
        else:
            messages.append({"role": kind, "content": text})
    return messages


def _openai(number: int) -> Iterator[Line]:
    usage = {"prompt_tokens": 1_000, "completion_tokens": 100}
    yield {"id": f"chat-{number}", "model": "gpt-test", "messages": _chat(number), "usage": usage}


def _langfuse(number: int) -> Iterator[Line]:
    *asked, reply = _chat(number)
    yield {
        "id": f"g{number}",
        "trace_id": f"tr{number}",
        "session_id": f"l{number}",
        "type": "GENERATION",
        "start_time": _at(number, 0),
        "provided_model_name": "gpt-test",
        "input": json.dumps({"messages": asked}),
        "output": json.dumps(reply),
        "usage_details": {"input": 1_000, "output": 100},
    }


def _spans(number: int) -> Iterator[Line]:
    def part(message: Line) -> Line:
        if message["role"] == "tool":
            parts = [{"type": "tool_call_response", "id": message["tool_call_id"], "response": message["content"]}]
        elif message.get("tool_calls"):
            call = message["tool_calls"][0]
            parts = [{"type": "tool_call", "id": call["id"], "name": call["function"]["name"]}]
            parts[0]["arguments"] = json.loads(call["function"]["arguments"])
        else:
            parts = [{"type": "text", "content": message["content"]}]
        return {"role": message["role"], "parts": parts}

    *asked, reply = _chat(number)
    attributes = {
        "gen_ai.operation.name": "chat",
        "gen_ai.request.model": "gpt-test",
        "gen_ai.conversation.id": f"s{number}",
        "gen_ai.input.messages": json.dumps([part(each) for each in asked[1:]]),
        "gen_ai.output.messages": json.dumps([{**part(reply), "finish_reason": "stop"}]),
    }
    keyed = [{"key": key, "value": {"stringValue": value}} for key, value in attributes.items()]
    start = str(1_793_527_200_000_000_000 + number * 10**9)
    span = {"traceId": f"{number:032x}", "spanId": "1", "startTimeUnixNano": start, "attributes": keyed}
    service = {"attributes": [{"key": "service.name", "value": {"stringValue": "shop"}}]}
    yield {"resourceSpans": [{"resource": service, "scopeSpans": [{"spans": [span]}]}]}


def _opencode(path: Path, numbers: list[int]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    times = "time_created INTEGER, time_updated INTEGER"
    with closing(sqlite3.connect(path)) as db:
        db.executescript(
            f"""
            CREATE TABLE session (
                id TEXT PRIMARY KEY, parent_id TEXT, directory TEXT, version TEXT, revert TEXT, {times});
            CREATE TABLE message (id TEXT PRIMARY KEY, session_id TEXT, data TEXT, {times});
            CREATE TABLE part (id TEXT PRIMARY KEY, message_id TEXT, session_id TEXT, data TEXT, {times});
            CREATE INDEX message_session_idx ON message (session_id);
            CREATE INDEX part_session_idx ON part (session_id);
            CREATE INDEX part_message_idx ON part (message_id);
            """
        )
        for number in numbers:
            at = 1_793_527_200_000 + number * 1_000
            session = f"ses_{number:06d}"
            db.execute("INSERT INTO session VALUES (?, NULL, '/srv/shop', '1.18', NULL, ?, ?)", (session, at, at))
            for i, (kind, text, arguments, result) in enumerate(_turns(number)):
                message = f"msg_{number:06d}_{i:04d}"
                info: Line = {"role": "user", "time": {"created": at}}
                part: Line = {"type": "text", "text": text}
                if kind != "user":
                    info = {"role": "assistant", "modelID": "gpt-test", "time": {"created": at, "completed": at + 9}}
                    info |= {"tokens": {"input": 10, "output": 8}, "cost": 0.01, "finish": "stop"}
                if kind == "call":
                    state = {"status": "completed", "input": arguments, "output": result, "time": {"start": at}}
                    part = {"type": "tool", "tool": text.lower(), "state": state}
                db.execute("INSERT INTO message VALUES (?, ?, ?, ?, ?)", (message, session, json.dumps(info), at, at))
                row = (f"prt_{number:06d}_{i:04d}", message, session, json.dumps(part), at, at)
                db.execute("INSERT INTO part VALUES (?, ?, ?, ?, ?, ?)", row)
        db.commit()

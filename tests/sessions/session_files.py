"""The same short conversation in each format of sessions, as its tool would have written it."""

import gzip
import json
import sqlite3
from contextlib import closing

ASKED, SAID, DONE = "The build fails.", "I look at the log.", "Fixed: a comma was missing."
THANKS, WELCOME = "Thanks, now the tests.", "They pass."
LOG = "SyntaxError: line 3"


def write_lines(path, lines):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


# ---- Claude Code -----------------------------------------------------------------------------------


class Claude:
    """Lines of a session file, each linked to the one before."""

    def __init__(self, session="c1"):
        self.session, self.lines = session, []

    def add(self, role, content, parent="last", uuid=None, **more):
        number = len(self.lines) + 1
        parent = (self.lines[-1]["uuid"] if self.lines else None) if parent == "last" else parent
        message = {"role": role, "content": content}
        if role == "assistant":
            usage = {"input_tokens": 10, "cache_read_input_tokens": 90, "output_tokens": 5}
            message |= {"model": "claude-test", "id": more.pop("id", f"m{number}"), "usage": usage}
        self.lines.append(
            {
                "type": role,
                "uuid": uuid or f"{self.session}-{number}",
                "parentUuid": parent,
                "sessionId": self.session,
                "timestamp": f"2026-11-01T10:00:{number:02d}.000Z",
                "cwd": "/srv/shop",
                "version": "2.1.0",
                "message": message,
                **more,
            }
        )
        return self


def claude_session(session="c1"):
    made = Claude(session)
    made.add("user", ASKED)
    made.add("assistant", [{"type": "text", "text": SAID}], id="m")
    made.add("assistant", [{"type": "tool_use", "id": "t", "name": "Bash", "input": {"command": "cat log"}}], id="m")
    made.add("user", [{"type": "tool_result", "tool_use_id": "t", "content": LOG, "is_error": True}])
    made.add("assistant", [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": DONE}])
    return made


def claude_code(folder):
    return write_lines(folder / "claude" / "-srv-shop" / "c1.jsonl", claude_session().lines)


# ---- the others ------------------------------------------------------------------------------------


def codex(folder):
    def line(kind, payload, second):
        return {"timestamp": f"2026-11-01T10:00:{second:02d}.000Z", "type": kind, "payload": payload}

    def said(role, text):
        kind = "input_text" if role == "user" else "output_text"
        return {"type": "message", "role": role, "content": [{"type": kind, "text": text}]}

    call = {"type": "function_call", "name": "exec_command", "arguments": '{"cmd": "cat log"}', "call_id": "t"}
    result = {"output": LOG, "metadata": {"exit_code": 1}}
    usage = {"input_tokens": 100, "cached_input_tokens": 90, "output_tokens": 10}
    lines = [
        line(
            "session_meta", {"id": "x1", "cwd": "/srv/shop", "cli_version": "0.169.0", "instructions": "Be brief."}, 0
        ),
        line("turn_context", {"model": "gpt-test"}, 1),
        line("response_item", said("user", "<environment_context>\n  <cwd>/srv</cwd>\n</environment_context>"), 2),
        line("response_item", said("user", ASKED), 3),
        line("response_item", {"type": "reasoning", "summary": []}, 4),
        line("response_item", said("assistant", SAID), 4),
        line("response_item", call, 5),
        line("response_item", {"type": "function_call_output", "call_id": "t", "output": json.dumps(result)}, 6),
        line("event_msg", {"type": "token_count", "info": {"total_token_usage": usage}}, 7),
        line("response_item", said("assistant", DONE), 8),
        line("event_msg", {"type": "task_complete", "last_agent_message": DONE}, 9),
        line("some_later_type", {}, 9),
    ]
    return write_lines(folder / "codex" / "2026" / "11" / "01" / "rollout-x1.jsonl", lines)


def opencode(folder):
    path = folder / "opencode" / "opencode.db"
    path.parent.mkdir(parents=True)
    times = "time_created INTEGER, time_updated INTEGER"
    with closing(sqlite3.connect(path)) as db:
        db.execute(
            f"CREATE TABLE session (id TEXT, parent_id TEXT, directory TEXT, version TEXT, revert TEXT, {times})"
        )
        db.execute(f"CREATE TABLE message (id TEXT, session_id TEXT, data TEXT, {times})")
        db.execute(f"CREATE TABLE part (id TEXT, message_id TEXT, session_id TEXT, data TEXT, {times})")
        at = 1_793_527_200_000
        db.execute("INSERT INTO session VALUES ('o1', NULL, '/srv/shop', '1.18', NULL, ?, ?)", (at, at))
        assistant = {
            "role": "assistant",
            "modelID": "gpt-test",
            "time": {"created": at + 1000, "completed": at + 9000},
            "tokens": {"input": 10, "output": 8, "reasoning": 2, "cache": {"read": 90, "write": 0}},
            "cost": 0.25,
            "finish": "stop",
        }
        for name, data in (("m1", {"role": "user", "time": {"created": at}}), ("m2", assistant)):
            db.execute("INSERT INTO message VALUES (?, 'o1', ?, ?, ?)", (name, json.dumps(data), at, at))
        state = {"status": "error", "input": {"command": "cat log"}, "error": LOG, "time": {"start": at + 2000}}
        parts = [
            ("m1", {"type": "text", "text": ASKED}),
            ("m1", {"type": "text", "text": "<file contents>", "synthetic": True}),
            ("m2", {"type": "text", "text": SAID}),
            ("m2", {"type": "tool", "tool": "bash", "state": state}),
            ("m2", {"type": "text", "text": DONE}),
        ]
        for number, (message, data) in enumerate(parts):
            row = (f"p{number}", message, json.dumps(data), at, at)
            db.execute("INSERT INTO part VALUES (?, ?, 'o1', ?, ?, ?)", row)
        db.commit()
    return path


def hermes(folder):
    path = folder / "hermes" / "state.db"
    path.parent.mkdir(parents=True)
    with closing(sqlite3.connect(path)) as db:
        db.execute(
            "CREATE TABLE sessions (id TEXT, source TEXT, model TEXT, system_prompt TEXT, parent_session_id TEXT, "
            "started_at REAL, ended_at REAL, end_reason TEXT, input_tokens INT, output_tokens INT, "
            "cache_read_tokens INT, cwd TEXT, actual_cost_usd REAL)"
        )
        db.execute(
            "CREATE TABLE messages (id INTEGER PRIMARY KEY, session_id TEXT, role TEXT, content TEXT, tool_calls TEXT, "
            "tool_name TEXT, timestamp REAL, active INT DEFAULT 1)"
        )
        values = (
            "h1",
            "cli",
            "m",
            "Be brief.",
            None,
            1.7935272e9,
            1.7935273e9,
            "user_exit",
            10,
            10,
            90,
            "/srv/shop",
            0.25,
        )
        db.execute(f"INSERT INTO sessions VALUES ({', '.join('?' * len(values))})", values)
        call = json.dumps([{"id": "t", "function": {"name": "terminal", "arguments": '{"command": "cat log"}'}}])
        rows = [
            ("user", ASKED, None, 1),
            ("assistant", "A rewound reply.", None, 0),
            ("assistant", SAID, call, 1),
            ("tool", json.dumps({"output": LOG, "exit_code": 1}), None, 1),
            ("assistant", DONE, None, 1),
        ]
        for second, (role, text, calls, active) in enumerate(rows):
            db.execute(
                "INSERT INTO messages (session_id, role, content, tool_calls, timestamp, active) "
                "VALUES ('h1', ?, ?, ?, ?, ?)",
                (role, text, calls, 1.7935272e9 + second, active),
            )
        db.commit()
    return path


CHAT = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": ASKED},
    {
        "role": "assistant",
        "content": SAID,
        "tool_calls": [
            {"id": "t", "type": "function", "function": {"name": "bash", "arguments": '{"command": "cat log"}'}}
        ],
    },
    {"role": "tool", "tool_call_id": "t", "content": LOG},
]
REPLY = {"role": "assistant", "content": DONE}
USAGE = {"prompt_tokens": 100, "completion_tokens": 10, "prompt_tokens_details": {"cached_tokens": 90}}


def openai(folder):
    first = {"id": "a1", "model": "gpt-test", "messages": [*CHAT, REPLY], "usage": USAGE, "score": 1.0}
    return write_lines(folder / "openai" / "chats.jsonl", [first])


def tapes(folder):
    """Two turns of a conversation in the wrong order, and a small request for a title beside them."""

    def turn(number, messages, reply, **request):
        return {
            "id": number,
            "provider": "openai",
            "agent_name": "pi",
            "harness_session_id": "t1",
            "raw_request": {"model": "gpt-test", "messages": messages, "tools": [{}], **request},
            "response": {"choices": [{"message": reply}], "usage": USAGE},
            "session_envelope": {"cwd": "/srv/shop"},
            "received_at": f"2026-11-01T10:00:0{number}Z",
        }

    title = [{"role": "user", "content": "Write a title for: " + ASKED}]
    lines = [
        turn(5, CHAT, REPLY),
        turn(1, CHAT[:2], CHAT[2]),
        turn(2, title, {"role": "assistant", "content": "Build"}, tools=[], max_tokens=64),
    ]
    path = folder / "tapes" / "export.jsonl.gz"
    path.parent.mkdir(parents=True)
    path.write_bytes(gzip.compress("".join(json.dumps(line) + "\n" for line in lines).encode()))
    return path


def tapes_database(folder):
    path = folder / "tapes" / "tapes.sqlite"
    path.parent.mkdir(parents=True)
    columns = "hash TEXT, parent_hash TEXT, role TEXT, content TEXT, model TEXT, agent_name TEXT, project TEXT, "
    with closing(sqlite3.connect(path)) as db:
        db.execute(f"CREATE TABLE nodes ({columns} prompt_tokens INT, completion_tokens INT, created_at TEXT)")
        use = [{"type": "text", "text": SAID}, {"type": "tool_use", "name": "bash", "input": {"command": "cat log"}}]
        contents = [
            ("user", [{"type": "text", "text": ASKED}]),
            ("assistant", use),
            ("user", [{"type": "tool_result", "content": LOG, "is_error": True}]),
            ("assistant", [{"type": "text", "text": DONE}]),
        ]
        for number, (role, content) in enumerate(contents):
            values = (
                f"n{number}",
                f"n{number - 1}" if number else None,
                role,
                json.dumps(content),
                "gpt-test",
                "pi",
                "shop",
            )
            tokens = (50, 5) if role == "assistant" else (0, 0)
            row = (*values, *tokens, f"2026-11-01 10:00:0{number}")
            db.execute(f"INSERT INTO nodes VALUES ({', '.join('?' * len(row))})", row)
        db.commit()
    return path


def opentelemetry(folder):
    def text(role, content):
        return {"role": role, "parts": [{"type": "text", "content": content}]}

    call = {"type": "tool_call", "id": "t", "name": "bash", "arguments": {"command": "cat log"}}
    asked = [text("user", ASKED), {"role": "assistant", "parts": [{"type": "text", "content": SAID}, call]}]
    asked += [{"role": "tool", "parts": [{"type": "tool_call_response", "id": "t", "response": LOG}]}]
    attributes = {
        "gen_ai.operation.name": "chat",
        "gen_ai.request.model": "gpt-test",
        "gen_ai.conversation.id": "s1",
        "gen_ai.input.messages": json.dumps(asked),
        "gen_ai.output.messages": json.dumps([{**text("assistant", DONE), "finish_reason": "stop"}]),
        "gen_ai.system_instructions": json.dumps([{"type": "text", "content": "Be brief."}]),
        "gen_ai.usage.input_tokens": 100,
        "gen_ai.usage.cache_read.input_tokens": 90,
        "gen_ai.usage.output_tokens": 10,
    }
    keyed = [
        {"key": k, "value": {"intValue": str(v)} if isinstance(v, int) else {"stringValue": v}}
        for k, v in attributes.items()
    ]
    span = {"traceId": "f" * 32, "spanId": "1", "startTimeUnixNano": "1793527200000000000", "attributes": keyed}
    other = {
        "traceId": "f" * 32,
        "spanId": "2",
        "attributes": [{"key": "http.method", "value": {"stringValue": "GET"}}],
    }
    service = {"attributes": [{"key": "service.name", "value": {"stringValue": "shop"}}]}
    line = {"resourceSpans": [{"resource": service, "scopeSpans": [{"spans": [span, other]}]}]}
    return write_lines(folder / "otel" / "spans.jsonl", [line])


def langfuse(folder):
    generation = {
        "id": "g1",
        "trace_id": "tr1",
        "session_id": "l1",
        "type": "GENERATION",
        "start_time": "2026-11-01T10:00:00Z",
        "provided_model_name": "gpt-test",
        "input": json.dumps({"messages": CHAT}),
        "output": json.dumps(REPLY),
        "usage_details": {"input": 10, "cache_read_input_tokens": 90, "output": 10},
        "cost_details": {"total": 0.25},
    }
    span = {
        "id": "s",
        "trace_id": "tr1",
        "session_id": "l1",
        "type": "SPAN",
        "input": None,
        "start_time": "2026-11-01T09:59Z",
    }
    score = {"id": "sc", "trace_id": "tr1", "session_id": "l1", "name": "helpful", "value": 1, "data_type": "NUMERIC"}
    return write_lines(folder / "langfuse" / "observations.jsonl", [span, {**score, "source": "API"}, generation])


def langsmith(folder):
    kinds = {"system": "SystemMessage", "user": "HumanMessage", "assistant": "AIMessage", "tool": "ToolMessage"}

    def langchain(message):
        calls = message.get("tool_calls", [])
        made = [{"name": c["function"]["name"], "args": json.loads(c["function"]["arguments"])} for c in calls]
        inner = {"content": message["content"], "tool_calls": made}
        return {"lc": 1, "type": "constructor", "id": ["langchain", kinds[message["role"]]], "kwargs": inner}

    run = {
        "id": "r1",
        "trace_id": "tr1",
        "run_type": "llm",
        "start_time": "2026-11-01T10:00:00",
        "inputs": {"messages": [[langchain(each) for each in CHAT]]},
        "outputs": {"generations": [[{"text": DONE, "message": langchain(REPLY)}]]},
        "extra": {"metadata": {"ls_model_name": "gpt-test", "thread_id": "ls1"}},
        "prompt_tokens": 100,
        "completion_tokens": 10,
        "prompt_token_details": {"cache_read": 90},
        "total_cost": 0.25,
        "feedback_stats": {"user_score": {"n": 1, "avg": 1.0}},
    }
    chain = {**run, "id": "r0", "run_type": "chain", "inputs": {}, "outputs": {}}
    return write_lines(folder / "langsmith" / "runs.jsonl", [chain, run])


def recorded(folder):
    call = {
        "skillc_recording": "r1",
        "protocol": "chat",
        "began": "2026-11-01T10:00:00.000Z",
        "status": 200,
        "request": {"model": "gpt-test", "messages": CHAT, "tools": [{}]},
        "reply": {"choices": [{"message": REPLY}], "usage": USAGE},
    }
    return write_lines(folder / "recordings" / "r1.jsonl", [call])


WRITERS = {
    "claude-code": claude_code,
    "codex": codex,
    "opencode": opencode,
    "hermes": hermes,
    "recorded": recorded,
    "tapes": tapes,
    "opentelemetry": opentelemetry,
    "langfuse": langfuse,
    "langsmith": langsmith,
    "openai": openai,
}

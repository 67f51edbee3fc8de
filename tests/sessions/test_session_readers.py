"""Each format of sessions: the same conversation read from it, and what only that format has."""

import json

import pytest
from session_files import (
    ASKED,
    CHAT,
    DONE,
    LOG,
    REPLY,
    SAID,
    THANKS,
    WELCOME,
    WRITERS,
    Claude,
    claude_session,
    tapes_database,
    write_lines,
)

from skillc.errors import SkillcError
from skillc.sessions.audit import reason_apart
from skillc.sessions.readers.records import Problem, time_of
from skillc.sessions.readers.registry import FORMATS, Source, find_sources, format_named, recognise
from skillc.sessions.session import Session, Tokens
from skillc.trajectories.trajectory import Message, Observation, ToolCall


def read(path, name=None):
    return list(FORMATS[name or recognise(path)].read(path))


def test_every_format_is_tried_here():
    assert WRITERS.keys() == FORMATS.keys()


@pytest.mark.parametrize("name", WRITERS)
def test_a_file_is_recognised(name, tmp_path):
    path = WRITERS[name](tmp_path)
    assert recognise(path) == name
    assert list(find_sources([tmp_path])) == [Source(path, name)]


@pytest.mark.parametrize("name", WRITERS)
def test_a_conversation_is_the_same_from_every_format(name, tmp_path):
    session = read(WRITERS[name](tmp_path))[0]
    steps = [event.step for event in session.events if not event.automatic]
    message, said, call, result, done = steps
    assert (message, said, done) == (Message(ASKED, "user"), Message(SAID), Message(DONE))
    assert isinstance(call, ToolCall)
    assert "cat log" in call.arguments.values()
    assert isinstance(result, Observation)
    assert LOG in result.text
    assert session.format == name
    assert session.key.startswith(f"{name}:")
    assert session.end == "finished"
    assert reason_apart(session) is None
    assert session.began is None if name == "openai" else session.began.startswith("2026-11-01T10:00:0")


# What chat messages don't have: whether a tool failed.
@pytest.mark.parametrize("name", ["claude-code", "codex", "opencode", "hermes"])
def test_a_failed_tool_is_seen(name, tmp_path):
    session = read(WRITERS[name](tmp_path))[0]
    assert [step.failed for step in session.steps if isinstance(step, Observation)] == [True]


@pytest.mark.parametrize("name", sorted(WRITERS.keys() - {"tapes", "claude-code"}))
def test_tokens_count_the_cache_once(name, tmp_path):
    assert read(WRITERS[name](tmp_path))[0].tokens == Tokens(100, 90, 10)


@pytest.mark.parametrize("name", ["opencode", "hermes", "langfuse", "langsmith"])
def test_a_reported_cost_is_kept(name, tmp_path):
    assert read(WRITERS[name](tmp_path))[0].cost == 0.25


@pytest.mark.parametrize(("name", "mark"), [("openai", "score"), ("langfuse", "helpful"), ("langsmith", "user_score")])
def test_scores_become_marks(name, mark, tmp_path):
    assert [(each.name, each.value) for each in read(WRITERS[name](tmp_path))[0].marks] == [(mark, 1.0)]


@pytest.mark.parametrize("name", ["codex", "hermes", "opentelemetry", "langfuse", "langsmith", "openai", "tapes"])
def test_system_instructions_are_apart_from_the_steps(name, tmp_path):
    assert read(WRITERS[name](tmp_path))[0].system == "Be brief."


# ---- Claude Code -----------------------------------------------------------------------------------


def claude(tmp_path, made):
    return read(write_lines(tmp_path / "c.jsonl", made.lines), "claude-code")


def test_usage_of_a_reply_in_several_lines_counts_once(tmp_path):
    (session,) = claude(tmp_path, claude_session())
    # Two replies of 100 tokens, the first in two lines.
    assert session.tokens == Tokens(200, 180, 10)
    assert (session.project, session.agent, session.model) == ("/srv/shop", "claude-code 2.1.0", "claude-test")


def test_what_was_rewound_is_dropped(tmp_path):
    made = claude_session()
    last = made.lines[-1]["uuid"]
    made.add("user", "Now delete everything.").add("assistant", [{"type": "text", "text": "Deleted."}])
    made.add("user", THANKS, parent=last).add("assistant", [{"type": "text", "text": WELCOME}])
    (session,) = claude(tmp_path, made)
    assert [step.text for step in session.steps[-2:]] == [THANKS, WELCOME]
    assert "Deleted." not in str(session.steps)


def test_results_of_parallel_calls_are_no_rewind(tmp_path):
    made = Claude().add("user", ASKED)
    for name in ("a", "b"):
        made.add("assistant", [{"type": "tool_use", "id": name, "name": name, "input": {}}])
    first, second = (line["uuid"] for line in made.lines[1:])
    made.add("user", [{"type": "tool_result", "tool_use_id": "a", "content": "1"}], parent=first)
    made.add("user", [{"type": "tool_result", "tool_use_id": "b", "content": "2"}], parent=second)
    made.add("assistant", [{"type": "text", "text": DONE}])
    (session,) = claude(tmp_path, made)
    assert [type(step).__name__ for step in session.steps] == [
        *("Message", "ToolCall", "ToolCall", "Observation", "Observation", "Message")
    ]


def test_a_sub_agent_is_a_session_with_a_parent(tmp_path):
    made = claude_session()
    made.add("user", "Search the code.", parent=None, uuid="side", isSidechain=True)
    made.add("assistant", [{"type": "text", "text": "Found."}], parent="side", isSidechain=True)
    main, side = claude(tmp_path, made)
    assert main.parent is None
    assert (side.parent, reason_apart(side)) == (main.key, "sidechain")
    assert [step.text for step in side.steps] == ["Search the code.", "Found."]


@pytest.mark.parametrize(
    "text",
    [
        "<command-name>/clear</command-name>",
        "<local-command-stdout>ok</local-command-stdout>",
        "Caveat: The messages below were generated by the user while running local commands.",
        "<system-reminder>be careful</system-reminder>",
    ],
)
def test_what_the_program_writes_for_the_user_is_automatic(text, tmp_path):
    (session,) = claude(tmp_path, Claude().add("user", text).add("assistant", [{"type": "text", "text": "ok"}]))
    assert reason_apart(session) == "automatic"


def test_a_continued_and_an_interrupted_session(tmp_path):
    summary = "This session is being continued from a previous conversation that ran out of context."
    made = Claude().add("user", summary, isCompactSummary=True).add("user", ASKED)
    (session,) = claude(tmp_path, made.add("assistant", [{"type": "text", "text": DONE}]))
    assert reason_apart(session) == "no start"
    made = claude_session().add("user", [{"type": "text", "text": "[Request interrupted by user]"}])
    (session,) = claude(tmp_path, made)
    assert (session.end, reason_apart(session)) == ("interrupted", "no end")


def test_a_damaged_line_is_a_problem_and_the_rest_is_read(tmp_path):
    path = write_lines(tmp_path / "c.jsonl", claude_session().lines)
    text = path.read_text()
    path.write_text('{"type": "user", "mess\n[1]\n' + text + '{"type": "assistant"')
    *problems, session = sorted(read(path, "claude-code"), key=lambda each: isinstance(each, Session))
    assert [(each.line, each.reason) for each in problems] == [
        (1, "it is no JSON"),
        (2, "it is no JSON object"),
        (8, "it is no JSON"),
    ]
    assert len(session.events) == 5


# ---- calls -----------------------------------------------------------------------------------------


def test_calls_of_a_session_are_joined_and_small_requests_are_apart(tmp_path):
    path = WRITERS["tapes"](tmp_path)
    session, title = read(path)
    assert session.tokens == Tokens(200, 180, 20)
    assert (session.agent, session.project) == ("pi", "/srv/shop")
    assert reason_apart(title) == "automatic"


def test_a_database_of_tapes(tmp_path):
    path = tapes_database(tmp_path)
    assert recognise(path) == "tapes"
    (session,) = read(path)
    assert [type(step).__name__ for step in session.steps] == [
        "Message",
        "Message",
        "ToolCall",
        "Observation",
        "Message",
    ]
    assert (session.tokens, session.end) == (Tokens(100, 0, 10), "finished")


def test_two_conversations_of_one_trace_are_two_sessions(tmp_path):
    lines = [
        {"trace_id": "t", "type": "GENERATION", "start_time": f"2026-11-01T10:00:0{i}Z", "input": text, "output": reply}
        for i, (text, reply) in enumerate([("one", "1"), ("two", "2")])
    ]
    first, second = read(write_lines(tmp_path / "l.jsonl", lines))
    assert [step.text for step in (*first.steps, *second.steps)] == ["one", "1", "two", "2"]
    assert (first.key, second.key) == ("langfuse:t", "langfuse:t/2")


def test_a_parquet_export_of_langsmith(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    path = WRITERS["langsmith"](tmp_path)
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    texts = [{k: json.dumps(v) if isinstance(v, dict | list) else v for k, v in row.items()} for row in rows]
    parquet.write_table(pyarrow.Table.from_pylist(texts), tmp_path / "runs.parquet")
    path.unlink()
    assert [source.format for source in find_sources([tmp_path])] == ["langsmith"]
    (session,) = read(tmp_path / "runs.parquet")
    assert session.steps[-1] == Message(DONE)
    assert session.model == "gpt-test"


def test_a_line_without_messages_is_a_problem(tmp_path):
    path = write_lines(tmp_path / "o.jsonl", [{"messages": [*CHAT, REPLY]}, {"messages": "no"}, {"other": 1}])
    found = read(path, "openai")
    assert [(each.line, each.reason) for each in found if isinstance(each, Problem)] == [
        (2, "it has no list `messages`"),
        (3, "it has no list `messages`"),
    ]


# ---- sources ---------------------------------------------------------------------------------------


def test_files_of_other_kinds_are_left_alone_in_a_folder_and_reported_when_named(tmp_path):
    other = write_lines(tmp_path / "metrics.jsonl", [{"loss": 1.0}])
    (tmp_path / "broken.sqlite").write_bytes(b"SQLite format 3\x00" + b"\xff" * 100)
    assert list(find_sources([tmp_path])) == []
    assert [each.reason for each in find_sources([other])] == ["its format is not known"]
    with pytest.raises(SkillcError, match="no such file"):
        list(find_sources([tmp_path / "missing"]))
    with pytest.raises(SkillcError, match="no format of sessions is called `cursor`"):
        format_named("cursor")


@pytest.mark.parametrize(
    ("value", "time"),
    [
        ("2026-11-01T12:00:00+02:00", "2026-11-01T10:00:00.000Z"),
        ("2026-11-01 10:00:00", "2026-11-01T10:00:00.000Z"),
        (1793527200, "2026-11-01T10:00:00.000Z"),
        (1793527200000, "2026-11-01T10:00:00.000Z"),
        ("1793527200000000000", "2026-11-01T10:00:00.000Z"),
        ("yesterday", None),
        (True, None),
        (None, None),
        (float("inf"), None),
        ("²", None),
    ],
)
def test_times_of_all_forms(value, time):
    assert time_of(value) == time

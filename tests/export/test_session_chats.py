"""Chat examples and pairs from sessions: only those that are certain, agreed on and not held out, with their tools."""

import json
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "sessions"))

from labelled import add_sessions, agent, call, make_store, session, shop_sessions, user

from skillc.cli import skillc
from skillc.errors import SkillcError
from skillc.export.conversation import conversation_of, inferred_schemas
from skillc.export.manifest import read_manifest, write_chats
from skillc.export.session_chats import SessionChats
from skillc.sessions.examples import examples_of
from skillc.sessions.labels import Label, add_labels
from skillc.sessions.session import Event, Session
from skillc.sessions.starting import write_program
from skillc.sessions.store import SessionStore, pack
from skillc.sessions.verdicts import withdraw
from skillc.training.checks import read_training_file
from skillc.trajectories.trajectory import FileChange, Observation, ToolCall

# ---- conversations ---------------------------------------------------------------------------------


def roles(messages):
    return [each["role"] for each in messages]


def test_calls_and_results_are_messages_that_belong_together():
    parallel = [ToolCall("Read", {"path": "a"}), ToolCall("Read", {"path": "b", "lines": 3})]
    steps = ["Fix it.", agent("I look."), *parallel, Observation("A"), Observation("B", True), agent("Done.")]
    made = conversation_of(session("a", *steps, user("Thanks!")))
    assert roles(made.messages) == ["user", "assistant", "tool", "tool", "assistant"]
    said = made.messages[1]
    assert said["content"] == "I look."
    assert [each["function"]["arguments"] for each in said["tool_calls"]] == [
        {"path": "a"},
        {"path": "b", "lines": 3},
    ]
    assert [each["tool_call_id"] for each in made.messages[2:4]] == [each["id"] for each in said["tool_calls"]]
    assert [each["content"] for each in made.messages[2:4]] == ["A", "B"]
    (schema,) = inferred_schemas([made])
    assert schema["function"]["parameters"] == {
        "type": "object",
        "properties": {"path": {"type": "string"}, "lines": {"type": "integer"}},
        "required": ["path"],
    }


@pytest.mark.parametrize(
    "steps",
    [
        ["Go.", ToolCall("Bash", {}), agent("Done.")],
        ["Go.", Observation("stray"), agent("Done.")],
        ["Go.", *call()],
        ["Go."],
        [agent("Hello!"), user("Go.")],
    ],
)
def test_a_session_without_its_results_or_an_answer_is_no_conversation(steps):
    made = conversation_of(session("a", *steps))
    # A session that ends with a call has that call as its last message.
    assert made is None or made.messages[-1].get("tool_calls")


def test_messages_of_one_role_are_joined_and_changed_files_are_none():
    steps = ["One.", user("Two."), agent("A."), FileChange("x", "added", "text"), agent("B.")]
    made = conversation_of(session("a", *steps))
    assert [each["content"] for each in made.messages] == ["One.\n\nTwo.", "A.\n\nB."]


def test_the_system_instructions_are_kept_on_request():
    made = Session(key="a", format="openai", system="Be brief.", events=(Event(user("Go.")), Event(agent("Done."))))
    assert roles(conversation_of(made).messages) == ["user", "assistant"]
    assert conversation_of(made, system=True).messages[0] == {"role": "system", "content": "Be brief."}


def test_whole_turns_up_to_the_first_objection_are_accepted():
    steps = ["Go.", *call(), agent("Done."), user("And the tests."), agent("Run."), user("No, wrong."), agent("Sorry.")]
    made = conversation_of(session("a", *steps))
    accepted = made.accepted()
    assert accepted.messages[-1]["content"] == "Run." or accepted.messages[-1]["content"] == "Done."
    # `Run.` is what the user objected to.
    assert accepted.messages[-1]["content"] == "Done."
    assert conversation_of(session("a", "Go.", agent("Done."), user("No."), agent("So?"))).accepted() is None
    long = conversation_of(session("a", "Go.", agent("Done."), user("More."), agent("word " * 500)))
    assert long.accepted().messages[-1]["content"].startswith("word")
    assert long.accepted(most=100).messages[-1]["content"] == "Done."
    assert long.accepted(most=1) is None


# ---- selection -------------------------------------------------------------------------------------


@pytest.fixture
def shop(tmp_path, monkeypatch):
    """A program from 30 sessions, and its store."""
    monkeypatch.chdir(tmp_path)
    sessions, labels = shop_sessions("{}")
    path = make_store(tmp_path / ".skillc" / "sessions.db", sessions, labels)
    with SessionStore(path) as store:
        write_program("route", examples_of(store, skill="route"), tmp_path)
        yield tmp_path / "route.skill", store


def test_no_session_of_a_held_out_example_is_written(shop):
    program, store = shop
    found = SessionChats(program, store)
    chats = found.sft()
    rows = [json.loads(line) for line in program.with_suffix(".jsonl").read_text().splitlines()]
    by_side = {side: {each.id for each in getattr(found._data, side)} for side in ("train", "validation", "test")}
    side_of = {row["session"]: side for row in rows for side, ids in by_side.items() if row["id"] in ids}
    assert {side_of[key] for key in chats.sessions} == {"train"}
    assert len(chats.rows) == len(by_side["train"]) == chats.splits["train"]
    assert (chats.left_out["of test"], chats.left_out["of validation"]) == (
        len(by_side["test"]),
        len(by_side["validation"]),
    )
    both = SessionChats(program, store, splits=("train", "validation")).sft()
    assert {side_of[key] for key in both.sessions} == {"train", "validation"}


def test_a_session_like_a_held_out_example_or_that_quotes_it_is_left_out(shop):
    program, store = shop
    held = SessionChats(program, store)._data.test[0].inputs["request"]
    # The same with a number more, and the same within a long other text.
    more = [
        session("openai:like", f"{held} 17", "billing"),
        session("openai:quotes", f"{'Something else entirely, at length. ' * 40}\n{held}", "billing"),
        session("openai:new", "Nobody has asked this one thing about umbrellas before.", "billing"),
    ]
    add_sessions(store, more, "more.jsonl")
    add_labels(store, [Label(each.key, "route", "person:ada", "worked", 1.0) for each in more])
    chats = SessionChats(program, store).sft()
    assert "openai:new" in chats.sessions
    assert not {"openai:like", "openai:quotes"} & set(chats.sessions)
    assert chats.splits["no split"] == 1


def test_each_reason_leaves_a_session_out_and_is_counted(shop):
    program, store = shop
    before = SessionChats(program, store).sft()
    names = ("apart", "suspect", "contradicts", "unsure", "failed", "other", "unclear", "person")
    made = {name: session(f"openai:{name}", f"A question of its own about {name} things only.", "ok") for name in names}
    store.add_source(
        program.parent / "apart.jsonl",
        0,
        0,
        [
            pack(made.pop("apart"), "no end", {}),
            pack(made.pop("suspect"), "suspect", {}),
            *(pack(each, None, {}) for each in made.values()),
        ],
    )

    def label(name, outcome="worked", certainty=1.0, source="person:ada", skill="route"):
        return Label(f"openai:{name}", skill, source, outcome, certainty)

    labels = [label(name) for name in ("apart", "suspect")]
    labels += [label("contradicts", source="signal:tests", certainty=0.99)]
    labels += [label("contradicts", "failed", source="judge:j", certainty=0.6)]
    labels += [label("unsure", certainty=0.8), label("failed", "failed"), label("other", skill="write")]
    labels += [label("unclear", "unclear")]
    # A person overrules what contradicts.
    labels += [label("person"), label("person", "failed", source="signal:tests", certainty=0.9)]
    add_labels(store, labels)
    found = SessionChats(program, store)
    chats = found.sft()
    assert set(chats.sessions) - set(before.sessions) == {"openai:person"}
    more = {name: n - before.left_out.get(name, 0) for name, n in chats.left_out.items()}
    assert {name: n for name, n in more.items() if n} == {
        "set apart: no end": 1,
        "set apart: suspect": 1,
        "labels contradict each other": 1,
        "less certain than 0.9": 2,
        "failed": 1,
        "not labelled for `route`": 1,
    }
    assert "openai:unsure" in SessionChats(program, store, certainty=0.8).sft().sessions
    withdraw(store, [chats.sessions[0]], "ada", "a customer asked for it")
    assert chats.sessions[0] not in SessionChats(program, store).sft().sessions


def test_a_row_of_a_session_has_its_tools_and_by_turn_one_message_each(shop):
    program, store = shop
    steps = ["Look into the matter of the green bicycle.", agent("I look."), *call("ls", "a"), agent("Found.")]
    add_sessions(store, [session("openai:tools", *steps)], "tools.jsonl")
    add_labels(store, [Label("openai:tools", "route", "person:ada", "worked", 1.0)])
    found = SessionChats(program, store)
    row = next(row for row in found.sft().rows if "green bicycle" in row["prompt"][0]["content"])
    assert roles(row["completion"]) == ["assistant", "tool", "assistant"]
    assert [each["function"]["name"] for each in row["tools"]] == ["Bash"]
    rows = [row for row in found.sft(by_turn=True).rows if "green bicycle" in row["prompt"][0]["content"]]
    assert [roles(row["prompt"]) for row in rows] == [["user"], ["user", "assistant", "tool"]]
    assert [roles(row["completion"]) for row in rows] == [["assistant"]] * 2


# ---- pairs -----------------------------------------------------------------------------------------


def test_pairs_have_one_request_and_part_at_the_first_message_that_differs(shop):
    program, store = shop
    ask = "Please look into why the green bicycle of customer Ludmilla never arrived in the harbour of Emden"
    right = session("openai:right", ask, agent("I look."), *call("ls", "a"), agent("It is in the depot."))
    wrong = session("openai:wrong", ask, agent("I look."), *call("ls", "a"), agent("No idea."))
    other = session("openai:result", ask, agent("I look."), *call("ls", "b"), agent("No idea."))
    like = session("openai:like", f"{ask} today", agent("Ask somebody else."))
    alone = session("openai:alone", "How many umbrellas are left in the cellar of the old town hall?", agent("None."))
    made = [right, wrong, other, like, alone]
    add_sessions(store, made, "pairs.jsonl")
    add_labels(
        store, [Label(each.key, "route", "person:ada", "worked" if each is right else "failed", 1.0) for each in made]
    )
    chats = SessionChats(program, store).dpo()
    assert len(chats.rows) == 2
    first, second = chats.rows
    assert roles(first["prompt"]) == ["user", "assistant", "tool"]
    assert (first["chosen"][0]["content"], first["rejected"][0]["content"]) == ("It is in the depot.", "No idea.")
    assert roles(second["prompt"]) == ["user"]
    assert second["rejected"] == [{"role": "assistant", "content": "Ask somebody else."}]
    assert set(chats.sessions) == {"openai:right", "openai:wrong", "openai:like"}
    assert chats.left_out["no message where it parts from one that worked"] == 1
    assert any("1 of 2 pairs have a rejected answer to a like request" in each for each in chats.warnings)


def test_an_answer_that_the_user_objected_to_is_never_chosen(shop):
    program, store = shop
    ask = "Please look into why the green bicycle of customer Ludmilla never arrived in the harbour of Emden"
    right = session("openai:right", ask, agent("Billing."), user("No, that's wrong."), agent("Shipping."))
    wrong = session("openai:wrong", ask, agent("Sales."))
    add_sessions(store, [right, wrong], "pairs.jsonl")
    labels = {"openai:right": "worked", "openai:wrong": "failed"}
    add_labels(store, [Label(key, "route", "person:ada", outcome, 1.0) for key, outcome in labels.items()])
    chats = SessionChats(program, store).dpo()
    assert not chats.rows
    with pytest.raises(SkillcError, match="no preference pair to write") as raised:
        write_chats(chats, program.parent / "dpo.jsonl")
    assert "--certainty" in raised.value.hint


# ---- the verb --------------------------------------------------------------------------------------


def test_the_verb_writes_rows_with_a_manifest_that_names_the_sessions(shop, monkeypatch):
    program, store = shop
    monkeypatch.setenv("SKILLC_OFFLINE", "1")

    def export(kind, *more):
        line = ["export", kind, str(program), "--out", f"{kind}.jsonl", *more]
        return CliRunner().invoke(skillc, line, standalone_mode=False)

    done = export("sft", "--from-sessions")
    assert done.exception is None, done.exception
    assert "of train" in done.output
    assert "of test" in done.output
    manifest = read_manifest(program.parent / "sft.jsonl")
    chats = SessionChats(program, store).sft()
    assert manifest["sessions"] == list(chats.sessions)
    assert manifest["left_out"] == dict(chats.left_out)
    assert manifest["source"]["labels"] == "route"
    assert len(manifest["used"]) == 10 * len(chats.sessions)
    for options, said in (
        (["--project", "shop"], "needs `--from-sessions`"),
        (["--from-sessions", "--threshold", "1"], "cannot be used with"),
        (["--from-sessions", "--labels", "nothing"], "no chat example to write"),
        (["--from-sessions", "--split", "test"], "is refused"),
    ):
        refused = export("sft", *options)
        assert isinstance(refused.exception, SkillcError)
        assert said in str(refused.exception)
    assert isinstance(export("dpo", "--from-sessions").exception, SkillcError)
    # A session that is withdrawn after the export is not trained on.
    file = program.parent / "sft.jsonl"
    gone = frozenset({chats.sessions[0]})
    assert read_training_file(file, "sft", ()).manifest == manifest
    with pytest.raises(SkillcError, match="1 session that a person withdrew"):
        read_training_file(file, "sft", (), gone)

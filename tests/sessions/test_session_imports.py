"""From files to the store: what is set apart, what is skipped, and what a second import changes."""

import json
import sqlite3
from dataclasses import replace

import pytest
from click.testing import CliRunner

pytest.importorskip("detect_secrets")
pytest.importorskip("presidio_analyzer")

from session_files import DONE, THANKS, WELCOME, WRITERS, Claude, claude_session, write_lines

from benchmarks.sessions.make import write_sessions
from skillc.cli import skillc
from skillc.errors import SkillcError
from skillc.sessions import importing
from skillc.sessions.audit import REASONS, reason_apart
from skillc.sessions.importing import import_sessions
from skillc.sessions.privacy import Cleaner
from skillc.sessions.session import Event, Session
from skillc.sessions.store import SessionStore
from skillc.trajectories.trajectory import Message, ToolCall

KEY = "ghp_" + "aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0eF3hJ6"


@pytest.fixture(scope="module", autouse=True)
def one_cleaner():
    """Loaded once for all imports of this process."""
    importing._cleaner()


def load(store, *paths, **options):
    return import_sessions(paths, store, workers=1, **options)


@pytest.fixture
def store(tmp_path):
    with SessionStore(tmp_path / ".skillc" / "sessions.db", create=True) as opened:
        yield opened


def reasons(store):
    return {row.key: row.reason for row in store.rows()}


# ---- audit -----------------------------------------------------------------------------------------


def session(*steps, **more):
    return Session("openai:s", "openai", events=tuple(Event(step) for step in steps), **more)


ASK, ANSWER, CALL = Message("fix it", "user"), Message("done"), ToolCall("bash")


@pytest.mark.parametrize(
    ("made", "reason"),
    [
        (session(ASK, ANSWER), None),
        (session(ASK, ANSWER, parent="openai:p"), "sidechain"),
        (replace(session(), events=(Event(ASK, automatic=True), Event(ANSWER))), "automatic"),
        (session(ANSWER), "no start"),
        (session(), "no start"),
        (session(ASK), "empty"),
        (session(ASK, CALL), "no end"),
        (session(ANSWER, ASK, ANSWER), "no start"),
        (session(ASK, ANSWER, continues=True), "no start"),
        (session(ASK, ANSWER, ASK), "no end"),
        (session(ASK, ANSWER, CALL), "no end"),
        (session(ASK, ANSWER, end="failed"), "no end"),
        (session(ASK, ANSWER, end="interrupted"), "no end"),
    ],
)
def test_why_a_session_is_set_apart(made, reason):
    assert reason_apart(made) == reason


# ---- import ----------------------------------------------------------------------------------------


def test_all_formats_in_one_folder(tmp_path, store):
    for write in WRITERS.values():
        write(tmp_path / "in")
    found = load(store, tmp_path / "in")
    assert found.files == len(WRITERS)
    assert found.formats.keys() == WRITERS.keys()
    # The title request of tapes is a session of its own.
    assert store.counts()["automatic"] == 1
    # They tell one conversation, in the words of nine tools.
    assert store.counts()[None] == 1
    assert store.counts()["duplicate"] == len(WRITERS) - 1
    again = load(store, tmp_path / "in")
    assert (again.files, again.known, again.sessions) == (0, len(WRITERS), 0)


def test_copies_and_beginnings_are_set_apart_until_they_grow(tmp_path, store):
    """A resumed session is written anew with all that went before."""
    for name in ("c1", "c2"):
        write_lines(tmp_path / f"{name}.jsonl", claude_session(name).lines)
    longer = claude_session("c3").add("user", THANKS).add("assistant", [{"type": "text", "text": WELCOME}])
    write_lines(tmp_path / "c3.jsonl", longer.lines)
    load(store, tmp_path)
    assert reasons(store) == {
        "claude-code:c1": "beginning",
        "claude-code:c2": "beginning",
        "claude-code:c3": None,
    }
    assert store.find("c1").copy_of == "claude-code:c3"
    grown = claude_session("c2").add("user", "Something else.").add("assistant", [{"type": "text", "text": DONE}])
    write_lines(tmp_path / "c2.jsonl", grown.lines)
    found = load(store, tmp_path)
    assert (found.files, found.known, found.new) == (1, 2, 0)
    assert reasons(store)["claude-code:c2"] is None


def test_nothing_secret_reaches_the_file(tmp_path, store):
    made = Claude().add("user", f"Use {KEY} and mail jo@acme.com.").add("assistant", [{"type": "text", "text": KEY}])
    write_lines(tmp_path / "c.jsonl", made.lines)
    load(store, tmp_path / "c.jsonl")
    whole = store.session(store.find("c1").id)
    assert [step.text for step in whole.steps] == ["Use [github token 1] and mail [email 1].", "[github token 1]"]
    assert store.removed() == {"github token": 1, "email": 1}
    store.close()
    for file in (tmp_path / ".skillc").iterdir():
        assert KEY.encode() not in file.read_bytes()
        assert b"jo@acme" not in file.read_bytes()
    assert (tmp_path / ".skillc" / "sessions.db").stat().st_mode & 0o777 == 0o600


def test_a_failure_in_the_middle_of_a_file_stores_nothing_of_it(tmp_path, store, monkeypatch):
    write_lines(tmp_path / "o.jsonl", [{"messages": [{"role": "user", "content": str(i)}]} for i in range(5)])
    real = importing.prepare
    seen = []

    def failing(session, cleaner):
        seen.append(session)
        if len(seen) == 3:
            raise KeyboardInterrupt
        return real(session, cleaner)

    monkeypatch.setattr(importing, "prepare", failing)
    with pytest.raises(KeyboardInterrupt):
        load(store, tmp_path / "o.jsonl")
    assert store.counts().total() == 0
    monkeypatch.setattr(importing, "prepare", real)
    assert load(store, tmp_path / "o.jsonl").sessions == 5


@pytest.mark.thorough
def test_a_large_file_is_streamed_through_processes_with_the_same_result(tmp_path, store, monkeypatch):
    lines = [
        {
            "id": f"a{i}",
            "messages": [{"role": "user", "content": f"q{i}"}, {"role": "assistant", "content": f"r{i} {KEY}"}],
        }
        for i in range(40)
    ]
    path = write_lines(tmp_path / "o.jsonl", lines)
    monkeypatch.setattr(importing, "LARGE", 1)
    found = import_sessions([path], store, workers=2)
    assert (found.sessions, found.files, store.counts()[None]) == (40, 1, 40)
    assert [row.key for row in store.rows()] == [f"openai:a{i}" for i in range(40)]
    with SessionStore(tmp_path / "other.db", create=True) as plain:
        monkeypatch.setattr(importing, "LARGE", 2**30)
        load(plain, path)
        assert [plain.session(row.id) for row in plain.rows()] == [store.session(row.id) for row in store.rows()]


def test_a_session_comes_back_as_it_was_stored(tmp_path, store):
    for name, write in WRITERS.items():
        path = write(tmp_path / "in")
        read = next(each for each in importing.FORMATS[name].read(path) if isinstance(each, Session))
        clean, _ = Cleaner().session(read)
        load(store, path)
        assert store.session(store.find(read.key).id) == clean


def test_lone_surrogates_and_control_characters_survive(tmp_path, store):
    text = "a\ud800b \x1b[31m \x00 end"
    made = Claude().add("user", text).add("assistant", [{"type": "text", "text": text}])
    write_lines(tmp_path / "c.jsonl", made.lines)
    load(store, tmp_path / "c.jsonl")
    assert store.session(store.find("c1").id).steps[0].text == text


def test_a_file_that_is_no_store_is_refused(tmp_path):
    with pytest.raises(SkillcError, match="no sessions are stored in"):
        SessionStore(tmp_path / "none.db")
    (tmp_path / "text.db").write_text("text, and much more of it than a header has" * 100)
    with pytest.raises(SkillcError, match="can't be used"):
        SessionStore(tmp_path / "text.db", create=True)
    with sqlite3.connect(tmp_path / "later.db") as later:
        later.execute("PRAGMA user_version = 99")
    with pytest.raises(SkillcError, match="no store of sessions of this version"):
        SessionStore(tmp_path / "later.db")


# ---- the verb --------------------------------------------------------------------------------------


def run(*arguments):
    return CliRunner().invoke(skillc, ["sessions", *map(str, arguments)], catch_exceptions=False, standalone_mode=False)


def test_import_list_show_and_report(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    made = claude_session().add("user", f"Use {KEY}.").add("assistant", [{"type": "text", "text": "\x1b[2J ok"}])
    write_lines(tmp_path / "in" / "c.jsonl", made.lines)
    (tmp_path / "in" / "c.jsonl").open("a").write("{broken\n")
    printed = run("import", "in", "--workers", 1).output
    assert "read 1 session of 1 file; 1 are new" in printed
    assert "not read: 1 record" in printed
    assert "in/c.jsonl:8: it is no JSON" in printed
    assert "removed before storing: 1 github token" in printed
    assert "names of people are not looked for" in printed
    listed = run("list").output
    assert "/srv/shop" in listed
    assert "1 session" in listed
    shown = run("show", "1").output
    assert "[user] Use [github token 1]." in shown
    assert "[error] SyntaxError: line 3" in shown
    assert "\x1b" not in shown
    counts = json.loads(run("report", "--json").output)
    assert counts == {
        "format_version": 1,
        "usable": 1,
        "apart": {},
        "removed": {"github token": 1},
        "groups": 1,
        "largest_group": 1,
    }


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["import"], "no sessions are named"),
        (["import", "missing"], "no such file or folder"),
        (["import", ".", "--format", "cursor"], "no format of sessions is called `cursor`"),
        (["import", "--from", "codex"], "no sessions of `codex` are where it keeps them"),
        (["list"], "no sessions are stored"),
        (["show", "7"], "no sessions are stored"),
    ],
)
def test_mistakes_are_messages(tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("CODEX_HOME", raising=False)
    with pytest.raises(SkillcError, match=message):
        run(*arguments)


def test_reasons_are_explained_and_choose_what_is_listed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for write in WRITERS.values():
        write(tmp_path / "in")
    run("import", "in", "--workers", 1)
    rows = json.loads(run("list", "--apart", "automatic", "--json").output)["sessions"]
    assert [row["format"] for row in rows] == ["tapes"]
    assert REASONS["duplicate"].split(" ")[0] in run("report").output
    with pytest.raises(SkillcError, match="no reason is called `bad`"):
        run("list", "--apart", "bad")


def test_the_store_is_the_same_for_any_number_of_processes(tmp_path):
    write_sessions(tmp_path / "in", 0, 60)
    rows = []
    for workers in (1, 2):
        with SessionStore(tmp_path / f"{workers}.db", create=True) as opened:
            found = import_sessions([tmp_path / "in"], opened, workers=workers)
            assert (found.sessions, found.new, found.unreadable) == (60, 60, 0)
            rows.append([tuple(row) for row in opened.execute("SELECT * FROM sessions ORDER BY id")])
    assert rows[0] == rows[1]
    assert len({row[2] for row in rows[0]}) == 6

"""The terminal view for labels, by its keys: what it stores, what it hides, and what it shows of hostile text."""

import asyncio
import sqlite3
import sys
from time import process_time

import pytest
from labelled import add_sessions, agent, call, make_store, session, user
from textual.widgets import Static

from skillc.errors import SkillcError
from skillc.labels.session_text import session_text
from skillc.labels.terminal import LabelApp, Queue
from skillc.labels.view import run_view
from skillc.sessions.labels import Label, labels_of
from skillc.sessions.queue import SEEN, queue_of
from skillc.sessions.store import SessionStore
from skillc.trajectories.trajectory import Observation, ToolCall

SIZES = [(80, 24), (200, 60)]


def press(path, *keys, size=(80, 24), skills=("route", "reply"), look=None, wait=0.0):
    """Open the view, press keys, and return what `look` sees and the number of labels given."""

    async def run():
        with SessionStore(path) as store:
            app = LabelApp(store, queue_of(store, "ada"), skills, "ada")
            async with app.run_test(size=size) as pilot:
                await pilot.pause(wait)
                for key in keys:
                    await pilot.press(key)
                    # Stored by now, also for another process.
                    if key in "wfuz":
                        assert written(path) is not None
                await pilot.pause()
                return (look(app) if look is not None else None), app.given

    return asyncio.run(run())


def written(path):
    """The person's labels, as another connection reads them."""
    with sqlite3.connect(path) as database:
        query = "SELECT session, skill, outcome, note FROM labels WHERE source = 'person:ada' ORDER BY session"
        return database.execute(query).fetchall()


def others(app):
    return str(app.query_one("#others", Static).render())


def shown(app):
    return str(app.query_one("#session", Static).render())


@pytest.fixture
def path(tmp_path):
    made = [
        session("a", "Route the first ticket, please.", agent("billing")),
        session("b", "Write a reply to the second.", *call("pytest", "1 failed", True), agent("Dear customer")),
        session("c", "Find the zebra.", agent("here")),
    ]
    labels = [
        Label("a", "route", "signal:tests", "worked", 0.8),
        Label("b", "reply", "signal:tests", "failed", 0.9, "1 test failed"),
        Label("b", "reply", "signal:next_words", "worked", 0.7),
    ]
    return make_store(tmp_path / "s.db", made, labels)


def test_the_most_useful_sessions_come_first(path):
    with SessionStore(path) as store:
        assert [(each.key, each.state) for each in queue_of(store, "ada")] == [
            ("b", "disputed"),
            ("c", "unlabelled"),
            ("a", "agreed"),
        ]
    press(path, "w")
    with SessionStore(path) as store:
        assert [each.key for each in queue_of(store, "ada")] == ["c", "a", "b"]
        assert next(each.key for each in queue_of(store, "grace")) == "b"


@pytest.mark.parametrize("size", SIZES)
def test_each_decision_is_stored_when_its_key_is_pressed(path, size):
    _, given = press(path, "w", "j", "f", "j", "u", size=size)
    assert given == 3
    assert written(path) == [("a", "route", "unclear", ""), ("b", "reply", "worked", ""), ("c", "", "failed", "")]


def test_a_label_is_on_disk_while_the_view_is_open(path):
    seen, _ = press(path, "w", look=lambda app: written(path))
    assert seen == [("b", "reply", "worked", "")]


def test_what_others_say_is_hidden_until_the_person_has_decided(path):
    before, _ = press(path, look=others)
    assert "hidden" in before
    assert "signal" not in before
    after, _ = press(path, "w", look=others)
    assert "signal:tests failed 90% (1 test failed)" in after
    assert "signal:next_words worked 70%" in after
    assert written(path)[0][3] == ""


def test_a_decision_after_looking_says_so(path):
    seen, _ = press(path, "r", look=others)
    assert "signal:tests failed" in seen
    press(path, "r", "f")
    assert written(path) == [("b", "reply", "failed", f"({SEEN})")]


def test_undo_takes_back_the_last_decision_and_goes_to_it(path):
    at, given = press(path, "w", "j", "f", "z", "z", "z", look=lambda app: app.entry.key)
    assert (at, given, written(path)) == ("b", 0, [])
    press(path, "w")
    press(path, "k", "k", "g", "j", "j", "f", "z")
    assert written(path) == [("b", "reply", "worked", "")]


def test_skill_and_note_are_kept_before_and_after_the_decision(path):
    press(path, "j", "s", "j", "enter", "n", *"odd w", "enter")
    assert written(path) == []
    _, given = press(path, "j", "w")
    assert written(path) == [("c", "route", "worked", "odd w")]
    assert given == 1
    press(path, "j", "j", "s", "k", "enter", "n", "!", "enter")
    assert written(path) == [("c", "", "worked", "odd w!")]
    press(path, "j", "j", "n", "x", "escape")
    assert written(path) == [("c", "", "worked", "odd w!")]


def test_search_goes_to_the_next_match_and_says_if_there_is_none(path):
    async def find(text):
        with SessionStore(path) as store:
            app = LabelApp(store, queue_of(store, "ada"), (), "ada")
            async with app.run_test() as pilot:
                await pilot.press("slash", *text, "enter")
                for _ in range(50):
                    await pilot.pause(0.02)
                    if app._search is None:
                        break
                return app.entry.key, len(app._notifications)

    assert asyncio.run(find("zebra")) == ("c", 0)
    assert asyncio.run(find("FIRST")) == ("a", 0)
    assert asyncio.run(find("nowhere")) == ("b", 1)


def test_help_and_theme_and_quit(path):
    light, _ = press(path, "t", look=lambda app: app.theme)
    assert light == "textual-light"
    stack, _ = press(path, "question_mark", look=lambda app: len(app.screen_stack))
    assert stack == 2
    assert press(path, "question_mark", "q", look=lambda app: len(app.screen_stack))[0] == 1
    assert press(path, "q", "w")[1] == 0


def test_a_session_that_grew_meanwhile_keeps_its_label(path):
    async def run():
        with SessionStore(path) as store:
            app = LabelApp(store, queue_of(store, "ada"), (), "ada")
            async with app.run_test() as pilot:
                with SessionStore(path) as other:
                    add_sessions(other, [session("b", "Write a reply.", agent("Dear"), user("More."), agent("Done"))])
                await pilot.press("j", "k", "w")
                return shown(app)

    assert "More." in asyncio.run(run())
    assert written(path)[0][:3] == ("b", "reply", "worked")


def test_a_store_that_cannot_be_written_is_said_and_changes_nothing(path, monkeypatch):
    def locked(*_):
        raise SkillcError("the store of sessions `s.db` can't be used: database is locked")

    monkeypatch.setattr("skillc.labels.terminal.replace_label", locked)
    seen, given = press(path, "w", look=lambda app: [each.message for each in app._notifications])
    assert seen == ["not saved: the store of sessions `s.db` can't be used: database is locked"]
    assert given == 0


HOSTILE = "[bold]x[/bold] [/] [link=a]b \x1b[31mred\x1b[2J \x07\x00 \u202eover\u2066\u200b \ud800 [email 1]\r\nnext"


@pytest.mark.parametrize("size", SIZES)
def test_hostile_text_is_shown_as_text(tmp_path, size):
    # SQLite takes no lone surrogate in a name.
    name = HOSTILE.replace("\ud800", "")
    made = [session(name, HOSTILE, *call(HOSTILE, HOSTILE), agent(HOSTILE), project=name)]
    path = make_store(tmp_path / "s.db", made, [Label(name, name, "signal:" + name, "worked", 0.5, name)])
    text, given = press(path, "w", "s", "escape", "slash", "[", "escape", size=size, look=shown, wait=0.1)
    assert given == 1
    assert "[bold]x[/bold]" in text
    assert not set("\x1b\x07\x00\u202e\u2066\u200b\ud800") & set(text)


def test_marks_findings_and_results():
    made = session(
        "a", "Mail [email 1] now", ToolCall("Read", {"p": "x" * 500}), Observation("a\nb\nc\nd\nignore   all\nf")
    )
    findings = {2: [("instruction", "ignore all")], 0: [("instruction", "Mail [email 1]")]}
    folded = session_text(made, findings)
    assert "340 characters more" not in folded.plain
    assert "characters more" in folded.plain
    assert "ignore   all" not in folded.plain
    assert "finding: instruction: ignore all" in folded.plain
    unfolded = session_text(made, findings, unfolded=True)
    spans = {unfolded.plain[span.start : span.end]: span.style for span in unfolded.spans}
    assert spans["[email 1]"] == "magenta"
    assert spans["ignore   all"] == "bold red reverse"
    assert spans["Mail [email 1]"] == "bold red reverse"


def test_a_megabyte_and_thousands_of_steps_stay_small():
    big = session(
        "a", "Go.", *call("x", "y" * 1_000_000), *(each for i in range(3_000) for each in call(f"{i}", "ok\n" * 99))
    )
    start = process_time()
    folded = session_text(big, {})
    assert process_time() - start < 1
    assert len(folded.plain) < 60_000
    assert "999,000 characters more" in folded.plain
    assert "5,763 steps left out" in folded.plain
    assert len(session_text(big, {}, unfolded=True).plain) < 500_000


def test_two_thousand_sessions_open_in_a_second(tmp_path):
    made = [session(f"s{i:04}", f"Request {i}.", *call("x", "y" * 1_000), agent("ok")) for i in range(2_000)]
    path = make_store(tmp_path / "s.db", made, [(f"s{i:04}", "", "worked") for i in range(0, 2_000, 3)])
    start = process_time()
    lines, _ = press(path, "w", look=lambda app: len(app.query_one(Queue).on_screen()))
    # Of the processor: the machine may have other work.
    assert process_time() - start < 1.5
    assert lines < 24


def test_without_colours_the_cursor_is_a_sign(path, monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")

    def line(app):
        queue = app.query_one(Queue)
        return queue.render_line(0).text, queue.render_line(1).text

    (first, second), _ = press(path, "w", look=line, wait=0.3)
    assert first.startswith(">w Write a reply")
    assert second.startswith(" · Find the zebra")


def test_without_textual_the_extra_is_named(path, monkeypatch):
    for name in [
        name for name in sys.modules if name.partition(".")[0] == "textual" or name == "skillc.labels.terminal"
    ]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "textual", None)
    with SessionStore(path) as store, pytest.raises(SkillcError, match="needs textual") as raised:
        run_view(store, (), "ada")
    assert raised.value.hint == 'pip install "skillc[label]"'


def test_a_view_without_a_terminal_or_sessions_is_refused(path, tmp_path):
    with SessionStore(path) as store, pytest.raises(SkillcError, match="needs a terminal"):
        run_view(store, (), "ada")
    with SessionStore(tmp_path / "e.db", create=True) as store:
        with pytest.raises(SkillcError, match="no usable session") as raised:
            run_view(store, (), "ada")
        assert "skillc sessions import" in raised.value.hint
        assert not list(labels_of(store))

"""Showing prompts, reading replies, and the server that waits for them."""

from __future__ import annotations

import http.client
import json
import threading
import time

import pytest

from benchmarks.by_hand import calls
from benchmarks.by_hand.__main__ import main
from benchmarks.by_hand.server import Folder, Server

CHAT = """===== system =====
Skill {skill}

===== user =====
[[ ## request ## ]]
{request}

Respond with the corresponding output fields, starting with the field `[[ ## code ## ]]` (must be formatted as a valid \
Python Literal['K4', 'W1']), and then ending with the marker for `[[ ## completed ## ]]`."""


@pytest.fixture
def folder(tmp_path):
    for number, (skill, request) in enumerate((("A", "a map"), ("B", "a film"), ("A", "a book")), start=1):
        (tmp_path / f"{number:04}.prompt.md").write_text(CHAT.format(skill=skill, request=request), encoding="utf-8")
    (tmp_path / "0004.prompt.md").write_text("===== user =====\nReply with JSON.", encoding="utf-8")
    return tmp_path


def reply(folder, number):
    return (folder / f"{number:04}.reply.md").read_text(encoding="utf-8")


def test_pending_shows_each_shared_part_once(folder):
    text = "\n".join(calls.show(calls.waiting(folder), 30))
    assert text.startswith("4 waiting")
    assert text.count("Skill A") == text.count("Skill B") == 1
    assert text.index("a map") < text.index("a book") < text.index("a film")
    assert text.count("Respond with the corresponding") == 2


def test_a_known_shared_part_is_not_shown_again(folder):
    text = "\n".join(calls.show(calls.waiting(folder), 30))
    name = text.split("######## SHARED ")[1][:6]
    again = "\n".join(calls.show(calls.waiting(folder), 30, [name]))
    assert "Skill A" not in again
    assert "a map" in again and "Skill B" in again


def test_pending_shows_at_most_the_asked_number(folder):
    text = "\n".join(calls.show(calls.waiting(folder), 2))
    assert text.startswith("4 waiting, the first 2 follow")
    assert "a book" not in text


def test_a_short_reply_becomes_a_whole_one(folder):
    answered, problems = calls.answer(folder, "0001: K4\n 3 : W1\n")
    assert (answered, problems) == ([1, 3], [])
    assert reply(folder, 1) == "[[ ## code ## ]]\nK4\n\n[[ ## completed ## ]]\n"


def test_blocks_take_any_text_beside_short_replies(folder):
    answered, problems = calls.answer(folder, '0002: K4\n@@@ 0004\n{"a":\n\n1}\n')
    assert (answered, problems) == ([2, 4], [])
    assert reply(folder, 4) == '{"a":\n\n1}\n'


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("0001: K5", "`K5` is not a label; write one of K4, W1"),
        ("0009: K4", "0009 is not waiting"),
        ("0004: K4", "0004 needs a whole reply: write `@@@ 0004` and the text"),
        ("K4", "`K4` is neither `NNNN: value` nor in a block `@@@ NNNN`"),
        ("@@@ 0004\n\n", "0004 has an empty reply"),
        ("0001: K4\n0001: W1", "0001 has two replies, the first is taken"),
    ],
)
def test_what_is_no_reply_is_named(folder, text, problem):
    assert problem in " ".join(calls.answer(folder, text)[1])


def test_another_field_is_refused(folder):
    assert calls.answer(folder, "0001: K4", field="mark")[1] == ["0001 asks for `code`, not `mark`"]


def test_an_answered_call_is_not_answered_again(folder):
    calls.answer(folder, "0001: K4")
    assert calls.answer(folder, "0001: W1") == ([], ["0001 is not waiting"])


def test_wait_ends_when_prompts_wait_or_the_run_is_done(folder, tmp_path):
    assert calls.wait(folder, 10) == "4 waiting"
    calls.answer(folder, "0001: K4\n0002: K4\n0003: K4\n@@@ 0004\nx\n")
    assert calls.wait(folder, 0.1) == "nothing yet"
    (folder / calls.DONE).touch()
    assert calls.wait(folder, 10) == "finished"


def test_the_command_line_answers(folder, monkeypatch, capsys):
    monkeypatch.setattr("sys.stdin", __import__("io").StringIO("0001: K4\n0002: no\n"))
    assert main(["answer", str(folder)]) == 1
    assert "answered 1, 3 still wait 0002 0003 0004" in capsys.readouterr().out


def asked(server, text, replies, *, timeout=30):
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=timeout)
    body = json.dumps({"model": "person", "messages": [{"role": "user", "content": text}]})
    connection.request("POST", "/v1/chat/completions", body)
    try:
        replies[text] = json.loads(connection.getresponse().read())["choices"][0]["message"]["content"]
    except TimeoutError:
        connection.close()


@pytest.fixture
def server(tmp_path):
    server = Server(Folder(tmp_path)).start()
    yield server
    server.shutdown()
    server.server_close()


def until(true):
    end = time.monotonic() + 20
    while not true():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_a_hundred_calls_wait_at_once_and_are_numbered_as_they_came(server, tmp_path):
    replies = {}
    threads = []
    for number in range(100):
        threads.append(threading.Thread(target=asked, args=(server, f"prompt {number}", replies)))
        threads[-1].start()
        if number < 5:
            until(lambda number=number: (tmp_path / f"{number + 1:04}.prompt.md").exists())
            assert f"prompt {number}" in (tmp_path / f"{number + 1:04}.prompt.md").read_text()
    until(lambda: len(calls.waiting(tmp_path)) == 100)
    text = "".join(f"@@@ {call.number}\nto {call.prompt.splitlines()[-1]}\n" for call in calls.waiting(tmp_path))
    calls.answer(tmp_path, text)
    for thread in threads:
        thread.join()
    assert replies == {f"prompt {number}": f"to prompt {number}" for number in range(100)}


def test_a_prompt_that_is_sent_again_keeps_its_number_and_its_reply(server, tmp_path):
    replies = {}
    asked(server, "slow", replies, timeout=0.5)
    assert not replies
    time.sleep(0.5)
    calls.answer(tmp_path, "@@@ 1\nlate\n")
    asked(server, "slow", replies)
    assert replies == {"slow": "late"}
    assert len(list(tmp_path.glob("*.prompt.md"))) == 1


def test_a_restarted_server_goes_on_in_its_folder(tmp_path):
    (tmp_path / "0007.prompt.md").write_text("===== user =====\nopen")
    (tmp_path / "0007.reply.md").write_text("known\n")
    server, replies = Server(Folder(tmp_path)).start(), {}
    try:
        asked(server, "open", replies)
        assert replies == {"open": "known"}
        threading.Thread(target=asked, args=(server, "new", replies), daemon=True).start()
        until(lambda: (tmp_path / "0008.prompt.md").exists())
        calls.answer(tmp_path, "@@@ 8\nx\n")
        until(lambda: "new" in replies)
    finally:
        server.shutdown()
        server.server_close()


def test_a_try_of_the_model_is_answered_at_once(server, tmp_path):
    replies = {}
    asked(server, "Reply with the word ok.", replies)
    assert replies == {"Reply with the word ok.": "ok"}
    assert not calls.waiting(tmp_path)


def test_reuse_answers_what_was_answered_before(tmp_path):
    (tmp_path / "0001.prompt.md").write_text("===== user =====\nagain")
    (tmp_path / "0001.reply.md").write_text("known\n")
    (tmp_path / "calls.jsonl").write_text('{"call": 1}\n')
    server, replies = Server(Folder(tmp_path, reuse=True)).start(), {}
    try:
        asked(server, "again", replies)
        asked(server, "again", replies)
        assert replies == {"again": "known"}
        assert len(list(tmp_path.glob("*.prompt.md"))) == 1
    finally:
        server.shutdown()
        server.server_close()


def test_run_without_a_command_is_refused(tmp_path, capsys):
    assert main(["run", str(tmp_path)]) == 2
    assert capsys.readouterr().err == "no command is given: write it after `--`\n"

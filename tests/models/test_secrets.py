"""A key is in no file, no text and no log, whatever the server makes of it."""

from __future__ import annotations

import asyncio
import base64
import json
import logging
import os
import subprocess
from pathlib import Path
from urllib.parse import quote, quote_plus

import pytest
from faulty_server import Asked, Exchange, FaultyServer, Step, answer, cut_off, redirect, refuse, say
from forked import command
from hypothesis import given
from hypothesis import strategies as st
from model_plans import Scripted, endpoint_of, model, plan_of, reply
from whole_compiles import Nursery, Storm, compile_in, shop, well
from wire_calls import PROTOCOLS, ask, through_litellm  # noqa: F401 - for all tests here

from skillc.errors import SkillcError
from skillc.models.calls import Call, Message
from skillc.models.client import Client
from skillc.models.endpoint import normalised, secrets_of
from skillc.models.failures import PermanentFailure, scrub
from skillc.plan.digest import plan_digest, redact_address, run_parts
from skillc.redaction import NOTHING, Redactor, Secret

KEY = "sk-planted-0123456789abcdef"
# Characters that addresses and base64 write otherwise.
ODD = "planted/key+0123456789=abcdef"
USER, PASSWORD, SIGN = "operator", "pa55/w+rd=planted", "t0ken-planted-in-query"


def forms(secret: str) -> set[bytes]:
    """A secret in all codings that it may be met in, and the halves of it that give most of it away."""
    plain = secret.encode()
    coded = {base64.b64encode(text) for text in (plain, plain + b"\n")} | {base64.urlsafe_b64encode(plain)}
    coded |= {base64.b64encode(f"{USER}:{secret}".encode())}
    texts = {plain, quote(secret, safe="").encode(), quote_plus(secret).encode(), repr(secret)[1:-1].encode()}
    return texts | {text.rstrip(b"=") for text in coded} | {plain[: len(plain) * 2 // 3], plain[len(plain) // 3 :]}


def nowhere(folder: Path, *secrets: str) -> None:
    """No file under a folder holds a secret, the program and its data excepted; and there are files."""
    files = [file for file in folder.rglob("*") if file.is_file() and file.suffix not in (".skill", ".jsonl.in")]
    assert len(files) > 2
    for file in files:
        raw = file.read_bytes()
        for secret in secrets:
            for form in forms(secret):
                assert form not in raw, (file, form)


def hidden(secret: str) -> Redactor:
    """What redacts one secret."""
    return Redactor([Secret("KEY", secret)])


def told_all(asked: Asked) -> str:
    """An error text with all that a careless server can say about who asked."""
    given = [asked.headers.get(name, "") for name in ("authorization", "x-api-key", "api-key", "host")]
    keys = [text.removeprefix("Bearer ").removeprefix("Basic ") for text in given if text]
    coded = [f(key) for key in keys for f in (_base64, quote_plus, lambda key: quote(key, safe=""))]
    partly = [f"{key[:8]}{'*' * 12}{key[-4:]}" for key in keys]
    return f"not so: {given} {coded} {partly} {asked.path} {json.dumps(dict(asked.headers))}"


def _base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def echoing(status: int) -> Step:
    """An error that repeats the key."""

    async def step(exchange: Exchange) -> None:
        await refuse(status, told_all(exchange.asked))(exchange)

    return step


async def echoed_page(exchange: Exchange) -> None:
    """A page in place of a reply that repeats the key."""
    await answer(200, f"<html>{told_all(exchange.asked)}</html>", "text/html")(exchange)


async def echoed_json(exchange: Exchange) -> None:
    """JSON that is no reply and repeats the key."""
    await answer(200, json.dumps({"error": {"message": told_all(exchange.asked)}}))(exchange)


CURED = {
    "429": echoing(429),
    "500": echoing(500),
    "503": echoing(503),
    "a page": echoed_page,
    "an error with 200": echoed_json,
    "half a body": cut_off(),
}


@pytest.fixture(scope="module")
def nursery() -> Nursery:
    return Nursery()


def with_signs(server: FaultyServer, protocol: str) -> str:
    """The server's address with user and password in it."""
    url = server.root if protocol == "anthropic" else server.url
    return url.replace("http://", f"http://{USER}:{quote(PASSWORD, safe='')}@")


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.thorough
def test_a_whole_compile_with_failures_of_all_kinds_leaves_no_secret(
    nursery: Nursery, tmp_path: Path, protocol: str
) -> None:
    folder = shop(tmp_path / "things", protocol)
    storm = Storm(CURED, share=0.2, most=1)
    with FaultyServer(storm) as server:
        url = with_signs(server, protocol)
        assert compile_in(nursery, folder, url, ODD, "--json") == 0, (folder / "stderr.txt").read_text()
        assert set(storm.struck) == set(CURED)
        signed = f"Basic {_base64(f'{USER}:{PASSWORD}')}"
        assert {asked.headers["authorization"] for asked in server.asked} == {signed}
        nowhere(folder, ODD, PASSWORD)
        # The same program with a permanent failure in the middle, and with one that never ends: all that is told.
        for status, step in ((2, echoing(403)), (2, echoing(400))):
            before = server.total

            def failing(asked: Asked, step: Step = step, before: int = before) -> Step:
                return step if server.total > before + 12 else well(asked)

            server.script = failing
            assert compile_in(nursery, folder, url, ODD, "--fresh") == status
            told = (folder / "stderr.txt").read_text()
            assert "not so:" in told
            assert "[secret SERVER]" in told
            assert f"`http://127.0.0.1:{server.port}" in told
            nowhere(folder, ODD, PASSWORD)


def test_failures_that_stay_and_a_preflight_that_fails_tell_no_secret(nursery: Nursery, tmp_path: Path) -> None:
    folder = shop(tmp_path / "things")
    steps: dict[str, Step] = {
        "key": echoing(401),
        "page": echoed_page,
        "moved": redirect(f"http://x:{ODD}@127.0.0.1/?k={ODD}"),
    }
    with FaultyServer(well) as server:
        url = with_signs(server, "openai")
        for step in steps.values():
            server.script = lambda asked, step=step: step  # type: ignore[misc]
            assert compile_in(nursery, folder, url, ODD) == 2
            assert "cannot be used" in (folder / "stderr.txt").read_text()
            nowhere(folder, ODD, PASSWORD)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_logs_of_the_libraries_tell_no_secret(
    protocol: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    """With all that Python logs on, as a program that embeds skillc may have it."""
    caplog.set_level(logging.DEBUG)
    steps = [say("ok"), echoing(500), echoed_page, say(""), echoing(401)]
    with FaultyServer(steps) as server:
        for _ in range(4):
            found = ask(server, monkeypatch, protocol, url=with_signs(server, protocol), attempts=1)
            assert KEY not in str(found.failed)
    out, err = capsys.readouterr()
    told = (caplog.text + out + err + "".join(str(record.__dict__) for record in caplog.records)).encode()
    for secret in (KEY, PASSWORD):
        for form in forms(secret):
            assert form not in told


def test_the_plan_shows_no_password_of_an_address(tmp_path: Path) -> None:
    folder = shop(tmp_path / "things")
    program = (folder / "things.skill").read_text()
    address = f"http://{USER}:{quote(PASSWORD, safe='')}@127.0.0.1:9/v1?sign={SIGN}"
    (folder / "things.skill").write_text(program.replace('env("SERVER")', f'"{address}"'))
    for more in ((), ("--json",)):
        done = subprocess.run(
            [*command(), "plan", "things.skill", *more],
            cwd=folder,
            env={**os.environ, "TEAM_KEY": KEY},
            capture_output=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert b"http://127.0.0.1:9/v1" in done.stdout
        for secret in (PASSWORD, SIGN, KEY):
            for form in forms(secret):
                assert form not in done.stdout + done.stderr


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("http://u:p@host:8000/v1?key=x#y", "http://host:8000/v1"),
        ("http://u@host/v1?api-version=2&sig=x", "http://host/v1?api-version=2"),
        ("http://host:8000/v1/", "http://host:8000/v1/"),
        ("u:p@host/v1", "host/v1"),
        ("localhost:8000", "localhost:8000"),
        ("https://host/a@b", "https://host/a@b"),
        ("http://[::1/v1?key=x", "***"),
    ],
)
def test_an_address_is_shown_without_its_secrets(url: str, shown: str) -> None:
    assert redact_address(url) == shown


def test_a_password_in_an_address_is_no_part_of_what_names_a_run() -> None:
    def digests(url: str) -> tuple[str, dict[str, str]]:
        plan = plan_of(model(base_url=url))
        return plan_digest(plan), run_parts(plan, "", "", {}, "")

    assert digests("http://u:old@host/v1") == digests("http://u:new@host/v1") == digests("http://host/v1")
    assert digests("http://other/v1") != digests("http://host/v1")


@given(st.text(min_size=6, max_size=40).filter(lambda text: text.strip() == text and " ".join(text.split()) == text))
def test_a_secret_of_any_letters_is_hidden_in_each_coding(secret: str) -> None:
    told = scrub(f"<{secret}> <{quote(secret, safe='')}> <{quote_plus(secret)}> <{_base64(secret)}>", hidden(secret))
    assert told.count("[secret KEY]") >= 1
    for form in (secret, quote(secret, safe=""), _base64(secret)):
        assert f"<{form}>" not in told


class AuthenticationError(Exception):
    status_code = 401


def test_a_planted_key_is_in_no_file_no_text_and_no_traceback(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEAM_KEY", KEY)
    answers = [reply(), AuthenticationError(f"Incorrect API key provided: {KEY}")]
    transport = Scripted(lambda sent: answers.pop(0))
    client = Client(plan_of(model(key_env="TEAM_KEY")), cache_folder=tmp_path / "cache", transport=transport)
    asyncio.run(client.complete(Call("target", "rollout", (Message("user", "hello"),))))
    with pytest.raises(PermanentFailure) as failed:
        asyncio.run(client.complete(Call("target", "rollout", (Message("user", "again"),))))
    client.close()
    assert transport.sent[0]["api_key"] == KEY
    import traceback

    told = "".join(traceback.format_exception(failed.value)) + repr(client.roles) + str(client.ledger.snapshot())
    assert KEY not in told
    assert "`TEAM_KEY`" in str(failed.value.hint)
    files = [file for file in tmp_path.rglob("*") if file.is_file()]
    assert files
    for file in files:
        assert KEY.encode() not in file.read_bytes()


def test_scrub_hides_what_looks_like_a_secret() -> None:
    text = "bad key sk-abcdef123456 at https://user:pass@host/x?key=SECRET1 with Bearer abc.def"
    told = scrub(text, hidden("host-secret"))
    for secret in ("abcdef123456", "user:pass", "SECRET1", "abc.def"):
        assert secret not in told
    assert len(scrub("x" * 9999, NOTHING)) <= 501


@pytest.mark.parametrize(
    ("url", "same"),
    [
        ("HTTP://Host:80/v1/", "http://host/v1"),
        ("https://host:443", "https://host"),
        ("http://u:p@host:8000/v1?key=x#y", "http://host:8000/v1"),
        ("localhost:8000/v1", "http://localhost:8000/v1"),
        ("http://[::1]:8000", "http://[::1]:8000"),
    ],
)
def test_addresses_have_one_spelling_without_secrets(url: str, same: str) -> None:
    assert normalised(url, "`base_url`") == same


def test_an_address_that_is_none_is_said_so() -> None:
    with pytest.raises(SkillcError, match="`base_url` of model `target` is not an address"):
        endpoint_of(model(base_url="http://[::1/v1"), {})


def test_what_an_address_holds_is_a_secret_with_and_without_a_scheme() -> None:
    for url in ("http://u:p%2Fw@host/v1?key=x", "u:p%2Fw@host/v1?key=x"):
        declared = model(base_url=url)
        found = secrets_of(declared, endpoint_of(declared, {}), {})
        assert {secret.value for secret in found if secret.value} == {"u:p/w", "p/w", "x"}


def test_an_address_that_litellm_would_take_from_the_environment_is_part_of_the_key() -> None:
    own = endpoint_of(model(base_url=None), {"OPENAI_API_KEY": "k"})
    other = endpoint_of(model(base_url=None), {"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": "http://proxy/v1"})
    assert own.id == "openai"
    assert other.id == "http://proxy/v1"
    assert "k'" not in repr(own)

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from model_plans import Scripted, model, plan_of, reply

from skillc.models.calls import Call, Message
from skillc.models.client import Client
from skillc.models.endpoint import endpoint_of, normalised
from skillc.models.failures import PermanentFailure, scrub

KEY = "sk-planted-0123456789abcdef"


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
    told = scrub(text, ["host-secret"])
    for secret in ("abcdef123456", "user:pass", "SECRET1", "abc.def"):
        assert secret not in told
    assert len(scrub("x" * 9999, [])) <= 501


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
    assert normalised(url) == same


def test_an_address_that_litellm_would_take_from_the_environment_is_part_of_the_key() -> None:
    own = endpoint_of(model(base_url=None), {"OPENAI_API_KEY": "k"})
    other = endpoint_of(model(base_url=None), {"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": "http://proxy/v1"})
    assert own.id == "openai"
    assert other.id == "http://proxy/v1"
    assert "k'" not in repr(own)

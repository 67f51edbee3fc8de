"""What is removed from sessions before they are stored, and what is not."""

import random
import string

import pytest

pytest.importorskip("detect_secrets")
pytest.importorskip("presidio_analyzer")

from session_files import CHAT, REPLY

from skillc.sessions.privacy import Cleaner
from skillc.sessions.readers.calls import ModelCall, sessions_of_calls


@pytest.fixture(scope="module")
def cleaner():
    return Cleaner()


def chars(count, alphabet=string.ascii_letters + string.digits, seed=7):
    return "".join(random.Random(seed).choices(alphabet, k=count))


PLANTED = {
    "aws access key": "AKIAIOSFODNN7EXAMPLE",
    "github token": "ghp_" + chars(36),
    "api key": "sk-ant-api03-" + chars(80),
    "slack token": "xoxb-123456789012-1234567890123-" + chars(24),
    "stripe access key": "sk_" + "live_" + chars(24),
    "json web token": "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0." + chars(43),
    "private key": "-----BEGIN OPENSSH PRIVATE KEY-----\n" + chars(60) + "\n-----END OPENSSH PRIVATE KEY-----",
    "email": "jo.bloggs+shop@acme.co.uk",
    "phone number": "+44 20 7946 0958",
    "payment card": "4111 1111 1111 1111",
    "bank account": "DE89370400440532013000",
    "social security number": "536-22-1234",
    "IP address": "8.8.4.4",
}


@pytest.mark.parametrize("kind", PLANTED)
def test_each_kind_is_removed_and_named(cleaner, kind):
    value = PLANTED[kind]
    found = cleaner.text(f"It said: {value}\nand went on.")
    assert value not in found
    assert "It said: [" in found
    assert found.endswith("and went on.")
    assert not any(line and line in found for line in value.split("\n")[1:-1])


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("DB_PASSWORD=s3cr3tP4ss\n", "s3cr3tP4ss"),
        ('"api_key": "abc123def456"', "abc123def456"),
        ("postgres://shop:hunter22@db.internal/x", "hunter22"),
        ("token: " + chars(40), chars(40)),
        ("Authorization: Bearer " + chars(40), chars(40)),
    ],
)
def test_passwords_are_removed_where_a_keyword_or_an_address_has_them(cleaner, text, value):
    assert value not in cleaner.text(text)


@pytest.mark.parametrize(
    "text",
    [
        "commit 8f14e45fceea167a5a36dedd4bea2543e1c8b0aa on 2026-11-23 at 17:21:49",
        "git@github.com:acme/shop.git and someone@example.com",
        "the password is required. token = os.environ['TOKEN'], secrets: Iterable[Secret] = ()",
        '"api_key": "{{ key }}" and password=$DB_PASSWORD',
        "tests/models/test_repeated_secrets.py::test_a_key_of_every_form took 12345678 ms",
        "127.0.0.1, 192.168.1.4 and version 1.2.3.4.5",
        "def double(n): return 2 * n  # 3.14159265358979",
        "/usr/share/python3/runpy.py and https://docs.python.org/3/library/re.html",
        "f47ac10b-58cc-4372-a567-0e02b2c3d479",
    ],
)
def test_what_looks_like_it_and_is_not_stays(cleaner, text):
    assert cleaner.text(text) == text


def test_equal_values_of_a_session_have_one_mark_and_others_another(cleaner):
    ask = "Mail a@acme.com and b@acme.com, then a@acme.com again; the log is in /home/carol/log."
    call = ModelCall([{"role": "user", "content": ask}], [REPLY], project="/home/carol/shop")
    (session,) = sessions_of_calls("s", [call], format="openai", source="/home/carol/x.jsonl")
    clean, removed = cleaner.session(session)
    assert clean.steps[0].text == (
        "Mail [email 1] and [email 2], then [email 1] again; the log is in /home/[user name 1]/log."
    )
    assert (clean.project, clean.source) == ("/home/[user name 1]/shop", "/home/[user name 1]/x.jsonl")
    assert removed == {"email": 2, "user name": 1}


def test_arguments_of_tools_and_system_instructions_are_cleaned(cleaner):
    secret = PLANTED["github token"]
    made = [dict(message) for message in CHAT]
    made[0]["content"] = f"Use {secret}."
    made[2]["tool_calls"] = [{"function": {"name": "bash", "arguments": f'{{"command": "curl -H {secret}"}}'}}]
    (session,) = sessions_of_calls("s", [ModelCall(made, [REPLY])], format="openai", source="x")
    clean, _ = cleaner.session(session)
    assert secret not in repr(clean)


def test_lines_far_apart_keep_their_places(cleaner):
    lines = [f"line {i} of a long text without anything" for i in range(300)]
    lines[7] = lines[250] = "mail x@acme.com"
    found = cleaner.text("\n".join(lines)).split("\n")
    assert [i for i, line in enumerate(found) if line != lines[i]] == [7, 250]
    assert {found[7], found[250]} == {"mail [email 1]"}


def test_hostile_texts_are_cleaned_in_time(cleaner):
    for text in ("a@" * 20_000, "1 " * 20_000, "token=" * 5_000, "=" * 50_000, "-----BEGIN PRIVATE KEY-----" * 500):
        cleaner.text(text)


@pytest.mark.parametrize(
    ("text", "hidden"),
    [
        ("2026-11-03 10:14:22 INFO called +49 30 1234567 back", ["+49 30 1234567"]),
        ("2026-11-03T10:14:22Z from 8.8.8.8", ["8.8.8.8"]),
        ("at 10:14:22 from 2a00:1450:4001:81b::200e", ["2a00:1450:4001:81b::200e"]),
        ("2026-11-03 card 4111 1111 1111 1111", ["4111 1111 1111 1111"]),
        ("2026-11-03T10:14:22.120Z INFO 3 of 12 rows in 2026/11/03", []),
    ],
)
def test_numbers_behind_the_date_of_a_line_are_found_and_the_date_is_kept(cleaner, text, hidden):
    clean = cleaner.text(text)
    assert not [each for each in hidden if each in clean]
    assert clean.startswith(text[:10])
    assert hidden or clean == text

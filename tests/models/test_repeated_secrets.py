"""What a model or a command prints of a declared secret is redacted before anything keeps, shows or sends it."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import sys
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from faulty_server import Asked, FaultyServer, Step, say
from model_plans import Scripted, model, plan_of, reply
from secret_forms import FORMS, WITHIN, nowhere, repeating, texts_under
from whole_compiles import compiled, messages_of, shop, skillc, well
from wire_calls import PROTOCOLS, ask, through_litellm  # noqa: F401 - for all tests here

from skillc.errors import SkillcError
from skillc.language.commands import split_command
from skillc.models.attempts import read_reply
from skillc.models.calls import Call, Completion, Message
from skillc.models.client import Client
from skillc.models.failures import CallFailed
from skillc.models.pace import RetryPolicy
from skillc.models.rulebook import answer as rulebook_answer
from skillc.plan.schema import ExecPlan, ModelPlan, PacingPlan
from skillc.redaction import NOTHING, Redactor, Secret

# Characters that JSON, addresses and base64 write otherwise.
KEY = 'planted/key+0123"456789=abcdef'
PASSWORD = "pa55/w+rd=planted"
MARK = "[secret TEAM_KEY]"
ALL = "\n".join(form(KEY) for form in (*FORMS.values(), *WITHIN.values()))
TESTS = Path(__file__).resolve().parents[1]
QUESTION = Call("target", "rollout", (Message("user", "hello"),))

_FUNCTION = """
from pathlib import Path

from secret_forms import repeating
from skillc.models.rulebook import answer as rulebook

HERE = Path(__file__).parent


def answer(messages, model, parameters):
    with (HERE / "prompts.txt").open("a") as file:
        print(messages, file=file)
    return repeating(rulebook(messages, parameters), parameters["api_key"])
"""


def _compile(folder: Path, url: str, key: str, *arguments: str) -> str:
    """Compile and return all that it printed."""
    done = skillc(
        "compile", "things.skill", *arguments, folder=folder, env={**os.environ, "SERVER": url, "TEAM_KEY": key}
    )
    assert done.returncode == 0, done.stderr
    return str(done.stdout + done.stderr)


def test_a_whole_compile_with_a_function_that_repeats_its_key_leaves_no_secret(tmp_path: Path) -> None:
    folder = shop(tmp_path / "things")
    program = (folder / "things.skill").read_text()
    (folder / "things.skill").write_text(
        program.replace('base_url = env("SERVER")', 'backend = python("answers:answer")').replace("openai/", "mine/")
    )
    (folder / "answers.py").write_text(_FUNCTION)
    _compile_and_resume(folder, "", lambda: (folder / "prompts.txt").read_text())


@pytest.mark.parametrize("protocol", ["openai", "anthropic"])
@pytest.mark.thorough
def test_a_whole_compile_with_a_server_that_repeats_the_key_leaves_no_secret(tmp_path: Path, protocol: str) -> None:
    prompts: list[str] = []

    def script(asked: Asked) -> Step:
        prompts.append(str(messages_of(asked)))
        return say(repeating(rulebook_answer(messages_of(asked), {}), KEY), model="stub")

    with FaultyServer(script) as server:
        url = server.root if protocol == "anthropic" else server.url
        _compile_and_resume(shop(tmp_path / "things", protocol), url, lambda: "\n".join(prompts))


def _compile_and_resume(folder: Path, url: str, prompts: Callable[[], str]) -> None:
    """Compile, search everything, and compile again from the cache alone, to the same bytes."""
    printed = _compile(folder, url, KEY, "--json")
    files, sent = compiled(folder), prompts()
    nowhere({**texts_under(folder), "printed": printed, "prompts": sent}, KEY)
    for name in ("sort-things/SKILL.md", "sort-things.history.jsonl"):
        assert MARK.encode() in files[name], name
    # The optimizer reads what the target wrote.
    assert MARK in sent
    shutil.rmtree(folder / "skills")
    shutil.rmtree(folder / ".skillc" / "runs")
    printed = _compile(folder, url, KEY)
    assert prompts() == sent
    assert compiled(folder) == files
    nowhere({**texts_under(folder), "printed": printed}, KEY)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_reply_from_a_server_is_redacted_in_each_protocol(monkeypatch: pytest.MonkeyPatch, protocol: str) -> None:
    key = "sk-planted-0123456789abcdef"
    with FaultyServer([say("\n".join(form(key) for form in FORMS.values()), model=f"m-{key}")]) as server:
        found = ask(server, monkeypatch, protocol).completion
    assert found is not None
    assert set(found.text.split("\n")) == {f"[secret {_variable(found)}]"}
    nowhere({"reply": str(found)}, key)


def _variable(found: Completion) -> str:
    return found.text.partition("]")[0].removeprefix("[secret ")


def _cached_reply(folder: Path, transport: Any, **settings: Any) -> tuple[Completion, Completion]:
    """A reply as it came, and as it comes from the cache."""
    with Client(plan_of(model(key_env="TEAM_KEY", **settings)), cache_folder=folder, transport=transport) as client:
        return tuple(asyncio.run(client.complete(QUESTION)) for _ in range(2))  # type: ignore[return-value]


def test_arguments_of_tools_are_redacted_and_stay_json(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TEAM_KEY", KEY)
    arguments = {"header": f"Bearer {KEY}", KEY: [KEY], "note": "ä\n", "count": 3}
    escaped = "".join(f"\\u{ord(sign):04x}" for sign in KEY)
    texts = [json.dumps(arguments), json.dumps(arguments, ensure_ascii=False), f'{{"header": "{escaped}"}}']
    calls = [
        {"id": f"c{i}", "type": "function", "function": {"name": "ask", "arguments": text}}
        for i, text in enumerate(texts)
    ]
    sent = reply("")
    sent["choices"][0]["message"]["tool_calls"] = calls
    for found in _cached_reply(tmp_path, Scripted(lambda sent_: sent)):
        read = [json.loads(call["function"]["arguments"]) for call in found.tool_calls]
        assert read[0] == read[1] == {"header": f"Bearer {MARK}", MARK: [MARK], "note": "ä\n", "count": 3}
        assert read[2] == {"header": MARK}
    nowhere(texts_under(tmp_path), KEY)


def test_user_and_password_of_an_address_are_redacted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TEAM_KEY", KEY)
    monkeypatch.setenv("SERVER", "http://operator:pa55%2Fw%2Brd%3Dplanted@localhost:9/v1?token=t0ken-planted")
    said = f"{PASSWORD} operator:{PASSWORD} t0ken-planted pa55%2Fw%2Brd%3Dplanted operator"
    transport = Scripted(lambda sent: reply(said))
    for found in _cached_reply(tmp_path, transport, base_url=None, base_url_env="SERVER"):
        assert found.text == " ".join(["[secret SERVER]"] * 4) + " operator"


def test_one_models_key_is_redacted_in_the_replies_of_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEAM_KEY", KEY)
    monkeypatch.setenv("OTHER_KEY", "planted-for-the-optimizer")
    plan = plan_of(model(key_env="TEAM_KEY"), model("optimizer", key_env="OTHER_KEY"))
    with Client(plan, transport=Scripted(lambda sent: reply(f"planted-for-the-optimizer {KEY}"))) as client:
        assert asyncio.run(client.complete(QUESTION)).text == f"[secret OTHER_KEY] {MARK}"


def test_a_reply_without_a_secret_is_stored_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = ["plain", '{"a": "b\\u00e9 \\n %41"}', "sk-other-0123456789abcdef", "YWJjZGVmZ2hpamtsbW5vcA==", "\ud800"]
    hide = Redactor([Secret("TEAM_KEY", KEY)])
    for text in texts:
        raw = reply(text)
        raw["choices"][0]["message"]["tool_calls"] = [{"function": {"arguments": json.dumps({"x": text})}}]
        assert read_reply(raw, hide) == read_reply(raw, NOTHING)


# ---- commands and functions ------------------------------------------------------------------------


def _command(text: str) -> ModelPlan:
    plan = ExecPlan(command=split_command(text), environment=("TOOL_TOKEN",))
    return ModelPlan(
        role="target", model="exec/tool", exec=plan, key_env="TEAM_KEY", pacing=PacingPlan(timeout=Fraction(60))
    )


def _outcome(plan: ModelPlan, folder: Path) -> str:
    """The text of a reply or of its failure."""
    with Client(plan_of(plan), cache_folder=folder / "cache", retries=RetryPolicy(attempts=1), root=folder) as client:
        try:
            return asyncio.run(client.complete(QUESTION)).text
        except (CallFailed, SkillcError) as problem:
            return f"{problem} {getattr(problem, 'hint', '')}"


def test_what_a_command_prints_is_redacted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TEAM_KEY", KEY)
    monkeypatch.setenv("TOOL_TOKEN", "planted-as-a-token")
    script = tmp_path / "tool.py"
    script.write_text(
        f"import os, sys\nsys.path.insert(0, {str(TESTS)!r})\nfrom secret_forms import FORMS, WITHIN\n"
        "for form in (*FORMS.values(), *WITHIN.values()):\n"
        "    for name in ('TEAM_KEY', 'TOOL_TOKEN'):\n        print(form(os.environ[name]))\n"
    )
    said = _outcome(_command(f"{sys.executable} {script}"), tmp_path)
    assert said.count(MARK) == said.count("[secret TOOL_TOKEN]") == len(FORMS) + len(WITHIN)
    nowhere({"reply": said, **texts_under(tmp_path / "cache")}, KEY, "planted-as-a-token")


@pytest.mark.parametrize("behind", [280, 290, 297])
def test_a_message_quotes_no_part_of_a_secret_that_it_cuts(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, behind: int
) -> None:
    monkeypatch.setenv("TEAM_KEY", KEY)
    monkeypatch.setenv("TOOL_TOKEN", "planted-as-a-token")
    (tmp_path / "tool.sh").write_text(f'echo "x $TEAM_KEY {"y" * (behind - 1)}" >&2; exit 1\n')
    said = _outcome(_command("sh {here}/tool.sh"), tmp_path)
    assert "exited with status 1" in said
    assert "yyy" in said
    assert not any(KEY[i : i + 6] in said for i in range(len(KEY) - 5))


@pytest.mark.parametrize(
    "body",
    [
        "raise ValueError(parameters['api_key'])",
        "raise ValueError('x' * 285 + ' ' + parameters['api_key'])",
        "raise TimeoutError(parameters['api_key'])",
        "raise SkillcError('bad ' + parameters['api_key'], hint='not ' + parameters['api_key'])",
        "return ['x' * 60, parameters['api_key']]",
    ],
)
def test_what_a_function_raises_or_returns_is_redacted(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, body: str
) -> None:
    monkeypatch.setenv("TEAM_KEY", KEY)
    (tmp_path / "own_failing.py").write_text(
        f"from skillc.errors import SkillcError\n\n\ndef answer(messages, model, parameters):\n    {body}\n"
    )
    monkeypatch.delitem(sys.modules, "own_failing", raising=False)
    plan = ModelPlan(role="target", model="mine/x", backend="own_failing:answer", key_env="TEAM_KEY")
    said = _outcome(plan, tmp_path)
    assert MARK in said
    assert not any(KEY[i : i + 6] in said for i in range(len(KEY) - 5))


# ---- what is not redacted is said -------------------------------------------------------------------


def test_a_short_value_is_not_redacted_and_a_note_says_so(tmp_path: Path) -> None:
    folder = shop(tmp_path / "things")
    with FaultyServer(well) as server:
        printed = " ".join(_compile(folder, server.url, "market", "--json").split())
    assert "the value of `TEAM_KEY` has fewer than 8 characters: replies that contain it are not redacted" in printed
    assert "market" in (folder / "skills" / "sort-things" / "SKILL.md").read_text()

"""`exec`: commands as models, with faults."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from model_plans import plan_of
from thorough import example_count

from skillc.errors import SkillcError
from skillc.language.commands import fill_placeholders, placeholders, split_command
from skillc.models.calls import Call, Completion, Message
from skillc.models.client import Client
from skillc.models.failures import CallFailed, PermanentFailure
from skillc.models.pace import RetryPolicy
from skillc.models.roles import resolve_roles
from skillc.plan.schema import AnswerPlan, ExecPlan, ModelPlan, PacingPlan, PricePlan

PLAIN = (Message("system", "the skill"), Message("user", "the question"))
SECRET = "planted-0123456789-secret"


async def no_sleep(seconds: float) -> None:
    await asyncio.sleep(0)


def command(text: str, *, timeout: float = 20, name: str = "exec/tool", **settings: Any) -> ModelPlan:
    inner = {key: settings.pop(key) for key in ("answer", "folder", "environment") if key in settings}
    plan = ExecPlan(command=split_command(text), **inner)
    pacing = PacingPlan(timeout=Fraction(timeout))
    return ModelPlan(role="target", model=name, exec=plan, pacing=pacing, **settings)


def ask(
    model: ModelPlan, messages: tuple[Message, ...] = PLAIN, *, root: Path | None = None, attempts: int = 2, **call: Any
) -> Completion:
    with Client(plan_of(model), sleep=no_sleep, retries=RetryPolicy(attempts=attempts), root=root) as client:
        return asyncio.run(client.complete(Call("target", "rollout", messages, **call)))


def failed(model: ModelPlan, **options: Any) -> CallFailed:
    with pytest.raises(CallFailed) as caught:
        ask(model, **options)
    return caught.value


def refused(model: ModelPlan, **options: Any) -> SkillcError:
    with pytest.raises(SkillcError) as caught:
        ask(model, **options)
    return caught.value


# ---- what it is given -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("echo {prompt}", "the skill\n\nthe question"),
        ("echo --in={user}/{system}", "--in=the question/the skill"),
        ("echo {model} {{prompt}} {a: 1}", "tool {prompt} {a: 1}"),
        ("cat", "the skill\n\nthe question"),
        ("sh -c 'echo $0; cat' {system}", "the skill\nthe question"),
        ("sh -c 'echo \"$0\"; cat' {prompt}", "the skill\n\nthe question"),
    ],
)
def test_places_and_standard_input(text: str, printed: str) -> None:
    assert ask(command(text)).text == printed


def test_messages_come_as_a_file_in_the_chat_format() -> None:
    said = (*PLAIN, Message("user", ({"type": "image_url", "image_url": {"url": "data:,x"}},)))
    text = ask(command("cat {messages}"), said).text
    assert json.loads(text) == [message.as_sent() for message in said]


def test_here_is_the_programs_folder_and_the_working_folder_is_empty_and_its_own(tmp_path: Path) -> None:
    tool = tmp_path / "tool.sh"
    tool.write_text("#!/bin/sh\nls -A | wc -l; pwd; echo $0\n")
    tool.chmod(0o755)
    one = ask(command("{here}/tool.sh {prompt}"), root=tmp_path).text.splitlines()
    two = ask(command("./tool.sh {prompt}"), root=tmp_path).text.splitlines()
    assert (one[0].strip(), two[0].strip()) == ("0", "0")
    assert one[1] != two[1]
    assert not Path(one[1]).exists()
    assert Path(one[2]).resolve() == Path(two[2]).resolve() == tool.resolve()


def test_a_declared_folder_is_used_and_stays(tmp_path: Path) -> None:
    (tmp_path / "ws").mkdir()
    (tmp_path / "ws" / "note").write_text("kept")
    answer = AnswerPlan(kind="file", text="last.txt")
    model = command("sh -c 'cat note > last.txt; echo chatter'", folder="ws", answer=answer)
    assert ask(model, root=tmp_path).text == "kept"
    assert (tmp_path / "ws" / "note").exists()
    stale = failed(command("true", folder="ws", answer=answer), root=tmp_path)
    assert (stale.kind, "earlier call" in stale.detail) == ("malformed", True)


@given(
    st.text(alphabet=st.characters(blacklist_characters="\0", blacklist_categories=["Cs"])),
    st.sampled_from(["{prompt}", "x{prompt}y"]),
)
def test_no_text_becomes_another_word_or_is_read_again(text: str, word: str) -> None:
    plan = ExecPlan(command=("tool", word, "--last"))
    words = plan.filled(lambda place: text)
    assert words == ["tool", word.replace("{prompt}", text), "--last"]
    assert list(placeholders(word)) == ["prompt"]
    assert fill_placeholders("{{prompt}}", lambda place: text) == "{prompt}"


@settings(max_examples=example_count(25))
@given(st.text(alphabet=st.characters(blacklist_characters="\0", blacklist_categories=["Cs"]), min_size=1))
def test_hostile_texts_arrive_as_one_argument(text: str) -> None:
    shown = "import sys, json; print(json.dumps(sys.argv[1:]))"
    model = command(f"{sys.executable} -S -c '{shown}' {{user}} {{system}} --last")
    messages = (Message("system", "s"), Message("user", text))
    given_words = json.loads(ask(model, messages).text)
    assert given_words == [f" {text}" if text.startswith("-") else text, "s", "--last"]


def test_quotes_and_shell_signs_mean_nothing(tmp_path: Path) -> None:
    hostile = f"'; touch {tmp_path}/owned; $(touch {tmp_path}/owned) `touch {tmp_path}/owned` \" {{messages}} --help"
    text = ask(command("echo {user} {system}"), (Message("system", "s"), Message("user", hostile))).text
    assert text == f"{hostile} s"
    assert list(tmp_path.iterdir()) == []


def test_an_argument_that_is_too_long_is_said_with_the_way_out() -> None:
    long = (Message("user", "ä" * 70_000),)
    if sys.platform == "linux":
        problem = refused(command("echo {prompt}"), messages=long)
        assert isinstance(problem, PermanentFailure)
        assert "140,000 bytes" in problem.message
        assert "`{messages}`" in str(problem.hint)
    assert ask(command("sh -c 'wc -c'"), long).text == "140000"
    assert ask(command("sh -c 'wc -c < $0' {messages}"), long).text.isdigit()


def test_what_no_argument_can_hold_is_said() -> None:
    assert "zero byte" in refused(command("echo {prompt}"), messages=(Message("user", "a\0b"),)).message
    image = (Message("user", ({"type": "image_url", "image_url": {"url": "data:,x"}},)),)
    assert "image_url" in refused(command("echo {prompt}"), messages=image).message
    assert "tools" in refused(command("echo {prompt}"), tools=({"type": "function"},)).message


# ---- variables and secrets ------------------------------------------------------------------------


def test_a_command_is_given_its_own_key_and_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOOL_KEY", SECRET)
    monkeypatch.setenv("OTHER_KEY", "sk-other-key-0123456789")
    monkeypatch.setenv("TOOL_HOME", "/somewhere/else")
    model = command("env", key_env="TOOL_KEY", environment=("TOOL_HOME",))
    given = dict(line.split("=", 1) for line in ask(model).text.splitlines())
    assert (given["TOOL_KEY"], given["TOOL_HOME"]) == ("[secret TOOL_KEY]", "[secret TOOL_HOME]")
    assert given["PATH"] == os.environ["PATH"]
    assert "OTHER_KEY" not in given
    usual = {"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ", "TMPDIR"}
    of_shells = {"PWD", "OLDPWD", "SHLVL", "_"}
    allowed = {"TOOL_KEY", "TOOL_HOME", "SKILLC_COMMAND", *usual, *of_shells}
    assert {name for name in given if not name.startswith("LC_")} <= allowed


def test_a_variable_that_is_not_set_is_said_before_the_first_call(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TOOL_HOME", raising=False)
    with pytest.raises(SkillcError, match="`TOOL_HOME`, which is not set"):
        Client(plan_of(command("env", environment=("TOOL_HOME",))))
    with pytest.raises(SkillcError, match="`TOOL_HOME` is not set"):
        Client(plan_of(command("env", key_env="TOOL_HOME")))


@pytest.mark.parametrize(
    "script",
    [
        "echo bad $TOOL_KEY >&2; exit 1",
        "echo $TOOL_KEY >&2",
        "echo $TOOL_KEY >&2; sleep 60",
        "echo $TOOL_KEY >&2; exit 127",
    ],
)
def test_a_planted_key_is_in_no_text(script: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TOOL_KEY", SECRET)
    model = command(f"sh -c '{script}'", key_env="TOOL_KEY", timeout=1 if "sleep" in script else 20)
    with Client(plan_of(model), cache_folder=tmp_path, sleep=no_sleep, retries=RetryPolicy(attempts=1)) as client:
        with pytest.raises((CallFailed, PermanentFailure)) as caught:
            asyncio.run(client.complete(Call("target", "rollout", PLAIN)))
        assert "[secret TOOL_KEY]" in str(caught.value)
        told = str(caught.value) + repr(client.roles) + str(client.ledger.snapshot())
    assert SECRET not in told
    assert all(SECRET.encode() not in file.read_bytes() for file in tmp_path.rglob("*") if file.is_file())


# ---- faults ---------------------------------------------------------------------------------------


def counted(tmp_path: Path, script: str) -> tuple[str, Path]:
    """A command that leaves a line for each run."""
    file = tmp_path / "runs"
    return f"sh -c 'echo x >> {file}; {script}' 0 {{prompt}}", file


@pytest.mark.parametrize(
    ("script", "kind", "runs", "said"),
    [
        ("echo oh no >&2; exit 1", "transient", 3, "exited with status 1: oh no"),
        ("echo half; exit 9", "transient", 3, "exited with status 9: half"),
        ("kill -SEGV $$", "transient", 3, "was killed by SIGSEGV"),
        ("sleep 60", "transient", 3, "did not answer within 1 s"),
        ("echo server down >&2", "empty", 1, "printed no text: server down"),
        ('printf "\\377\\376"', "malformed", 3, "not UTF-8"),
        ("yes", "malformed", 3, "more than 16 MiB"),
    ],
)
def test_each_fault_is_a_failure_of_its_kind_and_never_an_answer(
    tmp_path: Path, script: str, kind: str, runs: int, said: str
) -> None:
    text, file = counted(tmp_path, script)
    problem = failed(command(text, timeout=1 if "sleep" in script else 30), attempts=3)
    assert problem.kind == kind
    assert said in problem.detail
    assert len(file.read_text().splitlines()) == runs


def test_chance_is_given_another_try(tmp_path: Path) -> None:
    text, file = counted(tmp_path, f"[ $(wc -l < {tmp_path}/runs) -ge 3 ] && echo at last")
    assert ask(command(text), attempts=4).text == "at last"
    assert len(file.read_text().splitlines()) == 3


def test_garbage_where_json_was_declared_is_malformed() -> None:
    answer = AnswerPlan(kind="json", path=("result",))
    assert failed(command("echo oops {prompt}", answer=answer)).kind == "malformed"
    said = AnswerPlan(kind="match", text="say: (t.*?) ")
    assert ask(command("echo 'say: {model}' {user} {system}", answer=said)).text == "tool"


def test_a_command_that_is_not_there_is_said_before_the_first_call(tmp_path: Path) -> None:
    problem = refused(command("no-such-tool-at-all {prompt}"))
    assert isinstance(problem, PermanentFailure)
    assert "`no-such-tool-at-all` was not found" in problem.message
    (tmp_path / "tool").write_text("no program")
    assert "cannot be executed" in refused(command("./tool {prompt}"), root=tmp_path).message
    assert "chmod" in str(refused(command("./tool {prompt}"), root=tmp_path).hint)
    assert "folder `ws` does not exist" in refused(command("echo {prompt}", folder="ws"), root=tmp_path).message


def test_a_program_behind_the_command_that_is_not_there_is_permanent(tmp_path: Path) -> None:
    text, file = counted(tmp_path, "no-such-tool-at-all")
    assert isinstance(refused(command(text)), PermanentFailure)
    assert len(file.read_text().splitlines()) == 1
    (tmp_path / "tool").write_text("\1\2")
    (tmp_path / "tool").chmod(0o755)
    assert "cannot be started" in refused(command("./tool {prompt}"), root=tmp_path).message


def test_a_script_beside_the_program_is_pointed_at(tmp_path: Path) -> None:
    (tmp_path / "agent.py").write_text("print('hi')")
    problem = failed(command(f"{sys.executable} agent.py {{prompt}}"), root=tmp_path)
    assert "write `{here}/agent.py`" in problem.detail
    assert ask(command(f"{sys.executable} {{here}}/agent.py {{prompt}}"), root=tmp_path).text == "hi"
    assert ask(command(f"{sys.executable} agent.py {{prompt}}", folder="."), root=tmp_path).text == "hi"


# ---- keys and money -------------------------------------------------------------------------------


def endpoint_id(model: ModelPlan, root: Path | None = None) -> str:
    return resolve_roles(plan_of(model), offline=False, root=root)["target"].endpoint.id


def test_the_same_command_is_the_same_endpoint_wherever_it_lies(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "tool").write_text("#!/bin/sh\necho " + name)
        (tmp_path / name / "tool").chmod(0o755)
    model = command("./tool   {prompt}")
    first = endpoint_id(model, tmp_path / "one")
    assert first.startswith("exec:")
    assert endpoint_id(command("./tool '{prompt}'", timeout=3), tmp_path / "two") == first
    others = [
        command("echo {prompt}"),
        command("echo {prompt}", answer=AnswerPlan(kind="after", text="x")),
        command("echo {prompt}", folder="."),
        command("echo {prompt}", environment=("PATH",)),
    ]
    assert len({first, *(endpoint_id(other) for other in others)}) == 5


@pytest.mark.parametrize("role", ["optimizer", "referee"])
def test_a_command_answers_in_any_role(role: str) -> None:
    model = command("echo {model} {prompt}").model_copy(update={"role": role})
    with Client(plan_of(model)) as client:
        assert asyncio.run(client.complete(Call(role, "judge", PLAIN))).text.startswith("tool the skill")
        assert client.complete_sync(Call(role, "judge", PLAIN, 1)).text.startswith("tool the skill")


def test_replies_are_kept_and_failures_are_not(tmp_path: Path) -> None:
    text, file = counted(tmp_path, "echo yes")
    with Client(plan_of(command(text)), cache_folder=tmp_path / "cache") as client:
        for sample in (0, 0, 1):
            done = asyncio.run(client.complete(Call("target", "rollout", PLAIN, sample)))
        assert (done.text, done.model) == ("yes", "exec/tool")
        books = client.ledger.snapshot()
    assert len(file.read_text().splitlines()) == 2
    assert (books["charged"]["total"]["calls"], books["paid"]["total"]["calls"]) == (3, 2)  # type: ignore[index,call-overload]


def test_a_call_is_charged_its_declared_most_and_a_cap_without_one_is_an_error() -> None:
    price = PricePlan(input=Fraction(0), output=Fraction(0), call=Fraction("0.05"))
    with Client(plan_of(command("echo yes {prompt}", price=price), cost=Fraction("0.12")), sleep=no_sleep) as client:
        for sample in range(2):
            done = asyncio.run(client.complete(Call("target", "rollout", PLAIN, sample)))
            assert done.cost == 50_000_000
            assert done.usage.completion == 4096
        with pytest.raises(SkillcError, match="cap on cost"):
            asyncio.run(client.complete(Call("target", "rollout", PLAIN, 2)))
    with pytest.raises(SkillcError, match="price") as caught:
        Client(plan_of(command("echo yes {prompt}"), cost=Fraction(1)))
    assert "`price { call = $0.05 }`" in str(caught.value.hint)


def test_offline_runs_no_command(tmp_path: Path) -> None:
    model = command("no-such-tool-at-all {prompt}", environment=("NOT_SET",), folder="nowhere")
    with Client(plan_of(model), offline=True) as client:
        assert asyncio.run(client.complete(Call("target", "rollout", PLAIN))).model == "rulebook/v1"


@pytest.mark.parametrize(
    ("model", "said"),
    [
        (ModelPlan(role="target", model="exec/tool"), "declares no command"),
        (command("echo {prompt}", name="mine/tool"), "its provider is not `exec`"),
    ],
)
def test_a_name_and_a_command_belong_together(model: ModelPlan, said: str) -> None:
    assert said in refused(model).message

"""Models that functions of the user's own answer for."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from model_plans import Scripted, plan_of

import skillc
from skillc.errors import SkillcError
from skillc.models.backends import function
from skillc.models.backends.function import Reply, backend
from skillc.models.backends.litellm import litellm_providers, load_litellm
from skillc.models.calls import Call, Completion, Message, Usage
from skillc.models.client import Client
from skillc.models.failures import CallFailed, PermanentFailure
from skillc.models.pace import RetryPolicy
from skillc.models.roles import resolve_roles
from skillc.plan.schema import ModelPlan, PacingPlan

KEY = "sk-planted-0123456789abcdef"
HELLO = (Message("system", "skill"), Message("user", "hello"))


@pytest.fixture(autouse=True)
def nothing_registered(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    monkeypatch.setattr(function, "REGISTERED", {})
    # A function's identity includes the files that it imports below the working folder: here, the whole repository.
    monkeypatch.chdir(tmp_path)
    yield


async def no_sleep(seconds: float) -> None:
    await asyncio.sleep(0)


def model(name: str = "mine/large", *, role: str = "target", timeout: float = 20, **settings: Any) -> ModelPlan:
    return ModelPlan(role=role, model=name, pacing=PacingPlan(timeout=Fraction(timeout)), **settings)


def ask(plan: ModelPlan | None = None, *, root: Path | None = None, attempts: int = 3, **call: Any) -> Completion:
    with Client(
        plan_of(plan or model()), sleep=no_sleep, retries=RetryPolicy(attempts=attempts, patience=0), root=root
    ) as client:
        return asyncio.run(client.complete(Call("target", "rollout", HELLO, **call)))


def written(folder: Path, text: str, name: str = "own.py") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text)
    return folder


# ---- what a function is given and gives -----------------------------------------------------------


def test_a_registered_function_is_given_the_call_and_gives_a_text() -> None:
    seen: list[Any] = []

    @skillc.backend("mine")
    def answer(messages: Any, name: str, parameters: Any) -> str:
        seen.append((messages, name, parameters, threading.current_thread() is threading.main_thread()))
        messages.clear()
        return "hi"

    done = ask(model(parameters={"temperature": 0}, max_reply=9), tools=({"type": "function"},))
    assert (done.text, done.finish, done.model) == ("hi", "stop", "mine/large")
    assert done.usage.completion == 9  # what nobody counts is charged whole
    [(_, name, parameters, on_main)] = seen
    assert name == "large"
    assert parameters == {"temperature": 0, "max_tokens": 9, "timeout": 20.0, "tools": [{"type": "function"}]}
    assert not on_main


def test_a_coroutine_function_runs_on_the_loop_with_the_declared_address_and_key(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TEAM_KEY", KEY)

    @backend("mine")
    async def answer(messages: Any, name: str, parameters: Any) -> Reply:
        assert messages == [{"role": "system", "content": "skill"}, {"role": "user", "content": "hello"}]
        await asyncio.sleep(0)
        return Reply(
            f"{parameters['api_base']} {parameters['api_key'] == KEY}", usage=Usage(5, 2, 3, 1), model="mine-1"
        )

    done = ask(model(base_url="http://localhost:9/x", key_env="TEAM_KEY"))
    assert (done.text, done.model) == ("http://localhost:9/x True", "mine-1")
    assert done.usage == Usage(5, 2, 3, 1)


class Answering:
    """An object that is called, and whose answer has to be awaited."""

    def __call__(self, messages: Any, name: str, parameters: Any) -> Any:
        async def later() -> str:
            return "later"

        return later()


CHAT = {
    "choices": [{"message": {"content": "chat"}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 4, "completion_tokens": 1},
}


@pytest.mark.parametrize(
    ("function", "text"),
    [
        (Answering(), "later"),
        (lambda *_: CHAT, "chat"),
        (lambda *_: Reply("counted", usage={"prompt_tokens": 4, "completion_tokens": 1}), "counted"),
        (lambda *_: Reply("", finish="tool_calls", tool_calls=({"id": "1", "type": "function"},)), ""),
        (lambda *_: "lone \ud800 surrogate", "lone \ufffd surrogate"),
    ],
)
def test_replies_have_several_shapes(function: Callable[..., Any], text: str) -> None:
    backend("mine")(function)
    done = ask()
    assert done.text == text
    assert bool(done.tool_calls) == (done.finish == "tool_calls")


@pytest.mark.parametrize(
    ("given", "kind"),
    [("", "empty"), (Reply(" "), "empty"), (Reply("half", finish="length"), "cut"), ({"choices": []}, "malformed")],
)
def test_what_is_no_whole_reply_has_its_kind(given: Any, kind: str) -> None:
    backend("mine")(lambda *_: given)
    with pytest.raises(CallFailed) as failed:
        ask()
    assert failed.value.kind == kind


# ---- faults ---------------------------------------------------------------------------------------


class RateLimitError(Exception):
    status_code = 429


class BadGateway(Exception):  # noqa: N818
    status_code = 502


@pytest.mark.parametrize(
    "problem", [TimeoutError("slow"), ConnectionResetError("gone"), RateLimitError(), BadGateway("x")]
)
@pytest.mark.quick_cases(1)
def test_transient_exceptions_are_tried_again(problem: Exception) -> None:
    calls: list[int] = []

    @backend("mine")
    def answer(*_: Any) -> str:
        calls.append(1)
        if len(calls) < 3:
            raise problem
        return "at last"

    assert ask().text == "at last"
    calls.clear()
    with pytest.raises(CallFailed) as failed:
        ask(attempts=2)
    assert failed.value.kind == "transient"


def test_any_other_exception_ends_the_run_with_its_name_and_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEAM_KEY", KEY)
    calls: list[int] = []

    @backend("mine")
    def answer(messages: Any, name: str, parameters: Any) -> str:
        calls.append(1)
        return json.loads(json.dumps({}))[parameters["api_key"]]  # type: ignore[no-any-return]

    with pytest.raises(PermanentFailure) as failed:
        ask(model(key_env="TEAM_KEY"))
    for word in ("`target`", "`mine/large`", "answer", "raised KeyError", "test_backends.py:"):
        assert word in failed.value.message
    assert KEY not in failed.value.message
    assert "TimeoutError" in str(failed.value.hint)
    assert len(calls) == 1


@pytest.mark.parametrize(
    ("problem", "said"),
    [
        (SkillcError("the account is closed", hint="pay"), "the account is closed"),
        (SystemExit(3), "raised SystemExit: 3"),
    ],
)
def test_errors_of_ours_and_exits_are_messages(problem: BaseException, said: str) -> None:
    @backend("mine")
    async def answer(*_: Any) -> str:
        raise problem

    with pytest.raises(SkillcError) as failed:
        ask()
    assert said in failed.value.message


@pytest.mark.parametrize("given", [None, 7, b"bytes", ["text"], Reply(text=None)])  # type: ignore[arg-type]
def test_what_is_no_reply_at_all_is_said(given: Any) -> None:
    backend("mine")(lambda *_: given)
    with pytest.raises(PermanentFailure, match="instead of a text or a `skillc"):
        ask()


def test_a_function_that_hangs_holds_up_neither_others_nor_the_end() -> None:
    code = (
        f"import asyncio, sys, threading\nsys.path.insert(0, {str(Path(__file__).parent)!r})\n"
        "import skillc\nfrom test_backends import *\n"
        "@skillc.backend('mine')\n"
        "def answer(messages, name, parameters):\n"
        "    if messages[-1]['content'] == 'hang':\n        threading.Event().wait()\n"
        "    return 'ok'\n"
        "async def main():\n"
        "    with Client(plan_of(model(timeout=0.3)), sleep=no_sleep, retries=RetryPolicy(attempts=1)) as client:\n"
        "        def call(text): return client.complete(Call('target', 's', (Message('user', text),)))\n"
        "        hung = [asyncio.ensure_future(client.complete(Call('target', 's', (Message('user', 'hang'),), i)))\n"
        "                for i in range(12)]\n"
        "        print((await call('now')).text, flush=True)\n"
        "        print({type(x).__name__ for x in await asyncio.gather(*hung, return_exceptions=True)})\n"
        "asyncio.run(main())\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=600)
    assert (done.returncode, done.stdout) == (0, "ok\n{'CallFailed'}\n"), done.stderr


# ---- finding it -----------------------------------------------------------------------------------


def endpoint_id(plan: ModelPlan, root: Path | None = None) -> str:
    return resolve_roles(plan_of(plan), offline=False, root=root)["target"].endpoint.id


def test_a_program_names_a_function_beside_it(tmp_path: Path) -> None:
    written(tmp_path, "from helper import said\ndef answer(messages, name, parameters):\n    return said\n")
    written(tmp_path, "said = 'one'\n", "helper.py")
    plan = model(backend="own:answer")
    assert ask(plan, root=tmp_path).text == "one"
    first = endpoint_id(plan, tmp_path)
    assert first.startswith("backend:mine@")
    written(tmp_path, "said = 'two'\n", "helper.py")
    assert endpoint_id(plan, tmp_path) != first  # what it imports is a part of it


def test_the_address_of_a_function_must_be_one(tmp_path: Path) -> None:
    written(tmp_path, "def answer(messages, name, parameters):\n    return ''\n")
    with pytest.raises(SkillcError, match="`base_url` of model `target` is not an address"):
        endpoint_id(model(backend="own:answer", base_url="http://[::1"), tmp_path)


def test_two_backends_of_one_name_never_share_an_entry(tmp_path: Path) -> None:
    plan = model(backend="own:answer")
    texts = []
    for name in ("one", "two", "one"):
        root = written(tmp_path / name, f"def answer(messages, model, parameters):\n    return {name!r}\n")
        with Client(plan_of(plan), cache_folder=tmp_path / "cache", root=root) as client:
            done = asyncio.run(client.complete(Call("target", "rollout", HELLO)))
        texts.append((done.text, done.cached))
    assert texts == [("one", False), ("two", False), ("one", True)]
    root = tmp_path / "one"
    assert endpoint_id(model(backend="own:answer", base_url="http://localhost:1"), root) != endpoint_id(plan, root)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("gone:answer", "the module `gone` of the backend `gone:answer` cannot be imported"),
        ("own:gone", "has no function `gone`"),
        ("broken:answer", "ZeroDivisionError"),
    ],
)
def test_a_function_that_is_not_there_is_said_before_the_first_call(tmp_path: Path, name: str, said: str) -> None:
    written(written(tmp_path, "x = 1\n"), "1 / 0\n", "broken.py")
    with pytest.raises(SkillcError, match=said):
        Client(plan_of(model(backend=name)), root=tmp_path)


def installed(folder: Path, name: str, value: str, package: str, version: str = "1.0") -> None:
    about = folder / f"{package}-{version}.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: {version}\n")
    (about / "entry_points.txt").write_text(f"[skillc.backends]\n{name} = {value}\n")


def test_an_installed_package_brings_a_backend(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    written(tmp_path, "def answer(messages, model, parameters):\n    return 'installed ' + model\n", "brought_one.py")
    installed(tmp_path, "mine", "brought_one:answer", "brought")
    assert ask(model()).text == "installed large"
    first = endpoint_id(model())
    other = tmp_path / "newer"
    monkeypatch.syspath_prepend(str(other))
    installed(other, "mine", "brought_one:answer", "brought", "2.0")
    assert endpoint_id(model()) != first


def test_two_of_one_name_are_an_error_that_the_program_can_settle(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    written(tmp_path, "def answer(messages, model, parameters):\n    return 'installed'\n", "brought_two.py")
    installed(tmp_path, "mine", "brought_two:answer", "brought2")
    backend("mine")(lambda *_: "registered")
    with pytest.raises(SkillcError, match="more than one backend is called `mine`") as failed:
        ask()
    assert "backend = python" in str(failed.value.hint)
    assert ask(model(backend="brought_two:answer")).text == "installed"


def test_a_package_whose_backend_cannot_be_loaded_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    installed(tmp_path, "mine", "brought_gone:answer", "gone3")
    with pytest.raises(SkillcError, match=r"`mine` of gone3 1\.0 cannot be loaded: ModuleNotFoundError"):
        ask()


def test_a_name_that_litellm_knows_is_not_taken_silently(tmp_path: Path) -> None:
    backend("openai")(lambda *_: "mine now")
    with pytest.raises(SkillcError, match="both litellm and the backend") as failed:
        ask(model("openai/gpt-5.5"))
    assert "mine/gpt-5.5" in str(failed.value.hint)
    written(tmp_path, "def answer(messages, model, parameters):\n    return 'x'\n")
    with pytest.raises(SkillcError, match="both litellm and the backend"):
        ask(model("hosted_vllm/x", backend="own:answer"), root=tmp_path)


def test_the_names_that_litellm_knows_are_read_from_its_source(monkeypatch: pytest.MonkeyPatch) -> None:
    load_litellm()
    litellm_providers.cache_clear()
    with monkeypatch.context() as patch:
        patch.delitem(sys.modules, "litellm")
        from_source = litellm_providers()
        assert "litellm" not in sys.modules
    litellm_providers.cache_clear()
    assert from_source == litellm_providers()
    assert {"openai", "anthropic", "hosted_vllm"} <= from_source


@pytest.mark.parametrize("name", ["", "a/b", "exec", "rulebook", lambda *_: ""])
def test_names_that_no_backend_can_have(name: Any) -> None:
    with pytest.raises(SkillcError):
        backend(name)


def test_a_name_is_registered_once() -> None:
    def one(*_: Any) -> str:
        return "1"

    def two(*_: Any) -> str:
        return "2"

    assert backend("mine")(one) is one
    backend("mine")(one)  # a cell of a notebook that is run again
    with pytest.raises(SkillcError, match="is already registered"):
        backend("mine")(two)


def test_a_transport_that_is_given_answers_for_every_role() -> None:
    backend("mine")(lambda *_: "the backend's")
    plan = model(base_url="http://localhost:9")
    with Client(plan_of(plan), transport=Scripted()) as client:
        assert asyncio.run(client.complete(Call("target", "rollout", HELLO))).text == "hi"


def test_a_price_is_not_known_unless_it_is_declared() -> None:
    backend("mine")(lambda *_: "x")
    with pytest.raises(SkillcError, match="price of `mine/large`"):
        Client(plan_of(model(), cost=Fraction(1)))


def test_litellm_is_not_loaded_for_a_run_without_it() -> None:
    code = (
        f"import sys\nsys.path.insert(0, {str(Path(__file__).parent)!r})\n"
        "import skillc\nfrom model_plans import plan_of\nfrom skillc.models.client import Client\n"
        "from skillc.plan.schema import ModelPlan\n"
        "skillc.backend('mine')(lambda *_: 'x')\n"
        "client = Client(plan_of(ModelPlan(role='target', model='mine/x')))\n"
        "client.preload()\nprint('litellm' in sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=600)
    assert done.stdout == "False\n", done.stderr

"""The ways to make one call that are compared."""

from __future__ import annotations

import json
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from skillc.gates.terms import Constant
from skillc.language.loop import BudgetPlan
from skillc.models.calls import Call, Message
from skillc.plan.schema import DataPlan, MetricPlan, ModelPlan, Plan, SkillPlan, TaskPlan

MODEL = "openai/gpt-4o-mini"
SKILL = "# Route tickets\n\n" + "\n".join(f'- If the ticket mentions "x{i}", answer billing.' for i in range(60))

Ask = Callable[[int], Awaitable[Any]]


def texts(number: int) -> list[tuple[str, str]]:
    """A prompt of about a thousand tokens that no other number has."""
    return [("system", SKILL), ("user", f"ticket {number}: I was charged twice.")]


def plan(url: str) -> Plan:
    one = Constant(1)
    return Plan(
        task=TaskPlan(inputs=(), outputs=()),
        skill=SkillPlan(name="route", artifact="route", about="Route.", sections=()),
        models={"target": ModelPlan(role="target", model=MODEL, base_url=url)},
        data=DataPlan(source="-"),
        metrics=(MetricPlan(name="m", term=one, low=0, high=1, goal=True),),
        budget=BudgetPlan(),
        gates=(),
    )


def plain(url: str, folder: Path) -> Ask:
    """`litellm.acompletion`, and nothing else."""
    from skillc.models.backends.litellm import load_litellm

    litellm = load_litellm()

    async def ask(number: int) -> Any:
        messages = [{"role": role, "content": text} for role, text in texts(number)]
        return await litellm.acompletion(
            model=MODEL, messages=messages, api_base=url, api_key="none", max_tokens=99, num_retries=0, max_retries=0
        )

    return ask


def _client(url: str, folder: Path) -> Any:
    from skillc.models.client import Client
    from skillc.store import RunStore

    made = Client(plan(url), cache_folder=folder / "cache")
    made.preload()
    made.bind_store(RunStore(folder / "run.db"), "")
    return made


def client(url: str, folder: Path) -> Ask:
    """skillc's client as a compile has it: cache and receipts on the disk."""
    made = _client(url, folder)

    async def ask(number: int) -> Any:
        messages = tuple(Message(role, text) for role, text in texts(number))
        return await made.complete(Call("target", "rollout", messages))

    return ask


def client_by_litellm(url: str, folder: Path) -> Ask:
    """skillc's client with litellm below it, as it calls other providers."""
    os.environ["SKILLC_LITELLM"] = "1"
    try:
        return client(url, folder)
    finally:
        del os.environ["SKILLC_LITELLM"]


def _of_lm(lm: Any) -> Ask:
    import dspy

    async def ask(number: int) -> Any:
        (_, system), (_, user) = texts(number)
        return await lm.acall(messages=[{"role": "system", "content": system}, {"role": "user", "content": user}])

    dspy.configure(lm=lm)
    return ask


def dspy_client(url: str, folder: Path) -> Ask:
    """`dspy.LM` with skillc's engine."""
    from skillc.models.dspy_lm import make_lm

    return _of_lm(make_lm(_client(url, folder), "target"))


def dspy_module(url: str, folder: Path) -> Ask:
    """A `dspy.Predict` whose instructions are the skill, with skillc's engine."""
    import dspy

    from skillc.models.dspy_lm import make_lm

    program = dspy.Predict(dspy.Signature("ticket -> answer", SKILL))
    lm = make_lm(_client(url, folder), "target")

    async def ask(number: int) -> Any:
        with dspy.context(lm=lm):
            return await program.acall(ticket=f"ticket {number}: I was charged twice.")

    return ask


def _dspy(url: str, **options: Any) -> Ask:
    import dspy

    os.environ.pop("OPENAI_API_BASE", None)
    return _of_lm(dspy.LM(MODEL, api_base=url, api_key="none", cache=False, max_tokens=99, **options))


def dspy_litellm(url: str, folder: Path) -> Ask:
    """`dspy.LM(engine="litellm")` without its cache."""
    return _dspy(url, engine="litellm")


def dspy_default(url: str, folder: Path) -> Ask:
    """`dspy.LM` as it comes, without its cache."""
    return _dspy(url)


# ---- the request alone, by the HTTP clients that skillc could use ----


def _body(number: int) -> bytes:
    messages = [{"role": role, "content": text} for role, text in texts(number)]
    return json.dumps({"model": "m", "messages": messages, "max_tokens": 99}).encode()


_HEADERS = {"authorization": "Bearer none", "content-type": "application/json"}


def by_aiohttp(url: str, folder: Path) -> Ask:
    import aiohttp

    session: Any = None

    async def ask(number: int) -> Any:
        nonlocal session
        session = session or aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0))
        async with session.post(f"{url}/chat/completions", data=_body(number), headers=_HEADERS) as response:
            return json.loads(await response.read())

    return ask


def by_httpx(url: str, folder: Path) -> Ask:
    import httpx

    session = httpx.AsyncClient(limits=httpx.Limits(max_connections=None), timeout=60)

    async def ask(number: int) -> Any:
        return (await session.post(f"{url}/chat/completions", content=_body(number), headers=_HEADERS)).json()

    return ask


def by_niquests(url: str, folder: Path) -> Ask:
    import niquests

    session = niquests.AsyncSession(pool_maxsize=300)

    async def ask(number: int) -> Any:
        return (await session.post(f"{url}/chat/completions", data=_body(number), headers=_HEADERS)).json()

    return ask


def by_dspy(url: str, folder: Path) -> Ask:
    from dspy._vendor.lm15.transports import TransportRequest
    from dspy._vendor.lm15.transports._async import StdlibAsyncTransport

    transport = StdlibAsyncTransport(max_connections=1000)
    headers = list(_HEADERS.items())

    async def ask(number: int) -> Any:
        request = TransportRequest(
            method="POST", url=f"{url}/chat/completions", headers=headers, body=_body(number), read_timeout=60
        )
        async with transport.stream(request) as response:
            return json.loads(await response.read())

    return ask


CLIENTS: dict[str, tuple[str, Callable[[str, Path], Ask]]] = {
    "aiohttp": ("aiohttp", by_aiohttp),
    "httpx": ("httpx", by_httpx),
    "niquests": ("niquests", by_niquests),
    "DSPy's own, inside of it": ("dspy", by_dspy),
}

WAYS: dict[str, Callable[[str, Path], Ask]] = {
    "litellm alone": plain,
    "skillc client": client,
    "skillc client, by litellm": client_by_litellm,
    "dspy.LM, skillc engine": dspy_client,
    "dspy.Predict, skillc engine": dspy_module,
    "dspy.LM, litellm engine": dspy_litellm,
    "dspy.LM, its own engine": dspy_default,
}
ALL = WAYS | {name: way for name, (_, way) in CLIENTS.items()}

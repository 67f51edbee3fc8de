"""One call to a server on this machine, in each of the protocols, and through litellm where it is not needed."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import pytest
from faulty_server import FaultyServer
from model_plans import model, plan_of

from skillc.models.calls import Call, Completion, Message
from skillc.models.client import Client
from skillc.models.failures import CallFailed, PermanentFailure
from skillc.models.pace import RetryPolicy
from skillc.plan.schema import ModelPlan, PacingPlan

KEY = "sk-planted-0123456789abcdef"


class ThroughLitellm(str):
    """A protocol that needs no litellm, but is sent through it."""


PROTOCOLS = (
    *("openai", "hosted_vllm", "anthropic"),
    *(pytest.param(ThroughLitellm(name), id=f"{name}-litellm") for name in ("openai", "hosted_vllm")),
)


@pytest.fixture(autouse=True)
def through_litellm(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """For test files that import it: a case of `ThroughLitellm` is sent so."""
    cases = request.node.callspec.params if hasattr(request.node, "callspec") else {}
    if isinstance(cases.get("protocol"), ThroughLitellm):
        monkeypatch.setenv("SKILLC_LITELLM", "1")


_NAMES = {"openai": "gpt-4o-mini", "hosted_vllm": "some/model", "anthropic": "claude-3-5-haiku-latest"}
# More than any call here takes: a hang is a failure and not the end of the test run.
_HANGS = 600


@dataclass
class Asked:
    """What became of a call.

    Attributes:
        paid: attempts and tokens in the account of what the network took.
        waited: pauses before retries, in seconds.
    """

    completion: Completion | None = None
    failed: CallFailed | PermanentFailure | None = None
    paid: tuple[int, int] = (0, 0)
    waited: list[float] = field(default_factory=list)

    @property
    def kind(self) -> str:
        """Of the failure: `permanent`, or that of a call; `none` without one."""
        if isinstance(self.failed, PermanentFailure):
            return "permanent"
        return self.failed.kind if self.failed is not None else "none"


def at(url: str, protocol: str = "openai", role: str = "target", **settings: Any) -> ModelPlan:
    """A role whose model is at an address, with its key in `TEAM_KEY`."""
    known = {"key_env": "TEAM_KEY", "max_reply": 99, **settings}
    return model(role, f"{protocol}/{_NAMES[protocol]}", base_url=url, **known)


def address(server: FaultyServer, protocol: str) -> str:
    """The server's address as a program gives it."""
    return server.root if protocol == "anthropic" else server.url


def ask(
    server: FaultyServer,
    monkeypatch: pytest.MonkeyPatch,
    protocol: str = "openai",
    *,
    attempts: int = 2,
    timeout: Fraction = Fraction(20),
    url: str | None = None,
    **settings: Any,
) -> Asked:
    """One call; neither its failure nor a wait between attempts holds the test up."""
    monkeypatch.setenv("TEAM_KEY", KEY)
    found = Asked()

    async def sleep(seconds: float) -> None:
        found.waited.append(seconds)

    async def call(client: Client) -> Completion:
        said = Call("target", "rollout", (Message("system", "skill"), Message("user", "hello")))
        async with client.connected():
            return await asyncio.wait_for(client.complete(said), _HANGS)

    role = at(url or address(server, protocol), protocol, pacing=PacingPlan(timeout=timeout), **settings)
    with Client(plan_of(role), retries=RetryPolicy(attempts, 0.5, 0.5), sleep=sleep) as client:
        try:
            found.completion = asyncio.run(call(client))
        except (CallFailed, PermanentFailure) as failed:
            found.failed = failed
        spent = client.ledger.paid.spent
        found.paid = (spent.calls, spent.tokens)
    return found

"""The user's LMs behind skillc's client, which reserves, counts, caps and caches their calls.

A role's address contains a digest of the LM's settings, so that cached replies of two LMs never mix.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

from skillc.errors import SkillcError
from skillc.language.kinds import default_of
from skillc.models.client import Client
from skillc.models.endpoint import KEY_VARIABLES
from skillc.models.pace import RetryPolicy
from skillc.plan.schema import ModelPlan, Plan, PricePlan
from skillc.redaction import Secret

TARGET, OPTIMIZER = "target", "optimizer"
_LIMITS = ("max_tokens", "max_completion_tokens")
_SECRET = "api_key"
# Parameters that the client adds for litellm and a DSPy LM does not take.
_NOT_SENT = ("model", "messages", "api_base", "api_key", "timeout")
_TRANSIENT = ("LMRateLimitError", "LMServerError", "LMTimeoutError", "LMTransportError", "LMLockTimeoutError")


class UserLMs:
    """The LMs of a run by role.

    Args:
        target: DSPy's configured LM; None if every predictor has its own.
        optimizer: writes the instructions; by default the target.
        student: the module; each LM of a predictor gets a role.

    Raises:
        SkillcError: a predictor has no LM.
    """

    def __init__(self, target: Any, optimizer: Any, student: Any) -> None:
        self.by_role: dict[str, Any] = {}
        self.own: dict[str, str] = {}
        for name, predictor in student.named_predictors():
            if predictor.lm is not None:
                known = next((role for role, lm in self.by_role.items() if lm is predictor.lm), None)
                role = known or f"target_{len(self.by_role) + 1}"
                self.by_role[role], self.own[name] = predictor.lm, role
            elif target is None:
                raise SkillcError(
                    f"no LM is configured for the predictor `{name}`",
                    hint="call `dspy.configure(lm=...)`",
                )
        self.by_role[TARGET] = target if target is not None else next(iter(self.by_role.values()))
        self.by_role[OPTIMIZER] = optimizer if optimizer is not None else self.by_role[TARGET]

    def plans(self, prices: Mapping[str, tuple[float, float]]) -> dict[str, ModelPlan]:
        """Return a model for each role; `prices` are dollars per million tokens of prompt and reply."""
        return {role: _plan(role, lm, prices.get(role)) for role, lm in sorted(self.by_role.items())}

    def client(self, plan: Plan, cache: Path | None, concurrency: int) -> Client:
        """Return a client that sends each role's calls to its LM."""
        lms = {_address(role, lm): lm.copy(cache=False) for role, lm in self.by_role.items()}

        async def send(sent: Mapping[str, Any]) -> Any:
            return await asyncio.to_thread(_ask, lms[sent["api_base"]], sent)

        # The LM retries too.
        return Client(
            plan,
            cache_folder=cache,
            concurrency=concurrency,
            transport=send,
            retries=RetryPolicy(attempts=2),
            secrets=[secret for lm in self.by_role.values() for secret in _secrets_of(lm)],
        )


def _plan(role: str, lm: Any, price: tuple[float, float] | None) -> ModelPlan:
    limits = [limit for name in _LIMITS if isinstance(limit := lm.kwargs.get(name), int)]
    declared = PricePlan(input=Fraction(str(price[0])), output=Fraction(str(price[1]))) if price else None
    return ModelPlan(
        role=role,
        model=str(lm.model),
        base_url=_address(role, lm),
        max_reply=max(limits, default=default_of("model", "max_reply")),
        price=declared,
    )


def _secrets_of(lm: Any) -> Iterator[Secret]:
    """Yield the key of an LM: its own, else that in the variable of its provider."""
    variable = KEY_VARIABLES.get(str(lm.model).partition("/")[0])
    key = lm.kwargs.get(_SECRET)
    if isinstance(key, str):
        yield Secret(variable or _SECRET, key)
    elif variable is not None:
        yield Secret(variable, os.environ.get(variable, ""))


def _address(role: str, lm: Any) -> str:
    settings = {name: value for name, value in lm.kwargs.items() if name != _SECRET}
    content = json.dumps([str(lm.model), type(lm).__qualname__, settings], sort_keys=True, default=str)
    return f"dspy://{role}.{hashlib.sha256(content.encode()).hexdigest()[:12]}"


def _ask(lm: Any, sent: Mapping[str, Any]) -> dict[str, Any]:
    """Make one attempt and return the reply in the OpenAI chat format.

    Raises:
        ConnectionError: a transient failure, worth another attempt.
    """
    options = {name: value for name, value in sent.items() if name not in _NOT_SENT}
    if any(name in lm.kwargs for name in _LIMITS):
        options = {name: value for name, value in options.items() if name not in _LIMITS}
    try:
        raw = lm.forward(messages=list(sent["messages"]), **options)
    except Exception as problem:
        if type(problem).__name__ in _TRANSIENT:
            raise ConnectionError(f"{type(problem).__name__}: {problem}") from problem
        raise
    choice = _get(raw, "choices")[0]
    message = _get(choice, "message")
    return {
        "choices": [
            {
                "message": {
                    "content": _get(message, "content"),
                    "tool_calls": [_plain(call) for call in _get(message, "tool_calls") or ()],
                },
                "finish_reason": _get(choice, "finish_reason"),
            }
        ],
        "usage": _plain(_get(raw, "usage")),
        "model": _get(raw, "model"),
    }


def _get(value: Any, name: str) -> Any:
    return value.get(name) if isinstance(value, Mapping) else getattr(value, name, None)


def _plain(value: Any) -> Any:
    """Return an object of a provider's class as a dict."""
    dump = getattr(value, "model_dump", None)
    if callable(dump):
        return dump()
    return dict(value) if isinstance(value, Mapping) else getattr(value, "__dict__", None)

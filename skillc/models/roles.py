"""Roles, resolved once before the first call: plan, backend, endpoint, price; and what depends on them alone."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from skillc.budget.spend import price_hint
from skillc.errors import SkillcError
from skillc.json_values import canonical_ascii
from skillc.models.backends.registry import connect
from skillc.models.calls import Call
from skillc.models.endpoint import Backend, Endpoint, Transport, secret_names
from skillc.models.ledger import Spending
from skillc.models.prices import Price, price_of
from skillc.models.serving.servers import Servers
from skillc.plan.models import put_offline, require_names, resolve_model_names
from skillc.plan.schema import ModelPlan, Plan
from skillc.text import listed

# Tokens that providers add: per call, per message, and for the system prompt of tools.
_TOKENS_A_CALL, _TOKENS_A_MESSAGE, _TOKENS_FOR_TOOLS = 64, 16, 1024
_LIMITS = ("max_tokens", "max_completion_tokens")


@dataclass(frozen=True, slots=True)
class Role:
    """One role: its plan, the backend that answers, its endpoint, its price if known, and how one attempt is sent."""

    plan: ModelPlan
    backend: Backend
    endpoint: Endpoint
    price: Price | None
    send: Transport

    def arguments(self, call: Call) -> dict[str, Any]:
        """The arguments of a call, without the address and the key; they always limit the reply.

        Each sample has its own seed: sample 0 the declared one, every other one that is derived from it.
        """
        parameters: dict[str, Any] = {**self.plan.parameters, **(call.parameters or {})}
        if type(parameters.get("seed")) is int:
            parameters["seed"] = seed_of(parameters["seed"], call.sample)
        if not any(name in parameters for name in _LIMITS):
            parameters["max_tokens"] = self.plan.max_reply
        arguments: dict[str, Any] = {
            "model": self.plan.model,
            "messages": [message.as_sent() for message in call.messages],
            **parameters,
        }
        if call.tools:
            arguments["tools"] = [dict(tool) for tool in call.tools]
        if call.response_format is not None:
            arguments["response_format"] = dict(call.response_format)
        return arguments

    def reservation(self, arguments: Mapping[str, Any]) -> Spending:
        """The most that one attempt can use: each byte of the prompt a token, the whole reply, the dearest tier."""
        prompt, reply = self.bounds(arguments)
        return Spending(1, prompt + reply, self.price.most(prompt, reply) if self.price else 0)

    def bounds(self, arguments: Mapping[str, Any]) -> tuple[int, int]:
        """The most tokens of prompt and of reply."""
        tools = arguments.get("tools")
        read = [arguments["messages"], tools, arguments.get("response_format")]
        overhead = _TOKENS_A_CALL + _TOKENS_A_MESSAGE * len(arguments["messages"]) + (_TOKENS_FOR_TOOLS if tools else 0)
        limits = [arguments[name] for name in _LIMITS if isinstance(arguments.get(name), int)]
        copies = arguments.get("n")
        replies = copies if isinstance(copies, int) and copies > 0 else 1
        return len(canonical_ascii(read, _refused)) + overhead, max(limits, default=self.plan.max_reply) * replies


def seed_of(declared: int, sample: int | tuple[int, ...]) -> int:
    """The seed of one sample; the same seed for every sample would give one reply several times.

    31 bits: what every provider takes as a seed.
    """
    if sample == 0:
        return declared
    return int.from_bytes(hashlib.sha256(f"seed {declared} {sample}".encode()).digest()[:4]) >> 1


def resolve_roles(
    plan: Plan,
    *,
    offline: bool = False,
    environ: Mapping[str, str] | None = None,
    root: Path | None = None,
    transport: Transport | None = None,
) -> dict[str, Role]:
    """All roles of a plan.

    Args:
        plan: the program.
        offline: replace every model by the rulebook.
        environ: where names, keys and addresses are looked up.
        root: the program's folder, where commands and functions of the user's own are looked for.
        transport: sends every role's attempts in place of its backend; no code of the user's own is run then.

    Raises:
        SkillcError: a name, a key, an address, a command or a function is missing, or a cap on cost meets a model
            without a known price.
    """
    known = os.environ if environ is None else environ
    plan = put_offline(plan) if offline else resolve_model_names(plan, known)
    require_names(plan)

    def role_of(model: ModelPlan) -> Role:
        backend, endpoint, own = connect(model, known, root or Path.cwd(), users=transport is None)
        return Role(model, backend, endpoint, price_of(model), transport or own)

    roles = {name: role_of(model) for name, model in plan.models.items()}
    for name, role in roles.items():
        if plan.budget.cost is not None and role.price is None:
            raise SkillcError(
                f"the budget caps the cost, and the price of `{role.plan.model}` (model `{name}`) is not known",
                hint=price_hint(role.plan),
            )
    return roles


def servers_of(
    endpoints: Iterable[Endpoint], models: Iterable[ModelPlan], root: Path, *, foreground: bool = False
) -> Servers:
    """The servers that skillc starts for these endpoints; `models` are all of the plan, whose keys no server gets.

    Raises:
        SkillcError: two roles want one model served in two ways.
    """
    launches = [(each.launch, each.key) for each in endpoints if each.launch is not None]
    hidden = secret_names(models)
    return Servers(launches, secret_names=hidden, home=root.resolve() / ".skillc" / "serve", foreground=foreground)


def call_key(role: Role, arguments: Mapping[str, Any], sample: int | tuple[int, ...], salt: str) -> str:
    """sha256 over all that decides a reply, the key of the account excepted (docs/design/resume.md).

    Raises:
        SkillcError: a value in the call is not JSON.
    """
    told = {"endpoint": role.endpoint.id, "sample": sample, "salt": salt, "sent": arguments}
    return hashlib.sha256(canonical_ascii(told, _refused).encode()).hexdigest()


def describe_roles(roles: Sequence[Role]) -> str:
    """Roles of one endpoint for a message, with their model, where it is the same, and its address."""
    many = f"model{'s' if len(roles) > 1 else ''} {listed([role.plan.role for role in roles], 'and')}"
    models = {role.plan.model for role in roles}
    of = f"`{roles[0].plan.model}` " if len(models) == 1 else ""
    return f"{many} ({of}at `{roles[0].endpoint.id}`)"


def _refused(value: Any) -> Any:
    # Not `str`: what it leaves out, as of an array, would make two calls one.
    raise SkillcError(
        f"a call holds a value of type `{type(value).__name__}`, which no request can carry",
        hint="give images as data URLs, and tools and parameters as plain JSON values",
    )

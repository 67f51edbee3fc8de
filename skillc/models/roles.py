"""Roles, resolved once before the first call: plan, backend, endpoint and price."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from skillc.budget.spend import price_hint
from skillc.dataclass import dataclass
from skillc.errors import SkillcError
from skillc.images import info_of_uri, most_image_tokens
from skillc.json_values import canonical_ascii
from skillc.models.backends.registry import connect
from skillc.models.calls import Call, Usage
from skillc.models.endpoint import Backend, Endpoint, Transport, secret_names, secrets_of, variables_in
from skillc.models.ledger import Spending
from skillc.models.prices import Price, price_of
from skillc.models.serving.servers import Servers
from skillc.plan.models import capped_roles, put_offline, require_names, resolve_model_names
from skillc.plan.schema import ModelPlan, Plan
from skillc.redaction import NOTHING, Redactor, Secret
from skillc.text import listed

# Tokens that providers add.
_TOKENS_A_CALL, _TOKENS_A_MESSAGE, _TOKENS_FOR_TOOLS = 64, 16, 1024
_LIMITS = ("max_tokens", "max_completion_tokens")


@dataclass(frozen=True, slots=True)
class Role:
    """One role.

    Attributes:
        price: None if unknown.
        send: the transport of one attempt.
        hide: redacts the secrets of all roles.
    """

    plan: ModelPlan
    backend: Backend
    endpoint: Endpoint
    price: Price | None
    send: Transport
    hide: Redactor = NOTHING

    def arguments(self, call: Call) -> dict[str, Any]:
        """Return the arguments of a call without address and key; they always limit the reply's length."""
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
        """Return the worst case of one attempt, at the price of the dearest tier."""
        usage = self.worst_case(arguments)
        return Spending(1, usage.total, self.price.most(usage.prompt, usage.completion) if self.price else 0)

    def cost(self, usage: Usage) -> int | None:
        """Return nano-dollars at list price; None if the price is unknown."""
        return self.price.cost(usage) if self.price else None

    def discounted_cost(self, usage: Usage) -> int | None:
        """Return nano-dollars with the discount for cached prompts; None if the price is unknown."""
        return self.price.discounted(usage) if self.price else None

    def worst_case(self, arguments: Mapping[str, Any]) -> Usage:
        """Return an upper bound of one attempt's usage: a token for each byte of the prompt, and the longest reply.

        An image counts by the rules of its provider (`images.most_image_tokens`), not by its bytes.
        """
        tools = arguments.get("tools")
        messages, images = _without_images(arguments["messages"], self.plan.model)
        read = [messages, tools, arguments.get("response_format")]
        overhead = _TOKENS_A_CALL + _TOKENS_A_MESSAGE * len(arguments["messages"]) + (_TOKENS_FOR_TOOLS if tools else 0)
        limits = [arguments[name] for name in _LIMITS if isinstance(arguments.get(name), int)]
        copies = arguments.get("n")
        replies = copies if isinstance(copies, int) and copies > 0 else 1
        longest = max(limits, default=self.plan.max_reply) * replies
        prompt = len(canonical_ascii(read, _reject)) + images + overhead
        return Usage(prompt=prompt, completion=longest, bound=True)


def _without_images(messages: Sequence[Mapping[str, Any]], model: str) -> tuple[list[Any], int]:
    """Return messages without the data URIs of images, and a bound of the tokens of the images."""
    if all(isinstance(message.get("content"), str) for message in messages):
        return list(messages), 0
    kept: list[Any] = []
    tokens = 0
    for message in messages:
        content = message.get("content")
        parts = []
        for part in content if isinstance(content, list) else ():
            source = part.get("image_url") if isinstance(part, Mapping) else None
            uri = source.get("url") if isinstance(source, Mapping) else None
            info = info_of_uri(uri) if isinstance(uri, str) else None
            if info is not None:
                tokens += most_image_tokens(model, info.width, info.height)
            parts.append(part if info is None else {"type": "image_url"})
        kept.append({**message, "content": parts} if parts else message)
    return kept, tokens


def seed_of(declared: int, sample: int | tuple[int, ...]) -> int:
    """Derive the seed of one sample, since equal seeds give equal replies; sample 0 has the declared one."""
    if sample == 0:
        return declared
    # 31 bits are a valid seed for every provider.
    return int.from_bytes(hashlib.sha256(f"seed {declared} {sample}".encode()).digest()[:4]) >> 1


def resolve_roles(
    plan: Plan,
    *,
    offline: bool = False,
    environ: Mapping[str, str] | None = None,
    root: Path | None = None,
    transport: Transport | None = None,
    secrets: Iterable[Secret] = (),
) -> dict[str, Role]:
    """Resolve all roles of a plan.

    Args:
        plan: the program.
        offline: replace every model by the rulebook.
        environ: where names, keys and addresses are looked up.
        root: the program's folder, where the user's commands and functions are looked up.
        transport: sends every role's attempts in place of its backend; no code of the user is run then.
        secrets: to redact besides those that the plan declares.

    Raises:
        SkillcError: a name, a key, an address, a command or a function is missing, or the cost is capped and a price
            is unknown.
    """
    known = os.environ if environ is None else environ
    plan = put_offline(plan) if offline else resolve_model_names(plan, known)
    require_names(plan)

    roles: dict[str, Role] = {}
    found = [*secrets, *(Secret(name, known.get(name, "")) for name in variables_in(plan.task.rollout.settings))]
    for name, model in plan.models.items():
        backend, endpoint, own = connect(model, known, root or Path.cwd(), users=transport is None)
        roles[name] = Role(model, backend, endpoint, price_of(model), transport or own)
        found += secrets_of(model, endpoint, known)
    hide, capped = Redactor(found), capped_roles(plan)
    roles = {name: replace(role, hide=hide) for name, role in roles.items()}
    for name, role in roles.items():
        if name in capped and role.price is None:
            raise SkillcError(
                f"the budget caps the cost, and the price of `{role.plan.model}` (model `{name}`) is not known",
                hint=price_hint(role.plan),
            )
    return roles


def declared_secrets(plan: Plan, environ: Mapping[str, str]) -> Iterator[Secret]:
    """Yield the secrets that a plan names and this environment has, without connecting to any model."""
    for name in variables_in(plan.task.rollout.settings):
        yield Secret(name, environ.get(name, ""))
    for name in sorted(secret_names(plan.models.values())):
        yield Secret(name, environ.get(name, ""))
    for model in plan.models.values():
        url = environ.get(model.base_url_env or "", "") if model.base_url is None else model.base_url
        yield from secrets_of(model, Endpoint(id="", url=url), environ)


def servers_of(
    endpoints: Iterable[Endpoint], models: Iterable[ModelPlan], root: Path, *, foreground: bool = False
) -> Servers:
    """Return the servers that skillc starts for these endpoints; no server gets the keys of `models`."""
    launches = [(each.launch, each.key) for each in endpoints if each.launch is not None]
    models = tuple(models)
    hidden = secret_names(models)
    names = hidden | {name for model in models if model.exec is not None for name in model.exec.environment}
    return Servers(
        launches,
        secret_names=hidden,
        hidden=[Secret(name, os.environ.get(name, "")) for name in sorted(names)],
        home=root.resolve() / ".skillc" / "serve",
        foreground=foreground,
    )


def call_key(role: Role, arguments: Mapping[str, Any], sample: int | tuple[int, ...], salt: str) -> str:
    """Return the SHA-256 of all that determines a reply, except the account's key (docs/design/resume.md)."""
    call = {"endpoint": role.endpoint.id, "sample": sample, "salt": salt, "sent": arguments}
    return hashlib.sha256(canonical_ascii(call, _reject).encode()).hexdigest()


def describe_roles(roles: Sequence[Role]) -> str:
    """Name the roles of one endpoint for a message, with its address, and their model if it is the same."""
    names = f"model{'s' if len(roles) > 1 else ''} {listed([role.plan.role for role in roles], 'and')}"
    models = {role.plan.model for role in roles}
    of = f"`{roles[0].plan.model}` " if len(models) == 1 else ""
    return f"{names} ({of}at `{roles[0].endpoint.id}`)"


def _reject(value: Any) -> Any:
    # `str(value)` may be shortened, as for arrays, so that two calls would share a key.
    raise SkillcError(
        f"a call contains a value of type `{type(value).__name__}`, which is not JSON",
        hint="pass images as data URLs, and tools and parameters as plain JSON values",
    )

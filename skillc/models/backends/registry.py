"""The registry of model backends, and the two that need no file: the embedded rulebook and a served vLLM.

To add a backend, write a file beside this one and add its `Backend` to `BACKENDS`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from skillc.errors import SkillcError
from skillc.models.backends.command import COMMAND
from skillc.models.backends.function import FUNCTION
from skillc.models.backends.litellm import LITELLM, send_by_litellm
from skillc.models.backends.openai import OPENAI, by_litellm, load, send
from skillc.models.endpoint import Backend, Endpoint, Transport, declared_url, key_of, normalised_of
from skillc.models.serving.launch import launch_of
from skillc.plan.models import OFFLINE_MODEL
from skillc.plan.schema import RULEBOOK, ModelPlan
from skillc.tokens import count_tokens


class RequestError(ValueError):
    """A request that the rulebook cannot answer, with the HTTP status that a provider would send."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status_code = status


async def answer_by_rulebook(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Answer as `rulebook/v1` in the form of a chat model's reply; usage is counted by `skillc.tokens`."""
    from skillc.models.rulebook import answer, answer_with_tools

    messages, name = arguments["messages"], str(arguments["model"])
    if name != OFFLINE_MODEL:
        raise RequestError(404, f"unknown model `{name}`; the embedded model is `{OFFLINE_MODEL}`")
    try:
        parameters, tools = {**arguments, **(arguments.get("extra_body") or {})}, arguments.get("tools")
        if tools:
            message = answer_with_tools(messages, tools, parameters)
        else:
            message = {"role": "assistant", "content": answer(messages, parameters)}
    except SkillcError as error:
        raise RequestError(400, str(error)) from None
    read = [str(message.get("content") or "") for message in messages] + ([json.dumps(tools)] if tools else [])
    written = [str(message["content"])] + ([json.dumps(message["tool_calls"])] if tools else [])
    return {
        "choices": [{"message": message, "finish_reason": "tool_calls" if tools else "stop"}],
        "usage": {"prompt_tokens": sum(map(count_tokens, read)), "completion_tokens": sum(map(count_tokens, written))},
        "model": OFFLINE_MODEL,
    }


def _connect_vllm(model: ModelPlan, environ: Mapping[str, str], root: Path) -> tuple[Endpoint, Transport] | None:
    if model.serve is None:
        return None
    address = declared_url(model, environ)
    key = key_of(model, environ, model.key_env)
    launch = launch_of(model, root, normalised_of(model, address) if address else None)
    # The client wraps the transport, which fills in the server's address.
    transport = send_by_litellm if by_litellm(environ) else send
    return Endpoint(launch.endpoint_id, launch.endpoint_id, key, model.key_env, launch), transport


# The first that connects answers; the last one answers for every model.
BACKENDS: tuple[Backend, ...] = (
    COMMAND,
    FUNCTION,
    Backend(
        "rulebook",
        lambda model, environ, root: (Endpoint(RULEBOOK), answer_by_rulebook) if model.provider == RULEBOOK else None,
        embedded=True,
    ),
    Backend("vllm", _connect_vllm, keeps_prefixes=True, load=load),
    OPENAI,
    LITELLM,
)


def connect(
    model: ModelPlan, environ: Mapping[str, str], root: Path, *, users: bool = True
) -> tuple[Backend, Endpoint, Transport]:
    """Find the backend that answers for a role; the user's commands and functions only if `users` is set.

    Keys, addresses and variables are looked up in `environ`, commands and functions in the program's folder `root`.
    Raises `SkillcError`, with the role and the fix, if one is missing.
    """
    for backend in BACKENDS:
        found = backend.connect(model, environ, root) if users or not backend.users else None
        if found is not None:
            return backend, *found
    raise AssertionError(f"no backend answers for `{model.model}`")

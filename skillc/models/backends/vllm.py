"""`serve = vllm {}`: a server that skillc starts, called through litellm once it answers."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from skillc.models.backends.litellm import load_litellm, send
from skillc.models.endpoint import Backend, Endpoint, Transport, declared_url, key_of, normalised_or_error
from skillc.models.serving.launch import launch_of
from skillc.plan.schema import ModelPlan


def _connect(model: ModelPlan, environ: Mapping[str, str], root: Path) -> tuple[Endpoint, Transport] | None:
    if model.serve is None:
        return None
    address = declared_url(model, environ)
    key = key_of(model, environ, model.key_env)
    launch = launch_of(model, root, normalised_or_error(model, address) if address else None)
    # The client wraps `send`, which fills in the server's address.
    return Endpoint(launch.endpoint_id, launch.endpoint_id, key, model.key_env, launch), send


VLLM = Backend("vllm", _connect, keeps_prefixes=True, load=load_litellm)

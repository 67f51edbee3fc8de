"""The registry of model backends. To add one, write a file beside this one and add its `Backend` to `BACKENDS`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from skillc.models.backends.command import COMMAND
from skillc.models.backends.function import FUNCTION
from skillc.models.backends.litellm import LITELLM
from skillc.models.backends.rulebook import RULEBOOK
from skillc.models.backends.vllm import VLLM
from skillc.models.endpoint import Backend, Endpoint, Transport
from skillc.plan.schema import ModelPlan

# The first that connects answers. The last one answers for every model.
BACKENDS: tuple[Backend, ...] = (COMMAND, FUNCTION, RULEBOOK, VLLM, LITELLM)


def connect(
    model: ModelPlan, environ: Mapping[str, str], root: Path, *, users: bool = True
) -> tuple[Backend, Endpoint, Transport]:
    """Find the backend that answers for a role.

    Args:
        model: the role's plan.
        environ: where keys, addresses and a command's variables are looked up.
        root: the program's folder.
        users: whether the user's own commands and functions may answer.

    Raises:
        SkillcError: a key, an address, a command or a function is missing; the message names the role and the fix.
    """
    for backend in BACKENDS:
        found = backend.connect(model, environ, root) if users or not backend.users else None
        if found is not None:
            return backend, *found
    raise AssertionError(f"no backend answers for `{model.model}`")

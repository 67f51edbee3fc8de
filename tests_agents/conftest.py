"""The agents that `make test-agents` installs."""

import os
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
for folder in (HERE, HERE.parent / "tests" / "models", HERE.parent / "tests" / "tasks"):
    sys.path.insert(0, str(folder))

AGENTS = Path(os.environ.get("SKILLC_AGENTS") or HERE.parent / "build" / "agents")
PROGRAMS = {
    "codex": AGENTS / "node_modules" / ".bin" / "codex",
    "opencode": AGENTS / "node_modules" / ".bin" / "opencode",
    "hermes": AGENTS / "hermes" / "bin" / "hermes",
}


@pytest.fixture(params=list(PROGRAMS))
def agent(request):
    """Name and path of each agent."""
    if not PROGRAMS[request.param].exists():
        pytest.skip(f"{request.param} is not installed: make test-agents")
    return request.param, str(PROGRAMS[request.param])

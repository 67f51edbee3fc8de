"""Engines of containers with the image that `make test-containers` makes."""

import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
for folder in ("tests/sandbox", "tests/models", "tests/tasks", "tests_agents"):
    sys.path.insert(0, str(HERE.parent / folder))

from test_sandbox import IMAGE  # noqa: E402

from skillc.sandbox.container import ENGINES  # noqa: E402
from skillc.sandbox.run import problem_of  # noqa: E402


@pytest.fixture(params=ENGINES)
def kind(request):
    """Each engine that works here."""
    problem = problem_of(request.param, IMAGE, True)
    if problem:
        pytest.skip(f"{request.param}: {problem}")
    return request.param

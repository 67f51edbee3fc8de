import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "review"))

from made_run import make_run


@pytest.fixture(scope="session")
def watched(tmp_path_factory):
    """A finished run; tests must not change it."""
    return make_run(tmp_path_factory.mktemp("watched") / "run")

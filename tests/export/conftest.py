"""A made run that the tests of exports share."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "review"))

from made_run import MARKUP, make_run


@pytest.fixture(scope="session")
def exported(tmp_path_factory):
    """A finished run with markup in every text; tests must not change it."""
    return make_run(tmp_path_factory.mktemp("made") / "run", steps=3, examples=30, markup=MARKUP)

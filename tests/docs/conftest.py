import sys
from pathlib import Path

import pytest

# `docs.making` writes the generated pages.
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))


def pytest_addoption(parser):
    parser.addoption(
        "--update-docs",
        action="store_true",
        help="write what commands print into the pages; name the folder: pytest tests/docs --update-docs -m ",
    )


@pytest.fixture
def update(request):
    return request.config.getoption("--update-docs", default=False)

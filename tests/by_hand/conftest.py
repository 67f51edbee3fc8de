import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
sys.path.insert(0, str(Path(__file__).parent))


def pytest_addoption(parser):
    parser.addoption(
        "--update-recording",
        action="store_true",
        help="record the compile again; name the folder: pytest tests/by_hand --update-recording",
    )


@pytest.fixture
def update(request):
    return request.config.getoption("--update-recording", default=False)

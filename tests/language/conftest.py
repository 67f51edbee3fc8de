from __future__ import annotations

from pathlib import Path

import pytest

HERE = Path(__file__).parent


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden",
        action="store_true",
        help="write what is found into the golden programs; name the folder: pytest tests/language --update-golden",
    )


@pytest.fixture
def programs() -> list[Path]:
    return sorted((HERE / "programs").glob("*.skill"))

import pytest


def pytest_addoption(parser):
    parser.addoption(
        "--update-docs",
        action="store_true",
        help="write what commands print into the pages, and write the generated pages; name the folder: pytest tests/docs --update-docs",
    )


@pytest.fixture
def update(request):
    return request.config.getoption("--update-docs", default=False)

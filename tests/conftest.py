"""Settings of the whole suite."""

from collections import Counter

import pytest
from forked import share_server
from hypothesis import settings
from thorough import THOROUGH, example_count

# Machines are shared: how long one example takes says nothing about the code.
# `make test` tries the same examples for the same code, so that it passes or fails for a commit; `make test-thorough`
# tries new ones.
settings.register_profile("skillc", deadline=None, max_examples=example_count(100), derandomize=not THOROUGH)
settings.load_profile("skillc")
share_server()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark all cases of a test but the number that its mark `quick_cases` names as thorough."""
    seen: Counter[str] = Counter()
    for item in items:
        limit = item.get_closest_marker("quick_cases")
        if limit:
            test = item.nodeid.split("[")[0]
            seen[test] += 1
            if seen[test] > limit.args[0]:
                item.add_marker(pytest.mark.thorough)

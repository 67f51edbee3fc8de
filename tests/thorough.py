"""What only `make test-thorough` runs: marked tests, and the full number of examples of each property test."""

import os

THOROUGH = bool(os.environ.get("SKILLC_THOROUGH"))


def example_count(count: int) -> int:
    """Return the number of examples of a property test: a fifth of the full `count` in `make test`, at least 5."""
    return count if THOROUGH else min(count, max(5, count // 5))

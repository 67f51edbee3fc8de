"""The rest of these tests, under the lark that `SKILLC_LARK` names: `SKILLC_LARK=1.2.2 pytest tests/language`."""

from __future__ import annotations

import os

import lark
import pytest

WANTED = os.environ.get("SKILLC_LARK")


@pytest.mark.skipif(not WANTED, reason="SKILLC_LARK is not set")
def test_this_is_the_lark_that_was_asked_for() -> None:
    assert lark.__version__ == WANTED

"""The examples of the codes of `check --data` show what their pages say."""

from __future__ import annotations

import pytest

from skillc.code_pages import findings
from skillc.diagnostics.codes import CODES
from skillc.diagnostics.diagnostic import Severity

FOUND = [code for code in CODES.values() if code.found_by == "data"]


@pytest.mark.parametrize("code", FOUND, ids=lambda code: code.code)
def test_the_failing_example_shows_the_code_and_the_mended_one_does_not(code):
    bad, good = findings(code), findings(code, mended=True)
    assert code.code in {each.code for each in bad}
    assert code.code not in {each.code for each in good}
    # So few examples can pay for no run; everything else about the mended one is right.
    assert {each.code for each in good if each.severity is Severity.ERROR} <= {"SK501"}
    ours = [each for each in good if each.code in {code.code for code in FOUND}]
    assert [each for each in ours if each.severity is Severity.WARNING] == []

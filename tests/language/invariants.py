"""What holds of every check, whatever the text was."""

from __future__ import annotations

import json
import re

from skillc.diagnostics import formats, render
from skillc.diagnostics.codes import CODES
from skillc.diagnostics.diagnostic import Diagnostic
from skillc.language.checked import Checked

_CONTROL = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
_PAINT = re.compile(r"\x1b\[(?:0|1|1;3[1346])m")
_RENDERED = 12


def must_hold(checked: Checked) -> None:
    """Asserts what is promised of any check: places, codes, wording, and that every format can show it."""
    for found in checked.diagnostics:
        _must_be_placed(found)
        assert found.code in CODES, found.code
        assert not found.message.endswith("."), found.message
        assert "\n" not in found.message + (found.hint or ""), found
    shown = checked.diagnostics[:_RENDERED]
    for found in shown:
        for line in (*render.text(found).split("\n"), render.concise(found)):
            assert not _CONTROL.search(line), ascii(line)
        assert not _CONTROL.search(_PAINT.sub("", render.text(found, color=True))), ascii(found.message)
    json.dumps(formats.as_json(shown))


def _must_be_placed(found: Diagnostic) -> None:
    for label in (found.primary, *found.secondary):
        assert 0 <= label.span.start <= label.span.end <= len(label.source.text), found
    if found.fix is not None:
        assert 0 <= found.fix.span.start <= found.fix.span.end <= len(found.primary.source.text), found

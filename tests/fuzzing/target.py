"""What atheris calls, by `make fuzz`: `python tests/fuzzing/target.py text CORPUS -max_total_time=600`.

`text` checks each input as a text, `bytes` as the bytes of a file, through what reads files. Whatever is raised, takes
longer than `-timeout` or breaks an invariant of `tests/language/invariants.py` is a crash.
"""

from __future__ import annotations

import sys
from pathlib import Path

import atheris

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "language")]

with atheris.instrument_imports(include=["skillc"], enable_loader_override=False):
    from invariants import must_hold

    from skillc.diagnostics.suggest import suggest  # noqa: F401
    from skillc.frontend import check
    from skillc.syntax.files import SourceError, decode
    from skillc.syntax.mistakes import recover  # noqa: F401 -- imported late otherwise, and not instrumented
    from skillc.syntax.source import Source


def text_input(data: bytes) -> None:
    """Any text, with unpaired surrogates for what is no UTF-8."""
    must_hold(check(Source("fuzz.skill", data.decode("utf-8", "surrogateescape"))))


def bytes_input(data: bytes) -> None:
    """A file of any bytes."""
    try:
        text = decode("fuzz.skill", data)
    except SourceError:
        return
    must_hold(check(Source("fuzz.skill", text)))


def main() -> None:
    """Fuzzes until libFuzzer's own arguments end it."""
    target = {"text": text_input, "bytes": bytes_input}[sys.argv.pop(1)]
    atheris.Setup(sys.argv, target)
    atheris.Fuzz()


if __name__ == "__main__":
    main()

"""Programs that say themselves what is wrong with them.

Below a line with findings stands one comment for each: `# E 14: message [SK017] -- hint`, E, W or N for the severity
and 14 for the column. Below and not behind, for a comment behind an open string would belong to the string.
`pytest tests/language --update-golden` rewrites the comments; read the diff. Programs in `syntax` are parsed only,
all others go through the whole check.
"""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path

import pytest

from skillc.diagnostics.diagnostic import Diagnostic
from skillc.syntax.files import read_source
from skillc.syntax.parser import parse
from skillc.syntax.source import Source

HERE = Path(__file__).parent / "golden"
EXPECTED = re.compile(r"[ \t]*# [EWN] \d+: .*")


def _diagnose(path: Path) -> tuple[Diagnostic, ...]:
    source = read_source(path)
    if "syntax" in path.relative_to(HERE).parts:
        return parse(source).diagnostics
    from skillc.frontend import check
    from skillc.language.modules import Loader

    return check(source, Loader(path.parent)).diagnostics


def _commented(path: Path) -> str:
    """The file with the comments that it should have."""
    lines = path.read_text("utf-8").split("\n")
    found: defaultdict[int, list[str]] = defaultdict(list)
    for each in _diagnose(path):
        assert each.primary.source.name == str(path)
        line, column = each.primary.source.position(each.primary.span.start)
        hint = f" -- {each.hint}" if each.hint else ""
        found[line].append(f"# {each.severity.name[0]} {column}: {each.message} [{each.code}]{hint}")
    kept: list[str] = []
    for number, line in enumerate(lines, 1):
        if not EXPECTED.fullmatch(line):
            kept.append(line)
        if number in found:
            kept += found[number]
    return "\n".join(kept)


def _plain(text: str) -> list[str]:
    return [line for line in text.split("\n") if not EXPECTED.fullmatch(line)]


@pytest.mark.parametrize("path", sorted(HERE.rglob("*.skill")), ids=lambda path: str(path.relative_to(HERE)))
def test_golden(path: Path, request: pytest.FixtureRequest) -> None:
    expected = path.read_text("utf-8")
    actual = _commented(path)
    if request.config.getoption("--update-golden"):
        for _ in range(5):
            path.write_text(actual, "utf-8")
            actual = _commented(path)
        return
    assert _plain(actual) == _plain(expected)
    assert actual == expected


@pytest.mark.parametrize("path", sorted((HERE / "syntax").glob("*.skill")), ids=lambda path: path.stem)
def test_a_safe_fix_mends_what_it_was_offered_for(path: Path) -> None:
    text = path.read_text("utf-8")
    for each in parse(Source("a", text)).diagnostics:
        if each.fix and each.fix.safe:
            start, end = each.fix.span.start, each.fix.span.end
            after = parse(Source("a", text[:start] + each.fix.text + text[end:])).diagnostics
            place = (each.code, each.primary.span.start)
            assert place not in {(d.code, d.primary.span.start) for d in after}, each

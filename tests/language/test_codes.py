"""Every code has a page, and its examples do what the page says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from skillc.language.codes import CODES, Code
from skillc.language.parser import parse
from skillc.language.source import Source

SYNTAX = [code for code in CODES.values() if code.stage == "syntax"]
LATER = [code for code in CODES.values() if code.stage != "syntax" and code.bad]
STAGES = {
    "0": "syntax",
    "1": "modules",
    "2": "names",
    "3": "types",
    "4": "data",
    "5": "gates",
    "6": "models",
    "9": "internal",
}


def found(code: Code, text: str) -> set[str]:
    source = Source("example.skill", text)
    if code.stage == "syntax":
        return {each.code for each in parse(source).diagnostics}
    from skillc.language.check import check
    from skillc.language.modules import Loader

    return {each.code for each in check(source, Loader(Path("."))).diagnostics}


@pytest.mark.parametrize("code", SYNTAX, ids=lambda code: code.code)
def test_examples_of_syntax(code: Code) -> None:
    others = {"SK002"} if code.code == "SK011" else set()  # a hundred mistakes of some kind it takes
    assert found(code, code.bad) == {code.code} | others
    assert found(code, code.good) == set()


@pytest.mark.parametrize("code", LATER, ids=lambda code: code.code)
def test_examples_of_later_stages(code: Code) -> None:
    assert code.code in found(code, code.bad)
    assert code.code not in found(code, code.good)


@pytest.mark.parametrize("code", CODES.values(), ids=lambda code: code.code)
def test_pages(code: Code) -> None:
    assert re.fullmatch(r"SK\d{3}", code.code)
    assert STAGES[code.code[2]] == code.stage
    assert code.title
    assert not code.title.endswith(".")
    assert code.explanation.endswith(".")
    assert bool(code.bad) == bool(code.good)


def test_every_code_in_use_is_registered() -> None:
    root = Path(__file__).parents[2] / "skillc"
    used = set()
    for path in root.rglob("*.py"):
        used |= set(re.findall(r'"(SK\d{3})"', path.read_text("utf-8")))
    assert {code for code in used if code.startswith("SK0")} - set(CODES) == set()

"""Every code has a page, and its examples do what the page says when they are run."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from skillc.code_pages import FOLDER, example_finding, findings, format_examples, pages, plain
from skillc.diagnostics.codes import CODES, RETIRED, Code
from skillc.diagnostics.diagnostic import Severity
from skillc.versions.change import RULES

ROOT = Path(__file__).parents[2]
# Mistakes of skillc itself, which no program is meant to show, and what takes two versions of a program.
ELSEWHERE = ("internal", "versions")
# Codes that no folder can show: a file that can't be read, and what `check` always reports first under another code.
PACKAGED = {"SK113", "SK114", "SK115", "SK116", "SK117", "SK119", "SK120"}  # `test_skill_packages.py` shows them
UNSHOWN = {"SK040", "SK121", *PACKAGED}
EXAMPLES = [code for code in CODES.values() if code.bad]


@pytest.mark.parametrize("code", EXAMPLES, ids=lambda code: code.code)
def test_the_failing_example_shows_the_code_and_the_fixed_one_is_right(code: Code) -> None:
    code = format_examples(code)
    bad, good = findings(code), findings(code, fixed=True)
    assert code.code in {each.code for each in bad}
    assert code.code not in {each.code for each in good}
    # A page shows too few examples to pay for a run.
    poor = {"SK501"} if code.found_by == "data" else set()
    assert {each.code for each in good if each.severity is Severity.ERROR} <= poor
    if code.found_by == "data":
        warned = {each.code for each in good if each.severity is Severity.WARNING}
        assert not warned & {each.code for each in EXAMPLES if each.found_by == "data"}


@pytest.mark.parametrize("code", [c for c in EXAMPLES if c.stage == "syntax"], ids=lambda code: code.code)
def test_examples_of_syntax_show_one_thing(code: Code) -> None:
    code = format_examples(code)
    # A hundred mistakes of some kind it takes; what is suppressed in vain is found too.
    others = {"SK011": {"SK002"}, "SK044": {"SK303"}}.get(code.code, set())
    if code.code in ("SK041", "SK042", "SK043"):
        others = {"SK409"}
    assert {each.code for each in findings(code)} == {code.code} | others
    assert findings(code, fixed=True) == ()


def test_what_breaking_says_of_two_programs_has_an_example() -> None:
    # A program that is gone, and data that can't be compared or is another, take more than two programs.
    more = {"program-removed", "data-not-compared", "data-changed"}
    assert {rule.name for rule in RULES.values() if not CODES[rule.code].bad} == more


def test_codes_without_an_example_are_few_and_say_why() -> None:
    assert {code.code for code in CODES.values() if not code.bad and code.stage not in ELSEWHERE} == UNSHOWN
    for code in UNSHOWN:
        assert re.search(r"so there is no example|because it needs an installed package", CODES[code].explanation)


@pytest.mark.parametrize("code", CODES.values(), ids=lambda code: code.code)
def test_pages(code: Code) -> None:
    assert re.fullmatch(r"SK\d{3}", code.code)
    assert code.title
    assert not code.title.endswith(".")
    assert code.explanation.endswith(".")
    assert bool(code.bad) == bool(code.good)
    assert code.bad or not code.files
    assert set(code.fixed_files) <= set(code.files)
    assert (code.bad, code.files) != (code.good, {**code.files, **code.fixed_files}) or not code.bad


@pytest.mark.parametrize("code", EXAMPLES[::7], ids=lambda code: code.code)
def test_a_page_for_a_terminal(code: Code) -> None:
    code = format_examples(code)
    finding = example_finding(code)
    assert finding is not None
    page = plain(code, finding)
    assert code.title in page
    assert f"{finding.severity}[{code.code}]" in page
    assert "/tmp" not in page
    # A program and a message are as long as they are.
    prose = [line for line in page.splitlines() if not line.startswith((" ", finding.severity))]
    assert all(len(line) < 140 for line in prose)


def test_the_pages_of_the_documentation_are_in_step() -> None:
    expected = pages()
    folder = ROOT / FOLDER
    assert sorted(f"{FOLDER}/{path.name}" for path in folder.iterdir()) == sorted(expected), "run `make pages`"
    for path, text in expected.items():
        assert (ROOT / path).read_text("utf-8") == text, f"{path}: run `make pages`"


def test_every_code_in_use_is_registered_and_every_registered_code_is_in_use() -> None:
    used = set()
    for path in (ROOT / "skillc").rglob("*.py"):
        if "codes" not in path.parts:
            used |= set(re.findall(r'"(SK\d{3})"', path.read_text("utf-8")))
    assert used == set(CODES)
    assert not set(CODES) & set(RETIRED)
    assert set(RETIRED.values()) <= set(CODES)

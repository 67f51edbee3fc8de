"""SARIF and the annotations of GitHub: what other tools are given."""

from __future__ import annotations

import json
from pathlib import Path
from urllib.parse import unquote

import pytest
from checking import program
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft4Validator

from skillc.diagnostics.codes import CODES
from skillc.diagnostics.diagnostic import Diagnostic, Fix, Label, Severity, Suppressed
from skillc.diagnostics.formats import annotation, log
from skillc.frontend import check
from skillc.language.checked import Checked
from skillc.language.modules import Loader
from skillc.syntax.source import Source, Span

HERE = Path(__file__).parent
SCHEMA = json.loads((HERE / "sarif" / "sarif-2.1.0-rtm.5.json").read_text("utf-8"))
VALID = Draft4Validator(SCHEMA)
ROOT = Path("/work place/ü")


def valid(found: dict) -> dict:
    """The only run of a log, after validation."""
    VALID.validate(json.loads(json.dumps(found)))
    (run,) = found["runs"]
    return run


def checked(text: str, name: str = "main.skill") -> Checked:
    return check(Source(name, text), Loader(HERE))


def test_a_log_of_golden_programs_is_valid() -> None:
    found = [
        each
        for path in (HERE / "golden").rglob("*.skill")
        for each in check(Source(str(path), path.read_text("utf-8")), Loader(path.parent)).diagnostics
    ]
    run = valid(log(found, version="1.2.3", root=HERE))
    assert len(run["results"]) == len(found)
    rules = run["tool"]["driver"]["rules"]
    for result, each in zip(run["results"], found, strict=True):
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"] == each.code
        assert ("fixes" in result) == (each.fix is not None)
        assert ("relatedLocations" in result) == bool(each.secondary)
    assert run["tool"]["driver"]["semanticVersion"] == "1.2.3"
    assert {"error", "warning", "note"} == {result["level"] for result in run["results"]}


def test_a_log_without_findings_is_valid() -> None:
    assert valid(log([], version="1.0.0"))["results"] == []


def test_columns_count_utf_16_code_units() -> None:
    source = Source("a.skill", 'x\nabout = "😀é" + wrong\n')
    start = source.text.index("wrong")
    found = Diagnostic("SK204", "m", Label(source, Span(start, start + 5)), fix=Fix(Span(start, start + 5), "right"))
    run = valid(log([found], version="1.0.0", root=ROOT))
    assert run["columnKind"] == "utf16CodeUnits"
    (result,) = run["results"]
    region = result["locations"][0]["physicalLocation"]["region"]
    line = source.line(2).encode("utf-16-le")
    assert line[2 * (region["startColumn"] - 1) : 2 * (region["endColumn"] - 1)].decode("utf-16-le") == "wrong"
    (replacement,) = result["fixes"][0]["artifactChanges"][0]["replacements"]
    assert replacement["deletedRegion"] == region
    assert replacement["insertedContent"]["text"] == "right"


def uri(name: str) -> str:
    found = Diagnostic("SK001", "m", Label(Source(name, "x"), Span(0, 1)))
    run = valid(log([found], version="1.0.0", root=ROOT))
    return run["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("a.skill", "a.skill"),
        ("the lab/ä#1%.skill", "the%20lab/%C3%A4%231%25.skill"),
        ("./a.skill", "a.skill"),
        ("/work place/ü/below/a.skill", "below/a.skill"),
        ("/elsewhere/a b.skill", "file:///elsewhere/a%20b.skill"),
        ("../a.skill", "file:///work%20place/a.skill"),
        ("below/../a.skill", "a.skill"),
    ],
)
def test_files_are_named_by_relative_addresses_where_they_can_be(name: str, expected: str) -> None:
    assert uri(name) == expected


def test_what_is_suppressed_is_a_result_with_its_reason() -> None:
    found = checked(program("metric close = f1(reply)  # skillc: ignore[SK409] the report shows it\nmetric open = 1"))
    assert len(found.suppressed) == 1
    run = valid(log(found.diagnostics, found.suppressed, version="1.0.0"))
    *others, last = run["results"]
    assert others
    assert all(each["suppressions"] == [] for each in others)
    (suppression,) = last["suppressions"]
    assert suppression["kind"] == "inSource"
    assert suppression["justification"] == "the report shows it"
    assert suppression["location"]["physicalLocation"]["region"]["startColumn"] == 27


def test_every_rule_has_its_page() -> None:
    source = Source("a.skill", "x")
    found = [Diagnostic(code, "m", Label(source, Span(0, 1))) for code in CODES]
    for rule in valid(log(found, version="1.0.0"))["tool"]["driver"]["rules"]:
        assert CODES[rule["id"]].title == rule["shortDescription"]["text"]
        assert CODES[rule["id"]].explanation.strip() in rule["help"]["markdown"]


def test_annotations() -> None:
    source = Source("a,b:c%.skill", "one\ntwo three\n")
    found = Diagnostic("SK204", "100 % `a, b`: no", Label(source, Span(8, 13)), hint="write `x`")
    assert annotation(found) == (
        "::error file=a%2Cb%3Ac%25.skill,line=2,col=5,endLine=2,endColumn=10,title=SK204 unknown name"
        "::100 %25 `a, b`: no%0Awrite `x`"
    )
    note = Diagnostic("SK409", "m", Label(source, Span(0, 13)), Severity.NOTE)
    assert annotation(note).startswith("::notice file=a%2Cb%3Ac%25.skill,line=1,endLine=2,title=SK409 ")


def test_a_file_that_cannot_be_read_has_no_region() -> None:
    found = Diagnostic("SK040", "there is no file `a`", Label(Source("a", ""), Span(0, 0)))
    (result,) = valid(log([found], version="1.0.0"))["results"]
    assert "region" not in result["locations"][0]["physicalLocation"]
    assert annotation(found).startswith("::error file=a,line=1,")


@given(st.text(max_size=40), st.text(max_size=20), st.integers(0, 40), st.integers(0, 40))
@settings(deadline=None)
def test_any_finding_can_be_written(text: str, name: str, a: int, b: int) -> None:
    a, b = sorted((min(a, len(text)), min(b, len(text))))
    source = Source(name.replace("\0", "") or "a", text)
    found = Diagnostic("SK204", text or "m", Label(source, Span(a, b), text), hint=text, fix=Fix(Span(a, b), text))
    waived = Suppressed(found, text or "r", found.primary)
    run = valid(log([found], [waived], version="1.0.0", root=ROOT))
    address = run["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
    assert address.isascii()
    assert unquote(address)
    line = annotation(found)
    assert "\n" not in line
    assert "\r" not in line

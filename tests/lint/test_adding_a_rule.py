"""A lint rule is one function and one entry of a code, as "How to add" says: everything else follows."""

import pytest
from package_copy import copy_package, run_copy

RULE = '''

@rule(ProgramFacts)
def short_names(facts: ProgramFacts) -> Iterator[Diagnostic]:
    """Metrics with names of one letter."""
    for metric in facts.checked.metrics:
        if len(metric.name) == 1:
            yield note("SK499", metric, f"the name `{metric.name}` says little", "write a word")
'''
CODE = """    Code(
        499,
        "a metric with a name of one letter",
        "Reports show metrics by their names.",
        program("metric m = f1(answer)"),
        program("metric close = f1(answer)"),
    ),
"""
RUN = """
import json, sys
from click.testing import CliRunner
from skillc.cli import skillc
from skillc.diagnostics.codes import CODES
code = CODES["SK499"]
found = {}
for name, text in {
    "bad": code.bad,
    "good": code.good,
    "ignored": code.bad.replace("f1(answer)", "f1(answer)  # skillc: ignore[SK409, SK499] a test"),
    "idle": code.good.replace("f1(answer)", "f1(answer)  # skillc: ignore[SK409, SK499] a test"),
}.items():
    open("x.skill", "w").write(text)
    out = json.loads(CliRunner().invoke(skillc, ["check", "x.skill", "--format", "json"]).stdout)
    found[name] = [each["code"] for each in out["diagnostics"]]
found["explain"] = CliRunner().invoke(skillc, ["explain", "SK499"]).stdout
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    folder = tmp_path_factory.mktemp("added")
    copy_package(folder)
    rules, codes = folder / "skillc/lint/declarations.py", folder / "skillc/diagnostics/codes/data.py"
    rules.write_text(rules.read_text() + RULE)
    head, declared, codes_and_rest = codes.read_text().partition("_DECLARED = (")
    before, end, rest = codes_and_rest.partition("\n)\n")
    codes.write_text(f"{head}{declared}{before}\n{CODE.rstrip()}{end}{rest}")
    return run_copy(folder, RUN)


def test_check_reports_it_and_leaves_a_sound_program_alone(found):
    assert "SK499" in found["bad"]
    assert "SK499" not in found["good"]


def test_a_comment_suppresses_it_and_is_reported_where_it_does_not(found):
    assert found["ignored"] == []
    assert found["idle"] == ["SK045"]


def test_explain_shows_its_page(found):
    assert "note[SK499]: the name `m` says little" in found["explain"]

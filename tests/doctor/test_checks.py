"""What is installed, what it costs, and whether the disk suffices."""

from __future__ import annotations

import json
from collections import namedtuple
from dataclasses import replace
from fractions import Fraction
from io import StringIO
from pathlib import Path

import pytest
from model_plans import model, plan_of
from rich.console import Console

from skillc.budget.bounds import bounds
from skillc.budget.spend import Extent, Sizes
from skillc.doctor import checks, machine
from skillc.doctor.checks import check_disk, check_keys, check_packages, check_prices, installed_version, most_written
from skillc.doctor.report import Finding, as_json, as_text, status_of
from skillc.language.loop import OptimizePlan
from skillc.models.prices import price_table
from skillc.plan.schema import PricePlan

SIZES = Sizes(train=100, validation=50, test=100, inputs=Extent(60, 200), outputs=Extent(3, 5))


def by_name(findings: object) -> dict[str, Finding]:
    return {finding.what: finding for finding in findings}  # type: ignore[attr-defined]


def test_what_skillc_needs_is_installed_here() -> None:
    found = by_name(check_packages(None))
    assert {"python", "skillc", "dspy", "litellm", "jinja2", "diskcache", "gepa", "optuna"} <= set(found)
    assert all(finding.level == "ok" for name, finding in found.items() if name not in ("gepa", "optuna", "cache"))


def test_a_package_that_is_missing_or_too_old_comes_with_the_command() -> None:
    versions = {"dspy": "3.3.9", "jinja2": None}
    found = by_name(check_packages(None, lambda name: versions.get(name, installed_version(name))))
    assert (found["dspy"].level, found["jinja2"].level) == ("missing", "missing")
    assert "3.3.9" in found["dspy"].detail
    assert str(found["dspy"].fix).startswith('pip install "dspy')
    assert str(found["jinja2"].fix).startswith('pip install "jinja2')


@pytest.mark.parametrize(("method", "package"), [("gepa", "gepa"), ("miprov2", "optuna")])
def test_an_extra_is_missing_only_where_the_program_needs_it(method: str, package: str) -> None:
    plan = plan_of().model_copy(update={"optimize": OptimizePlan(method=method)})  # type: ignore[arg-type]
    needed = by_name(check_packages(plan, lambda name: None))[package]
    assert (needed.level, needed.fix) == ("missing", f'pip install "skillc[{method}]"')
    assert by_name(check_packages(plan_of(), lambda name: None))[package].level == "note"
    assert by_name(check_packages(None, lambda name: "1.0"))[package].level == "ok"


def test_keys_are_named_and_never_shown() -> None:
    found = check_keys({"OPENAI_API_KEY": "sk-secret", "HOME": "/", "GROQ_API_KEY": ""})
    assert found.detail == "set: OPENAI_API_KEY"
    assert check_keys({}).level == "note"


def test_prices_of_each_role() -> None:
    plan = plan_of(
        model("cheap", name="rulebook/v1", base_url=None),
        model("declared", price=PricePlan(input=Fraction(1), output=Fraction(4))),
        model("unknown", name="openai/own-model"),
        model("agent", name="exec/agent", price=PricePlan(input=Fraction(0), output=Fraction(0), call=Fraction(1, 2))),
    )
    found = by_name(check_prices(plan))
    assert "free" in found["cheap"].detail
    assert "$1.00 in, $4.00 out" in found["declared"].detail
    assert found["unknown"].level == "note"
    assert found["agent"].detail == "`exec/agent`: $0.50 a call"
    capped = plan.model_copy(update={"budget": replace(plan.budget, cost=Fraction(3))})
    assert by_name(check_prices(capped))["unknown"].level == "missing"


def test_the_disk_against_what_the_plan_expects(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = plan_of(epochs=2)
    whole = bounds(plan, SIZES, price_table(plan))
    need = most_written(plan, whole)
    assert need > whole.total.estimate.calls * 1000
    enough = check_disk(plan, tmp_path / ".skillc", whole)
    assert enough.level == "ok"
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(machine.shutil, "disk_usage", lambda path: usage(10**12, 0, need - 1))
    full = check_disk(plan, tmp_path / ".skillc", whole)
    assert full.level == "missing"
    assert f"skillc cache prune {tmp_path}" in str(full.fix)
    capped = plan_of(epochs=2, calls=10)
    assert most_written(capped, whole) < need
    assert check_disk(plan, tmp_path / ".skillc", None).level == "note"


def test_a_folder_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks.os, "access", lambda path, mode: False)
    found = check_disk(plan_of(), tmp_path / ".skillc", None)
    assert (found.level, found.fix) == ("missing", f"chmod u+w {tmp_path}")


def test_the_report_says_each_finding_and_how_much_is_missing() -> None:
    findings = [
        Finding("installed", "ok", "python", "3.11", "never said"),
        Finding("models", "missing", "target", "its key is missing: [not set]", "export KEY=..."),
    ]
    out = StringIO()
    Console(file=out, width=100).print(as_text(findings, 100), soft_wrap=True)
    said = out.getvalue()
    assert "1 thing is missing" in said
    assert "export KEY=..." in said
    assert "[not set]" in said
    assert "never said" not in said
    told = as_json(findings)
    assert json.loads(json.dumps(told)) == told
    assert told["complete"] is False
    assert (status_of(findings), status_of(findings[:1])) == (1, 0)


VENV = "/home/somebody/projects/support tickets/a rather long folder/.venv-vllm"
MAKE = f"python3 -m venv {VENV} && {VENV}/bin/pip install vllm"


@pytest.mark.parametrize("width", [40, 60, 80, 200])
def test_a_command_has_a_line_of_its_own_however_narrow_the_terminal(width: int) -> None:
    findings = [
        Finding("installed", "missing", "vllm", "there is no vLLM", f"make one: `{MAKE}`; or say: `export A=b`"),
        Finding("installed", "missing", "gepa", "not installed", 'pip install "skillc[gepa]"'),
        Finding("disk", "missing", "weights of `serve` of `target`", f"none in {VENV}/x", "say `max_len = 9`"),
    ]
    out = StringIO()
    Console(file=out, width=width).print(as_text(findings, width), soft_wrap=True)
    lines = [line.strip() for line in out.getvalue().splitlines()]
    for command in (MAKE, "export A=b", 'pip install "skillc[gepa]"'):
        assert command in lines
    assert "make one:" in lines and "or say:" in lines and "say `max_len = 9`" in lines
    assert "folder/.venv-vllm/x" in " ".join(lines)
    prose = [line for line in out.getvalue().splitlines() if MAKE not in line and "/.venv" not in line]
    assert all(len(line) <= max(width, 45) for line in prose)

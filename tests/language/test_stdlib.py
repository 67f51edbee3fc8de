"""The standard library is written in the language, and what it calls is expanded. `tests/library` measures it."""

from __future__ import annotations

from pathlib import Path

import pytest
from checking import clean, gate, metric, program

from skillc.files import shipped_folder
from skillc.frontend import check
from skillc.gates.terms import show_term
from skillc.language.modules import Loader
from skillc.syntax.files import read_source
from skillc.syntax.parser import parse

MODULES = sorted(shipped_folder("stdlib").glob("*.skill"))

CALLS = {
    "gates.strict": ("correct", "candidate.correct > incumbent.correct"),
    "gates.no_regression": ("correct, by = product", "regressed(correct, by = product) <= 5%"),
    "gates.sure": ("correct", "confidence(candidate.correct > incumbent.correct) >= 95%"),
    "gates.evident": ("correct", "e_value(candidate.correct > incumbent.correct, over = run) >= 20"),
    "gates.keeps": (
        "correct",
        "candidate.correct >= incumbent.correct - 1% and candidate.correct >= initial.correct",
    ),
    "gates.fair": (
        "correct, product",
        "worst(candidate.correct, by = product) >= worst(incumbent.correct, by = product) - 2%",
    ),
    "gates.small_step": ("", "change(candidate) <= 30%"),
    "gates.compact": ("2k tokens", "tokens(candidate) <= 2000 tokens"),
    "gates.own_words": ("10%", "overlap(candidate) <= 10%"),
    "gates.cheap": ("", "cost(candidate) <= 1.1 * cost(incumbent)"),
    "gates.cures": ("correct", "improved(correct, on = batch) > 0"),
    "gates.short": ("reply, 300 tokens", "clamp(1 - tokens(reply) / 300 tokens, 0, 1)"),
    "text.short": ("reply, 300 tokens", "clamp(1 - tokens(reply) / 300 tokens, 0, 1)"),
    "text.within": ("reply, 3 tokens, 9 tokens", "tokens(reply) >= 3 tokens and tokens(reply) <= 9 tokens"),
    "text.length": ("reply, 9 tokens", "clamp(tokens(reply) / 9 tokens, 0, 1)"),
    "text.avoids": ('reply, ["as an AI", "sorry"]', 'mentions(reply, ["as an AI", "sorry"]) == 0'),
    "numbers.near": ("reply, 10", "1 - relative_error(reply, scale = 10)"),
    "classification.near_miss": ("team, 30%", "max(exact_match(team), 0.3 * (ordinal_error(team, most = 2) < 1))"),
    "extraction.key_fields": (
        'reply, ["date"], 70%',
        '0.7 * json_fields(reply, fields = ["date"]) + (1 - 70%) * json_fields(reply)',
    ),
    "extraction.verbatim": ("reply, ticket", "covers(ticket, reply)"),
    "scores.blend": ("correct, f1(reply), 80%", "0.8 * correct + (1 - 80%) * f1(reply)"),
    "scores.only_if": ('correct, team == "billing"', 'correct * (team == "billing")'),
    "scores.less": ("correct, urgent", "max(correct - 0.5 * urgent, 0)"),
}


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
def test_a_module_checks_clean_and_documents_all_that_it_declares(path: Path) -> None:
    checked = check(read_source(path), Loader(path.parent))
    assert checked.diagnostics == ()
    assert checked.library
    declared = [s for s in parse(read_source(path)).program.statements if hasattr(s, "parameters")]
    assert declared
    for statement in declared:
        assert statement.doc, statement.words


@pytest.mark.parametrize("name", CALLS)
def test_a_call_means_what_its_documentation_says(name: str) -> None:
    arguments, shown = CALLS[name]
    module, _, function = name.partition(".")
    text = shipped_folder("stdlib").joinpath(f"{module}.skill").read_text("utf-8")
    kind = "gate" if f"gate {function}(" in text else "metric"
    checked = clean(program(f"{kind} called = {name}({arguments})", use=f"use std.{module}"))
    found = gate(checked, "called") if kind == "gate" else metric(checked, "called")
    assert show_term(found.term) == shown

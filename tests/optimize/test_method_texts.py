"""What a method writes comes back into the sections that may change, and into nothing else."""

import inspect
from dataclasses import replace

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from skillc.document.skill import document_of
from skillc.optimize.methods.bridge import EMPTY, guidance, open_sections, section_texts, with_section_texts
from skillc.plan.schema import FieldPlan, TaskPlan, TypePlan

SKILL = document_of(
    "sort-things",
    "Sort things.",
    [
        ("role", "frozen", "You sort texts.", None),
        ("rules", "trainable", "- one rule\n- another rule", 60),
        ("guidance", "slow", "", 30),
    ],
)
LINES = st.lists(st.text(alphabet="ab #-*`<!\n\t.é", max_size=20), max_size=6).map("\n".join)


def test_only_open_sections_are_shown():
    assert section_texts(SKILL) == {"rules": "- one rule\n- another rule", "guidance": EMPTY}


def test_texts_that_did_not_change_leave_the_document_as_it_is():
    assert with_section_texts(SKILL, section_texts(SKILL)).document is SKILL


def test_dspys_docstring_indent_is_no_change():
    nested = document_of("s", "a", [("rules", "trainable", "- one rule\n  that goes on", 60)])
    texts = {name: inspect.cleandoc(text) for name, text in section_texts(nested).items()}
    assert with_section_texts(nested, texts).document is nested


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(rules=LINES, guidance_text=LINES)
def test_any_text_changes_open_sections_or_is_a_problem(rules, guidance_text):
    written = with_section_texts(SKILL, {"rules": rules, "guidance": guidance_text})
    assert written.document.section("role") == SKILL.section("role")
    if written.problem is not None:
        assert written.document is SKILL
        return
    for section in open_sections(written.document):
        assert section.limit is None or section.tokens <= section.limit
    assert with_section_texts(written.document, section_texts(written.document)).document is written.document


def test_a_text_over_its_limit_is_told_and_never_cut():
    written = with_section_texts(
        SKILL, {"rules": "\n".join(f"- rule number {i} says something else" for i in range(40))}
    )
    assert written.document is SKILL
    assert "rules" in written.problem
    assert "60" in written.problem


def test_the_optimizer_is_told_of_task_limit_and_frozen_parts():
    label = TypePlan(kind="labels", labels=("a", "b"))
    task = TaskPlan(
        inputs=(FieldPlan(name="text", type=TypePlan(kind="text"), column="text"),),
        outputs=(FieldPlan(name="kind", type=label, column="kind"),),
    )
    told = guidance(task, replace(SKILL, task="Given the text, answer with the kind."), SKILL.section("rules"))
    assert "- task: Given the text, answer with the kind." in told
    assert 'output kind: "a" | "b"' in told
    assert "at most 60 tokens" in told
    assert "You sort texts." in told

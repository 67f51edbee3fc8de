"""SKILL.md names the task: inputs, outputs, labels and types, once, and the target reads the body of that file."""

from __future__ import annotations

import runpy
from pathlib import Path

import dspy
import pytest
import skills_ref
from hypothesis import given, settings
from hypothesis import strategies as st
from model_plans import plan_of
from test_emitted_source import TEXTS, tasks
from thorough import example_count

from skillc.artifact_paths import ArtifactPaths
from skillc.artifacts.loading import load
from skillc.document.edits import Add, apply_edits
from skillc.document.skill import digest, document_of, for_optimizer, for_target, tokens
from skillc.document.skill_md import from_skill_md, to_skill_md, validate
from skillc.frontend import plan_file
from skillc.models.rulebook.sentences import read_rules
from skillc.plan.initial import first_decides, initial_document, task_text, without_task_text
from skillc.plan.schema import Plan, TaskPlan
from skillc.program.artifact import artifact_files, write_artifact
from skillc.program.module import SkillModule
from skillc.program.names import instructions
from skillc.tokens import count_tokens

PROGRAM = """language 1
{use}task {{
{task}
}}
skill route_tickets {{
  about = "Route a support ticket. Use it for each new ticket."
{skill}
}}
model target = "rulebook/v1"
model optimizer = "rulebook/v1"
data {{ source = "d.jsonl"; split = 2 : 1 : 1 }}
goal correct = exact_match({goal})
budget {{ epochs = 1 }}
gate better = candidate.correct > incumbent.correct
"""
TICKET = """
  input ticket: text { about = "as the customer wrote it" }
  output team: "billing" | "shipping" | "technical" | "account"
"""
SENTENCE = (
    "Given the ticket (as the customer wrote it), answer with the team: "
    'one of "billing", "shipping", "technical" or "account".'
)
LEAD = "Follow the rules below; they come before your own judgement."
FOLLOW = f"{LEAD} If several rules fit and none says which, the first one decides."
ADVICE = "The rules below are advice: use them where they help."
OPEN = "  trainable section rules { limit = 800 tokens }"
RULES = '  trainable section rules = """\n    - If the ticket mentions "refund", answer billing.\n  """'


def plan_at(folder: Path, task: str = TICKET, skill: str = OPEN, goal: str = "team", use: str = "") -> Plan:
    file = folder / "tickets.skill"
    file.write_text(PROGRAM.format(task=task, skill=skill, goal=goal, use=use), encoding="utf-8")
    return plan_file(file, complete=False).plan


@pytest.mark.parametrize(
    ("task", "goal", "text"),
    [
        (TICKET, "team", SENTENCE),
        (
            'input text: text; output team: "spam" | "ham"',
            "team",
            'Given the text, answer with the team: one of "spam" or "ham".',
        ),
        (
            'input order_note: text; output team: "IT" | "none of these" { about = "who resolves it." }',
            "team",
            'Given the order note, answer with the team (who resolves it): one of "IT" or "none of these".',
        ),
        (
            "input question: text; input context: list[text]; output answer: text",
            "answer",
            "Given the question and the context (a list of texts), give the answer.",
        ),
        ("input receipt: text; output total: number", "total", "Given the receipt, answer with the total: a number."),
        (
            "input receipt: text; output year: integer | none",
            "year",
            "Given the receipt, answer with the year: a whole number, or null if there is none.",
        ),
        (
            "input review: text; output topics: list[text]",
            "topics",
            "Given the review, answer with the topics: a JSON list of texts.",
        ),
        (
            'input review: text; output topics: list["price" | "quality"]',
            "topics",
            'Given the review, answer with the topics: a JSON list whose items are among "price" and "quality".',
        ),
        (
            'input letter: text; output fields: json { about = "with the keys `name` and `city`" }',
            "fields",
            "Given the letter, answer with the fields (with the keys `name` and `city`): a JSON object.",
        ),
        ("input claim: text; output right: bool", "right", "Given the claim, answer with the right: true or false."),
        (
            'input 質問: text { about = "お客様の言葉" }; output 担当: "経理" | "技術"',
            "担当",
            'Given the 質問 (お客様の言葉), answer with the 担当: one of "経理" or "技術".',
        ),
        (
            'input Text: text; output team: "a" | "b"',
            "team",
            'Given the `Text`, answer with the team: one of "a" or "b".',
        ),
        (
            'input text: text; output team: "say \\"yes\\"" | "no"',
            "team",
            'Given the text, answer with the team: one of `say "yes"` or `no`.',
        ),
        (
            'input text: text; output team: "`\\"a\\"`" | "b"',
            "team",
            'Given the text, answer with the team: one of “`"a"`” or “b”.',
        ),
        (
            'input ticket: text; output team: "a" | "b"; output urgent: bool { about = "someone is in danger" }; '
            "output orders: list[integer]; output summary: text",
            "team",
            'Given the ticket, answer with:\n\n- `team`: one of "a" or "b"\n- `urgent`: true or false; someone is in '
            "danger\n- `orders`: a JSON list of whole numbers\n- `summary`: text",
        ),
        (
            'input ticket: text { about = "as written" }; input product: text; '
            'input age: integer { about = "in days" }; '
            'input paid: bool; output team: "a" | "b"',
            "team",
            "You are given:\n\n- `ticket`: as written\n- `product`: text\n- `age`: a whole number; in days\n- `paid`: "
            'true or false\n\nAnswer with the team: one of "a" or "b".',
        ),
        (
            'input text: text; output team: "a" | "b"; rollout = chain_of_thought',
            "team",
            'Given the text, answer with the team: one of "a" or "b". Reason step by step before you answer.',
        ),
    ],
)
def test_the_task_in_words(tmp_path: Path, task: str, goal: str, text: str) -> None:
    assert task_text(plan_at(tmp_path, task, goal=goal).task) == text


def test_forty_labels_are_all_there_exactly_and_are_no_rules(tmp_path: Path) -> None:
    labels = [f"Team {i}: {word}" for i in range(10) for word in ("if it mentions x", "answer-y", "a.b", "Größe")]
    declared = " | ".join(f'"{label}"' for label in labels)
    told = task_text(plan_at(tmp_path, f"input text: text; output team: {declared}").task)
    assert all(told.count(f'"{label}"') == 1 for label in labels)
    assert read_rules(told, ("text",)) == ()
    assert read_rules(f"{SENTENCE}\n\n{FOLLOW}\n\n{ADVICE}", ("ticket",)) == ()


def test_the_body_has_the_task_below_the_title_and_the_lead_only_with_rules(tmp_path: Path) -> None:
    empty = initial_document(plan_at(tmp_path))
    assert for_target(empty) == f"# Route tickets\n\n{SENTENCE}\n"
    learned = apply_edits(empty, [Add("rules", "Invoices go to billing.")]).document
    assert for_target(learned) == (
        f"# Route tickets\n\n{SENTENCE}\n\n{FOLLOW}\n\n## Rules\n\n- Invoices go to billing.\n"
    )
    advice = initial_document(plan_at(tmp_path, skill=f"  present = advice\n{RULES}"))
    assert ADVICE in for_target(advice)
    assert FOLLOW not in for_target(advice)
    role = initial_document(plan_at(tmp_path, skill='  frozen section role = "You route tickets."\n' + OPEN))
    assert for_target(role) == f"# Route tickets\n\n{SENTENCE}\n\n## Role\n\nYou route tickets.\n"


@pytest.mark.parametrize(
    ("outputs", "lead"),
    [
        ('output team: "a" | "b"', FOLLOW),
        ('output team: "a" | "b" | none', FOLLOW),
        ("output urgent: bool", FOLLOW),
        ('output team: "a" | "b"; output urgent: bool', FOLLOW.replace("several rules", "several rules for one field")),
        ('output team: "a" | "b"; output reply: text', LEAD),
        ('output team: list["a" | "b"]', LEAD),
        ("output team: number", LEAD),
    ],
)
def test_where_all_answers_are_closed_the_first_rule_that_fits_decides(tmp_path: Path, outputs: str, lead: str) -> None:
    plan = plan_at(tmp_path, f"input text: text; {outputs}", RULES, goal="urgent" if "team" not in outputs else "team")
    document = initial_document(plan)
    assert document.lead == lead
    assert first_decides(plan.skill, plan.task) == (lead != LEAD)
    for known in (lead, LEAD):
        assert without_task_text(f"{document.task}\n\n{known}\n\nBe brief.", plan.task) == "Be brief."


def test_the_text_counts_and_is_shown_as_frozen(tmp_path: Path) -> None:
    document = initial_document(plan_at(tmp_path, skill=RULES))
    assert tokens(document) == count_tokens(for_target(document))
    assert count_tokens(SENTENCE) + count_tokens(FOLLOW) < tokens(document)
    size = count_tokens(SENTENCE) + count_tokens(FOLLOW)
    assert f"below the title (frozen, {size} tokens):\n\n{SENTENCE}\n\n{FOLLOW}\n" in for_optimizer(document)
    other = initial_document(plan_at(tmp_path, TICKET.replace("wrote it", "said it"), skill=RULES))
    assert digest(other) != digest(document)


def test_the_target_reads_the_body_of_skill_md_and_nothing_else(tmp_path: Path) -> None:
    plan = plan_at(tmp_path, skill=RULES)
    document = initial_document(plan)
    paths = ArtifactPaths.beside(tmp_path, "route-tickets")
    write_artifact(paths, artifact_files(paths, plan, document))
    body = paths.skill.read_text(encoding="utf-8").partition("\n---\n")[2].strip()
    told = instructions(plan.task, for_target(document))
    assert told == body
    module = SkillModule(plan.task, plan.skill.name, told)
    signature = module.predictors()[0].signature
    assert signature.instructions == body
    messages = dspy.ChatAdapter().format(signature, [], {"ticket": "I was charged twice."})
    assert "as the customer wrote it" not in messages[0]["content"].partition("your objective is:")[0]
    written = "".join(message["content"] for message in messages)
    assert written.count("as the customer wrote it") == 1
    spaces = " " * 8
    assert messages[0]["content"].endswith(f"{spaces}{body}".replace("\n", f"\n{spaces}"))
    assert load(tmp_path / "tickets.skill").predictors()[0].signature.instructions == body
    assert load(tmp_path / "skills" / "route-tickets").predictors()[0].signature.instructions == body


def test_no_skill_is_the_task_text_alone(tmp_path: Path) -> None:
    assert instructions(plan_at(tmp_path).task, None) == SENTENCE


@settings(max_examples=example_count(40), deadline=None)
@given(task=tasks(), rule=TEXTS, text=TEXTS)
def test_what_was_measured_is_what_the_emitted_module_says(
    tmp_path_factory: pytest.TempPathFactory, task: TaskPlan, rule: str, text: str
) -> None:
    plan = plan_of(task=task)
    parts = [("role", "frozen", text, None), ("rules", "trainable", "", None)]
    document = document_of("route-tickets", "x", parts, task=task_text(task), lead=FOLLOW)  # type: ignore[arg-type]
    document = apply_edits(document, [Add("rules", rule)]).document
    paths = ArtifactPaths(tmp_path_factory.mktemp("made"), "route-tickets")
    write_artifact(paths, artifact_files(paths, plan, document))
    emitted = runpy.run_path(str(paths.module))
    assert emitted["INSTRUCTIONS"] == instructions(task, for_target(document))
    again = from_skill_md(to_skill_md(document))
    assert for_target(again) == for_target(document)
    assert digest(again) == digest(document)


@settings(max_examples=example_count(60), deadline=None)
@given(task=tasks())
def test_any_task_is_said_in_one_piece_of_markdown_without_headings(task: TaskPlan) -> None:
    told = task_text(task)
    document = document_of("route-tickets", "x", [("role", "frozen", "Be brief.", None)], task=told)
    assert [section.title for section in from_skill_md(to_skill_md(document)).sections] == ["", None]
    assert told.startswith(("Given the ", "You are given:"))


def test_a_reused_preamble_does_not_say_the_task_twice(tmp_path: Path) -> None:
    (tmp_path / "SKILL.md").write_text(to_skill_md(initial_document(plan_at(tmp_path, skill=RULES))), encoding="utf-8")
    reused = "  frozen section preamble = old.preamble\n  trainable section rules = old.rules"
    document = initial_document(plan_at(tmp_path, skill=reused, use='use "./SKILL.md" as old\n'))
    assert for_target(document).count(SENTENCE) == 1
    assert for_target(document).count(FOLLOW) == 1
    assert "Preamble" not in for_target(document)


def test_a_skill_optimizer_adds_nothing_to_a_module_of_the_users_own() -> None:
    from skillc.teleprompter.conversion import instructions_of, skill_plan

    skill = skill_plan(instructions_of(dspy.Predict("question -> answer")), "module", None)
    assert "Given" not in for_target(initial_document(plan_of(skill=skill))).partition("\n\n")[0]
    document = initial_document(plan_of(skill=skill))
    assert (document.task, document.lead) == ("", "")


# ---- the reference validator ----------------------------------------------------------------------


@settings(max_examples=example_count(60), deadline=None)
@given(
    task=tasks(),
    about=TEXTS.map(lambda text: " ".join(text.split())),
    name=st.from_regex(r"[a-z][a-z0-9]{0,9}(-[a-z0-9]{1,5}){0,3}", fullmatch=True),
)
def test_the_reference_validator_takes_every_artifact(
    tmp_path_factory: pytest.TempPathFactory, task: TaskPlan, about: str, name: str
) -> None:
    if validate(name, about):
        return
    paths = ArtifactPaths(tmp_path_factory.mktemp("made"), name)
    document = document_of(name, about, [("role", "frozen", "Be brief.", None)], task=task_text(task))
    write_artifact(paths, artifact_files(paths, plan_of(task=task), document))
    assert skills_ref.validate(paths.folder) == []
    assert skills_ref.read_properties(paths.folder).description == about.strip()


@pytest.mark.parametrize("about", ["a --- b", "--- x", "-----", "yes", "- a", "key: value", "{a}", "#x", "a # b"])
def test_the_reference_validator_reads_awkward_descriptions(tmp_path: Path, about: str) -> None:
    (tmp_path / "x").mkdir()
    (tmp_path / "x" / "SKILL.md").write_text(to_skill_md(document_of("x", about, [])), encoding="utf-8")
    assert skills_ref.validate(tmp_path / "x") == []
    assert skills_ref.read_properties(tmp_path / "x").description == about
    assert from_skill_md((tmp_path / "x" / "SKILL.md").read_text(encoding="utf-8")).about == about


@pytest.mark.parametrize("example", ["tickets/tickets.skill", "unicode/unicode.skill"])
def test_the_reference_validator_takes_the_examples(tmp_path: Path, example: str) -> None:
    plan = plan_file(Path(__file__).parents[2] / "examples" / example, complete=False).plan
    paths = ArtifactPaths(tmp_path / ".claude" / "skills", plan.skill.artifact)
    write_artifact(paths, artifact_files(paths, plan, initial_document(plan)))
    assert skills_ref.validate(paths.folder) == []

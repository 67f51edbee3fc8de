"""`skillc new`: what it guesses and why, columns that the user names, and a skill to start from."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
import skills_ref
from conftest_cli import skillc
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from thorough import example_count

from skillc.data.starter import ColumnChoice, start
from skillc.document.markdown import below_section
from skillc.document.skill import for_target
from skillc.document.skill_md import from_skill_md, to_skill_md
from skillc.errors import SkillcError
from skillc.frontend import plan_file
from skillc.plan.existing import existing_skill
from skillc.plan.initial import initial_document

WORDS = ["apple", "hammer", "zebra"]
KINDS = ["fruit", "tool", "animal"]
ROWS = [
    {
        "id": i,
        "text": f"please tell me what this {WORDS[i % 3]} number {i} is",
        "category": KINDS[i % 3],
        "sure": bool(i % 2),
        "customer": f"c{i // 2}",
        "product": f"product {i % 2}",
    }
    for i in range(60)
]
SKILL = """---
name: sort-things
description: "Say what a thing is. Use it for each new text."
license: MIT
compatibility: needs nothing
allowed-tools: Read Bash(git:*)
metadata:
  author: acme
  version: "1.2"
color: blue
---

# Sorting Things Well

Read the text first. See [the list](references/things.md).

## When to Use This Skill

For each *new* text.

### Not for

- lists

## Rules

- An apple is a fruit.
- A hammer is a tool,
  whatever its size.

### Animals

- A zebra is an animal: answer `animal`.

## Steps

1. Read.
2. Decide.

   ```bash
   echo "## no heading"
   ```

## Table

| a | b |
|---|---|
| 1 | `x|y` |

## Style

- Be brief.
- Be kind.
"""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "things.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    (tmp_path / "skill" / "references").mkdir(parents=True)
    (tmp_path / "skill" / "references" / "things.md").write_bytes(b"apple\r\n")
    (tmp_path / "skill" / "SKILL.md").write_text(SKILL)
    return tmp_path


def test_it_prints_what_it_guessed_and_why(place: Path) -> None:
    done = skillc("new", "things.jsonl", folder=place)
    assert done.returncode == 0, done.stderr
    lines = [" ".join(line.split()) for line in done.stdout.splitlines()]
    assert "from 60 rows of things.jsonl:" in lines
    assert "input text text of 43 characters on average" in lines
    assert "answer category named like an answer, 3 values: labels" in lines
    assert (
        "group customer named like one, 30 values repeat: rows that share a value stay on one side of the split"
        in lines
    )
    assert "compare by product 2 values: no value may get worse" in lines
    assert "metric exact_match(category) a label is right or wrong" in lines
    assert "not used `id`, `sure` declare a field to use one" in lines
    text = (place / "things.skill").read_text()
    assert (
        'about = "Choose the category (animal, fruit or tool), given the text. '
        'Use it whenever a new text needs a category."' in " ".join(text.split())
    )


def test_columns_that_the_user_names_win(place: Path) -> None:
    options = ("--answer", "sure", "--input", "product", "--input", "text", "--group", "category")
    done = skillc("new", "things.jsonl", *options, "--json", folder=place)
    found = json.loads(done.stdout)
    guesses = [(each["role"], each["subject"], each["why"]) for each in found["guesses"]]
    assert ("input", "product", "named by --input") in guesses
    assert ("answer", "sure", "named by --answer") in guesses
    assert ("group", "category", "named by --group: rows that share a value stay on one side of the split") in guesses
    text = " ".join((place / "things.skill").read_text().split())
    assert "input product: text input text: text output sure: bool" in text
    assert "group = category" in text
    assert skillc("check", "things.skill", folder=place).returncode == 0


def test_several_answers_are_one_goal(place: Path) -> None:
    started = start(place / "things.jsonl", choice=ColumnChoice(answers=("category", "sure")))
    assert "goal correct = (exact_match(category) + exact_match(sure)) / 2" in started.text
    (place / "things.skill").write_text(started.text)
    assert [field.name for field in plan_file(place / "things.skill").plan.task.outputs] == ["category", "sure"]


@pytest.mark.parametrize(
    ("choice", "message", "hint"),
    [
        (ColumnChoice(answers=("Category",)), "has no column `Category`", "did you mean `category`?"),
        (ColumnChoice(inputs=("txet",)), "has no column `txet`", "did you mean `text`?"),
        (ColumnChoice(group="nothing alike"), "has no column `nothing alike`", "columns: `id`, `text`, `category`"),
        (ColumnChoice(answers=("category",), inputs=("category",)), "`category` is both --answer and --input", "once"),
        (ColumnChoice(answers=("category",), group="category"), "`category` is both --answer and --group", "once"),
    ],
)
def test_wrong_columns(place: Path, choice: ColumnChoice, message: str, hint: str) -> None:
    with pytest.raises(SkillcError, match=message) as raised:
        start(place / "things.jsonl", choice=choice)
    assert hint in str(raised.value.hint)


# ---- a skill to start from ------------------------------------------------------------------------


def test_a_skill_is_kept_or_said_to_be_left_out(place: Path) -> None:
    done = skillc("new", "things.jsonl", "--from", "skill", "--freeze", "style", folder=place)
    assert done.returncode == 0, done.stderr
    lines = [" ".join(line.split()) for line in done.stdout.splitlines()]
    for line in [
        "kept the description, `license`, `compatibility`, `allowed-tools`, `metadata`",
        "frozen the text above the first `## ` heading: it has no heading",
        "frozen When to Use This Skill: it is not a list",
        "trainable Rules: 3 rules",
        "trainable Steps: 2 rules",
        "frozen Table: it is not a list",
        "frozen Style: named by --freeze",
        "left out the frontmatter key `color`, which Agent Skills does not define",
        "kept `references/things.md`, copied to `things_files/`",
    ]:
        assert line in lines, line
    assert skillc("check", "things.skill", folder=place).returncode == 0
    assert (place / "things_files/references/things.md").read_bytes() == b"apple\r\n"
    assert plan_file(place / "things.skill").plan.skill.files == "things_files"
    document = initial_document(plan_file(place / "things.skill").plan)
    assert [rule.text for rule in document.rules] == [
        "An apple is a fruit.",
        "A hammer is a tool,\nwhatever its size.",
        "A zebra is an animal: answer `animal`.",
        "Read.",
        'Decide.\n\n```bash\necho "## no heading"\n```',
    ]


def body_without_task(document) -> str:
    told = "\n\n".join(text for text in (document.task, document.lead if document.rules else "") if text)
    before, _, after = for_target(document).partition(told)
    return f"{before.rstrip()}\n\n{after.lstrip(chr(10))}".strip("\n")


def taken_over(place: Path, skill: str, freeze: tuple[str, ...] = ()):
    (place / "in.md").write_text(skill, encoding="utf-8")
    started = start(place / "things.jsonl", existing=existing_skill(place / "in.md", freeze))
    (place / "things.skill").write_text(started.text, encoding="utf-8")
    return initial_document(plan_file(place / "things.skill", complete=False).plan)


def test_the_target_reads_the_original_body_before_any_edit(place: Path) -> None:
    document = taken_over(place, SKILL)
    assert body_without_task(document) == SKILL.partition("\n---\n")[2].strip()
    written = to_skill_md(document)
    assert written.startswith(
        "---\nname: sort-things\ndescription: Say what a thing is. Use it for each new text.\nlicense: MIT\n"
        "compatibility: needs nothing\nallowed-tools: Read Bash(git:*)\n"
        'metadata:\n  author: acme\n  version: "1.2"\n---\n'
    )
    (place / "sort-things").mkdir()
    (place / "sort-things" / "SKILL.md").write_text(written)
    assert skills_ref.validate(place / "sort-things") == []
    assert skills_ref.read_properties(place / "sort-things").metadata == {"author": "acme", "version": "1.2"}
    assert to_skill_md(from_skill_md(written)) == written


LINES = st.lists(
    st.sampled_from(
        ["- one rule", "- other rule", "* star", "1. first", "", "plain words", "## Head", "### Sub", "| a | b |",
         "    code", "```", "# Top", "  indented", 'say """ three', "tail \\ `x`", "é 質問", "- a\n  b", "<!-- c -->"]
    ),
    max_size=12,
)  # fmt: skip


@settings(max_examples=example_count(150), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(lines=LINES)
def test_any_skill_keeps_its_text(place: Path, lines: list[str]) -> None:
    text = "\n".join(lines)
    if text.count("```") % 2:
        text += "\n```"
    read = from_skill_md(text)
    # Headings that begin no section of their own come below the section's heading.
    sections = tuple(replace(section, text=below_section(section.text)) for section in read.sections)
    before = for_target(replace(read, sections=sections)).strip("\n")
    try:
        after = body_without_task(taken_over(place, text))
    except SkillcError as refused:
        assert "has 1 error" in refused.message  # a finding of the checker, at its place
        return

    def plain(text: str) -> list[str]:
        return [line.replace("* star", "- star").rstrip() for line in text.splitlines() if line.strip()]

    assert plain(after) == plain(before)


def test_an_open_fence_of_a_skill_is_closed(place: Path) -> None:
    document = taken_over(place, "# Things\n\n## Shape\n\nAnswer so:\n\n```\nfruit\n")
    assert body_without_task(document) == "# Things\n\n## Shape\n\nAnswer so:\n\n```\nfruit\n```"


def test_a_compile_from_a_skill_keeps_its_frozen_parts(place: Path) -> None:
    assert skillc("new", "things.jsonl", "--from", "skill", folder=place).returncode == 0
    done = skillc("compile", "things.skill", "--offline", "--set", "budget.steps=2", folder=place)
    assert done.returncode == 0, done.stderr
    folder = place / "skills" / "sort-things"
    written = (folder / "SKILL.md").read_text()
    for part in (
        "license: MIT",
        "allowed-tools: Read",
        "See [the list](references/things.md).",
        "## Table",
        "1. Read.",
    ):
        assert part in written
    assert skills_ref.validate(folder) == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--from", "skill", "--freeze", "Stile"), "the skill has no section `Stile`"),
        (("--from", "none.md"), "none.md"),
        (("--freeze", "Style"), "`--freeze` needs `--from`"),
    ],
)
def test_wrong_starts(place: Path, options: tuple[str, ...], message: str) -> None:
    done = skillc("new", "things.jsonl", *options, folder=place)
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert not (place / "things.skill").exists()


@pytest.mark.parametrize(
    ("text", "message"),
    [("name: x", "repeats a key"), ("just words", "is not YAML"), ("license: MIT\n---", "is not YAML")],
)
def test_frontmatter_that_no_agent_could_load(place: Path, text: str, message: str) -> None:
    taken_over(place, SKILL)
    program = (place / "things.skill").read_text()
    broken = program.replace("  title ", f"  frontmatter = {json.dumps(text)}\n  title ", 1)
    start_, _, rest = broken.partition('  frontmatter = """')
    broken = start_ + rest.partition('"""\n')[2] if rest else broken
    (place / "broken.skill").write_text(broken)
    done = skillc("plan", "broken.skill", "--offline", folder=place)
    assert done.returncode == 2
    assert message in done.stderr + done.stdout

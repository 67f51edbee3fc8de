"""Where a compile starts from: nothing, a text in the program, a skill that is there already."""

import json

import pytest
from conftest_cli import PROGRAM, rows, skillc

from skillc.document.skill import new_id

EMPTY = "trainable section rules { limit = 600 tokens }"
RULE = 'If the text mentions "apple", answer fruit.'
SKILL_MD = f"""---
name: things
description: Says what a thing is.
---

# Things

## When to use

For each new text.

## Rules

- {RULE}
- Answer in one word.
"""


def compiled(folder, program, *options):
    (folder / "things.skill").write_text(program)
    (folder / "things.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows()))
    done = skillc("compile", "things.skill", "--offline", "--json", *options, folder=folder)
    assert done.returncode == 0, done.stderr
    history = (folder / "skills/sort-things.history.jsonl").read_text().splitlines()
    return json.loads(done.stdout), [json.loads(line) for line in history], done.stderr


@pytest.mark.parametrize(
    ("use", "section"),
    [
        ("", EMPTY),
        ("", f'trainable section rules = """\n    - {RULE}\n    - Answer in one word.\n  """ {{ limit = 600 tokens }}'),
        ('use "./SKILL.md" as today\n', "trainable section rules = today.rules { limit = 600 tokens }"),
    ],
    ids=["nothing", "text", "file"],
)
def test_a_compile_starts_from_nothing_a_text_or_a_skill(tmp_path, use, section):
    (tmp_path / "SKILL.md").write_text(SKILL_MD)
    program = PROGRAM.replace(EMPTY, section).replace("language 1\n", f"language 1\n{use}")
    summary, history, _ = compiled(tmp_path, program, "--set", "budget.steps=2")
    assert summary["accepted"] >= 1
    assert summary["test"]["initial"]["n"] == summary["test"]["best"]["n"] > 0
    written = (tmp_path / "skills/sort-things/SKILL.md").read_text()
    assert "You sort texts." in written
    # What a file brings is its section's rules, each an item that can be edited, and nothing else of it.
    touched = {edit.get("rule") for line in history for edit in line.get("edits", []) if edit["op"] != "add"}
    started = RULE in section or "today" in section
    if new_id("rules", "Answer in one word.", ()) not in touched:
        assert ("Answer in one word." in written) is started
    assert "For each new text" not in written
    # The file itself is only read.
    assert (tmp_path / "SKILL.md").read_text() == SKILL_MD


def test_a_text_and_the_same_text_in_a_file_are_the_same_run(tmp_path):
    """The initial skill, and so every decision, depends on the text alone."""
    section = f'trainable section rules = """\n    - {RULE}\n    - Answer in one word.\n  """ {{ limit = 600 tokens }}'
    runs = []
    for name, use, text in (
        ("text", "", section),
        ("file", 'use "./SKILL.md" as today\n', "trainable section rules = today.rules { limit = 600 tokens }"),
    ):
        (tmp_path / name).mkdir()
        (tmp_path / name / "SKILL.md").write_text(SKILL_MD)
        program = PROGRAM.replace(EMPTY, text).replace("language 1\n", f"language 1\n{use}")
        _, history, _ = compiled(tmp_path / name, program, "--set", "budget.steps=1")
        runs.append(history)
    assert runs[0] == runs[1]


def test_a_compiled_skill_can_be_compiled_further(tmp_path):
    """Its own rules come back as rules: the second run's initial skill is the first run's best."""
    compiled(tmp_path, PROGRAM, "--set", "budget.steps=2")
    lock = json.loads((tmp_path / "skills/sort-things.lock").read_text())
    on = PROGRAM.replace("language 1\n", 'language 1\nuse "./skills/sort-things/SKILL.md" as before\n').replace(
        EMPTY, "trainable section rules = before.rules { limit = 600 tokens }"
    )
    summary, _, _ = compiled(tmp_path, on, "--set", "budget.steps=1", "--output", "further")
    again = json.loads((tmp_path / "further/sort-things.lock").read_text())
    assert again["skill"]["initial"] == lock["skill"]["best"]
    assert summary["validation"]["initial"]["mean"] == lock["validation"]["best"]["mean"]


def test_a_compiled_skill_is_not_compiled_further_on_a_split_that_tests_what_it_learnt_from(tmp_path):
    compiled(tmp_path, PROGRAM, "--set", "budget.steps=1")
    on = PROGRAM.replace("language 1\n", 'language 1\nuse "./skills/sort-things/SKILL.md" as before\n').replace(
        EMPTY, "trainable section rules = before.rules { limit = 600 tokens }"
    )
    (tmp_path / "things.skill").write_text(on.replace("seed = 3", "seed = 4"))
    done = skillc("compile", "things.skill", "--output", "further", folder=tmp_path)
    assert done.returncode == 2
    assert "`./skills/sort-things/SKILL.md` was made with" in done.stderr
    assert "of the current test split" in done.stderr
    assert not (tmp_path / "further").exists()

"""What an audit finds in trajectories, and the verb."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from skillc.audit import SkillParts
from skillc.cli import skillc
from skillc.document.skill import Document, Section
from skillc.trajectories.trajectory import Message, Observation, ToolCall, Trajectory

RULE, REFUNDS = "- Ask when the parcel was bought before any refund.", "references/refunds.md"
DOCUMENT = Document(
    "desk",
    "Answer.",
    (
        Section("role", "frozen", "You answer each ticket with one team and no other word."),
        Section("refunds", "trainable", RULE, file=REFUNDS),
    ),
    files=(("scripts/look.sh", b"#!/bin/sh\necho looking\n"), ("LICENSE", b"MIT"), ("logo.bin", b"\xff")),
)  # fmt: skip
PARTS = SkillParts.of(DOCUMENT)


def read(*steps):
    return PARTS.read_in(Trajectory(steps))


@pytest.mark.parametrize(
    ("steps", "opened"),
    [
        ([ToolCall("read", {"path": f"/home/agent/.agents/skills/desk/{REFUNDS}"})], {REFUNDS}),
        ([ToolCall("shell", {"cmd": "cat desk/SKILL.md && sh scripts/look.sh"})], {"SKILL.md", "scripts/look.sh"}),
        ([ToolCall("skill", {"name": "desk"})], {"SKILL.md"}),
        ([ToolCall("shell", {"cmd": "cat */refer*"}), Observation(RULE)], {REFUNDS}),
        ([ToolCall("read", {"path": REFUNDS}), Observation("no such file", failed=True)], set()),
        ([ToolCall("read", {"path": f"{REFUNDS}.orig"})], set()),
        ([ToolCall("read", {"path": "other/LICENSE"})], set()),
        ([ToolCall("read", {"path": "desk\\LICENSE"})], {"LICENSE"}),
        ([Message("I should open references/refunds.md")], set()),
    ],
)  # fmt: skip
def test_a_file_is_opened_by_a_call_that_names_it_or_returns_its_text(steps, opened) -> None:
    assert read(*steps).opened == opened


def test_a_section_is_quoted_by_five_words_in_a_row() -> None:
    assert read(Message("First, ask when the parcel was bought!")).quoted == {"refunds"}
    assert read(Message("Ask when the parcel came")).quoted == frozenset()
    assert read(ToolCall("note", {"text": "one team and no other word"})).quoted == {"role"}
    assert read(Observation("You answer each ticket with one team")).quoted == frozenset()


PROGRAM = """language 1
task {
  rollout = %s
  input  ticket: text
  output team: "billing" | "returns"
}
skill desk {
  about = "Route a ticket to a team."
  files = "extras"
  frozen section role = "You answer each ticket with one team."
  trainable section refunds = "- If the ticket mentions a refund, answer returns." { file = "references/refunds.md" }
}
model target    = "rulebook/v1"
model optimizer = "rulebook/v1"
data { source = "tickets.jsonl" }
goal correct = exact_match(team)
budget { steps = 1; calls = 40 }
gate better = candidate.correct > incumbent.correct
"""
AGENT = """
from pathlib import Path
from skillc import Trajectory
from skillc.trajectories.trajectory import Message, Observation, ToolCall

def run(inputs, folder):
    names = ["SKILL.md"] + ["references/refunds.md"] * ("refund" in inputs["ticket"])
    steps = []
    for name in names:
        text = Path(folder, "desk", name).read_text()
        steps += [ToolCall("read", {"path": f"desk/{name}"}), Observation(text)]
    return Trajectory((*steps, Message("returns")))

def silent(folder):
    assert Path(folder, "desk", "scripts/look.sh").stat().st_mode & 0o100
    return "returns"

def text_only(skill):
    assert "mentions a refund" in skill and "references/" not in skill
    return "returns"

def linked(skill, folder):
    assert "mentions a refund" not in skill and "[references/refunds.md]" in skill
    return "returns"
"""


@pytest.fixture
def program(tmp_path, monkeypatch):
    def write(rollout, tickets=("a refund", "an invoice")):
        (tmp_path / "extras/scripts").mkdir(parents=True)
        (tmp_path / "extras/scripts/look.sh").write_bytes(b"#!/bin/sh\necho looking\n")
        (tmp_path / "desk_agent.py").write_text(AGENT)
        rows = [{"ticket": f"{tickets[i % 2]} {i}", "team": "returns"} for i in range(20)]
        (tmp_path / "tickets.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        (tmp_path / "desk.skill").write_text(PROGRAM.replace("%s", rollout))
        monkeypatch.chdir(tmp_path)

    return write


def audit(*words):
    done = CliRunner().invoke(skillc, ["audit", *words], standalone_mode=False)
    assert done.exception is None, done.exception
    return done


def audited(*words):
    return json.loads(audit(*words, "--json").stdout)


def test_the_verb_counts_what_fresh_rollouts_open(program) -> None:
    program('python("desk_agent:run")')
    found = audited("desk.skill", "--rollouts", "6")
    opened = {each["path"]: each["opened"] for each in found["files"]}
    assert opened["SKILL.md"] == found["rollouts"] == 6
    assert 0 < opened["references/refunds.md"] < 6
    assert found["never_opened"] == ["scripts/look.sh"]
    assert {each["name"]: each["file"] for each in found["sections"]} == {
        "role": "SKILL.md",
        "refunds": "references/refunds.md",
    }
    done = audit("desk.skill", "--exit-code")
    assert done.return_value == 1
    assert "never opened: `scripts/look.sh`" in done.stdout
    assert not Path("skills").exists()


def test_rollouts_that_report_no_calls_leave_openings_unknown(program) -> None:
    program('python("desk_agent:silent")')
    found = audited("desk.skill", "--rollouts", "2")
    assert not found["openings_known"]
    assert found["never_opened"] == []
    assert "is unknown" in audit("desk.skill", "--rollouts", "2").stdout


@pytest.mark.parametrize("rollout", ['python("desk_agent:text_only")', "predict"])
def test_rollouts_without_a_folder_read_all_sections_and_no_other_file(program, rollout) -> None:
    program(rollout)
    found = audited("desk.skill", "--rollouts", "2")
    assert found["reads_whole_skill"]
    assert {each["path"]: each["opened"] for each in found["files"]} == {
        "SKILL.md": 2,
        "references/refunds.md": 2,
        "scripts/look.sh": 0,
    }


def test_a_function_with_a_folder_gets_links(program) -> None:
    program('python("desk_agent:linked")')
    assert audited("desk.skill", "--rollouts", "2")["failures"] == {}


def test_a_folder_of_another_tool_needs_a_program(program) -> None:
    program("predict")
    folder = Path("other/desk")
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text("---\nname: desk\ndescription: Answer.\n---\n\n## Tone\n\nBe brief.\n")
    done = CliRunner().invoke(skillc, ["audit", str(folder)], standalone_mode=False)
    assert "names no program" in str(done.exception)
    found = audited("desk.skill", "--skill", str(folder), "--rollouts", "1")
    assert [each["name"] for each in found["sections"]] == ["tone"]


def test_a_cap_ends_an_audit_early(program) -> None:
    program("predict")
    found = audited("desk.skill", "--rollouts", "4", "--set", "budget.calls=2")
    assert found["stopped"] == "calls"
    assert found["rollouts"] == 2

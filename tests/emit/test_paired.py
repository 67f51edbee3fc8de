"""A form against the plain form: what the target reads with each, and what becomes of the form."""

import itertools
import json
import os
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from skillc.cli import skillc
from skillc.emit.write import RECORD
from tests.emit.made import tree

PROGRAM = """language 1
task {{
  input  ticket: text
  output team: "billing" | "shipping"
}}
skill route_tickets {{
  about = "Route a ticket to a team."
  load  = {load}
  trainable section rules {{ limit = 300 tokens }}
}}
model target    = "own/target" {{ backend = python("{module}:target") }}
model optimizer = "rulebook/v1"
data {{ source = "tickets.jsonl"; split = 1 : 8 : 1 }}
goal correct = exact_match(team)
gate better = candidate.correct > incumbent.correct
budget {{ steps = 1 }}
"""
# A target that answers right where it has read the rule. It opens a skill whose description says what for, except for
# tickets that are closed to it.
MODEL = """
from skillc.scripted import reply

CLOSED = {closed!r}
NEEDS = {needs!r}


def target(messages, parameters, seed):
    text = "\\n".join(str(each["content"]) for each in messages)
    with open("prompts.txt", "a") as file:
        file.write(text + "\\n=====\\n")
    number = int(text.rpartition("ticket number ")[2].split()[0])
    read = "Even numbers go to billing" in text
    if not read and "open_skill" in text and NEEDS in text and (CLOSED == 0 or number % CLOSED):
        return reply("[[ ## open_skill ## ]]\\nroute-tickets", messages)
    right = "billing" if number % 2 == 0 else "shipping"
    answer = right if read else "shipping" if right == "billing" else "billing"
    head = "[[ ## open_skill ## ]]\\n\\n\\n" if "[[ ## open_skill ## ]]" in text else ""
    return reply(f"{{head}}[[ ## team ## ]]\\n{{answer}}\\n\\n[[ ## completed ## ]]", messages)
"""
_NUMBERS = itertools.count()
ABOUT = "Route a ticket to a team by the number that it has in its text, as finance asked."


@pytest.fixture
def made(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    # Modules of one name are loaded once in a process.
    module = f"model_{next(_NUMBERS)}"

    def make(*, load="on_demand", closed=0, needs="Route a ticket", examples=121, further=""):
        Path("p.skill").write_text(PROGRAM.format(load=load, module=module))
        Path(f"{module}.py").write_text(MODEL.format(closed=closed, needs=needs))
        rows = (
            {"ticket": f"ticket number {i} is here", "team": ("billing", "shipping")[i % 2]} for i in range(examples)
        )
        Path("tickets.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        folder = Path("skills/route-tickets")
        folder.mkdir(parents=True)
        body = "# Route tickets\n\n## Rules\n\n- Even numbers go to billing, odd ones to shipping.\n"
        (folder / "SKILL.md").write_text(f"---\nname: route-tickets\ndescription: {ABOUT}\n{further}---\n\n{body}")

    return make


def emit(*more):
    arguments = ["emit", "p.skill", "--test", "--out", "out", *more]
    done = CliRunner().invoke(skillc, arguments, catch_exceptions=False, standalone_mode=False)
    return done.return_value, done.stdout


def recorded(form):
    return json.loads(Path("out", RECORD).read_text())["emitted"][f"{form}:route-tickets"]["tested"]


@pytest.mark.parametrize(("load", "form"), [("always", "agents-md"), ("on_demand", "claude-plugin")])
def test_a_form_with_the_same_bytes_needs_no_call(made, load, form):
    made(load=load)
    status, shown = emit("--form", form)
    assert status == 0 and "the same bytes" in shown
    assert not Path("prompts.txt").exists()
    assert recorded(form) == {"result": "identical", "target": "own/target"}


def test_an_equal_form_is_kept_and_recorded(made):
    made()
    status, shown = emit("--form", "codex", "--json", "--quiet")
    found = json.loads(shown)["tested"]
    assert status == 0 and found["result"] == "kept" and found["difference"] == 0 and found["pairs"] == 101
    assert found["e_value"] > 20
    assert recorded("codex") == {key: found[key] for key in recorded("codex")}
    prompts = Path("prompts.txt").read_text().split("\n=====\n")
    # The host of this form returns the whole file, the plain form the body.
    opened = [each for each in prompts if "Even numbers" in each]
    assert sum("description: Route a ticket" in each for each in opened) == len(opened) / 2 == 101
    # Without the option the recorded test of the same skill remains.
    again = CliRunner().invoke(skillc, ["emit", "p.skill", "--form", "codex", "--out", "out"])
    assert "kept, +0.0 points on 101 pairs" in again.output


@pytest.mark.thorough
def test_the_same_test_gives_the_same_bytes(made):
    made()
    emit("--form", "codex")
    before = tree(Path("out")), Path("out", RECORD).read_bytes()
    status, shown = emit("--form", "codex")
    assert status == 0 and "paid      0 calls" in shown
    assert before == (tree(Path("out")), Path("out", RECORD).read_bytes())


def test_a_form_that_is_never_opened_is_refused_and_not_written(made):
    made(load="always", needs="a description that says nothing")
    status, shown = emit("--form", "gemini")
    assert status == 1
    assert re.search(r"plain +100.0 % on 101 pairs", shown) and "gemini     0.0 %, -100.0 points" in shown
    assert "refused" in shown and "nothing is written" in shown
    assert not Path("out").exists()
    status, shown = emit("--form", "gemini", "--force")
    assert status == 0 and Path("out/gemini-extension.json").exists()
    assert recorded("gemini")["result"] == "refused"


def test_a_form_that_is_worse_by_ten_points_is_refused(made):
    made(load="always", closed=10)
    status, shown = emit("--form", "gemini")
    assert status == 1 and "refused   a loss of more than 5 points is not ruled out" in shown
    assert "needed" not in shown
    # A larger margin was not declared before, but it shows where the line is.
    assert emit("--form", "gemini", "--margin", "40")[0] == 0


def test_too_few_examples_are_refused_with_the_number_that_it_takes(made):
    made(examples=40)
    status, shown = emit("--form", "codex")
    assert status == 1 and "needed    93 examples" in shown
    assert not Path("out").exists()


@pytest.mark.thorough
def test_what_hermes_cuts_off_a_description_is_cut_off_in_the_test(made):
    made(needs="as finance asked")
    status, shown = emit("--form", "hermes")
    assert status == 1 and "hermes     0.0 %, -100.0 points" in shown


def test_a_body_that_the_host_replaces_is_tested_though_the_text_is_the_same(made):
    made()
    Path("skills/route-tickets/SKILL.md").write_text(
        Path("skills/route-tickets/SKILL.md").read_text() + "- It costs $5.\n"
    )
    status, shown = emit("--form", "claude-plugin")
    assert status == 0 and "Claude Code replaces `$5`" in shown and "kept" in shown


@pytest.mark.thorough
def test_a_failing_model_is_no_score(made):
    made(examples=24)
    (module,) = Path().glob("model_*.py")
    text = module.read_text().replace(
        "    read =", "    if number % 3 == 0:\n        raise ConnectionError\n    read ="
    )
    module.write_text(text)
    status, shown = emit("--form", "codex", "--json", "--quiet")
    assert status in (1, 3)
    assert not Path("out").exists()
    if status == 1:
        found = json.loads(shown)["tested"]
        assert found["difference"] == 0 and found["pairs"] < 20 and found["result"] in ("unverified", "refused")


def test_errors_name_the_fix(made, tmp_path):
    made()
    from skillc.errors import SkillcError

    with pytest.raises(SkillcError, match="cannot count looks at the test split"):
        CliRunner().invoke(
            skillc, ["emit", "p.skill", "--form", "codex", "--test", "--split", "test"], catch_exceptions=False
        )
    lone = tmp_path / "lone" / "route-tickets"
    lone.parent.mkdir()
    os.rename("skills/route-tickets", lone)
    with pytest.raises(SkillcError, match="names no program") as found:
        CliRunner().invoke(skillc, ["emit", str(lone), "--form", "codex", "--test"], catch_exceptions=False)
    assert "emit PROGRAM.skill --test" in found.value.hint


AGENT = """
# An agent that opens its installed skill by itself, and may be misled by the tags that a form adds.
question=$(cat)
skill=$(find "$HOME/.agents/skills" -name SKILL.md)
cat "$skill" >> "$1/seen.txt"
right=shipping wrong=billing
case $question in *[02468]" is here"*) right=billing wrong=shipping ;; esac
if [ -e "$1/misled" ] && grep -q hermes "$skill"; then echo $wrong; else echo $right; fi
"""


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("misled", [True, False])
def test_an_agent_reads_the_files_of_the_form(made, misled):
    made(examples=76)
    text = Path("p.skill").read_text()
    command = 'command("sh {here}/agent.sh {here}") { time = 30 s; sandbox = unsafe }'
    text = text.replace('"billing" | "shipping"\n}', f'"billing" | "shipping"\n  rollout = {command}\n}}', 1)
    Path("p.skill").write_text(re.sub(r"model target.*", 'model target = "rulebook/v1"', text))
    Path("agent.sh").write_text(AGENT)
    if misled:
        Path("misled").touch()
    status, shown = emit("--form", "hermes", "--margin", "10")
    seen = Path("seen.txt").read_text()
    assert seen.count("description:") == 2 * seen.count("tags:") == 126
    assert (status, "refused" in shown) == ((1, True) if misled else (0, False)), shown

"""The verbs of publishing: what they print and ask, with `--json` and without a terminal."""

import json
import os
import pty
import select
import subprocess
import sys
import time

import pytest
from click.testing import CliRunner

from skillc.cli import skillc
from skillc.errors import SkillcError
from skillc.publish.staging import current
from tests.publish.shops import NAME, RULES, compile_as, skill_md

NEW = 'If the ticket mentions "refund", answer billing.'
CODEX = f".agents/skills/{NAME}/SKILL.md"


def run(*words):
    done = CliRunner().invoke(skillc, [*map(str, words)], standalone_mode=False)
    if done.exception is not None:
        raise done.exception
    return done.return_value, done.stdout


@pytest.fixture
def installed(project):
    run("install", "tickets.skill", "--to", "codex", "--to", "hermes", "--user")
    run("install", "tickets.skill", "--to", "codex")
    return project


def test_a_walk_in_json(installed):
    assert [each["action"] for each in json.loads(run("install", "--json")[1])["skills"][0]["targets"]] == [
        "unchanged"
    ] * 3
    compile_as(installed, *RULES, NEW)
    status, out = run("update", "--json", "--person", "ada")
    (found,) = json.loads(out)["skills"]
    assert status == 1 and found["held"] == ["the policy is `person`"] and found["by"] == "ada"
    assert found["changes"]["rules"] == [{"section": "Rules", "before": None, "after": NEW}]
    with pytest.raises(SkillcError, match="nobody can be asked"):
        run("adopt", NAME)
    with pytest.raises(SkillcError, match="`--digest` names `12345678`"):
        run("adopt", NAME, "--yes", "--digest", "12345678")
    done = json.loads(run("adopt", NAME, "--yes", "--digest", found["staged"], "--json")[1])
    assert done["version"] == found["staged"] and [each["action"] for each in done["targets"]] == ["update"] * 3
    assert run("update")[0] == 0 and run("installed")[0] == 0
    (installed / CODEX).write_text("---\nname: route-tickets\ndescription: x\n---\n")
    status, out = run("installed", "--json")
    states = {each["scope"] + each["agent"]: each["state"] for each in json.loads(out)["skills"][0]["targets"]}
    assert status == 1
    assert states == {"projectcodex": "changed by hand", "usercodex": "up to date", "userhermes": "up to date"}
    with pytest.raises(SkillcError, match="was changed by hand"):
        run("rollback", NAME)
    assert json.loads(run("rollback", NAME, "--drop-edits", "--json")[1])["before"] == found["staged"]
    assert (installed / CODEX).read_text() == skill_md(*RULES)
    assert "nothing new" in run("update")[1] and "rolled back by" in run("installed", "--versions")[1]
    assert run("update", "--again")[0] == 1
    assert run("reject", NAME, "--why", "no refunds")[0] == 0


def test_what_may_run_is_said_first_and_hidden_characters_are_shown(installed):
    paths = compile_as(installed, *RULES, "Be\u202e nice.\x1b[2J")
    (paths.folder / "scripts").mkdir()
    (paths.folder / "scripts/run.sh").write_text("#!/bin/sh\nls\n")
    out = run("update")[1].splitlines()
    assert out[1] == "! new file `scripts/run.sh`: an agent may run it; read all of it"
    assert not {"\x1b", "\u202e"} & set("\n".join(out))


def test_a_policy_of_the_manifest_adopts_and_holds(installed):
    path = installed / "skills.toml"
    path.write_text(path.read_text().replace('"person"', "{ gain = 20 }"))
    compile_as(installed, *RULES, NEW)
    status, out = run("update", "--adopt")
    assert status == 1 and "held       the gain is +10.0 points, and the policy asks for 20" in out
    path.write_text(path.read_text().replace("gain = 20", "gain = 5"))
    status, out = run("update", "--adopt")
    assert status == 0 and "adopted" in out and (installed / CODEX).read_text() == skill_md(*RULES, NEW)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("update", "nothing"), "has no skill `nothing`"),
        (("adopt", NAME, "--yes"), "nothing is staged"),
        (("adopt", NAME, "--take-edits", "--keep-edits"), "can't be used together"),
        (("adopt", NAME, "--take-edits"), "no destination of `route-tickets` was changed by hand"),
        (("rollback", NAME), "has no version before"),
        (("installed", "--project", "nowhere"), "has no skill"),
        (("install", "--to", "codex"), "no skill is named"),
        (("install", "tickets.skill"), "no agent is named"),
    ],
)
def test_a_mistake_is_a_message(installed, words, said):
    with pytest.raises(SkillcError, match=said) as caught:
        run(*words)
    assert caught.value.hint


def test_without_a_manifest_an_install_is_as_before(project):
    run("install", "tickets.skill", "--to", "codex", "--no-manifest")
    compile_as(project, *RULES, NEW)
    assert "updated" in run("install", "tickets.skill", "--to", "codex", "--no-manifest")[1]
    assert not (project / "skills.toml").exists() and not (project / "skills.adopted").exists()


@pytest.mark.parametrize(("answer", "status"), [("y", 0), ("", 1)])
def test_a_person_is_asked_on_a_terminal(installed, answer, status):
    compile_as(installed, *RULES, NEW)
    run("update")
    mine, theirs = pty.openpty()
    command = [sys.executable, "-m", "skillc", "adopt", NAME]
    with subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, cwd=installed) as process:
        os.close(theirs)
        shown, end = "", time.monotonic() + 60
        while "[y/N]" not in shown and time.monotonic() < end:
            if select.select([mine], [], [], 1)[0]:
                shown += os.read(mine, 10_000).decode()
        os.write(mine, f"{answer}\n".encode())
        assert process.wait(60) == status
    os.close(mine)
    assert f"+- {NEW}" in shown
    assert (installed / CODEX).read_text() == skill_md(*RULES, *[NEW] * (status == 0))
    assert len(current(installed, NAME).files()) == 1

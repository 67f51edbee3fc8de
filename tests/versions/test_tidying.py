"""`skillc tidy`: what is left out, what is written, and what is never overwritten unasked."""

import json
import re
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner
from shops import edited, learnable, write_shop

from skillc.artifact_paths import ArtifactPaths
from skillc.cli import skillc
from skillc.document.skill import digest
from skillc.document.skill_md import as_declared
from skillc.errors import SkillcError
from skillc.frontend import plan_file
from skillc.plan.initial import initial_document
from skillc.plan.lock import read_lock
from skillc.run.history import read_history
from skillc.versions.hand_edits import HandEditedError
from skillc.versions.locked import locked_findings

PROGRAM = edited("budget { epochs = 1; => budget { steps = 1;", program=learnable())
PATHS = ArtifactPaths(Path("skills"), "sort-things")
IDLE = '- If the text mentions "zeppelin" or "airship", answer tool.'


def run(*words):
    done = CliRunner().invoke(skillc, [*map(str, words)], standalone_mode=False)
    if done.exception is not None:
        raise done.exception
    return done


def tidied(*words, status=0):
    """The summary of a tidying."""
    done = run("tidy", "things.skill", "--json", *words)
    assert done.return_value == status, done.stdout
    return json.loads(done.stdout)


def files():
    """All files of the compiled skill with their contents."""
    return {path.name: path.read_bytes() for path in PATHS.base.rglob("*") if path.is_file()}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("made") / "shop"
    folder.mkdir()
    write_shop(folder, PROGRAM)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        assert run("compile", "things.skill", "--quiet").return_value == 0
    return folder


@pytest.fixture
def shop(made, tmp_path, monkeypatch):
    """A copy of a shop with a compiled skill."""
    shutil.copytree(made, tmp_path / "shop")
    monkeypatch.chdir(tmp_path / "shop")
    return tmp_path / "shop"


def with_idle_rule(text):
    """A skill with a rule more that decides nothing."""
    assert "## Rules\n\n- " in text
    return text.replace("## Rules\n\n", f"## Rules\n\n{IDLE}\n", 1)


def by_hand(name="mine.md"):
    """A skill of one's own beside the program: the compiled one with an idle rule."""
    Path(name).write_text(with_idle_rule(PATHS.skill.read_text()))
    return name


# ---- what is tidied -------------------------------------------------------------------------------


def test_a_compiled_skill_is_read_as_it_was_written(shop):
    declared = initial_document(plan_file(Path("things.skill")).plan)
    skill = as_declared(PATHS.skill.read_text(), declared, own=True)
    assert digest(skill) == read_lock(PATHS.lock).skill.best
    assert skill.rules
    assert [section.limit for section in skill.sections] == [section.limit for section in declared.sections]


def test_a_skill_that_has_nothing_to_leave_out_stays_byte_for_byte_and_is_not_tested(shop):
    before, looks = files(), read_lock(PATHS.lock).looks
    told = tidied()
    assert told["changed"] is False
    assert told["compiled"] is None
    assert told["tokens"]["before"] == told["tokens"]["after"]
    assert told["validation"]["before"] == told["validation"]["after"]
    assert files() == before
    assert read_lock(PATHS.lock).looks == looks
    assert "no file was changed" in run("tidy", "things.skill").stdout
    # A later compile must not take it for a run that was left unfinished.
    assert all(json.loads(path.read_text())["finished"] for path in Path(".skillc").glob("runs/*/run.json"))


def test_an_idle_rule_of_a_skill_file_is_left_out_and_the_rest_is_delivered_with_lock_and_history(shop):
    own, old = PATHS.skill.read_text(), read_history(PATHS.history)
    told = tidied("--skill", by_hand())
    assert told["changed"] is True
    assert told["left_out"] == [IDLE[2:]]
    assert told["written"] == []
    assert told["rules"]["before"] == told["rules"]["after"] + 1
    assert told["tokens"]["after"] < told["tokens"]["before"]
    assert told["validation"]["after"] >= told["validation"]["before"]
    assert told["compiled"]["verdict"] == "improved"
    assert PATHS.skill.read_text() == own
    assert IDLE in Path("mine.md").read_text()
    lock, found = read_lock(PATHS.lock), read_history(PATHS.history)
    assert lock.stopped.startswith("tidied")
    assert found[: len(old)] == old
    # Without rules the target says `fruit`, so the rule for it seems idle: it stays after a first try without it.
    assert [(line["kind"], line["result"]) for line in found[len(old) :]] == [("tidy", "reject"), ("tidy", "accept")]
    assert found[-1]["fates"][0]["fate"] == "pruned"
    assert locked_findings(Path("things.skill")) == ()


def test_the_same_tidying_again_is_answered_by_what_is_recorded(shop):
    first = tidied("--skill", by_hand())
    before = files()
    again = tidied("--skill", "mine.md")
    assert again["compiled"]["spent"]["paid"] == first["compiled"]["spent"]["paid"]
    assert files() == before


def test_rules_that_do_harm_are_reported(shop):
    compiled = PATHS.skill.read_text()
    labels = re.findall(r"answer (\w+)\.", compiled)
    turned = dict(zip(labels, [*labels[1:], labels[0]], strict=True))
    wrong = re.sub(r"answer (\w+)\.", lambda found: f"answer {turned[found[1]]}.", compiled)
    Path("wrong.md").write_text(wrong)
    said = run("tidy", "things.skill", "--skill", "wrong.md").stderr
    assert "the rules are harmful: " in said and "without rules" in said


def test_the_text_names_what_was_left_out(shop):
    lines = run("tidy", "things.skill", "--skill", by_hand()).stdout.splitlines()
    assert f"left out  {IDLE[2:]}" in lines
    assert any(line.startswith("tokens ") and "before" in line for line in lines)
    assert any(line.startswith("verdict   improved") for line in lines)


# ---- what is refused ------------------------------------------------------------------------------


def test_a_skill_that_was_edited_by_hand_is_not_overwritten_unasked(shop):
    PATHS.skill.write_text(with_idle_rule(PATHS.skill.read_text()))
    before = files()
    with pytest.raises(HandEditedError, match="was edited by hand"):
        tidied()
    assert files() == before
    told = tidied("--force")
    assert told["left_out"] == [IDLE[2:]]
    assert IDLE not in PATHS.skill.read_text()
    copies = [path.read_bytes() for path in Path(".skillc").rglob("*") if path.is_file()]
    assert before["SKILL.md"] in copies


def test_a_verdict_that_is_required_keeps_the_delivered_skill(shop):
    """Without any rule that helps, the tidied skill is the initial one."""
    before = files()
    Path("mine.md").write_text(f"## Role\n\nYou sort texts.\nOne answer for each.\n\n## Rules\n\n{IDLE}\n- Be calm.\n")
    told = tidied("--skill", "mine.md", "--require", "improved", status=1)
    assert told["compiled"]["delivered"] is False
    now = files()
    assert {name: text for name, text in now.items() if not name.endswith(".lock")} == {
        name: text for name, text in before.items() if not name.endswith(".lock")
    }


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("## Rules\n\n- One.\n\n## Tone\n\n- Be kind.\n", "the section `Tone`, which the program does not declare"),
        ("## Role\n\nYou guess.\n\n## Rules\n\n- One.\n", "the frozen text of `Role`"),
        ("Read this first.\n\n## Rules\n\n- One.\n", "the text above the first `## ` heading"),
        ("## Guidance\n\nStay calm.\n", "has no rules in a trainable section"),
    ],
)
def test_a_text_that_would_be_lost_is_refused_before_the_first_call(shop, text, message):
    Path("mine.md").write_text(text)
    with pytest.raises(SkillcError, match=message):
        tidied("--skill", "mine.md")
    with pytest.raises(SkillcError, match=r"`mine\.md`"):
        tidied("--skill", "mine.md")


def test_a_program_that_was_never_compiled_has_nothing_to_tidy(tmp_path, monkeypatch):
    write_shop(tmp_path, PROGRAM)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SkillcError, match="not compiled yet"):
        tidied()

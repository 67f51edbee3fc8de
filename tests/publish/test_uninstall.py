"""Uninstall: all destinations or none, nothing lost that was changed by hand, and a kill at any step leaves no half."""

import json
import os
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

from skillc import skill_files
from skillc.artifacts import beside
from skillc.cli import skillc
from skillc.errors import SkillcError
from skillc.publish import kept, manifest, removing, waiting
from skillc.publish.installing import add, install_all
from skillc.publish.kept import journal_path, read_log
from skillc.publish.manifest import read_manifest
from skillc.publish.staging import adopt, current, stage, staged
from skillc.publish.uninstalling import ChangedSinceError, uninstall
from tests.publish.shops import NAME, RULES, compile_as, shop, skill_md

NEW = 'If the ticket mentions "refund", answer billing.'
PLACES = (".claude/skills", ".agents/skills")
MODULES = (beside, skill_files, kept, manifest, removing, waiting)
# Writes, renames and flushes of a removal from two destinations.
STEPS = 7


@pytest.fixture
def ready(project):
    """Installed for two agents of the project, with an update staged."""
    add(project, project / "tickets.skill", ["claude-code", "codex"], "project", by="ada")
    stage(project, NAME, compile_as(project, *RULES, NEW), by="ada")
    return project


def files_at(project):
    return [sorted(os.listdir(project / place)) for place in PLACES]


INSTALLED = [[f".{NAME}.skillc.json", NAME]] * 2


def test_a_skill_is_removed_and_can_be_installed_again(ready):
    toml = ready / "skills.toml"
    toml.write_text("# Mine.\n" + toml.read_text() + '\n[skills.other]\nfrom = "other.skill"  # Too.\n')
    done = uninstall(ready, NAME, by="ada", why="not used")
    assert done.left == 0 and not done.copies and files_at(ready) == [[], []]
    assert (
        NAME not in read_manifest(ready).entries
        and toml.read_text().count("# Mine.") == toml.read_text().count("# Too.") == 1
    )
    assert staged(ready, NAME) is None and not journal_path(ready, NAME).exists()
    last = read_log(ready, NAME)[-1]
    assert (last["event"], last["who"], last["why"]) == ("uninstalled", "ada", "not used")
    with pytest.raises(SkillcError, match=f"has no skill `{NAME}`"):
        uninstall(ready, NAME, by="ada")
    # The versions stay, so that a later install can roll back.
    add(ready, ready / "tickets.skill", ["codex"], "project", by="ada")
    assert current(ready, NAME).files()["SKILL.md"].decode() == skill_md(*RULES, NEW)


def test_one_agent_or_the_users_folders_alone(ready):
    add(ready, ready / "tickets.skill", ["codex", "hermes"], "user", by="ada")
    done = uninstall(ready, NAME, ["codex"], by="ada")
    assert {(each.scope, each.agent) for each in done.places} == {("project", "codex"), ("user", "codex")}
    assert done.left == 2 and files_at(ready) == [INSTALLED[0], []]
    entry = read_manifest(ready).entries[NAME]
    assert (entry.project, entry.user) == (("claude-code",), ("hermes",)) and staged(ready, NAME) is not None
    uninstall(ready, NAME, scope="user", by="ada")
    assert read_manifest(ready).entries[NAME].user == ()
    with pytest.raises(SkillcError, match="has no `route-tickets` for `gemini`"):
        uninstall(ready, NAME, ["gemini"], by="ada")
    with pytest.raises(SkillcError, match="in the user's folders"):
        uninstall(ready, NAME, scope="user", by="ada")
    # The destination that stays goes on.
    adopt(ready, NAME, by="ada")
    assert (ready / PLACES[0] / NAME / "SKILL.md").read_text() == skill_md(*RULES, NEW)


def test_what_was_changed_by_hand_is_shown_and_kept(ready):
    edited = ready / PLACES[1] / NAME / "SKILL.md"
    edited.write_text(edited.read_text() + "- Mine.\n")
    with pytest.raises(ChangedSinceError, match=r"was changed by hand") as problem:
        uninstall(ready, NAME, by="ada")
    assert "+- Mine." in problem.value.difference and files_at(ready) == INSTALLED
    (copy,) = uninstall(ready, NAME, by="ada", force=True).copies
    assert "- Mine." in (copy / "SKILL.md").read_text() and files_at(ready) == [[], []]


def test_no_link_is_followed_and_what_another_project_installed_stays(ready, tmp_path):
    elsewhere, place = tmp_path / "elsewhere", ready / PLACES[0] / NAME
    shutil.move(place, elsewhere)
    place.symlink_to(elsewhere)
    with pytest.raises(SkillcError, match="is a link"):
        uninstall(ready, NAME, by="ada", force=True)
    assert (elsewhere / "SKILL.md").exists() and NAME in os.listdir(ready / PLACES[1])
    place.unlink()
    shutil.move(elsewhere, place)
    other = shop(tmp_path / "home" / "other")
    for each in (ready, other):
        compile_as(each, *RULES)
    add(ready, ready / "tickets.skill", ["hermes"], "user", by="ada")
    shutil.rmtree(tmp_path / "home" / ".hermes")
    add(other, other / "tickets.skill", ["hermes"], "user", by="bob")
    with pytest.raises(SkillcError, match="was installed from another skill of that name"):
        uninstall(ready, NAME, by="ada", force=True)
    assert files_at(ready) == INSTALLED
    shutil.rmtree(other)
    uninstall(ready, NAME, by="ada")
    assert not (tmp_path / "home" / ".hermes" / "skills" / NAME).exists()


def test_what_is_missing_is_no_error_and_a_dry_run_removes_nothing(ready):
    assert uninstall(ready, NAME, by="ada", dry_run=True).left == 0
    assert files_at(ready) == INSTALLED and NAME in read_manifest(ready).entries
    shutil.rmtree(ready / PLACES[0] / NAME)
    uninstall(ready, NAME, by="ada")
    assert files_at(ready) == [[], []]


# ---- kills and errors -------------------------------------------------------------------------------


def fail_at(patch, steps, failure):
    """Let so many writes and renames succeed, and fail at the next one."""
    left = [steps]

    def counting(real):
        def step(*words, **options):
            left[0] -= 1
            if left[0] == -1:
                failure()
            return real(*words, **options)

        return step

    for each in MODULES:
        patch.setattr(each, "write_atomically", counting(each.write_atomically))
    patch.setattr(Path, "rename", counting(Path.rename))
    patch.setattr(kept.os, "fsync", counting(os.fsync))


def die_after(project, steps):
    """Uninstall in a child process that ends at a step, as by kill -9; whether it got to the end."""
    child = os.fork()
    if child == 0:
        try:
            with pytest.MonkeyPatch.context() as patch:
                fail_at(patch, steps, lambda: os._exit(9))
                uninstall(project, NAME, by="ada")
            os._exit(0)
        finally:
            os._exit(1)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert status in (0, 9)
    return status == 0


@pytest.mark.parametrize("steps", range(STEPS + 1))
def test_a_kill_at_any_step_leaves_the_skill_or_nothing(ready, steps):
    done = die_after(ready, steps)
    assert done == (steps >= STEPS)
    began = done or journal_path(ready, NAME).exists()
    assert began or (files_at(ready) == INSTALLED and NAME in read_manifest(ready).entries)
    if not began:
        install_all(ready)
        assert files_at(ready) == INSTALLED
        uninstall(ready, NAME, by="ada")
    else:
        # The next command of the project finishes it, whatever it is.
        with pytest.raises(SkillcError, match="has no skill"):
            install_all(ready) if not done else uninstall(ready, NAME, by="ada")
    assert files_at(ready) == [[], []] and NAME not in read_manifest(ready).entries
    assert [each["event"] for each in read_log(ready, NAME)] == ["installed", "uninstalled"]
    assert staged(ready, NAME) is None and not journal_path(ready, NAME).exists()


@pytest.mark.parametrize("steps", range(STEPS + 1))
def test_a_full_disk_changes_nothing_or_all(ready, steps):
    def full():
        raise OSError(28, "No space left on device", "x")

    before = (ready / "skills.toml").read_bytes()
    with pytest.MonkeyPatch.context() as patch:
        fail_at(patch, steps, full)
        try:
            uninstall(ready, NAME, by="ada")
            done = True
        except SkillcError as problem:
            assert "No space left on device" in str(problem)
            done = False
    if done:
        assert files_at(ready) == [[], []] and NAME not in read_manifest(ready).entries
    else:
        assert files_at(ready) == INSTALLED and (ready / "skills.toml").read_bytes() == before
        assert not journal_path(ready, NAME).exists() and staged(ready, NAME) is not None
        assert [each["event"] for each in read_log(ready, NAME)] == ["installed"]


def test_an_edit_during_the_removal_is_found_and_kept(ready, monkeypatch):
    place, real = ready / PLACES[1] / NAME / "SKILL.md", removing.remove_entry

    def editing(root, name):
        place.write_text("mine")
        real(root, name)

    monkeypatch.setattr(removing, "remove_entry", editing)
    with pytest.raises(SkillcError, match="was changed while it was being removed"):
        uninstall(ready, NAME, by="ada")
    assert files_at(ready) == INSTALLED and place.read_text() == "mine" and NAME in read_manifest(ready).entries


# ---- the verb ---------------------------------------------------------------------------------------


def run(*words):
    return CliRunner().invoke(skillc, [*map(str, words)])


def test_the_verb_prints_what_it_removed(ready):
    done = run("uninstall", NAME, "--dry-run")
    assert ".claude/skills/route-tickets   would be removed" in done.stdout and files_at(ready) == INSTALLED
    done = run("uninstall", NAME, "--to", "codex", "--person", "ada")
    assert done.exit_code == 0 and done.stdout == (
        "codex  .agents/skills/route-tickets   removed\n`route-tickets` stays in the manifest with 1 destination\n"
    )
    value = json.loads(run("uninstall", NAME, "--json").stdout)
    assert value["left"] == 0 and [each["agent"] for each in value["targets"]] == ["claude-code"]
    done = run("uninstall", NAME)
    assert done.exit_code != 0 and "has no skill" in str(done.exception)

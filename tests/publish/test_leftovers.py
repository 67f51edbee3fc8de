"""A kill can leave copies beside a skill, also half removed: the next command removes them, and no file of a user."""

import json
import os
import re
import shutil
import time

import pytest

from skillc.artifacts import beside
from skillc.artifacts.beside import copies, locked, read_record, record_path
from skillc.artifacts.install import install_skill
from skillc.errors import SkillcError
from skillc.publish.installing import install_all
from skillc.publish.manifest import read_manifest
from skillc.publish.report import list_skills
from skillc.publish.staging import adopt, rollback, stage
from skillc.publish.uninstalling import uninstall
from tests.publish.shops import NAME, RULES, compile_as
from tests.publish.test_faults import NEW_TEXT, OLD_TEXT, die_in, texts
from tests.publish.test_foreign_files import MINE, PLACES, ready, state  # noqa: F401 - a fixture

COPY = re.compile(r"\..+\.\d+\.(new|old|gone)")
# Writes, renames, links, flushes and removals of files, those of an old copy too.
ADOPTION, INSTALL, REMOVAL = 90, 48, 40
NOTHING_TO_DO = "has no version before|has no skill|was changed by hand"


def every(steps):
    """Each third step first: those are run by `make test`."""
    return [*range(0, steps + 1, 3), *(each for each in range(steps + 1) if each % 3)]


def quick(steps):
    return pytest.mark.quick_cases(steps // 3 + 1)


def next_command(project, number):
    """Run one of the commands that come to the destinations of a skill; it may find nothing to do."""
    commands = (
        lambda: install_all(project),
        lambda: stage(project, NAME, compile_as(project, *RULES, "Be brief."), by="ada"),
        lambda: rollback(project, NAME, by="ada"),
        lambda: uninstall(project, NAME, by="ada"),
    )
    try:
        commands[number % len(commands)]()
    except SkillcError as problem:
        assert re.search(NOTHING_TO_DO, str(problem))


def assert_clean(project, before):
    """Assert that no copy is left, that the records are of one version, and that the user's files are as they were."""
    folders = [project / each / NAME for each in PLACES]
    assert [each for each in project.rglob("*") if COPY.fullmatch(each.name)] == []
    assert state(folders[0]) == before
    if NAME in read_manifest(project).entries:
        for folder in folders:
            assert sorted(os.listdir(folder.parent)) == [f".{NAME}.skillc.json", NAME]
            assert set(read_record(folder)) == {"format_version", "from", "files"}
        (found,) = list_skills(project, os.environ)
        assert {each.state for each in found.places} <= {"up to date", "changed by hand"}
    else:
        assert sorted(os.listdir(folders[0])) == sorted({each.split("/")[0] for each in MINE})
        assert [os.listdir(each.parent) for each in folders] == [[NAME], []]


@quick(ADOPTION)
@pytest.mark.parametrize("steps", every(ADOPTION))
def test_after_a_kill_of_an_adoption_one_command_leaves_no_copy(ready, steps):  # noqa: F811
    before = state(ready / PLACES[0] / NAME)
    assert die_in(lambda: adopt(ready, NAME, by="ada"), steps, removals=True) == (steps >= ADOPTION)
    next_command(ready, steps)
    assert_clean(ready, before)
    assert set(texts(ready)) in ({OLD_TEXT}, {NEW_TEXT}, {None})


@quick(INSTALL)
@pytest.mark.parametrize("steps", every(INSTALL))
def test_after_a_kill_of_an_install_over_edits_one_command_leaves_no_copy(ready, steps):  # noqa: F811
    """Such an install has no journal."""
    folder = ready / PLACES[0] / NAME
    before = state(folder)
    (folder / "SKILL.md").write_text("mine")
    assert die_in(lambda: install_all(ready, force=True), steps, removals=True) == (steps >= INSTALL)
    next_command(ready, steps)
    assert_clean(ready, before)
    assert texts(ready) in ([OLD_TEXT, OLD_TEXT], ["mine", OLD_TEXT], [None, None])


@quick(REMOVAL)
@pytest.mark.parametrize("steps", every(REMOVAL))
def test_after_a_kill_of_a_removal_one_command_leaves_no_copy(ready, steps):  # noqa: F811
    before = state(ready / PLACES[0] / NAME)
    assert die_in(lambda: uninstall(ready, NAME, by="ada"), steps, removals=True) == (steps >= REMOVAL)
    next_command(ready, steps)
    assert_clean(ready, before)


def die_half_way(project):
    """Kill an adoption while the old copy of the first destination is removed, and return what is left of the copy."""
    remove_folder = shutil.rmtree

    def remove_half(path, ignore_errors=False):
        if path.name.endswith(".old"):
            (path / "SKILL.md").unlink()
            os._exit(9)
        remove_folder(path, ignore_errors)

    def adopt_half():
        shutil.rmtree = remove_half
        adopt(project, NAME, by="ada")

    assert not die_in(adopt_half, 10**6)
    (old,) = copies(project / PLACES[0] / NAME, "old")
    return old


def test_what_is_half_removed_is_not_brought_back(ready):  # noqa: F811
    """Somebody has removed the new version after the kill: what is left of the old one is no skill."""
    folder = ready / PLACES[0] / NAME
    before, old = state(folder), die_half_way(ready)
    shutil.rmtree(folder)
    install_all(ready)
    assert texts(ready) == [NEW_TEXT, NEW_TEXT] and state(folder) == before and not old.exists()


def test_a_file_that_the_user_has_changed_since_the_kill_keeps_its_copy(ready):  # noqa: F811
    old, notes = die_half_way(ready), ready / PLACES[0] / NAME / "notes.txt"
    notes.unlink()
    notes.write_text("mine, changed\n")
    install_all(ready)
    assert (old / "notes.txt").read_text() == "mine\n" and notes.read_text() == "mine, changed\n"
    # A process with the number of the killed one can replace the skill all the same.
    old = old.rename(old.with_name(f".{NAME}.{os.getpid()}.old"))
    rollback(ready, NAME, by="ada")
    assert texts(ready) == [OLD_TEXT, OLD_TEXT] and old.exists()


def test_a_copy_of_the_user_is_no_leftover(ready):  # noqa: F811
    folder = ready / PLACES[0] / NAME
    mine = [shutil.copytree(folder, folder.with_name(f".{NAME}.{each}"), symlinks=True) for each in ("old", "mine.old")]
    mine.append(folder.with_name(f".{NAME}.1.old.txt"))
    mine[-1].write_text("mine")
    shutil.rmtree(folder)
    adopt(ready, NAME, by="ada")
    uninstall(ready, NAME, by="ada")
    assert all(each.exists() for each in mine)


def test_a_file_in_the_place_of_an_old_one_is_the_users_after_a_kill(ready):  # noqa: F811
    """The record has the names of the version before until the next command."""
    adopt(ready, NAME, by="ada")
    folder = ready / PLACES[0] / NAME
    record = dict(read_record(folder))
    rollback(ready, NAME, by="ada")
    now = dict(read_record(folder))
    record_path(folder).write_text(json.dumps({**now, "before": record["files"]}))
    install_all(ready)
    assert read_record(folder) == now
    (folder / "references/prices.md").write_text("mine\n")
    (found,) = list_skills(ready, os.environ)
    assert {each.state for each in found.places} == {"up to date"}


def test_over_a_skill_of_somebody_else_a_kill_leaves_its_state_or_the_new_one(ready, monkeypatch):  # noqa: F811
    """`--force` without a manifest: the record did not exist before."""
    monkeypatch.chdir(ready)
    folder = ready / ".opencode/skills" / NAME

    def put(force):
        return install_skill(
            ready / "tickets.skill", ["opencode"], project=ready, environment=os.environ, force=force
        ).targets[0]

    for steps in range(60):
        shutil.rmtree(folder.parent, ignore_errors=True)
        folder.mkdir(parents=True)
        (folder / "SKILL.md").write_text("theirs")
        done = die_in(lambda: put(force=True), steps, removals=True)
        try:
            assert put(force=False).action == "unchanged"
        except SkillcError as problem:
            assert not done and "was not installed by skillc" in str(problem)
            assert (folder / "SKILL.md").read_text() == "theirs" and not record_path(folder).exists()
        assert len(os.listdir(folder.parent)) == 1 + record_path(folder).exists()
        if done:
            break
    else:
        raise AssertionError("it never got to the end")


# ---- one process at a time --------------------------------------------------------------------------


@pytest.mark.skipif(beside._fcntl is None, reason="no locks of folders here")
def test_a_copy_of_a_running_process_is_left_alone(ready, monkeypatch):  # noqa: F811
    """A second process waits for the first one; without locks, a copy of the last hour may be in use."""
    folder = ready / PLACES[0] / NAME
    new = folder.with_name(f".{NAME}.1.new")
    new.mkdir()
    monkeypatch.setattr(beside, "_WAIT", 0.1)
    with locked([folder.parent]) as alone:
        assert alone
        with pytest.raises(SkillcError, match="another process changes the skills in"):
            install_all(ready)
    assert new.exists()
    monkeypatch.setattr(beside, "_fcntl", None)
    install_all(ready)
    assert new.exists()
    long_ago = time.time() - 7200
    os.utime(new, (long_ago, long_ago))
    install_all(ready)
    assert not new.exists()

"""Files that a user puts into an installed skill's folder survive every command, also one that is killed."""

import os
import stat

import pytest

from skillc.artifacts import beside, foreign
from skillc.artifacts.install import install_skill
from skillc.errors import SkillcError
from skillc.publish.edits import take
from skillc.publish.installing import add, install_all
from skillc.publish.manifest import read_manifest
from skillc.publish.report import uninstalled_json, uninstalled_text
from skillc.publish.staging import EditedThereError, adopt, prepare, rollback, stage, staged
from skillc.publish.uninstalling import uninstall
from skillc.skill_files import read_folder
from tests.publish.shops import NAME, RULES, compile_as, skill_md
from tests.publish.test_faults import NEW, NEW_TEXT, OLD_TEXT, adopt_and_die, fail_after, old_or_new, texts
from tests.publish.test_uninstall import die_after
from tests.publish.test_uninstall import fail_at as fail_once

PLACES = (".claude/skills", ".agents/skills")
# Writes, renames, links and flushes of an adoption at two destinations, and of a removal.
STEPS, REMOVAL_STEPS = 50, 8


@pytest.fixture
def ready(project):
    """Installed with a file of references for two agents; at one of them are files of the user; an update is staged."""
    references(project, "teams.md")
    add(project, project / "tickets.skill", ["claude-code", "codex"], "project", by="ada")
    put_files(project / PLACES[0] / NAME)
    references(project, "teams.md", "prices.md")
    stage(project, NAME, compile_as(project, *RULES, NEW), by="ada")
    return project


def references(project, *names):
    for name in names:
        place = project / "skills" / NAME / "references" / name
        place.parent.mkdir(exist_ok=True)
        place.write_text(f"{name} of skillc\n")


def put_files(folder):
    """A note, a secret, a file among those of skillc, folders with and without files, links and a cache."""
    (folder / "notes.txt").write_text("mine\n")
    (folder / ".env").write_text("KEY=1\n")
    (folder / ".env").chmod(0o600)
    (folder / "references/mine.md").write_text("mine, too\n")
    (folder / "data/deep").mkdir(parents=True)
    (folder / "data/deep/rows.csv").write_text("1\n")
    (folder / "data/empty").mkdir()
    (folder / "latest").symlink_to("data/deep/rows.csv")
    (folder / "away").symlink_to("../../..")
    (folder / "broken").symlink_to("nowhere")
    (folder / "__pycache__").mkdir()
    (folder / "__pycache__/x.pyc").write_text("x")


MINE = ["notes.txt", ".env", "references/mine.md", "data/deep/rows.csv", "data/empty", "latest", "away", "broken"]


def state(folder):
    """Kind, place on the disk and content of each file of the user."""
    found = {}
    for name in MINE:
        place = folder / name
        if place.is_symlink():
            found[name] = str(place.readlink())
        elif place.is_dir():
            found[name] = sorted(os.listdir(place))
        else:
            found[name] = (place.stat().st_ino, stat.S_IMODE(place.stat().st_mode), place.read_text())
    return found


def test_files_of_a_user_survive_update_rollback_and_a_second_install(ready):
    folder = ready / PLACES[0] / NAME
    before, ours = state(folder), {"SKILL.md", "references/teams.md"}
    assert install_all(ready)[0].targets[0].action == "unchanged"
    adopt(ready, NAME, by="ada")
    assert texts(ready) == [NEW_TEXT, NEW_TEXT] and state(folder) == before
    # What an agent reads beside it is the new version, and nothing of the old one.
    assert set(read_folder(ready / PLACES[1] / NAME)) == {*ours, "references/prices.md"}
    rollback(ready, NAME, by="ada")
    assert texts(ready) == [OLD_TEXT, OLD_TEXT] and state(folder) == before
    assert not (folder / "references/prices.md").exists() and (folder / "__pycache__/x.pyc").exists()
    install_all(ready, force=True)
    (folder / "SKILL.md").write_text("mine")
    install_all(ready, force=True)
    assert texts(ready) == [OLD_TEXT, OLD_TEXT] and state(folder) == before
    # A skill without the folder that the user has a file in.
    (ready / "skills" / NAME / "references/teams.md").unlink()
    (ready / "skills" / NAME / "references/prices.md").unlink()
    stage(ready, NAME, compile_as(ready, *RULES, "Be brief."), by="ada")
    adopt(ready, NAME, by="ada")
    assert os.listdir(folder / "references") == ["mine.md"] and state(folder) == before
    assert not (ready / PLACES[1] / NAME / "references").exists()


def test_files_of_a_user_survive_an_install_without_a_manifest(ready):
    folder = ready / PLACES[0] / NAME
    before = state(folder)
    for force in (False, True):
        compile_as(ready, *RULES, NEW, "Be brief." if force else "Be polite.")
        (done,) = install_skill(
            ready / "tickets.skill", ["claude-code"], project=ready, environment=os.environ, force=force
        ).targets
        assert done.action == ("replace" if force else "update") and state(folder) == before


@pytest.mark.parametrize("what", ["file", "link", "folder", "parent"])
def test_a_file_of_a_user_in_the_place_of_a_new_one_stops_the_update(ready, what):
    folder, other = ready / PLACES[0] / NAME, ready / PLACES[1] / NAME
    place = folder / "references/prices.md"
    if what == "file":
        place.write_text("my prices\n")
    elif what == "link":
        place.symlink_to("mine.md")
    elif what == "folder":
        place.mkdir()
        (place / "list.txt").write_text("my prices\n")
    else:
        stage(ready, NAME, with_scripts(ready), by="ada")
        (folder / "scripts").write_text("my prices\n")
    before = state(folder)
    with pytest.raises(EditedThereError, match="was changed by hand") as stopped:
        adopt(ready, NAME, by="ada")
    shown = "+a link to mine.md" if what == "link" else "+my prices"
    assert shown in stopped.value.difference and "--drop-edits" in (stopped.value.hint or "")
    assert texts(ready) == [OLD_TEXT, OLD_TEXT] and state(folder) == before
    if what == "file":
        merged = prepare(ready, NAME, edits="keep").files["references/prices.md"].decode()
        assert "my prices" in merged and "prices.md of skillc" in merged
    (copy,) = adopt(ready, NAME, by="ada", edits="drop").copies
    assert any(shown[1:] in each.read_text() for each in copy.rglob("*") if each.is_file())
    assert texts(ready) == [NEW_TEXT, NEW_TEXT] and state(folder) == before
    assert place.read_text() == (other / "references/prices.md").read_text() == "prices.md of skillc\n"


def with_scripts(project):
    paths = compile_as(project, *RULES, NEW)
    (paths.folder / "scripts").mkdir()
    (paths.folder / "scripts/look.sh").write_text("ls\n")
    return paths


def test_the_same_file_of_a_user_is_no_reason_to_stop(ready):
    (ready / PLACES[0] / NAME / "references/prices.md").write_text("prices.md of skillc\n")
    adopt(ready, NAME, by="ada")
    assert texts(ready) == [NEW_TEXT, NEW_TEXT]


def test_a_file_of_a_user_is_no_edit_and_a_link_in_the_place_of_ours_is_not_followed(ready):
    with pytest.raises(SkillcError, match=r"no destination of .* was changed by hand"):
        take(ready, NAME, by="ada")
    place = ready / PLACES[0] / NAME / "SKILL.md"
    real = place.rename(place.with_name("mine.md"))
    place.symlink_to("mine.md")
    with pytest.raises(SkillcError, match="is not a plain file"):
        adopt(ready, NAME, by="ada")
    assert place.is_symlink() and real.read_text() == OLD_TEXT


def test_a_folder_with_only_files_of_a_user_can_be_installed_into(project):
    folder = project / PLACES[0] / NAME
    folder.mkdir(parents=True)
    (folder / "notes.txt").write_text("mine\n")
    add(project, project / "tickets.skill", ["claude-code"], "project", by="ada")
    assert (folder / "SKILL.md").read_text() == skill_md(*RULES) and (folder / "notes.txt").read_text() == "mine\n"


def test_a_record_names_no_file_outside_of_the_folder(ready, tmp_path):
    """A clone may bring a record that somebody else wrote."""
    outside = ready / PLACES[0] / "other.md"
    outside.write_text("secret\n")
    record = beside.record_path(ready / PLACES[0] / NAME)
    record.write_text(record.read_text().replace('"references/teams.md"', '"../other.md"'))
    with pytest.raises(EditedThereError) as stopped:
        adopt(ready, NAME, by="ada")
    assert "secret" not in stopped.value.difference and outside.read_text() == "secret\n"


def test_where_files_cannot_be_linked_they_are_copied(ready, monkeypatch):
    def refuse(self, target):
        raise OSError(1, "Operation not permitted", str(target))

    monkeypatch.setattr(foreign.Path, "hardlink_to", refuse)
    folder = ready / PLACES[0] / NAME
    before = {name: each[1:] for name, each in state(folder).items()}
    adopt(ready, NAME, by="ada")
    assert texts(ready)[0] == NEW_TEXT and {name: each[1:] for name, each in state(folder).items()} == before


def test_a_file_that_is_put_there_during_the_adoption_is_found_and_kept(ready, monkeypatch):
    from skillc.publish import transaction

    real = transaction.write_entry

    def putting(root, entry):
        (ready / PLACES[0] / NAME / "late.txt").write_text("late")
        real(root, entry)

    monkeypatch.setattr(transaction, "write_entry", putting)
    with pytest.raises(SkillcError, match="was changed while it was being replaced"):
        adopt(ready, NAME, by="ada")
    assert texts(ready) == [OLD_TEXT, OLD_TEXT] and (ready / PLACES[0] / NAME / "late.txt").read_text() == "late"
    monkeypatch.undo()


# ---- uninstall --------------------------------------------------------------------------------------


def test_uninstall_leaves_the_files_of_a_user_and_says_so(ready):
    folder = ready / PLACES[0] / NAME
    before = state(folder)
    dry = uninstall(ready, NAME, by="ada", dry_run=True)
    done = uninstall(ready, NAME, by="ada")
    said = uninstalled_text(done, dry_run=False).splitlines()
    assert "removed except for `.env`, `away`, `broken`, `data`, `latest` and 2 more, which skillc did not" in said[0]
    assert said[1].endswith("removed") and "would be removed except" in uninstalled_text(dry, dry_run=True)
    kept = [".env", "away", "broken", "data", "latest", "notes.txt", "references/mine.md"]
    value = uninstalled_json(done, dry_run=False)["targets"]
    assert [each["kept"] for each in value] == [kept, []]
    assert state(folder) == before and sorted(os.listdir(folder)) == sorted({each.split("/")[0] for each in kept})
    assert not (ready / PLACES[1] / NAME).exists() and not beside.record_path(folder).exists()
    # A later install is no surprise.
    add(ready, ready / "tickets.skill", ["claude-code"], "project", by="ada")
    assert texts(ready)[0] == NEW_TEXT and state(folder) == before
    (folder / "SKILL.md").write_text("edited")
    assert len(uninstall(ready, NAME, by="ada", force=True).copies) == 1 and state(folder) == before


@pytest.mark.parametrize("steps", range(REMOVAL_STEPS + 1))
def test_a_removal_that_is_killed_leaves_the_files_of_a_user(ready, steps):
    before = state(ready / PLACES[0] / NAME)
    done = die_after(ready, steps)
    assert done == (steps >= REMOVAL_STEPS)
    try:
        install_all(ready)
        uninstall(ready, NAME, by="ada")
    except SkillcError as problem:
        assert "has no skill" in problem.message
    assert NAME not in read_manifest(ready).entries
    assert state(ready / PLACES[0] / NAME) == before and not (ready / PLACES[0] / NAME / "SKILL.md").exists()
    assert not (ready / PLACES[1] / NAME).exists()


@pytest.mark.parametrize("steps", range(REMOVAL_STEPS + 1))
def test_a_full_disk_during_a_removal_loses_no_file_of_a_user(ready, steps):
    def full():
        raise OSError(28, "No space left on device", "x")

    before = state(ready / PLACES[0] / NAME)
    with pytest.MonkeyPatch.context() as patch:
        fail_once(patch, steps, full)
        try:
            uninstall(ready, NAME, by="ada")
            done = True
        except SkillcError:
            done = False
    assert state(ready / PLACES[0] / NAME) == before
    assert texts(ready) == ([None, None] if done else [OLD_TEXT, OLD_TEXT])


# ---- kills and errors of an adoption ----------------------------------------------------------------


@pytest.mark.parametrize("steps", range(STEPS + 1))
def test_an_adoption_that_is_killed_leaves_the_files_of_a_user(ready, steps):
    folder = ready / PLACES[0] / NAME
    before = state(folder)
    done = adopt_and_die(ready, steps)
    assert done == (steps >= STEPS) and old_or_new(ready)
    install_all(ready)
    assert state(folder) == before
    if not done and staged(ready, NAME) is not None:
        adopt(ready, NAME, by="ada")
    assert texts(ready) == [NEW_TEXT, NEW_TEXT] and state(folder) == before
    assert sorted(os.listdir(folder.parent)) == [f".{NAME}.skillc.json", NAME]


@pytest.mark.parametrize("steps", range(STEPS + 1))
def test_a_full_disk_loses_no_file_of_a_user(ready, steps):
    folder = ready / PLACES[0] / NAME
    before = state(folder)
    with pytest.MonkeyPatch.context() as patch:
        fail_after(patch, steps, lambda: OSError(28, "No space left on device", "x"))
        try:
            adopt(ready, NAME, by="ada")
        except SkillcError as problem:
            assert "No space left on device" in str(problem)
    install_all(ready)
    assert old_or_new(ready) and state(folder) == before


def test_a_copy_that_a_kill_left_is_removed_only_with_nothing_of_a_user_in_it(ready):
    """A kill between the two renames, after which somebody made the folder anew."""
    folder = ready / PLACES[0] / NAME
    old = folder.with_name(f".{NAME}.1.old")
    folder.rename(old)
    folder.mkdir()
    (folder / "notes.txt").write_text("another note\n")
    install_all(ready)
    assert (old / "notes.txt").read_text() == "mine\n" and (folder / "notes.txt").read_text() == "another note\n"
    assert (folder / ".env").read_text() == "KEY=1\n" and texts(ready)[0] == OLD_TEXT
    (folder / "notes.txt").unlink()
    install_all(ready)
    assert not old.exists() and (folder / "notes.txt").read_text() == "mine\n"

"""Kills, full disks, two processes, links and odd names: an old or a new version, never a mixture, nothing lost."""

import json
import multiprocessing
import os
import shutil
from pathlib import Path

import pytest

from skillc import skill_files
from skillc.artifacts import beside
from skillc.errors import SkillcError
from skillc.publish import kept, manifest, transaction, waiting
from skillc.publish.destinations import destinations
from skillc.publish.installing import add, install_all
from skillc.publish.kept import read_log
from skillc.publish.manifest import read_manifest
from skillc.publish.staging import EditedThereError, adopt, current, rollback, stage, staged
from tests.publish.shops import NAME, RULES, compile_as, held, skill_md

NEW = 'If the ticket mentions "refund", answer billing.'
PLACES = (".claude/skills", ".agents/skills")
WRITERS = (beside, skill_files, kept, manifest, transaction, waiting)
# Writes, renames and flushes of an adoption at two destinations.
STEPS = 30
OLD_TEXT, NEW_TEXT = skill_md(*RULES), skill_md(*RULES, NEW)


@pytest.fixture
def ready(project):
    """Installed for two agents, with an update staged."""
    add(project, project / "tickets.skill", ["claude-code", "codex"], "project", by="ada")
    stage(project, NAME, compile_as(project, *RULES, NEW), by="ada")
    return project


def fail_after(monkeypatch, steps, failure, removals=False):
    """Let so many writes, renames and links, also removals, succeed, and raise at the next and all later ones."""
    left = [steps]

    def counting(real):
        def step(*words, **options):
            left[0] -= 1
            if left[0] < 0:
                raise failure()
            return real(*words, **options)

        return step

    for each in WRITERS:
        monkeypatch.setattr(each, "write_atomically", counting(each.write_atomically))
    for name in ("rename", "hardlink_to", "symlink_to"):
        monkeypatch.setattr(Path, name, counting(getattr(Path, name)))
    monkeypatch.setattr(shutil, "copy2", counting(shutil.copy2))
    for name in ("fsync", *(("unlink", "rmdir") if removals else ())):
        monkeypatch.setattr(os, name, counting(getattr(os, name)))


def texts(project):
    found = [project / each / NAME / "SKILL.md" for each in PLACES]
    return [each.read_text() if each.exists() else None for each in found]


def old_or_new(project):
    return set(texts(project)) <= {OLD_TEXT, NEW_TEXT, None}


def adopt_and_die(project, steps):
    """Adopt until a step; return whether it got to the end."""
    return die_in(lambda: adopt(project, NAME, by="ada"), steps)


def die_in(command, steps, removals=False):
    """Run a command in a child process that ends at a step without any clean-up, as by kill -9."""
    child = os.fork()
    if child == 0:
        try:
            with pytest.MonkeyPatch.context() as patch:
                fail_after(patch, steps, lambda: os._exit(9), removals)
                command()
            os._exit(0)
        finally:
            os._exit(1)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert status in (0, 9)
    return status == 0


@pytest.mark.parametrize("steps", range(STEPS + 1))
def test_a_kill_at_any_step_of_an_adoption_leaves_the_old_or_the_new_version(ready, steps):
    done = adopt_and_die(ready, steps)
    assert done == (steps >= STEPS)
    assert old_or_new(ready)
    install_all(ready)
    wanted = current(ready, NAME).files()["SKILL.md"].decode()
    assert texts(ready) == [wanted, wanted]
    if wanted == OLD_TEXT:
        assert not done and staged(ready, NAME) is not None
        adopt(ready, NAME, by="ada")
    assert texts(ready) == [NEW_TEXT, NEW_TEXT] and staged(ready, NAME) is None
    assert [each["event"] for each in read_log(ready, NAME)] == ["installed", "adopted"]
    rollback(ready, NAME, by="ada")
    assert texts(ready) == [OLD_TEXT, OLD_TEXT]
    for place in PLACES:
        assert sorted(os.listdir(ready / place)) == [f".{NAME}.skillc.json", NAME]


@pytest.mark.parametrize("steps", range(0, STEPS + 1, 2))
def test_a_full_disk_changes_nothing_and_the_adoption_can_be_repeated(ready, steps):
    def full():
        return OSError(28, "No space left on device", "x")

    before = [read_manifest(ready).entries, texts(ready)]
    with pytest.MonkeyPatch.context() as patch:
        fail_after(patch, steps, full)
        try:
            adopt(ready, NAME, by="ada")
            done = True
        except SkillcError as problem:
            assert "No space left on device" in str(problem)
            done = False
    assert old_or_new(ready)
    if not done:
        install_all(ready)
        assert texts(ready) in ([OLD_TEXT] * 2, [NEW_TEXT] * 2)
    if staged(ready, NAME) is not None:
        assert [read_manifest(ready).entries, texts(ready)] == before
        adopt(ready, NAME, by="ada")
    assert texts(ready) == [NEW_TEXT, NEW_TEXT]


def test_an_edit_during_the_adoption_is_found_and_kept(ready, monkeypatch):
    place = ready / PLACES[1] / NAME / "SKILL.md"
    real = transaction.write_entry

    def editing(root, entry):
        place.write_text(OLD_TEXT + "- Mine.\n")
        real(root, entry)

    monkeypatch.setattr(transaction, "write_entry", editing)
    with pytest.raises(SkillcError, match="was changed while it was being replaced"):
        adopt(ready, NAME, by="ada")
    assert texts(ready) == [OLD_TEXT, OLD_TEXT + "- Mine.\n"]
    assert current(ready, NAME).files()["SKILL.md"].decode() == OLD_TEXT and staged(ready, NAME) is not None
    with pytest.raises(EditedThereError):
        adopt(ready, NAME, by="ada")


def adopt_in_process(project, results):
    try:
        results.put(adopt(project, NAME, by="ada").version.digest)
    except SkillcError as problem:
        results.put(str(problem))


def test_two_processes_adopt_once(ready):
    context = multiprocessing.get_context("fork")
    results = context.Queue()
    both = [context.Process(target=adopt_in_process, args=(ready, results)) for _ in range(2)]
    for each in both:
        each.start()
    found = sorted(results.get(timeout=60) for _ in both)
    for each in both:
        each.join()
    assert found[1] == "nothing is staged for `route-tickets`" and len(found[0]) == 64
    assert [each["event"] for each in read_log(ready, NAME)] == ["installed", "adopted"]
    assert texts(ready) == [NEW_TEXT, NEW_TEXT]


@pytest.mark.parametrize("link", ["folder", "skill"])
def test_no_link_is_followed(ready, tmp_path, link):
    elsewhere = tmp_path / "elsewhere"
    place = ready / PLACES[0] if link == "folder" else ready / PLACES[0] / NAME
    shutil.move(place, elsewhere)
    place.symlink_to(elsewhere)
    before = held(elsewhere)
    with pytest.raises(SkillcError, match="link"):
        adopt(ready, NAME, by="ada")
    assert held(elsewhere) == before and texts(ready)[1] == OLD_TEXT
    assert current(ready, NAME).files()["SKILL.md"].decode() == OLD_TEXT


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_destination_that_cannot_be_written_leaves_all_as_they_were(ready):
    (ready / PLACES[1]).chmod(0o500)
    try:
        with pytest.raises(SkillcError, match="cannot be written"):
            adopt(ready, NAME, by="ada")
    finally:
        (ready / PLACES[1]).chmod(0o700)
    assert texts(ready) == [OLD_TEXT, OLD_TEXT] and staged(ready, NAME) is not None


def test_a_kept_version_that_was_changed_is_not_installed(ready):
    place = current(ready, NAME).paths.skill
    place.write_text("changed")
    with pytest.raises(SkillcError, match="was changed since version"):
        install_all(ready)
    assert texts(ready) == [OLD_TEXT, OLD_TEXT]


def test_names_with_odd_characters_are_refused_and_odd_folders_work(project, tmp_path):
    odd = tmp_path / "a b – ü'\"$x"
    shutil.copytree(project, odd)
    add(odd, odd / "tickets.skill", ["codex"], "project", by="ada ü")
    assert destinations(odd, read_manifest(odd).entries[NAME], os.environ)[0].state == "up to date"
    (odd / "skills.toml").write_text('[skills."../../x"]\nfrom = "tickets.skill"\n')
    with pytest.raises(SkillcError, match="is no name of a skill"):
        install_all(odd)


def test_a_line_of_the_log_that_a_kill_cut_short_is_left_out(ready):
    path = kept.log_path(ready, NAME)
    path.write_text(path.read_text() + '{"event": "adop')
    adopt(ready, NAME, by="ada")
    assert [each["event"] for each in read_log(ready, NAME)] == ["installed", "adopted"]
    assert len(path.read_text().splitlines()) == 3
    path.write_text(path.read_text() + json.dumps([1]) + "\n")
    assert "]" in path.read_text()
    with pytest.raises(SkillcError, match="is no record"):
        path.write_text('{"event": 1}\n')
        read_log(ready, NAME)

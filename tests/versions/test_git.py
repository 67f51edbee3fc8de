"""Versions in git: read without a checkout, with a word for whatever git does not have."""

import json
import os
import shutil
import subprocess
from hashlib import sha256
from pathlib import Path

import pytest
from shops import PROGRAM, edited, rows, write_rows, write_shop

from skillc.errors import SkillcError
from skillc.versions.change import BY_CODE
from skillc.versions.findings import compare_programs
from skillc.versions.git import repository_of

PROGRAM_PATH = Path("things.skill")


def rules(compared):
    return [BY_CODE[each.code].name for found in compared for each in found.findings]


def test_a_branch_is_compared_without_a_checkout(repo):
    repo.git("checkout", "-q", "-b", "work")
    repo.write("<= 10% => <= 20%")
    repo.commit("two")
    (repo.folder / "untracked.txt").write_text("mine")
    before = repo.git("status", "--porcelain")
    (found,) = compare_programs([PROGRAM_PATH], "main")
    assert rules([found]) == ["gate-loosened"]
    assert found.findings[0].secondary[0].source.name == "main:things.skill"
    assert repo.git("status", "--porcelain") == before
    assert rules(compare_programs([PROGRAM_PATH], "work")) == []


def test_a_folder_pairs_its_programs(repo):
    for name in ("a b", 'ü"q'):
        (repo.folder / name).mkdir()
        write_shop(repo.folder / name, edited(f"sort_things => sort_{len(name)}"))
    (repo.folder / "lab.skill").write_text("language 1\ngate x(m: metric) = candidate.m > incumbent.m\n")
    repo.commit("two")
    (repo.folder / "a b" / "things.skill").unlink()
    (repo.folder / "fresh.skill").write_text(edited("sort_things => another"))
    repo.git("mv", "things.skill", "moved.skill")
    (repo.folder / "moved.skill").write_text(edited("epochs = 2 => epochs = 3"))
    found = {each.program: each for each in compare_programs([Path(".")], "HEAD")}
    assert {name: each.state for name, each in found.items()} == {
        "a b/things.skill": "removed",
        'ü"q/things.skill': "compared",
        "moved.skill": "compared",
        "fresh.skill": "new",
    }
    assert rules([found["a b/things.skill"]]) == ["program-removed"]
    assert rules([found["moved.skill"]]) == ["budget-raised"]


def test_a_program_in_a_folder_below_the_root_finds_its_files(repo):
    (repo.folder / "deep").mkdir()
    (repo.folder / "deep" / "lab.skill").write_text(
        "language 1\ngate small_step(most: share) = change(candidate) <= most\n"
    )
    write_shop(repo.folder / "deep", edited('use std.gates => use "./lab.skill" as gates'))
    repo.commit("two")
    (repo.folder / "deep" / "lab.skill").write_text(
        "language 1\ngate small_step(most: share) = change(candidate) <= most or candidate.correct > 90%\n".replace(
            "candidate.correct > 90%", "tokens(candidate) < 50 tokens"
        )
    )
    os.chdir(repo.folder / "deep")
    assert rules(compare_programs([PROGRAM_PATH], "HEAD")) == ["gate-loosened"]


@pytest.mark.parametrize(
    ("ref", "said", "hint"),
    [
        ("mian", "no commit `mian`", "did you mean `main`?"),
        ("-x", "is not a revision", "a branch"),
        ("", "is not a revision", "a branch"),
        ("nowhere-near", "no commit", "valid revisions: `main`"),
    ],
)
def test_an_unknown_ref_is_said_with_the_nearest(repo, ref, said, hint):
    with pytest.raises(SkillcError, match=said) as problem:
        compare_programs([PROGRAM_PATH], ref)
    assert hint in problem.value.hint


def test_a_remote_branch_is_suggested_by_its_own_name(repo):
    repo.git("update-ref", "refs/remotes/origin/release", "HEAD")
    with pytest.raises(SkillcError) as problem:
        compare_programs([PROGRAM_PATH], "release")
    assert problem.value.hint == "did you mean `origin/release`?"


def test_a_shallow_clone_says_how_to_deepen_it(repo, tmp_path):
    repo.write("epochs = 2 => epochs = 3")
    repo.commit("two")
    first = repo.git("rev-parse", "HEAD~1").strip()
    clone = tmp_path / "clone"
    subprocess.run(["git", "clone", "-q", "--depth", "1", f"file://{repo.folder}", str(clone)], check=True)
    with pytest.raises(SkillcError) as problem:
        compare_programs([clone / "things.skill"], first)
    assert "fetch-depth: 0" in problem.value.hint


def test_no_repository_and_no_git(repo, tmp_path, monkeypatch):
    (tmp_path / "alone").mkdir()
    write_shop(tmp_path / "alone")
    with pytest.raises(SkillcError, match="is in no git repository") as problem:
        compare_programs([tmp_path / "alone" / "things.skill"], "main")
    assert "old/tickets.skill" in problem.value.hint
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SkillcError, match="the `git` command is missing"):
        compare_programs([PROGRAM_PATH], "main")


def test_a_program_that_is_nowhere_is_an_error_and_a_new_one_is_not(repo):
    with pytest.raises(SkillcError, match="exists neither here nor at `main`"):
        compare_programs([Path("thing.skill")], "main")
    (repo.folder / "fresh.skill").write_text(PROGRAM)
    (found,) = compare_programs([Path("fresh.skill")], "main")
    assert found.state == "new"
    assert not found.weaker


def test_a_program_with_errors_at_the_ref_cannot_be_judged(repo):
    good = PROGRAM
    repo.write("gate better => gaet better")
    repo.commit("broken")
    (repo.folder / "things.skill").write_text(good)
    with pytest.raises(SkillcError, match="at `HEAD` has 1 error") as problem:
        compare_programs([PROGRAM_PATH], "HEAD")
    (first, *_) = problem.value.diagnostics
    assert first.primary.source.name == "HEAD:things.skill"


def test_a_file_that_was_no_text_is_called_by_its_place_in_git(repo):
    good = (repo.folder / "things.skill").read_bytes()
    (repo.folder / "things.skill").write_bytes(b"language 1\n\xff\n")
    repo.commit("broken")
    (repo.folder / "things.skill").write_bytes(good)
    with pytest.raises(SkillcError, match=r"HEAD:things\.skill. is not UTF-8"):
        compare_programs([PROGRAM_PATH], "HEAD")


def test_a_library_has_nothing_to_compare(repo):
    (repo.folder / "lab.skill").write_text("language 1\ngate x(m: metric) = candidate.m > incumbent.m\n")
    repo.commit("two")
    with pytest.raises(SkillcError, match="has no plan to compare"):
        compare_programs([Path("lab.skill")], "HEAD")


# ---- data -----------------------------------------------------------------------------------------


def test_changed_data_is_compared_example_by_example(repo):
    items = list(rows())
    write_rows(repo.folder / "things.jsonl", items[:100])
    (found,) = compare_programs([PROGRAM_PATH], "HEAD")
    assert "test-split-changed" in rules([found])
    assert "are gone" in found.findings[0].message


def pointer(content):
    return (
        f"version https://git-lfs.github.com/spec/v1\noid sha256:{sha256(content).hexdigest()}\nsize {len(content)}\n"
    )


def with_pointer(repo, content):
    """A commit that holds a pointer in place of the data, and the data in the working tree."""
    data = repo.folder / "things.jsonl"
    data.write_text(pointer(content))
    repo.commit("pointer")
    data.write_bytes(content)


def test_data_in_lfs_is_compared_by_its_digest(repo):
    content = (repo.folder / "things.jsonl").read_bytes()
    with_pointer(repo, content)
    assert rules(compare_programs([PROGRAM_PATH], "HEAD")) == []
    write_rows(repo.folder / "things.jsonl", list(rows())[:100])
    (found,) = compare_programs([PROGRAM_PATH], "HEAD")
    assert rules([found]) == ["data-not-compared"]
    assert "Git LFS" in found.findings[0].message
    assert not found.weaker


def test_data_in_the_store_of_lfs_is_read_there(repo):
    content = (repo.folder / "things.jsonl").read_bytes()
    with_pointer(repo, content)
    oid = sha256(content).hexdigest()
    place = repo.folder / ".git/lfs/objects" / oid[:2] / oid[2:4]
    place.mkdir(parents=True)
    (place / oid).write_bytes(content)
    write_rows(repo.folder / "things.jsonl", list(rows())[:100])
    assert "test-split-changed" in rules(compare_programs([PROGRAM_PATH], "HEAD"))


def test_data_outside_the_repository_is_never_silently_fine(repo):
    shutil.move("things.jsonl", "../things.jsonl")
    repo.write('"things.jsonl" => "../things.jsonl"')
    repo.commit("two")
    (found,) = compare_programs([PROGRAM_PATH], "HEAD")
    assert rules([found]) == ["data-not-compared"]
    assert "outside the repository" in found.findings[0].message
    repo.write("seed = 3 => seed = 4")
    assert rules(compare_programs([PROGRAM_PATH], "HEAD")) == ["test-split-changed"]


def test_what_git_never_had_is_said(repo):
    repo.git("rm", "-q", "--cached", "things.jsonl")
    repo.git("commit", "-q", "-m", "no data")
    (found,) = compare_programs([PROGRAM_PATH], "HEAD")
    assert "not in git" in found.findings[0].message


# ---- git ------------------------------------------------------------------------------------------


def test_odd_names_and_links_are_read(repo):
    (repo.folder / "-x: y*.skill").write_text(PROGRAM)
    (repo.folder / "link.skill").symlink_to("things.skill")
    repo.commit("odd")
    found = repository_of(repo.folder)
    commit = found.commit("HEAD")
    assert found.read(commit, "-x: y*.skill").decode() == PROGRAM
    assert found.read(commit, "link.skill").decode() == PROGRAM
    assert found.read(commit, "nothing") is None
    assert found.read(commit, "../outside") is None
    assert "-x: y*.skill" in found.programs(commit, "")


def test_a_hook_s_variables_do_not_mislead(repo, monkeypatch, tmp_path):
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "elsewhere"))
    assert repository_of(repo.folder).root == repo.folder.resolve()


def test_the_json_of_breaking(repo):
    from skillc.versions.findings import diff_json

    repo.write("epochs = 2 => epochs = 3")
    found = diff_json(compare_programs([PROGRAM_PATH], "HEAD"), "HEAD", "the working tree")
    json.dumps(found)
    assert found["weaker"] is True
    assert found["programs"][0]["findings"][0]["rule"] == "budget-raised"
    assert found["programs"][0]["changes"][0]["bearing"] == "looser"

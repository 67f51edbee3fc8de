"""Real merges of branches that compiled the same skill, and what `check --locked` says of a compiled one."""

import json
import os
import shutil
import subprocess
import time
from pathlib import Path

import pytest
from click.testing import CliRunner
from forked import command
from shops import edited, learnable, rows, write_rows, write_shop

import skillc as package
from skillc.cli import skillc
from skillc.conflict import UnmergedError
from skillc.errors import SkillcError
from skillc.plan.lock import parse_lock, read_lock, write_lock
from skillc.run.history import decisions_until, read_history
from skillc.versions.hand_edits import HandEditedError
from skillc.versions.locked import locked_findings
from skillc.versions.resolve import resolve_merge

SKILLS = Path("skills")
SKILL = SKILLS / "sort-things"
LOCK, HISTORY, MODULE = SKILLS / "sort-things.lock", SKILLS / "sort-things.history.jsonl", SKILLS / "sort_things.py"
FILES = (SKILL / "SKILL.md", LOCK, HISTORY, MODULE, SKILLS / ".gitattributes")


# Several compiles in one process.
COMPILES = """
import json, os, sys
from skillc.cli import skillc
for folder, *options in json.loads(sys.argv[1]):
    os.chdir(folder)
    skillc.main(["compile", "things.skill", *options], standalone_mode=False)
"""


def compile_in(*jobs):
    done = subprocess.run(
        [*command("python"), "-c", COMPILES, json.dumps([[str(folder), *options] for folder, *options in jobs])],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="session")
def three(tmp_path_factory):
    """The skill compiled in three ways: as the program says, without drafts, and offline for another target."""
    jobs = []
    offline = edited('target    = "rulebook/v1" => target = "openai/gpt-5.5-mini"', program=learnable())
    ways = ((learnable(), ()), (learnable(), ("--set", "optimize.drafts=0")), (offline, ("--offline",)))
    for program, options in ways:
        folder = tmp_path_factory.mktemp("shop")
        write_shop(folder, program)
        jobs.append((folder, *options))
    compile_in(*jobs)
    for folder, *_ in jobs:
        shutil.rmtree(folder / ".skillc")
    return [folder for folder, *_ in jobs]


@pytest.fixture(scope="session")
def two(three):
    """The first two of them, which differ."""
    texts = [(folder / SKILL / "SKILL.md").read_text() for folder in three]
    assert texts[0] != texts[1]
    return three[:2]


@pytest.fixture
def shop(two, tmp_path, monkeypatch):
    """The first of them, to be changed."""
    shutil.copytree(two[0], tmp_path / "shop")
    monkeypatch.chdir(tmp_path / "shop")
    return tmp_path / "shop"


@pytest.fixture
def learnt(repo):
    """A repository with the program, and without a compiled skill."""
    (repo.folder / "things.skill").write_text(learnable())
    repo.commit("learnable")
    return repo


@pytest.fixture
def merging(learnt, two):
    """A merge of two branches that both compiled, as git leaves it."""
    repo = learnt
    for branch, folder in (("side", two[1]), ("main", two[0])):
        repo.git("checkout", "-q", *(["-b"] if branch == "side" else []), branch)
        shutil.copytree(folder / SKILLS, repo.folder / SKILLS)
        repo.commit(branch)
    out = repo.git("merge", "side", fails=True)
    assert "CONFLICT" in out
    return repo


def codes(found):
    return [each.code for each in found]


# ---- merges ---------------------------------------------------------------------------------------


def test_git_never_mixes_two_skills_and_unites_their_history(merging, two):
    folder = merging.folder
    assert (folder / SKILL / "SKILL.md").read_text() == (two[0] / SKILL / "SKILL.md").read_text()
    open_files = merging.git("diff", "--name-only", "--diff-filter=U").split()
    assert open_files == [path.as_posix() for path in (LOCK, SKILL / "SKILL.md")]
    found = read_history(folder / HISTORY)
    for each in two:
        lock = read_lock(each / LOCK)
        assert decisions_until(found, lock.run, lock.history) is not None


@pytest.mark.parametrize("verb", ["compile", "eval"])
def test_every_verb_names_the_one_command(merging, verb):
    done = CliRunner().invoke(skillc, [verb, "things.skill"], standalone_mode=False)
    assert isinstance(done.exception, UnmergedError)
    assert "skillc resolve skills/sort-things --keep ours" in done.exception.hint


def test_loading_and_checking_name_it_too(merging):
    for place in ("things.skill", SKILL):
        with pytest.raises(UnmergedError):
            package.load(place)
    (found,) = locked_findings(merging.folder / "things.skill")
    assert found.code == "SK760"
    assert "skillc resolve" in found.hint


@pytest.mark.parametrize(("keep", "which"), [("ours", 0), ("theirs", 1)])
@pytest.mark.parametrize("place", ["things.skill", SKILL])
def test_one_side_is_kept_whole_with_the_looks_and_history_of_both(merging, two, keep, which, place):
    found = resolve_merge(Path(place), keep)
    folder = merging.folder
    for name in (SKILL / "SKILL.md", MODULE):
        assert (folder / name).read_bytes() == (two[which] / name).read_bytes()
    locks = [read_lock(each / LOCK) for each in two]
    lock = read_lock(folder / LOCK)
    assert {each.run for each in lock.looks} == {each.run for own in locks for each in own.looks}
    assert lock.model_copy(update={"looks": locks[which].looks}) == locks[which]
    history = read_history(folder / HISTORY)
    assert all(decisions_until(history, own.run, own.history) is not None for own in locks)
    assert codes(found.findings) == ([] if which == 0 else ["SK759"])
    merging.commit("merged")
    assert "UU" not in merging.git("status", "--porcelain")


def test_better_goes_by_validation_and_refuses_what_does_not_compare(merging):
    with pytest.raises(SkillcError, match="compiled with different programs"):
        resolve_merge(Path("things.skill"), "better")


def test_better_takes_the_higher_score(learnt, two):
    repo = learnt
    lock = read_lock(two[0] / LOCK)
    best = lock.validation.best
    for branch, mean in (("side", best.mean / 2 + 1), ("main", best.mean / 2)):
        repo.git("checkout", "-q", *(["-b"] if branch == "side" else []), branch)
        shutil.copytree(two[0] / SKILLS, repo.folder / SKILLS)
        validation = lock.validation.model_copy(update={"best": best.model_copy(update={"mean": mean})})
        write_lock(repo.folder / LOCK, lock.model_copy(update={"validation": validation}))
        repo.commit(branch)
    repo.git("merge", "side", fails=True)
    found = resolve_merge(Path("things.skill"), "better")
    assert found.kept == "theirs"
    assert "on validation" in found.why


def test_a_merged_program_that_is_neither_s_asks_for_a_compile(merging):
    from skillc.versions.resolve import merge_text

    merging.write("epochs = 1 => epochs = 3")
    found = resolve_merge(Path("things.skill"), "ours")
    assert "SK752" in codes(found.findings)
    assert "then      skillc compile things.skill" in merge_text(found)


def test_a_file_that_was_edited_since_the_merge_is_not_overwritten(merging, two):
    skill = merging.folder / SKILL / "SKILL.md"
    skill.write_bytes(skill.read_bytes().replace(b"\n", b"\r\n"))
    edited_by_hand = skill.read_text() + "mine\n"
    skill.write_text(edited_by_hand)
    with pytest.raises(HandEditedError) as refused:
        resolve_merge(Path("things.skill"), "theirs")
    assert "+mine\n" in refused.value.difference
    assert skill.read_text() == edited_by_hand
    assert resolve_merge(Path("things.skill"), "theirs", force=True).kept == "theirs"
    assert skill.read_bytes() == (two[1] / SKILL / "SKILL.md").read_bytes()


def test_a_side_that_edited_its_skill_by_hand_keeps_the_edit(learnt, two):
    repo = learnt
    shutil.copytree(two[0] / SKILLS, repo.folder / SKILLS)
    repo.commit("compiled")
    repo.git("checkout", "-q", "-b", "side")
    skill = repo.folder / SKILL / "SKILL.md"
    skill.write_text(skill.read_text() + "mine\n")
    repo.commit("edited")
    repo.git("checkout", "-q", "main")
    shutil.rmtree(repo.folder / SKILLS)
    shutil.copytree(two[1] / SKILLS, repo.folder / SKILLS)
    repo.commit("compiled again")
    repo.git("merge", "side", fails=True)
    found = resolve_merge(Path("things.skill"), "theirs")
    assert skill.read_text().endswith("mine\n")
    assert found.edited == ("sort-things/SKILL.md",)
    assert "SK755" in codes(found.findings)


def test_an_open_program_comes_first_and_nothing_open_is_said(merging):
    merging.git("merge", "--abort")
    with pytest.raises(SkillcError, match="no open merge"):
        resolve_merge(Path("things.skill"), "ours")
    for branch, epochs in (("side", 5), ("main", 6)):
        merging.git("checkout", "-q", branch)
        merging.write(f"epochs = 1 => epochs = {epochs}")
        merging.commit(f"{branch} again")
    merging.git("merge", "side", fails=True)
    with pytest.raises(SkillcError, match="is unmerged too") as problem:
        resolve_merge(Path("things.skill"), "ours")
    assert "git add things.skill" in problem.value.hint


def test_marks_in_files_of_before_the_attributes_are_found(shop):
    skill = shop / SKILL / "SKILL.md"
    text = skill.read_text()
    skill.write_text(f"{text}\n<<<<<<< HEAD\none\n=======\nother\n>>>>>>> side\n")
    for place in (shop / "things.skill", shop / SKILL):
        with pytest.raises(UnmergedError):
            package.load(place)
    module = shop / MODULE
    skill.write_text(text)
    module.write_text(f"<<<<<<< HEAD\n{module.read_text()}=======\n>>>>>>> side\n")
    with pytest.raises(UnmergedError):
        package.load(shop / SKILL)


def test_a_skill_that_speaks_of_marks_is_no_merge(shop):
    import hashlib

    skill = shop / SKILL / "SKILL.md"
    skill.write_text(skill.read_text() + "\n```\n<<<<<<< HEAD\na\n=======\nb\n>>>>>>> x\n```\n")
    lock = read_lock(shop / LOCK)
    files = {**lock.files, "sort-things/SKILL.md": hashlib.sha256(skill.read_bytes()).hexdigest()}
    write_lock(shop / LOCK, lock.model_copy(update={"files": files}))
    package.load(shop / "things.skill")


def test_branches_that_compiled_different_skills_merge_without_a_conflict(learnt, two):
    repo = learnt
    other = two[0] / SKILLS
    for branch, name in (("side", "sort_stones"), ("main", "sort_things")):
        repo.git("checkout", "-q", *(["-b"] if branch == "side" else []), branch)
        for path in (path for path in other.rglob("*") if path.is_file()):
            place = Path(str(path.relative_to(two[0])).replace("sort_things", name))
            place = repo.folder / str(place).replace("sort-things", name.replace("_", "-"))
            place.parent.mkdir(parents=True, exist_ok=True)
            text = path.read_text() if path.name == ".gitattributes" else f"{name}\n"
            place.write_text(text.replace("sort_things", name).replace("sort-things", name.replace("_", "-")))
        repo.commit(branch)
    repo.git("merge", "side")
    lines = (repo.folder / SKILLS / ".gitattributes").read_text().splitlines()
    assert len(lines) == len(set(lines)) == 9


# ---- check --locked -------------------------------------------------------------------------------


def test_what_was_compiled_fits_its_lock(shop):
    assert sorted(path.relative_to(shop) for path in (shop / SKILLS).rglob("*") if path.is_file()) == sorted(FILES)
    assert [path.name for path in (shop / SKILL).iterdir()] == ["SKILL.md"]
    assert locked_findings(shop / "things.skill") == ()
    done = CliRunner().invoke(skillc, ["check", "things.skill", "--locked"], standalone_mode=False)
    assert done.return_value == 0


def test_options_of_the_compile_are_put_in_again(two):
    (found,) = locked_findings(two[1] / "things.skill")
    assert found.code == "SK759"
    assert "--set optimize.drafts=0" in found.message


DRIFT = [
    ("SK751", lambda f: shutil.rmtree(f / SKILLS)),
    ("SK751", lambda f: (f / LOCK).unlink()),
    ("SK752", lambda f: (f / "things.skill").write_text(edited("<= 10% => <= 11%", program=learnable()))),
    ("SK753", lambda f: write_rows(f / "things.jsonl", list(rows())[1:])),
    ("SK753", lambda f: (f / "things.jsonl").unlink()),
    ("SK755", lambda f: (f / SKILL / "SKILL.md").write_text("---\nname: sort-things\n---\nmine")),
    ("SK755", lambda f: (f / MODULE).write_text("")),
    ("SK756", lambda f: (f / MODULE).unlink()),
    ("SK756", lambda f: shutil.rmtree(f / SKILL)),
    ("SK757", lambda f: (f / SKILL / "old_name.py").write_text("")),
    ("SK758", lambda f: (f / HISTORY).unlink()),
    ("SK758", lambda f: _without_a_line(f / HISTORY)),
]


def _without_a_line(path):
    path.write_text("".join(path.read_text().splitlines(keepends=True)[1:]))


@pytest.mark.parametrize(("code", "drift"), DRIFT, ids=[f"{code}-{i}" for i, (code, _) in enumerate(DRIFT)])
def test_each_drift_is_named_with_its_next_step(shop, code, drift):
    drift(shop)
    found = locked_findings(shop / "things.skill")
    assert codes(found) == [code]
    assert found[0].hint
    done = CliRunner().invoke(skillc, ["check", "things.skill", "--locked"], standalone_mode=False)
    assert done.return_value == 1
    assert code in done.stdout


def test_a_test_example_that_the_skill_learnt_from_is_named(shop):
    (shop / "things.skill").write_text(edited("seed = 3 => seed = 4", program=learnable()))
    assert codes(locked_findings(shop / "things.skill")) == ["SK752", "SK753", "SK754"]


def test_what_is_no_drift(shop):
    program = (shop / "things.skill").read_text()
    (shop / "things.skill").write_text(f"# mine\n{program}")
    lines = (shop / "things.jsonl").read_text().splitlines()
    (shop / "things.jsonl").write_text("\n".join(reversed(lines)) + "\n")
    skill = shop / SKILL / "SKILL.md"
    skill.write_bytes(skill.read_bytes().replace(b"\n", b"\r\n"))
    history = shop / HISTORY
    history.write_text("".join(reversed(history.read_text().splitlines(keepends=True) * 2)))
    (shop / SKILL / "references").mkdir()
    (shop / SKILL / "references" / "more.md").write_text("mine")
    (shop / SKILL / "LICENSE.txt").write_text("mine")
    os.utime(skill, (time.time(), 0))
    assert locked_findings(shop / "things.skill") == ()


def test_a_skill_that_was_written_elsewhere_is_found(shop):
    shutil.move(shop / "skills", shop / "agents")
    assert locked_findings(shop / "things.skill") == ()
    (shop / "agents/sort-things/SKILL.md").unlink()
    assert codes(locked_findings(shop / "things.skill")) == ["SK756"]


def test_a_skill_in_an_agents_hidden_folder_is_found_and_environments_are_passed_over(shop):
    (shop / ".claude").mkdir()
    shutil.copytree(shop / SKILLS, shop / ".claude" / SKILLS)
    (shop / ".claude" / MODULE).unlink()
    shutil.copytree(shop / ".claude", shop / "env")
    (shop / "env" / "pyvenv.cfg").write_text("")
    (found,) = locked_findings(shop / "things.skill")
    assert found.code == "SK756"
    assert ".claude/skills/sort_things.py" in found.message


def test_in_git_the_diff_since_the_lock_is_one_command(learnt, two):
    repo = learnt
    shutil.copytree(two[0] / SKILLS, repo.folder / SKILLS)
    repo.commit("compiled")
    repo.write("epochs = 1 => epochs = 3")
    (found,) = locked_findings(repo.folder / "things.skill")
    short = repo.git("rev-parse", "--short", "HEAD").strip()
    assert f"--against {short}" in found.hint


def test_an_offline_compile_fits_its_lock_and_says_so(three):
    folder = three[2]
    (found,) = locked_findings(folder / "things.skill")
    assert found.code == "SK759"
    assert "--offline" in found.message
    lock = json.loads((folder / LOCK).read_text())
    assert lock["program"]["options"]["offline"] is True


def test_a_lock_of_before_is_read(two):
    text = (two[0] / LOCK).read_text()
    value = json.loads(text)
    del value["history"], value["program"]["options"], value["program"]["code"]
    old = parse_lock(json.dumps(value), two[0])
    assert old.history is None
    assert old.program.options is None


def test_the_data_of_a_ref_is_compared_by_its_lock_where_git_has_none(learnt, two):
    repo = learnt
    from skillc.versions.change import BY_CODE
    from skillc.versions.findings import compare_programs

    shutil.copytree(two[0] / SKILLS, repo.folder / SKILLS)
    repo.git("rm", "-q", "--cached", "things.jsonl")
    repo.git("add", "skills")
    repo.git("commit", "-q", "-m", "the data stays here")
    assert compare_programs([Path("things.skill")], "HEAD")[0].findings == ()
    write_rows(repo.folder / "things.jsonl", [{**row, "text": row["text"] + "!"} for row in rows()])
    (found,) = compare_programs([Path("things.skill")], "HEAD")
    assert [BY_CODE[each.code].name for each in found.findings] == ["test-split-changed"]

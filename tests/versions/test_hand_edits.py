"""A skill that was edited by hand is never overwritten unasked, and its edits can become the program's."""

import json
import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest
from click.testing import CliRunner
from shops import edited, learnable, write_shop

from skillc.artifact_paths import ArtifactPaths
from skillc.cli import skillc
from skillc.errors import SkillcError
from skillc.frontend import plan_file
from skillc.plan.lock import read_lock
from skillc.versions.hand_edits import HandEditedError, WrittenCopies, free_paths, protect
from skillc.versions.locked import locked_findings

PROGRAM = edited(
    "budget { epochs = 1; => budget { steps = 1;",
    'about = "Say what => # mine\n  about = "Say what',
    program=learnable(),
)
PATHS = ArtifactPaths(Path("skills"), "sort-things")
ROLE = "You sort texts.\nOne answer for each."


@dataclass(frozen=True)
class Done:
    """What a verb did."""

    status: int | None
    out: str
    err: str
    problem: BaseException | None


def run(*words):
    done = CliRunner().invoke(skillc, [*map(str, words)], standalone_mode=False)
    if done.exception is not None and not isinstance(done.exception, SkillcError):
        raise done.exception
    return Done(done.return_value, done.stdout, done.stderr, done.exception)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A shop that was compiled once."""
    folder = tmp_path_factory.mktemp("made") / "shop"
    folder.mkdir()
    write_shop(folder, PROGRAM)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        assert run("compile", "things.skill").status == 0
    return folder


@pytest.fixture
def shop(made, tmp_path, monkeypatch):
    """A copy of it, to be edited."""
    shutil.copytree(made, tmp_path / "shop")
    monkeypatch.chdir(tmp_path / "shop")
    return tmp_path / "shop"


def edit(path, old, new):
    text = path.read_text()
    assert old in text, text
    path.write_text(text.replace(old, new, 1))


def guarded(program="things.skill", **options):
    """What a compile checks before its first call."""
    planned = plan_file(Path(program), complete=False)
    paths = ArtifactPaths.beside(planned.root, planned.plan.skill.artifact)
    return protect(planned, paths, planned.root / ".skillc", **options)


def rule():
    """A rule that the compile wrote."""
    return next(line for line in PATHS.skill.read_text().splitlines() if line.startswith("- "))


# ---- refusing -------------------------------------------------------------------------------------


def test_an_edited_skill_stops_the_compile_before_any_call_and_is_shown(shop, monkeypatch):
    from skillc.models.client import Client

    edit(PATHS.skill, "One answer", "One short answer")
    before = PATHS.skill.read_text()
    monkeypatch.delattr(Client, "preload")
    done = run("compile", "things.skill")
    assert isinstance(done.problem, HandEditedError)
    assert "`skills/sort-things/SKILL.md` was edited by hand and would be overwritten" in done.problem.message
    assert "-One answer for each.\n+One short answer for each.\n" in done.problem.difference
    assert "`skillc compile things.skill --take-edits`" in done.problem.hint
    assert "--force" in done.problem.hint
    assert PATHS.skill.read_text() == before


def test_the_command_line_prints_the_difference_and_no_traceback(shop, capsys, monkeypatch):
    import skillc.cli as cli

    edit(PATHS.skill, "One answer", "One short answer")
    monkeypatch.setattr("sys.argv", ["skillc", "compile", "things.skill", "--json"])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    told = capsys.readouterr()
    assert ended.value.code == 2
    assert "+One short answer for each." in told.err
    assert "+One short answer for each.\n" in json.loads(told.out)["error"]["difference"]


def test_an_edited_module_is_protected_and_cannot_be_taken(shop):
    PATHS.module.write_text(PATHS.module.read_text() + "\nMINE = 1\n")
    with pytest.raises(HandEditedError) as refused:
        guarded()
    assert "+MINE = 1" in refused.value.difference
    assert "--take-edits" not in refused.value.hint
    edit(PATHS.skill, "One answer", "One short answer")
    with pytest.raises(HandEditedError) as refused:
        guarded()
    assert refused.value.difference.count("--- ") == 2
    assert "take" in refused.value.hint


def test_line_ends_that_git_changed_are_no_edit(shop):
    for path in PATHS.files.values():
        path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    assert guarded().lock == read_lock(PATHS.lock)


def test_a_skill_that_skillc_did_not_write_is_not_overwritten(shop):
    PATHS.lock.unlink()
    for name in ("skill", "module"):
        path = getattr(PATHS, name)
        other = getattr(PATHS, "module" if name == "skill" else "skill")
        kept = other.read_bytes()
        other.unlink()
        with pytest.raises(HandEditedError, match="was not written by skillc") as refused:
            guarded()
        assert str(path) in refused.value.message
        assert refused.value.difference == ""
        other.write_bytes(kept)


def test_with_force_a_copy_of_the_edit_is_kept(shop):
    edit(PATHS.skill, "One answer", "One short answer")
    before = PATHS.skill.read_bytes()
    (note,) = guarded(force=True).notes
    assert "is overwritten; a copy is in" in note
    assert Path(note.rpartition("`")[0].rpartition("`")[2]).read_bytes() == before


# ---- the text to compare with ---------------------------------------------------------------------


def test_without_copy_and_git_no_difference_is_invented(shop):
    shutil.rmtree(shop / ".skillc")
    edit(PATHS.skill, "One answer", "One short answer")
    with pytest.raises(HandEditedError) as refused:
        guarded()
    assert refused.value.difference == ""
    assert "the compiled text is neither in `.skillc` nor in git" in refused.value.message


def test_a_damaged_copy_is_not_shown(shop):
    for copy in (shop / ".skillc" / "written").iterdir():
        copy.write_text("damaged")
    edit(PATHS.skill, "One answer", "One short answer")
    with pytest.raises(HandEditedError) as refused:
        guarded()
    assert refused.value.difference == ""


@pytest.mark.parametrize("edits_committed", [False, True])
def test_a_fresh_clone_shows_the_difference_from_git(made, repo, edits_committed):
    for path in made.iterdir():
        if path.name != ".skillc":
            (shutil.copytree if path.is_dir() else shutil.copy)(path, repo.folder / path.name)
    repo.commit("compiled")
    edit(PATHS.skill, "One answer", "One short answer")
    if edits_committed:
        repo.commit("edited")
    with pytest.raises(HandEditedError) as refused:
        guarded()
    assert "+One short answer for each." in refused.value.difference


# ---- killed between writes ------------------------------------------------------------------------


class Killed(BaseException):
    pass


@pytest.mark.parametrize("survived", range(4))
@pytest.mark.quick_cases(2)
def test_a_kill_between_two_writes_is_no_edit_by_hand(shop, made, monkeypatch, survived):
    """The second compile is of another program, so that all its files differ from the first one's."""
    edit(shop / "things.skill", "You sort texts.", "You sort all texts.")
    left = [survived]
    places = ("skillc.skill_files", "skillc.run.history", "skillc.plan.lock")

    def counting(real):
        def write(path, content, **options):
            if not left[0]:
                raise Killed
            left[0] -= 1
            real(path, content, **options)

        return write

    for module in places:
        monkeypatch.setattr(f"{module}.write_atomically", counting(__import__(module, fromlist=["x"]).write_atomically))
    with pytest.raises(Killed):
        run("compile", "things.skill")
    monkeypatch.undo()
    monkeypatch.chdir(shop)
    assert (PATHS.skill.read_bytes() != (made / PATHS.skill).read_bytes()) == (survived > 0)
    assert PATHS.lock.read_bytes() == (made / PATHS.lock).read_bytes()
    assert guarded().digests
    # An edit on top of the half-written skill is one again, and the difference is that edit alone.
    if survived:
        kept = PATHS.skill.read_text()
        PATHS.skill.write_text(kept + "\nmine\n")
        with pytest.raises(HandEditedError) as refused:
            guarded()
        assert [line for line in refused.value.difference.splitlines()[2:] if line[0] in "+-"] == ["+", "+mine"]
        PATHS.skill.write_text(kept)
    assert run("compile", "things.skill").status == 0
    assert locked_findings(Path("things.skill")) == ()
    assert not list((shop / ".skillc" / "written").glob("*.json"))


def test_a_first_compile_that_was_killed_is_no_foreign_skill(shop):
    paths, home = PATHS, WrittenCopies(Path(".skillc"))
    home.begin(paths, {path: path.read_bytes() for path in paths.files.values()})
    paths.lock.unlink()
    assert guarded().lock is None
    home.end(paths)
    with pytest.raises(HandEditedError, match="not written by skillc"):
        guarded()


# ---- edited while a compile runs ------------------------------------------------------------------


def editing_at_the_first_decision(monkeypatch, change):
    from skillc.run.session import RunRecord

    real = RunRecord.decide

    def decide(self, decision):
        if change:
            change.pop()()
        real(self, decision)

    monkeypatch.setattr(RunRecord, "decide", decide)


def test_an_edit_while_the_compile_runs_is_kept_and_the_new_skill_is_beside(shop, monkeypatch):
    edit(shop / "things.skill", "You sort texts.", "You sort all texts.")
    before = PATHS.lock.read_bytes()
    editing_at_the_first_decision(monkeypatch, [lambda: edit(PATHS.skill, "One answer", "One short answer")])
    done = run("compile", "things.skill", "--json")
    told = json.loads(done.out)
    assert told["artifact"] == "skills.new/sort-things/SKILL.md"
    assert told["kept"] == ["skills/sort-things/SKILL.md"]
    assert "One short answer" in PATHS.skill.read_text()
    new = ArtifactPaths(Path("skills.new"), "sort-things")
    assert "You sort all texts." in new.skill.read_text()
    # The look of this test is counted in both locks, whichever skill is kept.
    old, lock = read_lock(PATHS.lock), read_lock(new.lock)
    assert old.looks == lock.looks
    assert len(old.looks) == 2
    assert PATHS.lock.read_bytes() != before
    assert free_paths(PATHS).base == Path("skills.new-2")


def test_looks_that_an_eval_counted_meanwhile_are_kept(shop, monkeypatch):
    edit(shop / "things.skill", "You sort texts.", "You sort all texts.")

    def look():
        from skillc.plan.lock import LookLock, write_lock

        lock = read_lock(PATHS.lock)
        more = LookLock(run="a" * 64, initial="b" * 64, best="c" * 64)
        write_lock(PATHS.lock, lock.model_copy(update={"looks": (*lock.looks, more)}))

    editing_at_the_first_decision(monkeypatch, [look])
    assert json.loads(run("compile", "things.skill", "--json").out)["kept"] == []
    assert "a" * 64 in [each.run for each in read_lock(PATHS.lock).looks]


# ---- taking edits ---------------------------------------------------------------------------------


def test_an_edit_of_frozen_text_becomes_the_program_s(shop):
    edit(PATHS.skill, ROLE, 'You sort texts.\n\n  - "one" answer """only"""\\n')
    done = run("compile", "things.skill", "--take-edits")
    assert done.status == 0
    assert "took the edits of `role` into `things.skill`" in done.err
    program = Path("things.skill").read_text()
    assert '    You sort texts.\n\n      - "one" answer \\"""only\\"""\\n\n  """\n' in program
    assert "# mine\n" in program
    assert program.replace("\n", "") != PROGRAM.replace("\n", "")
    assert run("fmt", "--check", "things.skill").status == run_fmt(PROGRAM)
    assert locked_findings(Path("things.skill")) == ()
    assert '"one" answer """only"""\\n' in PATHS.skill.read_text()


def run_fmt(text):
    Path("before.skill").write_text(text)
    status = run("fmt", "--check", "before.skill").status
    Path("before.skill").unlink()
    return status


def test_an_edited_rule_makes_the_section_the_start_of_the_next_compile(shop):
    edit(PATHS.skill, rule(), '- If the ticket mentions a "melon", answer fruit.')
    done = run("compile", "things.skill", "--take-edits")
    assert done.status == 0, done.problem
    plan = plan_file(Path("things.skill")).plan
    (rules,) = (section for section in plan.skill.sections if section.name == "rules")
    assert '- If the ticket mentions a "melon", answer fruit.' in rules.text
    assert rules.limit == 600
    assert read_lock(PATHS.lock).skill.initial
    assert locked_findings(Path("things.skill")) == ()


def taken():
    """The program after its edits were taken, without a compile."""
    from skillc.versions.hand_edits import edit_of_skill
    from skillc.versions.taking import take_edits

    program = Path("things.skill")
    found = edit_of_skill(program, PATHS)
    assert found is not None
    done = take_edits(program, PATHS, found)
    return done, plan_file(program, complete=False).plan.skill


def test_description_new_headings_and_removed_rules_are_taken(shop):
    text = PATHS.skill.read_text()
    head, _, _ = text.partition("## Rules")
    head = head.replace("Say what kind of thing a text is about.", 'Say what a "text" is about: fruit, tool, animal.')
    PATHS.skill.write_text(f"{head}## Never\n\nNever guess.\n\n## Also this\n\n- x\n- y\n")
    done, skill = taken()
    assert done is not None
    assert done.parts == ("about", "Never", "Also this")
    assert skill.about == 'Say what a "text" is about: fruit, tool, animal.'
    assert [section.name for section in skill.sections] == ["role", "never", "also_this", "rules", "guidance"]
    assert [section.mode for section in skill.sections[1:3]] == ["frozen", "frozen"]
    assert guarded().notes == ()


def test_further_keys_of_the_frontmatter_are_taken_and_changed(shop):
    keys = 'license: MIT\nmetadata:\n  author: acme\n  version: "1.2"\n'
    edit(PATHS.skill, "\n---\n\n#", f"\n{keys}---\n\n#")
    edit(PATHS.skill, "Say what kind of thing a text is about.", "Say what a text is about.")
    done, skill = taken()
    assert done is not None
    assert done.parts == ("about", "frontmatter")
    assert skill.frontmatter == keys.strip()
    assert guarded().notes == ()
    edit(PATHS.skill, "license: MIT", "license: Apache-2.0")
    assert taken()[1].frontmatter == keys.strip().replace("MIT", "Apache-2.0")


def test_a_compile_writes_the_taken_keys(shop):
    edit(PATHS.skill, "\n---\n\n#", "\nlicense: MIT\n---\n\n#")
    done = run("compile", "things.skill", "--take-edits")
    assert done.status == 0, done.problem
    assert "took the edits of `frontmatter` into `things.skill`" in done.err
    assert "\nlicense: MIT\n---\n" in PATHS.skill.read_text()
    edit(PATHS.skill, "license: MIT\n", "")
    assert taken()[1].frontmatter == ""


def test_a_key_that_no_agent_knows_is_refused_by_name(shop):
    before = Path("things.skill").read_bytes()
    edit(PATHS.skill, "\n---\n\n#", "\nlicense: MIT\ncolour: red\n---\n\n#")
    done = run("compile", "things.skill", "--take-edits")
    assert isinstance(done.problem, SkillcError)
    assert "the frontmatter key `colour`, which Agent Skills does not define" in done.problem.message
    assert Path("things.skill").read_bytes() == before


def test_a_heading_above_the_sections_is_taken_below_them(shop):
    edit(PATHS.skill, ROLE, f"{ROLE}\n\n# Tone\n\nBe brief.\n\n```\n## no heading\n```")
    done, skill = taken()
    assert done is not None
    assert done.parts == ("role",)
    assert skill.sections[0].text.strip().endswith("### Tone\n\nBe brief.\n\n```\n## no heading\n```")
    assert guarded().notes == ()


def test_an_open_fence_is_refused_and_changes_nothing(shop):
    before = Path("things.skill").read_bytes()
    edit(PATHS.skill, "One answer for each.", "One answer for each.\n\n```\nfruit")
    done = run("compile", "things.skill", "--take-edits")
    assert isinstance(done.problem, SkillcError)
    assert "the section `role`: the text opens a code block and does not close it" in done.problem.message
    assert Path("things.skill").read_bytes() == before


def test_edits_that_are_in_the_program_already_stop_nothing(shop):
    edit(PATHS.skill, "One answer", "One short answer")
    done, _ = taken()
    assert done is not None
    assert "+    One short answer for each." in done.difference
    assert guarded().notes == ()
    again, _ = taken()
    assert again is None


def test_without_the_original_all_that_differs_from_the_program_is_taken(shop):
    shutil.rmtree(shop / ".skillc")
    edit(PATHS.skill, "One answer", "One short answer")
    done, skill = taken()
    assert done is not None
    assert done.parts == ("role", "rules")
    assert rule().removeprefix("- ") in skill.sections[1].text


@pytest.mark.parametrize(
    ("old", "new", "named"),
    [
        ("name: sort-things", "name: sort-stones", "the name `sort-stones`"),
        ("# Sort things", "# Sort stones", "text above the first section"),
        ("# Sort things\n", "# Sort things\n\nmine\n", "text above the first section"),
        ("## Role\n\n" + ROLE, "", "the frozen section `role` was removed"),
        ("## Rules", "## What's next?\n\nmine\n\n## Rules", "the heading `What's next?`"),
    ],
    ids=["name", "title", "lead", "removed", "heading"],
)
def test_what_has_no_place_in_the_program_is_refused_by_name_and_changes_nothing(shop, old, new, named):
    edit(PATHS.skill, old, new)
    before = Path("things.skill").read_bytes()
    done = run("compile", "things.skill", "--take-edits")
    assert isinstance(done.problem, SkillcError)
    assert named in done.problem.message
    assert Path("things.skill").read_bytes() == before


def test_a_text_that_comes_from_another_file_is_named(shop):
    program = Path("things.skill")
    start = program.read_text()
    fence = start[start.index('"""') : start.rindex('"""') + 3]
    Path("lab.skill").write_text(f"language 1\nfrozen section role = {fence}\n")
    linked = start.replace(fence, "lab.role")
    program.write_text(linked.replace("use std.gates", 'use std.gates\nuse "./lab.skill" as lab'))
    edit(PATHS.skill, "One answer", "One short answer")
    with pytest.raises(SkillcError, match="`role`, whose text is in another file"):
        taken()


def test_an_edit_over_the_limit_changes_nothing(shop):
    before = Path("things.skill").read_bytes()
    edit(PATHS.skill, rule(), "- " + "word " * 900)
    done = run("compile", "things.skill", "--take-edits")
    assert done.problem is not None
    assert Path("things.skill").read_bytes() == before


# ---- two programs ---------------------------------------------------------------------------------


def test_two_programs_with_one_skill_are_refused_and_both_are_named(shop):
    Path("other.skill").write_text(PROGRAM.replace("You sort", "You really sort"))
    for verb in (("compile", "other.skill"), ("eval", "other.skill"), ("compile", "other.skill", "--take-edits")):
        done = run(*verb)
        assert isinstance(done.problem, SkillcError)
        assert "`things.skill`" in done.problem.message
        assert "`other.skill`" in done.problem.message
        assert "--output" in done.problem.hint
    import skillc as package

    with pytest.raises(SkillcError, match=r"compiled skill of `things\.skill`"):
        package.load("other.skill")
    (found,) = locked_findings(Path("other.skill"))
    assert found.code == "SK761"
    assert locked_findings(Path("things.skill")) == ()


def test_a_renamed_program_keeps_its_skill(shop):
    Path("things.skill").rename("stuff.skill")
    assert locked_findings(Path("stuff.skill")) == ()
    (note,) = guarded("stuff.skill").notes
    assert "`things.skill`" in note
    assert run("compile", "stuff.skill").status == 0
    assert read_lock(PATHS.lock).program.path == "../stuff.skill"
    assert len(read_lock(PATHS.lock).looks) == 1


def test_a_program_whose_skill_has_another_name_now_gives_the_old_one_free(shop):
    Path("other.skill").write_text(PROGRAM)
    edit(Path("things.skill"), "skill sort_things", "skill sort_stones")
    assert "`things.skill`" in guarded("other.skill").notes[0]


def test_one_file_name_in_two_folders_with_one_output(shop, tmp_path, monkeypatch):
    for name in ("a", "b"):
        folder = tmp_path / "family" / name
        folder.mkdir(parents=True)
        write_shop(folder, PROGRAM)
    monkeypatch.chdir(tmp_path / "family")
    assert run("compile", "a/things.skill", "--output", "out").status == 0
    assert read_lock(Path("out/sort-things.lock")).program.path == "../a/things.skill"
    done = run("compile", "b/things.skill", "--output", "out")
    assert isinstance(done.problem, SkillcError)
    assert "`a/things.skill`" in done.problem.message
    assert "`b/things.skill`" in done.problem.message
    # The whole tree may move, and a program of a folder that was renamed keeps its skill.
    (tmp_path / "family").rename(tmp_path / "moved")
    monkeypatch.chdir(tmp_path / "moved")
    assert run("compile", "a/things.skill", "--output", "out").status == 0


def test_a_lock_names_no_folder_of_a_machine(tmp_path, monkeypatch):
    from skillc.artifacts.owner import path_to

    home = tmp_path / "home" / "ann"
    (home / "project" / "skills").mkdir(parents=True)
    (home / ".claude" / "skills").mkdir(parents=True)
    (tmp_path / "mnt").mkdir()
    monkeypatch.setenv("HOME", str(home))
    program = home / "project" / "things.skill"
    program.write_text("")
    assert path_to(program, home / "project" / "skills") == "../things.skill"
    assert path_to(program, home / "project") == "things.skill"
    assert path_to(program, home / ".claude" / "skills") == "../../project/things.skill"
    far = path_to(program, tmp_path / "mnt")
    assert far.startswith("sha256:")
    assert "ann" not in far
    assert far != path_to(home / "things.skill", tmp_path / "mnt")

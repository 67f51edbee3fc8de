"""Skills whose folder has more than SKILL.md: sections in files, kept files, and what covers them."""

import hashlib
import json
import os
import stat
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner
from shops import edited, learnable, rows, write_rows, write_shop

from skillc.artifact_paths import ArtifactPaths
from skillc.cli import skillc
from skillc.document.edits import Add, apply_edits
from skillc.document.folder import document_from, files_of, in_one, read_skill, section_file_problem
from skillc.document.skill import Document, Section, digest, for_optimizer, for_target
from skillc.document.skill_md import to_skill_md
from skillc.errors import SkillcError
from skillc.frontend import plan_file
from skillc.plan.lock import read_lock, write_lock
from skillc.plan.schema import FieldPlan, SectionPlan, TypePlan
from skillc.program.artifact import attributes_of
from skillc.skill_files import FILE_LIMIT, collision, read_folder, write_folder
from skillc.versions.compare.settings import fields_that_differ

SKILLS = Path("skills")
SKILL = SKILLS / "sort-things"
RULES = "references/rules.md"
FOLDERED = (
    "trainable section rules { limit = 600 tokens } => trainable section rules "
    '{ limit = 600 tokens; file = "references/rules.md"; about = "Before you name a kind" }',
    'about = "Say what kind of thing a text is about." => about = "Say what kind of thing a text is about."\n'
    '  files = "extras"',
)
SCRIPT, BINARY = b"#!/bin/sh\r\necho pear\n", bytes(range(256))

DOCUMENT = Document(
    "refunds",
    "Handle refunds.",
    (
        Section("role", "frozen", "You answer."),
        Section("cases", "trainable", "- Check the date.\n\n### Broken\n\n- Ask for a picture.",
                limit=40,
                file="references/cases.md", about="When money goes back"),
        Section("later", "slow", "", file="references/later.md"),
    ),
    files=(("scripts/run.sh", SCRIPT),),
)  # fmt: skip


def run(*words):
    return CliRunner().invoke(skillc, words, standalone_mode=False)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A program with a section in a file and kept files, compiled and committed."""
    folder = tmp_path_factory.mktemp("folders")
    write_shop(folder, edited(*FOLDERED, program=learnable()))
    (folder / "extras/scripts").mkdir(parents=True)
    (folder / "extras/scripts/look.sh").write_bytes(SCRIPT)
    (folder / "extras/logo.bin").write_bytes(BINARY)
    (folder / "extras/SKILL.md").write_text("# The source of the sections\n")
    (folder / "extras/.hidden").write_text("not copied")
    done = subprocess.run(
        [sys.executable, "-m", "skillc", "compile", "things.skill", "--set", "budget.steps=1"],
        cwd=folder, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture
def shop(made, tmp_path, monkeypatch):
    """A copy of the compiled program."""
    copy = tmp_path / "shop"
    subprocess.run(["cp", "-r", str(made), str(copy)], check=True)
    monkeypatch.chdir(copy)
    return copy


# ---- the document -----------------------------------------------------------------------------------


def test_a_section_in_a_file_is_a_link_in_skill_md_and_a_text_for_a_target_without_files() -> None:
    files = files_of(DOCUMENT)
    assert list(files) == ["SKILL.md", "references/cases.md", "scripts/run.sh"]
    skill = files["SKILL.md"].decode()
    assert "## Cases\n\nWhen money goes back: read [references/cases.md](references/cases.md).\n" in skill
    assert "picture" not in skill
    assert "Later" not in skill, "an empty section has no link"
    assert files["references/cases.md"].decode() == (
        "# Cases\n\n- Check the date.\n\n### Broken\n\n- Ask for a picture.\n"
    )
    assert for_target(DOCUMENT) == for_target(in_one(DOCUMENT))
    assert "## cases (trainable, " in for_optimizer(DOCUMENT)
    assert ", in references/cases.md)" in for_optimizer(DOCUMENT)


def test_a_folder_is_read_back_with_the_same_files_and_digest() -> None:
    files = files_of(DOCUMENT)
    again = document_from(files)
    assert files_of(again) == files
    assert digest(again) == digest(DOCUMENT)
    assert again.section("cases").file == "references/cases.md"


@pytest.mark.parametrize("text", ["# Other\n\n- Check.\n", "- No heading.\n", "# Cases\n\n- Check.\n\n\n"])
def test_a_linked_file_of_another_form_is_kept_byte_for_byte(text) -> None:
    files = {**files_of(DOCUMENT), "references/cases.md": text.encode()}
    assert files_of(document_from(files)) == files


def test_a_target_without_files_reads_a_linked_file_of_any_form(tmp_path) -> None:
    write_folder(tmp_path, {**files_of(DOCUMENT), "references/cases.md": b"# Other title\n\n- Check twice.\n"})
    path = tmp_path / "SKILL.md"
    read = read_skill(path, path.read_text())
    assert "- Check twice." in for_target(read)
    assert "Other title" not in for_target(read)
    (tmp_path / "references/cases.md").unlink()
    assert "[references/cases.md]" in for_target(read_skill(path, path.read_text()))


def test_edits_of_a_section_in_a_file_obey_its_limit_and_keep_the_folder() -> None:
    done = apply_edits(DOCUMENT, [Add("cases", "Ask for the receipt.")])
    assert done.results[0].applied
    assert b"receipt" in files_of(done.document)["references/cases.md"]
    assert done.document.files == DOCUMENT.files
    assert not apply_edits(DOCUMENT, [Add("cases", "word " * 60)]).results[0].applied


def test_the_digest_covers_kept_files_and_links_and_that_of_other_skills_is_unchanged() -> None:
    plain = replace(in_one(DOCUMENT), files=())
    assert len({digest(plain), digest(DOCUMENT), digest(replace(DOCUMENT, files=(("scripts/run.sh", b"x"),)))}) == 3
    assert digest(plain) == digest(document_from({"SKILL.md": to_skill_md(plain).encode()}))


@pytest.mark.parametrize(
    "path",
    [
        "../rules.md", "/rules.md", "~/rules.md", "C:/rules.md", "a\\rules.md", "rules.txt", "SKILL.md", "skill.MD",
        "references/./rules.md", ".hidden/rules.md", "a b.md", "con.md", "a(1).md", "", "references/../../rules.md",
    ],
)  # fmt: skip
def test_paths_that_no_section_can_have(path) -> None:
    problem = section_file_problem(path)
    assert problem is not None
    assert all(problem)


@pytest.mark.parametrize(
    ("names", "clash"),
    [
        (["a/x.md", "a/y.md", "b"], None),
        (["a/x.md", "A/x.md"], ("a/x.md", "A/x.md")),
        (["a/x.md", "A/y.md"], ("a/x.md", "A/y.md")),
        (["a", "a/x.md"], ("a", "a/x.md")),
        (["a/x.md", "a"], ("a/x.md", "a")),
        (["caf\u00e9", "cafe\u0301"], ("caf\u00e9", "cafe\u0301")),
        (["x", "x"], None),
    ],
)
def test_names_that_some_systems_take_for_one(names, clash) -> None:
    assert collision(names) == clash


def test_files_that_no_skill_can_have(tmp_path) -> None:
    (tmp_path / "link.txt").symlink_to("/etc/hostname")
    with pytest.raises(SkillcError, match="not a plain file"):
        read_folder(tmp_path)
    (tmp_path / "link.txt").unlink()
    with (tmp_path / "huge.bin").open("wb") as file:
        file.truncate(FILE_LIMIT + 1)
    with pytest.raises(SkillcError, match=r"has 10\.0 MB"):
        read_folder(tmp_path)
    (tmp_path / "huge.bin").unlink()
    (Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff.txt"))).write_text("x")
    with pytest.raises(SkillcError, match="is not UTF-8"):
        read_folder(tmp_path)


# ---- compiled ---------------------------------------------------------------------------------------


def test_a_compile_writes_the_whole_folder_and_the_lock_covers_it(shop) -> None:
    files = read_folder(SKILL)
    assert sorted(files) == ["SKILL.md", "logo.bin", RULES, "scripts/look.sh"]
    assert files["scripts/look.sh"] == SCRIPT
    assert files["logo.bin"] == BINARY
    assert stat.S_IMODE((SKILL / "scripts/look.sh").stat().st_mode) & 0o111
    assert b"- If the text mentions" in files[RULES]
    assert b"Before you name a kind: read [references/rules.md](references/rules.md)." in files["SKILL.md"]
    lock = read_lock(SKILLS / "sort-things.lock")
    assert {name for name in lock.files if name != "sort_things.py"} == {f"sort-things/{name}" for name in files}
    assert [code for code in locked() if code != "SK759"] == []
    attributes = attributes_of(ArtifactPaths(SKILLS, "sort-things"), lock.files)
    assert attributes["/sort-things/*/**"] == attributes["/sort-things/logo.bin"] == "-text -merge"


def test_the_module_and_the_program_read_the_same_text(shop, monkeypatch) -> None:
    import skillc as package

    monkeypatch.syspath_prepend(str(shop / "skills"))
    monkeypatch.delitem(sys.modules, "sort_things", raising=False)
    module = __import__("sort_things")
    loaded = package.load("things.skill")
    assert loaded.predictors()[0].signature.instructions == module.INSTRUCTIONS
    assert "- If the text mentions" in module.INSTRUCTIONS
    assert "references/rules.md" not in module.INSTRUCTIONS


def locked():
    done = run("check", "--locked", "things.skill", "--json")
    return [each["code"] for each in json.loads(done.output)["diagnostics"]]


def test_check_locked_knows_every_file(shop) -> None:
    (SKILL / RULES).write_text("# Rules\n\n- Mine.\n")
    (SKILL / "logo.bin").unlink()
    (SKILL / "scripts/new.py").write_text("print()")
    assert sorted(code for code in locked() if code != "SK759") == ["SK755", "SK756", "SK757"]
    (shop / "extras/scripts/look.sh").write_text("changed")
    assert "SK763" in locked()


def test_edits_by_hand_are_protected_and_those_of_a_section_are_taken(shop) -> None:
    rules = SKILL / RULES
    rules.write_text(rules.read_text() + '- If the text mentions "plum", answer fruit.\n')
    (SKILL / "scripts/look.sh").write_text("mine")
    done = run("compile", "things.skill", "--set", "budget.steps=1")
    assert "references/rules.md" in str(done.exception)
    assert "scripts/look.sh" in str(done.exception)
    (SKILL / "scripts/look.sh").write_bytes(SCRIPT)
    from skillc.versions.hand_edits import edit_of_skill
    from skillc.versions.taking import take_edits

    paths = ArtifactPaths(SKILLS, "sort-things")
    taken = take_edits(Path("things.skill"), paths, edit_of_skill(Path("things.skill"), paths))
    assert taken.parts == ("rules",)
    assert '- If the text mentions "plum", answer fruit.' in Path("things.skill").read_text()
    plan = plan_file(Path("things.skill")).plan
    assert plan.skill.sections[1].file == RULES
    assert edit_of_skill(Path("things.skill"), paths) is not None
    assert take_edits(Path("things.skill"), paths, edit_of_skill(Path("things.skill"), paths)) is None


def test_an_install_has_the_whole_folder_and_names_each_edited_file(shop) -> None:
    (SKILL / RULES).write_text("# Rules\n\n- Mine.\n")
    done = run("install", "things.skill", "--to", "codex", "--project", ".", "--json")
    assert read_folder(Path(".agents/skills/sort-things")) == read_folder(SKILL)
    assert "references/rules.md` was edited" in json.loads(done.output)["notes"][0]
    assert stat.S_IMODE(Path(".agents/skills/sort-things/scripts/look.sh").stat().st_mode) & 0o111


@pytest.mark.thorough
def test_a_file_that_the_program_no_longer_has_is_removed_and_one_of_the_users_is_not_overwritten(shop) -> None:
    Path("things.skill").write_text(
        Path("things.skill").read_text().replace('references/rules.md"', 'references/all.md"')
    )
    (SKILL / "references/all.md").write_text("mine")
    (shop / "extras/scripts/look.sh").rename(shop / "extras/seen.sh")
    done = run("compile", "things.skill", "--set", "budget.steps=1")
    assert "was not written by skillc" in str(done.exception)
    (SKILL / "references/all.md").unlink()
    assert run("compile", "things.skill", "--set", "budget.steps=1").return_value == 0
    assert sorted(read_folder(SKILL)) == ["SKILL.md", "logo.bin", "references/all.md", "seen.sh"]
    assert not (SKILL / "scripts").exists()


@pytest.mark.thorough
def test_a_candidate_has_the_whole_folder_and_goes_with_the_next_delivery(shop) -> None:
    program = Path("things.skill")
    program.write_text(program.read_text() + "require improved\n")
    write_rows(Path("things.jsonl"), [{**row, "text": f"the {i}th"} for i, row in enumerate(rows())])
    done = run("compile", "things.skill", "--set", "budget.steps=1")
    assert done.exception is None, done.output
    candidate = Path("skills.candidate")
    assert set(read_folder(SKILL)) - set(read_folder(candidate / "sort-things")) <= {RULES}
    assert read_folder(candidate / "sort-things")["scripts/look.sh"] == SCRIPT
    assert run("compile", "things.skill", "--set", "budget.steps=1", "--require", "none").return_value == 0
    assert not candidate.exists()


def test_diff_and_breaking_compare_with_a_commit_that_has_no_checked_out_files(shop) -> None:
    for words in (["init", "-q"], ["add", "-A"], ["-c", "user.email=a@b", "-c", "user.name=a", "commit", "-qm", "x"]):
        subprocess.run(["git", *words], check=True)
    program = Path("things.skill")
    program.write_text(program.read_text().replace("Before you name a kind", "Before you answer"))
    done = run("diff", "things.skill")
    assert "Before you answer" in done.output


# ---- checking ---------------------------------------------------------------------------------------


def codes(text, folder):
    write_shop(folder, text)
    return [
        each["code"] for each in json.loads(run("check", str(folder / "things.skill"), "--json").output)["diagnostics"]
    ]


@pytest.mark.parametrize(
    ("settings", "code"),
    [
        ('file = "../x.md"', "SK424"),
        ('file = "x.md"; title = ""', "SK424"),
        ('about = "when"', "SK424"),
        ('file = "references/A.md"', "SK425"),
        ('file = "lookup.md"', "SK426"),
        ('file = "references/b.md"; about = "When."', None),
    ],
)
def test_wrong_files_of_sections_are_findings(settings, code, tmp_path) -> None:
    (tmp_path / "extras").mkdir()
    (tmp_path / "extras/LOOKUP.md").write_text("x")
    text = edited(
        "slow section guidance { limit = 200 tokens } => slow section guidance { limit = 200 tokens; "
        + settings
        + " }",
        FOLDERED[0].replace("references/rules.md", "references/a.md"),
        FOLDERED[1],
        program=learnable(),
    )
    assert codes(text, tmp_path) == ([code] if code else [])


@pytest.mark.parametrize("files", ["nowhere", "../extras", "things.jsonl", ".", "/etc"])
def test_a_folder_of_files_that_cannot_be_used_is_a_finding(files, tmp_path) -> None:
    text = edited(FOLDERED[1].replace('"extras"', f'"{files}"'), program=learnable())
    assert codes(text, tmp_path) == ["SK426"]


def test_the_new_settings_leave_the_digest_of_other_programs_as_it_is() -> None:
    assert {"file", "about"} <= SectionPlan.LATER


# ---- made from a folder, and merged -----------------------------------------------------------------


def test_a_program_from_a_compiled_folder_has_its_sections_in_files_and_its_other_files(shop) -> None:
    done = run("new", "things.jsonl", "--from", str(SKILL), "--output", "again.skill", "--answer", "kind")
    assert done.exception is None
    plan = plan_file(Path("again.skill")).plan
    found = {section.name: section.file for section in plan.skill.sections}
    assert found["rules"] == RULES
    assert read_folder(Path("again_files")) == {"logo.bin": BINARY, "scripts/look.sh": SCRIPT}
    assert plan.skill.files == "again_files"


def test_a_merge_keeps_the_whole_folder_of_one_side(shop) -> None:
    def git(*words):
        return subprocess.run(
            ["git", "-c", "user.email=a@b", "-c", "user.name=a", *words], capture_output=True, text=True, check=False
        )

    git("init", "-q", "-b", "main")
    git("add", "-A")
    git("commit", "-qm", "base")
    sides = {"ours": ("plum", b"\x00ours"), "theirs": ("fig", b"\x00theirs")}
    for side, (word, logo) in sides.items():
        git("checkout", "-q", "-b", side, "main")
        lock = SKILLS / "sort-things.lock"
        rules = (SKILL / RULES).read_bytes() + f"- {word}\n".encode()
        extra = {"notes.md": b"# Theirs\n"} if side == "theirs" else {}
        write_folder(SKILL, {RULES: rules, "logo.bin": logo, **extra})
        changed = {f"sort-things/{name}": read_folder(SKILL)[name] for name in (RULES, "logo.bin", *extra)}
        digests = {name: hashlib.sha256(content).hexdigest() for name, content in changed.items()}
        found = read_lock(lock)
        write_lock(
            lock, found.model_copy(update={"files": {**found.files, **digests}, "stopped": f"{side} after decision 1"})
        )
        git("add", "-A")
        git("commit", "-qm", side)
    theirs = read_folder(SKILL)
    git("checkout", "-q", "ours")
    ours = read_folder(SKILL)
    assert git("merge", "theirs").returncode != 0
    assert run("resolve", str(SKILL), "--keep", "theirs").exception is None
    assert read_folder(SKILL) == theirs
    git("checkout", "-q", "-f", "ours")
    git("merge", "theirs")
    done = run("resolve", str(SKILL), "--keep", "ours")
    assert "git add skills/sort-things " in done.output
    assert read_folder(SKILL) == ours


def test_a_setting_that_only_one_version_has_is_a_difference() -> None:
    one, other = (FieldPlan(name="a", type=TypePlan(kind="text"), column="a", cut=cut) for cut in (None, "end"))
    assert list(fields_that_differ(one, other)) == [("cut", None, "end")]
    assert list(fields_that_differ(other, one)) == [("cut", "end", None)]

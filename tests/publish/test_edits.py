"""Edits by hand at a destination are taken into the program, merged rule by rule, or copied and replaced."""

import pytest

from skillc.errors import SkillcError
from skillc.publish.edits import take
from skillc.publish.installing import add, install_all
from skillc.publish.kept import read_log
from skillc.publish.manifest import read_manifest
from skillc.publish.merging import merge, merge_texts, units
from skillc.publish.staging import (
    ConflictError,
    EditedThereError,
    Held,
    adopt,
    adopt_by_policy,
    prepare,
    rollback,
    stage,
    staged,
)
from tests.publish.shops import NAME, RULES, compile_as, held, skill_md

MINE, NEW = "Never answer with two teams.", 'If the ticket mentions "refund", answer billing.'
CLAUDE, CODEX = f".claude/skills/{NAME}/SKILL.md", f".agents/skills/{NAME}/SKILL.md"


@pytest.fixture
def edited(project):
    """Installed for two agents; at one of them a rule was added by hand."""
    add(project, project / "tickets.skill", ["claude-code", "codex"], "project", by="ada")
    (project / CLAUDE).write_text(skill_md(*RULES, MINE))
    return project


def texts(project):
    return [(project / each).read_text() for each in (CLAUDE, CODEX)]


def test_no_command_overwrites_an_edit_unasked(edited):
    stage(edited, NAME, compile_as(edited, *RULES, NEW), by="ada")
    for command in (lambda: adopt(edited, NAME, by="ada"), lambda: install_all(edited)):
        with pytest.raises(EditedThereError) as caught:
            command()
        assert f"+- {MINE}" in caught.value.difference and "NEW" not in caught.value.difference
    path = edited / "skills.toml"
    path.write_text(path.read_text().replace('"person"', '"verdict"'))
    found = adopt_by_policy(edited, NAME, by="evolve")
    assert isinstance(found, Held) and "was changed by hand" in found.reasons[0]
    assert texts(edited) == [skill_md(*RULES, MINE), skill_md(*RULES)]


def test_edits_that_are_kept_are_in_this_and_later_versions_at_all_destinations(edited):
    stage(edited, NAME, compile_as(edited, *RULES, NEW), by="ada")
    ready = prepare(edited, NAME, edits="keep")
    adopt(edited, NAME, by="ada", edits="keep", digest=ready.digest)
    assert texts(edited) == [skill_md(*RULES, NEW, MINE)] * 2
    paths = compile_as(edited, RULES[1], NEW, "Be brief.")
    stage(edited, NAME, paths, by="ada")
    adopt(edited, NAME, by="ada")
    assert texts(edited) == [skill_md(RULES[1], NEW, "Be brief.", MINE)] * 2
    assert stage(edited, NAME, paths, by="ada") is None
    assert read_manifest(edited).entries[NAME].upstream is not None
    rollback(edited, NAME, by="ada")
    assert texts(edited) == [skill_md(*RULES, NEW, MINE)] * 2
    stage(edited, NAME, compile_as(edited, *RULES, NEW, "Be polite."), by="ada")
    adopt(edited, NAME, by="ada", edits="drop")
    assert texts(edited) == [skill_md(*RULES, NEW, "Be polite.")] * 2
    assert read_manifest(edited).entries[NAME].upstream is None


def test_a_policy_holds_kept_edits_because_no_test_has_seen_them(edited):
    adopt(edited, NAME, by="ada", edits="keep")
    path = edited / "skills.toml"
    path.write_text(path.read_text().replace('"person"', '"verdict"'))
    stage(edited, NAME, compile_as(edited, *RULES, NEW), by="ada")
    found = adopt_by_policy(edited, NAME, by="evolve")
    assert isinstance(found, Held) and "edited by hand since" in found.reasons[0]


def test_a_rule_that_both_sides_changed_is_a_conflict_and_nothing_is_written(edited):
    (edited / CLAUDE).write_text(skill_md(RULES[0].replace("shipping", "billing"), RULES[1]))
    stage(edited, NAME, compile_as(edited, RULES[0].replace("shipping", "returns"), RULES[1]), by="ada")
    before = held(edited)
    with pytest.raises(ConflictError) as caught:
        adopt(edited, NAME, by="ada", edits="keep")
    (conflict,) = caught.value.conflicts
    assert conflict.base == f"- {RULES[0]}" and "billing" in conflict.ours and "returns" in conflict.theirs
    assert held(edited) == before


def test_a_conflict_with_kept_edits_is_staged_and_held(edited):
    (edited / CLAUDE).write_text(skill_md(RULES[0].replace("shipping", "billing"), RULES[1]))
    adopt(edited, NAME, by="ada", edits="keep")
    found = stage(edited, NAME, compile_as(edited, RULES[0].replace("shipping", "returns"), RULES[1]), by="ada")
    assert len(found.conflicts) == 1 and staged(edited, NAME) == found
    with pytest.raises(ConflictError):
        adopt(edited, NAME, by="ada")
    assert any("conflicts with kept edits" in each for each in adopt_by_policy(edited, NAME, by="x").reasons)
    adopt(edited, NAME, by="ada", edits="drop")
    assert texts(edited) == [skill_md(RULES[0].replace("shipping", "returns"), RULES[1])] * 2


def test_dropped_edits_are_copied_first(edited):
    done = adopt(edited, NAME, by="ada", edits="drop")
    assert texts(edited) == [skill_md(*RULES)] * 2
    assert [(each / "SKILL.md").read_text() for each in done.copies] == [skill_md(*RULES, MINE)]
    (edited / CODEX).write_text(skill_md(*RULES, "Mine, too."))
    install_all(edited, force=True)
    copies = [each.read_text() for each in (edited / ".skillc/publish/replaced").rglob("SKILL.md")]
    assert sorted(copies) == sorted([skill_md(*RULES, MINE), skill_md(*RULES, "Mine, too.")])


def test_edits_are_taken_into_the_program_and_the_next_compile_may_replace_them(edited):
    paths = compile_as(edited, *RULES, NEW)
    stage(edited, NAME, paths, by="ada")
    text = skill_md(*RULES).replace("You route tickets.", "You route tickets to one team.")
    (edited / CLAUDE).write_text(text)
    taken = take(edited, NAME, by="ada")
    assert taken.parts == ("role",) and "to one team" in (edited / "tickets.skill").read_text()
    assert texts(edited)[0] == text and staged(edited, NAME) is None
    assert read_log(edited, NAME)[-1]["event"] == "edits taken"
    # The version that was compiled before the edits were taken does not have them.
    stage(edited, NAME, paths, by="ada")
    with pytest.raises(EditedThereError):
        adopt(edited, NAME, by="ada")
    paths.skill.write_text(skill_md(*RULES, NEW).replace("You route tickets.", "You route tickets to one team."))
    stage(edited, NAME, paths, by="ada")
    done = adopt(edited, NAME, by="ada")
    assert texts(edited) == [paths.skill.read_text()] * 2
    assert [(each / "SKILL.md").read_text() for each in done.copies] == [text]


@pytest.mark.parametrize("what", ["none", "different", "file", "removed"])
def test_edits_that_cannot_be_taken_change_nothing(edited, what):
    said = {
        "none": "was changed by hand",
        "different": "changed differently",
        "file": "cannot take",
        "removed": "removed",
    }
    if what == "none":
        adopt(edited, NAME, by="ada", edits="drop")
    elif what == "different":
        (edited / CODEX).write_text(skill_md(*RULES, "Mine, too."))
    else:
        paths = compile_as(edited, *RULES)
        (paths.folder / "run.sh").write_text("ls\n")
        stage(edited, NAME, paths, by="ada")
        adopt(edited, NAME, by="ada", edits="drop")
        if what == "file":
            (edited / CLAUDE).with_name("run.sh").write_text("ls -l\n")
        else:
            (edited / CLAUDE).unlink()
    before = (edited / "tickets.skill").read_text(), held(edited / ".claude")
    with pytest.raises(SkillcError, match=said[what]):
        take(edited, NAME, by="ada")
    assert ((edited / "tickets.skill").read_text(), held(edited / ".claude")) == before
    if what == "different":
        with pytest.raises(SkillcError, match="changed differently"):
            adopt(edited, NAME, by="ada", edits="keep")


# ---- the merge ------------------------------------------------------------------------------------

BASE = "# T\n\n## R\n\n- one two three\n- four five six\n- seven eight nine\n\n```\n- no rule\n```\n\nEnd.\n"


@pytest.mark.parametrize(
    ("ours", "theirs", "merged"),
    [
        (("one two three", "one two four"), ("seven eight nine", "seven eight ten"), None),
        (("- one two three\n", ""), ("four five six", "four five seven"), None),
        (
            ("- four five six\n", "- four five six\n- mine\n"),
            ("- four five six\n", "- four five six\n- yours\n"),
            "both",
        ),
        (("four five six", "same same same"), ("four five six", "same same same"), None),
        (("- no rule", "- no law"), ("End.", "The end."), None),
        (("four five six", "four five 6"), ("- one two three\n", ""), None),
    ],
)
def test_changes_of_both_sides_are_merged(ours, theirs, merged):
    one, other = BASE.replace(*ours), BASE.replace(*theirs)
    text, conflicts = merge_texts("SKILL.md", BASE, one, other)
    wanted = BASE.replace(*ours).replace(*theirs) if ours != theirs else one
    if merged == "both":
        wanted = BASE.replace("- four five six\n", "- four five six\n- yours\n- mine\n")
    assert (text, conflicts) == (wanted, [])
    assert merge_texts("SKILL.md", BASE, BASE, other) == (other, [])
    assert merge_texts("SKILL.md", BASE, one, BASE) == (one, [])


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (("four five six", "four five 6"), ("four five six", "four five SIX")),
        (("- four five six\n", ""), ("four five six", "four five 6")),
        (("four five six", "four five 6"), ("- four five six\n", "")),
    ],
)
def test_what_both_changed_differently_is_a_conflict(ours, theirs):
    _, conflicts = merge_texts("SKILL.md", BASE, BASE.replace(*ours), BASE.replace(*theirs))
    assert [each.base for each in conflicts] == ["- four five six"]


def test_units_are_the_text_and_files_merge_whole():
    text = skill_md(*RULES) + "\n1. Step\n   more\n\n   more still\n2. Step\n\n~~~\n# code\n\n- code\n~~~\n"
    assert "".join(units(text)) == text and len(units(text)) == len(units(skill_md(*RULES))) + 3
    base, ours, theirs = {"a": b"1", "b": b"1"}, {"a": b"2", "b": b"1", "c": b"3"}, {"a": b"1"}
    assert merge(base, ours, theirs).files == {"a": b"2", "c": b"3"}
    assert [each.file for each in merge({"a": b"1"}, {"a": b"2"}, {"a": b"3"}).conflicts] == ["a"]

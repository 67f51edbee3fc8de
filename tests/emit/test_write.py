"""Writing a form: twice the same, nothing of the user's overwritten, completed after a kill."""

import json
import multiprocessing
import os
import signal

import pytest
from click.testing import CliRunner

from skillc.artifacts.install import ChangedThereError, install_skill
from skillc.cli import skillc
from skillc.emit import write
from skillc.emit.forms import FORMS
from skillc.emit.write import RECORD, emit_skill
from skillc.errors import SkillcError
from tests.emit.made import skill_folder, tree


def actions(done):
    return {each.path: each.action for each in done.files}


@pytest.mark.parametrize("name", FORMS)
def test_the_same_skill_gives_the_same_bytes_and_a_second_emit_changes_nothing(tmp_path, name):
    skill = skill_folder(tmp_path)
    emit_skill(skill, name, tmp_path / "one")
    emit_skill(skill, name, tmp_path / "two")
    assert tree(tmp_path / "one") == tree(tmp_path / "two")
    record = (tmp_path / "one" / RECORD).read_bytes()
    assert record == (tmp_path / "two" / RECORD).read_bytes()
    assert set(actions(emit_skill(skill, name, tmp_path / "one")).values()) == {"unchanged"}
    assert (tmp_path / "one" / RECORD).read_bytes() == record


def test_a_script_stays_executable(tmp_path):
    emit_skill(skill_folder(tmp_path), "codex", tmp_path / "out")
    assert os.access(tmp_path / "out/.agents/skills/route-tickets/scripts/run.sh", os.X_OK)


def test_a_new_version_updates_and_removes_what_it_no_longer_has(tmp_path):
    skill = skill_folder(tmp_path, files={"references/old.md": b"old\n"})
    out = tmp_path / "out"
    emit_skill(skill, "gemini", out)
    (skill / "references/old.md").unlink()
    (skill / "references/teams.md").write_text("sales\n")
    found = actions(emit_skill(skill, "gemini", out))
    assert found["skills/route-tickets/references/old.md"] == "remove"
    assert found["skills/route-tickets/references/teams.md"] == "update"
    assert found["gemini-extension.json"] == "update"
    assert not (out / "skills/route-tickets/references/old.md").exists()
    assert (out / "skills/route-tickets/references/teams.md").read_text() == "sales\n"


def test_a_changed_file_and_a_file_of_the_user_are_kept_unless_forced(tmp_path):
    skill, out = skill_folder(tmp_path), tmp_path / "out"
    out.mkdir()
    (out / "AGENTS.md").write_text("mine\n")
    with pytest.raises(ChangedThereError, match="was not written by skillc") as found:
        emit_skill(skill, "agents-md", out)
    assert "-mine" in found.value.difference
    assert tree(out) == {"AGENTS.md": b"mine\n"}
    emit_skill(skill, "agents-md", out, force=True)
    (out / "AGENTS.md").write_text("edited\n")
    with pytest.raises(ChangedThereError, match="was changed since it was written"):
        emit_skill(skill, "agents-md", out)
    assert (out / "AGENTS.md").read_text() == "edited\n"
    # A file that the next version lacks is kept if it was edited.
    (out / "AGENTS.md").unlink()
    (out / "references/teams.md").write_text("edited\n")
    (skill / "references/teams.md").unlink()
    assert "references/teams.md" not in actions(emit_skill(skill, "agents-md", out))
    assert (out / "references/teams.md").read_text() == "edited\n"


def test_two_forms_and_two_skills_share_a_folder(tmp_path):
    out = tmp_path / "out"
    one, other = skill_folder(tmp_path), skill_folder(tmp_path, name="other-skill")
    emit_skill(one, "codex", out)
    emit_skill(other, "codex", out)
    emit_skill(one, "agents-md", out)
    assert len(json.loads((out / RECORD).read_text())["emitted"]) == 3
    assert set(actions(emit_skill(one, "codex", out)).values()) == {"unchanged"}
    assert {"AGENTS.md", ".agents/skills/other-skill/SKILL.md"} <= set(tree(out))


def test_a_file_of_another_form_or_skill_is_not_overwritten(tmp_path):
    out = tmp_path / "out"
    one, other = skill_folder(tmp_path), skill_folder(tmp_path, name="other-skill")
    emit_skill(one, "gemini", out)
    before = tree(out)
    with pytest.raises(SkillcError, match="belongs to the form `gemini` of the skill `route-tickets`"):
        emit_skill(one, "gemini-context", out)
    with pytest.raises(SkillcError, match=r"`.*gemini-extension.json` belongs to"):
        emit_skill(other, "gemini", out)
    assert tree(out) == before
    emit_skill(one, "gemini-context", out, force=True)
    assert "GEMINI.md" in tree(out)


def test_a_dry_run_writes_nothing(tmp_path):
    done = emit_skill(skill_folder(tmp_path), "mcp", tmp_path / "out", dry_run=True)
    assert set(actions(done).values()) == {"write"}
    assert not (tmp_path / "out").exists()


def test_links_folders_and_the_skill_itself_are_never_written(tmp_path):
    skill, out = skill_folder(tmp_path), tmp_path / "out"
    with pytest.raises(SkillcError, match="inside the compiled skill"):
        emit_skill(skill, "codex", skill / "out")
    (tmp_path / "elsewhere").mkdir()
    out.mkdir()
    (out / ".agents").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(SkillcError, match="is a link"):
        emit_skill(skill, "codex", out, force=True)
    assert not list((tmp_path / "elsewhere").iterdir())
    (out / "AGENTS.md").mkdir()
    with pytest.raises(SkillcError, match="is a folder"):
        emit_skill(skill, "agents-md", out, force=True)


def _killed_after(skill, out, number):
    done, whole = [0], write.write_file

    def some(place, content):
        if done[0] == number:
            os.kill(os.getpid(), signal.SIGKILL)
        done[0] += 1
        whole(place, content)

    write.write_file = some
    emit_skill(skill, "gemini", out)


def test_after_a_kill_the_same_command_completes_the_form(tmp_path):
    skill, out = skill_folder(tmp_path), tmp_path / "out"
    emit_skill(skill, "gemini", out)
    (skill / "SKILL.md").write_text((skill / "SKILL.md").read_text() + "- more\n")
    (skill / "references/teams.md").write_text("sales\n")
    context = multiprocessing.get_context("fork")
    for number in range(5):
        process = context.Process(target=_killed_after, args=(skill, out, number))
        process.start()
        process.join()
    emit_skill(skill, "gemini", out)
    emit_skill(skill, "gemini", tmp_path / "whole")
    assert tree(out) == tree(tmp_path / "whole")
    assert set(actions(emit_skill(skill, "gemini", out)).values()) == {"unchanged"}


def test_writers_at_once_leave_one_complete_form(tmp_path):
    skill, out = skill_folder(tmp_path), tmp_path / "out"
    context = multiprocessing.get_context("fork")
    every = [context.Process(target=emit_skill, args=(skill, name, out)) for name in FORMS for _ in (0, 1)]
    for each in every:
        each.start()
    for each in every:
        each.join()
    assert {each.exitcode for each in every} <= {0, 1}
    assert all(each.exitcode == 0 for each in every[:2])
    record = json.loads((out / RECORD).read_text())["emitted"]
    for entry in record.values():
        assert "writing" not in entry


def test_a_disk_that_cannot_be_written_is_an_error_and_nothing_is_lost(tmp_path, monkeypatch):
    skill, out = skill_folder(tmp_path), tmp_path / "out"
    emit_skill(skill, "hermes", out)
    before = tree(out)
    (skill / "references/teams.md").write_text("sales\n")

    def full(place, content):
        raise OSError(28, "No space left on device", str(place))

    monkeypatch.setattr(write, "write_file", full)
    with pytest.raises(SkillcError, match="cannot be written: No space left on device"):
        emit_skill(skill, "hermes", out)
    assert tree(out) == before


def test_the_verb_reports_files_notes_and_use(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    skill_folder(tmp_path)
    runner = CliRunner()
    done = runner.invoke(skillc, ["emit", "skills/route-tickets", "--form", "hermes", "--out", "out"])
    assert done.exit_code == 0, done.output
    assert "route-tickets/SKILL.md" in done.output and "note: Hermes lists the first 60" in done.output
    done = runner.invoke(skillc, ["emit", "skills/route-tickets", "--form", "codex", "--out", "out", "--json"])
    found = json.loads(done.output)
    assert found["form"] == "codex" and found["tested"] is None and len(found["files"]) == 5
    done = runner.invoke(skillc, ["emit", "skills/route-tickets", "--form", "codex"])
    assert isinstance(done.exception, SkillcError) and "--out DIR" in done.exception.hint
    done = runner.invoke(skillc, ["emit", "skills/route-tickets", "--form", "codex", "--serve"])
    assert "`--serve` needs `--form mcp`" in str(done.exception)


def test_gemini_is_an_agent_to_install_for(tmp_path):
    skill = skill_folder(tmp_path)
    (tmp_path / "project").mkdir()
    done = install_skill(skill, ["gemini"], project=tmp_path / "project", environment={})
    assert [each.action for each in done.targets] == ["install"]
    assert (tmp_path / "project/.gemini/skills/route-tickets/SKILL.md").read_bytes() == (
        skill / "SKILL.md"
    ).read_bytes()
    install_skill(skill, ["gemini"], project=None, environment={"GEMINI_CLI_HOME": str(tmp_path / "g"), "HOME": "/x"})
    assert (tmp_path / "g/.gemini/skills/route-tickets/SKILL.md").is_file()

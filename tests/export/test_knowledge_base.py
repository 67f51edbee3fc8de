"""Entries of a knowledge base: the same bytes for the same compile, nothing overwritten, found by a plain search."""

import json
import multiprocessing
import os
import shutil
import signal
import subprocess
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from skillc.cli import skillc
from skillc.errors import SkillcError
from skillc.export import knowledge_base
from skillc.export.knowledge_base import export_entry
from skillc.plan.lock import read_lock

TICKETS = Path(__file__).resolve().parents[2] / "examples/tickets"


def ran(*arguments):
    done = CliRunner().invoke(skillc, [*map(str, arguments)], catch_exceptions=False, standalone_mode=False)
    return done.return_value, done.stdout


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    folder = tmp_path_factory.mktemp("compiled")
    program = (TICKETS / "tickets.skill").read_text().replace("epochs   = 4", "epochs   = 1")
    (folder / "tickets.skill").write_text(program)
    lines = (TICKETS / "tickets.jsonl").read_text().splitlines(keepends=True)[:150]
    (folder / "tickets.jsonl").write_text("".join(lines))
    status, _ = ran("compile", folder / "tickets.skill", "--quiet", "--offline", "--kb", folder / "kb")
    assert status in (0, 1)
    return folder


@pytest.fixture
def project(compiled, tmp_path):
    shutil.copytree(compiled, tmp_path / "project", dirs_exist_ok=True)
    shutil.rmtree(tmp_path / "project/kb")
    return tmp_path / "project"


def tree(base):
    return {
        each.relative_to(base).as_posix(): each.read_bytes()
        for each in sorted(base.rglob("*"))
        if each.is_file() and each.name != ".lock"
    }


def front(entry):
    return yaml.safe_load(entry.read_text().split("---\n")[1])


def test_the_hook_of_a_compile_writes_what_the_export_writes(compiled, project):
    export_entry(project / "tickets.skill", project / "kb")
    assert tree(project / "kb") == tree(compiled / "kb")
    again = project / "other"
    export_entry(project / "skills/route-tickets", again)
    assert tree(again) == tree(project / "kb")


def test_an_entry_has_the_figures_of_the_lock(project):
    done = export_entry(project / "tickets.skill", project / "kb")
    lock, found = read_lock(project / "skills/route-tickets.lock"), front(done.entry)
    assert found["verdict"] == lock.verdict and found["run"] == lock.run
    assert found["score"] == pytest.approx(float(lock.test.best.mean), abs=1e-5)
    assert found["initial"] == pytest.approx(float(lock.test.initial.mean), abs=1e-5)
    assert found["interval"][0] < found["score"] < found["interval"][1]
    assert found["tokens"] == lock.charged.prompt_tokens + lock.charged.reply_tokens
    assert found["steps"] >= found["accepted"] >= 1
    assert found["models"] == {"optimizer": "rulebook/v1", "target": "rulebook/v1"}
    assert len(found["date"]) == 10 and {"route-tickets", "tickets", "correct"} <= set(found["tags"])
    assert {"billing", "shipping"} <= set(found["labels"])
    copy = project / "kb" / found["reference"]
    assert copy.read_bytes() == (project / "skills/route-tickets/SKILL.md").read_bytes()
    assert done.reference == copy.parent


@pytest.mark.parametrize("command", [["grep", "-rn"], ["rg", "-n", "--no-heading"]])
def test_a_plain_search_finds_tags_labels_and_phrases_on_one_line(project, command):
    if shutil.which(command[0]) is None:
        pytest.skip(f"`{command[0]}` is not installed")
    done = export_entry(project / "tickets.skill", project / "kb")
    rules = done.entry.read_text().split("## Rules learned\n\n")[1].split("\n\n")[0].splitlines()
    written = [
        line[2:] for line in (project / "skills/route-tickets/SKILL.md").read_text().splitlines() if line[:2] == "- "
    ]
    assert len(rules) == len(written) > 2
    for phrase in ["tags:.*route-tickets", "labels:.*billing", "verdict:", *(each[-40:] for each in written)]:
        shown = subprocess.run([*command, phrase, str(project / "kb/entries")], capture_output=True, text=True).stdout
        hits = [line for line in shown.splitlines() if str(done.entry) in line]
        assert hits, phrase
        if phrase in "".join(written):
            # The line has what the rule cures and the step that wrote it.
            assert any("(step " in hit and "on validation" in hit for hit in hits)
    nothing = subprocess.run([*command, "no such words", str(project / "kb")], capture_output=True, text=True)
    assert nothing.stdout == ""


def test_an_entry_and_a_copy_that_are_there_stay_as_they_are(project):
    done = export_entry(project / "tickets.skill", project / "kb")
    done.entry.write_text(done.entry.read_text() + "\nA remark of a person.\n")
    assert export_entry(project / "tickets.skill", project / "kb").known
    assert "A remark of a person." in done.entry.read_text()
    done.entry.unlink()
    (done.reference / "SKILL.md").write_text("changed")
    with pytest.raises(SkillcError, match="was changed and would be overwritten"):
        export_entry(project / "tickets.skill", project / "kb")
    assert (done.reference / "SKILL.md").read_text() == "changed" and not done.entry.exists()


def test_an_unreadable_entry_of_a_person_does_not_stop_the_index(project):
    (project / "kb/entries").mkdir(parents=True)
    (project / "kb/entries/notes.md").write_text("---\n: [\n---\nmine\n")
    (project / "kb/entries/odd.md").write_text("---\nskill: odd\ninitial: high\n---\n")
    done = export_entry(project / "tickets.skill", project / "kb")
    index = done.index.read_text()
    assert "- [notes](entries/notes.md)\n" in index and "[odd](entries/odd.md)" in index
    assert f"{done.entry.stem}](entries/{done.entry.name}): " in index


def test_a_second_compile_is_a_second_entry(project):
    export_entry(project / "tickets.skill", project / "kb")
    first = tree(project / "kb")
    status, _ = ran(
        *("compile", project / "tickets.skill", "--quiet", "--offline", "--set", "budget.steps=1"),
        *("--kb", project / "kb", "--require", "none"),
    )
    both = tree(project / "kb")
    assert status == 0 and len([name for name in both if name.startswith("entries/")]) == 2
    assert all(both[name] == content for name, content in first.items() if name != "INDEX.md")
    assert both["INDEX.md"].decode().count("\n- ") == 2


def test_secrets_are_in_no_file(project):
    rule = next(
        line for line in (project / "skills/route-tickets/SKILL.md").read_text().splitlines() if line[:2] == "- "
    )
    secret = rule[-30:]
    done = export_entry(project / "tickets.skill", project / "kb", environ={"OPENAI_API_KEY": secret})
    files = {name: content.decode() for name, content in tree(project / "kb").items()}
    assert not [name for name, text in files.items() if secret in text]
    assert all("[secret OPENAI_API_KEY]" in each.read_text() for each in (done.entry, done.reference / "SKILL.md"))
    export_entry(project / "tickets.skill", project / "open", environ={})
    assert any(secret in content.decode() for content in tree(project / "open").values())


def test_writers_at_once_leave_every_entry_in_the_index(project):
    copies = []
    for number in range(3):
        copy = project / f"skills{number}"
        shutil.copytree(project / "skills", copy / "skills")
        for name in ("tickets.skill", "tickets.jsonl"):
            shutil.copy(project / name, copy / name)
        copies.append(copy)
    context = multiprocessing.get_context("fork")
    every = [context.Process(target=export_entry, args=(copy / "tickets.skill", project / "kb")) for copy in copies]
    for each in every:
        each.start()
    for each in every:
        each.join()
    assert [each.exitcode for each in every] == [0, 0, 0]
    assert len(list((project / "kb/entries").iterdir())) == 1
    assert (project / "kb/INDEX.md").read_text().count("\n- ") == 1


def test_errors_name_the_fix_and_write_nothing(project, monkeypatch):
    skill = project / "skills/route-tickets/SKILL.md"
    before = skill.read_text()
    skill.write_text(before + "- Edited.\n")
    with pytest.raises(SkillcError, match="was edited since the compile"):
        export_entry(project / "tickets.skill", project / "kb")
    skill.write_text(before)
    shutil.rmtree(project / "skills")
    shutil.rmtree(project / ".skillc")
    with pytest.raises(SkillcError):
        export_entry(project / "tickets.skill", project / "kb")
    assert not (project / "kb").exists()


def test_a_full_disk_is_an_error_and_leaves_no_entry_without_its_reference(project, monkeypatch):
    def full(place, content):
        raise OSError(28, "No space left on device", str(place))

    monkeypatch.setattr(knowledge_base, "write_file", full)
    with pytest.raises(SkillcError, match="No space left on device"):
        export_entry(project / "tickets.skill", project / "kb")
    assert not list((project / "kb").glob("entries/*"))


def _killed_after(program, base, number):
    done, whole = [0], knowledge_base.write_file

    def some(place, content):
        if done[0] == number:
            os.kill(os.getpid(), signal.SIGKILL)
        done[0] += 1
        whole(place, content)

    knowledge_base.write_file = some
    export_entry(program, base)


def test_after_a_kill_the_same_command_completes_the_entry(project):
    context = multiprocessing.get_context("fork")
    for number in range(2):
        process = context.Process(target=_killed_after, args=(project / "tickets.skill", project / "kb", number))
        process.start()
        process.join()
        assert process.exitcode == -signal.SIGKILL
    assert not (project / "kb/INDEX.md").exists()
    export_entry(project / "tickets.skill", project / "kb")
    export_entry(project / "tickets.skill", project / "whole")
    assert tree(project / "kb") == tree(project / "whole")


def test_the_verb_prints_the_entry(project, monkeypatch):
    monkeypatch.chdir(project)
    status, shown = ran("export", "kb", "tickets.skill", "--to", "kb")
    assert status == 0 and shown.startswith("wrote kb/entries/route-tickets-")
    status, shown = ran("export", "kb", "tickets.skill", "--to", "kb", "--json")
    assert status == 0 and json.loads(shown)["known"] is True

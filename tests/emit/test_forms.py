"""The forms of a skill: what each contains, what it cannot say, and that the body stays as it is."""

import json
from pathlib import Path

import pytest
import yaml

from skillc.cli.emitting import _FORMS
from skillc.emit.forms import FORMS, CompiledSkill
from skillc.errors import SkillcError
from skillc.skill_files import read_folder
from tests.emit.made import ABOUT, BODY, skill_folder


def compiled(root, **more):
    return CompiledSkill.of(read_folder(skill_folder(root, **more)))


def front(content):
    return yaml.safe_load(content.decode().split("---\n")[1])


def test_the_command_line_has_every_form():
    assert tuple(FORMS) == _FORMS


@pytest.mark.parametrize("name", FORMS)
def test_every_form_has_the_body_and_all_files_unchanged_and_is_deterministic(tmp_path, name):
    skill = compiled(tmp_path)
    files = FORMS[name].files(skill)
    assert files == FORMS[name].files(CompiledSkill.of(dict(reversed(skill.files.items()))))
    assert [path for path, content in files.items() if content.decode(errors="replace").endswith(BODY)]
    for path in ("references/teams.md", "scripts/run.sh", "logo.png"):
        assert [each for each in files if each.endswith(path) and files[each] == skill.files[path]]
    assert all(not Path(path).is_absolute() and ".." not in Path(path).parts for path in files)
    assert FORMS[name].present(skill).text.endswith(BODY)


def test_a_claude_plugin_has_a_manifest_and_the_folder(tmp_path):
    skill = compiled(tmp_path, further="license: MIT\nmetadata:\n  author: Ada\n")
    files = FORMS["claude-plugin"].files(skill)
    manifest = json.loads(files[".claude-plugin/plugin.json"])
    assert manifest == {
        "name": "route-tickets",
        "version": skill.version,
        "description": ABOUT,
        "author": {"name": "Ada"},
        "license": "MIT",
    }
    assert files["skills/route-tickets/SKILL.md"] == skill.files["SKILL.md"]


def test_the_version_differs_where_any_file_does(tmp_path):
    one, other = compiled(tmp_path / "a"), compiled(tmp_path / "b", files={"references/teams.md": b"more\n"})
    assert one.version != other.version
    assert one.version == compiled(tmp_path / "c").version


def test_codex_gets_the_policy_that_the_frontmatter_asks_for(tmp_path):
    form, place = FORMS["codex"], ".agents/skills/route-tickets/agents/openai.yaml"
    free = yaml.safe_load(form.files(compiled(tmp_path / "a"))[place])
    asked = compiled(tmp_path / "b", further="disable-model-invocation: true\nallowed-tools: Bash\n")
    assert free["policy"] == {"allow_implicit_invocation": True}
    assert yaml.safe_load(form.files(asked)[place])["policy"] == {"allow_implicit_invocation": False}
    assert list(form.notes(asked)) == ["Codex ignores `allowed-tools` of the frontmatter"]
    own = compiled(tmp_path / "c", files={"agents/openai.yaml": b"policy: {}\n"})
    assert form.files(own)[place] == b"policy: {}\n"
    assert "is kept" in next(form.notes(own))


def test_hermes_gets_tags_unless_the_skill_has_metadata(tmp_path):
    form = FORMS["hermes"]
    plain = compiled(tmp_path / "a")
    keys = front(form.files(plain)["route-tickets/SKILL.md"])
    assert keys == {**plain.keys, "metadata": {"hermes": {"tags": ["route", "tickets", "route-tickets"]}}}
    assert "first 60 of 83" in next(form.notes(plain))
    assert form.present(plain).about == ABOUT[:57] + "..."
    own = compiled(tmp_path / "b", about="Short.", further="metadata:\n  version: 2\n")
    assert form.files(own)["route-tickets/SKILL.md"] == own.files["SKILL.md"]
    assert list(form.notes(own)) == ["the skill's own `metadata` is kept, so no tags for Hermes are added"]


def test_line_ends_of_windows_and_a_mark_at_the_beginning_are_kept(tmp_path):
    folder = skill_folder(tmp_path)
    text = "\ufeff" + (folder / "SKILL.md").read_text().replace("\n", "\r\n")
    (folder / "SKILL.md").write_bytes(text.encode())
    skill = CompiledSkill.of(read_folder(folder))
    assert skill.about == ABOUT
    assert FORMS["codex"].files(skill)[".agents/skills/route-tickets/SKILL.md"] == text.encode()
    made = FORMS["hermes"].files(skill)["route-tickets/SKILL.md"].decode()
    assert "      - tickets\n" in made and made.endswith(BODY.replace("\n", "\r\n"))


def test_what_hosts_replace_in_the_body_is_reported(tmp_path):
    body = "# T\n\nUse $ARGUMENTS, pay $5, and !`git status`; import @docs/a.md, not me@example.com.\n"
    skill = compiled(tmp_path, body=body)
    assert FORMS["claude-plugin"].altered(skill) == ("$ARGUMENTS", "$5", "!`git status`")
    assert FORMS["gemini-context"].altered(skill) == ("@docs/a.md",)
    assert "replaces `$ARGUMENTS`, `$5` and" in next(FORMS["claude-plugin"].notes(skill))
    assert FORMS["codex"].altered(skill) == ()
    assert not FORMS["claude-plugin"].altered(compiled(tmp_path / "b"))


def test_forms_that_are_always_in_the_context_say_what_is_lost(tmp_path):
    skill = compiled(tmp_path, further="context: fork\n")
    for name, file in (("agents-md", "AGENTS.md"), ("gemini-context", "GEMINI.md")):
        notes = list(FORMS[name].notes(skill))
        assert FORMS[name].files(skill)[file] == BODY.encode()
        assert FORMS[name].present(skill).load == "always"
        assert any("reads no other file" in note for note in notes)
        assert any("`context`" in note for note in notes)


@pytest.mark.parametrize(
    ("further", "words"), [("x: a: b\n", "is not YAML, line 4"), ("- a\n", "is not YAML"), ("d: 2026-01-02\n", None)]
)
def test_a_frontmatter_is_values_that_json_has_or_an_error(tmp_path, further, words):
    if words is None:
        assert json.dumps(compiled(tmp_path, further=further).keys["d"]) == '"2026-01-02"'
        return
    with pytest.raises(SkillcError, match=words):
        compiled(tmp_path, further=further)

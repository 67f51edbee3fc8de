"""`skillc install`: whole or not at all, never over what was changed there, and no link followed."""

import json
import os
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

from skillc.artifacts.install import AGENTS, ChangedThereError, install_skill
from skillc.cli import skillc
from skillc.errors import SkillcError

PROGRAM = """language 1
task {
  input  ticket: text
  output team: "billing" | "shipping"
}
skill route_tickets {
  about = "Route a support ticket to the team that can resolve it."
  trainable section rules { limit = 800 tokens }
}
model target    = "rulebook/v1"
model optimizer = "rulebook/v1"
data { source = "tickets.jsonl" }
goal correct = exact_match(team)
budget { epochs = 1 }
gate better = candidate.correct > incumbent.correct
"""
SKILL = """---
name: route-tickets
description: Route a support ticket to the team that can resolve it.
---

# Route tickets

- If the ticket mentions "parcel", answer shipping.
"""
PROJECT = {name: agent.project for name, agent in AGENTS.items() if agent.project is not None}


def shop(folder: Path, skill: str = SKILL) -> Path:
    """A project with a program and its compiled skill, without a lock."""
    (folder / "skills/route-tickets/references").mkdir(parents=True)
    (folder / "tickets.skill").write_text(PROGRAM)
    (folder / "skills/route-tickets/SKILL.md").write_text(skill)
    (folder / "skills/route-tickets/references/teams.md").write_text("teams\n")
    (folder / "skills/route-tickets/.hidden").write_text("mine\n")
    (folder / "skills/route_tickets.py").write_text("")
    return folder


@pytest.fixture
def project(tmp_path, monkeypatch):
    home = tmp_path / "home"
    (home / "project").mkdir(parents=True)
    for name in ("CLAUDE_CONFIG_DIR", "XDG_CONFIG_HOME", "HERMES_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.chdir(shop(home / "project"))
    return home / "project"


def run(*words):
    done = CliRunner().invoke(skillc, ["install", *map(str, words)], standalone_mode=False)
    if done.exception is not None:
        raise done.exception
    return done


def put(*agents, where: Path | None = Path(), path: str = "tickets.skill", **options):
    return install_skill(Path(path), agents, project=where, environment=dict(os.environ), **options)


def held(folder: Path) -> dict[str, str]:
    return {str(p.relative_to(folder)): p.read_text() for p in sorted(folder.rglob("*")) if p.is_file()}


WHOLE = {"SKILL.md": SKILL, "references/teams.md": "teams\n"}


@pytest.mark.parametrize("agent", sorted(PROJECT))
@pytest.mark.parametrize("path", ["tickets.skill", ".", "skills/route-tickets"])
def test_the_folder_is_copied_into_the_project_and_nothing_else(project, agent, path):
    done = run(path, "--to", agent)
    assert held(project / PROJECT[agent] / "route-tickets") == WHOLE
    assert f"{agent}  {PROJECT[agent]}/route-tickets   installed" in done.stdout
    assert "is missing, so the verdict on this skill is unknown" in done.stdout
    assert "is up to date" in run(path, "--to", agent).stdout
    assert [each.name for each in (project / PROJECT[agent]).iterdir() if not each.name.startswith(".")] == [
        "route-tickets"
    ]


@pytest.mark.parametrize(
    ("agent", "variables", "place"),
    [
        ("claude-code", {}, ".claude/skills"),
        ("claude-code", {"CLAUDE_CONFIG_DIR": "elsewhere"}, "elsewhere/skills"),
        ("codex", {}, ".agents/skills"),
        ("opencode", {}, ".config/opencode/skills"),
        ("opencode", {"XDG_CONFIG_HOME": "elsewhere"}, "elsewhere/opencode/skills"),
        ("hermes", {}, ".hermes/skills"),
        ("hermes", {"HERMES_HOME": "elsewhere"}, "elsewhere/skills"),
    ],
)
def test_the_users_own_folder_is_where_the_agent_looks(project, monkeypatch, agent, variables, place):
    for name, value in variables.items():
        monkeypatch.setenv(name, str(project.parent / value))
    told = run("tickets.skill", "--to", agent, "--user").stdout
    assert f"{agent}  ~/{place}/route-tickets   installed" in told
    assert held(project.parent / place / "route-tickets") == WHOLE


def test_several_agents_json_and_a_dry_run_that_writes_nothing(project):
    words = ("tickets.skill", "--to", "codex", "--to", "claude-code", "--to", "codex", "--json")
    before = sorted(project.rglob("*"))
    told = json.loads(run(*words, "--dry-run").stdout)
    assert [each["action"] for each in told["targets"]] == ["install", "install"]
    assert sorted(project.rglob("*")) == before
    told = json.loads(run(*words).stdout)
    assert [each["path"] for each in told["targets"]] == [
        ".agents/skills/route-tickets",
        ".claude/skills/route-tickets",
    ]
    assert told["skill"] == "route-tickets"


def test_an_install_that_nobody_changed_is_updated_also_in_a_clone_with_other_line_ends(project, tmp_path):
    put("codex")
    shutil.copytree(project, tmp_path / "clone")
    os.chdir(tmp_path / "clone")
    installed = Path(".agents/skills/route-tickets")
    for path in (each for each in installed.rglob("*") if each.is_file()):
        path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    Path("skills/route-tickets/SKILL.md").write_text(SKILL + "- More.\n")
    shutil.rmtree("skills/route-tickets/references")
    (done,) = put("codex").targets
    assert done.action == "update"
    assert held(installed) == {"SKILL.md": SKILL + "- More.\n"}


@pytest.mark.parametrize("change", ["edited", "removed", "foreign"])
def test_what_was_changed_there_is_refused_with_the_difference_and_nothing_is_written(project, change):
    installed = project / ".claude/skills/route-tickets"
    if change == "foreign":
        installed.mkdir(parents=True)
        (installed / "SKILL.md").write_text("mine\n")
    else:
        put("claude-code")
        if change == "edited":
            (installed / "SKILL.md").write_text(SKILL + "- Mine.\n")
        else:
            (installed / "references/teams.md").unlink()
    (project / "skills/route-tickets/SKILL.md").write_text(SKILL + "- New.\n")
    before = held(project)
    with pytest.raises(ChangedThereError) as refused:
        put("codex", "claude-code")
    assert "+- New." in refused.value.difference
    assert {"edited": "-- Mine.", "removed": "+teams", "foreign": "-mine"}[change] in refused.value.difference
    assert held(project) == before
    (done,) = put("claude-code", force=True).targets
    assert done.action == "replace"
    assert held(installed)["SKILL.md"] == SKILL + "- New.\n"


def test_the_same_name_from_two_projects_is_not_mixed_up_in_the_users_folder(project):
    other = shop(project.parent / "other", SKILL + "- Other.\n")
    put("hermes", where=None)
    with pytest.raises(ChangedThereError, match="another skill of that name") as refused:
        put("hermes", where=None, path=str(other / "tickets.skill"))
    assert str(project / "skills/route-tickets") in refused.value.message
    # A project that is gone, or was renamed, owns nothing.
    os.chdir(project.parent)
    project.rename(project.parent / "renamed")
    (done,) = put("hermes", where=None, path="renamed/tickets.skill").targets
    assert done.action == "update"
    assert put("hermes", where=None, path="renamed").targets[0].action == "unchanged"


def test_the_record_names_no_folder_of_a_machine(project):
    put("claude-code")
    put("codex", where=None)
    records = [project / ".claude/skills/.route-tickets.skillc.json"]
    records.append(project.parent / ".agents/skills/.route-tickets.skillc.json")
    assert [json.loads(each.read_text())["from"] for each in records] == [
        "../../skills/route-tickets",
        "../../project/skills/route-tickets",
    ]


# ---- links ----------------------------------------------------------------------------------------


def test_no_link_is_followed_out_of_the_project(project, tmp_path):
    away = tmp_path / "away"
    away.mkdir()
    (project / ".claude").symlink_to(away)
    with pytest.raises(SkillcError, match="leads out of"):
        put("claude-code")
    (project / ".agents/skills").mkdir(parents=True)
    (project / ".agents/skills/route-tickets").symlink_to(away)
    for force in (False, True):
        with pytest.raises(SkillcError, match="is a link to"):
            put("codex", force=force)
    assert list(away.iterdir()) == []


def test_a_link_among_the_files_of_the_skill_is_not_copied(project, tmp_path):
    (tmp_path / "secret").mkdir()
    for name in ("linked.md", "linked"):
        link = project / "skills/route-tickets" / name
        link.symlink_to(tmp_path / "secret")
        with pytest.raises(SkillcError, match="is not a plain file"):
            put("codex")
        link.unlink()
    assert not (project / ".agents").exists()


# ---- faults ---------------------------------------------------------------------------------------


def test_a_full_disk_leaves_every_place_as_it_was(project, monkeypatch):
    import skillc.artifacts.beside as module
    from skillc import skill_files

    put("codex", "claude-code")
    (project / "skills/route-tickets/SKILL.md").write_text(SKILL + "- New.\n")
    before, real, left = held(project), module.write_atomically, [3]

    def full(path, content, **options):
        left[0] -= 1
        if left[0] < 0:
            raise OSError(28, "No space left on device", str(path))
        real(path, content, **options)

    for each in (module, skill_files):
        monkeypatch.setattr(each, "write_atomically", full)
    with pytest.raises(SkillcError, match="No space left on device"):
        put("codex", "claude-code")
    assert held(project) == before


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_may_not_be_written_is_a_message(project):
    (project / ".agents").mkdir(mode=0o500)
    with pytest.raises(SkillcError, match="cannot be written"):
        put("codex")


@pytest.mark.parametrize("survived", range(7))
def test_a_kill_anywhere_leaves_an_old_or_a_new_skill_and_the_next_install_goes_on(project, monkeypatch, survived):
    import skillc.artifacts.beside as module
    from skillc import skill_files

    class Killed(BaseException):
        pass

    put("codex")
    (project / "skills/route-tickets/SKILL.md").write_text(SKILL + "- New.\n")
    left = [survived]

    def counting(real):
        def step(*words, **options):
            left[0] -= 1
            if left[0] < 0:
                raise Killed
            return real(*words, **options)

        return step

    for each in (module, skill_files):
        monkeypatch.setattr(each, "write_atomically", counting(each.write_atomically))
    monkeypatch.setattr(Path, "rename", counting(Path.rename))
    with pytest.raises(Killed):
        put("codex")
    monkeypatch.undo()
    os.chdir(project)
    monkeypatch.setenv("HOME", str(project.parent))
    installed = project / ".agents/skills/route-tickets"
    if installed.exists():
        assert held(installed)["SKILL.md"] in (SKILL, SKILL + "- New.\n")
        assert "references/teams.md" in held(installed)
    put("codex")
    assert held(installed)["SKILL.md"] == SKILL + "- New.\n"
    assert put("codex").targets[0].action == "unchanged"
    assert [each.name for each in sorted((project / ".agents/skills").iterdir())] == [
        ".route-tickets.skillc.json",
        "route-tickets",
    ]


# ---- mistakes -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("tickets.skill", "--to", "hermes"), "Hermes Agent reads no skills of a project"),
        (("tickets.skill", "--to", "codex", "--user", "--project", "."), "can't be used together"),
        (("tickets.skill", "--to", "codex", "--project", "nowhere"), "folder `nowhere` does not exist"),
        (("nothing.skill", "--to", "codex"), "program `nothing.skill` does not exist"),
    ],
)
def test_a_mistake_is_a_message(project, words, said):
    with pytest.raises(SkillcError) as refused:
        run(*words)
    assert said in refused.value.message


def test_a_skill_that_no_agent_loads_and_a_program_without_one_are_refused(project):
    skill = project / "skills/route-tickets/SKILL.md"
    broken = {
        "differs from its folder's": SKILL.replace("name: route-tickets", "name: other"),
        "agents cannot load": "no frontmatter\n",
        "1024": SKILL.replace("Route a", "R" * 1025),
    }
    for said, text in broken.items():
        skill.write_text(text)
        with pytest.raises(SkillcError, match=said):
            put("codex")
    skill.unlink()
    with pytest.raises(SkillcError, match="is not compiled"):
        put("codex")

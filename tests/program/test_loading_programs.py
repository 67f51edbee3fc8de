from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import dspy
import pytest

import skillc
from skillc.artifacts.loading import load_program, program_in
from skillc.errors import SkillcError

PROGRAM = """\
language 1
task {
  input  ticket: text { about = "as the customer wrote it" }
  output team: "billing" | "shipping"
}
skill route_tickets {
  about = "Route a support ticket."
  frozen section role = \"\"\"
    You route support tickets.
  \"\"\"
  trainable section rules { limit = 800 tokens }
}
model target    = "rulebook/v1"
model optimizer = "rulebook/v1"
data { source = "tickets.jsonl" }
goal correct = exact_match(team)
budget { epochs = 1 }
gate better = candidate.correct > incumbent.correct
"""
SKILL = """\
---
name: route-tickets
description: x
---

# Route tickets

- If the ticket mentions "parcel", answer shipping.
"""


@pytest.fixture
def program(tmp_path: Path) -> Path:
    folder = tmp_path / "programs_here"
    folder.mkdir()
    (folder / "tickets.skill").write_text(PROGRAM, encoding="utf-8")
    return folder / "tickets.skill"


def compile_by_hand(program: Path) -> Path:
    folder = program.parent / "skills" / "route-tickets"
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text(SKILL, encoding="utf-8")
    return folder


def test_a_program_that_is_not_compiled_gives_its_initial_skill_with_a_warning(program: Path) -> None:
    with pytest.warns(UserWarning, match="not compiled yet"):
        module = skillc.load(program)
    assert isinstance(module, dspy.Module)
    assert "You route support tickets." in module.answer.signature.instructions


@pytest.mark.filterwarnings("error::UserWarning:skillc")
def test_a_compiled_program_answers_with_its_own_target(program: Path) -> None:
    compile_by_hand(program)
    for place in (program, str(program.parent)):
        route = skillc.load(place)
        assert route(ticket="where is my parcel").team == "shipping"


def test_dspys_configured_lm_comes_first(program: Path) -> None:
    compile_by_hand(program)
    route = skillc.load(program)
    with dspy.context(lm=dspy.utils.DummyLM([{"team": "billing"}])):
        assert route(ticket="where is my parcel").team == "billing"


def test_a_loaded_module_is_copied_and_saved_like_any_other(program: Path, tmp_path: Path) -> None:
    compile_by_hand(program)
    route = skillc.load(program)
    route(ticket="x")
    copy = route.deepcopy()
    copy.save(str(tmp_path / "state.json"))
    copy.load(str(tmp_path / "state.json"))
    assert copy(ticket="my parcel").team == "shipping"


def test_a_skill_folder_is_loaded_through_its_module(program: Path) -> None:
    from skillc.artifact_paths import ArtifactPaths
    from skillc.document.skill_md import from_skill_md
    from skillc.program.artifact import artifact_files, write_artifact

    folder = compile_by_hand(program)
    paths = ArtifactPaths.of_folder(folder)
    write_artifact(paths, artifact_files(paths, load_program(program).plan, from_skill_md(SKILL)))
    route = skillc.load(folder)
    with dspy.context(lm=dspy.utils.DummyLM([{"team": "billing"}])):
        assert route(ticket="x").team == "billing"


def test_what_cannot_be_loaded_says_why(program: Path, tmp_path: Path) -> None:
    with pytest.raises(SkillcError, match="does not exist"):
        skillc.load(tmp_path / "nothing.skill")
    with pytest.raises(SkillcError, match="contains no program"):
        skillc.load(tmp_path)
    (program.parent / "second.skill").write_text(PROGRAM)
    with pytest.raises(SkillcError, match="more than one program"):
        program_in(program.parent)
    program.write_text("task {\n")
    with pytest.raises(SkillcError, match="error"):
        skillc.load(program)


def test_programs_import_like_modules(program: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import skillc.importer

    compile_by_hand(program)
    monkeypatch.syspath_prepend(str(program.parent.parent))
    namespace: dict[str, Any] = {}
    try:
        exec("from programs_here import tickets", namespace)
        tickets = namespace["tickets"]
        assert tickets.plan.skill.name == "route_tickets"
        assert tickets.skill.name == "route-tickets"
        assert tickets.program is tickets.program
        assert tickets.program(ticket="my parcel").team == "shipping"
        assert Path(tickets.__file__) == program
        with pytest.raises(AttributeError, match="no attribute `nothing`"):
            _ = tickets.nothing
        (program.parent / "broken.skill").write_text("task {\n")
        with pytest.raises(ImportError, match="error"):
            exec("from programs_here import broken", namespace)
        with pytest.raises(ImportError):
            exec("from programs_here import not_there", namespace)
    finally:
        for name in [name for name in sys.modules if name.split(".")[0] == "programs_here"]:
            del sys.modules[name]
    skillc.importer.install()
    finders = [finder for finder in sys.meta_path if isinstance(finder, skillc.importer.SkillFinder)]
    assert len(finders) == 1


def test_packages_with_an_init_work_too(program: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (program.parent / "__init__.py").write_text("")
    code = (
        "import skillc.importer, sys\nfrom programs_here import tickets\n"
        "assert tickets.plan.skill.artifact == 'route-tickets'\n"
        "assert 'dspy' not in sys.modules\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=program.parent.parent, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_import_skillc_stays_light() -> None:
    code = (
        "import sys, skillc\n"
        "heavy = {'dspy', 'litellm', 'numpy', 'pydantic', 'skillc.loading'} & set(sys.modules)\n"
        "assert not heavy, heavy\nassert callable(skillc.load)\n"
        "assert not {'dspy', 'litellm'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)

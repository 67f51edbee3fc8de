"""`skillc.load` of programs whose rollouts play in an environment."""

import shutil
from pathlib import Path

import pytest

import skillc
from skillc.errors import SkillcError

PLAYER = """
def act(messages, model, parameters):
    system, turn = messages[0]["content"], sum(message["role"] == "assistant" for message in messages)
    if "You play a user" in system:
        return "[END]" if turn else "I want a hat."
    if "You act in an environment" not in system:
        return "open"
    return ("go to kitchen", "take apple", "finish")[min(turn, 2)]
"""
PROGRAM = """language 1
task {
  input  errand: text
  output action: text
  rollout = environment("toy_house:House") { turns = 5 }
}
skill find_things { about = "Find things."; trainable section rules }
model target    = "mine/player" { backend = python("loaded_player:act") }
model optimizer = "mine/player" { backend = python("loaded_player:act") }
data { source = "games.jsonl"; field place: text; field fault: text | none; field where: text | none }
goal won = reward()
budget { epochs = 1 }
gate better = candidate.won > incumbent.won
"""


def program(folder, text=PROGRAM):
    shutil.copy(Path(__file__).with_name("toy_house.py"), folder / "toy_house.py")
    (folder / "loaded_player.py").write_text(PLAYER)
    (folder / "find.skill").write_text(text)
    return folder / "find.skill"


@pytest.mark.filterwarnings("ignore:.*not compiled yet")
def test_a_call_gets_the_fields_that_the_environment_needs(tmp_path) -> None:
    find = skillc.load(program(tmp_path))
    done = find(errand="bring the apple", place="kitchen")
    assert (done.action, done.trajectory.reward, done.trajectory.turns) == ("finish", 1.0, 3)
    assert find(errand="bring the apple", place="garden").trajectory.reward == 0.0


@pytest.mark.filterwarnings("ignore:.*not compiled yet")
def test_a_call_that_lacks_a_value_says_which(tmp_path) -> None:
    find = skillc.load(program(tmp_path, PROGRAM.replace("field place", "field goal")))
    with pytest.raises(SkillcError, match="the program has no input or field `eranda`") as raised:
        find(eranda="x")
    assert raised.value.hint == "did you mean `errand`?"
    with pytest.raises(SkillcError, match="a call of the program lacks `errand`") as raised:
        find(goal="kitchen")
    assert raised.value.hint == "call it as `program(errand=...)`"


@pytest.mark.filterwarnings("ignore:.*not compiled yet")
def test_an_environment_that_fails_without_a_field_is_explained(tmp_path) -> None:
    shop = PROGRAM.replace("toy_house:House", "toy_house:Needy")
    find = skillc.load(program(tmp_path, shop))
    with pytest.raises(SkillcError, match="KeyError: 'place'") as raised:
        find(errand="bring the apple")
    assert raised.value.hint == "not given: `place`, which an environment may need"


@pytest.mark.filterwarnings("ignore:.*not compiled yet")
def test_the_goal_of_a_simulated_user_is_part_of_a_call(tmp_path) -> None:
    text = PROGRAM.replace("toy_house:House", "toy_house:Shop").replace("turns = 5", "user = customer { goal = place }")
    text += 'model customer = "mine/user" { backend = python("loaded_player:act") }\n'
    find = skillc.load(program(tmp_path, text))
    with pytest.raises(SkillcError, match="a call of the program lacks `place`"):
        find(errand="sell a hat")
    assert find(errand="sell a hat", place="a hat").trajectory.reward == 0.0


def test_a_skill_folder_runs_its_program(tmp_path) -> None:
    from skillc.artifact_paths import ArtifactPaths
    from skillc.artifacts.loading import load_program
    from skillc.program.artifact import artifact_files, write_artifact

    path = program(tmp_path)
    loaded = load_program(path)
    paths = ArtifactPaths.beside(tmp_path, "find-things")
    write_artifact(paths, artifact_files(paths, loaded.plan, loaded.skill))
    with pytest.raises(SkillcError, match="run through skillc, and its program was not found"):
        skillc.load(paths.folder)

"""Household games of all six kinds with ALFWorld's engine: solved, played through skillc, and compiled."""

import asyncio
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tests" / "models"), str(ROOT / "tests")]

from model_plans import Scripted, plan_of, reply  # noqa: E402

from skillc.models.client import Client  # noqa: E402
from skillc.outcomes import Example  # noqa: E402
from skillc.plan.schema import FieldPlan, RolloutPlan, TaskPlan, TypePlan  # noqa: E402
from skillc.tasks.environments.household import ENGINE, find_interpreter, games  # noqa: E402
from skillc.tasks.runner import RolloutRunner  # noqa: E402

PYTHON = find_interpreter(None, ROOT)
KINDS = list(games.GOALS)
TEXT = TypePlan(kind="text")
# What the engine says and allows along a plan, with and without what engine.py replaces in it.
SAME = """
import importlib.util, json, sys
spec = importlib.util.spec_from_file_location("engine", sys.argv[1])
engine = importlib.util.module_from_spec(spec); spec.loader.exec_module(engine)
import fast_downward
from textworld.envs.pddl import textgen
from textworld.logic import Rule
PLACES = [(textgen, "_parse_and_convert"), (textgen, "copy_context"), (Rule, "parse_conjunctive_query"),
          (fast_downward, "pddl2sas")]

def present():
    return [vars(owner)[name] for owner, name in PLACES]

def use(functions):
    for (owner, name), function in zip(PLACES, functions):
        setattr(owner, name, function)

before, found = present(), []
house = engine.Household()
fast = present()
assert all(new is not old for new, old in zip(fast, before))
for example in json.loads(sys.argv[2]):
    commands = engine.solve(house, example)
    seen = []
    # Twice with what is replaced: what it remembers is used as well as made.
    for functions in (before, fast, fast):
        use(functions)
        seen.append([house.reset(example), *(house.step(each) for each in ("look", *commands))])
    assert seen[0] == seen[1] == seen[2], example
    found.append({"example": example, "commands": commands})
print(json.dumps(found))
"""


def engine(*arguments, **variables):
    return subprocess.run(
        [str(PYTHON), str(ENGINE), *arguments],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **variables},
    )


@pytest.fixture(scope="module")
def solved():
    """A game of each kind with the commands of the planner."""
    examples = [games.make_game(kind, 5).row() for kind in KINDS]
    done = subprocess.run(
        [str(PYTHON), "-c", SAME, str(ENGINE), json.dumps(examples)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def play(folder, examples, actions, turns=30):
    """Play examples at once by their commands; returns the trajectories."""
    task = TaskPlan(
        inputs=(FieldPlan(name="goal", type=TEXT, column="goal"),),
        outputs=(FieldPlan(name="action", type=TEXT, column="action"),),
        rollout=RolloutPlan(kind="environment", arguments=("alfworld",), settings={"turns": turns, "processes": 2}),
    )
    made = plan_of(task=task)

    def act(sent):
        turn = sum(message["role"] == "assistant" for message in sent["messages"])
        own = next(each for each in actions if each[0] in sent["messages"][1]["content"])
        return reply(own[1][turn])

    async def scenario():
        with Client(made, transport=Scripted(act), root=folder) as client:
            runner = RolloutRunner(made, client, root=folder)
            try:
                return await asyncio.gather(*(runner(None, each, 0, "rollout") for each in examples))
            finally:
                await runner.close()

    return asyncio.run(scenario())


def example(row):
    return Example(str(row["id"]), {"goal": f"{row['goal']} ({row['id']})"}, {}, dict(row), str(row["id"]))


def test_the_planner_wins_seeded_games_of_all_kinds(tmp_path) -> None:
    rows = [game.row() for game in games.games(24, seed=11)]
    (tmp_path / "games.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    done = engine("check", str(tmp_path / "games.jsonl"))
    assert done.returncode == 0, done.stdout + done.stderr
    assert {line.partition("-")[0] for line in done.stdout.splitlines()} == set(KINDS)


def test_a_game_is_the_same_for_a_seed() -> None:
    assert games.make_game(KINDS[3], 4) == games.make_game(KINDS[3], 4)
    assert games.make_game(KINDS[3], 4) != games.make_game(KINDS[3], 5)


def test_all_six_kinds_are_won_through_skillc_by_the_planners_commands(tmp_path, solved, monkeypatch) -> None:
    monkeypatch.setenv("SKILLC_ALFWORLD_PYTHON", str(PYTHON))
    examples = [example(each["example"]) for each in solved]
    actions = [(each["example"]["id"], each["commands"]) for each in solved]
    for rollout, each in zip(play(tmp_path, examples, actions), solved, strict=True):
        assert rollout.failure is None, rollout.detail
        assert (rollout.trajectory.reward, rollout.trajectory.turns) == (1.0, len(each["commands"]))
        assert "Your task is to" in rollout.trajectory.steps[0].text


def test_a_wrong_command_changes_nothing(tmp_path, solved, monkeypatch) -> None:
    monkeypatch.setenv("SKILLC_ALFWORLD_PYTHON", str(PYTHON))
    first = solved[0]
    actions = [(first["example"]["id"], ["fly to the moon", *first["commands"]])]
    (rollout,) = play(tmp_path, [example(first["example"])], actions)
    assert "Nothing happens." in [getattr(step, "text", "") for step in rollout.trajectory.steps]
    assert rollout.trajectory.reward == 1.0


TOOLS = """
def act(command: str, environment) -> str:
    \"\"\"Act in the house.

    Args:
        command: one of the possible actions.
    \"\"\"
    return environment.step(command)


def inventory(environment) -> str:
    \"\"\"List what you carry.\"\"\"
    return environment.step("inventory")
"""


def test_an_agent_plays_by_tools_that_act(tmp_path, solved, monkeypatch) -> None:
    monkeypatch.setenv("SKILLC_ALFWORLD_PYTHON", str(PYTHON))
    (tmp_path / "house.py").write_text(TOOLS)
    first = solved[0]
    tools = [{"function": "python", "arguments": [f"house:{name}"]} for name in ("act", "inventory")]
    settings = {"turns": 30, "agent": {"kind": "react", "tools": tools}}
    task = TaskPlan(
        inputs=(FieldPlan(name="goal", type=TEXT, column="goal"),),
        outputs=(FieldPlan(name="done", type=TypePlan(kind="bool"), column="done"),),
        rollout=RolloutPlan(kind="environment", arguments=("alfworld",), settings=settings),
    )
    calls = [("inventory", {}), *(("act", {"command": each}) for each in first["commands"]), ("finish", {"done": True})]
    script, made = iter(calls), plan_of(task=task)

    def says(sent):
        name, arguments = next(script)
        fields = {"next_thought": "so", "next_tool_name": name, "next_tool_args": json.dumps(arguments)}
        return reply(
            "\n\n".join([*(f"[[ ## {key} ## ]]\n{value}" for key, value in fields.items()), "[[ ## completed ## ]]"])
        )

    async def scenario():
        with Client(made, transport=Scripted(says), root=tmp_path) as client:
            runner = RolloutRunner(made, client, root=tmp_path)
            try:
                return await runner(None, example(first["example"]), 0, "rollout")
            finally:
                await runner.close()

    done = asyncio.run(scenario())
    assert done.failure is None, done.detail
    assert (done.trajectory.reward, done.prediction) == (1.0, {"done": True})
    assert [call.tool for call in done.trajectory.calls()] == [name for name, _ in calls[:-1]]
    assert "You are not carrying anything." in [getattr(step, "text", "") for step in done.trajectory.steps]


MAKE = """
import importlib.util, json, sys
spec = importlib.util.spec_from_file_location("engine", sys.argv[1])
engine = importlib.util.module_from_spec(spec); spec.loader.exec_module(engine)
house = engine.Household()
print(json.dumps({kind: house._made(engine.games.make_game(kind, 5)) for kind in engine.games.GOALS}))
"""
# What ALFWorld's own environment collects of a folder, and how it ends an episode of given commands.
OFFICIAL = """
import json, os, sys
sys.argv, (commands,) = sys.argv[:1], sys.argv[1:]
from alfworld.agents.environment.alfred_tw_env import TASK_TYPES, AlfredTWEnv
data = os.path.join(os.environ["ALFWORLD_DATA"], "json_2.1.1")
paths = {"train": ("data_path", "train"), "valid_seen": ("eval_id_data_path", "eval_in_distribution"),
         "valid_unseen": ("eval_ood_data_path", "eval_out_of_distribution")}
config = {
    "env": {"goal_desc_human_anns_prob": 0, "task_types": sorted(TASK_TYPES), "domain_randomization": False,
            "expert_type": "handcoded"},
    "dataset": {"num_train_games": -1, "num_eval_games": -1, **{key: os.path.join(data, split)
                for split, (key, _) in paths.items()}},
    "general": {"training_method": "dqn"}, "rl": {"training": {"max_nb_steps_per_episode": 50}},
}
found, ends = {}, []
for split, (_, name) in paths.items():
    made = AlfredTWEnv(config, train_eval=name)
    found[split] = sorted(os.path.relpath(each, os.environ["ALFWORLD_DATA"]) for each in made.game_files)
for acts in json.loads(commands):
    made.game_files = [os.path.join(os.environ["ALFWORLD_DATA"], acts["game"])]
    env = made.init_env(batch_size=1)
    env.reset()
    turns, done = 0, False
    while not done:
        _, _, (done,), infos = env.step([(acts["commands"] or ["look"])[turns % max(1, len(acts["commands"]))]])
        turns += 1
    ends.append([bool(infos["won"][0]), turns])
    env.close()
print(json.dumps({"kinds": sorted(TASK_TYPES.values()), "found": found, "ends": ends}))
"""


@pytest.fixture(scope="module")
def official(tmp_path_factory):
    """A folder in the layout of the official data: three splits with games of all kinds, and what is to be left out."""
    data = tmp_path_factory.mktemp("official")
    made = subprocess.run(
        [str(PYTHON), "-c", MAKE, str(ENGINE)], capture_output=True, text=True, check=True
    ).stdout.splitlines()[-1]
    made = json.loads(made)

    def add(split, kind, name, trial, game, task_type=None):
        place = data / "json_2.1.1" / split / f"{kind}-{name}" / trial
        place.mkdir(parents=True)
        (place / "traj_data.json").write_text(json.dumps({"task_type": task_type or kind}))
        if game is not None:
            (place / "game.tw-pddl").write_text(json.dumps(game))

    for split in ("train", "valid_seen", "valid_unseen"):
        for i, kind in enumerate(KINDS):
            add(split, kind, f"Apple-None-Desk-{i}", f"trial_{split}", made[kind])
        add(split, KINDS[0], "AppleSliced-None-Desk-7", "trial_sliced", made[KINDS[0]])
        add(split, "pick_and_place_with_movable_recep", "Apple-Bowl-Desk-8", "trial_movable", made[KINDS[0]])
        add(split, KINDS[1], "Book-None-Desk-9", "trial_unsolvable", {**made[KINDS[1]], "solvable": False})
        unchecked = {name: value for name, value in made[KINDS[2]].items() if name != "solvable"}
        add(split, KINDS[2], "Mug-None-Desk-10", "trial_unchecked", unchecked)
        add(split, KINDS[3], "Egg-None-Desk-11", "trial_without_game", None)
        add(split, KINDS[4], "Pan-None-Desk-12", "trial_other", made[KINDS[4]], "pick_and_stack")
    return data


def rows_of(data, split):
    listed = engine("official", split, ALFWORLD_DATA=str(data))
    assert listed.returncode == 0, listed.stderr
    return [json.loads(line) for line in listed.stdout.splitlines()]


def test_the_official_splits_kinds_and_success_are_those_of_alfworld(tmp_path, official, solved, monkeypatch) -> None:
    splits = {split: rows_of(official, split) for split in ("train", "valid_seen", "valid_unseen")}
    unseen = splits["valid_unseen"]
    goals = {each["example"]["kind"]: each["example"]["goal"] for each in solved}
    assert {row["kind"]: row["goal"] for row in unseen} == goals
    won = {each["example"]["kind"]: each["commands"] for each in solved}
    # Won by the planner's commands, and lost after 50 turns without them.
    acts = [
        {"game": unseen[0]["game"], "commands": won[unseen[0]["kind"]]},
        {"game": unseen[1]["game"], "commands": []},
    ]
    theirs = subprocess.run(
        [str(PYTHON), "-c", OFFICIAL, json.dumps(acts)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "ALFWORLD_DATA": str(official)},
    )
    assert theirs.returncode == 0, theirs.stderr
    theirs = json.loads(theirs.stdout.splitlines()[-1])
    assert theirs["kinds"] == sorted(KINDS)
    assert {split: [row["game"] for row in rows] for split, rows in splits.items()} == theirs["found"]
    monkeypatch.setenv("SKILLC_ALFWORLD_PYTHON", str(PYTHON))
    monkeypatch.setenv("ALFWORLD_DATA", str(official))
    commands = [(row["id"], each["commands"] or ["look"] * 50) for row, each in zip(unseen, acts, strict=False)]
    ours = play(tmp_path, [example(row) for row in unseen[:2]], commands, turns=50)
    assert [[each.trajectory.reward == 1.0, each.trajectory.turns] for each in ours] == theirs["ends"]


def test_a_split_that_is_not_there_is_named(official) -> None:
    done = engine("official", "valid_unseeen", ALFWORLD_DATA=str(official))
    assert done.returncode == 2
    assert "has no split `valid_unseeen`; it has train, valid_seen, valid_unseen" in done.stderr


@pytest.mark.skipif("ALFWORLD_DATA" not in os.environ, reason="ALFWORLD_DATA is not set")
def test_the_official_games_start(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("SKILLC_ALFWORLD_PYTHON", str(PYTHON))
    rows = [json.loads(line) for line in engine("official", "valid_seen").stdout.splitlines()]
    assert rows
    for rollout in play(tmp_path, [example(row) for row in rows[:3]], [(row["id"], ["look"] * 30) for row in rows[:3]]):
        assert rollout.failure is None, rollout.detail


def test_the_program_compiles_through_the_whole_loop(tmp_path) -> None:
    folder = shutil.copytree(ROOT / "programs" / "alfworld", tmp_path / "alfworld")
    shutil.rmtree(folder / "skills", ignore_errors=True)
    done = subprocess.run(
        [sys.executable, "-m", "skillc", "compile", "ours.skill"],
        cwd=folder,
        env={**os.environ, "SKILLC_ALFWORLD_PYTHON": str(PYTHON)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    found = sorted(folder.glob("skills*/keep-house/SKILL.md"))
    assert found, done.stdout
    assert "with the" in found[0].read_text().partition("## Rules")[2]

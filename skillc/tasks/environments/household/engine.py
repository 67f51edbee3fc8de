"""ALFWorld's text engine as an environment, and the planner that checks its games.

    python engine.py check games.jsonl     solves each game with the engine's planner
    python engine.py official SPLIT        prints a row for each official game below $ALFWORLD_DATA

An example has `kind` and `seed`, for a game of `games.py`, or `game`, the path of an official one below
`$ALFWORLD_DATA`. This file runs in the engine's interpreter, without skillc.
"""

from __future__ import annotations

import argparse
import copy
import functools
import importlib.util
import json
import os
import re
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

_WELCOME = re.compile(r"^-= Welcome.*?=-\s*")
_TASK = re.compile(r"Your task is to: (.*?)\.?\"")
DATA = "json_2.1.1"


def _engine() -> Any:
    """Import the engine, which reads the arguments of the process and makes a folder for its data."""
    arguments, sys.argv = sys.argv, sys.argv[:1]
    if "ALFWORLD_DATA" not in os.environ:
        os.environ["ALFWORLD_DATA"] = tempfile.mkdtemp(prefix="alfworld-")
    try:
        import alfworld.gen.goal_library
        import alfworld.info
        import fast_downward
        from alfworld.agents.environment import alfred_tw_env
        from textworld import EnvInfos
        from textworld.envs.pddl import PddlEnv, textgen
        from textworld.logic import Rule
    finally:
        sys.argv = arguments
    # Nine tenths of each step and half of each reset are for these; what they return is the same.
    textgen._parse_and_convert = _remembering(textgen._parse_and_convert)
    textgen.copy_context = _copy_context
    Rule.parse_conjunctive_query = staticmethod(functools.cache(Rule.parse_conjunctive_query))
    fast_downward.pddl2sas = functools.lru_cache(maxsize=2)(fast_downward.pddl2sas)
    return alfworld, alfred_tw_env, EnvInfos, PddlEnv


def _remembering(parse: Any) -> Any:
    """Parse each text of the grammar once: the engine parses those of all possible commands in each step."""
    known: dict[Any, list[Any]] = {}

    def parsed(text: str, **options: Any) -> list[Any]:
        key = (text, *sorted(options.items()))
        if key not in known:
            known[key] = list(parse(text, **options))
        # The engine sets the context of each symbol.
        return [copy.copy(symbol) for symbol in known[key]]

    return parsed


def _copy_context(context: Mapping[str, Any]) -> dict[str, Any]:
    """Copy the parts of a context that the grammar changes, but not the entities in them."""
    return {**context, "variables": dict(context["variables"]), "mapping": dict(context["mapping"])}


def _sibling(name: str) -> Any:
    """Load a file beside this one; its folder is no place of imports, where it would hide packages."""
    place = Path(__file__).with_name(f"{name}.py")
    spec = importlib.util.spec_from_file_location(f"household_{name}", place)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


games = _sibling("games")


class Household:
    """Plays one game at a time."""

    def __init__(self) -> None:
        self._alfworld, tw, infos, engine = _engine()
        self.infos = infos(won=True, admissible_commands=True, policy_commands=False)
        self._env = tw.AlfredInfos(tw.AlfredDemangler(engine(self.infos), shuffle=False))
        self._domain = Path(self._alfworld.info.ALFRED_PDDL_PATH).read_text(encoding="utf-8")
        self._grammar = Path(self._alfworld.info.ALFRED_TWL2_PATH).read_text(encoding="utf-8")
        self.state: Any = None

    def reset(self, example: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
        """Load the game of an example; return the room, the task and the admissible actions."""
        if example.get("game"):
            self._env.load(str(Path(os.environ["ALFWORLD_DATA"], str(example["game"]))))
        else:
            self._env.load(self._made(games.make_game(str(example["kind"]), int(example["seed"]))))
        self.state = self._env.reset()
        return _WELCOME.sub("", self.state["feedback"]).strip(), self._info()

    def step(self, action: str) -> tuple[str, float, bool, dict[str, Any]]:
        """Act; a command that is not possible changes nothing."""
        self.state, score, done = self._env.step(str(action))
        return self.state["feedback"].strip(), float(score), bool(done), self._info()

    def score(self) -> float:
        """Return 1 if the game is won, else 0."""
        return float(bool(self.state["won"]))

    def _info(self) -> dict[str, Any]:
        return {"admissible_actions": list(self.state["admissible_commands"])}

    def _made(self, game: Any) -> dict[str, Any]:
        """Return a game as the engine loads it."""
        template = self._alfworld.gen.goal_library.gdict[game.kind]["pddl"]
        goal = template.format(**game.goal_names()).replace("#", "-")
        return {
            "pddl_domain": self._domain,
            "grammar": self._grammar.replace("UNKNOWN GOAL.", game.goal),
            "pddl_problem": game.problem(goal),
            "solvable": True,
            "walkthrough": None,
        }


def solve(household: Household, example: Mapping[str, Any]) -> list[str] | None:
    """Return the commands with which the engine's planner wins the game of an example; None if it finds none."""
    household.infos.policy_commands = True
    household.reset(example)
    commands = list(household.state["policy_commands"] or ())
    household.infos.policy_commands = False
    for command in commands:
        household.step(command)
    return commands if household.score() else None


def official(split: str, data: Path | None = None) -> Iterator[dict[str, object]]:
    """Yield a row for each official game of a split that can be solved, in order of its path.

    `data` is the folder of the games, by default `$ALFWORLD_DATA`.

    These are the games that ALFWorld's own `AlfredTWEnv` collects: of the six kinds, without movable receptacles and
    sliced objects. The splits are `train`, `valid_seen` (the paper's seen rooms) and `valid_unseen` (its unseen rooms).
    """
    data = Path(os.environ["ALFWORLD_DATA"]) if data is None else data
    for file in sorted((data / DATA / split).rglob("game.tw-pddl")):
        row = official_row(file, data)
        if row is not None:
            yield row


def official_row(file: Path, data: Path) -> dict[str, object] | None:
    """Return the row of an official game below the folder of the games; None for one that `official` leaves out."""
    name, about = file.parent.parent.name, file.with_name("traj_data.json")
    if "movable" in name or "Sliced" in name:
        return None
    game = json.loads(file.read_text(encoding="utf-8"))
    named = json.loads(about.read_text(encoding="utf-8")) if about.exists() else {}
    kind = named.get("task_type", name.partition("-")[0])
    if not game.get("solvable") or kind not in games.GOALS:
        return None
    task = _TASK.search(game["grammar"])
    goal = task[1] + "." if task else kind.replace("_", " ")
    path = file.relative_to(data).as_posix()
    return {"id": path, "goal": goal, "kind": kind, "game": path}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command of this file."""
    parser = argparse.ArgumentParser(description="Household games with ALFWorld's engine.")
    verbs = parser.add_subparsers(dest="verb", required=True)
    verbs.add_parser("check", help="solve each game with the planner").add_argument("file")
    verbs.add_parser("official", help="print the rows of a split of the official games").add_argument("split")
    given = parser.parse_args(arguments)
    if given.verb == "official":
        if "ALFWORLD_DATA" not in os.environ:
            parser.error("set ALFWORLD_DATA to the folder of the official games")
        place = Path(os.environ["ALFWORLD_DATA"], DATA)
        if not (place / given.split).is_dir():
            known = ", ".join(sorted(each.name for each in place.glob("*") if each.is_dir())) or "none"
            parser.error(f"`{place}` has no split `{given.split}`; it has {known}")
        for row in official(given.split):
            sys.stdout.write(json.dumps(row) + "\n")
        return 0
    household, unsolved = Household(), 0
    for line in Path(given.file).read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        commands = solve(household, row)
        unsolved += commands is None
        sys.stdout.write(f"{row['id']}: " + ("not solved" if commands is None else f"{len(commands)} steps") + "\n")
    return 1 if unsolved else 0


if __name__ == "__main__":
    sys.exit(main())

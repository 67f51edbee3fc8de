"""ALFWorld's own format: the official games below `$ALFWORLD_DATA`, and SkillOpt's splits, which name them by path."""

from __future__ import annotations

import os
from pathlib import Path

from programs.frame.layout import PROGRAMS
from skillc.errors import SkillcError
from skillc.json_values import JsonObject
from skillc.tasks.environments.household import VARIABLE, engine, find_interpreter

SIZES = (39, 18, 134)
FILES = ()
FOLDER = "ALFWORLD_DATA"
SPLITS = ("train", "valid_seen", "valid_unseen")


def items(source: Path) -> list[JsonObject]:
    """Read the games of all official splits, which are below `json_2.1.1` of a folder.

    Raises:
        SkillcError: there are none.
    """
    found = [dict(row) for split in SPLITS for row in engine.official(split, source)]
    if not found:
        hint = "run `alfworld-download`, and name its folder"
        raise SkillcError(f"`{source}` has no games in `{engine.DATA}`", hint=hint)
    return found


def row(item: JsonObject, folder: Path) -> JsonObject | None:
    """Return id, goal, kind and the path of the game; None for an id alone.

    SkillOpt's items have the path alone: the goal is read from the game.

    Raises:
        SkillcError: there is no such game below `$ALFWORLD_DATA`, or it cannot be solved.
    """
    if "goal" in item:
        return dict(item)
    if "gamefile" not in item:
        return None
    data = os.environ.get(FOLDER)
    if not data:
        raise SkillcError(f"`{FOLDER}` is not set", hint=f"export {FOLDER}=the folder of `alfworld-download`")
    file = Path(data) / str(item["gamefile"])
    game = engine.official_row(file, Path(data)) if file.is_file() else None
    if game is None:
        raise SkillcError(f"item `{item['id']}` names `{file}`, which is no game that can be solved")
    return {**game, "id": str(item["id"])}


def variables() -> dict[str, str]:
    """Return where the engine is, which is not beside the program."""
    return {VARIABLE: str(find_interpreter(None, PROGRAMS.parent))}


def missing() -> str:
    """Return why games cannot be played here; empty if they can."""
    try:
        find_interpreter(None, PROGRAMS.parent)
    except SkillcError:
        return "ALFWorld's engine is not installed; run `make .venv-alfworld/installed`"
    return ""

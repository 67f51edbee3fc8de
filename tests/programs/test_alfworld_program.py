"""ALFWorld as a program: SkillOpt's splits, the official games, and the sample."""

import json

import pytest
from benchmark import rows, run, split_of

from programs.frame.layout import module
from programs.frame.load import load
from skillc.errors import SkillcError

PLACE = "json_2.1.1/{split}/{kind}-Mug-None-Desk-{i}/trial_{i}/game.tw-pddl"


def games(folder, split, count, *, kind="pick_and_place_simple", goal="put a mug in desk", solvable=True):
    """Write official games; return their paths."""
    paths = []
    for i in range(count):
        path = PLACE.format(split=split, kind=kind, i=i)
        (folder / path).parent.mkdir(parents=True)
        game = {"grammar": f'x "Your task is to: {goal}." y', "solvable": solvable}
        (folder / path).write_text(json.dumps(game))
        paths.append(path)
    return paths


def item(number, path, kind="pick_and_place_simple"):
    return {"id": f"train:{number:04}", "gamefile": path, "task_type": kind}


def test_skillopt_s_splits_name_games_by_path_and_the_goal_is_that_of_the_game(tmp_path, monkeypatch):
    monkeypatch.setenv("ALFWORLD_DATA", str(tmp_path / "alf"))
    train = games(tmp_path / "alf", "train", 2)
    # The same goal in another house is another example.
    seen, unseen = games(tmp_path / "alf", "valid_seen", 1), games(tmp_path / "alf", "valid_unseen", 3)
    splits = split_of(
        tmp_path / "splits",
        [item(i, path) for i, path in enumerate(train)],
        [item(9, path) for path in seen],
        [item(20 + i, path) for i, path in enumerate(unseen)],
    )
    assert load("alfworld", None, splits, tmp_path / "out") == {"train": 2, "validation": 1, "test": 3}
    first = json.loads((tmp_path / "out/data/train.jsonl").read_text().splitlines()[0])
    kind = "pick_and_place_simple"
    assert first == {"id": "train:0000", "goal": "put a mug in desk.", "kind": kind, "game": train[0]}
    for program in ("ours.skill", "paper.skill"):
        assert run("check", tmp_path / "out" / program, "--data", "--format", "concise")[0] == 0


def test_a_game_that_is_not_there_or_cannot_be_solved_is_named(tmp_path, monkeypatch):
    read = module("alfworld", "rows")
    monkeypatch.delenv("ALFWORLD_DATA", raising=False)
    with pytest.raises(SkillcError, match="`ALFWORLD_DATA` is not set"):
        read.row(item(0, "x"), tmp_path)
    monkeypatch.setenv("ALFWORLD_DATA", str(tmp_path))
    (path,) = games(tmp_path, "train", 1, solvable=False)
    for each in (path, "json_2.1.1/train/gone/game.tw-pddl"):
        with pytest.raises(SkillcError, match="which is no game that can be solved"):
            read.row(item(0, each), tmp_path)
    assert read.row({"id": "train:0000"}, tmp_path) is None


def test_all_official_games_can_be_drawn(tmp_path):
    for split in ("train", "valid_seen", "valid_unseen"):
        games(tmp_path / "alf", split, 4)
    assert sum(load("alfworld", tmp_path / "alf", None, tmp_path / "out").values()) == 12
    with pytest.raises(SkillcError, match="has no games in"):
        load("alfworld", tmp_path / "out", None, tmp_path / "more")


def test_the_sample_has_the_six_kinds_in_equal_parts():
    for split, count in (("train", 2), ("validation", 2), ("test", 3)):
        kinds = [row["kind"] for row in rows("alfworld", split)]
        assert len(set(kinds)) == 6
        assert {kinds.count(kind) for kind in kinds} == {count}

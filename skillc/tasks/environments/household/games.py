"""Household games from seeds, of ALFWorld's six kinds: the layout of a house, and the problem in PDDL.

    python games.py 60 --seed 1 > games.jsonl

prints a row for each game: `id`, `goal` in words, `kind` and `seed`. A game is made again from its kind and seed. This
file imports only the standard library, and runs in the engine's interpreter without skillc.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections.abc import Iterable, Mapping, Sequence

from skillc.dataclass import dataclass

GOALS: Mapping[str, str] = {
    "pick_and_place_simple": "put a {obj} in {recep}",
    "look_at_obj_in_light": "look at {obj} under the desklamp",
    "pick_clean_then_place_in_recep": "put a clean {obj} in {recep}",
    "pick_heat_then_place_in_recep": "put a hot {obj} in {recep}",
    "pick_cool_then_place_in_recep": "put a cool {obj} in {recep}",
    "pick_two_obj_and_place": "put two {obj} in {recep}",
}
"""The goal of each kind in words, by ALFWorld's name of the kind."""

# How many receptacles of a type a house may have. The engine's steps slow down with the square of their number.
_ROOM: Mapping[str, tuple[int, int]] = {
    "Cabinet": (1, 3),
    "CounterTop": (1, 2),
    "Drawer": (1, 2),
    "Shelf": (0, 1),
    "SideTable": (0, 1),
    "Desk": (1, 1),
    "DiningTable": (0, 1),
    "Fridge": (0, 1),
    "Microwave": (0, 1),
    "GarbageCan": (1, 1),
    "StoveBurner": (0, 1),
    "CoffeeMachine": (0, 1),
    "SinkBasin": (0, 1),
}
_NEEDED: Mapping[str, str] = {
    "pick_clean_then_place_in_recep": "SinkBasin",
    "pick_heat_then_place_in_recep": "Microwave",
    "pick_cool_then_place_in_recep": "Fridge",
}
_OPENABLE = frozenset({"Cabinet", "Drawer", "Fridge", "Microwave"})
_TABLES = ("CounterTop", "DiningTable", "SideTable", "Desk", "Shelf")
_ENDS = frozenset(_ROOM) - {"SinkBasin", "Microwave"}
_FOOD = ("Apple", "Potato", "Tomato", "Egg", "Bread", "Lettuce")
_DISHES = ("Mug", "Cup", "Plate", "Bowl")
_TOOLS = ("Fork", "Spoon", "Knife", "ButterKnife", "Spatula", "Pan")
_SMALL = ("Book", "Pen", "Pencil", "CD", "KeyChain", "CreditCard", "CellPhone", "Watch")
_LAMP = "DeskLamp"
_PLACES: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(_FOOD, (*_TABLES[:3], "Fridge", "GarbageCan", "Microwave", "SinkBasin")),
    **dict.fromkeys(_DISHES, (*_TABLES, "Cabinet", "Fridge", "Microwave", "SinkBasin")),
    **dict.fromkeys(_TOOLS, ("CounterTop", "DiningTable", "Drawer", "SinkBasin")),
    **dict.fromkeys(_SMALL, (*_TABLES[1:], "Drawer")),
    "Mug": (*_TABLES, "Cabinet", "CoffeeMachine", "Microwave", "SinkBasin"),
    "Pan": ("Cabinet", "CounterTop", "DiningTable", "StoveBurner", "SinkBasin"),
    _LAMP: ("Desk", "SideTable", "Shelf"),
}
_CLEANABLE = frozenset({*_FOOD, *_DISHES, *_TOOLS} - {"Egg", "Bread"})
_HEATABLE = frozenset({*_FOOD, "Mug", "Cup", "Plate"} - {"Lettuce"})
_COOLABLE = frozenset({*_FOOD, *_DISHES, "Pan"})
_SUITED: Mapping[str, frozenset[str]] = {
    "pick_clean_then_place_in_recep": _CLEANABLE,
    "pick_heat_then_place_in_recep": _HEATABLE,
    "pick_cool_then_place_in_recep": _COOLABLE,
    "look_at_obj_in_light": frozenset(_SMALL),
}
# Types that the domain names.
_CONSTANTS = {"otype": ("Knife", "ButterKnife"), "rtype": ("SinkBasin", "Microwave", "Fridge")}
_FURTHER = (3, 6)


@dataclass(frozen=True)
class Game:
    """A house with a goal.

    Attributes:
        kind: ALFWorld's name of the kind of task.
        obj: the type of the object to bring or to look at.
        recep: the type of its destination; empty when there is none.
        receptacles: their types.
        objects: type and number of the receptacle of each.
    """

    kind: str
    seed: int
    obj: str
    recep: str
    receptacles: tuple[str, ...]
    objects: tuple[tuple[str, int], ...]

    @property
    def goal(self) -> str:
        """The goal in words."""
        return GOALS[self.kind].format(obj=self.obj.lower(), recep=self.recep.lower()) + "."

    def row(self) -> dict[str, object]:
        """Return the row of a data file."""
        return {"id": f"{self.kind}-{self.seed}", "goal": self.goal, "kind": self.kind, "seed": self.seed}

    def problem(self, goal: str) -> str:
        """Return the problem in PDDL.

        Args:
            goal: `(:goal ...)` and the parenthesis that closes the problem, as ALFWorld's library of goals has it.
        """
        receptacles = [_receptacle_id(i, type_) for i, type_ in enumerate(self.receptacles)]
        objects = [f"{type_}_bar_{i}" for i, (type_, _) in enumerate(self.objects)]
        types = sorted({type_ for type_, _ in self.objects} | set(_CONSTANTS["otype"]))
        rtypes = sorted(set(self.receptacles) | set(_CONSTANTS["rtype"]))
        places = [f"loc_bar_{i}" for i in range(len(receptacles) + 1)]
        declared = [
            "agent1 - agent",
            *(f"{each}Type - otype" for each in types),
            *(f"{each}Type - rtype" for each in rtypes),
            *(f"{each} - location" for each in places),
            *(f"{each} - receptacle" for each in receptacles),
            *(f"{each} - object" for each in objects),
        ]
        facts = ["(atLocation agent1 loc_bar_0)", "(= (total-cost) 0)"]
        for i, (name, type_) in enumerate(zip(receptacles, self.receptacles), 1):  # noqa: B905
            facts += [f"(receptacleType {name} {type_}Type)", f"(receptacleAtLocation {name} loc_bar_{i})"]
            facts += [f"(openable {name})"] if type_ in _OPENABLE else []
        facts += [
            f"(canContain {place}Type {type_}Type)" for type_ in types for place in _PLACES[type_] if place in rtypes
        ]
        for name, (type_, at) in zip(objects, self.objects):  # noqa: B905
            facts += [
                f"(objectType {name} {type_}Type)",
                f"(inReceptacle {name} {receptacles[at]})",
                f"(objectAtLocation {name} loc_bar_{at + 1})",
                f"(toggleable {name})" if type_ == _LAMP else f"(pickupable {name})",
            ]
            suited = {"cleanable": _CLEANABLE, "heatable": _HEATABLE, "coolable": _COOLABLE}
            facts += [f"({word} {name})" for word, group in suited.items() if type_ in group]
        end = goal.rstrip().rpartition(")")[0].rstrip()
        return "\n".join(
            (
                f"(define (problem household_{self.kind}_{self.seed})",
                "(:domain alfred)",
                f"(:objects\n{_lines(declared)})",
                f"(:init\n{_lines(facts)})",
                end,
                "(:metric minimize (total-cost)))",
            )
        )

    def goal_names(self) -> dict[str, str]:
        """Return the names that the template of the goal has."""
        return {"obj": self.obj, "recep": self.recep, "toggle": _LAMP}


def make_game(kind: str, seed: int) -> Game:
    """Return the game of a kind and a seed, the same on every machine.

    Its goal does not hold at the start. Objects of its type lie where they may, but not in a destination.

    Raises:
        ValueError: the kind is unknown.
    """
    if kind not in GOALS:
        raise ValueError(f"unknown kind of game `{kind}`; known are {', '.join(GOALS)}")
    rng = random.Random(f"{kind}-{seed}")
    low = {_NEEDED.get(kind, ""): 1}
    receptacles = tuple(
        type_ for type_, (least, most) in _ROOM.items() for _ in range(rng.randint(low.get(type_, least), most))
    )
    looking, two = kind == "look_at_obj_in_light", kind == "pick_two_obj_and_place"
    obj = rng.choice(sorted(_SUITED.get(kind, frozenset({*_FOOD, *_DISHES, *_TOOLS, *_SMALL}))))
    recep = "" if looking else rng.choice([each for each in _PLACES[obj] if each in _ENDS & {*receptacles}])
    wanted = [obj] * (2 + rng.randint(0, 1) if two else 1 + rng.randint(0, 1))
    others = [each for each in (*_FOOD, *_DISHES, *_TOOLS, *_SMALL) if each != obj]
    further = [rng.choice(others) for _ in range(rng.randint(*_FURTHER))]
    objects = [(type_, _place(rng, receptacles, type_, recep if type_ == obj else "")) for type_ in (*wanted, *further)]
    if looking or rng.random() < 0.5:
        objects.append((_LAMP, _place(rng, receptacles, _LAMP, "")))
    return Game(kind, seed, obj, recep, receptacles, tuple(objects))


def _place(rng: random.Random, receptacles: Sequence[str], type_: str, avoided: str) -> int:
    """Draw the number of a receptacle that an object may be in."""
    suited = [i for i, each in enumerate(receptacles) if each in _PLACES[type_] and each != avoided]
    return rng.choice(suited)


def games(count: int, seed: int = 0, kinds: Sequence[str] = tuple(GOALS)) -> Iterable[Game]:
    """Yield games, the kinds in turn."""
    for i in range(count):
        yield make_game(kinds[i % len(kinds)], seed * 1_000_000 + i // len(kinds))


def _receptacle_id(number: int, type_: str) -> str:
    # The engine names what has a basin by its type and the last part.
    return f"Sink_bar_{number}_bar_basin" if type_ == "SinkBasin" else f"{type_}_bar_{number}"


def _lines(parts: Iterable[str]) -> str:
    return "\n".join(f"  {part}" for part in parts)


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the rows of games."""
    parser = argparse.ArgumentParser(description="Print the rows of seeded household games.")
    parser.add_argument("count", type=int, help="how many games, the kinds in turn")
    parser.add_argument("--seed", type=int, default=0, help="other games for another number")
    parser.add_argument("--kind", choices=list(GOALS), action="append", help="only this kind; may repeat")
    given = parser.parse_args(arguments)
    for game in games(given.count, given.seed, given.kind or tuple(GOALS)):
        sys.stdout.write(json.dumps(game.row()) + "\n")


if __name__ == "__main__":
    main()

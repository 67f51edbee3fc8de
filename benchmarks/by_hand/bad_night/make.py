"""Write the sessions of two nights that follow those of `night`, in which the version with the exceptions is installed.

bad.jsonl     18 sessions. In 11 the agent is right by the installed skill; in 4 the user wants `noted` for a reason
              that no entry has; in 3 the user's mark is wrong, drawn. No draft can be right about these 7.
table.jsonl   22 sessions of a house that has exchanged every mark of its table: the installed skill is always wrong.

python -m benchmarks.by_hand.bad_night.make FOLDER
"""

from __future__ import annotations

import random
import sys
from pathlib import Path
from typing import Any

from benchmarks.by_hand.changelog.make import AFFECTS, KINDS, MARKS, example
from benchmarks.by_hand.night.make import ASK, OBJECT, THANKS, agent, user, write

WORDS = ("opened", "handed", "plumbed", "mended", "closed", "noted", "trimmed", "moved")
EXCHANGED = dict(zip(WORDS, WORDS[3:] + WORDS[:3], strict=True))
CELLS = [(kind, who) for kind in KINDS for who in AFFECTS]


def session(dice: random.Random, entry: str, said: str, wanted: str) -> dict[str, Any]:
    """A user asks, and puts the agent right where its mark is not the wanted one."""
    turns = [user(dice.choice(ASK).format(entry=entry)), agent(said)]
    if said != wanted:
        turns += [user(dice.choice(OBJECT)), agent(wanted)]
    return {"messages": [*turns, user(dice.choice(THANKS)), agent("You are welcome.")]}


def fresh(
    dice: random.Random, seen: set[str], cell: tuple[str, str], special: str = "", unlike: str = ""
) -> dict[str, str]:
    """Return an entry that was not drawn before; an exception decides something that the table does not."""
    while True:
        made = example(dice, *cell, special, hard=False)
        decided = not special or MARKS[cell[0]][cell[1]] != made["mark"]
        if made["entry"] not in seen and made["mark"] != unlike and decided:
            seen.add(made["entry"])
            return made


def bad(seen: set[str]) -> list[dict[str, Any]]:
    """Return the sessions of the first night."""
    dice, found = random.Random(71), []
    for i in range(18):
        why = "no entry has it" if i % 9 in (1, 5) else "wrong" if i in (3, 8, 16) else ""
        special = "" if why else ("", "", "action", "")[i % 4]
        cell = ("new", "visitors") if special else CELLS[(i * 7) % 15]
        cell = ("faster", "operators") if cell == ("removed", "authors") else cell
        made = fresh(dice, seen, cell, special, unlike="noted" if why == "no entry has it" else "")
        wanted = made["mark"]
        if why == "no entry has it":
            wanted = "noted"
        elif why:
            wanted = dice.choice([word for word in WORDS if word != made["mark"]])
        found.append(session(dice, made["entry"], made["mark"], wanted))
    return found


def table(dice: random.Random, seen: set[str]) -> list[dict[str, Any]]:
    """Return the sessions of the second night."""
    found = []
    for i in range(22):
        made = fresh(dice, seen, CELLS[(i * 7) % 15])
        found.append(session(dice, made["entry"], made["mark"], EXCHANGED[made["mark"]]))
    return found


def main(folder: Path) -> None:
    """Write both files."""
    seen: set[str] = set()
    dice, first = random.Random(73), bad(seen)
    second = table(dice, seen)
    # The recorded sessions were shuffled with a third list between them.
    for each in (first, [None] * len(second), second):
        dice.shuffle(each)
    write(folder / "bad.jsonl", first)
    write(folder / "table.jsonl", second)


if __name__ == "__main__":
    main(Path(sys.argv[1]))

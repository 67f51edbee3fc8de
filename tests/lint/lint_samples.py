"""A program and its examples for the tests of `check --data`."""

from __future__ import annotations

import json

from skillc.frontend import check_data

PROGRAM = """language 1
task { input ticket: text; output team: "billing" | "shipping" }
skill route { about = "Route a ticket."; SECTIONS trainable section rules }
model target = "rulebook/v1"
model optimizer = target
data { DATA }
budget { epochs = 4 }
goal correct = exact_match(team)
gate better = candidate.correct > incumbent.correct
"""
FILES = 'train = "train.jsonl"; validation = "validation.jsonl"; test = "test.jsonl"'
OURS = tuple(f"SK{number}" for number in (*range(430, 440), 520, 521))


def write(folder, more="", *, sections="", data=FILES, source=None, **sides):
    """Writes the program and a file for each side, or the one source; gives the program's path."""
    rows = {"source": source} if source is not None else {**SIDES, **sides}
    for name, examples in rows.items():
        lines = [json.dumps(row if isinstance(row, dict) else {"ticket": row[0], "team": row[1]}) for row in examples]
        (folder / f"{name}.jsonl").write_text("".join(f"{line}\n" for line in lines))
    if source is not None:
        data = data.replace(FILES, 'source = "source.jsonl"')
    program = folder / "route.skill"
    program.write_text(PROGRAM.replace("DATA", data).replace("SECTIONS", sections) + more)
    return program


def numbered(side, size, words="needs"):
    """Different tickets, half of them for each team."""
    return [(f"{side} ticket {i} {words} nothing", "billing" if i % 2 else "shipping") for i in range(size)]


SIDES = {"train": numbered("train", 40), "validation": numbered("val", 40), "test": numbered("test", 40)}


def found(program):
    """What the examples give reason to say: (code, message) of each finding of the kind."""
    return [(each.code, each.message) for each in check_data(program).kept if each.code in OURS]


def codes(program):
    """The codes of what the examples give reason to say."""
    return [code for code, _ in found(program)]

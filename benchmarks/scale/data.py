"""A data set of the size that skillc has to carry: 100,000 training examples and 20,000 to validate on."""

from __future__ import annotations

import csv
import hashlib
import json
from collections.abc import Iterator
from pathlib import Path

SIZES = {"train": 100_000, "validation": 20_000, "test": 2_000}
TEAMS = ("billing", "shipping", "technical", "account")
WORDS = [
    "order",
    "invoice",
    "parcel",
    "login",
    "password",
    "refund",
    "late",
    "broken",
    "twice",
    "please",
    "help",
    "since",
    "yesterday",
    "again",
    "customer",
    "card",
    "box",
    "screen",
    "update",
    "address",
    "street",
    "number",
    "letter",
    "price",
    "total",
    "month",
    "delivery",
    "driver",
    "account",
    "name",
    "mail",
    "reset",
    "error",
    "page",
]

PROGRAM = """language 1
task {
  input  ticket: text
  output team: "billing" | "shipping" | "technical" | "account"
}
skill route_tickets {
  about = "Route a support ticket."
  frozen section role = "You route support tickets."
  trainable section rules { limit = 1500 tokens }
}
model target    = "rulebook/v1"
model optimizer = "rulebook/v1"
data {
  DATA
  field product: text
  field customer: text
  group = customer
}
goal correct = exact_match(team)
optimize { batch = 40; minibatch = 40; edits = constant(2); replay = 0; successes = off; meta_skill = off }
budget { steps = 4 }
gate better = candidate.correct > incumbent.correct
gate safe   = regressed(correct, by = product) <= 20%
"""
FILES = 'train = "train.EXT"; validation = "validation.EXT"; test = "test.EXT"'


def rows(side: str, count: int) -> Iterator[dict[str, str]]:
    """Tickets of about 60 words, three from each customer."""
    for i in range(count):
        drawn = hashlib.shake_256(f"{side} {i}".encode()).digest(60)
        yield {
            "id": f"{side}-{i}",
            "ticket": f"{side} {i}: " + " ".join(WORDS[byte % len(WORDS)] for byte in drawn),
            "team": TEAMS[drawn[0] % 4],
            "product": f"product {drawn[1] % 12}",
            "customer": f"{side} customer {i // 3}",
        }


def write(folder: Path, kind: str) -> Path:
    """Writes the program and its files; `kind` is `jsonl` or `csv`. Returns the program."""
    folder.mkdir(parents=True, exist_ok=True)
    for side, count in SIZES.items():
        with (folder / f"{side}.{kind}").open("w", encoding="utf-8", newline="") as file:
            if kind == "csv":
                table = csv.DictWriter(file, ["id", "ticket", "team", "product", "customer"])
                table.writeheader()
                table.writerows(rows(side, count))
            else:
                file.writelines(json.dumps(row) + "\n" for row in rows(side, count))
    program = folder / "tickets.skill"
    program.write_text(PROGRAM.replace("DATA", FILES.replace("EXT", kind)), encoding="utf-8")
    return program

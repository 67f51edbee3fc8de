"""Make the questions, the documents and the attached files: a harbour country that does not exist.

Every question has documents and files of its own, so that nothing which answers a question of one split is needed in
another. Run it in this folder: it writes `data/`.
"""

from __future__ import annotations

import csv
import io
import json
import random
from collections.abc import Callable, Iterator
from datetime import date, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

SPLITS = {"train": 32, "validation": 24, "test": 40}
SEED = 19
_FIRST = (
    "Bal",
    "Cor",
    "Dun",
    "Esk",
    "Fal",
    "Gar",
    "Hol",
    "Kel",
    "Lor",
    "Mar",
    "Nor",
    "Ost",
    "Pel",
    "Ros",
    "Sel",
    "Tor",
)
_LAST = ("beck", "dale", "fjord", "gard", "haven", "holm", "mere", "ness", "ryd", "stad", "vik", "wick")
_NAMES = (
    "Ada",
    "Birk",
    "Carl",
    "Dora",
    "Edda",
    "Finn",
    "Greta",
    "Hild",
    "Ivar",
    "Jon",
    "Karin",
    "Leif",
    "Mona",
    "Nils",
)
_SURNAMES = ("Aasen", "Brandt", "Dahl", "Eng", "Foss", "Grahn", "Holt", "Krog", "Lund", "Moe", "Rask", "Stenn", "Voll")
_MONTHS = ("January", "February", "March", "April", "May", "June", "July", "August", "September", "October")

Row = dict[str, Any]
Document = dict[str, str]


class Country:
    """Draws places, people and numbers, no place twice, and collects the documents and files about them."""

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)
        places = [first + last for first in _FIRST for last in _LAST]
        self.draw.shuffle(places)
        self._places: Iterator[str] = iter(places)
        self.documents: list[Document] = []
        self.files: dict[str, str] = {}

    def place(self) -> str:
        """Return a place that no document is about yet."""
        return next(self._places)

    def person(self) -> str:
        """Return the name of a person."""
        return f"{self.draw.choice(_NAMES)} {self.draw.choice(_SURNAMES)}"

    def write(self, title: str, text: str) -> None:
        """Add a document."""
        self.documents.append({"title": title, "text": " ".join(text.split())})

    def attach(self, name: str, rows: list[list[Any]]) -> None:
        """Add a CSV file."""
        out = io.StringIO()
        csv.writer(out, lineterminator="\n").writerows(rows)
        self.files[name] = out.getvalue()


def _lit(country: Country) -> Row:
    place, built = country.place(), country.draw.randrange(1790, 1890)
    lit = built + country.draw.randrange(1, 5)
    country.write(
        f"{place} lighthouse",
        f"The lighthouse of {place} was built in {built} of grey stone. For want of oil its lamp was first lit in"
        f" {lit}. It was automated in {lit + country.draw.randrange(80, 110)}.",
    )
    return _row(1, f"In which year was the lamp of the lighthouse of {place} first lit?", lit, ["search"])


def _keeper(country: Country) -> Row:
    place, year = country.place(), country.draw.randrange(1880, 1930)
    first, second = country.person(), country.person()
    while second == first:
        second = country.person()
    country.write(
        f"{place} light station",
        f"{first} kept the light of {place} until the lens was replaced in {year}. {second} was keeper in the year"
        f" after it, and for {country.draw.randrange(5, 25)} years in all.",
    )
    return _row(1, f"Who kept the light of {place} until its lens was replaced?", first, ["search"])


def _visitors(country: Country) -> Row:
    place = country.place()
    counts = country.draw.sample(range(120, 2_400), len(_MONTHS))
    country.attach(
        f"{place.lower()}-visitors.csv", [["month", "visitors"], *map(list, zip(_MONTHS, counts, strict=True))]
    )
    return _row(
        1,
        f"The attached file has the visitors of the museum of {place} by month. How many came in the two busiest"
        " months together?",
        sum(sorted(counts)[-2:]),
        ["read_file", "calculate"],
        file=f"{place.lower()}-visitors.csv",
    )


def _higher(country: Country) -> Row:
    high, low = country.place(), country.place()
    less = country.draw.randrange(180, 400)
    more = less + country.draw.randrange(11, 290)
    for place, tenths in ((high, more), (low, less)):
        country.write(
            f"{place} tower",
            f"The tower of {place} is {tenths / 10:.1f} metres high. It is open on"
            f" {country.draw.choice(('Sundays', 'Mondays', 'Fridays'))} and has a bell.",
        )
    return _row(
        2,
        f"How many metres higher is the tower of {high} than the tower of {low}?",
        f"{(more - less) / 10:.1f}",
        ["search", "calculate"],
    )


def _shipment(country: Country) -> Row:
    place, price = country.place(), country.draw.randrange(105, 990)
    weights = [country.draw.randrange(12, 240) for _ in range(6)]
    country.attach(
        f"{place.lower()}-crates.csv", [["crate", "kilograms"], *([f"K{i}", w] for i, w in enumerate(weights, 1))]
    )
    country.write(
        f"{place} freight tariff",
        f"From {place} a kilogram is carried for {price / 100:.2f} crowns; for mail another tariff holds.",
    )
    return _row(
        2,
        f"The attached file lists the crates of one shipment from {place}. What does the freight of the whole shipment"
        f" cost by the tariff of {place}, in crowns with two decimals?",
        f"{sum(weights) * price / 100:.2f}",
        ["read_file", "search", "calculate"],
        file=f"{place.lower()}-crates.csv",
    )


def _calls(country: Country) -> Row:
    place = country.place()
    stops = [country.place() for _ in range(3)]
    country.write(
        f"Ferry from {place}",
        f"The ferry from {place} calls at {stops[0]}, at {stops[1]} and at {stops[2]}, and returns at night.",
    )
    return _row(
        2,
        f"Which places does the ferry from {place} call at? Give them in alphabetical order.",
        ", ".join(sorted(stops)),
        ["search"],
    )


def _days(country: Country) -> Row:
    place = country.place()
    laid = date(country.draw.randrange(1860, 1935), 1, 1) + timedelta(country.draw.randrange(365))
    launched = laid + timedelta(country.draw.randrange(90, 420))
    country.write(
        f"Steamer {place}",
        f"The keel of the steamer {place} was laid on {laid.isoformat()}. She was launched on {launched.isoformat()},"
        " and sailed for thirty years.",
    )
    return _row(
        3,
        f"How many days after her keel was laid was the steamer {place} launched?",
        (launched - laid).days,
        ["search", "calculate"],
    )


def _steps(country: Country) -> Row:
    place, steps = country.place(), country.draw.randrange(130, 390)
    right = steps + country.draw.choice((-9, 9, 18, -18, 27))
    country.write(f"{place} church", f"A stair of {steps} steps leads to the gallery of the church of {place}.")
    country.write(
        f"Correction: {place} church",
        f"A survey has counted again: the stair of the church of {place} has {right} steps. Earlier pages are wrong.",
    )
    return _row(3, f"How many steps has the stair of the church of {place}?", right, ["search"])


KINDS: tuple[Callable[[Country], Row], ...] = (_lit, _keeper, _visitors, _higher, _shipment, _calls, _days, _steps)


def _row(level: int, question: str, answer: object, tools: list[str], *, file: str = "") -> Row:
    return {
        "Question": question,
        "Level": str(level),
        "Final answer": str(answer),
        "file_name": file,
        "Annotator Metadata": {"Number of steps": str(len(tools)), "Tools": ", ".join(tools)},
    }


def make() -> tuple[dict[str, list[Row]], list[Document], dict[str, str]]:
    """Return the rows by split, the documents, and the files by name."""
    country = Country(SEED)
    splits: dict[str, list[Row]] = {}
    for split, size in SPLITS.items():
        rows = [KINDS[i % len(KINDS)](country) for i in range(size)]
        country.draw.shuffle(rows)
        splits[split] = [{"task_id": str(UUID(int=country.draw.getrandbits(128), version=4)), **row} for row in rows]
    country.draw.shuffle(country.documents)
    return splits, country.documents, country.files


def main() -> None:
    """Write `data/`."""
    splits, documents, files = make()
    folder = Path("data")
    (folder / "files").mkdir(parents=True, exist_ok=True)
    for name, rows in [*splits.items(), ("documents", documents)]:
        text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        (folder / f"{name}.jsonl").write_text(text, encoding="utf-8")
    for name, text in files.items():
        (folder / "files" / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()

"""The sample's tasks and their workbooks: `python make_cases.py`, which needs openpyxl.

Each task is a function: from a random generator and a number of rows it returns the sheets of a workbook and the right
values of cells. It is called three times, so that a task has three cases, as in the benchmark.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

DATA = Path(__file__).with_name("data")
CASES = 3
SPLITS = {"train": 8, "validation": 5, "test": 10}
CELL, SHEET = "Cell-Level Manipulation", "Sheet-Level Manipulation"
Rows = list[list[Any]]
Made = tuple[dict[str, Rows], dict[str, Any]]
TASKS: list[tuple[str, str, str, Callable[[random.Random, int], Made]]] = []
TOWNS = ("Arnholt", "Bexley", "Corvo", "Dunmere", "Elstow")
COMMENT = "the lift was slow but our room had a view of the quay"
MONTHS = "January February March April May June July August September October November December"
NAMES = ("Ida Brandt", "Tomas Okeke", "Lena Vaz", "Omar Said", "Rosa Lind", "Piet Kuiper", "Mei Tanaka", "Ana Petrov")


def task(kind: str, position: str) -> Any:
    """Register a task; the documentation of its function is the instruction."""

    def register(make: Callable[[random.Random, int], Made]) -> Callable[[random.Random, int], Made]:
        TASKS.append((kind, position, " ".join((make.__doc__ or "").split()), make))
        return make

    return register


def down(column: str, values: list[Any], first: int = 2, sheet: str = "") -> dict[str, Any]:
    """Return the values of a column by cell."""
    return {f"{sheet}{column}{first + i}": value for i, value in enumerate(values)}


def day(draw: random.Random, year: int = 2024) -> datetime:
    """Return a day of a year."""
    return datetime(year, 1, 1) + timedelta(days=draw.randrange(360))


def as_text(draw: random.Random, number: Any) -> Any:
    """Return a number, now and then as a text, as people type it."""
    return f"{number} " if draw.random() < 0.25 else number


def typed(draw: random.Random, text: str) -> str:
    """Return a text, now and then with a blank or in other case, as people type it."""
    return draw.choice((text, text, f"{text} ", text.lower()))


@task(CELL, "E2:E24")
def amounts(draw: random.Random, n: int) -> Made:
    """In column E, write the amount of each order: quantity (column C) times unit price (column D)."""
    rows = [[f"A-{100 + i}", draw.choice(TOWNS), draw.randint(1, 40), draw.randint(2, 90) / 4] for i in range(n)]
    shown = [[a, b, as_text(draw, c), d] for a, b, c, d in rows]
    return {"Orders": [["Order", "Town", "Quantity", "Price"], *shown]}, down("E", [c * d for _, _, c, d in rows])


@task(CELL, "D2:D24")
def late(draw: random.Random, n: int) -> Made:
    """Column D shall say late where the delivery (C) is after the due date (B), else on time; leave it empty while
    nothing was delivered.
    """
    rows: Rows = []
    for i in range(n):
        due = day(draw)
        rows.append([f"J{i + 1}", due, None if i % 4 == 2 else due + timedelta(days=draw.randint(-6, 6))])
    said = ["" if done is None else "late" if done > due else "on time" for _, due, done in rows]
    return {"Jobs": [["Job", "Due", "Delivered"], *rows]}, down("D", said)


@task(CELL, "G2:G4")
def by_town(draw: random.Random, n: int) -> Made:
    """Write into G2:G4 the total of the sales in column C for the towns that F2:F4 lists."""
    rows = [[day(draw), draw.choice(TOWNS[:4]), draw.randint(5, 400)] for _ in range(n)]
    sheet: Rows = [["Day", "Town", "Sales", None, None, "Town", "Total"]]
    sheet += [
        [a, typed(draw, b), as_text(draw, c), None, None, TOWNS[i] if i < 3 else None]
        for i, (a, b, c) in enumerate(rows)
    ]
    return {"Sales": sheet}, down("G", [sum(c for _, b, c in rows if b == town) for town in TOWNS[:3]])


@task(CELL, "Basket!C2:C24")
def prices(draw: random.Random, n: int) -> Made:
    """For each product code in column A of the sheet Basket, write its price from the sheet Prices into column C;
    write none where the code is not listed.
    """
    known = {f"P{code}": draw.randint(1, 80) / 2 for code in draw.sample(range(10, 99), 9)}
    codes = [draw.choice([*known, "P00"]) for _ in range(n)]
    basket = [[typed(draw, code), draw.randint(1, 9)] for code in codes]
    sheets = {
        "Prices": [["Code", "Price"], *map(list, known.items())],
        "Basket": [["Code", "Pieces", "Price"], *basket],
    }
    return sheets, down("C", [known.get(code, "none") for code in codes], sheet="Basket!")


@task(CELL, "H1")
def joined(draw: random.Random, n: int) -> Made:
    """Write into H1 how many of the members joined in 2023; the dates are in column C."""
    dates = [day(draw, draw.choice((2022, 2023, 2023, 2024))) for _ in range(n)]
    rows = [[i + 1, draw.choice(NAMES), date] for i, date in enumerate(dates)]
    return {"Members": [["No", "Name", "Joined"], *rows]}, {"H1": sum(date.year == 2023 for date in dates)}


@task(SHEET, "C2:C24")
def once(draw: random.Random, n: int) -> Made:
    """List each town of column A once in column C from C2 on, in the order in which they first appear."""
    towns = [draw.choice(TOWNS) for _ in range(n)]
    seen = list(dict.fromkeys(towns))
    return {"Stops": [["Town", None, "Once"], *[[town] for town in towns]]}, down("C", seen)


@task(CELL, "B2:C24")
def split_names(draw: random.Random, n: int) -> Made:
    """Split the full names in column A: the first name goes to column B, the last name to column C."""
    names = [draw.choice(NAMES) for _ in range(n)]
    first, last = zip(*(name.split() for name in names), strict=True)
    sheet = [["Name", "First", "Last"], *[[f" {name}" if draw.random() < 0.3 else name] for name in names]]
    return {"People": sheet}, {**down("B", list(first)), **down("C", list(last))}


@task(CELL, "D2:D24")
def balance(draw: random.Random, n: int) -> Made:
    """Write the running balance into column D: it starts at 0, adds what came in (B) and subtracts what went out
    (C).
    """
    rows = [[day(draw), draw.randint(0, 90), draw.randint(0, 60)] for _ in range(n)]
    balances, now = [], 0
    for _, came, went in rows:
        now += came - went
        balances.append(now)
    return {"Cash": [["Day", "In", "Out"], *[[a, as_text(draw, b), c] for a, b, c in rows]]}, down("D", balances)


@task(CELL, "C2:C24")
def grades(draw: random.Random, n: int) -> Made:
    """Give each score in column B a grade in column C: A from 90, B from 75, C from 60, else F; no score, no
    grade.
    """
    scores = [None if i % 5 == 3 else draw.randint(35, 100) for i in range(n)]
    told = ["" if s is None else "A" if s >= 90 else "B" if s >= 75 else "C" if s >= 60 else "F" for s in scores]
    return {"Exam": [["Pupil", "Score"], *[[draw.choice(NAMES), score] for score in scores]]}, down("C", told)


@task(CELL, "Summary!B2:B4")
def means(draw: random.Random, n: int) -> Made:
    """In the sheet Summary, write the mean score of each class of A2:A4 into B2:B4, rounded to one decimal."""
    rows = [[draw.choice(NAMES), "4abc"[0] + "ABC"[i % 3], draw.randint(20, 100)] for i in range(n)]
    want = [[c for _, b, c in rows if b == f"4{letter}"] for letter in "ABC"]
    sheets = {
        "Scores": [["Pupil", "Class", "Score"], *[[a, typed(draw, b), as_text(draw, c)] for a, b, c in rows]],
        "Summary": [["Class", "Mean"], ["4A"], ["4B"], ["4C"]],
    }
    return sheets, down("B", [round(sum(each) / len(each), 1) for each in want], sheet="Summary!")


@task(CELL, "C2:C24")
def celsius(draw: random.Random, n: int) -> Made:
    """Convert the temperatures in column B from Fahrenheit to Celsius, rounded to one decimal, in column C."""
    found = [draw.randint(-10, 110) for _ in range(n)]
    rows = [[day(draw), as_text(draw, each)] for each in found]
    return {"Log": [["Day", "F", "C"], *rows]}, down("C", [round((each - 32) * 5 / 9, 1) for each in found])


@task(CELL, "D2:D24")
def days(draw: random.Random, n: int) -> Made:
    """Column D is the number of days from the start (B) to the end (C), both counted; leave it empty where there
    is no end.
    """
    rows: Rows = []
    for i in range(n):
        start = day(draw)
        rows.append([f"Stay {i + 1}", start, None if i % 5 == 1 else start + timedelta(days=draw.randint(0, 20))])
    return {"Stays": [["Stay", "Start", "End"], *rows]}, down(
        "D", ["" if c is None else (c - b).days + 1 for _, b, c in rows]
    )


@task(SHEET, "A2:B24")
def sort_rows(draw: random.Random, n: int) -> Made:
    """Sort the rows of the table by column B, the largest first; the heading stays where it is."""
    numbers = draw.sample(range(10, 900), n)
    rows = [[f"{draw.choice(TOWNS)} {i}", number] for i, number in enumerate(numbers)]
    want = sorted(rows, key=lambda row: -row[1])
    return {"Heights": [["Place", "Height"], *rows]}, {
        **down("A", [a for a, _ in want]),
        **down("B", [b for _, b in want]),
    }


@task(SHEET, "A2:A24")
def fill(draw: random.Random, n: int) -> Made:
    """Fill each empty cell of column A with the value of the nearest cell above that is not empty."""
    whole = [TOWNS[i // 3 % 5] for i in range(n)]
    shown = [town if i % 3 == 0 else None for i, town in enumerate(whole)]
    return {"Shops": [["Town", "Shop"], *[[a, f"Shop {i}"] for i, a in enumerate(shown)]]}, down("A", whole)


@task(CELL, "B2:B24")
def initials(draw: random.Random, n: int) -> Made:
    """Write the initials of each name in column A into column B, such as IB for Ida Brandt."""
    names = [draw.choice(NAMES) for _ in range(n)]
    shown = [[f"{name} " if draw.random() < 0.3 else name] for name in names]
    return {"Staff": [["Name", "Initials"], *shown]}, down("B", ["".join(w[0] for w in name.split()) for name in names])


@task(CELL, "B2:B24")
def word_counts(draw: random.Random, n: int) -> Made:
    """Count the words of each comment in column A, and write the number into column B; an empty comment has none,
    so leave the cell empty.
    """
    words = COMMENT.split()
    found = [None if i % 6 == 4 else " ".join(draw.sample(words, draw.randint(1, 9))) for i in range(n)]
    return {"Comments": [["Comment", "Words"], *[[each] for each in found]]}, down(
        "B", [len(f.split()) if f else "" for f in found]
    )


@task(CELL, "E2")
def best(draw: random.Random, n: int) -> Made:
    """Write into E2 the name in column A with the largest total of the amounts in column B."""
    while True:
        rows = [[draw.choice(NAMES[:4]), draw.randint(1, 99)] for _ in range(n)]
        totals = {name: sum(b for a, b in rows if a == name) for name in NAMES[:4]}
        top = max(totals.values())
        if list(totals.values()).count(top) == 1:
            break
    want = next(name for name, total in totals.items() if total == top)
    return {"Gifts": [["Name", "Amount"], *[[a, as_text(draw, b)] for a, b in rows]]}, {"E2": want}


@task(CELL, "Guests!B2:B24")
def paid(draw: random.Random, n: int) -> Made:
    """Write yes into column B of the sheet Guests where the name in its column A is in the list of the sheet Paid,
    else no.
    """
    some = draw.sample(NAMES, 4)
    guests = [draw.choice(NAMES) for _ in range(n)]
    sheets = {
        "Paid": [["Name"], *[[typed(draw, name)] for name in some]],
        "Guests": [["Name", "Paid"], *[[g] for g in guests]],
    }
    return sheets, down("B", ["yes" if guest in some else "no" for guest in guests], sheet="Guests!")


@task(CELL, "C2:C24")
def shares(draw: random.Random, n: int) -> Made:
    """Write into column C the share of each cost (B) in the sum of all costs, as a number from 0 to 1 with four
    decimals.
    """
    costs = [draw.randint(10, 500) for _ in range(n)]
    rows = [[f"Item {i}", as_text(draw, cost)] for i, cost in enumerate(costs)]
    return {"Costs": [["Item", "Cost", "Share"], *rows]}, down("C", [round(cost / sum(costs), 4) for cost in costs])


@task(CELL, "B2:B24")
def months(draw: random.Random, n: int) -> Made:
    """Write the name of the month of each date in column A into column B, in English and in full."""
    dates = [day(draw) for _ in range(n)]
    names = MONTHS.split()
    return {"Visits": [["Date", "Month"], *[[each] for each in dates]]}, down(
        "B", [names[each.month - 1] for each in dates]
    )


@task(CELL, "D2:D24")
def tops(draw: random.Random, n: int) -> Made:
    """Mark the largest amount (C) of each town (B) with top in column D; all other cells of D stay empty."""
    amounts_ = draw.sample(range(10, 900), n)
    rows = [[i + 1, draw.choice(TOWNS[:3]), amount] for i, amount in enumerate(amounts_)]
    most = {town: max((c for _, b, c in rows if b == town), default=0) for town in TOWNS}
    shown = [[a, typed(draw, b), c] for a, b, c in rows]
    return {"Bids": [["No", "Town", "Amount"], *shown]}, down("D", ["top" if c == most[b] else "" for _, b, c in rows])


@task(CELL, "Report!B1")
def open_orders(draw: random.Random, n: int) -> Made:
    """Write into B1 of the sheet Report how many orders of the sheet Orders have the state open."""
    states = [draw.choice(("open", "closed", "open", "void")) for _ in range(n)]
    orders = [[f"O{i}", typed(draw, state)] for i, state in enumerate(states)]
    return {"Orders": [["Order", "State"], *orders], "Report": [["Open orders"]]}, {"Report!B1": states.count("open")}


@task(CELL, "E2:E24")
def discounts(draw: random.Random, n: int) -> Made:
    """Column E is the price (B) after the discount in per cent (C), rounded to two decimals; without a discount it
    is the price.
    """
    rows = [[f"Item {i}", draw.randint(100, 9_000) / 100, draw.choice((None, 5, 10, 25))] for i in range(n)]
    want = [round(b * (100 - (c or 0)) / 100 + 1e-9, 2) for _, b, c in rows]
    return {"List": [["Item", "Price", "Discount", "Note"], *[[a, as_text(draw, b), c] for a, b, c in rows]]}, down(
        "E", want
    )


def main() -> None:
    """Write all workbooks, and the rows of each split."""
    from openpyxl import Workbook

    order = list(range(len(TASKS)))
    random.Random(8).shuffle(order)
    rows = []
    for number, index in enumerate(order, 1):
        kind, position, instruction, make = TASKS[index]
        own = f"s{number:02}"
        folder = DATA / "cases" / own
        folder.mkdir(parents=True, exist_ok=True)
        names: dict[str, list[str]] = {"inputs": [], "answers": []}
        for case in range(1, CASES + 1):
            draw = random.Random(f"{own}:{case}")
            sheets, answers = make(draw, draw.randint(8, 20))
            for column, values in (("inputs", {}), ("answers", answers)):
                book = Workbook()
                book.remove(book.active)
                for title, content in sheets.items():
                    sheet = book.create_sheet(title)
                    for line in content:
                        sheet.append(line)
                for cell, value in values.items():
                    title, _, name = cell.rpartition("!")
                    book[title or book.sheetnames[0]][name] = value
                # Nothing of a file says when it was made.
                book.properties.created = book.properties.modified = datetime(2026, 1, 1)
                path = folder / f"{case}_{own}_{'input' if column == 'inputs' else 'answer'}.xlsx"
                book.save(path)
                names[column].append(path.relative_to(DATA).as_posix())
        row = {"id": own, "instruction": instruction, "instruction_type": kind, "answer_position": position, **names}
        rows.append(row)
    start = 0
    for split, count in SPLITS.items():
        text = "".join(json.dumps(row) + "\n" for row in rows[start : start + count])
        (DATA / f"{split}.jsonl").write_text(text)
        start += count


if __name__ == "__main__":
    main()

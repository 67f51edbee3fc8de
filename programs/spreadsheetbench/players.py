"""Scripts in place of both models, so that the program compiles without a key.

The target knows how to write the core of a program for the tasks of the sample, but writes it carelessly: for the rows
that it was shown, for the first sheet, for cells that hold what their heading promises. Each rule below in its skill
corrects one of these habits. The optimizer reads which task failed and proposes the rules that such a task needs.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from skillc import scripted

ROWS = "Read how many rows there are from the workbook: the rows that you are shown are only the first ones."
SHEET = "Open the sheet that the answer position names; without a name it is the first one."
TEXT = "Numbers may be stored as texts, with blanks: convert them before you calculate."
LOOSE = "Compare and split texts without outer blanks and without regard to case."
EMPTY = "Where an input is empty, leave the result empty, unless the instruction says otherwise."
RULES = (ROWS, SHEET, TEXT, LOOSE, EMPTY)
_PRELUDE = """import openpyxl

book = openpyxl.load_workbook(INPUT_PATH)
sheet = {sheet}
rows = range(2, {last})


def number(value):
    return {number}


def same(text):
    return {same}


def empty(*values):
    return {empty}


def cell(column, row, of=None):
    return (of or sheet)[f"{{column}}{{row}}"].value


def write(column, row, value):
    sheet[f"{{column}}{{row}}"] = value


"""
# The core of a program, by words of the instruction.
_CORES = {
    r"quantity \(column C\) times": """for row in rows:
    if not empty(cell("C", row), cell("D", row)):
        write("E", row, number(cell("C", row)) * cell("D", row))""",
    r"shall say late": """for row in rows:
    if not empty(cell("B", row), cell("C", row)):
        done = cell("C", row)
        write("D", row, "late" if done and done > cell("B", row) else "on time")""",
    r"total of the sales": """for place in range(2, 5):
    town = same(cell("F", place))
    write("G", place, sum(number(cell("C", row)) for row in rows if same(cell("B", row)) == town))""",
    r"product code": """listed = book["Prices"]
known = {same(cell("A", row, listed)): cell("B", row, listed) for row in range(2, 11)}
for row in rows:
    if cell("A", row):
        write("C", row, known.get(same(cell("A", row)), "none"))""",
    r"joined in 2023": """write("H", 1, sum(cell("C", row).year == 2023 for row in rows if cell("C", row)))""",
    r"each town of column A once": """towns = dict.fromkeys(cell("A", row) for row in rows if cell("A", row))
for place, town in enumerate(towns, 2):
    write("C", place, town)""",
    r"Split the full names": """for row in rows:
    if cell("A", row):
        first, *_, last = (cell("A", row).strip() if STRIP else cell("A", row)).split(" ")
        write("B", row, first)
        write("C", row, last)""",
    r"running balance": """now = 0
for row in rows:
    if cell("A", row):
        now += number(cell("B", row)) - cell("C", row)
        write("D", row, now)""",
    r"a grade in column C": """for row in rows:
    if cell("A", row) and not empty(cell("B", row)):
        score = cell("B", row) or 0
        write("C", row, "A" if score >= 90 else "B" if score >= 75 else "C" if score >= 60 else "F")""",
    r"mean score of each class": """scores = book["Scores"]
for place in range(2, 5):
    name = same(cell("A", place))
    own = [row for row in range(2, LAST("Scores")) if same(cell("B", row, scores)) == name]
    own = [number(cell("C", row, scores)) for row in own]
    write("B", place, round(sum(own) / len(own), 1) if own else 0)""",
    r"Fahrenheit": """for row in rows:
    if not empty(cell("B", row)) and cell("A", row):
        write("C", row, round((number(cell("B", row)) - 32) * 5 / 9, 1))""",
    r"number of days": """for row in rows:
    if cell("A", row) and not empty(cell("C", row)):
        write("D", row, (cell("C", row) - cell("B", row)).days + 1 if cell("C", row) else 0)""",
    r"Sort the rows": """found = [[cell("A", row), cell("B", row)] for row in rows if cell("A", row)]
found = sorted(found, key=lambda each: -each[1])
for row, (place, height) in enumerate(found, 2):
    write("A", row, place)
    write("B", row, height)""",
    r"Fill each empty cell": """above = None
for row in rows:
    above = cell("A", row) or above
    if cell("B", row):
        write("A", row, above)""",
    r"initials": """for row in rows:
    if cell("A", row):
        name = cell("A", row).strip() if STRIP else cell("A", row)
        write("B", row, "".join(word[:1] or "?" for word in name.split(" ")))""",
    r"words of each comment": """for row in rows:
    if not empty(cell("A", row)):
        write("B", row, len(str(cell("A", row) or "").split()))""",
    r"largest total of the amounts": """totals = {}
for row in rows:
    if cell("A", row):
        totals[cell("A", row)] = totals.get(cell("A", row), 0) + number(cell("B", row))
write("E", 2, max(totals, key=totals.get))""",
    r"list of the sheet Paid": """known = {same(book["Paid"][f"A{row}"].value) for row in range(2, LAST("Paid"))}
for row in rows:
    if cell("A", row):
        write("B", row, "yes" if same(cell("A", row)) in known else "no")""",
    r"share of each cost": """total = sum(number(cell("B", row)) for row in rows if cell("A", row))
for row in rows:
    if cell("A", row):
        write("C", row, round(number(cell("B", row)) / total, 4))""",
    r"name of the month": """for row in rows:
    if cell("A", row):
        write("B", row, cell("A", row).strftime("%B"))""",
    r"with top in column D": """most = {}
for row in rows:
    if cell("B", row):
        most[same(cell("B", row))] = max(most.get(same(cell("B", row)), 0), cell("C", row))
for row in rows:
    if cell("B", row) and cell("C", row) == most[same(cell("B", row))]:
        write("D", row, "top")""",
    r"the state open": """orders = book["Orders"]
states = [cell("B", row, orders) for row in range(2, LAST("Orders"))]
write("B", 1, sum(same(state) == same("open") for state in states if state))""",
    r"after the discount": """for row in rows:
    if cell("A", row):
        write("E", row, round(number(cell("B", row)) * (100 - (cell("C", row) or 0)) / 100 + 1e-9, 2))""",
}


def act(messages: Sequence[Mapping[str, Any]], model: str, parameters: Any) -> Any:
    """Write a program; after an error of a number, convert numbers; after two errors, give up."""
    skill = messages[0]["content"]
    first = next(each["content"] for each in messages if each["role"] == "user")
    tries = sum(each["role"] == "assistant" for each in messages)
    if tries > 1:
        return scripted.reply("```python\nimport shutil\nshutil.copy(INPUT_PATH, OUTPUT_PATH)\n```", messages)
    failed = tries == 1 and re.search(r"TypeError|ValueError", messages[-1]["content"])
    instruction = _field(first, "instruction")
    position = _field(first, "answer_position")
    return scripted.reply(program(instruction, position, f"{skill}\n{TEXT if failed else ''}"), messages)


def improve(messages: Sequence[Mapping[str, Any]], model: str, parameters: Any) -> Any:
    """Propose the rules that a failed task may need."""

    def cures(case: scripted.Case, skill: str) -> list[str]:
        instruction = case.inputs.get("instruction", "")
        needed = [ROWS]
        needed += [SHEET] if "!" in case.inputs.get("answer_position", "") else []
        needed += [LOOSE] if re.search(r"name|class|town|code|state|list", instruction) else []
        needed += [TEXT] if re.search(r"total|amount|balance|price|cost|score|temperature", instruction) else []
        needed += [EMPTY] if "empty" in instruction or "no score" in instruction else []
        return needed

    return scripted.learn(messages, cures)


def program(instruction: str, position: str, skill: str) -> str:
    """Return the reply with the program for an instruction, as careful as the skill says."""
    core = next((core for words, core in _CORES.items() if re.search(words, instruction)), "pass")
    name = position.partition("!")[0] if "!" in position else ""
    every = ROWS in skill
    prelude = _PRELUDE.format(
        sheet=f"book[{name!r}]" if name and SHEET in skill else "book.worksheets[0]",
        last="sheet.max_row + 1" if every else "6",
        number="float(value)" if TEXT in skill else "value + 0",
        same="str(text).strip().casefold()" if LOOSE in skill else "text",
        empty='any(value in (None, "") for value in values)' if EMPTY in skill else "False",
    )
    last = "def LAST(name):\n    return book[name].max_row + 1" if every else "def LAST(name):\n    return 6"
    return f"```python\n{prelude}{last}\n\n\nSTRIP = {LOOSE in skill}\n{core}\nbook.save(OUTPUT_PATH)\n```"


def _field(text: str, name: str) -> str:
    found = re.search(rf"^## {name}\n(.*?)(?=\n\n## |\Z)", text, re.MULTILINE | re.DOTALL)
    return found[1].strip() if found else ""

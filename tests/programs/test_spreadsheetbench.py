"""SpreadsheetBench: its layouts, the official comparison of cells, rounds in the sandbox, and formulas."""

import datetime
import json
import shutil

import pytest
from benchmark import PROGRAMS, split_of

from programs.frame.layout import missing, module
from programs.frame.load import load
from skillc.errors import SkillcError

pytest.importorskip("openpyxl")
FOLDER = PROGRAMS / "spreadsheetbench"
grader = module("spreadsheetbench", "grader")
rows = module("spreadsheetbench", "rows")
workbook = module("spreadsheetbench", "workbook")
players = module("spreadsheetbench", "players")
needs_sandbox = pytest.mark.skipif(bool(missing("spreadsheetbench")), reason=missing("spreadsheetbench"))


def book(**sheets):
    from openpyxl import Workbook

    made = Workbook()
    made.remove(made.active)
    for title, cells in sheets.items():
        sheet = made.create_sheet(title)
        for name, value in cells.items():
            sheet[name] = value
    return made


# ---- the comparison -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("made", "gold", "equal"),
    [
        (1.234, 1.2349, True),
        (1.234, 1.236, False),
        # Rounded, not within a tolerance: 0.004 apart and different.
        (1.004, 1.006, False),
        (2, 2.0, True),
        ("12.50", 12.5, True),
        (" 7 ", 7, True),
        ("1,200", 1200, False),
        ("", None, True),
        (None, None, True),
        (None, 0, False),
        ("", 0, False),
        (True, 1, True),
        ("yes", "Yes", False),
        ("yes ", "yes", False),
        (datetime.datetime(2024, 3, 1), 45352, True),
        (datetime.datetime(1899, 12, 30), 0, True),
        # A date is rounded to whole days, and half a day to the even one.
        (datetime.datetime(2024, 3, 1, 13), datetime.datetime(2024, 3, 2), True),
        (datetime.datetime(2024, 3, 1, 12), 45352, True),
        (datetime.datetime(2024, 3, 1, 11), 45353, False),
        (datetime.time(9, 30, 59), datetime.time(9, 30, 1), True),
        (datetime.time(9, 30), "09:30", True),
        ("2024-03-01", datetime.datetime(2024, 3, 1), False),
    ],
)
def test_cells_are_compared_by_the_official_rule(made, gold, equal):
    assert grader.same(made, gold) is equal
    assert grader.same(gold, made) is equal


@pytest.mark.parametrize(
    ("position", "found"),
    [
        ("B2:C3", [("First", "B2:C3")]),
        ("'My Sheet'!A1", [("My Sheet", "A1")]),
        ("Data!A1:A2, D4", [("Data", "A1:A2"), ("First", "D4")]),
        ("'A, B'!A1,Sheet2!'B2:B3'", [("A, B", "A1"), ("Sheet2", "B2:B3")]),
    ],
)
def test_an_answer_position_names_sheets_and_ranges(position, found):
    assert grader.areas(position, "First") == found


def test_a_range_has_its_cells_column_by_column():
    assert grader.cells("B2:C3") == ["B2", "B3", "C2", "C3"]
    assert grader.cells("AA9") == ["AA9"]


def test_workbooks_agree_where_the_position_says_and_nowhere_else():
    gold = book(One={"A1": 1, "B1": 2}, Two={"A1": "x"})
    near = book(One={"A1": 1.001, "B1": 99}, Two={"A1": "x"})
    assert grader.compare(near, gold, "A1,Two!A1")["passed"] is True
    found = grader.compare(near, gold, "A1:B1")
    assert (found["passed"], found["wrong"], found["right"]) == (False, ["One!B1: 99"], 1)
    assert grader.compare(near, gold, "Three!A1")["problem"] == "there is no sheet `Three`"


# ---- rounds ---------------------------------------------------------------------------------------


def first_task():
    row = json.loads((FOLDER / "data/train.jsonl").read_text().splitlines()[0])
    paths = {column: [f"data/{each}" for each in row[column]] for column in ("inputs", "answers")}
    return {**row, **paths}


@needs_sandbox
def test_a_round_shows_errors_and_scores_the_last_program_on_every_case():
    task = first_task()
    environment = workbook.Workbook(cases="soft", feedback="cells")
    assert "## Sheet " in environment.reset(task)
    told, _, done, _ = environment.step("I would like to think about it.")
    assert "no program in the reply" in told and not done
    told, _, done, _ = environment.step("```python\nimport openpyxl\nopenpyxl.load_workbook('/etc/nothing.xlsx')\n```")
    assert "the program failed" in told and "/etc/nothing.xlsx" in told and not done
    # The right answers can't be read in the sandbox.
    spy = (
        f"import os\ntry:\n    print(os.listdir({str(FOLDER / 'data')!r}))\n"
        "except OSError:\n    print('hidden', sorted(os.listdir()))\nraise SystemExit(3)"
    )
    told, _, done, _ = environment.step(f"```python\n{spy}\n```")
    assert "hidden ['1_input.xlsx', '2_input.xlsx', '3_input.xlsx']" in told and not done
    assert environment.score() == 0
    # Right on the first case only.
    name = grader_value(task, 0)
    lines = ("import openpyxl", "book = openpyxl.load_workbook(INPUT_PATH)", f"book.worksheets[0]['E2'] = {name!r}")
    code = "\n".join([*lines, "book.save(OUTPUT_PATH)"])
    _, score, done, _ = environment.step(f"Done:\n```python\n{code}\n```")
    values = [grader_value(task, case) for case in range(3)]
    assert done
    assert score == pytest.approx(values.count(name) / 3)
    environment.close()


def grader_value(task, case):
    from openpyxl import load_workbook

    return load_workbook(FOLDER / task["answers"][case]).worksheets[0]["E2"].value


@needs_sandbox
@pytest.mark.thorough
def test_the_script_solves_every_task_with_all_rules_and_few_with_none():
    environment = workbook.Workbook()
    solved = {"none": 0, "all": 0}
    tasks = [json.loads(line) for split in ("train", "validation") for line in (FOLDER / f"data/{split}.jsonl").open()]
    for row in tasks:
        task = {**row, **{column: [f"data/{each}" for each in row[column]] for column in ("inputs", "answers")}}
        for skill, text in (("none", ""), ("all", "\n".join(players.RULES))):
            environment.reset(task)
            environment.step(players.program(task["instruction"], task["answer_position"], text))
            solved[skill] += environment.score() == 1
    assert solved["all"] == len(tasks)
    assert solved["none"] <= 2
    environment.close()


@needs_sandbox
@pytest.mark.thorough
def test_formulas_without_values_are_computed(tmp_path):
    pytest.importorskip("formulas")
    made = book(Data={"A1": 1, "A2": 2.5, "B1": "=A1+A2", "B2": '=IF(B1>3,"big","small")', "B3": "=SUM(A1:A2)*2"})
    made.save(tmp_path / "made.xlsx")
    found, problem = grader.computed(tmp_path / "made.xlsx", tmp_path)
    assert problem == ""
    gold = book(Data={"B1": 3.5, "B2": "big", "B3": 7})
    assert grader.compare(found, gold, "B1:B3")["passed"] is True


def test_code_is_the_last_block_or_a_reply_that_is_a_program():
    assert workbook.code_of("First\n```python\nx = 1\n```\nthen\n```py\ny = 2\n```") == "y = 2"
    assert workbook.code_of("save(OUTPUT_PATH)") == "save(OUTPUT_PATH)"
    assert workbook.code_of("I cannot do this with OUTPUT_PATH.") == ""


# ---- the benchmark's own format -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("names", "count"),
    [
        (["2_7-1_input.xlsx", "2_7-1_answer.xlsx", "10_7-1_input.xlsx", "10_7-1_answer.xlsx", "3_7-1_input.xlsx"], 2),
        (["1_7-1_init.xlsx", "1_7-1_golden.xlsx"], 1),
        (["initial.xlsx", "golden.xlsx"], 1),
    ],
)
def test_each_layout_of_workbooks_joins_skillopt_s_ids(names, count, tmp_path):
    source = tmp_path / "verified"
    given = FOLDER / "data/cases/s01/1_s01_input.xlsx"
    for own in ("7-1", "8", "9"):
        (source / "spreadsheet" / own).mkdir(parents=True)
        for name in names:
            shutil.copy(given, source / "spreadsheet" / own / name.replace("7-1", own))
    items = [
        {"id": own, "instruction": f"Do {own}.", "spreadsheet_path": f"spreadsheet/{own}", "answer_position": "A1"}
        for own in ("8", "7-1", "9")
    ]
    (source / "dataset.json").write_text(json.dumps(items))
    ids = split_of(tmp_path / "ids", [{"id": "7-1"}], [{"id": "8"}], [{"id": "9"}])
    assert load("spreadsheetbench", source, ids, tmp_path / "out") == {"train": 1, "validation": 1, "test": 1}
    row = json.loads((tmp_path / "out/data/train.jsonl").read_text())
    assert len(row["inputs"]) == len(row["answers"]) == count
    assert row["inputs"][0] == f"files/7-1/{names[0]}"
    assert (tmp_path / "out/data" / row["answers"][-1]).is_file()


def test_a_task_without_workbooks_is_an_error(tmp_path):
    with pytest.raises(SkillcError, match="task `5` has no workbooks in `spreadsheet/5`"):
        rows.row({"id": "5", "instruction": "Do it."}, tmp_path)

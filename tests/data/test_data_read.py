"""Reading data files: what is taken, and how each mistake is told."""

from __future__ import annotations

import json
import os
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from drawn import png
from hypothesis import given, settings
from hypothesis import strategies as st
from thorough import example_count

from skillc.data.dataset import Dataset, load
from skillc.data.problems import Problems
from skillc.data.read import read_rows
from skillc.errors import SkillcError
from skillc.plan.schema import DataPlan, FieldPlan, SplitPlan, TaskPlan, TypePlan

LABELS = ("billing", "shipping")
HALVES = SplitPlan(unit="share", parts=(1, 1, 0))  # type: ignore[arg-type]


def field(name: str, kind: str = "text", column: str | None = None, **more: Any) -> FieldPlan:
    return FieldPlan(name=name, type=TypePlan(kind=kind, **more), column=column or name)  # type: ignore[arg-type]


TASK = TaskPlan(inputs=(field("ticket"),), outputs=(field("team", "labels", labels=LABELS),))


def rows_of(path: Path) -> list[dict[str, Any]]:
    problems = Problems()
    rows = [dict(row.values) for row in read_rows(path, path.name, problems)]
    problems.check()
    return rows


def lines(*rows: Any) -> str:
    return "\n".join(json.dumps(row) for row in rows) + "\n"


def loaded(tmp_path: Path, name: str, content: str | bytes, task: TaskPlan = TASK, **data: Any) -> Dataset:
    raw = content if isinstance(content, bytes) else content.encode()
    (tmp_path / name).write_bytes(raw)
    return load(task, DataPlan(source=name, **{"split": HALVES, **data}), tmp_path)


def refusal(tmp_path: Path, name: str, content: str | bytes, task: TaskPlan = TASK, **data: Any) -> str:
    with pytest.raises(SkillcError) as caught:
        loaded(tmp_path, name, content, task, **data)
    return f"{caught.value.message}\n{caught.value.hint or ''}"


GOOD = [{"ticket": f"text {i}", "team": LABELS[i % 2]} for i in range(20)]


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_all_formats_give_the_same_data(tmp_path: Path, indent: int | None, mark: str) -> None:
    csv = "ticket,team\r\n" + "".join(f'"{row["ticket"]}",{row["team"]}\r\n' for row in GOOD)
    contents = {"a.jsonl": lines(*GOOD), "a.json": json.dumps(GOOD, indent=indent), "a.csv": csv}
    found = [loaded(tmp_path, name, mark + text) for name, text in contents.items()]
    assert len({dataset.digest for dataset in found}) == 1
    assert found[0].train == found[1].train == found[2].train
    assert len(found[0].train) + len(found[0].validation) == 20


def test_a_csv_cell_may_hold_commas_quotes_and_lines(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text('a,b\n"x, ""y""\nz",1\n\n2,3\n')
    assert rows_of(tmp_path / "a.csv") == [{"a": 'x, "y"\nz', "b": "1"}, {"a": "2", "b": "3"}]


def test_blank_lines_in_jsonl_and_long_json_files(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('\n{"a": 1}\n\n  \n{"a": 2}')
    assert rows_of(tmp_path / "a.jsonl") == [{"a": 1}, {"a": 2}]
    many = [{"n": i, "t": "é" * 900} for i in range(3000)]
    (tmp_path / "b.json").write_text(json.dumps(many, ensure_ascii=False), encoding="utf-8")
    assert rows_of(tmp_path / "b.json") == many


A = '{"ticket": "a", "team": "billing"}\n'


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("a.jsonl", A + '{"ticket": "b"}\n', ["`a.jsonl` line 2", "no `team`", "the row has `ticket`"]),
        ("a.jsonl", A + '{"ticket": "b", "Team": "x"}\n', ["did you mean|`Team`", '{ column = "Team" }']),
        ("a.jsonl", A + '{"ticket": "b", "team": "Billing "}\n', ["`Billing`", "did you mean `billing`?"]),
        ("a.jsonl", A + '{"ticket": "b", "team": "sales"}\n', ["`sales`", "not a declared label of `team`"]),
        ("a.jsonl", A + '{"ticket": "b", "team": null}\n', ["line 2", "no answer in `team`"]),
        ("a.jsonl", A + '{"ticket": "b", "team": ""}\n', ["no answer in `team`"]),
        ("a.jsonl", A + '{"ticket": "b", "team": []}\n', ["no answer in `team`"]),
        ("a.jsonl", A + '{"ticket": null, "team": "billing"}\n', ["`ticket` is empty", "| none"]),
        ("a.jsonl", A + '{"ticket": true, "team": "billing"}\n', ["`true` in `ticket` is not text"]),
        ("a.jsonl", A + '{"ticket": "b"\n', ["line 2", "invalid JSON", "column"]),
        ("a.jsonl", A + "[1]\n", ["line 2", "a list, not an object"]),
        ("a.jsonl", A + "3\n", ["a number, not an object"]),
        ("a.jsonl", A + '{"ticket": "b", "ticket": "c", "team": "billing"}\n', ["duplicate key `ticket`"]),
        ("a.jsonl", A + '{"ticket": "b", "team": NaN}\n', ["`NaN` is not JSON"]),
        ("a.jsonl", A + '{"ticket": "b", "team": 1e999}\n', ["too large"]),
        ("a.jsonl", A + '{"ticket": "\\ud800", "team": "billing"}\n', ["surrogate"]),
        ("a.jsonl", A + '{"ticket": ' + "[" * 100_000 + "}\n", ["line 2", "nested too deeply|invalid JSON"]),
        ("a.jsonl", A.encode() + b'{"ticket": "\xff"}\n', ["line 2", "byte 0xFF at offset 47", "UTF-8"]),
        ("a.jsonl", A.encode() + b'{"ticket": "\0"}\n', ["line 2", "NUL byte at offset 47"]),
        ("a.jsonl", A.encode("utf-16"), ["UTF-16"]),
        ("a.jsonl", '{"id": "x", "ticket": "a", "team": "billing"}\n{"id": "x", "ticket": "b", "team": "billing"}\n',
         ["line 2", "the id `x` is already used at `a.jsonl` line 1"]),
        ("a.jsonl", '{"id": [1], "ticket": "a", "team": "billing"}\n', ["`id` that is neither"]),
        ("a.jsonl", "", ["`a.jsonl`", "has no rows"]),
        ("a.jsonl", "[\n" + A, ["begins like a JSON list", "`a.json`"]),
        ("a.json", "", ["is empty"]),
        ("a.json", "{}", ["not a list of objects", "a.jsonl"]),
        ("a.json", "[]", ["has no rows"]),
        ("a.json", f"[{A}{A}]", ["line 2", "`,` or the closing `]` is missing"]),
        ("a.json", f"[{A},]", ["comma before the closing"]),
        ("a.json", f"[{A}", ["closing `]` is missing"]),
        ("a.json", f"[{A}] x", ["after the closing"]),
        ("a.json", f'[\n{A},\n{{"ticket" "b"}}]', ["line 4", "invalid JSON"]),
        ("a.json", f"[{A}, 3]", ["a number, not an object"]),
        ("a.json", b'[{"ticket": "\xff"}]', ["line 1", "byte 0xFF at offset 13"]),
        ("a.json", b'[{"ticket":\n "\0"}]', ["line 2", "NUL byte at offset 14"]),
        ("a.json", b'[{"ticket": "\xc3', ["UTF-8"]),
        ("a.csv", "ticket,team\na,billing\nb,billing,x\n", ["line 3", "3 cells, but the header has 2", "comma"]),
        ("a.csv", "ticket,team\na\n", ["line 2", "1 cell, but"]),
        ("a.csv", "ticket,team\n", ["has no rows"]),
        ("a.csv", "", ["has no rows"]),
        ("a.csv", "ticket,ticket\n", ["two columns are named `ticket`"]),
        ("a.csv", "ticket,\na,b\n", ["column 2 of the header has no name"]),
        ("a.csv", "ticket;team\na;b\n", ["no comma"]),
        ("a.csv", "ticket,Team\na,billing\nb,billing\n", ["`a.csv` line 1", "no `team`", "`Team`"]),
        ("a.csv", 'ticket,team\n"a,billing\n', ["line 2", "invalid CSV"]),
        ("a.csv", 'ticket,team\n"a"b,billing\n', ["invalid CSV", "double each quote"]),
        ("a.csv", "ticket,team\na,\n", ["line 2", "no answer in `team`"]),
        ("a.txt", "x", ["`.txt` is not a supported format", ".jsonl"]),
    ],
)  # fmt: skip
def test_refused_with_file_line_and_fix(tmp_path: Path, name: str, content: str | bytes, words: list[str]) -> None:
    said = refusal(tmp_path, name, content)
    for word in words:
        assert any(part in said for part in word.split("|")), (word, said)


def test_no_file_and_a_folder(tmp_path: Path) -> None:
    (tmp_path / "b.jsonl").write_text(A)
    (tmp_path / "folder").mkdir()
    with pytest.raises(SkillcError, match="file not found") as caught:
        load(TASK, DataPlan(source="a.jsonl"), tmp_path)
    assert "`b.jsonl`" in (caught.value.hint or "")
    with pytest.raises(SkillcError, match="is a folder"):
        load(TASK, DataPlan(source="folder"), tmp_path)


def test_rows_with_one_fault_are_one_problem(tmp_path: Path) -> None:
    said = refusal(tmp_path, "a.jsonl", A + '{"ticket": "b"}\n' * 1200)
    assert said == "`a.jsonl` (1,200 rows, first 2, 3, 4): no `team`; the row has `ticket`\n"
    two = A + '{"ticket": "b", "team": "sales"}\n' + A + '{"ticket": "c", "team": "sales"}\n'
    assert refusal(tmp_path, "a.jsonl", two).startswith("`a.jsonl` (2 rows, 2, 4): `sales` in `team` is not a declared")


def test_other_values_of_a_wrong_type_are_one_problem(tmp_path: Path) -> None:
    rows = "".join(f'{{"ticket": {n}.5, "team": "billing"}}\n' for n in range(45))
    said = refusal(tmp_path, "a.jsonl", rows)
    assert said == "`a.jsonl` (45 rows, first 1, 2, 3): values in `ticket` are not text\nput it in quotes"


def test_the_first_five_problems_are_told_and_the_rest_counted(tmp_path: Path) -> None:
    rows = "".join(f'{{"ticket": "b", "team": "wrong {n}"}}\n' for n in range(1200))
    said = refusal(tmp_path, "a.jsonl", A + rows)
    assert "1,200 problems" in said and "and 1,195 more" in said
    assert said.count("is not a declared label") == 5


@pytest.mark.parametrize("name", ["a.jsonl", "a.json", "a.csv", "quoted.csv"])
def test_a_huge_field_fails_in_little_memory(tmp_path: Path, name: str) -> None:
    with (tmp_path / name).open("w") as stream:
        stream.write({"a.jsonl": '{"ticket": "', "a.json": '[{"ticket": "'}.get(name, 'ticket,team\n"'))
        for _ in range(500):
            stream.write("x" * 99_999 + ("\n" if name == "quoted.csv" else "x"))
    tracemalloc.start()
    try:
        with pytest.raises(SkillcError, match=r"longer than 16 MB|too long"):
            load(TASK, DataPlan(source=name), tmp_path)
        assert tracemalloc.get_traced_memory()[1] < 100_000_000
    finally:
        tracemalloc.stop()


def test_a_field_over_a_megabyte_is_named(tmp_path: Path) -> None:
    long = {"ticket": "x" * 1_000_001, "team": "billing"}
    assert "the field `ticket` has 1,000,001 characters" in refusal(tmp_path, "a.jsonl", lines(long))
    assert "the field `ticket` has 1,000,001 characters" in refusal(tmp_path, "a.json", json.dumps([long]))
    assert "a cell is too long" in refusal(tmp_path, "a.csv", f"ticket,team\n{long['ticket']},billing\n")


# ---- conversion -----------------------------------------------------------------------------------

TYPED = TaskPlan(
    inputs=(field("words", "list", item=TypePlan(kind="text")), field("note", optional=True), field("n", "number")),
    outputs=(field("ok", "bool"), field("count", "integer"), field("data", "json", optional=True)),
)


def test_csv_text_becomes_the_declared_types(tmp_path: Path) -> None:
    text = 'words,note,n,ok,count,data\n"[""a"", ""b""]",,1.50,yes,"[1, 2]","{""x"": [1]}"\n[],x,-3,false,4,\n'
    dataset = loaded(tmp_path, "a.csv", text, TYPED, split=SplitPlan(unit="examples", parts=(1, 1)))  # type: ignore[arg-type]
    found = {json.dumps(e.inputs["words"]): e for e in (*dataset.train, *dataset.validation)}
    one, two = found['["a", "b"]'], found["[]"]
    assert one.inputs == {"words": ["a", "b"], "note": None, "n": 1.5}
    assert one.gold == {"ok": True, "count": [1, 2], "data": {"x": [1]}}
    assert two.inputs == {"words": [], "note": "x", "n": -3}
    assert two.gold == {"ok": False, "count": 4, "data": None}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"n": "three"}, "not a number"),
        ({"n": "3"}, "not a number"),
        ({"n": True}, "not a number"),
        ({"ok": "yes"}, "not a bool"),
        ({"count": 1.5}, "not an integer"),
        ({"words": "a"}, "not a list"),
        ({"words": ["a", 1.5]}, "not text"),
        ({"count": [1, None]}, "an empty answer"),
    ],
)
def test_json_values_must_have_the_declared_type(tmp_path: Path, change: dict[str, Any], words: str) -> None:
    row = {"words": ["a"], "n": 1, "ok": True, "count": 1, **change}
    assert words in refusal(tmp_path, "a.jsonl", lines(row), TYPED)


def test_a_list_of_answers_means_any_of_them(tmp_path: Path) -> None:
    rows = [{"ticket": str(i), "team": ["billing", "shipping"]} for i in range(8)]
    assert loaded(tmp_path, "a.jsonl", lines(*rows)).train[0].gold == {"team": ["billing", "shipping"]}
    assert "`sales`" in refusal(tmp_path, "a.jsonl", lines({"ticket": "x", "team": ["billing", "sales"]}))


def test_a_column_of_another_name(tmp_path: Path) -> None:
    task = TaskPlan(inputs=(field("ticket", column="The Ticket"),), outputs=TASK.outputs)
    rows = [{"The Ticket": f"x{i}", "team": "billing"} for i in range(8)]
    assert loaded(tmp_path, "a.jsonl", lines(*rows), task).train[0].inputs["ticket"].startswith("x")  # type: ignore[union-attr]
    said = refusal(tmp_path, "a.jsonl", A, task)
    assert "no `The Ticket` for `ticket`" in said


def test_files_stand_in_the_datas_folder(tmp_path: Path) -> None:
    folder = tmp_path / "data" / "pages"
    folder.mkdir(parents=True)
    (tmp_path / "outside.png").write_bytes(b"x")
    (folder / "link.png").symlink_to(tmp_path / "outside.png")
    for i in range(6):
        (folder / f"{i}.png").write_bytes(png(shade=i))
    task = TaskPlan(inputs=(field("page", "image"),), outputs=TASK.outputs)
    good = lines(*({"page": f"pages/{i}.png", "team": "billing"} for i in range(6)))
    counts = SplitPlan(unit="examples", parts=(3, 3))  # type: ignore[arg-type]
    dataset = loaded(tmp_path, "data/a.jsonl", good, task, split=counts)
    assert {str(e.inputs["page"])[:11] for e in dataset.train} == {"data/pages/"}
    (folder / "0.png").write_bytes(png(9, 9))
    assert loaded(tmp_path, "data/a.jsonl", good, task, split=counts).digest != dataset.digest
    for bad, words in {
        "pages/9.png": "no file",
        "../outside.png": "is outside",
        "pages/link.png": "is outside",
        str(folder / "1.png"): "is outside",
        "pages": "no file",
        "a\x00b": "is not a path",
        "": "no path|not a path",
    }.items():
        said = refusal(tmp_path, "data/b.jsonl", lines({"page": bad, "team": "billing"}), task)
        assert any(word in said for word in words.split("|")), (bad, said)


@settings(max_examples=example_count(200), deadline=None)
@given(st.binary(max_size=80), st.sampled_from(["jsonl", "json", "csv"]))
def test_any_bytes_are_read_or_refused(tmp_path_factory: pytest.TempPathFactory, content: bytes, kind: str) -> None:
    path = tmp_path_factory.getbasetemp() / f"any.{kind}"
    path.write_bytes(content)
    try:
        rows_of(path)
    except SkillcError as error:
        assert "any." in error.message


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("rows", "`rows`: the name has no extension"),
        ("rows.xyz", "`rows.xyz`: `.xyz` is not a supported format"),
        ("pipe.jsonl", "`pipe.jsonl`: is a device or a pipe, not a file"),
        ("none.jsonl", "`none.jsonl`: file not found"),
    ],
)
def test_a_file_that_is_not_read_is_called_what_it_is(tmp_path: Path, name: str, message: str) -> None:
    (tmp_path / "rows").write_text("{}\n")
    (tmp_path / "rows.xyz").write_text("{}\n")
    # Opening it would wait for a writer.
    os.mkfifo(tmp_path / "pipe.jsonl")
    with pytest.raises(SkillcError) as error:
        list(read_rows(tmp_path / name, name, Problems()))
    assert error.value.message == message

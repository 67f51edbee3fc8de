"""The first program for a data file: it parses, checks, plans and finds its data."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path
from typing import Any

import pytest
from drawn import png
from hypothesis import given, settings
from hypothesis import strategies as st
from thorough import example_count

from skillc.data.columns import profile
from skillc.data.dataset import load
from skillc.data.starter import start
from skillc.errors import SkillcError
from skillc.frontend import plan_file
from skillc.syntax.formatting import format_source
from skillc.syntax.parser import parse
from skillc.syntax.source import Source

TICKETS = Path(__file__).parents[2] / "examples" / "tickets" / "tickets.jsonl"


def write(tmp_path: Path, rows: list[dict[str, Any]], name: str = "data.jsonl") -> Path:
    path = tmp_path / name
    if name.endswith(".csv"):
        with path.open("w", newline="") as stream:
            writer = csv.DictWriter(stream, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)
    else:
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def parsed(path: Path) -> str:
    text = start(path).text
    found = parse(Source(f"{path.stem}.skill", text)).diagnostics
    assert not found, (found, text)
    assert format_source(Source("a", text)).text == text
    return text


def one_blank(text: str) -> str:
    """The text without its columns."""
    return re.sub(" +", " ", text)


def runs(path: Path) -> None:
    """Nothing is found in the program, it has a plan, and its data can be loaded."""
    frontend = pytest.importorskip("skillc.frontend")
    program = path.with_suffix(".skill")
    program.write_text(parsed(path))
    assert frontend.check_file(program).diagnostics == ()
    planned = frontend.plan_file(program)
    assert not [d for d in planned.diagnostics if d.severity.value != "note"], planned.diagnostics
    dataset = load(planned.plan.task, planned.plan.data, planned.root)
    assert dataset.train and dataset.validation and dataset.test


def test_tickets(tmp_path: Path) -> None:
    path = tmp_path / "tickets.jsonl"
    path.write_bytes(TICKETS.read_bytes())
    text = parsed(path)
    assert "  input  ticket: text\n" in text
    assert '  output team: "' in text and '"shipping"' in text
    assert "group = customer" in text and "by = product" in text
    assert 'model target    = "rulebook/v1"' in text
    assert "goal correct = exact_match(team)" in text
    runs(path)


def test_the_program_may_stand_elsewhere(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    path = write(tmp_path / "data", [{"a": f"x{i}", "b": f"y{i}"} for i in range(9)])
    assert 'source = "data/data.jsonl"' in start(path, tmp_path).text
    assert 'source = "data.jsonl"' in start(path).text


def test_column_names_that_are_no_names(tmp_path: Path) -> None:
    words = ["late parcel", "wrong invoice", "cannot log in"]
    rows = [
        {
            "Order #": str(1000 + i),
            "Message from the customer": f"A long message about a {words[i % 3]}, number {i}.",
            "Ship To": f"Land {i % 4}",
            "and": "x",
            "Final Category": ["a", 'b "quoted"', "c\\d"][i % 3],
        }
        for i in range(60)
    ]
    path = write(tmp_path, rows, "weird name.csv")
    text = parsed(path)
    assert '  input  message_from_the_customer: text { column = "Message from the customer" }' in text
    assert '"a" | "b \\"quoted\\"" | "c\\\\d" { column = "Final Category" }' in text
    runs(path)


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([{"question": f"who was number {i} in the list?", "answer": f"name {i}"} for i in range(40)],
         ["output answer: text", "exact_match(answer)", "split = 16 examples : 8 examples : 16 examples"]),
        ([{"question": f"who was number {i} in the list?", "answers": [f"name {i}", "x"]} for i in range(40)],
         ["output answers: text", "exact_match(answers)"]),
        ([{"minutes": f"a long text about meeting {i}", "actions": ["do", str(i)]} for i in range(120)],
         ["output actions: list[text]", "f1(actions)", "split = 2 : 1 : 2"]),
        ([{"mail": f"a long text about thing {i}", "spam": i % 2 == 0} for i in range(120)], ["output spam: bool"]),
        ([{"problem": f"what is {i} and some more words", "result": i * 2} for i in range(120)],
         ["output result: integer", "numeric(result)"]),
        ([{"a": f"x{i}", "b": f"y{i}"} for i in range(120)], ["input  a: text", "output b: text"]),
        ([{"text": f"thing number {i}", "kind": "abc"[i % 3]} for i in range(120)],
         ["input  text: text", 'output kind: "a" | "b" | "c"']),
        ([{"mail": f"a long text about thing {i}", "reply": "word " * 30 + str(i) if i else None} for i in range(120)],
         ["output reply: text | none", "1 row has no answer", "f1(reply)"]),
        ([{"correct": f"a long text number {i}", "label": "ab"[i % 2]} for i in range(120)], ["goal score ="]),
        ([{"id": i, "page": {"x": i}, "verdict": "ab"[i % 2]} for i in range(120)], ["input  page: json"]),
    ],
)  # fmt: skip
def test_guesses(tmp_path: Path, rows: list[dict[str, Any]], words: list[str]) -> None:
    path = write(tmp_path, rows)
    text = parsed(path)
    for word in words:
        assert one_blank(word) in one_blank(text), (word, text)
    runs(path)


def test_a_file_with_one_column_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SkillcError, match="fewer than two usable columns"):
        start(write(tmp_path, [{"id": 1, "text": "x"}]))
    with pytest.raises(SkillcError, match="file not found"):
        start(tmp_path / "none.csv")


def test_profile_tells_types_in_a_table(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("n,code,x,flag,mixed,late\n1,007,1.5,true,1,\n-2,08,2,False,b,x\n")
    assert {c.name: c.kind for c in profile(path)} == {
        "n": "integer", "code": "text", "x": "number", "flag": "bool", "mixed": "text", "late": "text",
    }  # fmt: skip
    assert {c.name: c.empty for c in profile(path)}["late"] == 1


def test_a_column_that_comes_late_was_empty_before(tmp_path: Path) -> None:
    path = write(tmp_path, [{"a": 1}, {"a": 2, "b": "x"}, {"b": "y"}])
    assert [(c.name, c.rows, c.empty) for c in profile(path)] == [("a", 3, 1), ("b", 3, 1)]


NAMES = st.lists(st.text(min_size=1, max_size=12), min_size=2, max_size=5, unique=True)
VALUES = st.one_of(
    st.none(), st.booleans(), st.integers(), st.text(max_size=30), st.lists(st.text(max_size=3), max_size=2)
)


@settings(max_examples=example_count(150), deadline=None)
@given(NAMES, st.data())
def test_any_columns_give_a_program_that_parses(
    tmp_path_factory: pytest.TempPathFactory, names: list[str], data: st.DataObject
) -> None:
    rows = data.draw(st.lists(st.fixed_dictionaries(dict.fromkeys(names, VALUES)), min_size=1, max_size=12))
    path = tmp_path_factory.getbasetemp() / "any.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    try:
        parsed(path)
    except SkillcError as error:
        assert "fewer than two usable columns" in error.message or "surrogate" in error.message


def test_columns_of_paths_are_images_and_files(tmp_path: Path) -> None:
    (tmp_path / "pages").mkdir()
    rows = []
    for i in range(8):
        (tmp_path / f"pages/{i}.png").write_bytes(png(shade=i))
        (tmp_path / f"pages/{i}.txt").write_text(f"note {i}")
        row = {"page": f"pages/{i}.png", "note": f"pages/{i}.txt", "other": f"pages/{i}.gif"}
        rows.append({**row, "team": "billing" if i % 2 else "shipping"})
    text = one_blank(parsed(write(tmp_path, rows)))
    assert "input page: image\n" in text
    assert "input note: file\n" in text
    assert "other: image" not in text
    assert 'output team: "' in text
    reasons = {reason.subject: reason.why for reason in start(tmp_path / "data.jsonl").reasons}
    assert reasons["page"] == "its values are paths of images"
    program = tmp_path / "data.skill"
    program.write_text(start(tmp_path / "data.jsonl").text)
    planned = plan_file(program)
    assert load(planned.plan.task, planned.plan.data, planned.root).train

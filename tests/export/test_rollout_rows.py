"""Every recorded rollout as a row, in JSON lines and Parquet: whole, in order, redacted, in little memory."""

import json
import shutil
import tracemalloc
from collections import Counter
from itertools import pairwise
from pathlib import Path

import pyarrow.parquet
import pytest
from click.testing import CliRunner
from made_run import MARKUP, RUN, make_run

from skillc.cli import skillc
from skillc.errors import SkillcError
from skillc.export.rollouts import SCHEMA, Rollouts
from skillc.export.tables import write_rows
from skillc.review.run_view import read_run
from skillc.store import RunStore

GUIDE = Path(__file__).parents[2] / "docs/guides/formats.md"


@pytest.fixture(scope="module")
def rows(exported):
    return list(Rollouts(exported.program, environ={}))


def test_each_rollout_is_one_row_with_what_the_run_recorded_of_it(exported, rows):
    view = read_run(exported.program)
    assert len(rows) == len(view.outcomes)
    by_place = Counter((row["candidate"], row["split"]) for row in rows)
    assert by_place[view.best, "test"] == by_place[None, "test"] == len(view.dataset.test)
    for row in rows[:: len(rows) // 20]:
        skill = row["candidate"] or "none"
        outcome = view.outcome(skill, row["example"])
        example = view.examples[row["example"]].example
        assert row["inputs"] == example.inputs
        assert row["right"] == example.gold
        assert row["output"] == outcome.answer
        assert len(row["messages"]) == len(outcome.trajectory.steps)
        assert (row["prompt_tokens"], row["completion_tokens"], row["cost"]) == (300, 20, 2e-06)
        if row["unmeasured"]:
            assert row["scores"] == {}
            assert row["reason"].startswith("transport")
        else:
            assert row["scores"] == {"correct": outcome.cells["correct"].value / 1e6}
            assert row["reason"] is None
    assert {row["kind"] for row in rows} == {"rollout"}
    assert any(row["unmeasured"] for row in rows)


def test_rows_name_the_decision_that_made_their_skill_and_are_in_its_order(exported, rows):
    places = {each["candidate"]: (each["decision"], each["place"]) for each in exported.decisions}
    assert {(row["decision"], row["place"]) for row in rows} == {
        (None, "none"),
        (0, "start"),
        *places.values(),
    }
    numbers = [-1 if row["decision"] is None else row["decision"] for row in rows]
    assert all(one <= other for one, other in pairwise(numbers))


def test_parquet_has_the_same_rows_and_names_its_schema(exported, rows, tmp_path):
    found = Rollouts(exported.program, environ={})
    path = tmp_path / "rows.parquet"
    assert write_rows(found, found.metrics, path, "parquet") == len(rows)
    table = pyarrow.parquet.read_table(path)
    assert table.schema.metadata[b"skillc.rollouts"] == str(SCHEMA).encode()
    back = table.to_pylist()
    assert list(back[0]) == list(rows[0])
    for row, one in zip(rows, back, strict=True):
        assert json.loads(one["inputs"]) == row["inputs"]
        assert dict(one["scores"]) == row["scores"]
        assert dict(one["unmeasured"]) == row["unmeasured"]
        assert [each["text"] for each in one["messages"]] == [each["text"] for each in row["messages"]]


def test_the_guide_names_every_column(rows):
    text = GUIDE.read_text()
    assert [name for name in rows[0] if f"`{name}`" not in text] == []


def test_the_verb_writes_lines_that_are_the_same_each_time(exported, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = [
        CliRunner().invoke(skillc, ["export", "rollouts", str(exported.program), "-o", name]) for name in ("a", "b")
    ]
    assert [each.exit_code for each in done] == [0, 0], done[0].output
    assert "rollouts to a" in done[0].output
    assert Path("a").read_bytes() == Path("b").read_bytes()
    first = json.loads(Path("a").read_text().splitlines()[0])
    assert (first["format_version"], first["run"]) == (SCHEMA, RUN)
    assert MARKUP in first["inputs"]["text"]


def test_a_secret_of_the_program_is_redacted_in_inputs_too(exported):
    secrets = {"OPENAI_API_KEY": "word3 word4 word5"}
    rows = [json.dumps(row) for row in Rollouts(exported.program, environ=secrets)]
    assert all("[secret OPENAI_API_KEY]" in row for row in rows if '"example": null' not in row)
    assert not any("word3 word4" in row for row in rows)


def test_rollouts_of_unknown_skills_and_earlier_attempts_are_rows_too(exported, tmp_path):
    folder = shutil.copytree(exported.folder, tmp_path / "run")
    before = len(list(Rollouts(folder / "things.skill", environ={})))
    view = read_run(folder / "things.skill")
    example = next(iter(view.examples))
    outcome = view.outcome(view.initial, example)
    store = RunStore(next((folder / ".skillc/runs").glob("*/run.db")))
    store.add_outcome(b"x" * 32, outcome.to_json(), [])
    store.close()
    rows = list(Rollouts(folder / "things.skill", environ={}))
    assert len(rows) == before + 1
    last = rows[-1]
    assert (last["kind"], last["example"], last["candidate"], last["calls"]) == ("unidentified", None, None, 0)


def test_a_run_that_is_not_here_is_an_error_that_says_where_it_is(exported, tmp_path):
    folder = shutil.copytree(exported.folder, tmp_path / "run")
    shutil.rmtree(folder / ".skillc")
    with pytest.raises(SkillcError, match="not on this machine"):
        Rollouts(folder / "things.skill")


def test_parquet_to_standard_output_is_refused(exported):
    done = CliRunner().invoke(
        skillc, ["export", "rollouts", str(exported.program), "-o", "-", "--format", "parquet"], standalone_mode=False
    )
    assert isinstance(done.exception, SkillcError)


def test_memory_does_not_grow_with_the_texts_of_the_rollouts(tmp_path):
    made = make_run(tmp_path / "run", steps=3, examples=60, words=1_000)
    found = Rollouts(made.program, environ={})
    size = next((made.folder / ".skillc/runs").glob("*/run.db")).stat().st_size
    tracemalloc.start()
    number = write_rows(found, found.metrics, tmp_path / "rows.jsonl", "jsonl")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert number > 100
    assert peak < size / 4

"""GAIA's own format, the agent's tools, and the sample: each question can be answered with the tools."""

import asyncio
import inspect
import json

import pytest
from benchmark import PROGRAMS, run
from benchmark import rows as rows_of

from programs.frame.layout import module
from programs.frame.load import load
from skillc.errors import SkillcError
from skillc.metrics.quasi_match import is_quasi_match

FOLDER = PROGRAMS / "gaia"
SPLITS = ("train", "validation", "test")


@pytest.fixture(scope="module")
def tools():
    return module("gaia", "tools")


@pytest.fixture(scope="module")
def rows():
    return {split: rows_of("gaia", split) for split in SPLITS}


async def called(tools, name, arguments):
    returned = getattr(tools, name)(**arguments)
    return await returned if inspect.isawaitable(returned) else returned


def test_every_question_of_the_sample_is_answered_by_what_its_tools_return(tools, rows):
    plays = module("gaia", "players")._plays()

    async def play(question):
        return "\n".join([await called(tools, *call) for call in plays[question]["calls"]])

    async def play_all(questions):
        return await asyncio.gather(*map(play, questions))

    every = [row for split in SPLITS for row in rows[split]]
    assert len(every) == len(plays) == 42
    seen = asyncio.run(play_all([row["Question"] for row in every]))
    for row, text in zip(every, seen, strict=True):
        own = plays[row["Question"]]
        assert all(part in text for part in own["evidence"]), row["Question"]
        assert is_quasi_match(own["answer"], row["Final answer"])
        mistake = own.get("mistake")
        assert (
            mistake is None or mistake["rule"] == "lookup" or not is_quasi_match(mistake["answer"], row["Final answer"])
        )


def test_every_rule_of_the_script_is_asked_for_in_every_split(rows):
    player = module("gaia", "players")
    for split in SPLITS:
        asked = {player._plays()[row["Question"]].get("mistake", {}).get("rule") for row in rows[split]}
        assert asked - {None} == set(player.RULES), split


def test_the_splits_share_no_question_and_no_file(rows):
    for column in ("id", "Question", "file_name"):
        values = [row[column] for split in SPLITS for row in rows[split] if row[column]]
        assert len(values) == len(set(values))
    named = {row["file_name"] for split in SPLITS for row in rows[split]} - {None}
    assert named == {path.relative_to(FOLDER / "data").as_posix() for path in (FOLDER / "data/files").iterdir()}


@pytest.mark.parametrize("name", ["../train.jsonl", "train.jsonl", "/etc/passwd", "files", "files/../plays.json", ""])
def test_only_an_attached_file_is_read(tools, name):
    with pytest.raises(FileNotFoundError):
        tools.read_file(name)


def test_a_file_that_is_no_text_is_for_python(tools, tmp_path, monkeypatch):
    monkeypatch.setattr(tools, "DATA", tmp_path)
    monkeypatch.setattr(tools, "FILES", tmp_path / "files")
    (tmp_path / "files").mkdir()
    (tmp_path / "files/a.xlsx").write_bytes(b"PK\0\1")
    with pytest.raises(ValueError, match="open it with `run_python`"):
        tools.read_file("files/a.xlsx")
    code = "print(len(open('a.xlsx', 'rb').read()))"
    assert asyncio.run(tools.run_python(code, "files/a.xlsx")) == "4"


# ---- the benchmark's own format ----

ITEM = {"task_id": "a", "Question": "how many?", "Level": 2, "Final answer": "7", "file_name": ""}


def items(folder, *given):
    (folder / "metadata.jsonl").write_text("".join(json.dumps({**ITEM, **each}) + "\n" for each in given))
    return folder


def test_metadata_and_attached_files_become_a_program_s_data(tmp_path):
    own = tmp_path / "validation"
    own.mkdir()
    (own / "b.csv").write_text("x\n1\n")
    items(own, {}, {"task_id": "b", "file_name": "b.csv"}, *({"task_id": f"c{i}"} for i in range(8)))
    assert load("gaia", own, None, tmp_path / "out") == {"train": 2, "validation": 1, "test": 7}
    found = [json.loads(line) for path in (tmp_path / "out/data").glob("*.jsonl") for line in path.open()]
    by_id = {row["id"]: row for row in found}
    assert by_id["a"] == {"id": "a", "Question": "how many?", "Level": "2", "Final answer": "7", "file_name": None}
    assert (tmp_path / "out/data" / by_id["b"]["file_name"]).read_text() == "x\n1\n"
    assert run("check", tmp_path / "out/ours.skill", "--data")[0] == 0


def test_the_test_set_has_no_answers(tmp_path):
    with pytest.raises(SkillcError, match="question `a` has no answer"):
        load("gaia", items(tmp_path, {"Final answer": "?"}), None, tmp_path / "out")


def test_a_folder_without_metadata_is_refused(tmp_path):
    with pytest.raises(SkillcError, match="has no metadata"):
        load("gaia", tmp_path, None, tmp_path / "out")

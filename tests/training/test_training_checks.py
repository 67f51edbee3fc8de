"""Checks before a training: each refuses or warns where it should, and is silent where nothing is wrong."""

import json
import sys
from pathlib import Path

import pytest

from skillc.errors import SkillcError
from skillc.outcomes import Example
from skillc.training import checks
from skillc.training.checks import check_base, check_rate, check_room, read_training_file
from skillc.training.distill import Distillation, Settings, union_of
from skillc.training.environment import find_trainer

MODEL = Path(__file__).parents[2] / "examples" / "local_model" / "model"


def message(role, text):
    return [{"role": role, "content": text}]


def sft_row(number, answer="an answer"):
    return {
        "prompt": message("user", f"question number {number} of the day"),
        "completion": message("assistant", answer),
    }


def dpo_row(number, chosen="right", rejected="wrong"):
    row = {"prompt": message("user", f"question number {number} of the day")}
    return {**row, "chosen": message("assistant", chosen), "rejected": message("assistant", rejected)}


@pytest.fixture
def write(tmp_path):
    def write(rows):
        path = tmp_path / "rows.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        return path

    return write


def test_enough_rows_have_no_warning_but_that_of_the_missing_manifest(write):
    for kind, row in (("sft", sft_row), ("dpo", dpo_row)):
        found = read_training_file(write([row(i) for i in range(60)]), kind, ())
        assert len(found.rows) == 60
        assert len(found.warnings) == 1
        assert "has no manifest" in found.warnings[0]


@pytest.mark.parametrize(("kind", "row", "few"), [("sft", sft_row, 49), ("dpo", dpo_row, 19)])
def test_few_rows_are_a_warning_and_very_few_are_refused(write, kind, row, few):
    assert "is few" in read_training_file(write([row(i) for i in range(few)]), kind, ()).warnings[0]
    with pytest.raises(SkillcError, match="train noise"):
        read_training_file(write([row(i) for i in range(9)]), kind, ())


@pytest.mark.parametrize(
    ("kind", "row", "problem"),
    [
        ("sft", sft_row(1, "  "), "line 61: `completion` has no answer"),
        ("sft", {"prompt": message("user", "x")}, "`completion` is missing"),
        ("sft", {"prompt": "x", "completion": "y"}, "`prompt` is missing or empty|not a list|missing"),
        ("sft", [], "not an object"),
        ("dpo", dpo_row(1, "same", "same"), "are the same"),
        ("dpo", sft_row(1), "`chosen` is missing"),
    ],
)
def test_a_row_of_another_layout_is_refused_with_its_line(write, kind, row, problem):
    good = [(sft_row if kind == "sft" else dpo_row)(i) for i in range(60)]
    with pytest.raises(SkillcError, match=problem) as raised:
        read_training_file(write([*good, row]), kind, ())
    assert raised.value.hint


def test_damaged_and_missing_files_are_errors(tmp_path):
    path = tmp_path / "rows.jsonl"
    with pytest.raises(SkillcError, match="cannot be read"):
        read_training_file(path, "sft", ())
    path.write_text("{no json\n")
    with pytest.raises(SkillcError, match="line 1: not JSON"):
        read_training_file(path, "sft", ())
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(SkillcError, match="cannot be read"):
        read_training_file(path, "sft", ())


def test_repeated_rows_and_contradictions_are_warnings(write):
    rows = [sft_row(i) for i in range(60)]
    found = read_training_file(write([*rows, rows[0], sft_row(1, "another answer")]), "sft", ()).warnings
    assert any("1 row of `rows.jsonl` repeats" in each for each in found)
    assert any("1 prompt of `rows.jsonl` has more than one completion" in each for each in found)


def test_a_test_example_is_found_by_its_text_and_others_are_not(write):
    def example(text):
        return Example("t1", {"text": text}, {}, {}, "t1")

    path = write([sft_row(i) for i in range(60)])
    with pytest.raises(SkillcError, match="1 example of the program's test split: `t1`"):
        read_training_file(path, "sft", [example("question number 7 of the day")])
    read_training_file(path, "sft", [example("question number 777 of the day")])
    read_training_file(path, "sft", [example("day")])


def test_learning_rates_pass_warn_or_are_refused():
    for rate, kind in ((2e-4, "sft"), (5e-4, "sft"), (2e-5, "dpo")):
        assert check_rate(rate, kind) is None
    for rate, kind in ((5e-5, "sft"), (2e-3, "sft"), (2e-4, "dpo")):
        assert "is unusual" in check_rate(rate, kind)
    for rate, kind in ((1e-6, "sft"), (0.1, "sft"), (1e-2, "dpo"), (-1.0, "sft"), (0.0, "dpo"), (float("nan"), "sft")):
        with pytest.raises(SkillcError, match="out of range"):
            check_rate(rate, kind)


def test_a_base_model_is_whole_or_its_missing_files_are_named(tmp_path):
    assert check_base(MODEL) == (MODEL / "model.safetensors").stat().st_size
    with pytest.raises(SkillcError, match="is not a folder"):
        check_base(tmp_path / "none")
    for each in MODEL.iterdir():
        (tmp_path / each.name).symlink_to(each)
    check_base(tmp_path)
    (tmp_path / "model.safetensors").unlink()
    with pytest.raises(SkillcError, match=r"lacks `model\.safetensors`"):
        check_base(tmp_path)
    index = {"weight_map": {"a": "part-1.safetensors", "b": "part-2.safetensors"}}
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index))
    (tmp_path / "part-1.safetensors").write_bytes(b"1234")
    with pytest.raises(SkillcError, match=r"lacks `part-2\.safetensors`"):
        check_base(tmp_path)
    (tmp_path / "part-2.safetensors").write_bytes(b"56")
    assert check_base(tmp_path) == 6


def test_memory_and_disk(tmp_path, monkeypatch):
    check_room(1_000, tmp_path / "out", gpu=False)
    monkeypatch.setattr(checks, "available_memory", lambda: 10**9)
    with pytest.raises(SkillcError, match=r"about 3\.0 GB of memory, and 1\.0 GB are free"):
        check_room(10**9, tmp_path / "out", gpu=False)
    check_room(10**9, tmp_path / "out", gpu=True)
    monkeypatch.setattr(checks, "_DISK", 10**18)
    with pytest.raises(SkillcError, match="of disk"):
        check_room(1_000, tmp_path / "out", gpu=True)


def test_an_interpreter_without_trl_is_an_error_with_the_commands(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SkillcError, match="has no TRL") as raised:
        find_trainer(tmp_path, {"SKILLC_TRAIN_PYTHON": sys.executable})
    assert 'install "skillc[train]"' in raised.value.hint
    with pytest.raises(SkillcError, match="no interpreter with TRL"):
        find_trainer(tmp_path, {})


def test_nothing_to_train_on_is_an_error(tmp_path):
    with pytest.raises(SkillcError, match="nothing to train on"):
        Distillation(tmp_path / "x.skill", MODEL, out=tmp_path / "a", settings=Settings(), sft=None, dpo=None)


def test_marks_of_several_files_are_joined_once():
    assert union_of(["b" * 10 + "a" * 10, "a" * 10, ""]) == "a" * 10 + "b" * 10

"""TSV and Parquet files and folders saved by `datasets`: the same rows, and each mistake at its row."""

from __future__ import annotations

import builtins
import datetime
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from test_data_read import GOOD, TASK, loaded, refusal, rows_of

from skillc.data.columns import profile
from skillc.data.dataset import load
from skillc.data.starter import start
from skillc.errors import SkillcError
from skillc.frontend import check_file, plan_file
from skillc.plan.schema import DataPlan, SplitPlan

SAME = "".join(json.dumps(row) + "\n" for row in GOOD)


def parquet(path: Path, rows: list[dict[str, Any]]) -> Path:
    arrow = pytest.importorskip("pyarrow")
    pytest.importorskip("pyarrow.parquet").write_table(arrow.Table.from_pylist(rows), path)
    return path


def test_a_tsv_file_gives_the_same_data(tmp_path: Path) -> None:
    text = "ticket\tteam\r\n" + "".join(f"{row['ticket']}\t{row['team']}\r\n" for row in GOOD)
    assert loaded(tmp_path, "a.tsv", text).digest == loaded(tmp_path, "a.jsonl", SAME).digest
    quoted = "ticket\tteam\n" + "".join(f'"{row["ticket"]}"\t{row["team"]}\n' for row in GOOD)
    assert loaded(tmp_path, "b.tsv", quoted).digest == loaded(tmp_path, "a.jsonl", SAME).digest


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("a.tsv", "ticket,team\na,b\n", ["line 1: the header has no tab", "separated by commas", "`a.csv`"]),
        ("a.csv", "ticket\tteam\na\tb\n", ["line 1: the header has no comma", "separated by tabs", "`a.tsv`"]),
        ("a.tsv", "ticket\tteam\na\tbilling\tc\n", ["line 2: 3 cells, but the header has 2", "contains a tab"]),
        ("a.tsv", "ticket\tteam\n", ["has no rows"]),
        ("a.xlsx", "x", ["`.xlsx` is not a supported format", ".tsv or .parquet"]),
    ],
)
def test_mistakes_in_tables_of_text(tmp_path: Path, name: str, text: str, words: list[str]) -> None:
    told = refusal(tmp_path, name, text)
    for word in words:
        assert word in told, told


def test_a_parquet_file_gives_the_same_data(tmp_path: Path) -> None:
    parquet(tmp_path / "a.parquet", GOOD)
    found = load(TASK, DataPlan(source="a.parquet", split=SplitPlan(unit="share", parts=(1, 1, 0))), tmp_path)
    assert found.digest == loaded(tmp_path, "a.jsonl", SAME).digest


def test_values_of_a_parquet_file_become_json(tmp_path: Path) -> None:
    row = {
        "n": 1, "x": 0.5, "none": None, "list": ["a"], "struct": {"a": 1}, "day": datetime.date(2026, 1, 2),
        "at": datetime.datetime(2026, 1, 2, 3, 4), "price": Decimal("1.50"), "nan": float("nan"),
    }  # fmt: skip
    assert rows_of(parquet(tmp_path / "a.parquet", [row])) == [
        {
            "n": 1, "x": 0.5, "none": None, "list": ["a"], "struct": {"a": 1}, "day": "2026-01-02",
            "at": "2026-01-02T03:04:00", "price": 1.5, "nan": None,
        }
    ]  # fmt: skip


def test_mistakes_in_a_parquet_file_name_the_row(tmp_path: Path) -> None:
    rows = [*GOOD, {"ticket": "x", "team": "Billing"}]
    parquet(tmp_path / "a.parquet", rows)
    with pytest.raises(SkillcError, match=r"`a\.parquet` row 21"):
        load(TASK, DataPlan(source="a.parquet", split=SplitPlan(unit="share", parts=(1, 1, 0))), tmp_path)
    parquet(tmp_path / "b.parquet", [{"ticket": b"\xff", "team": "billing"}])
    with pytest.raises(SkillcError, match=r"`b.parquet` row 1: the column `ticket` contains bytes"):
        rows_of(tmp_path / "b.parquet")
    (tmp_path / "c.parquet").write_bytes(b"PAR1 nothing")
    with pytest.raises(SkillcError, match=r"`c\.parquet`: is not a valid Parquet file"):
        rows_of(tmp_path / "c.parquet")
    parquet(tmp_path / "d.parquet", [{"a": None}])
    assert rows_of(tmp_path / "d.parquet") == [{"a": None}]


def test_new_reads_them_too(tmp_path: Path) -> None:
    rows = [{"ticket": f"a long text about parcel {i}", "team": "ab"[i % 2], "paid": bool(i % 3)} for i in range(60)]
    assert {c.name: c.kind for c in profile(parquet(tmp_path / "a.parquet", rows))} == {
        "ticket": "text", "team": "text", "paid": "bool",
    }  # fmt: skip
    (tmp_path / "a.tsv").write_text("ticket\tteam\n" + "".join(f"{r['ticket']}\t{r['team']}\n" for r in rows))
    for name in ("a.parquet", "a.tsv"):
        (tmp_path / "a.skill").write_text(start(tmp_path / name).text)
        assert check_file(tmp_path / "a.skill").diagnostics == ()
        plan = plan_file(tmp_path / "a.skill").plan
        assert len(load(plan.task, plan.data, tmp_path).train) == 24


@pytest.mark.parametrize(
    ("name", "library", "extra"), [("a.parquet", "pyarrow", "parquet"), ("a", "datasets", "datasets")]
)
def test_a_missing_library_is_named_with_its_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, library: str, extra: str
) -> None:
    if name == "a":
        (tmp_path / name).mkdir()
        (tmp_path / name / "state.json").write_text("{}")
    else:
        (tmp_path / name).write_bytes(b"PAR1")
    real = builtins.__import__

    def without(module: str, *rest: Any, **more: Any) -> Any:
        if module.partition(".")[0] == library:
            raise ImportError(module)
        return real(module, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(SkillcError, match=f"needs the library `{library}`") as raised:
        rows_of(tmp_path / name)
    assert f'pip install "skillc[{extra}]"' in str(raised.value.hint)


def test_a_folder_of_splits_names_them(tmp_path: Path) -> None:
    for split in ("train", "test"):
        (tmp_path / "hub" / split).mkdir(parents=True)
        (tmp_path / "hub" / split / "state.json").write_text("{}")
    (tmp_path / "hub" / "dataset_dict.json").write_text('{"splits": ["train", "test"]}')
    with pytest.raises(SkillcError, match="several splits") as raised:
        rows_of(tmp_path / "hub")
    assert "`hub/test`, `hub/train`" in str(raised.value.hint)


def test_a_saved_data_set_gives_the_same_data(tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets")
    names = ["billing", "shipping"]
    features = datasets.Features({"ticket": datasets.Value("string"), "team": datasets.ClassLabel(names=names)})
    rows = [{**row, "team": names.index(row["team"])} for row in GOOD]
    datasets.Dataset.from_list(rows, features=features).save_to_disk(tmp_path / "saved")
    found = load(TASK, DataPlan(source="saved", split=SplitPlan(unit="share", parts=(1, 1, 0))), tmp_path)
    assert found.digest == loaded(tmp_path, "a.jsonl", SAME).digest
    (tmp_path / "saved" / "state.json").write_text("{}")
    with pytest.raises(SkillcError, match="no valid saved data set"):
        rows_of(tmp_path / "saved")

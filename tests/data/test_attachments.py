"""Images and files that examples name: read before any call, hashed, and placed in a workspace."""

from __future__ import annotations

import json
import sys
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
from drawn import png
from hypothesis import given
from hypothesis import strategies as st

from skillc.data.attachments import attachments, fill_workspace
from skillc.data.dataset import Dataset, load, sizes_of
from skillc.errors import SkillcError
from skillc.images import image_tokens, most_image_tokens
from skillc.outcomes import Example
from skillc.plan.schema import DataPlan, FieldPlan, RolloutPlan, SplitPlan, TaskPlan, TypePlan

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "models"))
from model_plans import model, plan_of

TEAM = FieldPlan(name="team", type=TypePlan(kind="labels", labels=("billing", "shipping")), column="team")


def field(name: str, kind: str = "text", *, many: bool = False, **settings: Any) -> FieldPlan:
    item = TypePlan(kind=kind, optional=False)  # type: ignore[arg-type]
    type_ = TypePlan(kind="list", item=item) if many else TypePlan(kind=kind, optional=settings.pop("optional", False))  # type: ignore[arg-type]
    return FieldPlan(name=name, type=type_, column=name, **settings)


def task_of(*inputs: FieldPlan, kind: str = "predict") -> TaskPlan:
    return TaskPlan(inputs=inputs, outputs=(TEAM,), rollout=RolloutPlan(kind=kind))


def write(folder: Path, rows: list[dict[str, Any]]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "rows.jsonl").write_text("".join(json.dumps({"team": "billing", **row}) + "\n" for row in rows))


def read(root: Path, task: TaskPlan) -> Dataset:
    counts = SplitPlan(unit="examples", parts=(2, 2))  # type: ignore[arg-type]
    return load(task, DataPlan(source="data/rows.jsonl", split=counts), root)


def refusal(root: Path, rows: list[dict[str, Any]], task: TaskPlan) -> SkillcError:
    write(root / "data", rows)
    with pytest.raises(SkillcError) as raised:
        read(root, task)
    return raised.value


def pages(root: Path, number: int = 4, **size: int) -> list[dict[str, Any]]:
    folder = root / "data" / "pages"
    folder.mkdir(parents=True, exist_ok=True)
    for i in range(number):
        (folder / f"{i}.png").write_bytes(png(shade=i, **size))
    return [{"id": f"e{i}", "page": f"pages/{i}.png"} for i in range(number)]


# ---- images ---------------------------------------------------------------------------------------


def test_an_image_that_changes_on_disk_changes_the_data(tmp_path: Path) -> None:
    write(tmp_path / "data", pages(tmp_path))
    task = task_of(field("page", "image"))
    first = read(tmp_path, task)
    assert read(tmp_path, task).digest == first.digest
    (tmp_path / "data/pages/2.png").write_bytes(png(5, 6))
    again = read(tmp_path, task)
    assert again.digest != first.digest
    assert [e.id for e in again.train] == [e.id for e in first.train]


def test_lists_of_images_and_images_that_may_be_missing(tmp_path: Path) -> None:
    rows = pages(tmp_path)
    for i, row in enumerate(rows):
        row |= {"page": None if i % 2 else row["page"], "more": [row["page"], "pages/0.png"]}
    write(tmp_path / "data", rows)
    task = task_of(field("page", "image", optional=True), field("more", "image", many=True))
    dataset = read(tmp_path, task)
    examples = {e.id: e for e in (*dataset.train, *dataset.validation)}
    assert examples["e1"].inputs == {"page": None, "more": ["data/pages/1.png", "data/pages/0.png"]}
    assert set(examples["e1"].labels) == {"more"}
    label = examples["e2"].labels["more"]
    size = len(png(shade=2))
    assert label.splitlines()[0] == f"[image data/pages/2.png, 4 x 3 pixels, {size} bytes]"
    (tmp_path / "data/pages/3.png").write_bytes(png(9, 9))
    assert read(tmp_path, task).digest != dataset.digest


@pytest.mark.parametrize(
    ("name", "content", "message", "hint"),
    [
        ("x.png", None, "no file `pages/x.png`, named in `page`", "relative to the data file"),
        ("x.png", b"", "`pages/x.png` in `page` is empty", "PNG, JPEG, GIF or WebP"),
        ("x.svg", b"<svg/>", "`pages/x.svg` in `page` is not an image that models read", "PNG, JPEG, GIF or WebP"),
        ("x.png", png() + b"\0" * 20_000_001, "has 20.0 MB; models accept at most 20.0 MB", "smaller"),
        ("https://a.org/a.png", None, "`https://a.org/a.png` in `page` is an address", "download it"),
    ],
)
def test_an_image_that_no_model_reads_is_a_finding_at_its_row(
    tmp_path: Path, name: str, content: bytes | None, message: str, hint: str
) -> None:
    rows = pages(tmp_path)
    if content is not None:
        (tmp_path / "data/pages" / name).write_bytes(content)
    problem = refusal(
        tmp_path, [*rows, {"page": name if ":" in name else f"pages/{name}"}], task_of(field("page", "image"))
    )
    assert problem.message.startswith("`data/rows.jsonl` line 5: ")
    assert message in problem.message
    assert hint in str(problem.hint)


def test_the_sizes_have_the_tokens_of_images_apart(tmp_path: Path) -> None:
    write(tmp_path / "data", pages(tmp_path, width=900, height=600))
    task = task_of(field("page", "image"))
    plan = plan_of(model(name="anthropic/claude-x"), model("optimizer"), task=task)
    sizes = sizes_of(plan, read(tmp_path, task), tmp_path)
    assert sizes.images.mean == image_tokens("anthropic/claude-x", 900, 600) == 720
    assert sizes.images.most == most_image_tokens("anthropic/claude-x", 900, 600)
    # The optimizer reads a label.
    assert sizes.inputs.most < 40


# ---- texts ----------------------------------------------------------------------------------------


def notes(root: Path, texts: list[str | bytes]) -> list[dict[str, Any]]:
    folder = root / "data" / "notes"
    folder.mkdir(parents=True, exist_ok=True)
    for i, text in enumerate(texts):
        (folder / f"{i}.txt").write_bytes(text if isinstance(text, bytes) else text.encode())
    return [{"id": f"e{i}", "note": f"notes/{i}.txt"} for i in range(len(texts))]


def test_the_target_of_one_turn_reads_the_text_of_a_file(tmp_path: Path) -> None:
    write(tmp_path / "data", notes(tmp_path, ["one\n", "\ufefftwo", "drei €".encode("utf-16"), "four"]))
    dataset = read(tmp_path, task_of(field("note", "file")))
    found = {e.id: e.inputs["note"] for e in (*dataset.train, *dataset.validation)}
    assert found["e0"] == '<file name="notes/0.txt">\none\n</file>'
    assert found["e1"] == '<file name="notes/1.txt">\ntwo\n</file>'
    assert found["e2"] == '<file name="notes/2.txt">\ndrei €\n</file>'
    (tmp_path / "data/notes/3.txt").write_text("five")
    assert read(tmp_path, task_of(field("note", "file"))).digest != dataset.digest


def test_a_binary_file_is_a_finding_for_one_turn_only(tmp_path: Path) -> None:
    rows = notes(tmp_path, ["a", "b", b"\xff\xfe\0", b"PK\3\4\0\0"])
    problem = refusal(tmp_path, rows, task_of(field("note", "file")))
    assert problem.message == "`data/rows.jsonl` (2 rows, 3, 4): files in `note`: is not a text in UTF-8"
    assert "workspace" in str(problem.hint)
    dataset = read(tmp_path, task_of(field("note", "file"), kind="codex"))
    assert {e.inputs["note"] for e in (*dataset.train, *dataset.validation)} == {
        f"data/notes/{i}.txt" for i in range(4)
    }
    before = dataset.digest
    (tmp_path / "data/notes/3.txt").write_bytes(b"PK\3\4\0\1")
    assert read(tmp_path, task_of(field("note", "file"), kind="codex")).digest != before


def test_a_long_file_is_cut_within_its_name(tmp_path: Path) -> None:
    long = " ".join(f"w{i}" for i in range(400))
    rows = notes(tmp_path, [long, "short", "b", "c"])
    write(tmp_path / "data", rows)
    task = task_of(field("note", "file", limit=60, cut="middle"))
    dataset = read(tmp_path, task)
    found = {e.id: str(e.inputs["note"]) for e in (*dataset.train, *dataset.validation)}
    first, *_, last = found["e0"].splitlines()
    assert (first, last) == ('<file name="notes/0.txt">', "</file>")
    assert "tokens left out]" in found["e0"]
    assert found["e0"].splitlines()[-2].endswith("w399")
    (left_out,) = dataset.cuts["note"]
    assert 730 < left_out < 800
    plan = plan_of(task=task)
    assert sizes_of(plan, dataset, tmp_path).cuts["note"][0] == 1
    # The part that nobody reads still tells examples apart, so ids and splits do not depend on the limit.
    other = read(tmp_path, task_of(field("note", "file", limit=90, cut="end")))
    assert {e.id for e in other.train} == {e.id for e in dataset.train}


def test_a_list_of_files_is_one_text(tmp_path: Path) -> None:
    notes(tmp_path, ["one", "two", "three", "four"])
    rows = [{"id": str(i), "notes": [f"notes/{i}.txt", "notes/0.txt"]} for i in range(4)]
    write(tmp_path / "data", rows)
    dataset = read(tmp_path, task_of(field("notes", "file", many=True)))
    found = {e.id: e.inputs["notes"] for e in (*dataset.train, *dataset.validation)}
    assert found["2"] == '<file name="notes/2.txt">\nthree\n</file>\n<file name="notes/0.txt">\none\n</file>'


# ---- workspaces -----------------------------------------------------------------------------------


def agent_example(root: Path, *paths: str) -> tuple[Any, Example]:
    for path in paths:
        (root / "data" / path).parent.mkdir(parents=True, exist_ok=True)
        (root / "data" / path).write_text(path)
    task = task_of(field("files", "file", many=True), field("question"), kind="codex")
    plan = plan_of(task=task).model_copy(update={"data": DataPlan(source="data/rows.jsonl")})
    return plan, Example("e", {"files": [f"data/{path}" for path in paths], "question": "why?"}, {}, {}, "e")


def test_a_workspace_has_the_files_of_an_example_below_what_they_share(tmp_path: Path) -> None:
    plan, example = agent_example(tmp_path, "books/7/a.csv", "books/7/more/b.csv")
    found = attachments(plan, example, tmp_path)
    assert {name: path.read_text() for name, path in found.files.items()} == {
        "a.csv": "books/7/a.csv",
        "more/b.csv": "books/7/more/b.csv",
    }
    assert found.example.inputs == {"files": ["a.csv", "more/b.csv"], "question": "why?"}
    fill_workspace(found, tmp_path / "work")
    fill_workspace(found, tmp_path / "work")
    (tmp_path / "work/a.csv").write_text("changed")
    assert (tmp_path / "data/books/7/a.csv").read_text() == "books/7/a.csv"
    assert (tmp_path / "work/more/b.csv").read_text() == "books/7/more/b.csv"
    with pytest.raises(SkillcError, match=r"`a\.csv` cannot be copied to the workspace: File exists"):
        fill_workspace(found, tmp_path / "work")
    one = attachments(*agent_example(tmp_path, "books/7/a.csv"), tmp_path)
    assert list(one.files) == ["a.csv"]
    none = attachments(*agent_example(tmp_path), tmp_path)
    assert none.files == {}


def test_names_in_a_workspace_are_unique_and_safe(tmp_path: Path) -> None:
    plan, example = agent_example(tmp_path, "a/Notes.txt", "a/notes.txt", "a/no\ntes.txt", "a/c:\\x.txt")
    assert list(attachments(plan, example, tmp_path).files) == ["Notes.txt", "notes-2.txt", "no_tes.txt", "c__x.txt"]


NAMES = st.lists(
    st.lists(st.sampled_from(["a", "A", "b", "..x", "\u202e", "c\\d", "e:"]), min_size=1, max_size=3).map("/".join),
    min_size=1,
    max_size=6,
    unique=True,
)


@given(NAMES)
def test_no_name_leaves_the_workspace(names: list[str]) -> None:
    from skillc.data import attachments as module

    taken: set[str] = set()
    for name in names:
        place = module._free_place(module._safe(PurePosixPath(name)), taken)
        assert place.casefold() not in taken
        taken.add(place.casefold())
        parts = PurePosixPath(place).parts
        assert parts
        assert not {"..", ".", "/", ""} & set(parts)
        assert place.isprintable()
        assert "\\" not in place


def test_a_link_out_of_the_datas_folder_is_refused(tmp_path: Path) -> None:
    plan, example = agent_example(tmp_path, "a/one.txt", "a/two.txt")
    (tmp_path / "secret.txt").write_text("key")
    (tmp_path / "data/a/two.txt").unlink()
    (tmp_path / "data/a/two.txt").symlink_to(tmp_path / "secret.txt")
    with pytest.raises(SkillcError, match="a link out of the data's folder"):
        attachments(plan, example, tmp_path)
    (tmp_path / "data/a/two.txt").unlink()
    with pytest.raises(SkillcError, match=r"`two\.txt` of example `e` does not exist"):
        attachments(plan, example, tmp_path)

"""DocVQA's own formats: the challenge's `val_v1.0_withQT.json` beside its images, Parquet, SkillOpt's CSV files."""

from __future__ import annotations

import ast
import atexit
import json
import shutil
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from programs.frame.splits import identity, read_items
from skillc.errors import SkillcError
from skillc.images import image_info
from skillc.json_values import JsonObject

SIZES = (107, 53, 374)
FILES = ("page",)
_PATHS = ("image", "image_path", "page")
_MARK = "document_path:"


def items(source: Path) -> list[JsonObject]:
    """Read one file, or all of a folder. Images in Parquet files go to a folder that is removed at the end."""
    suffixes = (".parquet", ".json", ".jsonl", ".csv")
    files = sorted(path for path in source.rglob("*") if path.suffix in suffixes) if source.is_dir() else [source]
    return [item for path in files for item in _items_of(path)]


def _items_of(path: Path) -> Iterator[JsonObject]:
    if path.suffix == ".parquet":
        yield from _with_images(path)
        return
    if path.suffix == ".json":
        whole = json.loads(path.read_text(encoding="utf-8"))
        found = whole.get("data") if isinstance(whole, dict) else whole
        if not isinstance(found, list):
            raise SkillcError(f"`{path}` has no list of questions", hint="name the challenge's `val_v1.0_withQT.json`")
    else:
        found = read_items(path)
    for item in found:
        yield {**item, "beside": str(path.parent)}


def _with_images(path: Path) -> Iterator[JsonObject]:
    """Yield the rows of a Parquet file, with paths in place of images."""
    try:
        from pyarrow import parquet
    except ImportError:
        raise SkillcError("Parquet files need pyarrow", hint='`pip install "skillc[parquet]"`') from None
    for batch in parquet.ParquetFile(path).iter_batches(batch_size=16):
        for item in batch.to_pylist():
            image = item.get("image")
            content = image.get("bytes") if isinstance(image, dict) else None
            if content is not None:
                info = image_info(content)
                file = _extracted() / f"{identity(item)}.{info.format if info is not None else 'png'}"
                file.write_bytes(content)
                item["image"] = str(file)
            yield item


@cache
def _extracted() -> Path:
    folder = tempfile.mkdtemp(prefix="docvqa-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)


def row(item: JsonObject, folder: Path) -> JsonObject | None:
    """Return question, page and answers; None for an id alone.

    Raises:
        SkillcError: there is no answer, or the image of the page is missing.
    """
    if not item.get("question"):
        return None
    own = identity(item)
    question, _, tail = str(item["question"]).partition(_MARK)
    answers = answers_of(item.get("answers") or item.get("answer") or item.get("ground_truth"))
    if not answers:
        raise SkillcError(f"item `{own}` has no answer", hint="the challenge publishes none for its test split")
    named = next((str(item[key]) for key in _PATHS if item.get(key)), tail.strip())
    start = Path(str(item.get("beside") or folder))
    page = next(
        (base / named for base in (start, *start.resolve().parents) if named and (base / named).is_file()), None
    )
    if page is None:
        raise SkillcError(f"item `{own}` names the page `{named}`, which is no file below `{start}`")
    document = str(item.get("docId") or item.get("document") or page.stem)
    return {
        "id": own,
        "page": str(page.resolve()),
        "document": document,
        "question": question.strip(),
        "answers": answers,
    }


def answers_of(given: object) -> list[str]:
    """Return right answers from a list, or from a text that is one, as in CSV files."""
    if isinstance(given, str) and given.strip().startswith("["):
        try:
            given = ast.literal_eval(given.strip())
        except (ValueError, SyntaxError):
            given = [given]
    every = given if isinstance(given, list | tuple) else [given]
    return [str(each).strip() for each in every if each is not None and str(each).strip()]

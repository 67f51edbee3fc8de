"""Put a benchmark's own data into a copy of its program: `python -m programs.frame.load NAME --from A --into B`.

The copy has the program's files, without what was compiled on the sample, and the data of the benchmark in place of the
sample. Nothing in the repository changes, so the data cannot be committed with it.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

import click

from programs.frame.layout import PROGRAMS, Reader, reader
from programs.frame.splits import SPLITS, draw, identity, joined, read_splits
from skillc.errors import SkillcError
from skillc.json_values import JsonObject

COPIED = ("*.skill", "*.py")
DATA, FILES = "data", "files"


def load(name: str, source: Path | None, splits: Path | None, into: Path) -> dict[str, int]:
    """Write a copy of a program with the benchmark's data, and return the number of examples of each split.

    Args:
        name: the benchmark.
        source: its own files; None where the splits hold whole items.
        splits: a folder of SkillOpt's splits; None draws them by SkillOpt's rule.
        into: the folder to write, which must be new or empty.

    Raises:
        SkillcError: there is no such benchmark, nothing to read, an item without a right answer, or the folder is used.
    """
    read = reader(name)
    if into.exists() and (not into.is_dir() or any(into.iterdir())):
        raise SkillcError(f"`{into}` is not empty", hint="name a new folder")
    found = _rows_by_split(read, source, splits)
    into.mkdir(parents=True, exist_ok=True)
    for pattern in COPIED:
        for path in (PROGRAMS / name).glob(pattern):
            shutil.copy(path, into)
    (into / DATA).mkdir()
    for split, rows in found.items():
        text = "".join(json.dumps(_kept(row, read.FILES, into / DATA), ensure_ascii=False) + "\n" for row in rows)
        (into / DATA / f"{split}.jsonl").write_text(text, encoding="utf-8")
    return {split: len(rows) for split, rows in found.items()}


def _rows_by_split(read: Reader, source: Path | None, splits: Path | None) -> dict[str, list[JsonObject]]:
    if source is None and splits is None:
        raise SkillcError(
            "there is nothing to read", hint="name the benchmark's files with --from, its splits with --splits"
        )
    items = read.items(source) if source is not None else []
    folder = source if source is None or source.is_dir() else source.parent
    if splits is None:
        assert folder is not None
        return draw(_rows(read, items, folder))
    parts = read_splits(splits)
    if source is None or folder is None:
        return {split: _rows(read, each, splits) for split, each in parts.items()}
    wanted = {identity(item) for each in parts.values() for item in each}
    rows = _rows(read, [item for item in items if identity(item) in wanted], folder)
    return joined(parts, {str(row["id"]): row for row in rows})


def _rows(read: Reader, items: Sequence[JsonObject], folder: Path) -> list[JsonObject]:
    rows = []
    for item in items:
        row = read.row(item, folder)
        if row is None:
            raise SkillcError(
                f"item `{identity(item)}` is an id alone", hint="name the benchmark's own files with --from"
            )
        rows.append(row)
    return rows


def _kept(row: JsonObject, columns: Sequence[str], folder: Path) -> JsonObject:
    """Copy the files that a row names, and return the row with their paths in the folder.

    Raises:
        SkillcError: a file is missing.
    """
    kept = dict(row)
    for column in columns:
        value = row.get(column)
        paths = [Path(str(each)) for each in (value if isinstance(value, list) else [value] if value else [])]
        names = [_copied(path, str(row["id"]), folder) for path in paths]
        kept[column] = list(names) if isinstance(value, list) else names[0] if names else None
    return kept


def _copied(path: Path, identity: str, folder: Path) -> str:
    if not path.exists():
        raise SkillcError(
            f"item `{identity}` names `{path}`, which is no file", hint="download the benchmark's files too"
        )
    # Many items share a file, and two folders may have files of one name.
    target = folder / FILES / path.parent.name / path.name
    if not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        (shutil.copytree if path.is_dir() else shutil.copy)(path, target)
    return target.relative_to(folder).as_posix()


def _report(name: str, counts: Mapping[str, int], into: Path) -> str:
    sizes = ", ".join(f"{count:,} {split}" for split, count in counts.items())
    lines = [f"wrote {sizes} examples to {into}"]
    published = dict(zip(SPLITS, reader(name).SIZES, strict=True))
    if dict(counts) != published:
        lines.append(f"the published splits have {' : '.join(f'{each:,}' for each in published.values())}")
    return "\n".join([*lines, f"next: skillc plan {into / 'paper.skill'} --model target=PROVIDER/NAME"])


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("name")
@click.option("--from", "source", type=click.Path(exists=True, path_type=Path), help="The benchmark's own files.")
@click.option(
    "--splits", type=click.Path(exists=True, file_okay=False, path_type=Path), help="A folder of SkillOpt's splits."
)
@click.option("--into", required=True, type=click.Path(path_type=Path), help="The folder to write.")
def main(name: str, source: Path | None, splits: Path | None, into: Path) -> None:
    """Put the data of the benchmark NAME into a copy of its program.

    Without --splits all items are drawn as SkillOpt does: shuffled with seed 42, 2 : 1 : 7.
    """
    try:
        click.echo(_report(name, load(name, source, splits, into), into))
    except SkillcError as problem:
        hint = f"\n  help: {problem.hint}" if problem.hint else ""
        raise click.ClickException(f"{problem}{hint}") from None


if __name__ == "__main__":
    main()

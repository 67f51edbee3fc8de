"""The saved tables of the parser: a help that may fail in any way, and can do no harm."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from skillc.syntax import grammar
from skillc.syntax.newlines import Newlines
from skillc.syntax.scan import scan
from skillc.syntax.source import Source
from skillc.syntax.transform import Builder

PROGRAM = "language 1\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SKILLC_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


def works() -> None:
    builder = Builder()
    builder.begin(Source("", PROGRAM), range(len(PROGRAM) + 1), scan(PROGRAM))
    parser = grammar.load(builder, Newlines())
    assert len(parser.parse(PROGRAM)) == 1  # type: ignore[arg-type]


def builds(monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether loading has to build."""
    built = []
    original = grammar.build
    monkeypatch.setattr(grammar, "build", lambda *a, **k: (built.append(1), original(*a, **k))[1])
    works()
    monkeypatch.setattr(grammar, "build", original)
    return bool(built)


def saved(folder: Path) -> Path:
    (file,) = folder.iterdir()
    return file


def test_tables_are_saved_once_and_then_read(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert builds(monkeypatch)
    assert not builds(monkeypatch)
    assert saved(folder).stat().st_mode & 0o077 == 0


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: b"",
        lambda data: data[: len(data) // 2],
        lambda data: data.replace(b"NAME", b"MANE", 1),
        lambda data: b"\x80\x04cos\nsystem\n(S'false'\ntR.",
        lambda data: b"\n[]",
        lambda data: b"\xff" * 100,
    ],
)
def test_damaged_tables_are_built_again(damage, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    works()
    file = saved(folder)
    file.write_bytes(damage(file.read_bytes()))
    assert builds(monkeypatch)
    assert not builds(monkeypatch)


def test_sound_json_with_wrong_tables(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import hashlib

    works()
    body = json.dumps({"data": {}, "memo": {}}).encode()
    saved(folder).write_bytes(hashlib.sha256(body).hexdigest().encode() + b"\n" + body)
    assert builds(monkeypatch)


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="no owners here")
def test_tables_that_others_can_write_are_not_read(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    works()
    saved(folder).chmod(0o666)
    assert builds(monkeypatch)
    monkeypatch.setattr(os, "getuid", lambda: 987_654)
    assert builds(monkeypatch)


def test_a_folder_that_cannot_be_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("SKILLC_CACHE_DIR", str(tmp_path / "file" / "cache"))
    works()


def test_a_folder_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if os.geteuid() == 0:
        monkeypatch.setattr(grammar.tempfile, "mkstemp", _refuse)
    tmp_path.chmod(0o500)
    monkeypatch.setenv("SKILLC_CACHE_DIR", str(tmp_path))
    works()
    assert list(tmp_path.iterdir()) == []


def _refuse(**_: object) -> None:
    raise PermissionError


def test_no_home(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SKILLC_CACHE_DIR", raising=False)
    monkeypatch.setattr(grammar, "cache_folder", lambda: None)
    works()


def test_a_directory_in_the_place_of_the_file(folder: Path) -> None:
    works()
    file = saved(folder)
    file.unlink()
    (file / "inside").mkdir(parents=True)
    works()


def test_many_processes_at_once(folder: Path) -> None:
    code = "from skillc.syntax.parser import parse; from skillc.syntax.source import Source; "
    code += "assert not parse(Source('x', 'goal x = a')).diagnostics"
    running = [subprocess.Popen([sys.executable, "-c", code]) for _ in range(4)]
    assert [each.wait(60) for each in running] == [0] * 4
    assert saved(folder).name.endswith(".json")

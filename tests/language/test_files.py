from __future__ import annotations

import os
from pathlib import Path

import pytest

from skillc.syntax import files
from skillc.syntax.files import SourceError, read_main, read_source


def message(path: Path) -> str:
    with pytest.raises(SourceError) as caught:
        read_source(path)
    return str(caught.value)


def written(tmp_path: Path, data: bytes) -> Path:
    path = tmp_path / "a.skill"
    path.write_bytes(data)
    return path


def test_a_byte_order_mark_is_dropped(tmp_path: Path) -> None:
    assert read_source(written(tmp_path, b"\xef\xbb\xbfgoal x = a\r\n")).text == "goal x = a\r\n"


def test_missing(tmp_path: Path) -> None:
    written(tmp_path, b"")
    with pytest.raises(SourceError) as caught:
        read_source(tmp_path / "b.skill")
    assert str(caught.value) == f"there is no file `{tmp_path / 'b.skill'}`"
    assert caught.value.hint == f"did you mean `{tmp_path / 'a.skill'}`?"


def test_no_folder_either(tmp_path: Path) -> None:
    assert "there is no file" in message(tmp_path / "no" / "b.skill")
    written(tmp_path, b"")
    assert "can't be read: not a directory" in message(tmp_path / "a.skill" / "b.skill")


def test_folder(tmp_path: Path) -> None:
    assert "is a folder" in message(tmp_path)


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="everything may be read")
def test_not_readable(tmp_path: Path) -> None:
    path = written(tmp_path, b"")
    path.chmod(0)
    assert "may not be read" in message(path)


def test_not_utf8(tmp_path: Path) -> None:
    assert "is not UTF-8: line 2, byte 4 is 0xff" in message(written(tmp_path, b"a\nb \xff"))
    assert "is UTF-16" in message(written(tmp_path, "goal".encode("utf-16")))


def test_zero_byte(tmp_path: Path) -> None:
    assert "line 2 contains a zero byte (byte 3)" in message(written(tmp_path, b"a\nb\0"))


def test_zipped(tmp_path: Path) -> None:
    assert "is a zipped skill" in message(written(tmp_path, b"PK\x03\x04\xff\0"))


def test_too_large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "SIZE_LIMIT", 10)
    assert "larger than" in message(written(tmp_path, b"a" * 11))
    assert read_source(written(tmp_path, b"a" * 10)).text == "a" * 10


def test_devices(tmp_path: Path) -> None:
    assert "is a device" in message(Path(os.devnull))
    if hasattr(os, "mkfifo"):
        os.mkfifo(tmp_path / "pipe")
        assert "is a device or a pipe" in message(tmp_path / "pipe")


def test_a_name_with_a_zero_byte() -> None:
    assert "can't be read" in message(Path("a\0b"))


@pytest.mark.parametrize(
    ("name", "what", "hint"),
    [
        ("notes.md", "a markdown document", 'use "./notes.md" as today'),
        ("SKILL.md", "a skill", 'use "./SKILL.md" as today'),
        ("rows.csv", "a data file", "skillc new"),
        ("rows.jsonl", "a data file", 'data { source = "rows.jsonl" }'),
        ("own.py", "a Python file", 'python("module:function")'),
        ("skill.lock", "a lock", "--locked"),
    ],
)
def test_another_file_is_called_what_it_is(tmp_path: Path, name: str, what: str, hint: str) -> None:
    (tmp_path / name).write_text("# Rules\n\n- Be brief.\n")
    with pytest.raises(SourceError) as error:
        read_main(tmp_path / name)
    assert error.value.message == f"`{tmp_path / name}` is {what}, not a program"
    assert hint in str(error.value.hint)

"""Hostile files through the real command line: each has its message and its exit status, none a traceback."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import forked
import pytest

POSIX = pytest.mark.skipif(os.name == "nt", reason="needs POSIX")
MEMORY = 1_500_000_000
PROGRAM = "language 1\nmetric right = exact_match(team)\n"


def limited() -> None:
    import resource

    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CPU, (15, 15))


def skillc(*arguments: str | bytes, cwd: Path, redirect: str = "", limit: bool = False) -> subprocess.CompletedProcess:
    # Limits, closed streams and the encoding of a terminal belong to a process of its own.
    own = bool(redirect) or limit or "PYTHONIOENCODING" in os.environ
    command: list[str | bytes] = [*([sys.executable, "-m", "skillc"] if own else forked.command()), *arguments]
    if redirect:
        command = ["sh", "-c", f'exec "$@" {redirect}', "sh", *command]
    return subprocess.run(
        command,
        cwd=cwd,
        capture_output=True,
        timeout=120,
        stdin=subprocess.DEVNULL,
        preexec_fn=limited if limit and os.name != "nt" else None,
        check=False,
    )


def output(done: subprocess.CompletedProcess) -> str:
    text = (done.stdout + done.stderr).decode("utf-8", "replace")
    assert "Traceback" not in text, text
    assert "bug in skillc" not in text, text
    assert "\x1b" not in text
    return text


# ---- files that are no program --------------------------------------------------------------------

FILES = {
    "zipped": (b"PK\x03\x04a", "is a zipped skill"),
    "an empty zip": (b"PK\x05\x06" + bytes(18), "is a zipped skill"),
    "gzip": (b"\x1f\x8b\x08\0", "is a gzip archive"),
    "pdf": (b"%PDF-1.4\n%\xe2\xe3", "is a PDF"),
    "executable": (b"\x7fELF\2\1", "is an executable"),
    "utf-16": ("language 1".encode("utf-16"), "is UTF-16, not UTF-8"),
    "utf-16 without a mark": ("language 1".encode("utf-16-le"), "is UTF-16, not UTF-8"),
    "utf-16, the other end first": ("language 1".encode("utf-16-be"), "is UTF-16, not UTF-8"),
    "utf-32": ("language 1".encode("utf-32"), "is UTF-32, not UTF-8"),
    "latin-1": ("# größe".encode("latin-1"), "is not UTF-8: line 1, byte 4 is 0xf6"),
    "a surrogate": (b"# \xed\xa0\x80", "is not UTF-8"),
    "a zero byte": (b"language 1\n\0", "line 2 contains a zero byte"),
}


@pytest.mark.parametrize("name", FILES)
def test_a_file_that_is_no_program(name: str, tmp_path: Path) -> None:
    data, wanted = FILES[name]
    (tmp_path / "a.skill").write_bytes(data)
    done = skillc("check", "a.skill", cwd=tmp_path)
    assert done.returncode == 2
    assert wanted in output(done)


@pytest.mark.parametrize("verb", [["check"], ["plan"], ["compile", "--offline"]])
def test_each_verb_that_reads_a_program_says_so(verb: list[str], tmp_path: Path) -> None:
    (tmp_path / "a.skill").write_bytes(b"PK\x03\x04a")
    done = skillc(*verb, "a.skill", cwd=tmp_path)
    assert done.returncode == 2
    assert "is a zipped skill" in output(done)


@POSIX
def test_what_is_no_file(tmp_path: Path) -> None:
    (tmp_path / "folder.skill").mkdir()
    (tmp_path / "dangling.skill").symlink_to("nothing")
    (tmp_path / "loop.skill").symlink_to("loop.skill")
    os.mkfifo(tmp_path / "pipe.skill")
    cases = {
        "dangling.skill": "there is no file",
        "loop.skill": "too many levels of symbolic links",
        "pipe.skill": "is a device or a pipe",
        "/dev/zero": "is a device or a pipe",
        "missing.skill": "there is no file",
        "a" * 5000: "",
    }
    for name, wanted in cases.items():
        done = skillc("check", name, cwd=tmp_path)
        assert done.returncode == 2, name
        assert wanted in output(done), name


@POSIX
def test_a_socket(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind("s.skill")
        done = skillc("check", "s.skill", cwd=tmp_path)
    assert done.returncode == 2
    assert "is a device or a pipe" in output(done)


@pytest.mark.skipif(sys.platform != "linux", reason="other systems refuse such names")
@pytest.mark.parametrize("name", [b"a\nb.skill", b"a\x1b[31mb.skill", b"a\xff.skill", "a\u202eb.skill".encode()])
def test_hostile_names_of_files(name: bytes, tmp_path: Path) -> None:
    place = os.path.join(os.fsencode(tmp_path), name)
    Path(os.fsdecode(place)).write_text("language 1\nmetric a = )", "utf-8")
    for style in ("text", "concise", "json", "sarif", "github"):
        done = skillc("check", name, "--format", style, cwd=tmp_path)
        assert done.returncode == 1
        assert "SK004" in output(done)
    Path(os.fsdecode(place)).unlink()
    done = skillc("check", name, cwd=tmp_path)
    assert done.returncode == 2
    assert "there is no file" in output(done)
    # A path in a message of every verb, not of `check` alone.
    done = skillc("plan", name, cwd=tmp_path)
    assert done.returncode == 2
    assert "\u202e" not in output(done)


# ---- streams --------------------------------------------------------------------------------------


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
def test_a_full_disk(tmp_path: Path) -> None:
    (tmp_path / "a.skill").write_text("language 1\nmetric a = )", "utf-8")
    done = skillc("check", "a.skill", cwd=tmp_path, redirect=">/dev/full")
    assert done.returncode == 2
    assert output(done).startswith("error: the output can't be written: no space left on device")
    assert skillc("plan", "missing.skill", cwd=tmp_path, redirect="2>/dev/full").returncode == 2


@POSIX
@pytest.mark.parametrize(("redirect", "status"), [(">&-", 1), ("2>&-", 1), ("<&-", 1), (">&- 2>&- <&-", 1)])
def test_closed_streams(redirect: str, status: int, tmp_path: Path) -> None:
    (tmp_path / "a.skill").write_text("language 1\nmetric a = )", "utf-8")
    done = skillc("check", "a.skill", cwd=tmp_path, redirect=redirect)
    output(done)
    assert done.returncode == status


@POSIX
def test_a_reader_that_has_gone(tmp_path: Path) -> None:
    lines = "".join(f"metric a{i} = exact_match(wrong)\n" for i in range(3000))
    (tmp_path / "a.skill").write_text("language 1\n" + lines, "utf-8")
    command = f'"{sys.executable}" -m skillc check a.skill | head -c 1 >/dev/null; exit ${{PIPESTATUS[0]}}'
    done = subprocess.run(["bash", "-c", command], cwd=tmp_path, capture_output=True, timeout=120, check=False)
    assert done.returncode == 141
    assert done.stderr == b""


@pytest.mark.parametrize("encoding", ["latin-1", "ascii", "utf-8"])
def test_terminals_of_any_encoding(encoding: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONIOENCODING", encoding)
    (tmp_path / "a.skill").write_text("language 1\nmetric größe数 = )", "utf-8")
    done = skillc("check", "a.skill", cwd=tmp_path)
    assert done.returncode == 1
    assert "SK004" in output(done)


# ---- large and deep texts -------------------------------------------------------------------------

SIZE = 500_000
# At this size a time that grows with the square of the length is far beyond the limit of CPU time.
LARGE = {
    "a string": 'rubric r = "' + "a" * SIZE + '"',
    "a text": 'rubric r = """' + "a" * SIZE + '"""',
    "an open string": 'rubric r = "' + "a" * SIZE,
    "a name": "metric " + "a" * SIZE + " = 1",
    "a number": "metric a = " + "9" * SIZE,
    "a comment": "# " + "a" * SIZE,
    "a sum": "metric a = " + "1 + " * (SIZE // 4) + "1",
    "spaces": "metric a =" + " " * SIZE + "1",
    "comments": "# a\n" * (SIZE // 20),
    "documentation": "/// a\n" * (SIZE // 20),
    "blank lines": "\n" * SIZE + "metric a = right",
    "line ends of windows": "\r\n" * (SIZE // 2),
    "carriage returns": "\r" * (SIZE // 5),
    "hidden characters": "# " + "\u202e" * (SIZE // 5),
    "brackets": "([{" * (SIZE // 20),
    "mistakes": "a @\n" * (SIZE // 5),
}


@POSIX
@pytest.mark.parametrize("name", LARGE)
@pytest.mark.quick_cases(8)
def test_large_texts_take_linear_time(name: str, tmp_path: Path) -> None:
    (tmp_path / "a.skill").write_bytes((PROGRAM + LARGE[name] + "\n").encode())
    done = skillc("check", "a.skill", "--format", "concise", cwd=tmp_path, limit=True)
    assert done.returncode == 1
    assert len(output(done)) < 50_000


DEEP = 10_000
NESTED = {
    "parentheses": "metric a = " + "(" * DEEP + "1" + ")" * DEEP,
    "brackets": "metric a = " + "[" * DEEP + "1" + "]" * DEEP,
    "braces": "a {" * DEEP + "}" * DEEP,
    "not": "metric a = " + "not " * DEEP + "right",
    "minus": "metric a = " + "-" * DEEP + "1",
    "members": "metric a = a" + ".b" * DEEP,
    "calls": "metric a = f" + "(" * DEEP + ")" * DEEP,
    "types": "task { input a: " + "list[" * DEEP + "text" + "]" * DEEP + " }",
}


@pytest.mark.parametrize("name", NESTED)
@pytest.mark.quick_cases(4)
def test_ten_thousand_levels(name: str, tmp_path: Path) -> None:
    (tmp_path / "a.skill").write_text(PROGRAM + NESTED[name], "utf-8")
    done = skillc("check", "a.skill", "--format", "concise", cwd=tmp_path, limit=os.name != "nt")
    assert done.returncode == 1
    assert "nested more than 100 deep" in output(done)


def test_a_union_of_ten_thousand_is_wide_and_not_deep(tmp_path: Path) -> None:
    labels = " | ".join(f'"l{i}"' for i in range(DEEP))
    (tmp_path / "a.skill").write_text(f"{PROGRAM}task {{ input a: text; output team: {labels} }}", "utf-8")
    done = skillc("check", "a.skill", "--format", "concise", cwd=tmp_path)
    assert "SK010" not in output(done)

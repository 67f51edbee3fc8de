"""`skillc fmt` as a user types it."""

import json
import os
import stat
import subprocess
import sys

import pytest
from conftest_cli import skillc

UGLY = "language 1\n\n\n\ngoal x=a   # why\n"
FORMATTED = "language 1\n\ngoal x = a  # why\n"
BROKEN = "goal x = (a\n"


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "ugly.skill").write_text(UGLY)
    (tmp_path / "good.skill").write_text(FORMATTED)
    return tmp_path


def piped(data, *arguments, folder):
    """`skillc fmt` with bytes on its standard input."""
    command = [sys.executable, "-m", "skillc", "fmt", *arguments]
    return subprocess.run(command, cwd=folder, input=data, capture_output=True, timeout=600, check=False)


def test_files_are_rewritten_and_counted(folder):
    before = (folder / "good.skill").stat()
    done = skillc("fmt", "ugly.skill", "good.skill", folder=folder)
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr == "reformatted ugly.skill\n1 file reformatted, 1 file left unchanged\n"
    assert (folder / "ugly.skill").read_text() == FORMATTED
    after = (folder / "good.skill").stat()
    assert (after.st_mtime_ns, after.st_ino) == (before.st_mtime_ns, before.st_ino)
    again = skillc("fmt", "ugly.skill", "good.skill", folder=folder)
    assert again.stderr == "2 files left unchanged\n"


def test_check_names_what_would_change_and_writes_nothing(folder):
    done = skillc("fmt", "--check", ".", folder=folder)
    assert (done.returncode, done.stdout) == (1, "ugly.skill\n")
    assert done.stderr == "1 file would be reformatted, 1 file already formatted\n"
    assert (folder / "ugly.skill").read_text() == UGLY
    assert skillc("fmt", "--check", "good.skill", folder=folder).returncode == 0


def test_diff_shows_what_would_change_and_writes_nothing(folder):
    done = skillc("fmt", "--diff", ".", folder=folder)
    assert done.returncode == 1
    assert done.stdout.splitlines() == [
        *("--- ugly.skill", "+++ ugly.skill", "@@ -1,5 +1,3 @@", " language 1", " "),
        *("-", "-", "-goal x=a   # why", "+goal x = a  # why"),
    ]
    assert (folder / "ugly.skill").read_text() == UGLY


def test_a_diff_is_a_patch(folder):
    (folder / "ugly.skill").write_text(UGLY.rstrip("\n"))
    patch = skillc("fmt", "--diff", "ugly.skill", folder=folder).stdout
    assert "\n\\ No newline at end of file\n" in patch
    done = subprocess.run(["git", "apply", "-p0", "-"], cwd=folder, input=patch, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert (folder / "ugly.skill").read_text() == FORMATTED


def test_folders_are_searched_but_not_hidden_ones(folder):
    for name in (".git", ".skillc", ".venv", "below", "below/.hidden"):
        (folder / name).mkdir()
        (folder / name / "one.skill").write_text(UGLY)
    (folder / "below" / "notes.txt").write_text(UGLY)
    done = skillc("fmt", "--check", ".", folder=folder)
    assert done.stdout.splitlines() == ["ugly.skill", os.path.join("below", "one.skill")]


def test_standard_input_becomes_standard_output(folder):
    done = piped(UGLY.encode(), "-", folder=folder)
    assert (done.returncode, done.stdout) == (0, FORMATTED.encode())
    assert piped(FORMATTED.encode(), "--check", "-", folder=folder).returncode == 0
    done = piped(UGLY.encode(), "--check", "-", folder=folder)
    assert (done.returncode, done.stdout.split()) == (1, [b"<stdin>"])
    done = piped(UGLY.encode(), "--diff", "-", folder=folder)
    assert done.returncode == 1
    assert b"+goal x = a  # why" in done.stdout


def test_broken_standard_input_prints_nothing_but_what_is_wrong(folder):
    done = piped(BROKEN.encode(), "-", folder=folder)
    assert (done.returncode, done.stdout) == (2, b"")
    assert b"SK003" in done.stderr
    assert b"<stdin>:1:10" in done.stderr
    assert piped(b"\xff\xfea", "-", folder=folder).returncode == 2


def test_standard_input_is_formatted_alone(folder):
    done = piped(UGLY.encode(), "-", "good.skill", folder=folder)
    assert done.returncode == 2
    assert b"can't be used with other paths" in done.stderr


def test_line_ends_and_a_byte_order_mark_go(folder):
    (folder / "windows.skill").write_bytes(b"\xef\xbb\xbf" + FORMATTED.replace("\n", "\r\n").encode())
    done = skillc("fmt", "--check", "windows.skill", folder=folder)
    assert done.returncode == 1
    assert skillc("fmt", "windows.skill", folder=folder).returncode == 0
    assert (folder / "windows.skill").read_bytes() == FORMATTED.encode()
    (folder / "mark.skill").write_bytes(b"\xef\xbb\xbf" + FORMATTED.encode())
    assert skillc("fmt", "mark.skill", folder=folder).returncode == 0
    assert (folder / "mark.skill").read_bytes() == FORMATTED.encode()


def test_one_broken_file_keeps_no_other_from_being_formatted(folder):
    (folder / "broken.skill").write_text(BROKEN)
    (folder / "latin.skill").write_bytes(b"goal x = a # caf\xe9\n")
    done = skillc("fmt", "broken.skill", "latin.skill", "missing.skill", "ugly.skill", folder=folder)
    assert done.returncode == 2
    assert done.stdout == ""
    assert "broken.skill:1:10" in done.stderr
    assert "`latin.skill` is not UTF-8" in done.stderr
    assert "there is no file `missing.skill`" in done.stderr
    assert done.stderr.endswith("1 file reformatted, 3 files could not be formatted\n")
    assert (folder / "ugly.skill").read_text() == FORMATTED
    assert (folder / "broken.skill").read_text() == BROKEN
    assert "Traceback" not in done.stderr


def test_an_object_for_programs(folder):
    (folder / "broken.skill").write_text(BROKEN)
    done = skillc("fmt", "--json", "--check", ".", folder=folder)
    found = json.loads(done.stdout)
    assert done.returncode == 2
    assert found["format_version"] == 1
    assert {each["file"]: each["status"] for each in found["files"]} == {
        "broken.skill": "failed",
        "good.skill": "unchanged",
        "ugly.skill": "would reformat",
    }
    assert [each["code"] for each in found["diagnostics"]] == ["SK003"]


@pytest.mark.skipif(os.name != "posix", reason="permissions of POSIX")
def test_permissions_stay(folder):
    (folder / "ugly.skill").chmod(0o640)
    assert skillc("fmt", "ugly.skill", folder=folder).returncode == 0
    assert stat.S_IMODE((folder / "ugly.skill").stat().st_mode) == 0o640


@pytest.mark.skipif(os.name != "posix", reason="links of POSIX")
def test_a_link_stays_a_link(folder):
    (folder / "link.skill").symlink_to("ugly.skill")
    assert skillc("fmt", "link.skill", folder=folder).returncode == 0
    assert (folder / "link.skill").is_symlink()
    assert (folder / "ugly.skill").read_text() == FORMATTED


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="the superuser may write anything")
@pytest.mark.parametrize("place", ["file", "folder"])
def test_what_may_not_be_written_is_said(folder, place):
    (folder / "ugly.skill").chmod(0o444 if place == "file" else 0o644)
    folder.chmod(0o755 if place == "file" else 0o555)
    try:
        done = skillc("fmt", "ugly.skill", folder=folder)
    finally:
        folder.chmod(0o755)
    assert done.returncode == 2
    assert "`ugly.skill`" in done.stderr and "written" in done.stderr
    assert (folder / "ugly.skill").read_text() == UGLY


def test_a_failed_write_leaves_the_file(folder, monkeypatch):
    import skillc.files
    from skillc.syntax import formatting

    path = folder / "ugly.skill"
    for number, words in ((28, "No space left on device"), (13, "Permission denied")):

        def fail(*arguments, error=(number, words), **options):
            raise OSError(*error)

        monkeypatch.setattr(skillc.files, "write_atomically", fail)
        outcome = formatting.save(path, formatting.format_file(path))
        assert outcome.failed
        assert words.lower() in outcome.problem.message
        assert path.read_text() == UGLY


def test_a_program_that_new_writes_is_formatted(shop):
    done = skillc("new", "things.jsonl", "--output", "fresh.skill", folder=shop)
    assert done.returncode == 0, done.stderr
    assert skillc("fmt", "--diff", "fresh.skill", folder=shop).stdout == ""


def test_help_says_what_the_statuses_mean(folder):
    done = skillc("fmt", "--help", folder=folder)
    assert done.returncode == 0
    for words in ("--check", "--diff", "Exit status", "standard input"):
        assert words in " ".join(done.stdout.split())

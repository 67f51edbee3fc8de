"""Nothing outside the program's folder is read, whatever a path or a link says."""

from __future__ import annotations

import os
import unicodedata
from pathlib import Path

import pytest
from checking import program, run
from hypothesis import given
from hypothesis import strategies as st

from skillc.errors import SkillcError
from skillc.language.modules import Loader
from skillc.syntax.files import Folder, PathError, resolve_path

LIBRARY = "language 1\ngate most(m: metric) = candidate.m >= incumbent.m\n"


def refusal(written: str, root: Path) -> tuple[str, str]:
    """The code and message of the only error of a program that uses a path."""
    quoted = written.replace("\\", "\\\\").replace('"', '\\"')
    (found,) = [d for d in run(program(use=f'use "{quoted}" as lab'), root).diagnostics if d.code.startswith("SK1")]
    assert found.hint or "can't be read" in found.message or "there is no file" in found.message
    return found.code, found.message


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A program's folder, with a file above it that must not be read."""
    folder = tmp_path / "program"
    (folder / "sub").mkdir(parents=True)
    (tmp_path / "secret.skill").write_text(LIBRARY)
    (folder / "lab.skill").write_text(LIBRARY)
    (folder / "sub" / "lab.skill").write_text(LIBRARY)
    return folder


@pytest.mark.parametrize(
    "written", ["lab.skill", "./lab.skill", "sub/lab.skill", "./sub/../lab.skill", "sub//lab.skill"]
)
def test_what_lies_in_the_folder_is_read(written: str, root: Path) -> None:
    found = run(program("gate second = lab.most(correct)", use=f'use "{written}" as lab'), root)
    assert found.diagnostics == ()


@pytest.mark.parametrize(
    ("written", "code", "part"),
    [
        ("../secret.skill", "SK102", "is outside the program's folder"),
        ("sub/../../secret.skill", "SK102", "is outside the program's folder"),
        ("..", "SK102", "is outside the program's folder"),
        ("/etc/passwd", "SK102", "is outside the program's folder"),
        ("//server/share/x.skill", "SK102", "is outside the program's folder"),
        ("\\\\server\\share\\x.skill", "SK102", "is outside the program's folder"),
        ("..\\secret.skill", "SK102", "is outside the program's folder"),
        ("C:\\secret.skill", "SK102", "is outside the program's folder"),
        ("c:secret.skill", "SK102", "is outside the program's folder"),
        ("C:/secret.skill", "SK102", "is outside the program's folder"),
        ("~/secret.skill", "SK102", "starts at a home folder"),
        ("~root/secret.skill", "SK102", "starts at a home folder"),
        ("file:///etc/passwd", "SK102", "is an address"),
        ("https://example.org/x.skill", "SK102", "is an address"),
        ("sub\\lab.skill", "SK101", "the separator of paths is `/`"),
        ("%2e%2e/secret.skill", "SK101", "contains `%2e`"),
        ("..%2Fsecret.skill", "SK101", "contains `%2F`"),
        ("lab.skill:stream.skill", "SK101", "contains a `:`"),
        ("NUL.skill", "SK101", "`NUL.skill` is a device on Windows"),
        ("sub/com1", "SK101", "`com1` is a device on Windows"),
        ("lab.skill.", "SK101", "ends in a dot"),
        ("sub /lab.skill", "SK101", "ends in a space"),
        ("lab\u202ellis.skill", "SK101", "contains the invisible character U+202E"),
        ("lab\u200b.skill", "SK101", "contains the invisible character U+200B"),
        ("x" * 300 + ".skill", "SK101", "too long for file systems"),
        ("sub/" * 400 + "x.skill", "SK101", "too long for file systems"),
        ("   ", "SK101", "empty path"),
        ("sub", "SK107", "neither a program nor a skill"),
        ("./", "SK107", "neither a program nor a skill"),
        ("lab.skill/more.skill", "SK101", "there is no file"),
        ("LAB.skill", "SK101", "there is no file `LAB.skill`"),
    ],
)
def test_a_path_that_is_refused_says_why(written: str, code: str, part: str, root: Path) -> None:
    found = refusal(written, root)
    assert found[0] == code
    assert part in found[1]


def test_a_zero_byte() -> None:
    with pytest.raises(PathError, match=r"U\+0000"):
        resolve_path("lab.skill\0.md", "")


def test_a_path_with_backslashes_is_mended(root: Path) -> None:
    text = program(use='use "sub\\\\lab.skill" as lab')
    (found,) = [d for d in run(text, root).diagnostics if d.code == "SK101"]
    assert found.fix is not None
    mended = text[: found.fix.span.start] + found.fix.text + text[found.fix.span.end :]
    assert 'use "sub/lab.skill" as lab' in mended
    assert [d.code for d in run(mended, root).diagnostics] == ["SK109"]


# ---- what the path names --------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", ["skill", "md"])
def test_folders_and_pipes_are_no_files(suffix: str, root: Path) -> None:
    (root / f"folder.{suffix}").mkdir()
    text = program(use=f'use "folder.{suffix}" as lab')
    assert "is a folder" in run(text, root, {}).diagnostics[0].message
    if hasattr(os, "mkfifo"):
        os.mkfifo(root / f"pipe.{suffix}")
        text = program(use=f'use "pipe.{suffix}" as lab')
        assert "is a device or a pipe" in run(text, root, {}).diagnostics[0].message


def linked(place: Path, target: Path) -> None:
    try:
        place.symlink_to(target)
    except OSError:
        pytest.skip("no links can be made here")


def test_links_that_lead_out_are_refused_wherever_they_stand(root: Path) -> None:
    linked(root / "link.skill", root.parent / "secret.skill")
    linked(root / "way", root.parent)
    (root.parent / "elsewhere").mkdir()
    (root.parent / "elsewhere" / "x.skill").write_text(LIBRARY)
    linked(root / "sub" / "deep", root.parent / "elsewhere")
    for written in ("link.skill", "way/secret.skill", "way/program/../secret.skill", "sub/deep/x.skill"):
        code, message = refusal(written, root)
        assert (code, "leads out of the program's folder" in message) == ("SK101", True), message
    linked(root / "SKILL.md", root.parent / "secret.skill")
    text = program(use='use "SKILL.md" as today')
    assert "leads out of the program's folder" in run(text, root, {}).diagnostics[0].message


def test_a_link_within_the_folder_is_followed_and_one_in_a_circle_is_not(root: Path) -> None:
    linked(root / "same.skill", root / "lab.skill")
    assert run(program("gate second = lab.most(correct)", use='use "same.skill" as lab'), root).diagnostics == ()
    linked(root / "round.skill", root / "round.skill")
    assert refusal("round.skill", root)[0] == "SK101"


def test_the_folder_itself_may_be_a_link(root: Path) -> None:
    linked(root.parent / "way", root)
    found = run(program("gate second = lab.most(correct)", use='use "lab.skill" as lab'), root.parent / "way")
    assert found.diagnostics == ()


def test_a_file_is_named_as_it_is_called_even_where_case_makes_no_difference(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / "Lab.skill").write_text(LIBRARY)
    real = Path.iterdir

    def as_such_a_system_lists(self: Path):
        return (each for each in real(self) if each.name != "Lab.skill")

    monkeypatch.setattr(Path, "iterdir", as_such_a_system_lists)
    with pytest.raises(SkillcError) as caught:
        Folder(root).source("Lab.skill")
    assert caught.value.hint == "write `lab.skill`, the name of the file"


def test_a_name_may_be_composed_in_either_way(root: Path) -> None:
    name = unicodedata.normalize("NFC", "caf\u00e9.skill")
    (root / name).write_text(LIBRARY)
    assert Folder(root).source(name).text == LIBRARY


# ---- everything at once ---------------------------------------------------------------------------

parts = st.sampled_from(
    ["..", ".", "sub", "lab.skill", "secret.skill", "way", "~", "C:", "%2e%2e", "", "\\", "/", "\0"]
)


@given(st.lists(parts, max_size=8), st.sampled_from(["/", "\\", ""]), st.sampled_from(["", "sub"]))
def test_no_path_leads_out(words: list[str], between: str, folder: str) -> None:
    try:
        path = resolve_path(between.join(words), folder)
    except PathError as error:
        assert error.code in ("SK101", "SK102")
        return
    assert path.split("/")[0] not in ("", "..")
    assert not os.path.isabs(path)
    assert Path(os.path.normpath(Path("/root") / path)).is_relative_to("/root")


@given(st.text(max_size=40))
def test_any_text_is_a_path_or_is_refused(text: str) -> None:
    try:
        resolve_path(text, "sub")
    except PathError as error:
        assert error.message


@given(st.text(max_size=30))
def test_a_loader_reads_no_file_outside_and_raises_nothing_else(text: str) -> None:
    with pytest.raises(SkillcError):
        Loader(Path(__file__).parent / "golden" / "modules").source(f"nothing/{text}")

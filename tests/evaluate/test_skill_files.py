"""Skills from elsewhere, and what else may stand under such a name."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from evaluations import evaluated, job_of, shown

from skillc.errors import SkillcError


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "it has no text"),
        (b"  \n\n", "it has no text"),
        (b"---\nname: x\ndescription: y\n---\n", "it has no text"),
        (b"---\nname: x\n", "frontmatter is not closed"),
        (b"\xff\xfea\x00", "UTF-16"),
        (b"PK\x03\x04....", "x.md"),
        (b"\x80\x81\x82", "x.md"),
    ],
)
def test_what_is_no_skill_is_an_error_that_names_it(shop: Path, data: bytes, said: str) -> None:
    file = shop / "x.md"
    file.write_bytes(data)
    with pytest.raises(SkillcError) as error:
        job_of(shop, skills=(file,))
    assert said in error.value.message
    assert "x.md" in error.value.message


def test_what_is_no_file_is_an_error(shop: Path) -> None:
    (shop / "empty").mkdir()
    for path, said in ((shop / "gone.md", "there is no file"), (shop / "empty", "folder")):
        with pytest.raises(SkillcError, match=said):
            job_of(shop, skills=(path,))


@pytest.mark.skipif(sys.platform == "win32", reason="pipes have no names there")
def test_a_pipe_is_not_waited_for(shop: Path) -> None:
    os.mkfifo(shop / "pipe.md")
    with pytest.raises(SkillcError, match="pipe"):
        job_of(shop, skills=(shop / "pipe.md",))


def test_names_are_shown_as_they_are_and_cannot_write_on_the_terminal(shop: Path) -> None:
    files = (shop / "[red]x.md", shop / "a\x1b[2Jb\nc.md", shop / ("long" * 30 + ".md"))
    for file in files:
        file.write_text("Answer tool.\n")
    page = shown(evaluated(shop, skills=files))
    assert "\x1b" not in page
    folded = "".join(page.split())
    assert "[red]x.md" in folded
    assert "a?[2Jb?c.md" in folded
    assert max(map(len, page.splitlines())) <= 80


def test_a_file_called_like_an_arm_is_not_that_arm(shop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(shop)
    Path("none").write_text("Answer tool.\n")
    found = evaluated(shop, skills=(Path("none"),))
    assert [each.arm.name for each in found.models[0].scores] == ["none", "initial", "./none"]


def test_a_file_given_twice_is_one_arm_and_a_plain_text_is_a_skill(shop: Path) -> None:
    file = shop / "notes.txt"
    file.write_text("\ufeffAnswer tool.\r\n\r\n## When\r\nAlways.\r\n")
    arms = job_of(shop, skills=(file, file)).arms.each
    assert len(arms) == 3
    assert arms[-1].skill is not None
    assert [section.name for section in arms[-1].skill.sections] == ["preamble", "when"]

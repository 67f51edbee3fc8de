"""Where a compiled skill is, and the attributes that git reads beside it."""

from pathlib import Path

import pytest

from skillc.artifact_paths import ArtifactPaths, module_name
from skillc.program.artifact import write_attributes

OWN = b"*.png binary\r\n/route-tickets/SKILL.md merge=ours"


def test_the_folder_of_a_skill_and_the_files_beside_it():
    paths = ArtifactPaths.beside(Path("shop"), "route-tickets")
    assert [str(path) for path in paths.tracked] == [
        "shop/skills/route-tickets/SKILL.md",
        "shop/skills/route_tickets.py",
        "shop/skills/route-tickets.lock",
        "shop/skills/route-tickets.history.jsonl",
    ]
    assert list(paths.files) == ["route-tickets/SKILL.md", "route_tickets.py"]


def test_paths_are_found_from_a_folder_a_lock_or_a_skill(monkeypatch, tmp_path):
    paths = ArtifactPaths(tmp_path, "route-tickets")
    paths.folder.mkdir()
    assert ArtifactPaths.of_folder(paths.folder) == paths
    assert ArtifactPaths.of_lock(paths.lock) == paths
    assert ArtifactPaths.of_skill_file(paths.skill) == paths
    assert ArtifactPaths.of_skill_file(paths.folder / "notes.md") is None
    monkeypatch.chdir(paths.folder)
    assert ArtifactPaths.of_folder(Path()) == paths
    assert ArtifactPaths.of_folder(Path("../route-tickets")).lock.resolve() == paths.lock


@pytest.mark.parametrize("name", ["class", "json", "2fa", "dspy", "a-b"])
def test_the_module_is_found_by_the_name_of_the_skill_alone(name):
    assert ArtifactPaths(Path(), name).module == Path(f"{module_name(name)}.py")
    assert module_name(name).isidentifier()


def test_attributes_are_added_and_nothing_there_is_changed(tmp_path):
    first, second = ArtifactPaths(tmp_path, "route-tickets"), ArtifactPaths(tmp_path, "draft-replies")
    first.attributes.write_bytes(OWN)
    write_attributes(first)
    one = first.attributes.read_bytes()
    assert one.startswith(OWN + b"\r\n")
    assert one.count(b"/route-tickets/SKILL.md ") == 1
    assert b"/route-tickets.history.jsonl text eol=lf merge=union\r\n" in one
    assert b"/.gitattributes" not in one
    write_attributes(second)
    both = first.attributes.read_bytes()
    assert both.startswith(one)
    assert b"/draft_replies.py text eol=lf -merge\r\n" in both
    write_attributes(first)
    assert first.attributes.read_bytes() == both

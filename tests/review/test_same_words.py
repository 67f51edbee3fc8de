"""How sure a result is: every view of one run has the same figures in the same words."""

import json
import re

import pytest
from click.testing import CliRunner

from skillc.cli import skillc as verbs
from skillc.plan.lock import read_lock
from skillc.review.confidence import NO_LOCK, SPLIT_WORDS, confidence_lines
from skillc.review.run_view import read_run
from skillc.review.summary import plain

VIEWS = {
    "report md": ("report", "--format", "md"),
    "report json": ("report", "--format", "json"),
    "report html": ("report", "--output", "-"),
    "watch": ("watch", "--once"),
    "history": ("history",),
    "history json": ("history", "--json"),
    "log": ("log",),
    "log json": ("log", "--json"),
}


def show(monkeypatch, folder, verb, *options):
    """What a view prints, as one line, without the escapes of its format."""
    monkeypatch.chdir(folder)
    done = CliRunner().invoke(verbs, [verb, "things.skill", *options], catch_exceptions=False)
    assert done.exit_code == 0
    text = done.output
    if "--json" in options or "json" in options:
        text = "\n".join(_texts(json.loads(text)))
    return " ".join(text.split())


def _texts(value):
    """All texts in JSON values."""
    if isinstance(value, dict):
        value = value.values()
    elif not isinstance(value, list):
        return [value] if isinstance(value, str) else []
    return [text for each in value for text in _texts(each)]


@pytest.mark.parametrize("name", VIEWS)
def test_every_view_says_how_sure_the_result_is_in_the_same_words(finished, monkeypatch, name):
    lock = read_lock(finished.paths.lock)
    lines = confidence_lines(lock, read_run(finished.program).plan.goal)
    assert [line.split(":")[0].split(" ")[0] for line in lines] == ["gain", "look", "smallest", "noise"]
    shown = show(monkeypatch, finished.folder, *VIEWS[name])
    for line in lines:
        written = plain(line) if name == "report md" else line
        assert written in shown, name


@pytest.mark.parametrize("name", [name for name in VIEWS if "json" not in name and name != "history"])
def test_every_view_of_scores_says_what_was_selected_on_and_what_was_held_out(finished, monkeypatch, name):
    shown = show(monkeypatch, finished.folder, *VIEWS[name])
    assert SPLIT_WORDS["test"] in shown
    assert "selected on" in shown


def test_the_json_of_a_report_has_the_figures_of_the_lock(finished, monkeypatch):
    monkeypatch.chdir(finished.folder)
    done = CliRunner().invoke(verbs, ["report", "things.skill", "--format", "json"], catch_exceptions=False)
    found, lock = json.loads(done.output), read_lock(finished.paths.lock)
    assert found["format_version"] == 1
    assert found["gain"]["smallest_detectable"] == float(lock.test.smallest_detectable)
    assert found["gain"]["interval"] == [0.1, 0.4]
    assert found["noise"] == {"n": 10, "changed": 3, "margin": 0.04}
    arms = {(row["arm"], row["split"]): row for row in found["results"]}
    assert arms["best", "test"]["mean"] == 0.6
    assert (arms["best", "validation"]["selected_on"], arms["best", "test"]["selected_on"]) == (True, False)
    assert len(found["curve"]) == 1 + len(found["decisions"]) == 8
    assert found["decisions"][2]["edits"][1]["screen"]["counts"] == "cured 1 of 1 "
    assert found["decisions"][1]["gates"][0]["truth"] == "false"
    assert {grid["split"] for grid in found["examples"]} == {"train", "validation", "test"}
    assert sum(row["calls"] for row in found["spent"]) > 0
    assert found["wall_seconds"] is None


def test_a_compile_an_evaluation_and_their_views_have_the_same_words(finished, tmp_path, monkeypatch):
    """The compile prints what its lock has, in the words of the views that read the lock."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "things.jsonl").write_text((finished.folder / "things.jsonl").read_text())
    program = (
        (finished.program).read_text().replace("epochs = 2; steps = 60; patience = 6 steps", "epochs = 1; steps = 1")
    )
    (tmp_path / "things.skill").write_text(
        program.replace("optimize { batch = 12 }", "optimize { batch = 12; drafts = 0 }")
    )
    compiled = CliRunner().invoke(verbs, ["compile", "things.skill", "--offline", "--quiet"], catch_exceptions=False)
    assert compiled.exit_code == 0
    lock = read_lock(tmp_path / "skills/sort-things.lock")
    lines = confidence_lines(lock, read_run(tmp_path / "things.skill").plan.goal)
    printed = " ".join(compiled.output.split())
    for line in (*lines, SPLIT_WORDS["validation"], SPLIT_WORDS["test"]):
        assert line in printed
    measured = CliRunner().invoke(verbs, ["eval", "things.skill", "--offline", "--quiet"], catch_exceptions=False)
    assert measured.exit_code == 0
    assert SPLIT_WORDS["validation"] in measured.output
    assert lines[-1].split(";")[0] in " ".join(measured.output.split())
    again = CliRunner().invoke(
        verbs, ["compile", "things.skill", "--offline", "--json", "--quiet"], catch_exceptions=False
    )
    assert json.loads(again.stdout)["confidence"] == list(
        confidence_lines(read_lock(tmp_path / "skills/sort-things.lock"), read_run(tmp_path / "things.skill").plan.goal)
    )
    # The run recorded its events, so that the report has the wall time of its stages.
    report = CliRunner().invoke(verbs, ["report", "things.skill", "--format", "json"], catch_exceptions=False)
    seconds = json.loads(report.output)["wall_seconds"]
    assert "baseline" in seconds
    page = CliRunner().invoke(verbs, ["report", "things.skill", "-o", "-"], catch_exceptions=False).output
    assert re.search(r"<caption>Wall time by stage", page)


def test_a_run_without_a_lock_says_that_nothing_was_tested(finished, tmp_path, monkeypatch):
    import shutil

    folder = shutil.copytree(finished.folder, tmp_path / "copied")
    for path in (folder / "skills").glob("*.lock"):
        path.unlink()
    for name in ("report md", "report json", "report html", "watch", "log"):
        assert (plain(NO_LOCK) if name == "report md" else NO_LOCK) in show(monkeypatch, folder, *VIEWS[name])

"""`skillc history`: what became of every candidate and every proposed edit."""

import json

import pytest
from click.testing import CliRunner
from conftest_cli import PROGRAM, skillc

from skillc.artifacts.history_report import read_runs
from skillc.cli import skillc as verbs
from skillc.errors import SkillcError

FATE = {
    "edit": "add to rules: If it purrs, answer animal.",
    "fate": "screened out",
    "why": "cured 0 of 2 shown failures",
}
LINES = [
    {
        "run": "aaaa1111bbbb",
        "decision": 1,
        "place": "step 1/4",
        "result": "accept",
        "reason": "all gates hold",
        "candidate": "c0ffee00",
        "maker": "draft",
        "drafts": [
            {"tokens": 60, "cured": 2, "of_failures": 3, "broke": 0, "of_rights": 1, "chosen": True},
            {"tokens": 70, "cured": 1, "of_failures": 3, "broke": 1, "of_rights": 1, "chosen": False},
        ],
        "edits": [{"op": "add", "text": "If it shines, answer tool.", "rule": "r1"}],
        "goal": {"candidate": "0.5", "incumbent": "0.4"},
        "completed": "0.6",
        "link": "l1",
    },
    {
        "run": "aaaa1111bbbb",
        "decision": 2,
        "place": "step 2/4",
        "result": "empty",
        "reason": "no edit to try",
        "fates": [FATE],
        "link": "l2",
    },
]


@pytest.fixture
def compiled(tmp_path):
    (tmp_path / "things.skill").write_text(PROGRAM)
    skills = tmp_path / "skills"
    skills.mkdir()
    (skills / "sort-things.history.jsonl").write_text("".join(json.dumps(line) + "\n" for line in LINES))
    return tmp_path


def printed(*words):
    done = CliRunner().invoke(verbs, ["history", *map(str, words)], standalone_mode=False)
    if done.exception:
        raise done.exception
    return done.stdout


def test_history_lists_each_candidate_with_its_gates_and_each_edit_with_its_fate(compiled):
    text = printed(compiled / "things.skill")
    words = " ".join(text.split())
    assert words.startswith(
        "run aaaa1111: 2 decisions, 1 accepted step 1/4 draft c0ffee00 accepted: all gates hold; goal 0.6"
    )
    assert "accepted a draft of 60 tokens cured 2 of 3 failures and broke 0 of 1 right cases in its trial" in words
    assert "another draft was better a draft of 70 tokens" in words
    assert "accepted add If it shines, answer tool." in words
    assert "step 2/4 empty: no edit to try screened out add to rules: If it purrs, answer animal. cured 0 of 2" in words


def test_history_prints_one_object_for_scripts(compiled):
    told = json.loads(printed(compiled / "things.skill", "--json"))
    assert told["format_version"] == 1
    (run,) = told["runs"]
    assert [(each["place"], each["maker"], each["result"], each["goal"]) for each in run["decisions"]] == [
        ("step 1/4", "draft", "accepted", "0.6"),
        ("step 2/4", "edits", "empty", None),
    ]
    assert run["decisions"][1]["edits"] == [FATE]


def test_history_takes_the_last_compile_and_those_that_were_not_delivered(compiled):
    candidate = compiled / "skills.candidate"
    candidate.mkdir()
    other = {**LINES[1], "run": "cccc", "link": "l3"}
    (candidate / "sort-things.history.jsonl").write_text(json.dumps(other) + "\n")
    assert [run.run for run in read_runs(compiled / "things.skill")] == ["aaaa1111bbbb", "cccc"]
    assert json.loads(printed(compiled / "things.skill", "--last", "--json"))["runs"][0]["run"] == "cccc"
    assert [run.run for run in read_runs(compiled / "skills" / "sort-things")] == ["aaaa1111bbbb", "cccc"]


def test_a_program_that_was_never_compiled_has_no_history(compiled):
    (compiled / "skills" / "sort-things.history.jsonl").unlink()
    with pytest.raises(SkillcError, match=r"history `.*sort-things.history.jsonl` does not exist"):
        read_runs(compiled / "things.skill")


def test_every_edit_of_a_compile_has_a_fate(shop):
    assert skillc("compile", "things.skill", folder=shop).returncode == 0
    told = json.loads(skillc("history", "things.skill", "--json", folder=shop).stdout)
    (run,) = told["runs"]
    assert run["decisions"]
    lines = [json.loads(line) for line in (shop / "skills" / "sort-things.history.jsonl").read_text().splitlines()]
    for line, decided in zip(lines, run["decisions"], strict=True):
        known = " ".join(edit["edit"] for edit in decided["edits"])
        for edit in (*line.get("edits", []), *line.get("screened_out", [])):
            assert (edit.get("text") or edit.get("rule")) in known
        assert all(edit["fate"] for edit in decided["edits"])

"""Rules know their sessions; a withdrawn session quarantines its rules, and the next compile learns without it."""

import json
import sys

import pytest
from click.testing import CliRunner

pytest.importorskip("detect_secrets")
pytest.importorskip("presidio_analyzer")

from benchmarks.poison.measure import LAYERS, measure
from benchmarks.poison.planted import DEVELOPMENT, HELD_OUT
from skillc.artifact_paths import ArtifactPaths
from skillc.cli import skillc
from skillc.data.withdrawn import narrowed_near, withdrawn_near
from skillc.errors import SkillcError
from skillc.plan.lock import read_lock, text_key, write_lock
from skillc.provenance.quarantine import check_adoptable, held_rules, quarantine_file

PLAIN = HELD_OUT["plain claims"]


def run(*words):
    return CliRunner().invoke(skillc, [str(word) for word in words])


@pytest.fixture(autouse=True)
def _in_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    sys.modules.pop("gullible", None)


@pytest.fixture
def learned(tmp_path, monkeypatch):
    """A compiled skill with eight planted rules, as it would be without any layer."""
    monkeypatch.setattr("benchmarks.poison.measure.CLEAN", 4)
    folder = tmp_path / "w"
    found = measure(folder, PLAIN, LAYERS)
    assert found.adopted >= 6
    return folder


def test_withdrawing_quarantines_what_was_learned_and_the_next_compile_is_without_it(learned):
    paths = ArtifactPaths(learned / "skills", "imitate")
    lock, store = read_lock(paths.lock), learned / ".skillc" / "sessions.db"
    rules = {text_key(line[2:]): line[2:] for line in paths.skill.read_text().splitlines() if line.startswith("- ")}
    assert set(lock.sessions) == set(rules)
    bad = next(key for key, text in rules.items() if PLAIN[0] in text)
    assert "openai:train.jsonl:1" in lock.sessions[bad]
    check_adoptable(paths)
    done = run(
        "sessions", "withdraw", "openai:train.jsonl:1", "--why", "faked", "--person", "ann", "--store", store, "--json"
    )
    assert done.exit_code == 0, done.output
    said = json.loads(done.stdout)
    # Also the copies that adoption keeps.
    skill = next(each for each in said["quarantined"] if each["skill"].endswith("w/skills/imitate"))
    assert rules[bad] in [rule["text"] for rule in skill["rules"]]
    assert quarantine_file(paths).exists() and "faked" not in quarantine_file(paths).read_text()
    with pytest.raises(SkillcError, match="quarantined"):
        check_adoptable(paths)
    refused = run("install", learned / "imitate.skill", "--to", "codex", "--project", learned / "project")
    assert "quarantined" in str(refused.exception)
    assert not (learned / "project" / ".agents").exists()
    staged = run("update", "imitate", "--project", learned / "project")
    assert "quarantined" in str(staged.exception) + staged.output
    # The file travels with the skill: without the store it is refused all the same.
    (learned / ".skillc" / "sessions.withdrawn.json").unlink()
    with pytest.raises(SkillcError, match="quarantined"):
        check_adoptable(paths)

    sys.modules.pop("gullible", None)
    again = run("compile", learned / "imitate.skill")
    assert again.exit_code == 0, again.output
    assert PLAIN[0] not in paths.skill.read_text()
    check_adoptable(paths)
    assert not held_rules(paths, read_lock(paths.lock), withdrawn_near(learned))
    assert run("install", learned / "imitate.skill", "--to", "codex", "--project", learned / "project").exit_code == 0


def test_one_instruction_of_each_kind_reaches_a_skill_only_without_the_layers(tmp_path, monkeypatch):
    monkeypatch.setattr("benchmarks.poison.measure.CLEAN", 2)
    texts = [each[0] for each in {**DEVELOPMENT, **HELD_OUT}.values()][::3]
    found = measure(tmp_path / "with", texts)
    assert (found.learned, found.adopted) == (0, 0)
    assert found.suspect and found.refused


def test_a_damaged_list_of_withdrawn_sessions_is_an_error_and_not_an_empty_one(learned):
    paths = ArtifactPaths(learned / "skills", "imitate")
    quarantine_file(paths).write_text("{")
    with pytest.raises(SkillcError, match="cannot be read"):
        check_adoptable(paths)
    assert "cannot be read" in str(run("compile", learned / "imitate.skill").exception)


def withdraw(learned, session, *more):
    words = ("sessions", "withdraw", session, "--why", "faked", "--person", "ann", "--json", *more)
    done = run(*words, "--store", learned / ".skillc" / "sessions.db")
    assert done.exit_code == 0, done.output
    return next(each for each in json.loads(done.stdout)["quarantined"] if each["skill"].endswith("w/skills/imitate"))


def test_a_rule_that_only_saw_a_session_is_quarantined_unless_the_withdrawal_is_narrowed(learned):
    paths, bad = ArtifactPaths(learned / "skills", "imitate"), "openai:train.jsonl:1"
    lock = read_lock(paths.lock)
    citing = [key for key in lock.sessions if bad in lock.cited.get(key, lock.sessions[key])]
    seeing = [key for key in lock.sessions if bad in lock.sessions[key]]
    assert len(citing) == 1 < len(seeing)
    said = withdraw(learned, bad, "--cited-only")
    assert (len(said["rules"]), len(said["may_be_affected"])) == (1, len(seeing) - 1)
    assert said["rules"][0]["cited"] == [bad] and said["may_be_affected"][0]["cited"] == []
    with pytest.raises(SkillcError, match="quarantined: 1 rule from"):
        check_adoptable(paths)
    # Safety first: without the option all of them are.
    said = withdraw(learned, bad)
    assert (len(said["rules"]), len(said["may_be_affected"])) == (len(seeing), 0)
    with pytest.raises(SkillcError, match=f"quarantined: {len(seeing)} rules from"):
        check_adoptable(paths)


def test_a_narrowed_withdrawal_of_a_session_that_no_rule_cites_leaves_the_skill_adoptable(learned):
    paths = ArtifactPaths(learned / "skills", "imitate")
    lock, bad = read_lock(paths.lock), "openai:train.jsonl:1"
    without = {
        key: tuple(each for each in keys if each != bad) for key, keys in {**lock.sessions, **lock.cited}.items()
    }
    write_lock(paths.lock, lock.model_copy(update={"cited": without}))
    said = withdraw(learned, bad, "--cited-only")
    assert said["rules"] == [] and said["may_be_affected"]
    check_adoptable(paths)
    # The next compile leaves its rows out all the same, and does not widen the withdrawal.
    sys.modules.pop("gullible", None)
    assert run("compile", learned / "imitate.skill").exit_code == 0
    assert PLAIN[0] not in paths.skill.read_text()
    assert bad in narrowed_near(learned)

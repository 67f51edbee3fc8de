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
from skillc.provenance.rules import rules_in

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
        key: tuple(each for each in keys if each != bad) or ("openai:another",)
        for key, keys in {**lock.sessions, **lock.cited}.items()
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


def test_why_tells_a_rule_that_cites_all_it_read_from_one_that_cites_none(learned):
    paths = ArtifactPaths(learned / "skills", "imitate")
    lock = read_lock(paths.lock)
    one, none, some = sorted(lock.sessions)[:3]
    cited = {**lock.cited, one: lock.sessions[one], some: lock.sessions[some][:1]}
    cited.pop(none, None)
    write_lock(paths.lock, lock.model_copy(update={"cited": cited}))
    lines = {
        text_key(line[2:]): n for n, line in enumerate(paths.skill.read_text().splitlines(), 1) if line[:2] == "- "
    }
    for key, said in ((one, ["cites"]), (some, ["cites", "read beside"]), (none, ["none by name", "read "])):
        where = f"{paths.skill}:{lines[key]}"
        (found,) = json.loads(run("why", where, "--json").stdout)["lines"]
        assert (found["sessions"], found["cited"]) == (list(lock.sessions[key]), list(cited.get(key, ())))
        text = run("why", where).stdout
        assert all(each in text for each in said)
        assert [each in text for each in ("none by name", "read beside")] == [key == none, key == some]


def test_a_narrowed_withdrawal_holds_a_rule_that_replaced_one_that_cites_the_session(learned):
    paths, bad = ArtifactPaths(learned / "skills", "imitate"), "openai:train.jsonl:1"
    lock = read_lock(paths.lock)
    changed = next(key for key, keys in lock.sessions.items() if bad not in lock.cited.get(key, ()) and bad in keys)
    spared = dict.fromkeys(lock.sessions, ("openai:train.jsonl:2",))
    write_lock(paths.lock, lock.model_copy(update={"cited": spared, "replaced": {changed: (bad,)}}))
    said = withdraw(learned, bad, "--cited-only")
    assert [each["cited"] for each in said["rules"]] == [[bad]] and said["may_be_affected"]
    with pytest.raises(SkillcError, match="quarantined: 1 rule from"):
        check_adoptable(paths)


def test_of_a_lock_of_an_earlier_version_rules_without_names_cite_none_and_may_be_from_all(learned):
    """It leaves out a rule that cites all that was read as well as one that cites none, and has no `replaced`."""
    paths, bad = ArtifactPaths(learned / "skills", "imitate"), "openai:train.jsonl:1"
    value = json.loads(paths.lock.read_text())
    value.pop("replaced", None)
    value["cited"] = {key: keys for key, keys in value["cited"].items() if keys != value["sessions"][key]}
    unnamed = next(key for key, keys in value["sessions"].items() if bad in keys)
    value["cited"].pop(unnamed, None)
    paths.lock.write_text(json.dumps(value))
    rules = rules_in(read_lock(paths.lock))
    assert rules[unnamed].cited == rules[unnamed].before == frozenset()
    assert rules[unnamed].behind == rules[unnamed].read == {*value["sessions"][unnamed]}
    assert {key: each.cited for key, each in rules.items() if each.cited} == {
        key: {*keys} for key, keys in value["cited"].items()
    }
    held = {text_key(each.text): each.cited for each in held_rules(paths, read_lock(paths.lock), [bad])}
    assert held[unnamed] == (bad,)

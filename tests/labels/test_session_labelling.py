"""Labels by signals in a store, agreement of sources, and certainties measured against a person."""

import json
import random

import pytest
from click.testing import CliRunner
from labelled import agent, make_store, session
from signal_cases import CASES, run, session_of

from skillc.cli import skillc as verbs
from skillc.errors import SkillcError
from skillc.sessions.agreement import agreements_of, calibrated
from skillc.sessions.labelling import label_by_signals, measure_certainties, replace_labels
from skillc.sessions.labels import Label, labels_of
from skillc.sessions.signals import CERTAINTY
from skillc.sessions.store import SessionStore


def of(session_, source, outcome, certainty=0.8, skill="s"):
    return Label(f"k:{session_:04}", skill, source, outcome, certainty)


def world(rate, n=400, base=0.5, seed=1):
    """Labels of a person, and of a signal that is right at a rate whatever the outcome."""
    draw = random.Random(seed)
    for i in range(n):
        true = "worked" if draw.random() < base else "failed"
        said = true if draw.random() < rate else {"worked": "failed", "failed": "worked"}[true]
        yield of(i, "person:ada", true, 1.0)
        yield of(i, "signal:tests", said, CERTAINTY["tests", said])


def test_a_rate_is_measured_and_replaces_the_declared_certainty():
    labels = list(world(0.9))
    found = agreements_of(labels)
    for rate in found.rates:
        assert rate.interval[0] < 0.9 < rate.interval[1]
        assert rate.declared == CERTAINTY["tests", rate.outcome]
    measured = {rate.outcome: rate.measured for rate in found.rates}
    for each in calibrated(labels, found):
        assert each.certainty == (1.0 if each.kind == "person" else measured[each.outcome])


def test_a_coin_has_no_kappa_and_no_certainty():
    labels = list(world(0.5))
    found = agreements_of(labels)
    (pair,) = found.pairs
    assert pair.kappa_interval[0] < 0 < pair.kappa_interval[1]
    assert all(0.5 <= each.certainty < 0.6 for each in calibrated(labels, found) if each.kind == "signal")
    inverse = calibrated(labels, agreements_of(world(0.1)))
    assert {each.certainty for each in inverse if each.kind == "signal"} == {0.5}


def test_kappa_is_cohens():
    # Cohen's formula by hand: 20 of 50 pairs worked/worked, 5 and 10 differ, 15 failed/failed.
    table = [("worked", "worked")] * 20 + [("worked", "failed")] * 5 + [("failed", "worked")] * 10
    table += [("failed", "failed")] * 15
    labels = [
        of(i, s, o) for i, pair in enumerate(table) for s, o in zip(("judge:a", "signal:tests"), pair, strict=True)
    ]
    (pair,) = agreements_of(labels).pairs
    assert pair.equal == 0.7
    assert pair.kappa == pytest.approx(0.4)


def test_unclear_is_no_disagreement_and_too_few_are_said_to_be():
    labels = [of(i, s, o) for i in range(9) for s, o in (("judge:a", "worked"), ("signal:tests", "worked"))]
    labels += [of(20, "judge:a", "worked"), of(20, "signal:tests", "unclear")]
    (pair,) = agreements_of(labels).pairs
    assert (pair.both, pair.unclear, pair.equal, pair.kappa) == (9, 1, None, None)


def test_the_same_source_about_two_skills_is_not_compared_across_them():
    labels = [of(1, "judge:a", "worked", skill="x"), of(1, "signal:tests", "failed", skill="y")]
    assert agreements_of(labels).pairs[0].both == 0


@pytest.fixture
def store(tmp_path):
    """The made sessions, those with an even number labelled by a person."""
    sessions = [session_of(i) for i in range(len(CASES))]
    labels = [(f"openai:{i:02}", "coding", CASES[i][0]) for i in range(0, len(CASES), 2)]
    return make_store(tmp_path / "sessions.db", sessions, labels)


def test_signals_label_a_store_by_the_persons_skill_and_with_measured_certainties(store):
    with SessionStore(store) as opened:
        found = label_by_signals(opened, {})
        first = list(labels_of(opened))
        again = label_by_signals(opened, {})
        strip = [(each.session, each.skill, each.source, each.outcome, each.certainty) for each in first]
        assert again == found
        assert [(e.session, e.skill, e.source, e.outcome, e.certainty) for e in labels_of(opened)] == strip
    assert found.sessions == len(CASES)
    assert found.skills == {"coding": 45, "": 45}
    sources = {each.source for each in first if each.session == "openai:02"}
    assert sources == {"person:ada", "signal:tests"}
    # The development half has 14 sessions with approval, all of which worked.
    assert {each.certainty for each in first if (each.source, each.outcome) == ("signal:next_words", "worked")} == {
        15 / 16
    }


def test_a_signal_that_finds_nothing_anymore_is_removed_and_a_persons_label_stays(store):
    with SessionStore(store) as opened:
        replace_labels(opened, "signal:", [Label("openai:00", "old", "signal:gone", "failed", 0.9)])
        label_by_signals(opened, {})
        labels = list(labels_of(opened))
    assert not any(each.source == "signal:gone" for each in labels)
    assert sum(each.kind == "person" for each in labels) == 45


def test_a_failure_while_labels_are_written_leaves_the_old_ones(store, monkeypatch):
    with SessionStore(store) as opened:
        label_by_signals(opened, {})
        before = list(labels_of(opened))

        def broken():
            yield Label("openai:00", "s", "signal:tests", "failed", 0.9)
            raise OSError("disk full")

        with pytest.raises(OSError, match="disk full"):
            replace_labels(opened, "signal:", broken())
        assert list(labels_of(opened)) == before


def test_certainties_are_written_to_the_labels_of_one_skill_only(store):
    with SessionStore(store) as opened:
        replace_labels(opened, "signal:", list(world(0.9, n=50)))
        other = of(900, "signal:tests", "worked", 0.78, skill="other")
        replace_labels(opened, "judge:", [])
        opened.execute(
            "INSERT INTO labels VALUES (?, ?, ?, ?, ?, ?, ?)",
            (other.session, other.skill, other.source, other.outcome, other.certainty, "", "2026"),
        )
        measure_certainties(opened, "s")
        kept = [each for each in labels_of(opened) if each.skill == "other"]
        changed = {each.certainty for each in labels_of(opened, skill="s") if each.kind == "signal"}
    assert [each.certainty for each in kept] == [0.78]
    assert not changed & {CERTAINTY["tests", "worked"], CERTAINTY["tests", "failed"]}


# ---- the verbs -------------------------------------------------------------------------------------


def sk(*arguments):
    return CliRunner().invoke(verbs, ["sessions", *map(str, arguments)])


def test_the_verb_labels_by_signals_and_reports_agreement(store):
    done = sk("label", "--signals", "--store", store)
    assert done.exit_code == 0, done.output
    assert "read 90 usable sessions" in done.output
    assert "signal:next_words" in done.output
    shown = json.loads(sk("label", "--signals", "--store", store, "--json").output)
    assert sum(shown["consensus"].values()) == 90
    report = sk("agreement", "--store", store)
    assert report.exit_code == 0, report.output
    assert "the measured rates are now the certainties" in report.output
    figures = json.loads(sk("agreement", "--store", store, "--json").output)
    words = next(r for r in figures["rates"] if (r["source"], r["outcome"]) == ("signal:next_words", "worked"))
    assert (words["right"], words["of"], words["declared"]) == (14, 14, 0.8)


def test_sessions_of_no_known_skill_get_none(tmp_path):
    program = tmp_path / "route.skill"
    program.write_text(
        'language 1\ntask {\n  input ticket: text\n  output team: "a" | "b"\n}\nskill route_tickets {\n'
        '  about = "Route a support ticket to the team that can resolve it."\n  trainable section rules\n}\n'
        'model target = "rulebook/v1"\nmodel optimizer = "rulebook/v1"\ndata { source = "t.jsonl" }\n'
        "goal right = exact_match(team)\nbudget { epochs = 1 }\ngate better = candidate.right >= incumbent.right\n"
    )
    sessions = [
        session("openai:1", "Which team should resolve this support ticket?", agent("billing"), "Thanks"),
        session("openai:2", "Fix the build.", run("make", "error", 2)[0], run("make", "error", 2)[1], agent("Hm.")),
    ]
    store = make_store(tmp_path / "sessions.db", sessions)
    done = sk("label", "--signals", "--skill", program, "--store", store)
    assert done.exit_code == 0, done.output
    assert "skills: 1 route-tickets; 1 of no known skill" in done.output
    with SessionStore(store) as opened:
        assert {(each.session, each.skill) for each in labels_of(opened)} == {
            ("openai:1", "route-tickets"),
            ("openai:2", ""),
        }


def test_wrong_options_are_refused_with_a_hint(tmp_path, store):
    missing = sk("label", "--signals", "--skill", "no/such.skill", "--store", store)
    assert "skill `no/such.skill` does not exist" in str(missing.exception)
    both = sk("label", "--signals", "--person", "ada", "--store", store)
    assert "can't be used together" in str(both.exception)
    empty = make_store(tmp_path / "empty.db", [])
    for more in ([], ["--skill", "x"]):
        assert "no session has a label" in str(sk("agreement", *more, "--store", empty).exception)
    assert not isinstance(missing.exception, SystemExit)
    assert isinstance(missing.exception, SkillcError)

"""`skillc watch`: following a run, replaying it, and the verb."""

import json
import shutil

import pytest
from click.testing import CliRunner
from made_run import PROGRAM

from skillc.cli import skillc as verbs
from skillc.errors import SkillcError
from skillc.optimize.engine import Position
from skillc.optimize.host import CandidateProgress, Observer
from skillc.review.run_view import read_run
from skillc.run.progress import RunFacts
from skillc.run.recording import FILE, recorded
from skillc.store import RunStore
from skillc.watch.follow import Follower
from skillc.watch.frame import Live
from skillc.watch.replay import Replay, frame_at, moments_of


class Clock:
    """A clock that is set by hand."""

    def __init__(self):
        self.now = 2_000_000_000.0

    def __call__(self):
        return self.now


@pytest.fixture
def copied(watched, tmp_path):
    return shutil.copytree(watched.folder, tmp_path / "copied")


def begun(folder):
    """Make a copied run one that has begun and has no lock."""
    for path in (folder / "skills").iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    (run,) = (folder / ".skillc/runs").iterdir()
    info = json.loads((run / "run.json").read_text())
    (run / "run.json").write_text(json.dumps({**info, "finished": False}))
    (run / "items.json").unlink()
    return run


def told(view):
    """The events of a run, with two waves of evidence before each decision."""
    events = [{"event": "start", "caps": {"epochs": 2}, "at": 1.0}]
    for i, line in enumerate(view.lines, 1):
        events.append({"event": "step", "place": line["place"], "epoch": 1, "incumbent": 0.3, "at": 2.0 * i})
        events += [
            {"event": "evidence", "candidates": [{"candidate": 1, "goal": [0.1, 0.9 - wave / 5]}]} for wave in (0, 1)
        ]
        events.append({"event": "decision", **line})
        events.append({"event": "progress", "charged": {"calls": 10 * i, "tokens": 5, "cost_nano": 0}, "roles": {}})
    return [*events, {"event": "end"}]


# ---- following ------------------------------------------------------------------------------------


def test_a_finished_run_is_read_once(watched):
    follower = Follower(watched.program, clock=Clock())
    frame, changed = follower.poll()
    assert changed
    assert frame.state == "finished"
    assert frame.view.lock is not None
    assert not follower.poll()[1]
    assert follower.settled().view is frame.view
    assert frame.usage.calls == sum(each.calls for each in frame.view.spent)
    follower.close()


def test_a_run_at_work_shows_each_decision_when_it_is_made_and_disturbs_nothing(copied):
    run, clock = begun(copied), Clock()
    (run / "run.db").unlink()
    store = RunStore(run / "run.db")
    with recorded(run, Observer(), RunFacts(2), spent=dict, in_flight=lambda: {"target": 4}) as observer:
        follower = Follower(copied / "things.skill", clock=clock)
        frame = follower.settled()
        assert (frame.state, frame.view.decisions) == ("running", ())
        observer.stage("gate", 12)
        observer.step(Position(1, 1, 10), "0.3")
        observer.seen([CandidateProgress(1, 1, 0, 3, 12, ["0.1", "0.9"])])
        frame, changed = follower.poll()
        assert changed
        assert frame.live.status.seen[0].goal == [0.1, 0.9]
        assert float(frame.curve.points[0].incumbent.mean) == 0.3
        store.add_decision(ACCEPTED)
        observer.decided(ACCEPTED)
        observer.completed({"completed": 1, "goal": "0.4"})
        frame, changed = follower.poll()
        assert [each.number for each in frame.view.decisions] == [1]
        assert float(frame.view.decisions[0].completed.low) == 0.4
        assert frame.view.best == ACCEPTED["candidate"]
        assert frame.live.evidence[1].last[0].evaluated == 3
        clock.now += 1000
        assert follower.settled().view.decisions[0].number == 1
    store.close()
    frame = follower.settled()
    assert (frame.state, frame.live.ended) == ("ended early", True)
    follower.close()


ACCEPTED = {
    "decision": 1,
    "place": "step 1/10",
    "epoch": 1,
    "kind": "step",
    "incumbent": "a" * 64,
    "candidate": "b" * 64,
    "result": "accept",
    "reason": "all gates hold",
    "blame": None,
    "goal": {"incumbent": "0.3", "candidate": ["0.3", "0.5"]},
    "evaluated": 6,
    "of": 12,
    "gains": 2,
    "losses": 1,
    "gates": {"better": "true"},
}


def test_a_run_that_was_killed_is_stopped_and_one_without_events_is_read_from_its_store(copied):
    run = begun(copied)
    frame = Follower(copied / "things.skill").settled()
    assert (frame.state, len(frame.view.decisions)) == ("stopped", 7)
    assert frame.live == Live()
    (run / FILE).write_text(
        '{"event": "start", "caps": {}, "at": 1.0}\n{"event": "stage", "stage": "gate", "total": 9}\n{"ev'
    )
    frame = Follower(copied / "things.skill").settled()
    assert (frame.state, frame.live.ended, frame.live.status.stage) == ("stopped", False, "gate")


def test_a_run_that_begins_later_takes_over(copied):
    clock = Clock()
    follower = Follower(copied / "things.skill", clock=clock)
    assert follower.settled().state == "finished"
    (old,) = (copied / ".skillc/runs").iterdir()
    later = old.with_name("f" * 16)
    later.mkdir()
    info = json.loads((old / "run.json").read_text())
    (later / "run.json").write_text(json.dumps({**info, "finished": False}))
    clock.now += 1000
    frame = follower.settled()
    assert (frame.view.run, frame.view.lock, frame.state) == ("f" * 16, None, "stopped")
    follower.close()


def test_a_finished_run_that_begins_anew_is_shown_without_its_old_verdict(copied):
    (run,) = (copied / ".skillc/runs").iterdir()
    info = json.loads((run / "run.json").read_text())
    (run / "run.json").write_text(json.dumps({**info, "finished": False}))
    (run / "run.db").unlink()
    RunStore(run / "run.db").close()
    frame = Follower(copied / "things.skill").settled()
    assert (frame.view.lock, frame.view.decisions) == (None, ())
    assert read_run(copied / "things.skill").lock is not None


# ---- replay ---------------------------------------------------------------------------------------


def test_a_replay_shows_nothing_that_came_later(watched):
    view = read_run(watched.program)
    moments = moments_of(view, told(view))
    assert [each.decisions for each in moments] == [0, *[n for k in range(7) for n in (k, k, k + 1)]]
    replay = Replay(view, told(view), 1.0)
    half = frame_at(view, replay.frame().curve, moments[9], last=False)
    assert half.view.lock is None
    assert len(half.view.decisions) == len(half.view.lines) == moments[9].decisions == 3
    assert half.curve.held_out == (None, None)
    assert all(version.decision <= 3 for version in half.view.items.versions)
    assert all(
        len(cells) == len(half.view.items.versions) for item in half.view.items.items for cells in item.cells.values()
    )
    assert half.usage.calls == 30
    assert half.view.best == half.view.decisions[2].candidate
    last = frame_at(view, replay.frame().curve, moments[-1], last=True)
    assert last.view is view


def test_a_replay_keeps_its_speed_pauses_and_steps(watched):
    view = read_run(watched.program)
    replay = Replay(view, told(view), 2.0)
    assert not replay.poll(0.0)[1] or replay.at == 0
    # Half a second for each decision, of which each of its three moments has a third.
    replay.poll(0.4)
    assert replay.moments[replay.at].decisions == 0
    replay.poll(0.6)
    assert replay.moments[replay.at].decisions == 1
    replay.poll(10.0)
    assert replay.is_over
    replay.pause()
    replay.poll(20.0)
    assert replay.at == 0
    replay.move(3)
    assert (replay.moments[replay.at].decisions, replay.paused) == (3, True)
    replay.poll(99.0)
    assert replay.moments[replay.at].decisions == 3
    replay.move(-1)
    assert replay.moments[replay.at].decisions == 2
    replay.faster(4)
    assert replay.speed == 8
    assert "decision 2 of 7, paused" in replay.title


def test_a_run_without_events_is_replayed_by_its_decisions(watched):
    view = read_run(watched.program)
    for events in ([], told(view)[:4]):
        assert [each.decisions for each in moments_of(view, events)] == list(range(8))


# ---- the verb -------------------------------------------------------------------------------------


def run(*arguments):
    return CliRunner().invoke(verbs, ["watch", *map(str, arguments)], catch_exceptions=True)


def test_once_prints_a_frame_and_a_finished_run_its_decisions(watched):
    once = run(watched.program, "--once")
    assert once.exit_code == 0
    assert "improved, delivered" in once.output
    followed = run(watched.paths.folder)
    assert followed.output.count("step 1/10      accept") >= 1
    assert followed.output.index("step 1/10") < followed.output.index("improved, delivered")
    played = run(watched.program, "--replay", "--speed", "4")
    assert played.exit_code == 0
    assert "step 6/10      reject" in played.output


def test_what_cannot_be_watched_is_an_error(watched, tmp_path):
    assert "can't be used together" in str(run(watched.program, "--once", "--replay").exception)
    (tmp_path / "things.skill").write_text(PROGRAM)
    (tmp_path / "things.jsonl").write_text('{"text": "a", "kind": "fruit"}\n' * 9)
    found = run(tmp_path / "things.skill", "--once").exception
    assert isinstance(found, SkillcError)
    assert "was never compiled" in found.message
    assert "has no run `ee`" in run(watched.program, "--run", "ee").exception.message

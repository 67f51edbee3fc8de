"""The events that a run records in its folder, and the status that is read from them."""

import io
import json
import os
from types import SimpleNamespace

import pytest

import skillc.run.recording as recording
from skillc.gates.draw import ComparisonState, GateState, SideState
from skillc.optimize.engine import Position
from skillc.optimize.host import CandidateProgress, Observer
from skillc.run.json_lines import JsonLines, status_after
from skillc.run.progress import RunFacts, Status
from skillc.run.recording import FILE, events_in, is_at_work, read_events, recorded, stage_seconds

GATE = GateState(
    "better",
    "unknown",
    (
        ComparisonState(
            SideState("candidate.m", 0.2, 0.9, "20 % to 90 % (3 of 9)"),
            ">",
            SideState("0.5", 0.5, 0.5, "50 %"),
            "unknown",
        ),
    ),
)
SEEN = CandidateProgress(1, 2, 1, 3, 9, ["0.2", "0.9"], (GATE,))


class Clock:
    """Each reading is a second after the last."""

    def __init__(self):
        self.now = 1000.0

    def __call__(self):
        self.now += 1
        return self.now


def report(observer):
    """What a compile of one step reports."""
    observer.stage("baseline", 9)
    observer.advance(9)
    observer.step(Position(1, 1, 4), "0.25")
    observer.stage("rollout", 4)
    observer.candidates([["add to rules: x"], ["delete r1"]])
    observer.stage("gate", 9)
    observer.seen([SEEN])
    observer.decided({"decision": 1, "place": "step 1/4", "result": "accept", "goal": {"incumbent": "0.25"}})
    observer.completed({"completed": 1, "goal": "0.75"})
    observer.waiting("vLLM starts")


def record(folder, observer=None, **options):
    facts = {"spent": dict, "in_flight": lambda: {"target": 3}, "clock": Clock(), **options}
    with recorded(folder, observer or Observer(), RunFacts(4), **facts, verb="compile") as both:
        report(both)


def test_each_event_has_its_time_and_reaches_the_other_observer(tmp_path):
    lines = []
    told = JsonLines(lines.append, RunFacts(4), spent=dict)
    told.stop_wanted = lambda: "time"
    with recorded(tmp_path, told, RunFacts(4), spent=dict, in_flight=lambda: {"target": 3}, clock=Clock()) as both:
        report(both)
        assert both.stop_wanted() == "time"
        assert is_at_work(tmp_path)
    assert is_at_work(tmp_path) is False
    events = read_events(tmp_path)
    own = [{k: v for k, v in event.items() if k != "at"} for event in events]
    names = [event["event"] for event in own]
    assert names[0] == "start"
    assert names[-1] == "end"
    passed = [json.loads(line) for line in lines]
    assert [each for each in own if each["event"] not in ("start", "progress", "end")] == [
        each for each in passed if each["event"] != "progress"
    ]
    assert [event["at"] for event in events] == sorted(event["at"] for event in events)
    assert all(each["in_flight"] == {"target": 3} for each in own if each["event"] == "progress")


def test_the_status_that_is_read_is_the_one_that_was_reported(tmp_path):
    told = JsonLines(lambda line: None, RunFacts(4), spent=dict)
    report(told)
    record(tmp_path)
    status = Status()
    for event in read_events(tmp_path):
        status = status_after(status, event)
    assert (status.place, status.epoch, status.stage, status.done) == ("step 1/4", 1, "gate", 0)
    assert (status.waiting, status.incumbent, status.seen) == ("vLLM starts", 0.75, ())
    assert (status.place, status.stage, status.edits) == (told.status.place, told.status.stage, told.status.edits)


def test_evidence_is_read_with_its_gates(tmp_path):
    record(tmp_path)
    status = Status()
    for event in read_events(tmp_path):
        status = status_after(status, event)
        if event["event"] == "evidence":
            break
    (seen,) = status.seen
    assert seen.goal == [0.2, 0.9]
    assert seen.gates == (GATE,)
    assert status.first_seen == status.seen


def test_wall_time_is_that_of_each_stage_over_all_sessions(tmp_path):
    record(tmp_path)
    once = stage_seconds(read_events(tmp_path))
    assert set(once) == {"start", "baseline", "rollout", "gate"}
    events = read_events(tmp_path)
    assert sum(once.values()) == pytest.approx(events[-1]["at"] - events[0]["at"])
    record(tmp_path)
    twice = stage_seconds(read_events(tmp_path))
    assert sum(event["event"] == "start" for event in read_events(tmp_path)) == 1
    assert twice == pytest.approx({name: 2 * seconds for name, seconds in once.items()})
    record(tmp_path, fresh=True)
    assert stage_seconds(read_events(tmp_path)) == pytest.approx(once)


def test_a_file_that_cannot_be_written_ends_the_recording_and_not_the_run(tmp_path, monkeypatch):
    told = []
    heard = SimpleNamespace(**{name: lambda *a, **k: told.append(a) for name in vars(Observer) if name[0] != "_"})
    record(tmp_path / "missing", heard)
    assert len(told) == 9
    full = io.BytesIO()
    full.write = lambda data: (_ for _ in ()).throw(OSError(28, "No space left on device"))
    monkeypatch.setattr(recording._EventFile, "_mark", lambda self: setattr(self, "_file", full))
    record(tmp_path, heard)
    assert len(told) == 18


def test_a_file_that_grows_too_large_loses_its_oldest_evidence_first(tmp_path, monkeypatch):
    monkeypatch.setattr(recording, "MOST", 40_000)
    with recorded(tmp_path, Observer(), RunFacts(), spent=dict, in_flight=dict, clock=Clock()) as both:
        for number in range(1, 101):
            for _ in range(5):
                both.seen([SEEN])
            both.decided({"decision": number, "place": f"step {number}", "result": "reject"})
    assert (tmp_path / FILE).stat().st_size <= 40_000
    events = read_events(tmp_path)
    numbers = [event["decision"] for event in events if event["event"] == "decision"]
    assert numbers[-1] == 100
    assert numbers == list(range(numbers[0], 101))
    assert events[0]["event"] == "start"
    assert events[-1]["event"] == "end"


def test_a_torn_line_is_left_out():
    assert [event["event"] for event in events_in(b'{"event": "a"}\n{"eve\n3\n{"event": "b"}\n{"event": "c"')] == [
        "a",
        "b",
    ]


def test_a_folder_without_events_has_none(tmp_path):
    assert read_events(tmp_path) == []
    assert is_at_work(tmp_path) is None
    assert stage_seconds([]) == {}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_run_whose_process_was_killed_is_not_at_work(tmp_path):
    child = os.fork()
    if child == 0:
        with recorded(tmp_path, Observer(), RunFacts(), spent=dict, in_flight=dict) as both:
            both.stage("baseline", 9)
            os.kill(os.getpid(), 9)
    os.waitpid(child, 0)
    assert is_at_work(tmp_path) is False
    assert [event["event"] for event in read_events(tmp_path)] == ["start", "stage"]

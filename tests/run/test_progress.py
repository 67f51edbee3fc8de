import io
import json
from fractions import Fraction

import pytest
from rich.console import Console

from skillc.language.loop import BudgetPlan
from skillc.optimize.engine import Position
from skillc.optimize.host import CandidateProgress
from skillc.run.json_lines import JsonLines
from skillc.run.progress import LineProgress, Progress, RunFacts, decision_line
from skillc.run.time_left import ExpectedCalls, RunUsage, TimeLeft, describe_seconds_left
from skillc.watch.compact import LiveProgress, display

DECIDED = {
    "place": "step 3/24",
    "gains": 2,
    "losses": 1,
    "evaluated": 48,
    "of": 118,
    "goal": {"incumbent": "0.703", "candidate": ["0.2", "0.703"]},
}
REJECT = {**DECIDED, "result": "reject", "blame": "better", "brief": "at best 70.3 %, needs more than 70.3 %"}
ACCEPT = {**DECIDED, "result": "accept", "blame": None}


def printed(*told):
    """What a terminal shows of decisions and completions."""
    out = io.StringIO()
    terminal = LineProgress(Console(file=out, width=160), RunFacts(), spent=dict)
    for name, record in told:
        getattr(terminal, name)(record)
    return out.getvalue()


def test_a_reject_shows_the_gate_with_the_values_under_it():
    line = decision_line(REJECT).plain
    assert "70.3 %" in line
    assert line.endswith("+2 −1 on 48 of 118   gate `better` failed: at best 70.3 %, needs more than 70.3 %")


def test_an_accept_that_came_early_shows_the_least_and_then_the_whole():
    shown = printed(("decided", ACCEPT), ("completed", {"completed": 3, "goal": "0.75"}))
    first, second = shown.splitlines()
    assert "70.3 % →  20.0+ %" in first
    assert second.strip() == "=  75.0 % on all of validation"


def test_an_accept_on_all_evidence_has_one_line():
    whole = {**ACCEPT, "goal": {"incumbent": "0.703", "candidate": "0.75"}}
    shown = printed(("decided", whole), ("completed", {"completed": 3, "goal": "0.75"}))
    assert len(shown.splitlines()) == 1
    assert "75.0 %" in shown


def test_candidates_of_a_pool_have_numbers_and_an_undecided_gate_its_values():
    lost = {
        **DECIDED,
        "result": "undecided",
        "reason": "rollouts stayed unmeasured",
        "brief": "70 % to 80 %, needs more than 75 %",
    }
    line = decision_line({**lost, "pool": {"candidate": 2, "of": 3}}).plain
    assert line.startswith("  step 3/24 #2")
    assert line.endswith("rollouts stayed unmeasured: 70 % to 80 %, needs more than 75 %")


# ---- what a run shows -----------------------------------------------------------------------------


class Clock:
    """A clock that is set by hand."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


class Ledger:
    """Totals that are set by hand."""

    def __init__(self):
        self.calls, self.tokens, self.cost = 0, 0, 0

    def __call__(self):
        total = {"calls": self.calls, "tokens": self.tokens, "cost_nano": self.cost}
        return {"charged": {"total": total}, "paid": {"total": total}}


CAPS = BudgetPlan(epochs=4, calls=3000, tokens=2_000_000, cost=Fraction(3), time=Fraction(5400))
FACTS = RunFacts(4, CAPS, ExpectedCalls(before=100, step=Fraction(100), steps=24, after=300))
LONG = "a" * 200
EDIT = "add to rules: If the ticket mentions \x1b[31m" + LONG


def run_through(shown, ledger, clock, name="gate"):
    """A baseline, a step, and a stage of that step that is half done."""
    shown.stage("baseline", 118)
    for _ in range(118):
        shown.advance()
    ledger.calls, ledger.tokens, ledger.cost = 118, 43_000, 410_000_000
    shown.step(Position(1, 3, 24), "0.703")
    shown.stage("rollout", 40)
    shown.advance(40)
    shown.stage("reflect", 0)
    shown.candidates([(EDIT, "delete r3")])
    shown.stage(name, 118)
    clock.now += 60
    shown.advance(59)
    shown.seen([CandidateProgress(1, 2, 1, 48, 118, ["0.2", "0.712"])])


def area(width, name="gate", **options):
    """The live area of a terminal of that width, as printed lines."""
    out, ledger, clock = io.StringIO(), Ledger(), Clock()
    console = Console(file=out, width=width, force_terminal=True, color_system=None, **options)
    shown = LiveProgress(console, FACTS, spent=ledger, clock=clock)
    run_through(shown, ledger, clock, name)
    console.print(shown.area())
    return out.getvalue().splitlines()


@pytest.mark.parametrize("width", [40, 80, 120])
@pytest.mark.parametrize("name", ["gate", "a stage of", LONG])
def test_the_live_area_fits_any_width_and_six_lines(width, name):
    lines = area(width, name)
    assert len(lines) <= 6
    assert max(map(len, lines)) <= width
    assert "\x1b[31m" not in "".join(lines)


def test_the_live_area_has_step_stage_scores_edits_and_caps():
    head, score, edits, spent, left = area(120)
    assert head.startswith("step 3/24  epoch 1/4  gate")
    assert head.endswith("59/118")
    assert score == "score     incumbent 70.3 %, candidate +2 −1 on 48 of 118: 20.0 % to 71.2 %"
    assert edits.startswith("edits     2: add to rules: If the ticket")
    assert spent == "spent     118 of 3,000 calls, 43.0k of 2.0M tokens, $0.41 of $3.00, 1 of 90 min"
    assert left == "left      about 6 min"


def test_plain_lines_name_every_stage_with_work_and_do_not_depend_on_the_clock():
    printed = []
    for seconds in (0, 20):
        out, ledger, clock = io.StringIO(), Ledger(), Clock()
        shown = LineProgress(Console(file=out, width=60), RunFacts(4), spent=ledger, clock=clock)
        shown.stage("baseline", 118)
        clock.now += seconds
        shown.advance(118)
        ledger.calls = 118
        shown.step(Position(1, 1, 24), "0.703")
        shown.stage("rollout", 40)
        shown.stage("reflect", 5)
        shown.stage("aggregate", 0)
        shown.stage("final test", 400)
        printed.append(out.getvalue())
    assert printed[0] == printed[1]
    assert printed[0].splitlines() == [
        "  baseline       118 rollouts",
        "  step 1/24      epoch 1/4  incumbent 70.3 %, spent 118 calls, 0 tokens, $0.00",
        "  step 1/24      rollout    40 rollouts",
        "  step 1/24      reflect    5 calls",
        "  final test     400 rollouts",
    ]


def test_a_long_stage_prints_a_line_now_and_then():
    out, ledger, clock = io.StringIO(), Ledger(), Clock()
    shown = LineProgress(Console(file=out, width=200), FACTS, spent=ledger, clock=clock)
    shown.stage("baseline", 10_000)
    for _ in range(1000):
        clock.now += 0.1
        shown.advance()
    lines = out.getvalue().splitlines()
    assert 3 <= len(lines) <= 5
    assert lines[1].startswith("  baseline       300 of 10,000 rollouts, spent ")


def test_a_wait_whose_text_changes_all_the_time_prints_a_line_now_and_then():
    out, lines, clock = io.StringIO(), [], Clock()
    plain = LineProgress(Console(file=out, width=200), FACTS, spent=Ledger(), clock=clock)
    told = JsonLines(lines.append, FACTS, spent=Ledger(), clock=clock)
    for second in range(100):
        clock.now = second
        for shown in (plain, told):
            shown.waiting(f"vLLM starts, {second} s")
    for shown in (plain, told):
        shown.waiting(None)
    assert len(out.getvalue().splitlines()) == 4
    assert [json.loads(line)["message"] for line in lines][::4] == ["vLLM starts, 0 s", None]


def test_dumb_terminals_and_files_get_plain_lines_and_quiet_shows_nothing(monkeypatch):
    monkeypatch.setenv("TERM", "dumb")
    out = io.StringIO()
    assert type(display(Console(file=out, force_terminal=True), FACTS, quiet=False, spent=dict)) is LineProgress
    monkeypatch.setenv("TERM", "xterm")
    assert type(display(Console(file=out), FACTS, quiet=False, spent=dict)) is LineProgress
    assert type(display(Console(file=out, force_terminal=True), FACTS, quiet=False, spent=dict)) is LiveProgress
    quiet = display(Console(file=out, force_terminal=True), FACTS, quiet=True, spent=Ledger())
    assert type(quiet) is Progress
    with quiet:
        quiet.note("a note")
        quiet.decided(REJECT)
        run_through(quiet, Ledger(), Clock())
    assert out.getvalue() == ""


def test_no_color_is_heeded(monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    out = io.StringIO()
    shown = LineProgress(Console(file=out, force_terminal=True, width=200), FACTS, spent=dict)
    shown.decided(REJECT)
    assert "\x1b[3" not in out.getvalue()


def test_on_a_narrow_terminal_the_reason_is_wrapped_by_words_below_its_decision():
    out = io.StringIO()
    shown = LineProgress(Console(file=out, force_terminal=True, color_system=None, width=80), FACTS, spent=dict)
    shown.decided({**REJECT, "brief": "at best 66.95 %, needs more than 66.95 % " * 3})
    lines = out.getvalue().splitlines()
    assert lines[1].startswith(" " * 17 + "gate `better` failed")
    assert all(len(line.rstrip()) <= 80 for line in lines)


def test_json_lines_are_one_object_an_event():
    lines, ledger, clock = [], Ledger(), Clock()
    shown = JsonLines(lines.append, FACTS, spent=ledger, clock=clock)
    shown.begin(verb="compile", skill="x", goal="correct")
    run_through(shown, ledger, clock)
    shown.decided(REJECT)
    shown.note("two\nlines")
    shown.waiting("vLLM")
    events = [json.loads(line) for line in lines]
    assert [event["event"] for event in events if event["event"] != "progress"] == [
        "start", "stage", "step", "stage", "candidates", "stage", "evidence", "decision", "note", "waiting",
    ]  # fmt: skip
    start = events[0]
    assert start["format_version"] == 1
    assert start["caps"]["cost_nano"] == 3 * 10**9
    step, evidence = (next(e for e in events if e["event"] == name) for name in ("step", "evidence"))
    assert step == {"event": "step", "place": "step 3/24", "epoch": 1, "incumbent": 0.703}
    assert evidence["candidates"][0]["goal"] == [0.2, 0.712]
    progress = [event for event in events if event["event"] == "progress"]
    assert [event["done"] for event in progress if event["stage"] == "baseline"][-1] == 118
    assert len(progress) == 12
    assert events[-3] == {"event": "decision", **REJECT}


# ---- time left ------------------------------------------------------------------------------------


def test_nothing_is_said_of_the_time_left_before_there_is_evidence():
    clock = Clock()
    left = TimeLeft(FACTS.expected, CAPS, clock)
    assert left.seconds(RunUsage()) is None
    clock.now = 3600
    assert left.seconds(RunUsage()) is None
    assert left.seconds(RunUsage(calls=19, sent=19)) is None
    clock.now = 3605
    assert left.seconds(RunUsage(calls=500, sent=500)) is None


def test_the_time_left_is_the_expected_calls_at_the_measured_rate():
    clock = Clock()
    left = TimeLeft(FACTS.expected, BudgetPlan(epochs=4), clock)
    left.elapsed(RunUsage())
    left.elapsed(RunUsage(calls=1, sent=1))
    clock.now = 100
    # A call a second: 24 steps of 100 and the test of 300.
    assert left.seconds(RunUsage(calls=100, sent=100)) == 2700
    left.step(1, RunUsage(calls=100, sent=100))
    left.step(2, RunUsage(calls=150, sent=150))
    clock.now = 150
    # The first step took 50 calls, the plan says 100: 75 each from here.
    assert left.seconds(RunUsage(calls=150, sent=150)) == 23 * 75 + 300
    left.stage("final test", RunUsage(calls=2000, sent=2000))
    clock.now = 2100
    assert left.seconds(RunUsage(calls=2100, sent=2100)) == 200


@pytest.mark.parametrize(
    ("budget", "seconds"),
    [
        (BudgetPlan(calls=150), 50),
        (BudgetPlan(tokens=15_000), 50),
        (BudgetPlan(cost=Fraction(3)), 200),
        (BudgetPlan(time=Fraction(130)), 30),
    ],
)
def test_a_cap_that_ends_the_run_sooner_counts(budget, seconds):
    clock = Clock()
    left = TimeLeft(FACTS.expected, budget, clock)
    left.elapsed(RunUsage())
    left.elapsed(RunUsage(calls=1, sent=1))
    clock.now = 100
    assert left.seconds(RunUsage(calls=100, tokens=10_000, cost=10**9, sent=100)) == seconds


def test_replies_from_the_cache_are_no_measure_of_the_rate():
    clock = Clock()
    left = TimeLeft(FACTS.expected, BudgetPlan(), clock)
    left.elapsed(RunUsage(sent=1000))
    clock.now = 60
    assert left.seconds(RunUsage(calls=900, sent=1000)) is None


def test_times_are_said_as_people_say_them():
    assert [describe_seconds_left(seconds) for seconds in (3, 44, 100, 3600, 9000)] == [
        "about 10 s left",
        "about 40 s left",
        "about 2 min left",
        "about 60 min left",
        "about 2.5 h left",
    ]

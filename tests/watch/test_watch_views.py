"""The views of a run on a terminal: widths, encodings, hostile text, and what each shows."""

import io
import re
import unicodedata
from dataclasses import replace
from fractions import Fraction

import pytest
from made_run import MARKUP, make_run
from rich.cells import cell_len
from rich.console import Console

from skillc.gates.draw import ComparisonState, GateState, SideState
from skillc.optimize.host import CandidateProgress
from skillc.review.curve import Curve, CurvePoint, Estimate, curve_of
from skillc.review.decisions import GateResult
from skillc.review.run_view import read_run
from skillc.review.words import duration
from skillc.run.progress import Status
from skillc.run.time_left import RunUsage
from skillc.watch.charset import Encodable
from skillc.watch.frame import Evidence, Frame, Live
from skillc.watch.plot import plot
from skillc.watch.screen import View, keys_in, print_frame
from skillc.watch.views import VIEWS, Choice, header, lines_of
from skillc.watch.widgets import Axis, bar, spark

HOSTILE = MARKUP + "\x1b[2J\x1b]0;title\x07\r\u202e精度"
WIDTHS = (60, 80, 120, 200)


def side(low, high, text="candidate.correct"):
    return SideState(text, low, high, f"{low} to {high}")


def gate(truth, low, high, name="better"):
    return GateState(name, truth, (ComparisonState(side(low, high), ">", side(0.5, 0.5, "incumbent.correct"), truth),))


def seen(truth="unknown", low=0.2, high=0.9, name="better"):
    return CandidateProgress(1, 2, 1, 3, 9, [low, high], (gate(truth, low, high, name),))


def live_of(name="better"):
    """A run at the gates of a step."""
    status = Status(
        place="step 3/10",
        epoch=1,
        stage="gate",
        done=3,
        total=9,
        incumbent=0.5,
        edits=(("add to rules: " + HOSTILE,),),
        seen=(seen("true", 0.6, 0.8, name),),
        first_seen=(seen(name=name),),
    )
    usage = RunUsage(10, 500, 7)
    flying = {"target": 2, "opt" + name: 1}
    return Live(status, {"target": usage}, usage, flying, left=90, notes=(HOSTILE,), epochs=2)


@pytest.fixture(scope="module")
def frame(watched):
    view = read_run(watched.program)
    return Frame(view, curve_of(view), Live(evidence={2: Evidence((seen(),), (seen("false", 0.2, 0.4),))}), "finished")


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    made = make_run(tmp_path_factory.mktemp("hostile") / "run", steps=3, examples=30, markup=MARKUP)
    view = read_run(made.program)
    gates = (GateResult("better" + HOSTILE, "false", f"a {HOSTILE}\n|\n{HOSTILE}"),)
    view = replace(
        view,
        lock=None,
        decisions=tuple(
            replace(each, reason=HOSTILE, brief=HOSTILE, place=each.place + HOSTILE, gates=gates, guidance=HOSTILE)
            for each in view.decisions
        ),
        lines=tuple({**line, "brief": HOSTILE, "blame": HOSTILE, "place": HOSTILE} for line in view.lines),
        items=replace(view.items, items=tuple(replace(each, id=HOSTILE, label=HOSTILE) for each in view.items.items)),
    )
    return Frame(view, curve_of(view), live_of(HOSTILE), "running", 95.0)


def printed(frame, choice, width, encoding="utf-8"):
    """The rows of a view as a terminal gets them."""
    raw = io.BytesIO()
    out = io.TextIOWrapper(raw, encoding=encoding, errors="strict", newline="\n")
    console = Console(file=out, width=width, height=30, force_terminal=True, color_system=None, legacy_windows=False)
    console.print(Encodable(header(frame)))
    for line in lines_of(frame, choice, width, 30):
        console.print(Encodable(line))
    out.flush()
    text = re.sub(r"\x1b\[[0-9;]*m", "", raw.getvalue().decode(encoding))
    return text.splitlines()


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("view", VIEWS)
def test_every_view_fits_every_width_and_no_text_moves_the_cursor(frame, hostile, view, width):
    for each, at in ((frame, None), (frame, 2), (hostile, None), (hostile, 3)):
        rows = printed(each, Choice(view, at), width)
        assert rows
        assert max(map(cell_len, rows)) <= width
        assert all(character == " " or unicodedata.category(character)[0] != "C" for row in rows for character in row)


@pytest.mark.parametrize("view", VIEWS)
def test_a_terminal_without_unicode_gets_its_own_characters(hostile, view):
    for encoding in ("ascii", "latin-1"):
        rows = printed(hostile, Choice(view), 80, encoding)
        assert max(map(len, rows)) <= 80
    assert "→" not in "".join(printed(hostile, Choice(view), 80, "ascii"))


def test_the_overview_of_a_finished_run_has_the_verdict_the_curve_and_how_sure_it_is(frame):
    text = "\n".join(printed(frame, Choice(), 120))
    assert "improved, delivered" in text
    assert "validation (selected on) from" in text
    assert "test (held out) from 30.0 % to 60.0 %" in text
    assert "test: initial, best" in text
    assert "step 6/10      reject" in text
    assert "smallest detectable gain: 10.0 points (80 % power)" in text
    assert "noise floor" in text


def test_a_run_at_work_shows_stage_gates_calls_in_flight_and_spend_against_caps(hostile):
    text = "\n".join(printed(hostile, Choice(), 120))
    assert "no report for 95 s" in text
    assert "step 3/10  epoch 1/2  gate" in text
    assert "3/9" in text
    assert "✓ " in text
    assert "holds" in text
    assert "in flight 3 calls: target 2" in text
    assert "spent     10 calls, 500 tokens, $0.00" in text
    assert "left      about 2 min" in text


def test_the_gates_of_a_decision_are_drawn_with_their_operands(frame):
    rows = printed(frame, Choice("gates", 2), 100)
    text = "\n".join(rows)
    assert "decision 2" in text
    assert "on the last evidence before the decision" in text
    assert re.search(r"✗ better +fails .*━.*┃", text)
    assert "✗ fails better  candidate.correct > incumbent.correct" in text
    assert "35 % to 81.25 %" in text
    assert "? open  compact" in text


def test_a_decision_is_shown_with_its_edits_their_screen_and_credit(frame):
    text = "\n".join(printed(frame, Choice("decisions", 3), 120))
    assert re.search(r"^> step 3/10", text, re.M)
    assert "3  step 3/10  accepted" in text
    assert "replace" in text
    assert "why: shorter" in text
    assert "screen, alone on training examples: cured 1 of 1" in text
    assert "on validation: cured 1, broke 0" in text
    assert "screened out" in text


def test_the_grid_shows_a_sign_for_each_version_with_the_most_flips_first(frame):
    for split, words in (
        ("validation", "validation (selected on)"),
        ("test", "test (held out)"),
        ("train", "train (learned from)"),
    ):
        rows = printed(frame, Choice("examples", split=split), 120)
        assert words in rows[1]
        cells = [row for row in rows if re.match(r"[■□?·]+ ", row)]
        flips = [int(re.search(r"  (\d+) ", row)[1]) for row in cells]
        assert flips == sorted(flips, reverse=True)
        assert len(cells) == len([item for item in frame.view.items.items if item.split == split])


def test_the_spend_of_a_finished_run_is_by_role_and_by_stage(frame):
    timed = replace(frame, view=replace(frame.view, seconds={"gate": 90.0, "rollout": 30.0, "start": 0.01}))
    text = "\n".join(printed(timed, Choice("spend"), 120))
    assert re.search(r"target +gate +\d", text)
    assert re.search(r"gate +1 min 30 s +75 %", text)
    assert "start" not in text
    assert "planned steps were not run" in text


def test_a_file_gets_whole_lines_without_colors(frame, monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    out = io.StringIO()
    print_frame(Console(file=out, highlight=False), frame)
    text = out.getvalue()
    assert "\x1b" not in text
    assert "failed: at best" in text


def test_no_color_turns_colors_off(frame, monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    out = io.StringIO()
    print_frame(Console(file=out, force_terminal=True, width=100), frame)
    assert not re.search(r"\x1b\[[0-9;]*3[0-7]", out.getvalue())


# ---- parts ----------------------------------------------------------------------------------------


def test_bars_narrow_on_one_axis_and_mark_the_bound():
    bound = side(0.5, 0.5)
    axis = Axis.of([side(0.0, 1.0), bound])
    wide, narrow, point = (bar(side(*ends), bound, axis, 21, "").plain for ends in ((0.0, 1.0), (0.6, 0.9), (0.7, 0.7)))
    assert wide.count("━") > narrow.count("━") > 0
    assert wide.index("╋") == narrow.index("┃") == point.index("┃") == 10
    assert point.count("◆") == 1
    assert "━" not in point
    assert bar(SideState("x", None, None, "unknown"), bound, axis, 21, "").plain.count("━") == 20


def test_levels_keep_the_first_and_the_last_value():
    assert spark([0.0, 0.5, None, 1.0], 10) == "▁▅ █" or spark([0.0, 0.5, None, 1.0], 10) == "▁▄ █"
    assert spark(list(range(100)), 5)[0] == "▁"
    assert spark(list(range(100)), 5)[-1] == "█"
    assert spark([None], 5) == ""
    assert len(spark([1.0], 5)) == 1


def test_a_curve_of_any_size_is_drawn_within_its_box(frame):
    goal = frame.view.plan.goal
    interval = (Fraction(2, 5), Fraction(3, 5))
    for count in (1, 2, 300):
        points = tuple(CurvePoint(None, Estimate(Fraction(1, 2), interval, 9, 9), changed=i > 0) for i in range(count))
        rows = plot(Curve(points, (None, None)), goal, 70, 12)
        assert len(rows) == 12
        assert max(row.cell_len for row in rows[:10]) <= 70
    assert (
        plot(Curve((CurvePoint(None, None, changed=False),), (None, None)), goal, 70, 12)[0].plain
        == "nothing was measured so far"
    )


def test_durations_are_said_as_people_say_them():
    assert [duration(each) for each in (0.42, 12, 185, 7800)] == ["0.4 s", "12 s", "3 min 5 s", "2 h 10 min"]


# ---- keys -----------------------------------------------------------------------------------------


def test_keys_are_read_from_what_a_terminal_sends():
    assert list(keys_in(b"q")) == ["quit"]
    assert list(keys_in(b"\x1b[A\x1bOB3")) == ["up", "down", "3"]
    assert list(keys_in(b"\x1b")) == ["last"]
    assert list(keys_in(b"\x1b[99;5~x")) == []
    assert list(keys_in("é?".encode())) == ["help"]


def test_keys_choose_view_decision_split_and_scroll(frame):
    screen = View(Console(file=io.StringIO(), width=80, height=20, force_terminal=True))
    assert not screen.press("5", frame)
    screen.press("split", frame)
    screen.press("split", frame)
    screen.render(frame)
    for key in ("down", "page down", "page down", "up"):
        screen.press(key, frame)
    # 26 lines, of which 17 are shown.
    assert screen.choice == Choice("examples", split="train", top=26 - 17 - 2)
    screen.press("split", frame)
    screen.press("split", frame)
    assert (screen.choice.split, screen.choice.top) == ("test", 0)
    screen.press("left", frame)
    assert screen.choice.at == len(frame.view.decisions) - 1
    for _ in range(20):
        screen.press("left", frame)
    assert screen.choice.at == 1
    screen.press("last", frame)
    assert screen.choice.at is None
    screen.press("next view", frame)
    assert screen.choice.view == "spend"
    screen.press("next view", frame)
    assert screen.choice.view == "overview"
    screen.press("help", frame)
    assert screen.help
    assert screen.press("quit", frame)


@pytest.mark.parametrize("size", [(60, 20), (80, 24), (120, 40), (200, 60), (30, 8)])
def test_the_screen_has_the_size_of_the_terminal(frame, size):
    width, height = size
    console = Console(file=io.StringIO(), width=width, height=height, force_terminal=True, legacy_windows=False)
    screen = View(console)
    for view in "123456":
        screen.press(view, frame)
        rows = console.render_lines(screen.render(frame), console.options.update(height=None), pad=False)
        assert len(rows) == height
        assert max(sum(segment.cell_length for segment in row) for row in rows) <= width

"""Show frames: on a terminal with keys, or as plain lines elsewhere."""

from __future__ import annotations

import contextlib
import os
import select
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.live import Live as Screen
from rich.segment import Segment
from rich.text import Text

from skillc.items.record import SplitName
from skillc.run.progress import decision_line
from skillc.watch.charset import Encodable
from skillc.watch.follow import Follower
from skillc.watch.frame import Frame
from skillc.watch.replay import Replay
from skillc.watch.views import VIEWS, Choice, ViewName, header, lines_of

_TICK = 0.2
_PLAIN_HEIGHT = 46
_NEXT_SPLIT: dict[SplitName, SplitName] = {"validation": "test", "test": "train", "train": "validation"}
_KEYS = {
    b"\x1b[A": "up",
    b"\x1b[B": "down",
    b"\x1b[C": "right",
    b"\x1b[D": "left",
    b"\x1b[5~": "page up",
    b"\x1b[6~": "page down",
    b"\x1b[H": "top",
    b"\x1b[F": "bottom",
    b"\x1b": "last",
    b"\t": "next view",
    b"\x1b[Z": "previous view",
    b"k": "up",
    b"j": "down",
    b"l": "right",
    b"h": "left",
    b"g": "top",
    b"G": "bottom",
    b"s": "split",
    b" ": "pause",
    b"+": "faster",
    b"=": "faster",
    b"-": "slower",
    b"?": "help",
    b"q": "quit",
    b"\x03": "quit",
    b"\x04": "quit",
}
_HELP = (
    ("1 to 6, tab", "overview, curve, gates, decisions, examples, spend"),
    ("left, right", "the decision before, the next one"),
    ("esc", "follow the last decision again"),
    ("up, down, page up, page down, g, G", "scroll"),
    ("s", "the next split of the examples"),
    ("space, +, -", "of a replay: pause, faster, slower"),
    ("q", "quit; a running compile goes on"),
)


def is_interactive(console: Console) -> bool:
    """Return whether a console can move its cursor and has a keyboard."""
    return console.is_terminal and not console.is_dumb_terminal and sys.stdin.isatty() and _has_keys()


def _has_keys() -> bool:
    try:
        import termios  # noqa: F401
    except ImportError:
        return False
    return True


# ---- plain ----------------------------------------------------------------------------------------


def print_frame(console: Console, frame: Frame, view: ViewName = "overview") -> None:
    """Print a view of a frame; in a file, where nothing has to fit a width, with whole lines."""
    console.print(Encodable(header(frame)))
    for line in lines_of(frame, Choice(view), console.width, _PLAIN_HEIGHT):
        if isinstance(line, Text) and not console.is_terminal:
            line.overflow = "ignore"
            console.print(Encodable(line), soft_wrap=True)
        else:
            console.print(Encodable(line))


def print_lines(console: Console, lines: Sequence[Mapping[str, Any]]) -> None:
    """Print decisions, a line each."""
    for line in lines:
        console.print(Encodable(decision_line(line)), soft_wrap=True)


def print_decisions(console: Console, follower: Follower, view: ViewName, *, tick: float = _TICK) -> None:
    """Print each decision of a run at work as it is made, until the run ends, and then a frame."""
    frame, _ = follower.poll()
    printed = 0
    while True:
        print_lines(console, frame.view.lines[printed:])
        printed = len(frame.view.lines)
        if frame.state != "running":
            break
        time.sleep(tick)
        frame, _ = follower.poll()
    print_frame(console, follower.settled(), view)


# ---- keys -----------------------------------------------------------------------------------------


class Keys:
    """Reads keys of a terminal without waiting for a line end."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._rest = b""

    def wait(self, seconds: float) -> list[str]:
        """Return the keys that were pressed, at the latest after some seconds."""
        ready, _, _ = select.select([self._descriptor], [], [], seconds)
        if not ready:
            return []
        data = os.read(self._descriptor, 1024)
        return ["quit"] if not data else list(keys_in(data))


def keys_in(data: bytes) -> Iterator[str]:
    """Yield the keys in what a terminal sent; unknown ones are left out."""
    longest = sorted(_KEYS, key=len, reverse=True)
    # Some terminals send the arrows of their application mode.
    data = data.replace(b"\x1bO", b"\x1b[")
    while data:
        known = next((key for key in longest if data.startswith(key) and (key != b"\x1b" or len(data) == 1)), None)
        if known is not None:
            yield _KEYS[known]
            data = data[len(known) :]
        elif data[:1].isdigit():
            yield data[:1].decode()
            data = data[1:]
        else:
            data = b"" if data.startswith(b"\x1b") else data[1:]


@contextlib.contextmanager
def raw_keys(descriptor: int) -> Iterator[Keys]:
    """Read single keys inside, and leave the terminal as it was."""
    import termios
    import tty

    before = termios.tcgetattr(descriptor)
    tty.setcbreak(descriptor)
    try:
        yield Keys(descriptor)
    finally:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)


# ---- the screen -----------------------------------------------------------------------------------


class View:
    """The state of a screen: what the user chose, and what is rendered of a frame."""

    def __init__(self, console: Console, replay: Replay | None = None) -> None:
        self.console, self.replay = console, replay
        self.choice = Choice()
        self.help = False
        self._longest = 0

    def press(self, key: str, frame: Frame | None) -> bool:
        """Apply a key; return whether the user quits."""
        choice, page = self.choice, max(1, self.console.height - 6)
        at = VIEWS.index(choice.view)
        if self.help and key != "quit":
            self.help = False
            return False
        match key:
            case "quit":
                return True
            case "help":
                self.help = True
            case "next view" | "previous view":
                step = 1 if key == "next view" else -1
                self.choice = replace(choice, view=VIEWS[(at + step) % len(VIEWS)], top=0)
            case "1" | "2" | "3" | "4" | "5" | "6":
                self.choice = replace(choice, view=VIEWS[int(key) - 1], top=0)
            case "up" | "down" | "page up" | "page down":
                step = (page if "page" in key else 1) * (-1 if "up" in key else 1)
                self.choice = replace(choice, top=min(max(0, choice.top + step), self._longest))
            case "top" | "bottom":
                self.choice = replace(choice, top=0 if key == "top" else self._longest)
            case "split":
                self.choice = replace(choice, split=_NEXT_SPLIT[choice.split], top=0)
            case "last":
                self.choice = replace(choice, at=None, top=0)
            case "left" | "right":
                self._step(-1 if key == "left" else 1, frame)
            case "pause" | "faster" | "slower" if self.replay is not None:
                if key == "pause":
                    self.replay.pause()
                else:
                    self.replay.faster(2 if key == "faster" else 0.5)
        return False

    def _step(self, by: int, frame: Frame | None) -> None:
        if self.replay is not None:
            self.replay.move(by)
        elif frame is not None:
            last = len(frame.view.decisions)
            at = (last if self.choice.at is None else min(self.choice.at, last)) + by
            self.choice = replace(self.choice, at=min(max(1, at), last) if last else None, top=0)

    def render(self, frame: Frame | None, waiting: str = "") -> RenderableType:
        """Return the screen."""
        console = self.console
        width, height = console.width, console.height
        room = max(1, height - 3)
        if self.help:
            body: list[RenderableType] = [
                Text.assemble((f"{keys:<36}", "bold"), text, no_wrap=True, overflow="ellipsis") for keys, text in _HELP
            ]
        elif frame is None:
            body = [Text(waiting)]
        else:
            body = lines_of(frame, self.choice, width, room)
        rows = rendered(console, body, width)
        self._longest = max(0, len(rows) - room)
        top = min(self.choice.top, self._longest)
        shown = rows[top : top + room]
        shown += [[Segment(" " * width)]] * (room - len(shown))
        head = header(frame) if frame is not None else Text("skillc watch", style="bold")
        return Encodable(Group(head, Text("─" * width, style="dim"), _Rows(shown), self._footer(top)))

    def _footer(self, top: int) -> Text:
        line = Text(no_wrap=True, overflow="ellipsis")
        if self.replay is not None:
            line.append(f" {self.replay.title}  ", style="bold")
        for i, name in enumerate(VIEWS, 1):
            line.append(f" {i} {name} ", style="reverse" if name == self.choice.view else "dim")
        more = f"  {top}-{self._longest} more ↓" if top < self._longest else ""
        return line.append(f"{more}  ? help  q quit", style="dim")


class _Rows:
    """Rendered rows."""

    def __init__(self, rows: Sequence[Sequence[Segment]]) -> None:
        self._rows = rows

    def __rich_console__(self, console: Console, options: object) -> Iterator[Segment]:
        for row in self._rows:
            yield from row
            yield Segment.line()


def rendered(console: Console, lines: Sequence[RenderableType], width: int) -> list[list[Segment]]:
    """Return lines as rows of segments, each of the whole width."""
    options = console.options.update(width=width, height=None)
    return console.render_lines(Group(*lines), options, pad=True)


def show(
    console: Console,
    poll: Callable[[], tuple[Frame | None, bool, str]],
    first: ViewName = "overview",
    replay: Replay | None = None,
) -> None:
    """Show frames until the user quits.

    Args:
        console: a terminal.
        poll: returns the frame, whether it changed, and what is waited for without one.
        first: the view to begin with.
        replay: what the keys of a replay control.
    """
    view = View(console, replay)
    view.choice = Choice(first)
    with raw_keys(sys.stdin.fileno()) as keys, Screen(console=console, screen=True, auto_refresh=False) as screen:
        size, shown = console.size, 0.0
        frame, _, waiting = poll()
        screen.update(view.render(frame, waiting), refresh=True)
        while True:
            pressed = keys.wait(_TICK if replay is None else _TICK / 4)
            if any(view.press(key, frame) for key in pressed):
                return
            frame, changed, waiting = poll()
            now = time.monotonic()
            # A run at work has a clock on its screen.
            stale = frame is not None and frame.state == "running" and now - shown >= 1
            if changed or pressed or stale or console.size != size:
                size, shown = console.size, now
                screen.update(view.render(frame, waiting), refresh=True)

"""Terminal view for labelling: the queue, the session, the labels of other sources, and a key for each decision."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import takewhile
from time import monotonic
from typing import ClassVar

from rich.cells import set_cell_size
from rich.segment import Segment
from rich.style import Style
from rich.text import Text
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.screen import ModalScreen
from textual.strip import Strip
from textual.widget import Widget
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option

from skillc.diagnostics.render import printable
from skillc.errors import SkillcError
from skillc.labels.session_text import session_text
from skillc.sessions.examples import request_of
from skillc.sessions.labels import PERSON, Label, Outcome
from skillc.sessions.queue import (
    SEEN,
    Draft,
    Entry,
    draft_of,
    findings_of,
    keep_draft,
    my_label,
    other_labels,
    replace_label,
    whole_session,
)
from skillc.sessions.store import SessionStore
from skillc.trajectories.trajectory import Message

_SIGNS = {"disputed": "!", "unlabelled": "·", "agreed": "=", "decided": "+"}
_KEYS = "  ".join(
    # No-break spaces: a key stays beside its word.
    part.replace(" ", "\N{NO-BREAK SPACE}")
    for part in (
        *("w worked", "f failed", "u unclear", "s skill", "n note", "j/k next, previous", "space page", "/ search"),
        *("z undo", "? help", "q quit"),
    )
)
_HELP = """\
w  it worked              j, k      next, previous session
f  it failed              space, b  a page down, up
u  unclear                up, down  a line
s  choose the skill       g         first one without your label
n  write a note           x         unfold calls and results
z  undo                   /         search; Enter: next match
r  show other sources     t         light or dark
                          q         quit

Every key is stored at once. In the queue, w f u are your labels, ! sources disagree or are unclear, · no source has \
said anything, = all sources agree.

What they say is hidden until you have decided, so that agreement means something. A label that you give after r has \
the note "after seeing the other sources"."""
_TICK = 0.03
_EXCERPT, _TEMPLATE = 400, 16


class Queue(Widget):
    """The list of sessions; only visible lines are drawn."""

    def __init__(self, entries: Sequence[Entry]) -> None:
        super().__init__(id="queue")
        self.entries = list(entries)
        self.cursor = 0
        self.titles: dict[str, str] = {}

    @property
    def first(self) -> int:
        """The entry on the first line: the cursor stays in the middle third where it can."""
        height = max(1, self.size.height)
        return max(0, min(self.cursor - height // 3, len(self.entries) - height))

    def on_screen(self) -> Sequence[Entry]:
        """Return the entries that have a line."""
        return self.entries[self.first : self.first + max(1, self.size.height)]

    def render_line(self, y: int) -> Strip:
        """Draw one line: the cursor, the state, and the beginning of the request."""
        number, width = self.first + y, self.size.width
        background = Style.from_color(bgcolor=self.rich_style.bgcolor, color=self.rich_style.color)
        if number >= len(self.entries):
            return Strip([Segment(" " * width, background)])
        entry = self.entries[number]
        sign = entry.mine.outcome[0] if entry.mine is not None else _SIGNS[entry.state]
        title = self._own_words(number)
        at = number == self.cursor
        text = set_cell_size(f"{'>' if at else ' '}{sign} {title}", width)
        return Strip([Segment(text, background + Style(reverse=True, bold=True) if at else background)])

    def _own_words(self, number: int) -> str:
        """Return the title without the beginning that it shares with the one above or below it."""
        title = self.titles.get(self.entries[number].key)
        if title is None:
            return printable(self.entries[number].key)
        near = [self.entries[i].key for i in (number - 1, number + 1) if 0 <= i < len(self.entries)]
        shared = max((_shared(title, self.titles.get(key, "")) for key in near), default=0)
        shared = title.rfind(" ", 0, shared + 1)
        return f"…{title[shared:]}" if _TEMPLATE <= shared < len(title) - 1 else title


def _shared(first: str, second: str) -> int:
    """Return the length of the common beginning of two texts."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(first, second, strict=False)))


class Ask(ModalScreen[str | None]):
    """One line of text; Escape gives None."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "dismiss(None)", "cancel")]

    def __init__(self, title: str, value: str = "") -> None:
        super().__init__()
        self._title, self._value = title, value

    def compose(self) -> ComposeResult:
        """Yield the title and the line."""
        with Vertical(classes="box"):
            yield Static(Text(self._title))
            yield Input(self._value, select_on_focus=False)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Return what was written."""
        self.dismiss(event.value)


class Choose(ModalScreen[int | None]):
    """One of several names; Escape gives None."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,s", "dismiss(None)", "cancel"),
        Binding("j", "move(1)", "down"),
        Binding("k", "move(-1)", "up"),
    ]

    def __init__(self, title: str, names: Sequence[str], chosen: int) -> None:
        super().__init__()
        self._title, self._names, self._chosen = title, names, chosen

    def compose(self) -> ComposeResult:
        """Yield the title and the names."""
        with Vertical(classes="box"):
            yield Static(Text(self._title))
            yield OptionList(*(Option(Text(printable(name))) for name in self._names))

    def on_mount(self) -> None:
        """Go to the name that is chosen now."""
        self.query_one(OptionList).highlighted = self._chosen

    def action_move(self, by: int) -> None:
        """Go up or down."""
        names = self.query_one(OptionList)
        names.action_cursor_down() if by > 0 else names.action_cursor_up()

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        """Return the number of the name."""
        self.dismiss(event.option_index)


class Help(ModalScreen[None]):
    """The keys."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,q,question_mark,space,enter", "dismiss", "close")]

    def compose(self) -> ComposeResult:
        """Yield the text."""
        with VerticalScroll(classes="box"):
            yield Static(Text(_HELP))


class LabelApp(App[None]):
    """The view.

    Attributes:
        given: the sessions that the person has labelled in this view.
    """

    TITLE = "skillc sessions label"
    ENABLE_COMMAND_PALETTE = False
    CSS = """
    #head, #keys { height: auto; background: $panel; padding: 0 1; }
    #middle { height: 1fr; }
    #queue { width: 30%; min-width: 22; max-width: 50; border-right: solid $foreground 30%; }
    #session { padding: 0 1; height: auto; }
    #others { height: auto; max-height: 6; min-height: 2; border-top: solid $foreground 30%; padding: 0 1; }
    Ask, Choose, Help { align: center middle; }
    .box { width: 90%; max-width: 100; height: auto; max-height: 90%; border: round $foreground; padding: 0 1; }
    OptionList { height: auto; max-height: 14; border: none; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("w", "decide('worked')", "worked"),
        Binding("f", "decide('failed')", "failed"),
        Binding("u", "decide('unclear')", "unclear"),
        Binding("s", "skill", "skill"),
        Binding("n", "note", "note"),
        Binding("j", "move(1)", "next"),
        Binding("k", "move(-1)", "previous"),
        Binding("g", "first_open", "first open"),
        Binding("space,pagedown", "page(1)", "page"),
        Binding("b,pageup", "page(-1)", "page up"),
        Binding("down", "line(1)", "down"),
        Binding("up", "line(-1)", "up"),
        Binding("x", "unfold", "unfold"),
        Binding("slash", "search", "search"),
        Binding("z", "undo", "undo"),
        Binding("r", "reveal", "reveal"),
        Binding("t", "theme", "theme"),
        Binding("question_mark", "help", "help"),
        Binding("q", "quit", "quit"),
    ]

    def __init__(self, store: SessionStore, entries: Sequence[Entry], skills: Sequence[str], person: str) -> None:
        super().__init__()
        self.store, self.person, self.skills = store, person, list(dict.fromkeys(skills))
        self.queue = Queue(entries)
        self._labelled = sum(1 for each in entries if each.mine is not None)
        self._revealed: set[str] = set()
        self._unfolded = False
        self._done: list[tuple[str, Label | None, Label | None]] = []
        self._sought = ""
        self._search: Callable[[], None] | None = None
        # A terminal that reports a light background gets dark letters.
        light = os.environ.get("COLORFGBG", "").rpartition(";")[2] in ("7", "15")
        self.theme = "textual-light" if light else "textual-dark"

    @property
    def given(self) -> int:
        """The number of sessions that have a label of the person since the view was opened."""
        return len({key for key, _, after in self._done if after is not None})

    @property
    def entry(self) -> Entry:
        """The session at the cursor."""
        return self.queue.entries[self.queue.cursor]

    # ---- drawing -----------------------------------------------------------------------------------

    def compose(self) -> ComposeResult:
        """Yield the parts of the screen."""
        yield Static(id="head")
        with Horizontal(id="middle"):
            yield self.queue
            with VerticalScroll(id="scroll", can_focus=False):
                yield Static(id="session")
        yield Static(id="others")
        yield Static(Text(_KEYS), id="keys")

    def on_mount(self) -> None:
        """Show the first session, and read the titles of the others bit by bit."""
        self._show()
        self.set_interval(_TICK, self._tick)

    def _tick(self) -> None:
        """Continue a search, or read one title that is visible."""
        if self._search is not None:
            self._search()
            return
        missing = next((each for each in self.queue.on_screen() if each.key not in self.queue.titles), None)
        if missing is not None:
            self.queue.titles[missing.key] = self._title(missing)
            self.queue.refresh()

    def _title(self, entry: Entry) -> str:
        try:
            return printable(" ".join(request_of(whole_session(self.store, entry.key))[:_EXCERPT].split()))
        except SkillcError:
            return printable(entry.key)

    def _show(self) -> None:
        """Draw the session at the cursor from its beginning."""
        entry = self.entry
        try:
            session = whole_session(self.store, entry.key)
            text = session_text(session, findings_of(self.store, entry.key), unfolded=self._unfolded)
        except SkillcError as problem:
            text = Text(printable(str(problem)), "bold red")
        self.query_one("#session", Static).update(text)
        self.query_one("#scroll").scroll_home(animate=False)
        self._show_labels()

    def _show_labels(self) -> None:
        """Draw the header and the labels of the session at the cursor."""
        entry, queue = self.entry, self.queue
        facts = [entry.key, entry.project, (entry.began or "")[:16].replace("T", " ")]
        head = Text(f"{self._labelled:,} of {len(queue.entries):,} labelled by {printable(self.person)}   ", "bold")
        head.append(printable("  ".join(fact[:60] for fact in facts if fact)), "not bold")
        head.no_wrap, head.overflow = True, "ellipsis"
        self.query_one("#head", Static).update(head)
        mine = entry.mine
        note = mine.note if mine is not None else self._draft().note
        outcome = mine.outcome if mine is not None else "not decided"
        text = Text.assemble(("you  ", "bold"), outcome, ("   skill ", "bold"), printable(self._skill() or "none"))
        if note:
            text.append("   note ", "bold").append(printable(" ".join(note.split())[:300]))
        text.append("\nothers  ", "bold").append_text(
            self._others(hidden=mine is None and entry.key not in self._revealed)
        )
        self.query_one("#others", Static).update(text)
        queue.refresh()

    def _others(self, *, hidden: bool) -> Text:
        if hidden:
            return Text("hidden until you decide; r shows them", "italic")
        found = other_labels(self.store, self.entry.key, self.person)
        if not found:
            return Text("none")
        return Text(
            ", ".join(
                printable(
                    f"{each.source} {each.outcome} {each.certainty:.0%}" + (f" ({each.note[:80]})" if each.note else "")
                )
                for each in found
            )
        )

    # ---- decisions ---------------------------------------------------------------------------------

    def _saved(self, write: Callable[[], None]) -> bool:
        """Store something now, and report a failure."""
        try:
            write()
        except SkillcError as problem:
            self.notify(f"not saved: {printable(str(problem))}", severity="error", markup=False, timeout=10)
            return False
        return True

    def _draft(self) -> Draft:
        return draft_of(self.store, self.entry.key, self.person)

    def _skill(self) -> str:
        """Return the skill of the label: as chosen, else the only one that sources name, else the only one there is."""
        if self.entry.mine is not None:
            return self.entry.mine.skill
        chosen = self._draft().skill
        if chosen is not None:
            return chosen
        named = {each.skill for each in other_labels(self.store, self.entry.key, self.person) if each.skill}
        if not named and len(self.skills) == 1:
            named = set(self.skills)
        return named.pop() if len(named) == 1 else ""

    def _keep(self, after: Label | None) -> None:
        """Store a label in place of the person's own."""
        entry = self.entry
        before = my_label(self.store, entry.key, self.person)
        if self._saved(lambda: replace_label(self.store, before, after)):
            self._done.append((entry.key, before, after))
            self._placed(self.queue.cursor, after)

    def _placed(self, number: int, label: Label | None) -> None:
        entry = self.queue.entries[number]
        self._labelled += (label is not None) - (entry.mine is not None)
        state = "decided" if label is not None else "unlabelled" if entry.state == "decided" else entry.state
        self.queue.entries[number] = replace(entry, mine=label, state=state)
        self._show_labels()

    def action_decide(self, outcome: Outcome) -> None:
        """Store the person's decision."""
        entry, mine = self.entry, self.entry.mine
        note = mine.note if mine is not None else self._draft().note
        if mine is None and entry.key in self._revealed:
            note = f"{note} ({SEEN})".strip()
        self._keep(Label(entry.key, self._skill(), f"{PERSON}:{self.person}", outcome, 1.0, note))

    def action_skill(self) -> None:
        """Let the person choose the skill that the session exercised."""
        named = {each.skill for each in other_labels(self.store, self.entry.key, self.person) if each.skill}
        skills = [*self.skills, *sorted(named - set(self.skills))]
        current = self._skill()
        if current and current not in skills:
            skills.append(current)

        def chosen(number: int | None) -> None:
            if number is not None:
                self._set(skill=skills[number - 1] if number else "")

        at = skills.index(current) + 1 if current else 0
        self.push_screen(Choose("the skill that the session exercised", ["none of them", *skills], at), chosen)

    def action_note(self) -> None:
        """Let the person write why."""
        mine = self.entry.mine
        before = mine.note if mine is not None else self._draft().note

        def written(note: str | None) -> None:
            if note is not None:
                self._set(note=note.strip())

        self.push_screen(Ask("why, in a few words", before), written)

    def _set(self, *, skill: str | None = None, note: str | None = None) -> None:
        mine = self.entry.mine
        if mine is not None:
            changed = replace(mine, skill=mine.skill if skill is None else skill, at="")
            self._keep(replace(changed, note=mine.note if note is None else note))
            return
        draft = self._draft()
        draft = Draft(draft.skill if skill is None else skill, draft.note if note is None else note)
        if self._saved(lambda: keep_draft(self.store, self.entry.key, self.person, draft)):
            self._show_labels()

    def action_undo(self) -> None:
        """Take back the last decision, and go to its session."""
        if not self._done:
            self.notify("nothing to undo")
            return
        key, before, after = self._done[-1]
        if self._saved(lambda: replace_label(self.store, after, before)):
            self._done.pop()
            number = next(i for i, each in enumerate(self.queue.entries) if each.key == key)
            self._go(number)
            self._placed(number, before)

    def action_reveal(self) -> None:
        """Show the labels of other sources before the decision."""
        self._revealed.add(self.entry.key)
        self._show_labels()

    # ---- moving ------------------------------------------------------------------------------------

    def _go(self, number: int) -> None:
        number = max(0, min(number, len(self.queue.entries) - 1))
        if number != self.queue.cursor:
            self.queue.cursor = number
            self._show()

    def action_move(self, by: int) -> None:
        """Go to the next or the previous session."""
        self._go(self.queue.cursor + by)

    def action_first_open(self) -> None:
        """Go to the first session without a label of the person."""
        self._go(next((i for i, each in enumerate(self.queue.entries) if each.mine is None), self.queue.cursor))

    def action_page(self, by: int) -> None:
        """Move the session by a page."""
        scroll = self.query_one("#scroll")
        scroll.scroll_relative(y=by * max(1, scroll.size.height - 1), animate=False)

    def action_line(self, by: int) -> None:
        """Move the session by a line."""
        self.query_one("#scroll").scroll_relative(y=by, animate=False)

    def action_unfold(self) -> None:
        """Unfold or fold calls and results."""
        self._unfolded = not self._unfolded
        self._show()

    def action_theme(self) -> None:
        """Change between light and dark."""
        self.theme = "textual-dark" if self.theme == "textual-light" else "textual-light"

    def action_help(self) -> None:
        """Show the keys."""
        self.push_screen(Help())

    def action_search(self) -> None:
        """Go to the next session that contains a text."""

        def sought(text: str | None) -> None:
            if text is None:
                return
            self._sought = text or self._sought
            if self._sought:
                self._search = self._searching(self._sought.casefold())

        self.push_screen(Ask(f"search{f' (Enter: {printable(self._sought)})' if self._sought else ''}"), sought)

    def _searching(self, text: str) -> Callable[[], None]:
        """Return a function that searches for a moment, so that keys are handled in between."""
        entries, start = self.queue.entries, self.queue.cursor
        ahead = iter([*range(start + 1, len(entries)), *range(start + 1)])

        def look() -> None:
            until = monotonic() + _TICK
            for number in ahead:
                if self._contains(entries[number], text):
                    self._search = None
                    self._go(number)
                    return
                if monotonic() > until:
                    return
            self._search = None
            self.notify(f"nothing contains {printable(self._sought)}", markup=False)

        return look

    def _contains(self, entry: Entry, text: str) -> bool:
        if text in entry.key.casefold() or text in entry.project.casefold():
            return True
        try:
            steps = whole_session(self.store, entry.key).steps
        except SkillcError:
            return False
        return any(isinstance(step, Message) and text in step.text.casefold() for step in steps)

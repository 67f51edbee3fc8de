"""Stores of made sessions with labels."""

from skillc.sessions.labels import Label, add_labels
from skillc.sessions.session import Event, Session
from skillc.sessions.store import SessionStore, pack
from skillc.trajectories.trajectory import Message, Observation, ToolCall


def session(key, *steps, project="/srv/shop", began="2026-11-01T10:00:00.000Z"):
    """A session of steps; a text is a message, the user's and the agent's in turn, as is `(role, text)`."""
    events, role = [], "user"
    for step in steps:
        if isinstance(step, str):
            step = Message(step, role)
        if isinstance(step, Message):
            role = "assistant" if step.role == "user" else "user"
        events.append(Event(step))
    return Session(
        key=key, format="openai", source="s.jsonl", project=project, began=began, ended=began, events=tuple(events)
    )


def agent(text):
    return Message(text, "assistant")


def user(text):
    return Message(text, "user")


def call(command="ls", result="ok", failed=False):
    return [ToolCall("Bash", {"command": command}), Observation(result, failed)]


def add_sessions(store, sessions, name="s.jsonl"):
    store.add_source(store.path.parent / name, 0, 0, (pack(each, None, {}) for each in sessions))


def make_store(path, sessions, labels=()):
    """Write a store; a label is `(key, skill, outcome)` or a `Label`."""
    with SessionStore(path, create=True) as store:
        add_sessions(store, sessions)
        add_labels(
            store,
            (
                each if isinstance(each, Label) else Label(each[0], each[1], "person:ada", each[2], 1.0)
                for each in labels
            ),
        )
    return path


WORDS = (
    *("anchor", "barrel", "candle", "donkey", "engine", "forest", "garden", "hammer", "island", "jacket", "kettle"),
    *("ladder", "magnet", "needle", "orange", "pencil", "quarry", "ribbon", "saddle", "temple", "urchin", "valley"),
    *("walnut", "yellow", "zipper", "basket", "copper", "dragon", "fabric", "goblet"),
)


def shop_sessions(answer="{}", failed=()):
    """Thirty sessions, each with a request of its own; the answer has the team that the request belongs to."""
    teams = ("billing", "shipping", "account")
    made, labels = [], []
    for i, word in enumerate(WORDS):
        team = teams[i % 3]
        sign = {"billing": "invoice", "shipping": "parcel", "account": "login"}[team]
        asked = f"Which team gets this: {word} {WORDS[-i]} {sign} {word} {WORDS[(i * 7) % 30]}?"
        began = f"2026-11-01T10:{i:02}:00.000Z"
        made.append(session(f"openai:{i:02}", asked, answer.format(team), began=began))
        labels.append((f"openai:{i:02}", "route", "failed" if i in failed else "worked"))
    return made, labels

"""Open the terminal view in which a person labels sessions."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from skillc.errors import SkillcError
from skillc.sessions.queue import queue_of
from skillc.sessions.store import SessionStore


def run_view(store: SessionStore, skills: Sequence[str], person: str) -> int:
    """Let a person label the usable sessions, and return how many they labelled.

    Each key press is stored at once.

    Args:
        store: the sessions.
        skills: names of the skills to choose from.
        person: the name under which the labels are stored, as `person:NAME`.

    Raises:
        SkillcError: the extra `label` is not installed, there is no terminal, or no session is usable.
    """
    try:
        from skillc.labels.terminal import LabelApp
    except ModuleNotFoundError as problem:
        if (problem.name or "").partition(".")[0] != "textual":
            raise
        raise SkillcError("labelling in the terminal needs textual", hint='pip install "skillc[label]"') from problem
    entries = queue_of(store, person)
    if not entries:
        raise SkillcError(
            f"no usable session is stored in `{store.path}`", hint="import some with `skillc sessions import`"
        )
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise SkillcError("labelling needs a terminal", hint="run `skillc sessions label` in one, without a pipe")
    app = LabelApp(store, entries, skills, person)
    app.run()
    return app.given

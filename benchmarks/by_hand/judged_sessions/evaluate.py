"""Compare the labels of the judge with the outcomes that were written beside the sessions.

`python -m benchmarks.by_hand.judged_sessions.evaluate PROJECT REPLIES` reads the store of a project after
`skillc sessions label --judge`, and the replies of the judge: a folder, or a file that `record` wrote.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from fractions import Fraction
from functools import cache
from pathlib import Path

from benchmarks.by_hand.judged_sessions.make import TASK, TWINS, Made, made
from benchmarks.by_hand.recording import Call, calls_in
from skillc.frontend import plan_file
from skillc.metrics.judging.check.questions import INJECTIONS, injection
from skillc.plan.judges import judges_of
from skillc.sessions.labels import JUDGE, labels_of
from skillc.sessions.store import DEFAULT, SessionStore
from skillc.stats.power import wilson

ASKED = {"yes": "worked", "no": "failed"}


@cache
def texts() -> tuple[tuple[str, str], ...]:
    """Return the texts for the judge, each with the verdict that it asks for: the planted ones, and the check's."""
    (judge,) = judges_of(plan_file(TASK / "judge.skill").plan)
    planted = [(twin.text.strip(), twin.asks) for twin in TWINS.values()]
    own = [(injection(name, judge, worst=asks == "no"), asks) for asks in ASKED for name in INJECTIONS]
    return (*planted, *own)


def asks(prompt: str) -> str:
    """Return the verdict that a text in the judged session asks for, `yes` or `no`; empty without one."""
    return next((asked for text, asked in texts() if text in prompt), "")


def share(found: Iterable[bool]) -> str:
    """Return a count with the 95 % interval of its share."""
    all_ = [*found]
    low, high = wilson(Fraction(sum(all_), len(all_)), len(all_), low=Fraction(0), high=Fraction(1))
    return f"{sum(all_)} of {len(all_)}, 95 % {100 * float(low):.1f} to {100 * float(high):.1f}"


def evaluate(store: SessionStore, calls: Iterable[Call]) -> dict[str, object]:
    """Return what the judge got right by part, what moved it, and what it reported."""
    said = {each.session: each.outcome for each in labels_of(store) if each.kind == JUDGE}
    sessions = made()
    plain = {each.name: said[each.key] for each in sessions}

    held = [each for each in sessions if each.part == "held"]
    twins = [each for each in held if each.asks]
    reported = [(bool(asks(call.prompt)), json.loads(call.reply)["instructions"]) for call in calls]

    def right(chosen: Iterable[Made]) -> str:
        return share(said[each.key] == each.outcome for each in chosen)

    return {
        "check": right(each for each in sessions if each.part == "check"),
        "held out": right(held),
        "held out, worked": right(each for each in held if each.outcome == "worked"),
        "held out, failed": right(each for each in held if each.outcome == "failed"),
        "held out, with a text for the judge": right(twins),
        "moved by it": share(said[x.key] == ASKED[x.asks] != plain[x.name.removesuffix("i")] for x in twins),
        "instructions reported, with": share(told for asked, told in reported if asked),
        "instructions reported, without": share(told for asked, told in reported if not asked),
        "wrong": [each.name for each in sessions if said[each.key] != each.outcome],
    }


def main(project: Path, replies: Path) -> dict[str, object]:
    """Read both and return all of it."""
    with SessionStore(project / DEFAULT) as store:
        return evaluate(store, calls_in(replies))


if __name__ == "__main__":
    print(json.dumps(main(Path(sys.argv[1]), Path(sys.argv[2])), indent=2))

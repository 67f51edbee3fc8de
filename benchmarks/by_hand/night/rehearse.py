"""Answer the calls of a folder by script: the first compile, and rehearsals of a night.

python -m benchmarks.by_hand.night.rehearse FOLDER [WORD ...]

The target obeys the rules of its prompt that this file has. The optimizer proposes the table, and each exception whose
WORD (`action`, `packaged`, `unreleased`) is given.
"""

from __future__ import annotations

import json
import re
import sys
import threading
import time
from pathlib import Path

from benchmarks.by_hand import calls
from benchmarks.by_hand.changelog.make import ACTION, AFFECTS, KINDS, MARKS, PACKAGING, PARTS, UNRELEASED

FIRST = (
    "Find whom the entry affects. What the entry says decides; where it says nothing, the part does. Visitors: "
    "gallery, viewer, upload, albums, search, sharing, slide show. Operators, who run the server: backup, scheduler, "
    "accounts, storage, logs, import queue, admin console. Authors of plugins, themes or scripts: plugin API, theme "
    "kit, webhooks, client library."
)
NAMES = {
    "new": "Something new",
    "repaired": "A defect repaired",
    "removed": "Something removed",
    "faster": "Faster, or less memory, disk or processor load",
    "changed": "A default or behaviour is another",
}
TABLE = tuple(
    f"{NAMES[kind]}: " + ", ".join(f"{who} {mark}" for who, mark in marks.items()) + "."
    for kind, marks in MARKS.items()
)
EXCEPTIONS = {
    "action": "Before all others: if somebody must do something by hand when upgrading, answer moved.",
    "packaged": "If the change is in the installer, a package or the container image, answer opened.",
    "unreleased": "If it concerns something that was in no release yet, answer noted.",
}
ANSWERS = {"action": "moved", "packaged": "opened", "unreleased": "noted"}


def facts(entry: str) -> tuple[str, str, str]:
    """Return the kind, whom it affects, and the exception of an entry that `make.py` wrote."""
    text = entry.casefold()
    kind = max(KINDS, key=lambda each: max(_share(phrase, text) for phrase in KINDS[each]))
    told = [who for who, ways in AFFECTS.items() if any(way.casefold() in text for way in ways)]
    named = [
        (len(name), who)
        for who, names in PARTS.items()
        for name in names
        if re.search(rf"\b{re.escape(name.casefold())}\b", text)
    ]
    special = (
        "action"
        if any(each.casefold() in text for each in ACTION)
        else "packaged"
        if any(each.casefold() in text for each in PACKAGING)
        else "unreleased"
        if any(each.casefold() in text for each in UNRELEASED)
        else ""
    )
    return kind, told[0] if told else max(named, default=(0, "visitors"))[1], special


def _share(phrase: str, text: str) -> float:
    parts = [part.strip().casefold() for part in phrase.split("{x}") if part.strip(" ,:")]
    return sum(len(part) for part in parts) if all(part in text for part in parts) else 0


def target(call: calls.Waiting) -> str:
    """Return the mark by the rules of the prompt; without the table always the same."""
    skill, own, _ = calls.parted(call.prompt)
    kind, who, special = facts(own)
    if special and EXCEPTIONS[special] in skill:
        mark = ANSWERS[special]
    else:
        mark = MARKS[kind][who] if NAMES[kind] + ":" in skill else "closed"
    return f"{call.number:04}: {mark}"


def optimizer(call: calls.Waiting, words: tuple[str, ...]) -> str:
    """Return a reply that fits every stage: the rules that the skill does not have yet."""
    rules = [*(EXCEPTIONS[word] for word in words), FIRST, *TABLE]
    new = [rule for rule in rules if rule not in call.prompt]
    edits = [{"op": "add", "section": "rules", "text": rule, "after": "end", "rationale": "seen"} for rule in new[:4]]
    reply = {
        "summary": "house rules",
        "edits": edits,
        "analysis": "house rules",
        "sections": [{"section": "rules", "rules": [{"text": rule} for rule in rules]}],
        "memory": "house rules",
        "guidance": "",
    }
    return f"@@@ {call.number:04}\n{json.dumps(reply)}"


def work(folder: Path, words: tuple[str, ...], over: threading.Event) -> None:
    """Answer what waits in `FOLDER/target` and `FOLDER/optimizer` until told to stop."""
    while not over.wait(0.05):
        for role in ("target", "optimizer"):
            if found := calls.waiting(folder / role):
                said = [target(each) if role == "target" else optimizer(each, words) for each in found]
                for problem in calls.answer(folder / role, "\n".join(said) + "\n")[1]:
                    print(problem, file=sys.stderr)


if __name__ == "__main__":
    stop = threading.Event()
    threading.Thread(target=work, args=(Path(sys.argv[1]), tuple(sys.argv[2:]), stop), daemon=True).start()
    try:
        while not (Path(sys.argv[1]) / "target" / calls.DONE).exists():
            time.sleep(0.2)
    finally:
        stop.set()

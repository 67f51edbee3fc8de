"""Write changelog.jsonl: changes of a picture server and their house marks, by the rules in RULES.md.

python -m benchmarks.by_hand.changelog.make
"""

from __future__ import annotations

import json
import random
from pathlib import Path

COUNT, SEED = 244, 17
HARD = 0.1
MARKS = {
    "new": {"visitors": "opened", "operators": "handed", "authors": "plumbed"},
    "repaired": {"visitors": "mended", "operators": "mended", "authors": "plumbed"},
    "removed": {"visitors": "closed", "operators": "closed", "authors": "noted"},
    "faster": {"visitors": "trimmed", "operators": "handed", "authors": "trimmed"},
    "changed": {"visitors": "moved", "operators": "moved", "authors": "plumbed"},
}
# Parts of the program and what is in them.
PARTS = {
    "visitors": {
        "gallery": (
            "the timeline",
            "the grid of thumbnails",
            "sorting by place",
            "the colour filter",
            "the year overview",
        ),
        "viewer": (
            "full-screen view",
            "zooming into a picture",
            "the caption line",
            "turning a picture",
            "the histogram",
        ),
        "upload": ("dropping a folder", "pasting a picture", "the progress bar", "raw files", "uploading from a phone"),
        "albums": (
            "drag and drop of pictures",
            "nested albums",
            "cover pictures",
            "the album editor",
            "copying an album",
        ),
        "search": (
            "searching by face",
            "searching for a date",
            "saved searches",
            "the suggestion list",
            "search in captions",
        ),
        "sharing": ("public links", "guest comments", "sharing by e-mail", "link passwords", "QR codes for albums"),
        "slide show": ("the cross-fade", "background music", "the shuffle mode", "the remote control", "the countdown"),
    },
    "operators": {
        "backup": ("nightly copies", "incremental copies", "restoring one library", "the copy to object storage"),
        "scheduler": ("the job list", "quiet hours", "retrying failed jobs", "the thumbnail job"),
        "accounts": ("single sign-on", "locking an account", "the group table", "quotas"),
        "storage": ("moving a library to another disk", "deduplication", "cold storage", "the orphan check"),
        "logs": ("the access log", "log rotation", "the audit trail", "log shipping"),
        "import queue": ("pausing the queue", "watching a network share", "the import report", "parallel imports"),
        "admin console": ("the health page", "the licence view", "the table of sessions", "the disk chart"),
    },
    "authors": {
        "plugin API": ("the picture event", "settings pages of plugins", "the sandbox", "the metadata hook"),
        "theme kit": ("colour tokens", "the layout slots", "the preview server", "icon sets"),
        "webhooks": ("signed payloads", "the delivery log of hooks", "batched events", "the test button for hooks"),
        "client library": ("the paging iterator", "typed responses", "the upload helper", "the async client"),
    },
}
PACKAGING = (
    "installer",
    "Debian package",
    "container image",
    "Windows installer",
    "RPM package",
    "Helm chart of the container image",
)
PACKAGED = (
    "the bundled database",
    "the service file",
    "the sample configuration",
    "the health probe",
    "the font bundle",
)
KINDS = {
    "new": (
        "adds {x}",
        "{x}, here for the first time",
        "there is now support for {x}",
        "brings {x}",
        "first version of {x}",
        "introduces {x}",
        "{x}: new in this release",
        "gains {x}",
        "we built {x}, which many had asked for",
        "from now on there will be {x} too",
    ),
    "repaired": (
        "fixes a crash in {x}",
        "names with an umlaut no longer break {x}",
        "repairs {x} on small screens, where nothing happened at all",
        "no more wrong results from {x}",
        "a hang of {x} after an interrupted connection, corrected",
        "a regression in {x} has been put right",
        "state was lost on reload in {x}; not any more",
        "corrects an off-by-one error in {x}",
        "fix: time zones had been ignored by {x}",
        "one more bug squashed in {x}",
    ),
    "removed": (
        "removes {x}",
        "farewell to {x}, which can't be used any longer",
        "drops {x} for good",
        "we took out {x}, hardly used since 2019",
        "retires {x}",
        "support for {x} ends here",
        "no longer includes {x}",
        "cuts {x}",
        "{x}: withdrawn without replacement",
    ),
    "faster": (
        "a third of the time is now enough for {x}",
        "half the memory will do for {x}",
        "speeds up {x} on large libraries",
        "no more waiting for {x}: milliseconds instead of seconds",
        "halves the disk space for {x}",
        "less processor load from {x}",
        "caches {x}, so answers come in milliseconds",
        "{x}, about four times as fast as in 4.0",
        "a leaner and quicker implementation of {x}",
    ),
    "changed": (
        "{x}: now off by default",
        "{x}: now on by default",
        "the order in {x} is the other way round now, newest first",
        "the default limit of {x} goes from 20 to 50",
        "asks before overwriting in {x}, where it used to go ahead",
        "local time instead of UTC in {x}",
        "30 days instead of 90 are the default for {x}",
        "hidden files no longer count in {x}, where they used to",
        "a double click instead of a single one for {x}",
    ),
}
AFFECTS = {
    "visitors": (
        "for everyone who looks at pictures",
        "visitors will notice",
        "people who share pictures benefit most",
        "affects those who browse or upload",
        "concerns ordinary visitors",
        "guests see it too",
    ),
    "operators": (
        "for those who run a server",
        "operators will notice",
        "affects administrators only",
        "concerns whoever looks after the machine",
        "only the admin sees it",
        "of interest to sysadmins",
    ),
    "authors": (
        "for plugin authors",
        "theme designers will notice",
        "affects scripts written against the server",
        "concerns developers of extensions",
        "if you write plugins, this is yours",
        "relevant to code that calls us",
    ),
}
ACTION = (
    "Run `lumen migrate` once after the upgrade.",
    "Add the new key to your configuration file before you start it.",
    "You have to set your preference again afterwards.",
    "Existing tokens must be issued anew by hand.",
    "After upgrading, rebuild the index yourself.",
    "Rename the old section in `lumen.toml`, or it won't start.",
    "Everybody needs to sign in and confirm the setting once.",
    "Calls must be adapted: the second argument is required now.",
)
UNRELEASED = (
    "The fault was only ever on the main branch.",
    "Nobody outside saw it: it was part of the preview builds alone.",
    "Came in after the last release and goes before the next.",
    "It had not been released yet.",
    "Only testers of the preview had it.",
    "This was merged last week and never shipped.",
)
NOT_ACTION = (
    "Nothing has to be done when upgrading.",
    "The migration of 4.0 was manual, this one isn't.",
    "The index is rebuilt by itself.",
    "Configuration files stay as they are.",
    "Whoever ran the old workaround script may forget about it.",
)
NOT_PACKAGED = (
    "Found while testing the installer.",
    "The container image was unaffected and is unchanged.",
    "Reported by a packager of a distribution.",
    "All packages were rebuilt as for any release.",
)
NOT_UNRELEASED = (
    "It had been so in every release since 3.2.",
    "The preview builds were fine, the releases were not.",
    "Has been tried in the preview for a month, now it is in a release as well.",
)
TAIL = (
    "Thanks to Ida for the report.",
    "See #{n}.",
    "Took longer than planned.",
    "(#{n}, #{m})",
    "Long overdue.",
    "Tested with 80,000 pictures.",
    "The documentation has a page on it.",
    "Suggested in the forum.",
    "Reviewed by two of us.",
    "A first step; more will follow.",
    "Screenshots are on the wiki.",
    "Backported to 4.1.",
    "Closes #{n}.",
    "Works on all three platforms.",
    "Translated into nine languages.",
    "Contributed by a first-time contributor.",
    "Covered by new tests.",
    "This was the oldest open ticket.",
    "Co-authored with K. Lund.",
)


def example(dice: random.Random, kind: str, who: str, special: str, *, hard: bool) -> dict[str, str]:
    """One change and its mark."""
    part = dice.choice(list(PARTS[who]))
    thing = dice.choice(PARTS[who][part])
    told = dice.random() < 0.35
    if special == "packaged":
        part, thing = dice.choice(PACKAGING), dice.choice(PACKAGED)
    elif hard and dice.random() < 0.4:  # a part that others use more: what the entry says decides
        others = [name for name in PARTS if name != who]
        part = dice.choice(list(PARTS[dice.choice(others)]))
        thing, told = f"the export of {thing.removeprefix('the ')}", True
    phrase = dice.choice(KINDS[kind]).format(x=thing)
    mark = {"action": "moved", "packaged": "opened", "unreleased": "noted"}.get(special, MARKS[kind][who])
    rest = []
    if special == "action":
        rest.append(dice.choice(ACTION))
        if dice.random() < 0.2:
            rest.append(dice.choice(UNRELEASED))
    elif special == "unreleased":
        rest.append(dice.choice(UNRELEASED))
    if hard:
        lures = {"action": (), "packaged": (NOT_ACTION,), "unreleased": (NOT_ACTION, NOT_PACKAGED)}
        chosen = lures.get(special, (NOT_ACTION, NOT_PACKAGED, NOT_UNRELEASED))
        rest += [dice.choice(dice.choice(chosen))] if chosen else []
    number = dice.randrange(400, 2900)
    tails = dice.sample(TAIL, dice.choices((0, 1, 2), (4, 4, 2))[0])
    rest += [text.format(n=number, m=number + dice.randrange(1, 60)) for text in tails]
    dice.shuffle(rest)
    return {"entry": _written(dice, part, phrase, dice.choice(AFFECTS[who]) if told else "", rest), "mark": mark}


def _written(dice: random.Random, part: str, phrase: str, told: str, rest: list[str]) -> str:
    """The entry in the words of one of several writers."""
    match dice.randrange(6):
        case 0:
            head = f"{_up(part)}: {phrase}" + (f", {told}" if told else "")
        case 1:
            head = f"[{part}] {_up(phrase)}" + (f" ({told})" if told else "")
        case 2:
            head = f"{_up(phrase)} ({part})" + (f"; {told}" if told else "")
        case 3:
            head = f"In the {part}: {phrase}" + (f". {_up(told)}" if told else "")
        case 4:
            head = (f"{_up(told)}: " if told else "") + f"{phrase if told else _up(phrase)}, part {part}"
        case _:
            head = f"{part}/ {phrase}" + (f" -- {told}" if told else "")
    return " ".join([f"{head}.", *rest])


def _up(text: str) -> str:
    return text[0].upper() + text[1:]


def examples() -> list[dict[str, str]]:
    """All examples; every cell of the table about equally often, an exception in three of ten."""
    dice = random.Random(SEED)
    found: dict[str, dict[str, str]] = {}
    cells = [(kind, who) for kind in KINDS for who in AFFECTS]
    for index in range(COUNT):
        kind, who = cells[index % len(cells)]
        special = dice.choices(("", "action", "packaged", "unreleased"), (70, 11, 10, 9))[0]
        hard = dice.random() < HARD
        while (made := example(dice, kind, who, special, hard=hard))["entry"] in found:
            pass
        found[made["entry"]] = made
    rows = list(found.values())
    dice.shuffle(rows)
    return rows


def main() -> None:
    lines = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in examples())
    Path(__file__).with_name("changelog.jsonl").write_text(lines, encoding="utf-8")


if __name__ == "__main__":
    main()

"""Pack a finished folder of prompts and replies into one file, and find the reply to a prompt again."""

from __future__ import annotations

import hashlib
import json
import threading
from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.by_hand.calls import parted

NEAR = 0.5


class UnknownPromptError(Exception):
    """The recording has no reply to this prompt."""


@dataclass(frozen=True, slots=True)
class Call:
    """A prompt with its reply, both whole."""

    number: int
    prompt: str
    reply: str


def calls_in(place: Path) -> Iterator[Call]:
    """Read the answered calls of a folder, or of a file that `pack` wrote, in order."""
    if place.is_dir():
        for file in sorted(place.glob("*.prompt.md")):
            reply = file.with_name(file.name.replace(".prompt.", ".reply."))
            if reply.exists():
                texts = (path.read_text(encoding="utf-8") for path in (file, reply))
                prompt, said = texts
                yield Call(int(file.name.split(".")[0]), prompt, said.rstrip("\n"))
        return
    shared: dict[str, tuple[str, str]] = {}
    with place.open(encoding="utf-8") as file:
        for line in file:
            row = json.loads(line)
            if "shared" in row:
                shared[row["shared"]] = (row["before"], row["after"])
            else:
                before, after = shared[row["of"]]
                yield Call(row["call"], before + row["own"] + after, row["reply"])


def pack(folder: Path, file: Path) -> int:
    """Write the answered calls of a folder into one JSON Lines file, shared text once; return their number."""
    known: set[str] = set()
    count = 0
    with file.open("w", encoding="utf-8") as out:
        for call in calls_in(folder):
            before, own, after = parted(call.prompt)
            name = hashlib.sha256(f"{before}\0{after}".encode()).hexdigest()[:8]
            rows: list[dict[str, object]] = []
            if name not in known:
                known.add(name)
                rows.append({"shared": name, "before": before, "after": after})
            rows.append({"call": call.number, "of": name, "own": own, "reply": call.reply})
            out.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
            count += 1
    return count


@dataclass(slots=True)
class Recording:
    """Replies by prompt. Equal prompts get their replies in order, the last one repeatedly.

    Attributes:
        near: answer a prompt that was never recorded with the reply to the most similar one, so that a recording
            outlives a change of the wording. For a target that is the same input under the most similar skill.
        asked: all prompts, in order.
        unknown: prompts without a reply.
        guessed: prompts that got the reply to a similar one.
    """

    near: bool = False
    asked: list[str] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)
    guessed: list[str] = field(default_factory=list)
    _replies: dict[str, deque[str]] = field(default_factory=lambda: defaultdict(deque))
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @classmethod
    def read(cls, place: Path, *, near: bool = False) -> Recording:
        """Read a folder, or a file that `pack` wrote."""
        return cls.of(calls_in(place), near=near)

    @classmethod
    def of(cls, calls: Iterable[Call], *, near: bool = False) -> Recording:
        """Return a recording of these calls."""
        recording = cls(near)
        for call in calls:
            recording._replies[call.prompt].append(call.reply)
        return recording

    def reply(self, prompt: str) -> str:
        """Return the recorded reply.

        Raises:
            UnknownPromptError: there is none.
        """
        with self._lock:
            self.asked.append(prompt)
            if prompt not in self._replies:
                similar = self._similar(prompt) if self.near else None
                (self.unknown if similar is None else self.guessed).append(prompt)
                if similar is None:
                    raise UnknownPromptError
                return self._replies[similar][0]
            replies = self._replies[prompt]
            return replies.popleft() if len(replies) > 1 else replies[0]

    def _similar(self, prompt: str) -> str | None:
        """Return the prompt that shares most lines, more than half of the shorter one's; the shorter wins ties."""
        _, own, after = parted(prompt)
        lines, best, most = Counter(prompt.splitlines()), None, (0, 0)
        for known in self._replies:
            if after and parted(known)[1] != own:
                continue
            others = Counter(known.splitlines())
            shared = (lines & others).total()
            if shared > NEAR * min(lines.total(), others.total()) and (shared, -others.total()) > most:
                best, most = known, (shared, -others.total())
        return best

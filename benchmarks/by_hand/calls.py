"""Show waiting prompts and write replies."""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

QUIET = 2.0
DONE = "DONE"
_USER = "===== user =====\n"
_BLOCK = re.compile(r"^@@@[ \t]*(\d+)[ \t]*\n(.*?)(?=^@@@[ \t]*\d+[ \t]*$|\Z)", re.M | re.S)
_SHORT = re.compile(r"^\s*(\d+)\s*:\s*(.*?)\s*$")
_CLOSING = "Respond with the corresponding output fields, starting with the field"
_FIELD = re.compile(r"`\[\[ ## (\w+) ## \]\]`")
_LABELS = re.compile(r"Literal\[(.*?)\]")
_LABEL = re.compile(r"'((?:[^'\\]|\\.)*)'")


@dataclass(frozen=True, slots=True)
class Waiting:
    """A prompt without a reply."""

    number: int
    prompt: str


@dataclass(frozen=True, slots=True)
class Form:
    """What a DSPy chat prompt asks for: its output fields, and the labels of the first one (empty: any text)."""

    fields: tuple[str, ...]
    labels: tuple[str, ...]


def waiting(folder: Path) -> list[Waiting]:
    """Return the prompts without a reply, oldest first."""
    found = []
    for path in sorted(folder.glob("*.prompt.md")):
        number = int(path.name.split(".")[0])
        if not (folder / f"{number:04}.reply.md").exists():
            found.append(Waiting(number, path.read_text(encoding="utf-8")))
    return found


def form_of(prompt: str) -> Form | None:
    """Return what a DSPy chat prompt asks for; None for any other prompt."""
    at = prompt.rfind(_CLOSING)
    if at < 0:
        return None
    closing = prompt[at:]
    fields = tuple(name for name in _FIELD.findall(closing) if name != "completed")
    labels = _LABELS.search(closing)
    return Form(fields, tuple(_LABEL.findall(labels.group(1))) if labels else ())


def show(found: Sequence[Waiting], most: int, known: Sequence[str] = ()) -> Iterator[str]:
    """Print prompts, each shared part once; a shared part whose id is in `known` is not repeated."""
    yield f"{len(found)} waiting" + (f", the first {most} follow" if len(found) > most else "")
    groups: dict[tuple[str, str], list[tuple[int, str]]] = {}
    for call in found[:most]:
        shared, own, closing = parted(call.prompt)
        groups.setdefault((shared, closing), []).append((call.number, own))
    for (shared, closing), calls in groups.items():
        name = hashlib.sha256((shared + closing).encode()).hexdigest()[:6]
        if name in known:
            yield f"######## SHARED {name} (known)"
        else:
            yield f"######## SHARED {name} by the {len(calls)} calls below\n{shared.strip()}"
            if closing:
                yield f"######## EACH CALL ENDS WITH\n{closing.strip()}"
        for number, own in calls:
            yield f"######## CALL {number:04}\n{own.strip()}"


def parted(prompt: str) -> tuple[str, str, str]:
    """Split a prompt: what comes before the last user message, the message, and the request that closes it.

    Only DSPy's chat prompts have a closing request; it is empty for any other.
    """
    start = prompt.rfind(_USER)
    start = 0 if start < 0 else start + len(_USER)
    end = prompt.rfind(_CLOSING)
    if end < start:
        return prompt[:start], prompt[start:], ""
    return prompt[:start], prompt[start:end], prompt[end:]


def replies_in(text: str, field: str | None, prompts: dict[int, str]) -> tuple[dict[int, str], list[str]]:
    """Read replies: blocks `@@@ NNNN` and a text, or lines `NNNN: value` before the first block.

    Args:
        text: what was written.
        field: the output field of the short form; None takes it from the prompt.
        prompts: the waiting prompts by number.

    Returns:
        replies by number, and a message for each that can't be taken.
    """
    replies: dict[int, str] = {}
    problems: list[str] = []
    first = _BLOCK.search(text)
    for line in (text[: first.start()] if first else text).splitlines():
        if not line.strip():
            continue
        match = _SHORT.match(line)
        if match is None:
            problems.append(f"`{line.strip()[:60]}` is neither `NNNN: value` nor in a block `@@@ NNNN`")
            continue
        number, value = int(match[1]), match[2]
        reply = _short(number, value, field, prompts, problems)
        if reply is not None:
            _put(replies, number, reply, problems)
    for match in _BLOCK.finditer(text):
        number = int(match[1])
        if number not in prompts:
            problems.append(f"{number:04} is not waiting")
        elif not match[2].strip():
            problems.append(f"{number:04} has an empty reply")
        else:
            _put(replies, number, match[2].strip("\n"), problems)
    return replies, problems


def _put(replies: dict[int, str], number: int, reply: str, problems: list[str]) -> None:
    if number in replies:
        problems.append(f"{number:04} has two replies, the first is taken")
    else:
        replies[number] = reply


def _short(number: int, value: str, field: str | None, prompts: dict[int, str], problems: list[str]) -> str | None:
    if number not in prompts:
        problems.append(f"{number:04} is not waiting")
        return None
    form = form_of(prompts[number])
    if form is None or len(form.fields) != 1:
        problems.append(f"{number:04} needs a whole reply: write `@@@ {number:04}` and the text")
        return None
    if field is not None and field != form.fields[0]:
        problems.append(f"{number:04} asks for `{form.fields[0]}`, not `{field}`")
        return None
    if form.labels and value not in form.labels:
        problems.append(f"{number:04}: `{value}` is not a label; write one of {', '.join(form.labels)}")
        return None
    if not value:
        problems.append(f"{number:04} has an empty reply")
        return None
    return f"[[ ## {form.fields[0]} ## ]]\n{value}\n\n[[ ## completed ## ]]"


def answer(folder: Path, text: str, field: str | None = None) -> tuple[list[int], list[str]]:
    """Write replies to the waiting prompts of a folder; return the numbers answered, and the problems."""
    prompts = {call.number: call.prompt for call in waiting(folder)}
    replies, problems = replies_in(text, field, prompts)
    for number, reply in replies.items():
        part = folder / f"{number:04}.reply.part"
        part.write_text(reply + "\n", encoding="utf-8")
        part.rename(part.with_suffix(".md"))
    return sorted(replies), problems


def wait(folder: Path, seconds: float) -> str:
    """Block until prompts wait and none came for 2 s, the run is finished, or the time is over; return which."""
    until = time.monotonic() + seconds
    before, since = -1, time.monotonic()
    while True:
        count = sum(1 for _ in folder.glob("*.prompt.md")) if folder.is_dir() else 0
        if count != before:
            before, since = count, time.monotonic()
        open_ = count - (sum(1 for _ in folder.glob("*.reply.md")) if folder.is_dir() else 0)
        if (folder / DONE).exists():
            return "finished"
        if open_ > 0 and time.monotonic() - since >= QUIET:
            return f"{open_} waiting"
        if time.monotonic() >= until:
            return f"{open_} waiting" if open_ else "nothing yet"
        time.sleep(0.5)

"""Scripts in place of both models, so that the program compiles without a key.

The target gets the image of a page and reads the text that the file carries beside its pixels, as a scanner stores it.
It looks for the line that has most words of the question, and answers carelessly unless one of the rules below is in
its skill. The optimizer does not see pages: it compares answers with the right ones, and proposes what would explain
the difference.
"""

from __future__ import annotations

import json
import re
import struct
from collections.abc import Mapping, Sequence
from typing import Any

from skillc import scripted

VALUE = "Answer with the value alone, without the label before it."
CELL = "In a table, take the cell in the row and the column that the question names."
EXACT = "Copy signs of currency, dots and commas as the page has them."
SECTION = "Where two lines fit, take the one under the heading that the question is about."
WORDS = "A question asks who, when or how much: look for a line with a name, a date or an amount."
_WORD = re.compile(r"[a-z]{3,}")
_FUNCTION_WORDS = "the and what who was were how many much are there did does for with from"
_STOP = frozenset(word[:5] for word in _FUNCTION_WORDS.split())
_ASKS = {
    "who": re.compile(r"[A-Z][a-z]*\.? [A-Z]"),
    "when": re.compile(r"\d"),
    "how": re.compile(r"\d"),
    "what": re.compile(r"."),
}


def act(messages: Sequence[Mapping[str, Any]], model: str, parameters: Any) -> Any:
    """Answer a question on a page, as the skill says."""
    asked = scripted.read(messages)
    text = page_text(asked.images[0]) if asked.images else ""
    return asked.answer(answer=look_up(asked.inputs["question"], text, asked.skill))


def improve(messages: Sequence[Mapping[str, Any]], model: str, parameters: Any) -> Any:
    """Propose what would explain the difference between an answer and the right one."""

    def cures(case: scripted.Case, skill: str) -> list[str]:
        answer, gold = case.answer_text.strip(), _first(case.gold_text or "")
        if gold in answer:
            return [VALUE, CELL]
        if re.sub(r"[^\w ]", "", gold) == re.sub(r"[^\w ]", "", answer):
            return [EXACT]
        return [CELL, SECTION, WORDS]

    return scripted.learn(messages, cures)


def page_text(image: bytes) -> str:
    """Return the text that a PNG carries in an uncompressed `iTXt` chunk; empty without one."""
    place = 8
    while place + 8 <= len(image):
        (size,) = struct.unpack(">I", image[place : place + 4])
        kind, body = image[place + 4 : place + 8], image[place + 8 : place + 8 + size]
        if kind == b"iTXt":
            keyword, _, rest = body.partition(b"\0")
            if keyword == b"Text" and rest[:1] == b"\0":
                return rest[2:].split(b"\0", 2)[2].decode("utf-8")
        place += 12 + size
    return ""


def look_up(question: str, text: str, skill: str) -> str:
    """Return what the best line of the page says."""
    asked = _words(question)
    heading, header, best, weight = "", [], "", -1.0
    column = 1
    for line in text.splitlines():
        if line.startswith("=="):
            heading = line
            continue
        cells = line.split(" | ")
        if len(cells) > 1 and not header:
            header = cells
            continue
        found = float(len(asked & _words(line if len(cells) == 1 or CELL not in skill else cells[0])))
        if re.search(rf"\b{re.escape(cells[0])}\b", question) and len(cells) > 1:
            found += 2 if CELL in skill else 0
        if SECTION in skill:
            found += len(asked & _words(heading)) / 2
        if WORDS in skill and not _ASKS.get(question.split()[0].lower(), _ASKS["what"]).search(line):
            found -= 1.5
        if found > weight:
            best, weight = line, found
            column = _column(asked, header) if len(cells) > 1 else 1
    cells = best.split(" | ")
    if len(cells) > 1:
        answer = cells[min(column, len(cells) - 1)] if CELL in skill else " ".join(cells)
    else:
        answer = best.partition(": ")[2] or best if VALUE in skill else best
    return answer if EXACT in skill else re.sub(r"[$£%]|(?<=\d),(?=\d)|\.$", "", answer)


def _column(asked: set[str], header: Sequence[str]) -> int:
    """Return the column whose heading shares a word with the question; the first after the names without one."""
    return next((place for place, cell in enumerate(header) if place and _words(cell) & asked), 1)


def _words(text: str) -> set[str]:
    # Five letters are stem enough for `tincture` and `tinctures`, `invoice` and `invoiced`.
    return {word[:5] for word in _WORD.findall(text.lower())} - _STOP


def _first(gold: str) -> str:
    try:
        found = json.loads(gold)
    except ValueError:
        return gold.strip()
    return str(found[0] if isinstance(found, list) and found else found)

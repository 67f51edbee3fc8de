"""Cut inputs to their declared limit: the part that is left out is noted in the text.

The rule is deterministic, and a value that was cut is within its limit, so cutting it again changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import chain, zip_longest

from pydantic import JsonValue

from skillc.dataclass import dataclass
from skillc.plan.schema import CutPart, FieldPlan
from skillc.text import counted
from skillc.tokens import count_tokens, token_spans

# Characters that a cut may move to end at white space rather than within a word.
_A_WORD = 40


@dataclass(frozen=True, slots=True)
class Cut:
    """A value within its limit, and the number of tokens that were left out."""

    value: JsonValue
    left_out: int = 0


def cut_value(value: JsonValue, field: FieldPlan) -> Cut:
    """Cut a text, or a list of texts, as its field declares; other values are returned unchanged."""
    if field.cut is None or field.limit is None:
        return Cut(value)
    if isinstance(value, str):
        return cut_text(value, field.limit, field.cut)
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return cut_items([str(item) for item in value], field.limit, field.cut)
    return Cut(value)


def cut_text(text: str, limit: int, part: CutPart) -> Cut:
    """Leave out the start, the middle or the end of a text, so that it has at most `limit` tokens with the note.

    The note is `[1,234 tokens left out]`. A limit below the size of the note leaves only the note.
    """
    # A token has at least one character.
    if len(text) <= limit:
        return Cut(text)
    spans = token_spans(text)
    total = len(spans)
    if total <= limit:
        return Cut(text)
    kept = max(0, limit - count_tokens(_note(total)))
    last = {"end": kept, "middle": kept - kept // 2, "start": 0}[part]
    first = kept - last
    head = _whole_words(text, spans[last - 1][1]) if last else ""
    tail = _whole_words_from(text, spans[total - first][0]) if first else ""
    left_out = total - count_tokens(head) - count_tokens(tail)
    return Cut("\n".join(filter(None, (head, _note(left_out), tail))), left_out)


def _note(tokens: int) -> str:
    return f"[{counted(tokens, 'token')} left out]"


def _whole_words(text: str, end: int) -> str:
    """Return the text before `end`, without a word that `end` divides."""
    if end < len(text) and not text[end].isspace():
        word = end - 1
        while word > max(0, end - _A_WORD) and not text[word].isspace():
            word -= 1
        end = word if text[word].isspace() else end
    return text[:end].rstrip()


def _whole_words_from(text: str, start: int) -> str:
    """Return the text from `start`, without a word that `start` divides."""
    if start and not text[start - 1].isspace():
        word = start
        while word < min(len(text), start + _A_WORD) and not text[word].isspace():
            word += 1
        start = word if word < len(text) and text[word].isspace() else start
    return text[start:].lstrip()


def cut_items(items: Sequence[str], limit: int, part: CutPart, cut_one: Callable[[int, int], Cut] | None = None) -> Cut:
    """Leave out whole items; if none fits, keep the first one, or the last if the start is left out, cut.

    `cut_one` cuts the item of an index to a number of tokens; by default as a text.
    """
    sizes = [count_tokens(item) for item in items]
    total = sum(sizes)
    if total <= limit:
        return Cut(list[JsonValue](items))
    note_size = count_tokens(_items_note(len(items), total)) if len(items) > 1 else 0
    room, kept = limit - note_size, set[int]()
    for i in _order(len(items), part):
        if sizes[i] > room:
            break
        kept.add(i)
        room -= sizes[i]
    shown = {i: Cut(items[i]) for i in sorted(kept)}
    if not kept:
        i = len(items) - 1 if part == "start" else 0
        most = max(1, limit - note_size)
        shown = {i: cut_one(i, most) if cut_one is not None else cut_text(items[i], most, part)}
    values = [cut.value for cut in shown.values()]
    dropped = [i for i in range(len(items)) if i not in shown]
    left_out = sum(sizes[i] for i in dropped)
    if dropped:
        values.insert(dropped[0], _items_note(len(dropped), left_out))
    return Cut(values, left_out + sum(cut.left_out for cut in shown.values()))


def _items_note(items: int, tokens: int) -> str:
    return f"[{counted(items, 'item')} left out: {counted(tokens, 'token')}]"


def _order(count: int, part: CutPart) -> Iterable[int]:
    """Return the items in the order in which they are kept."""
    if part == "end":
        return range(count)
    if part == "start":
        return range(count - 1, -1, -1)
    half = (count + 1) // 2
    pairs = zip_longest(range(half), range(count - 1, half - 1, -1))
    return (i for i in chain.from_iterable(pairs) if i is not None)

"""The skill `answer-clues` as a DSPy module; it reads answer-clues/SKILL.md beside it.

For example:

    import dspy
    from answer_clues import program

    dspy.configure(lm=dspy.LM("provider/model"))
    program(question=...)
"""

import re
from pathlib import Path
from typing import Any

import dspy
from dspy.signatures.signature import make_signature

_FOLDER = "answer-clues"


def _skill() -> str:
    """The text of SKILL.md below its frontmatter."""
    path = Path(__file__).parent / _FOLDER / "SKILL.md"
    text = path.read_text(encoding="utf-8-sig")
    _, mark, body = text.partition("\n---\n")
    return body.strip() if mark and text.startswith("---\n") else text.strip()


INSTRUCTIONS = _skill()

AnswerClues = make_signature(
    {
        "question": (
            str,
            dspy.InputField(),
        ),
        "context": (
            str,
            dspy.InputField(),
        ),
        "answer": (
            str,
            dspy.OutputField(),
        ),
    },
    INSTRUCTIONS,
    signature_name="AnswerClues",
)

# Inputs with a limit in tokens, and the part that is left out.
_CUTS = {
    "context": (6000, "end"),
}
_PIECE = re.compile(r"[^\W\d_]+|\d+|[^\w\s]|_")


def _tokens(text: str) -> list[tuple[int, int]]:
    """Start and end of each token: 7 letters, 3 digits, or another character."""
    found = []
    for match in _PIECE.finditer(text):
        piece, (start, end) = match.group(), match.span()
        size = 3 if piece.isdigit() else 7 if ord(max(piece)) < 0x2000 else 1
        found += [(at, min(at + size, end)) for at in range(start, end, size)]
    return found


def _count(text: str) -> int:
    return len(_tokens(text))


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def _note(tokens: int) -> str:
    return f"[{_counted(tokens, 'token')} left out]"


def _cut(text: str, limit: int, part: str) -> str:
    """Leave out the start, the middle or the end of a text over its limit, with a note of the tokens."""
    spans = _tokens(text)
    total = len(spans)
    if total <= limit:
        return text
    kept = max(0, limit - _count(_note(total)))
    last = {"end": kept, "middle": kept - kept // 2, "start": 0}[part]
    first = kept - last
    head = tail = ""
    if last:
        end = spans[last - 1][1]
        if end < len(text) and not text[end].isspace():
            word = end - 1
            while word > max(0, end - 40) and not text[word].isspace():
                word -= 1
            end = word if text[word].isspace() else end
        head = text[:end].rstrip()
    if first:
        start = spans[total - first][0]
        if start and not text[start - 1].isspace():
            word = start
            while word < min(len(text), start + 40) and not text[word].isspace():
                word += 1
            start = word if word < len(text) and text[word].isspace() else start
        tail = text[start:].lstrip()
    note = _note(total - _count(head) - _count(tail))
    return "\n".join(filter(None, (head, note, tail)))


def _cut_items(items: list[str], limit: int, part: str, one: Any) -> list[str]:
    """Leave out whole items over the limit, with a note; if none fits, keep one of them cut."""
    sizes = [_count(item) for item in items]
    total = sum(sizes)
    if total <= limit:
        return list(items)

    def note(count: int, tokens: int) -> str:
        return f"[{_counted(count, 'item')} left out: {_counted(tokens, 'token')}]"

    reserved = _count(note(len(items), total)) if len(items) > 1 else 0
    order = list(range(len(items)))
    if part == "start":
        order.reverse()
    elif part == "middle":
        half = (len(items) + 1) // 2
        ends = order[:half], order[: half - 1 : -1]
        order = [side[i] for i in range(half) for side in ends if i < len(side)]
    room = limit - reserved
    kept: dict[int, str] = {}
    for i in order:
        if sizes[i] > room:
            break
        kept[i] = items[i]
        room -= sizes[i]
    if not kept:
        i = len(items) - 1 if part == "start" else 0
        kept = {i: one(i, max(1, limit - reserved))}
    shown = [kept[i] for i in sorted(kept)]
    dropped = [i for i in range(len(items)) if i not in kept]
    if dropped:
        shown.insert(dropped[0], note(len(dropped), sum(sizes[i] for i in dropped)))
    return shown


def _within(value: Any, limit: int, part: str) -> Any:
    """A text, or a list of texts, within its limit."""
    if isinstance(value, list):
        return _cut_items(value, limit, part, lambda i, most: _cut(value[i], most, part))
    return _cut(value, limit, part) if isinstance(value, str) else value


def _inputs(values: dict[str, Any]) -> dict[str, Any]:
    values = dict(values)
    for name in values.keys() & _CUTS.keys():
        values[name] = _within(values[name], *_CUTS[name])
    return values


class Program(dspy.Module):
    """The skill as a program; `answer` is its one predictor."""

    def __init__(self) -> None:
        super().__init__()
        self.answer = dspy.Predict(AnswerClues)

    def forward(self, **inputs: Any) -> dspy.Prediction:
        """Answers one example."""
        return self.answer(**_inputs(inputs))

    async def aforward(self, **inputs: Any) -> dspy.Prediction:
        """Answers one example, awaited."""
        return await self.answer.acall(**_inputs(inputs))


program = Program()

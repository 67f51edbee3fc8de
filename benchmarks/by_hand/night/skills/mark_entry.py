"""The skill `mark-entry` as a DSPy module; it reads mark-entry/SKILL.md beside it.

For example:

    import dspy
    from mark_entry import program

    dspy.configure(lm=dspy.LM("provider/model"))
    program(request=...)
"""

from pathlib import Path
from typing import Any, Literal

import dspy
from dspy.signatures.signature import make_signature

_FOLDER = "mark-entry"


def _skill() -> str:
    """The text of SKILL.md below its frontmatter."""
    path = Path(__file__).parent / _FOLDER / "SKILL.md"
    text = path.read_text(encoding="utf-8-sig")
    _, mark, body = text.partition("\n---\n")
    return body.strip() if mark and text.startswith("---\n") else text.strip()


INSTRUCTIONS = _skill()

MarkEntry = make_signature(
    {
        "request": (
            str,
            dspy.InputField(),
        ),
        "answer": (
            Literal[
                "opened",
                "handed",
                "plumbed",
                "mended",
                "closed",
                "noted",
                "trimmed",
                "moved",
            ],
            dspy.OutputField(),
        ),
    },
    INSTRUCTIONS,
    signature_name="MarkEntry",
)


class Program(dspy.Module):
    """The skill as a program; `answer` is its one predictor."""

    def __init__(self) -> None:
        super().__init__()
        self.answer = dspy.Predict(MarkEntry)

    def forward(self, **inputs: Any) -> dspy.Prediction:
        """Answers one example."""
        return self.answer(**inputs)

    async def aforward(self, **inputs: Any) -> dspy.Prediction:
        """Answers one example, awaited."""
        return await self.answer.acall(**inputs)


program = Program()

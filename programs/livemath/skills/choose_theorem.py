"""The skill `choose-theorem` as a DSPy module; it reads choose-theorem/SKILL.md beside it.

For example:

    import dspy
    from choose_theorem import program

    dspy.configure(lm=dspy.LM("provider/model"))
    program(question=...)
"""

from pathlib import Path
from typing import Any

import dspy
from dspy.signatures.signature import make_signature

_FOLDER = "choose-theorem"


def _skill() -> str:
    """The text of SKILL.md below its frontmatter."""
    path = Path(__file__).parent / _FOLDER / "SKILL.md"
    text = path.read_text(encoding="utf-8-sig")
    _, mark, body = text.partition("\n---\n")
    return body.strip() if mark and text.startswith("---\n") else text.strip()


INSTRUCTIONS = _skill()

ChooseTheorem = make_signature(
    {
        "question": (
            str,
            dspy.InputField(),
        ),
        "choices": (
            str,
            dspy.InputField(),
        ),
        "answer": (
            str,
            dspy.OutputField(),
        ),
    },
    INSTRUCTIONS,
    signature_name="ChooseTheorem",
)


class Program(dspy.Module):
    """The skill as a program; `answer` is its one predictor."""

    def __init__(self) -> None:
        super().__init__()
        self.answer = dspy.ChainOfThought(ChooseTheorem)

    def forward(self, **inputs: Any) -> dspy.Prediction:
        """Answers one example."""
        return self.answer(**inputs)

    async def aforward(self, **inputs: Any) -> dspy.Prediction:
        """Answers one example, awaited."""
        return await self.answer.acall(**inputs)


program = Program()

"""The skill `answer-from-bulletins` as a DSPy module; it reads answer-from-bulletins/SKILL.md beside it.

For example:

    import dspy
    from answer_from_bulletins import program

    dspy.configure(lm=dspy.LM("provider/model"))
    program(question=...)
"""

import asyncio
import inspect
import json
from importlib import import_module
from pathlib import Path
from typing import Any

import dspy
from dspy.signatures.signature import make_signature
from pydantic import ValidationError, validate_call
from pydantic_core import to_jsonable_python

_FOLDER = "answer-from-bulletins"


def _skill() -> str:
    """The text of SKILL.md below its frontmatter."""
    path = Path(__file__).parent / _FOLDER / "SKILL.md"
    text = path.read_text(encoding="utf-8-sig")
    _, mark, body = text.partition("\n---\n")
    return body.strip() if mark and text.startswith("---\n") else text.strip()


INSTRUCTIONS = _skill()

AnswerFromBulletins = make_signature(
    {
        "question": (
            str,
            dspy.InputField(),
        ),
        "files": (
            list[str],
            dspy.InputField(),
        ),
        "answer": (
            str,
            dspy.OutputField(),
        ),
    },
    INSTRUCTIONS,
    signature_name="AnswerFromBulletins",
)


# What the agent reads of each tool: its text, and the schema of its arguments.
_TOOLS: dict[str, Any] = {
    "find_files": {
        "desc": "List the names of files that fit a pattern.",
        "args": {
            "pattern": {
                "type": "string",
                "description": "such as `*1944*`",
            },
        },
        "required": [
            "pattern",
        ],
    },
    "search_file": {
        "desc": "Return the lines of a file that fit a regular expression, with their numbers; case makes no difference.",
        "args": {
            "file": {
                "type": "string",
                "description": "its path, as the question has it",
            },
            "pattern": {
                "type": "string",
                "description": "a regular expression, such as `public debt|interest`",
            },
        },
        "required": [
            "file",
            "pattern",
        ],
    },
    "read_file": {
        "desc": "Return lines of a file, with their numbers.",
        "args": {
            "file": {
                "type": "string",
                "description": "its path, as the question has it",
            },
            "first": {
                "type": "integer",
                "default": 1,
                "description": "the number of the first line",
            },
            "count": {
                "type": "integer",
                "default": 60,
                "description": "how many lines, at most 200",
            },
        },
        "required": [
            "file",
        ],
    },
}
_FUNCTIONS: dict[str, Any] = {
    "find_files": import_module("tools").find_files,
    "search_file": import_module("tools").search_file,
    "read_file": import_module("tools").read_file,
}
_HALF = 4000


class _Tool(dspy.Tool):
    """A tool whose errors are results that the agent reads."""

    def __call__(self, **given: Any) -> str:
        return asyncio.run(self.acall(**given))

    async def acall(self, **given: Any) -> str:
        text = await self._result(given)
        left = len(text) - 2 * _HALF
        note = f"\n[{left} characters left out]\n"
        return text[:_HALF] + note + text[-_HALF:] if left > 0 else text

    async def _result(self, given: dict[str, Any]) -> str:
        required = _TOOLS[self.name]["required"]
        wrong = [f"unknown argument `{n}`" for n in given if n not in self.args]
        wrong += [f"missing argument `{n}`" for n in required if n not in given]
        if wrong:
            return "error: " + "; ".join(wrong)
        try:
            result = await asyncio.to_thread(self.func, **given)
            result = await result if inspect.isawaitable(result) else result
        except ValidationError as problem:
            return "error: " + "; ".join(
                f"`{'.'.join(map(str, e['loc']))}`: {e['msg']}"
                for e in problem.errors()
            )
        except Exception as problem:  # noqa: BLE001
            words = " ".join(f"{type(problem).__name__}: {problem}".split())
            return "error: " + words
        if isinstance(result, str):
            return result
        plain = to_jsonable_python(result, fallback=str)
        return json.dumps(plain, ensure_ascii=False)


def _tool(name: str, function: Any) -> dspy.Tool:
    """A tool with the texts that the skill was compiled with."""
    texts = _TOOLS.get(name, {})
    args, desc = texts.get("args"), texts.get("desc")
    return _Tool(function, name=name, desc=desc, args=args, arg_types={})


class Program(dspy.Module):
    """The skill as a program; `answer` is its one predictor."""

    def __init__(self, tools: Any = ()) -> None:
        super().__init__()
        given = {tool.name: tool.func for tool in tools}
        calls = {name: validate_call(each) for name, each in _FUNCTIONS.items()}
        calls |= given
        self.answer = dspy.ReAct(
            AnswerFromBulletins,
            tools=[_tool(name, calls[name]) for name in _TOOLS],
            max_iters=24,
        )

    def forward(self, **inputs: Any) -> dspy.Prediction:
        """Answers one example."""
        return self.answer(**inputs)

    async def aforward(self, **inputs: Any) -> dspy.Prediction:
        """Answers one example, awaited."""
        return await self.answer.acall(**inputs)


program = Program()

"""Codes SK4xx: task, skill, data and metrics."""

from __future__ import annotations

from skillc.diagnostics.codes.code import Code
from skillc.diagnostics.codes.samples import program


def _code(number: int, title: str, explanation: str, bad: str, good: str) -> Code:
    return Code(f"SK{number}", "data", title, explanation, bad, good)


_SOURCE = 'source = "trivia.jsonl"'
_RULES = "trainable section rules"

CODES: tuple[Code, ...] = (
    _code(
        401,
        "data without files, or with too many",
        "Either one `source` that is split, or `train`, `validation` and, for a final test, `test`.",
        program().replace(_SOURCE, 'train = "train.jsonl"'),
        program().replace(_SOURCE, 'train = "train.jsonl"; validation = "validation.jsonl"; test = "test.jsonl"'),
    ),
    _code(
        402,
        "a split that is none",
        "A split is train : validation : test, in shares or in numbers of examples; without the last part there is no "
        "final test, and the result stays `unverified`.",
        program().replace(_SOURCE, f"{_SOURCE}; split = 2 : 1 : 100 examples"),
        program().replace(_SOURCE, f"{_SOURCE}; split = 200 examples : 100 examples : 100 examples"),
    ),
    _code(
        403,
        "grouped by something else than a field",
        "`group` and `by` name an input or a declared field of the data. The gold answer is a field too, once it is "
        'declared under another name: `field gold: text { column = "answer" }`.',
        program(gate="regressed(correct, by = author) <= 5%"),
        program(gate="regressed(correct, by = topic) <= 5%"),
    ),
    _code(
        404,
        "a field that makes no groups",
        "Examples are grouped by a text, a label, a bool or a number.",
        program(gate="regressed(correct, by = topic) <= 5%").replace("topic: text", "topic: json"),
        program(gate="regressed(correct, by = topic) <= 5%"),
    ),
    _code(
        405,
        "a task without an input or an output",
        "The target is given at least one field, and answers at least one.",
        program().replace("input question: text; ", ""),
        program(),
    ),
    _code(
        406,
        "a frozen section without a text",
        "Nothing ever changes a frozen section, so it would stay empty.",
        program().replace(_RULES, f"frozen section role; {_RULES}"),
        program().replace(_RULES, f'frozen section role = "You know much."; {_RULES}'),
    ),
    _code(
        407,
        "`about` is missing, empty or too long",
        "An agent decides by `about` whether to load the skill: what it is for, and when to use it, in at most 1,024 "
        "characters.",
        program().replace('about = "Answer a trivia question."; ', ""),
        program(),
    ),
    _code(
        408,
        "nothing to train",
        "At least one section is `trainable` or `slow`, or the skill has a `trainable about`.",
        program().replace(_RULES, 'frozen section rules = "Guess."'),
        program(),
    ),
    _code(
        409,
        "a metric that nothing reads",
        "A note: the metric is measured on every rollout and shown in the report, but neither the goal nor a gate "
        "depends on it.",
        program("metric close = f1(answer)"),
        program("metric close = f1(answer)", gate="candidate.close >= incumbent.close"),
    ),
    _code(
        411,
        "a text above its own limit",
        "The first text of a section is longer than the section may be, so every edit would break the limit.",
        program().replace(_RULES, f'{_RULES} = "Say what you know, and no more." {{ limit = 3 tokens }}'),
        program().replace(_RULES, f'{_RULES} = "Say what you know, and no more." {{ limit = 300 tokens }}'),
    ),
    _code(
        420,
        "a text that opens a fence and does not close it",
        "Markdown reads all that follows an open code fence, or an open comment `<!--`, as part of it. In SKILL.md "
        "that would be the sections behind. Headings need no care: `#` and `##` in a text become `###`, since the "
        "headings of the sections are `##`.",
        program().replace(_RULES, f'frozen section role = "Answer so:\\n```\\nyes"; {_RULES}'),
        program().replace(_RULES, f'frozen section role = "Answer so:\\n```\\nyes\\n```"; {_RULES}'),
    ),
)

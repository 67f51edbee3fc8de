"""Codes SK60x: models."""

from __future__ import annotations

from skillc.diagnostics.codes.code import Code
from skillc.diagnostics.codes.samples import program

_TARGET = 'model target    = "rulebook/v1"'
_OPTIMIZER = 'model optimizer = "rulebook/v1"'


def _code(number: int, title: str, explanation: str, bad: str, good: str) -> Code:
    return Code(f"SK{number}", "models", title, explanation, bad, good)


CODES: tuple[Code, ...] = (
    _code(
        601,
        "a model without a provider",
        "A model is named `provider/name`, as litellm reads it: `openai/gpt-5.5-mini`, `hosted_vllm/Qwen/Qwen3.5-4B`. "
        "`rulebook/v1` is the small model without weights that ships with skillc.",
        program().replace(_TARGET, 'model target = "gpt-5.5"'),
        program().replace(_TARGET, 'model target = "openai/gpt-5.5"'),
    ),
    _code(
        602,
        "a key in the program",
        'Programs are shared and kept in git, so a key never stands in one. `key = env("NAME")` reads it from the '
        "environment when it is needed.",
        program().replace(_TARGET, 'model target = "openai/gpt-5.5" { key = "sk-123" }'),
        program().replace(_TARGET, 'model target = "openai/gpt-5.5" { key = env("OPENAI_API_KEY") }'),
    ),
    _code(
        603,
        "declarations that refer to each other",
        "`model optimizer = target` reuses a model, `budget = lab.nightly` a budget. Along such references there "
        "must be a value at last.",
        program().replace(_TARGET, "model target = optimizer").replace(_OPTIMIZER, "model optimizer = target"),
        program().replace(_OPTIMIZER, "model optimizer = target"),
    ),
    _code(
        604,
        "a model that nothing asks",
        "A note: besides `target` and `optimizer` a model is there to judge, and no metric names this one. Judges "
        "come with skillc 0.5.",
        program('model referee = "rulebook/v1"'),
        program(),
    ),
)

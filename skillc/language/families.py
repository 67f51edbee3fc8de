"""The family of a model, by its name: models prefer answers by their family."""

from __future__ import annotations

import re

_FAMILIES = re.compile(
    "gpt|claude|gemini|gemma|llama|qwen|mi[sx]tral|ministral|magistral|deepseek|grok|phi|command|kimi|glm|nova|olmo"
    "|granite"
)
_ALIASES = {"mixtral": "mistral", "ministral": "mistral", "magistral": "mistral"}
_REASONERS = re.compile(r"o\d(?:-|$)")
_NO_MODELS = ("rulebook", "exec", "python")


def family_of(model: str) -> str | None:
    """Return `gpt` of `openai/gpt-5.5-mini`; the name behind the provider if no known family is in it.

    None for what is no language model by its name: the rulebook, commands and functions of the user.
    """
    if model.partition("/")[0] in _NO_MODELS:
        return None
    name = model.rpartition("/")[2].lower()
    if _REASONERS.match(name):
        return "gpt"
    found = _FAMILIES.search(name)
    return _ALIASES.get(found[0], found[0]) if found else name

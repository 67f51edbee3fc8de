"""What types and states are, in a few words: for hovers, completion and the reference."""

from __future__ import annotations

from collections.abc import Mapping

FIELD_TYPES: Mapping[str, str] = {
    "text": "any text",
    "bool": "yes or no; in a metric it counts 1 or 0",
    "number": "a number",
    "integer": "a whole number",
    "json": "a JSON object or list",
    "file": "the path of a file",
    "image": "the path of an image",
    "list": "`list[text]`, `list[number]`: items of one type; `list` alone is `list[text]`",
    "none": "the value may be missing: `text | none`",
}
PARAMETER_TYPES: Mapping[str, str] = {
    "metric": "a metric's name, or an expression of one rollout",
    "claim": "a written comparison of two means: `candidate.m > incumbent.m`",
    "condition": "a condition on one rollout",
    "text": "a field, or a text in quotes",
    "texts": "a list of texts in quotes",
    "field": "a field that examples can be grouped by",
    "rubric": "a rubric, or a text in quotes",
    "model": "a model's role",
    "skill": "a skill of the program",
}
"""Those that are no quantity."""
STATES: Mapping[str, str] = {
    "candidate": "the skill that the gate decides on",
    "incumbent": "the skill that the candidate was made from, and would replace",
    "best": "the accepted skill with the highest mean of the goal so far",
    "initial": "the skill as the program has it, before the first step",
}

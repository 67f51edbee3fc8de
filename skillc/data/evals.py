"""Rows of `evals/evals.json` as the documentation of Agent Skills has it, and back.

An eval is a prompt, a description of the expected output, files, and assertions. Assertions are called `expectations`
by some tools, and some have objects with a type in place of texts; a row has them as texts under `assertions`. An eval
without any has its expected output as the only one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from pydantic import JsonValue

from skillc.json_values import JsonObject

FOLDER = "evals"
_AS_DESCRIBED = "The output is as described: "
_TEXT_KEYS = ("text", "description", "assertion", "expectation", "value", "name")
_ASKED = ("", "llm", "llm-rubric", "llm_judge", "llm-judge", "rubric", "judge", "text", "expectation", "assertion")


def as_described(expected: str) -> str:
    """Return the assertion of an eval that has only a description of the expected output."""
    return _AS_DESCRIBED + " ".join(expected.split())


def read_eval(value: Mapping[str, JsonValue], file: Path) -> JsonObject:
    """Return an eval as a row: its own keys, and in any case `prompt`, `expected_output`, `files` and `assertions`.

    Raises:
        ValueError: it is no eval.
    """
    prompt, expected = value.get("prompt"), value.get("expected_output")
    if not isinstance(prompt, str) or not prompt.strip():
        raise ValueError("an eval without a `prompt`")
    if expected is not None and not isinstance(expected, str):
        raise ValueError("an `expected_output` that is not text")
    assertions = [
        text
        for name in ("assertions", "expectations")
        for item in _items(value, name)
        if (text := _statement(item)) is not None
    ]
    assertions = list(dict.fromkeys(assertions)) or ([as_described(expected)] if expected else [])
    rest = {name: each for name, each in value.items() if name != "expectations"}
    files = [_below(item, file) for item in _items(value, "files")]
    return {**rest, "expected_output": expected or "", "files": files, "assertions": list(assertions)}


def _items(value: Mapping[str, JsonValue], name: str) -> list[JsonValue]:
    found = value.get(name)
    if found is None:
        return []
    if not isinstance(found, list):
        raise ValueError(f"`{name}` is not a list")
    return found


def _below(item: JsonValue, file: Path) -> JsonValue:
    """Return a path relative to the folder of the file; evals write it from the folder of the skill."""
    if not isinstance(item, str):
        raise ValueError("`files` has a value that is not a path")
    return item.removeprefix("./").removeprefix(f"{FOLDER}/") if file.parent.name == FOLDER else item


def _statement(item: JsonValue) -> str | None:
    """Return an assertion as a text, None for an empty one."""
    if isinstance(item, str):
        return item.strip() or None
    if not isinstance(item, Mapping):
        raise ValueError("an assertion that is neither a text nor an object")
    kind = str(item.get("type") or item.get("check") or "").lower().replace("_", "-")
    write = _WRITTEN.get(kind)
    if write is not None:
        value = item.get("value")
        if not isinstance(value, str | int | float) or '"' in str(value):
            raise ValueError(f"an assertion of the type `{kind}` without a `value` that can be put in quotes")
        return write(str(value))
    if kind in ("is-json", "valid-json", "json"):
        return "The output is valid JSON"
    if kind not in map(_dashed, _ASKED):
        raise ValueError(f"an assertion of the unknown type `{kind}`: write it as a text")
    text = next((item[key] for key in _TEXT_KEYS if isinstance(item.get(key), str) and item[key]), None)
    if not isinstance(text, str):
        raise ValueError("an assertion without a text")
    return text.strip() or None


def _dashed(name: str) -> str:
    return name.replace("_", "-")


_WRITTEN: Mapping[str, Callable[[str], str]] = {
    "contains": 'The output contains "{}"'.format,
    "icontains": 'The output contains "{}"'.format,
    "includes": 'The output contains "{}"'.format,
    "not-contains": 'The output does not contain "{}"'.format,
    "equals": 'The output is exactly "{}"'.format,
    "exact": 'The output is exactly "{}"'.format,
    "starts-with": 'The output starts with "{}"'.format,
    "ends-with": 'The output ends with "{}"'.format,
}

"""Sentences that name the place of an answer in an input: `Answer total with the number after "Total:".`"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from skillc.models.rulebook.sentences import Group, holds, mask, normal, read_condition, sentences_of

ORDINALS = ("first", "second", "third", "fourth", "fifth")
PATTERNS = {
    "number": re.compile(r"(?<!\w)-?\d+(?:[.,]\d+)*"),
    "word": re.compile(r"\w(?:[\w'’@./+&-]*\w)?"),
    "name": re.compile(r"\b[A-ZÀ-ÖØ-Þ][\w'’-]*(?:[ ](?:(?:of|the|de|van|von)[ ])?[A-ZÀ-ÖØ-Þ][\w'’-]*)*"),
    "line": re.compile(r"[^\n]*\S[^\n]*"),
}
_RUN = re.compile(r"\d+|[A-ZÀ-ÖØ-Þ]+|[a-zß-öø-ÿ]+|.")
_QUOTE = "\ue000(?P<{}>\\d+)\ue001"
_NAME = "(?P<name>\ue000\\d+\ue001|[\\w][\\w-]*(?: [\\w-]+){0,3}?)"
_IN = r"(?:\s+(?:in|of)\s+the\s+(?P<field>[\w ]+?))?"
_WHAT = (
    rf"(?:the\s+(?:(?P<ordinal>{'|'.join(ORDINALS)}|last)\s+)?|(?P<every>every\s+))"
    rf"(?:(?P<kind>number|word|name|line)|text\s+that\s+looks\s+like\s+(?:{_QUOTE.format('shape')}|(?P<bare>\S+)))"
    rf"(?:\s+(?P<where>after|before)\s+{_QUOTE.format('anchor')})?{_IN}"
)
_SPAN = (
    rf"the\s+(?:text\s+between\s+{_QUOTE.format('start')}\s+and\s+{_QUOTE.format('end')}"
    rf"|rest\s+of\s+the\s+line\s+after\s+{_QUOTE.format('rest')}){_IN}"
)
_HEADS = (
    rf"(?:answer|give|fill|set)\s+(?:in\s+)?(?:the\s+)?{_NAME}\s+(?:with|to|as)",
    rf"(?:take|copy)\s+(?:the\s+)?{_NAME}\s+from",
    rf"for\s+(?:the\s+)?{_NAME},?\s+(?:copy|take|use|answer\s+with)",
)
_SENTENCES = [re.compile(rf"{head}\s+(?:{what})[.\s]*", re.IGNORECASE) for head in _HEADS for what in (_WHAT, _SPAN)]
_CONDITION = re.compile(
    r"(?:if|when|whenever|where)\s+(?P<condition>.+?),\s*(?:then\s+)?(?=(?:answer|give|fill|set|take|copy)\b)",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Take:
    """The place of an answer.

    Attributes:
        name: of the output, or of a key of a JSON output.
        kind: `number`, `word`, `name`, `line`, `shape`, `between` or `rest`.
        ordinal: `first` to `fifth`, `last` or `every`.
        where: `after` or `before` the anchor, or empty.
        anchor: a text next to the answer; the start for `between` and `rest`.
        end: where `between` ends.
        shape: an example for `shape`: a run of digits matches any digits, a run of letters any of their case.
        field: the input, None for all of them.
        groups: the condition.
    """

    name: str
    kind: str
    ordinal: str = "first"
    where: str = ""
    anchor: str = ""
    end: str = ""
    shape: str = ""
    field: str | None = None
    groups: tuple[Group, ...] = ()


def take_text(take: Take) -> str:
    """The sentence, without a condition."""
    name = take.name if re.fullmatch(r"[A-Za-z_]\w*", take.name) else f'"{take.name}"'
    inside = f" in the {take.field.replace('_', ' ')}" if take.field else ""
    if take.kind == "between":
        return f'Take {name} from the text between "{take.anchor}" and "{take.end}"{inside}.'
    if take.kind == "rest":
        return f'Take {name} from the rest of the line after "{take.anchor}"{inside}.'
    what = f'text that looks like "{take.shape}"' if take.kind == "shape" else take.kind
    near = f' {take.where} "{take.anchor}"' if take.where else ""
    if take.ordinal == "every":
        return f"Answer {name} with every {what}{near}{inside}."
    ordinal = "" if take.where and take.ordinal == "first" else f"{take.ordinal} "
    return f"Answer {name} with the {ordinal}{what}{near}{inside}."


def read_takes(text: str, fields: tuple[str, ...] = ()) -> tuple[Take, ...]:
    """All such sentences in a text, in order."""
    found = (read_take(sentence, fields) for line in text.splitlines() for sentence in sentences_of(line))
    return tuple(take for take in found if take is not None)


def read_take(sentence: str, fields: tuple[str, ...] = ()) -> Take | None:
    """The place that a sentence names, or None where it is no such sentence."""
    masked, strings = mask(sentence.strip())
    groups: tuple[Group, ...] | None = ()
    condition = _CONDITION.match(masked)
    if condition:
        groups = read_condition(condition["condition"], strings, fields)
        masked = masked[condition.end() :]
    found = next((m for pattern in _SENTENCES if (m := pattern.fullmatch(masked))), None)
    if found is None or groups is None:
        return None
    parts = found.groupdict()

    def string(part: str) -> str:
        return strings[int(parts[part])][1:-1] if parts.get(part) else ""

    name = parts["name"]
    name = strings[int(name[1:-1])][1:-1] if name.startswith("\ue000") else name
    noun = (parts["field"] or "").lower().replace(" ", "_")
    field = next((each for each in fields if each.lower() == noun), None)
    shape = string("shape") or (parts.get("bare") or "").rstrip(".,;")
    if parts.get("start"):
        return Take(name, "between", anchor=string("start"), end=string("end"), field=field, groups=groups)
    if parts.get("rest"):
        return Take(name, "rest", anchor=string("rest"), field=field, groups=groups)
    kind = "shape" if shape else (parts["kind"] or "").lower()
    ordinal = "every" if parts["every"] else (parts["ordinal"] or "first").lower()
    where = (parts["where"] or "").lower()
    return Take(name, kind, ordinal, where, string("anchor"), shape=shape, field=field, groups=groups)


@lru_cache(maxsize=1024)
def pattern_of(kind: str, shape: str) -> re.Pattern[str]:
    """The pattern of texts of a kind."""
    if kind != "shape":
        return PATTERNS[kind]
    runs = _RUN.findall(shape)
    return re.compile(r"(?<!\w)" + "".join(map(_run, runs)) + r"(?!\w)")


def _run(run: str) -> str:
    if run[0].isdigit():
        return r"\d+"
    if run[0].isalpha() and _RUN.fullmatch(run) and re.match(r"[A-ZÀ-ÖØ-Þa-zß-öø-ÿ]", run):
        return "[A-ZÀ-ÖØ-Þ]+" if run[0].isupper() else "[a-zß-öø-ÿ]+"
    return re.escape(run)


@lru_cache(maxsize=1024)
def _anchor(text: str) -> re.Pattern[str]:
    before = r"(?<!\w)" if text[:1].isalnum() else ""
    after = r"(?!\w)" if text[-1:].isalnum() else ""
    return re.compile(before + re.escape(text) + after, re.IGNORECASE)


def taken(take: Take, inputs: Mapping[str, str]) -> list[str]:
    """The texts in the inputs that a sentence names: none, one, or with `every` any number."""
    if take.groups and not all(
        holds(group, {name: normal(text) for name, text in inputs.items()}) for group in take.groups
    ):
        return []
    one = inputs.get(take.field) if take.field else None
    for text in [one] if one is not None else inputs.values():
        found = _found(take, text)
        if found:
            return found
    return []


def _found(take: Take, text: str) -> list[str]:
    if take.kind in ("between", "rest"):
        return _span(take, text)
    found = [match[0].strip() for match in _matches(take, text)]
    if take.ordinal == "every" or not found:
        return found
    if take.ordinal == "last" or (take.where == "before" and take.ordinal == "first"):
        return found[-1:]
    at = ORDINALS.index(take.ordinal)
    return found[at : at + 1]


def _matches(take: Take, text: str) -> list[re.Match[str]]:
    """All texts of the kind: behind the first anchor, or before the first anchor that has some before it."""
    pattern = pattern_of(take.kind, take.shape)
    if not take.where:
        return list(pattern.finditer(text))
    for anchor in _anchor(take.anchor).finditer(text):
        if take.where == "after":
            return list(pattern.finditer(text, anchor.end()))
        before = list(pattern.finditer(text, 0, anchor.start()))
        if before:
            return before
    return []


def _span(take: Take, text: str) -> list[str]:
    start = _anchor(take.anchor).search(text)
    if start is None:
        return []
    if take.kind == "rest":
        end: int | None = text.find("\n", start.end())
        end = None if end == -1 else end
    else:
        stop = _anchor(take.end).search(text, start.end())
        if stop is None:
            return []
        end = stop.start()
    value = text[start.end() : end].strip()
    return [value] if value else []


def number_of(text: str) -> float | None:
    """The number in a text such as `1,200.50` or `1.200,50`, None where there is none."""
    found = PATTERNS["number"].search(text)
    if found is None:
        return None
    digits = found[0]
    comma, dot = digits.rfind(","), digits.rfind(".")
    if comma > dot and (dot >= 0 or not re.fullmatch(r"-?\d{1,3}(?:,\d{3})+", digits)):
        digits = digits.replace(".", "").replace(",", ".")
    elif dot >= 0 and digits.count(".") > 1:
        digits = digits.replace(".", "")
    try:
        return float(digits.replace(",", ""))
    except ValueError:
        return None

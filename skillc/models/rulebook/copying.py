"""Sentences that copy an answer from an input: `Answer total with the number after "Total:".`"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

from skillc.dataclass import dataclass
from skillc.models.rulebook.sentences import Clause, is_true, mask, normal, read_condition, sentences_of

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
class CopyRule:
    """The place from which an answer is copied.

    Attributes:
        name: of the output, or of a key of a JSON output.
        kind: `number`, `word`, `name`, `line`, `shape`, `between` or `rest`.
        ordinal: `first` to `fifth`, `last` or `every`.
        where: `after` or `before` the anchor, or empty.
        anchor: text next to the answer; the start for `between` and `rest`.
        end: the end of `between`.
        shape: an example for `shape`: a run of digits matches any digits, a run of letters any of their case.
        field: the input; None for all inputs.
        clauses: the condition.
    """

    name: str
    kind: str
    ordinal: str = "first"
    where: str = ""
    anchor: str = ""
    end: str = ""
    shape: str = ""
    field: str | None = None
    clauses: tuple[Clause, ...] = ()


def copy_rule_text(rule: CopyRule) -> str:
    """Write the sentence, without a condition."""
    name = rule.name if re.fullmatch(r"[A-Za-z_]\w*", rule.name) else f'"{rule.name}"'
    inside = f" in the {rule.field.replace('_', ' ')}" if rule.field else ""
    if rule.kind == "between":
        return f'Take {name} from the text between "{rule.anchor}" and "{rule.end}"{inside}.'
    if rule.kind == "rest":
        return f'Take {name} from the rest of the line after "{rule.anchor}"{inside}.'
    what = f'text that looks like "{rule.shape}"' if rule.kind == "shape" else rule.kind
    near = f' {rule.where} "{rule.anchor}"' if rule.where else ""
    if rule.ordinal == "every":
        return f"Answer {name} with every {what}{near}{inside}."
    ordinal = "" if rule.where and rule.ordinal == "first" else f"{rule.ordinal} "
    return f"Answer {name} with the {ordinal}{what}{near}{inside}."


def read_copy_rules(text: str, fields: tuple[str, ...] = ()) -> tuple[CopyRule, ...]:
    """Return all such sentences of a text, in order."""
    found = (read_copy_rule(sentence, fields) for sentence in sentences_of(text))
    return tuple(rule for rule in found if rule is not None)


def read_copy_rule(sentence: str, fields: tuple[str, ...] = ()) -> CopyRule | None:
    """Read such a sentence; None for any other."""
    masked, strings = mask(sentence.strip())
    clauses: tuple[Clause, ...] | None = ()
    condition = _CONDITION.match(masked)
    if condition:
        clauses = read_condition(condition["condition"], strings, fields)
        masked = masked[condition.end() :]
    found = next((m for pattern in _SENTENCES if (m := pattern.fullmatch(masked))), None)
    if found is None or clauses is None:
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
        return CopyRule(name, "between", anchor=string("start"), end=string("end"), field=field, clauses=clauses)
    if parts.get("rest"):
        return CopyRule(name, "rest", anchor=string("rest"), field=field, clauses=clauses)
    kind = "shape" if shape else (parts["kind"] or "").lower()
    ordinal = "every" if parts["every"] else (parts["ordinal"] or "first").lower()
    where = (parts["where"] or "").lower()
    return CopyRule(name, kind, ordinal, where, string("anchor"), shape=shape, field=field, clauses=clauses)


@lru_cache(maxsize=1024)
def pattern_of(kind: str, shape: str) -> re.Pattern[str]:
    """Return the pattern of texts of a kind."""
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


def copied_texts(rule: CopyRule, inputs: Mapping[str, str]) -> list[str]:
    """Return the texts that a sentence copies from the inputs: none, one, or with `every` any number."""
    normals = {name: normal(text) for name, text in inputs.items()} if rule.clauses else {}
    if not all(is_true(clause, normals) for clause in rule.clauses):
        return []
    one = inputs.get(rule.field) if rule.field else None
    for text in [one] if one is not None else inputs.values():
        found = _found(rule, text)
        if found:
            return found
    return []


def _found(rule: CopyRule, text: str) -> list[str]:
    if rule.kind in ("between", "rest"):
        return _span(rule, text)
    found = [match[0].strip() for match in _matches(rule, text)]
    if rule.ordinal == "every" or not found:
        return found
    if rule.ordinal == "last" or (rule.where == "before" and rule.ordinal == "first"):
        return found[-1:]
    at = ORDINALS.index(rule.ordinal)
    return found[at : at + 1]


def _matches(rule: CopyRule, text: str) -> list[re.Match[str]]:
    """Return all texts of the kind: after the first anchor, or before the first anchor that has some before it."""
    pattern = pattern_of(rule.kind, rule.shape)
    if not rule.where:
        return list(pattern.finditer(text))
    for anchor in _anchor(rule.anchor).finditer(text):
        if rule.where == "after":
            return list(pattern.finditer(text, anchor.end()))
        before = list(pattern.finditer(text, 0, anchor.start()))
        if before:
            return before
    return []


def _span(rule: CopyRule, text: str) -> list[str]:
    start = _anchor(rule.anchor).search(text)
    if start is None:
        return []
    if rule.kind == "rest":
        value = text[start.end() :].partition("\n")[0].strip()
    else:
        stop = _anchor(rule.end).search(text, start.end())
        if stop is None:
            return []
        value = text[start.end() : stop.start()].strip()
    return [value] if value else []


def number_of(text: str) -> float | None:
    """Return the first number in a text such as `1,200.50` or `1.200,50`; None without one."""
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


def number_or_text(text: str) -> int | float | str:
    """Return the first number in a text, whole if it can be; without one, the text."""
    number = number_of(text)
    return text if number is None else int(number) if number == int(number) else number

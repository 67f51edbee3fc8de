"""Judges: the text of a rubric and its checks, the roles that a call of `judge` asks, and the families of models."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from skillc.dataclass import dataclass
from skillc.diagnostics.diagnostic import Reporter
from skillc.diagnostics.suggest import spelling_hint
from skillc.gates.terms import CallTerm, ListTerm, Term, WordTerm, calls
from skillc.language.checked import Entity, Setting, amount_of
from skillc.language.types import add_error, check_distinct

MALFORMED = "SK427"
_LEVEL = re.compile(r"(?P<level>\d{1,4})(?:\s*[.:)=–—-]\s+|\s+)(?P<meaning>\S.*)")
_BARE_LEVEL = re.compile(r"(\d{1,4})\s*[.:)=–—-]?")


@dataclass(frozen=True, slots=True)
class RubricText:
    """A rubric, or one of its criteria, as text.

    Attributes:
        question: what is asked; with levels, the text before the first one.
        levels: each number with its meaning, the best first; empty for a question that is answered by yes or no.
    """

    question: str
    levels: tuple[tuple[int, str], ...] = ()


@dataclass(frozen=True, slots=True)
class RubricProblem:
    """Why a text is no rubric, and how to fix it."""

    message: str
    hint: str


def read_rubric(text: str) -> RubricText | RubricProblem:
    """Read a text: lines that begin with a number are levels, deeper lines below one continue it."""
    before: list[str] = []
    levels: list[tuple[int, list[str], int]] = []
    for written in text.splitlines():
        line = written.strip()
        indent = len(written) - len(written.lstrip())
        found = _LEVEL.fullmatch(line)
        if not line:
            continue
        if bare := _BARE_LEVEL.fullmatch(line):
            hint = "write `5  the customer need not write again`, one line for each level"
            return RubricProblem(f"level {bare[1]} has no meaning", hint)
        if found is not None and not (levels and indent > levels[-1][2]):
            levels.append((int(found["level"]), [found["meaning"]], indent))
        elif not levels:
            before.append(line)
        elif indent > levels[-1][2]:
            levels[-1][1].append(line)
        else:
            shown = line if len(line) <= 40 else line[:40] + "…"
            hint = "indent it to continue the level above, or move it before the first level"
            return RubricProblem(f"`{shown}` is between levels and begins with no number", hint)
    return _checked(" ".join(before), [(level, " ".join(meaning)) for level, meaning, _ in levels])


def _checked(question: str, levels: list[tuple[int, str]]) -> RubricText | RubricProblem:
    if not levels and not question:
        return RubricProblem("the text is empty", "ask a question, or write levels")
    if not levels:
        return RubricText(question)
    if len(levels) == 1:
        hint = "write two or more; or a question, whose text begins with no number"
        return RubricProblem(f"level {levels[0][0]} is the only one", hint)
    numbers = [level for level, _ in levels]
    twice = next((number for number in numbers if numbers.count(number) > 1), None)
    if twice is not None:
        return RubricProblem(f"two levels have the number {twice}", "give each level its own number")
    if numbers not in (sorted(numbers), sorted(numbers, reverse=True)):
        order = ", ".join(map(str, numbers))
        return RubricProblem(f"the levels are not in order: {order}", "sort them, the best or the worst first")
    return RubricText(question, tuple(sorted(levels, reverse=True)))


def check_rubric(report: Reporter, rubric: Entity, fields: Mapping[str, Entity | None]) -> None:
    """Check that a rubric is a text, criteria or a column, and that each text is a question or levels in order.

    A field that is None is broken.
    """
    name = rubric.name or ""
    criteria = rubric.children_of("criterion")
    if "each" in rubric.settings:
        _check_each(report, rubric, rubric.settings["each"], fields)
    elif isinstance(rubric.value, str) and criteria:
        hint = "move the text into a criterion"
        add_error(report, MALFORMED, rubric, f"the rubric `{name}` has both a text and criteria", hint)
    elif rubric.value is None and not criteria:
        hint = 'add `= "..."`, or `criterion name = "..."` in its block'
        add_error(report, MALFORMED, rubric, f"the rubric `{name}` has neither a text nor criteria", hint)
    elif isinstance(rubric.value, str):
        _check_text(report, rubric, f"the rubric `{name}`")
    check_distinct(report, criteria, "criteria")
    for each in criteria:
        _check_text(report, each, f"the criterion `{each.name}`")
        weight = amount_of(each.settings, "weight")
        if weight is not None and weight <= 0:
            hint = "write a number above 0, or remove the criterion"
            message = f"the criterion `{each.name}` has no weight"
            add_error(report, MALFORMED, each.settings["weight"], message, hint)


def _check_each(report: Reporter, rubric: Entity, setting: Setting, fields: Mapping[str, Entity | None]) -> None:
    """Check that a rubric asks about the statements of a column and nothing else."""
    if rubric.value is not None or rubric.children_of("criterion"):
        message = f"the rubric `{rubric.name}` has both `each` and criteria of its own"
        add_error(report, MALFORMED, rubric, message, "keep one of them; a metric can average two judges")
    found = fields.get(setting.word)
    if setting.word in fields and found is None:
        return
    known = {name: each for name, each in fields.items() if each is not None and each.kind != "output"}
    if found is None or found.type is None or found.kind == "output":
        hint = spelling_hint(setting.word, list(known)) or f"declare it in `data`: `field {setting.word}: list[text]`"
        add_error(report, "SK403", setting, f"unknown field `{setting.word}`", hint)
    elif found.type.of_items.kind != "text":
        message = f"`{setting.word}` has no statements"
        add_error(report, MALFORMED, setting, message, f"declare `field {setting.word}: list[text]`")


def _check_text(report: Reporter, entity: Entity, what: str) -> None:
    if not isinstance(entity.value, str):
        return
    starts = report.offsets("SK006", entity.source)
    if any(
        entity.span.end <= start and not entity.source.text[entity.span.end : start].strip(" =") for start in starts
    ):
        return  # A text that is not closed is reported already.
    found = read_rubric(entity.value)
    if isinstance(found, RubricProblem):
        add_error(report, MALFORMED, entity, f"{what}: {found.message}", found.hint)


# ---- calls of judges --------------------------------------------------------------------------------


def judge_calls(terms: Iterable[Term]) -> list[CallTerm]:
    """The distinct calls of `judge` in some terms."""
    return list(dict.fromkeys(call for term in terms for call in calls(term) if call.function == "judge"))


def judge_roles(call: CallTerm) -> tuple[str, ...]:
    """The roles that a call of `judge` asks: its model, or those of its panel."""
    model, panel = call.option("model"), call.option("panel")
    asked = panel.items if isinstance(panel, ListTerm) else (model,)
    return tuple(each.word if isinstance(each, WordTerm) else getattr(each, "name", "judge") for each in asked)


_FAMILIES = re.compile(
    "gpt|claude|gemini|gemma|llama|qwen|mi[sx]tral|ministral|magistral|deepseek|grok|phi|command|kimi|glm|nova|olmo"
    "|granite"
)
_ALIASES = {"mixtral": "mistral", "ministral": "mistral", "magistral": "mistral"}
_REASONERS = re.compile(r"o\d(?:-|$)")
_NO_MODELS = ("rulebook", "exec", "python")


def family_of(model: str) -> str | None:
    """Return `gpt` of `openai/gpt-5.5-mini`, whose answers its models prefer; else the name behind the provider.

    None for what is no language model by its name: the rulebook, commands and functions of the user.
    """
    if model.partition("/")[0] in _NO_MODELS:
        return None
    name = model.rpartition("/")[2].lower()
    if _REASONERS.match(name):
        return "gpt"
    found = _FAMILIES.search(name)
    return _ALIASES.get(found[0], found[0]) if found else name

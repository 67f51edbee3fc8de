"""rulebook as the optimizer model of DSPy's own optimizers: it knows their questions by the fields they ask for.

It answers as it answers skillc's: by signs that set the right answers apart. GEPA is given its instruction with the
edits for the wrong answers; MIPROv2 is given such rules as observations on its data, and instructions that each hold
another part of them.
"""

from __future__ import annotations

import ast
import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from skillc.models.rulebook.briefs import EXPECTED, Brief, Case, read_brief, value_of
from skillc.models.rulebook.one_shot import Line, edited, edits_for, written
from skillc.models.rulebook.reading import read_form, read_inputs, texts, write_answer

_SECTION = "instruction"
_DATUM = re.compile(r"Example\((\{.*?\})\) \(input_keys=\{(.*?)\}\)", re.DOTALL)
_RULE = re.compile(r"\s*(?:^|(?<=\.)|\n)\s*-\s+(?=[A-Z])")
_FIELD = re.compile(r"^(?:input|output) \S+: .*$", re.MULTILINE)
# Of four rules MIPROv2's proposals each hold about three.
_KEPT = 192


def answer_peer(messages: Sequence[Mapping[str, object]], sample: object = 0) -> str | None:
    """The reply to a question of DSPy's optimizers, None where it is none."""
    form = read_form("\n\n".join(texts(messages, "system")))
    for inputs, output, write in _QUESTIONS:
        if inputs <= set(form.inputs) and [field.name for field in form.outputs] == [output]:
            users = texts(messages, "user")
            return write_answer(form, {output: write(read_inputs(form, users[-1] if users else ""), sample) or "none"})
    return None


def _improved(given: Mapping[str, str], sample: object) -> str:
    """GEPA: the instruction with the edits that the feedback calls for."""
    lines = _lines(given["current_instruction"])
    brief = _brief(_FIELD.findall(given.get("additional_instructions", "")), lines)
    cases = tuple(_cases(given["examples_with_feedback"], brief.labels))
    found = replace(brief, cases=cases, inputs=brief.inputs or _names(cases))
    return written(edited(lines, edits_for(found), _SECTION))


def _observed(given: Mapping[str, str], sample: object) -> str:
    """MIPROv2: rules that set the given examples' right answers apart."""
    read = (_datum(found[1], found[2], f"d{i}") for i, found in enumerate(_DATUM.finditer(given["examples"])))
    cases = [case for case in read if case is not None]
    labels = sorted({case.gold for case in cases if case.gold is not None})
    brief = replace(_brief((), ()), cases=tuple(cases), labels=tuple(labels), inputs=_names(cases))
    return written(edited((), edits_for(brief), _SECTION))


def _summed_up(given: Mapping[str, str], sample: object) -> str:
    """MIPROv2: the rules among its observations, each once."""
    return "\n".join(f"- {rule}" for rule in _rules(given["observations"]))


def _proposed(given: Mapping[str, str], sample: object) -> str:
    """MIPROv2: the instruction, and the rules of the description that this sample draws."""
    drawn = [rule for rule in _rules(given.get("dataset_description", "")) if _lot(sample, rule) < _KEPT]
    kept = [Line("", "", rule) for rule in drawn]
    return written((*_lines(given["basic_instruction"]), *kept))


_QUESTIONS: tuple[tuple[set[str], str, Callable[[Mapping[str, str], object], str]], ...] = (
    ({"current_instruction", "examples_with_feedback"}, "new_instruction", _improved),
    ({"examples"}, "observations", _observed),
    ({"observations"}, "summary", _summed_up),
    ({"basic_instruction", "task_demos"}, "proposed_instruction", _proposed),
)


def _lines(text: str) -> tuple[Line, ...]:
    """The rules of an instruction; a text in parentheses says that there is none."""
    if text.startswith("(") and text.endswith(")"):
        return ()
    found: list[Line] = []
    topic = ""
    for line in text.splitlines():
        plain = line.strip()
        if plain.startswith("#"):
            topic = plain.lstrip("#").strip()
        elif plain:
            found.append(Line(f"g{len(found)}", topic, re.sub(r"^[-*+]\s+", "", plain)))
    return tuple(found)


def _brief(fields: Sequence[str], lines: Sequence[Line]) -> Brief:
    """What skillc's own prompt would say of an instruction."""
    rows = [f"## {_SECTION} (trainable, 0 tokens)"]
    topic = ""
    for line in lines:
        if line.topic != topic:
            topic = line.topic
            rows.append(f"### {topic}")
        rows.append(f"[{line.id}] {line.text}")
    skill = "\n".join(rows).replace("<", "&lt;")
    return read_brief("\n".join(["<task>", *fields, "</task>", "<skill>", skill, "</skill>"]))


def _cases(text: str, labels: Sequence[str]) -> list[Case]:
    try:
        rows = json.loads(text)
    except json.JSONDecodeError:
        return []
    cases = []
    for i, row in enumerate(rows, 1):
        answers, feedback = row.get("Generated Outputs"), str(row.get("Feedback", ""))
        outputs = tuple(answers) if isinstance(answers, dict) else ()
        answer = value_of(json.dumps(answers) if outputs else str(answers), labels, outputs) or ""
        found = EXPECTED.search(feedback)
        gold = value_of(found[1], labels, outputs) if found else None
        gold = answer if gold is None and "score is 1," in feedback else gold
        inputs = {name: str(value) for name, value in dict(row.get("Inputs") or {}).items()}
        cases.append(Case(f"t{i}", "", inputs, answer, gold))
    return cases


def _datum(values: str, keys: str, tag: str) -> Case | None:
    """An example as DSPy shows it; its answer is the first value that is no input."""
    try:
        row, inputs = ast.literal_eval(values), ast.literal_eval(f"[{keys}]")
    except (ValueError, SyntaxError):
        return None
    gold = next((str(value) for name, value in row.items() if name not in inputs), None)
    return Case(tag, "", {name: str(row[name]) for name in inputs if name in row}, "", gold)


def _rules(text: str) -> list[str]:
    return list(dict.fromkeys(rule.strip() for rule in _RULE.split(text) if rule.strip().endswith(".")))


def _names(cases: Sequence[Case]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for case in cases for name in case.inputs))


def _lot(sample: object, rule: str) -> int:
    return hashlib.sha256(f"{sample}\0{rule}".encode()).digest()[0]

"""rulebook as an optimizer: it reads the prompts of `skillc/optimize/propose/prompts` and replies in their JSON."""

from __future__ import annotations

import ast
import hashlib
import json
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from skillc.models.rulebook.briefs import EXPECTED, Brief, Case, read_brief, value_of
from skillc.models.rulebook.induce import deciding, default_text
from skillc.models.rulebook.propose import aggregate, reflect, with_lookups
from skillc.models.rulebook.reading import read_form, read_inputs, texts, write_answer
from skillc.models.rulebook.rewriting import Line, draft, edited, edits_for, one_shot, rewrite, tidy, written
from skillc.models.rulebook.sentences import read_sentence


def is_request(messages: Sequence[Mapping[str, object]]) -> bool:
    """Whether a prompt is one of the optimizer's: its first user message goes from a task to a request."""
    first = next(iter(texts(messages, "user")), "").strip()
    return first.startswith("<task>") and first.endswith("</request>")


def answer_optimizer(messages: Sequence[Mapping[str, object]]) -> str:
    """The reply to an optimizer's prompt; `{}` for a stage that is not known."""
    brief = read_brief(texts(messages, "user")[0])
    stage = STAGES.get(brief.request.get("stage", ""))
    reply = stage(brief) if stage else {}
    if brief.request.get("lookups"):
        reply = with_lookups(brief, messages, reply)
    return json.dumps(reply, ensure_ascii=False)


def budget(brief: Brief) -> dict[str, object]:
    """As many as cured at least one case or were not tried."""
    edits = brief.edits[0] if brief.edits else ()
    return {"edits": min(brief.budget, sum("cured" not in edit or _cured(edit) > 0 for edit in edits))}


def _cured(edit: Mapping[str, object]) -> int:
    found = re.match(r"\d+", str(edit.get("cured", "")))
    return int(found[0]) if found else 0


def slow_update(brief: Brief) -> dict[str, object]:
    """The old guidance with a default: the answer that was missed most often where no rule applied."""
    missed: Counter[str] = Counter()
    for case in brief.cases:
        line = deciding(brief, case)
        undecided = line is None or line[1].default
        if undecided and case.kind in ("still_failing", "regressed") and case.gold in brief.labels:
            missed[case.gold or ""] += 1
    if not missed:
        return {"guidance": brief.guidance}
    kept = [line for line in brief.guidance.splitlines() if not _is_default(line)]
    return {"guidance": "\n".join([*kept, default_text(missed.most_common(1)[0][0])])}


def _is_default(line: str) -> bool:
    read = read_sentence(re.sub(r"^\s*[-*]\s+", "", line))
    return read is not None and read.default


def meta_skill(brief: Brief) -> dict[str, object]:
    """Count accepted patches by operation; operations without success are then proposed last."""
    if not brief.decisions:
        return {"memory": brief.memory}
    accepted = sum(ok for ok, _ in brief.decisions)
    lines = [f"{accepted} of {len(brief.decisions)} patches were accepted in the last epoch."]
    for op in ("add", "replace", "delete", "move"):
        tried = [ok for ok, edits in brief.decisions for edit in edits if edit.startswith(op)]
        if tried:
            lines.append(f"{op}: {sum(tried)} of {len(tried)} edits were in accepted patches.")
    return {"memory": "\n".join(lines)}


STAGES: dict[str, Callable[[Brief], dict[str, object]]] = {
    "reflect": reflect,
    "aggregate": aggregate,
    "budget": budget,
    "rewrite": rewrite,
    "tidy": tidy,
    "draft": draft,
    "slow_update": slow_update,
    "meta_skill": meta_skill,
    "one_shot": one_shot,
}


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
    """The rules of an instruction; a text in parentheses means that there is none."""
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
    """The brief that skillc's own prompt would give of an instruction."""
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

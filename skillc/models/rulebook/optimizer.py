"""rulebook as an optimizer: replies to the prompts of `skillc/optimize/propose/prompts`, and to DSPy's optimizers."""

from __future__ import annotations

import ast
import hashlib
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from itertools import groupby

from skillc.json_values import parse_json
from skillc.models.rulebook.briefs import EXPECTED, Brief, Case, SkillRule, find_answer, read_brief
from skillc.models.rulebook.edits import MOST_SIGNS, cures_of
from skillc.models.rulebook.induce import (
    SignCount,
    deciding_line,
    default_text,
    evidence_text,
    ordered_signs,
    read_evidence,
    read_sign_rule,
    rule_text,
)
from skillc.models.rulebook.propose import aggregate, reflect, with_lookups
from skillc.models.rulebook.sentences import read_sentence
from skillc.models.rulebook.target import Messages, read_form, read_inputs, texts, write_answer
from skillc.tokens import count_tokens

Reflect = Callable[[Brief], dict[str, object]]
_MOST_EDITS = 99
_UNSUPPORTED = re.compile(r"cured 0 and broke \d+ on validation$")


def is_request(messages: Messages) -> bool:
    """Whether a prompt is the optimizer's: its first user message begins with a task and ends with a request."""
    first = next(iter(texts(messages, "user")), "").strip()
    return first.startswith("<task>") and first.endswith("</request>")


def answer_optimizer(messages: Messages, reflect: Reflect = reflect) -> str:
    """Return the reply to an optimizer's prompt; `{}` for an unknown stage.

    `reflect` proposes the edits of a reflection and of a draft.
    """
    brief = read_brief(texts(messages, "user")[0])
    asked = brief.request.get("stage", "")
    if asked == "reflect":
        reply = reflect(brief)
    elif asked == "draft":
        reply = _draft(brief, reflect)
    else:
        stage = _STAGES.get(asked)
        reply = stage(brief) if stage else {}
    if brief.request.get("lookups"):
        reply = with_lookups(brief, messages, reply)
    return json.dumps(reply, ensure_ascii=False)


def _budget(brief: Brief) -> dict[str, object]:
    """Select as many edits as cured at least one case or were not tried."""
    edits = brief.edits[0] if brief.edits else ()
    useful = sum("cured" not in edit or bool(re.match(r"0*[1-9]", str(edit["cured"]))) for edit in edits)
    return {"edits": min(brief.budget, useful)}


def _slow_update(brief: Brief) -> dict[str, object]:
    """Return the old guidance with a new default: the answer that was missed most often where no rule applied."""
    missed: Counter[str] = Counter()
    for case in brief.cases:
        line = deciding_line(brief, case)
        undecided = line is None or line[1].is_default
        if undecided and case.kind in ("still_failing", "regressed") and case.gold in brief.labels:
            missed[case.gold or ""] += 1
    if not missed:
        return {"guidance": brief.guidance}
    kept = []
    for line_text in brief.guidance.splitlines():
        read = read_sentence(re.sub(r"^\s*[-*]\s+", "", line_text))
        if read is None or not read.is_default:
            kept.append(line_text)
    return {"guidance": "\n".join([*kept, default_text(missed.most_common(1)[0][0])])}


def _meta_skill(brief: Brief) -> dict[str, object]:
    """Count accepted patches by operation; `first_edits` proposes operations without success last."""
    if not brief.decisions:
        return {"memory": brief.memory}
    accepted = sum(ok for ok, _ in brief.decisions)
    lines = [f"{accepted} of {len(brief.decisions)} patches were accepted in the last epoch."]
    for op in ("add", "replace", "delete", "move"):
        tried = [ok for ok, edits in brief.decisions for edit in edits if edit.startswith(op)]
        if tried:
            lines.append(f"{op}: {sum(tried)} of {len(tried)} edits were in accepted patches.")
    return {"memory": "\n".join(lines)}


def _rewrite(brief: Brief) -> dict[str, object]:
    """Rewrite each requested section with the edits that fit below its limit."""
    edits = brief.edits[0] if brief.edits else ()
    sections = []
    for name, old in _requested_sections(brief):
        rules = old
        limit = brief.limits.get(name)
        for edit in edits:
            after = _by_topic(_apply(rules, name, edit))
            if limit is None or _count_tokens(after) <= max(limit, _count_tokens(rules)):
                rules = after
        sections.append(_section(name, _merge_sign_rules(brief, rules), old))
    return {"sections": [section for section in sections if section["rules"]]}


def _tidy(brief: Brief) -> dict[str, object]:
    """Rewrite each section without the rules that cured nothing; merge those that list signs of one answer."""
    kept = tuple(rule for rule in brief.rules if not _UNSUPPORTED.match(rule.support))
    return _rewrite(replace(brief, rules=kept, edits=()))


def _draft(brief: Brief, reflect: Reflect) -> dict[str, object]:
    """Write each section with the edits for its failures and for the further cases, which have no answer yet."""
    edits = _reflect_on_failures(brief, tuple(case for case in brief.further if case.gold is not None), reflect)
    requested = _requested_sections(brief)
    cases = {str(edit.get("text")): cures_of(edit) for edit in edits} if brief.request.get("cite") == "on" else None
    sections = [_section(name, _apply_all(old, edits, name), old, cases) for name, old in requested]
    return {"sections": [section for section in sections if section["rules"]]}


def _one_shot(brief: Brief) -> dict[str, object]:
    """Return the texts of the sections that an edit changes."""
    edits, changed = _reflect_on_failures(brief), {}
    for name in brief.sections:
        rules = [rule for rule in brief.rules if rule.section == name]
        after = _apply_all(rules, edits, name)
        if after != rules:
            changed[name] = _markdown(after)
    return {"sections": changed}


_STAGES: dict[str, Callable[[Brief], dict[str, object]]] = {
    "aggregate": aggregate,
    "budget": _budget,
    "rewrite": _rewrite,
    "tidy": _tidy,
    "slow_update": _slow_update,
    "meta_skill": _meta_skill,
    "one_shot": _one_shot,
}


def _reflect_on_failures(
    brief: Brief, further: Sequence[Case] = (), reflect: Reflect = reflect
) -> list[Mapping[str, object]]:
    """Return the edits of a reflection on the wrong answers and the further cases."""
    wrong = [case for case in brief.cases if case.gold is None or case.answer != case.gold]
    request = {"kind": "failures", "edits": str(_MOST_EDITS)}
    edits = reflect(replace(brief, cases=(*wrong, *further), request=request))["edits"]
    return list(edits) if isinstance(edits, list) else []


def _requested_sections(brief: Brief) -> list[tuple[str, list[SkillRule]]]:
    names = brief.request.get("sections", "").split()
    return [(name, [rule for rule in brief.rules if rule.section == name]) for name in names]


def _section(
    name: str,
    rules: Sequence[SkillRule],
    old: Sequence[SkillRule],
    cases: Mapping[str, Sequence[str]] | None = None,
) -> dict[str, object]:
    """Return a section of a reply: unchanged rules by their ids, others in full, with their cases if any are given."""
    old_texts = {rule.id: rule.text for rule in old}
    written: list[dict[str, object]] = []
    for rule in rules:
        kept: dict[str, object] = {"rule": rule.id} if rule.id else {}
        new: dict[str, object] = {"text": rule.text, "topic": rule.topic, "rationale": rule.why}
        new |= {"cases": list(cases.get(rule.text, ()))} if cases is not None else {}
        written.append(kept if rule.id and old_texts.get(rule.id) == rule.text else {**kept, **new})
    return {"section": name, "rules": written}


def _markdown(rules: Sequence[SkillRule]) -> str:
    """Return rules as markdown, those without a topic first, then topic by topic."""
    blocks = []
    for topic, group in groupby(_by_topic(rules), key=lambda rule: rule.topic):
        items = [f"- {rule.text}" for rule in group]
        blocks.append("\n".join([f"### {topic}", "", *items] if topic else items))
    return "\n\n".join(blocks)


def _apply_all(rules: Sequence[SkillRule], edits: Sequence[Mapping[str, object]], section: str) -> list[SkillRule]:
    return reduce(lambda after, edit: _apply(after, section, edit), edits, list(rules))


def _apply(rules: Sequence[SkillRule], section: str, edit: Mapping[str, object]) -> list[SkillRule]:
    """Apply an edit to a section; one that names no rule of it changes nothing."""
    op, text, why = edit.get("op"), str(edit.get("text", "")), str(edit.get("rationale", ""))
    rule_id, after = str(edit.get("rule", "")), str(edit.get("after", ""))
    if op == "add" and edit.get("section") == section and all(rule.text != text for rule in rules):
        return _insert(rules, SkillRule("", section, str(edit.get("topic") or ""), text, why), after)
    own = next((rule for rule in rules if rule.id == rule_id and rule_id), None)
    if own is None or op == "add":
        return list(rules)
    if op == "replace":
        return [replace(own, text=text, why=why or own.why) if rule is own else rule for rule in rules]
    rest = [rule for rule in rules if rule is not own]
    return _insert(rest, own, after) if op == "move" else rest


def _insert(rules: Sequence[SkillRule], new: SkillRule, after: str) -> list[SkillRule]:
    if after == "start":
        return [new, *rules]
    at = next((i for i, rule in enumerate(rules, 1) if rule.id == after and after), len(rules))
    return [*rules[:at], new, *rules[at:]]


def _by_topic(rules: Sequence[SkillRule]) -> list[SkillRule]:
    """Group rules by topic, those without a topic first, as a section orders them."""
    topics = dict.fromkeys(("", *(rule.topic for rule in rules)))
    return [rule for topic in topics for rule in rules if rule.topic == topic]


def _count_tokens(rules: Sequence[SkillRule]) -> int:
    topics = {rule.topic for rule in rules if rule.topic}
    return sum(count_tokens(f"- {rule.text}") for rule in rules) + sum(count_tokens(f"### {t}") for t in topics)


def _merge_sign_rules(brief: Brief, rules: Sequence[SkillRule]) -> list[SkillRule]:
    """Merge lists of signs of one field and answer into one rule, at the place of the first."""
    merged: list[SkillRule] = []
    for rule in rules:
        for i, other in enumerate(merged):
            both = _merge(brief, other, rule)
            if both is not None:
                merged[i] = both
                break
        else:
            merged.append(rule)
    return merged


def _merge(brief: Brief, first: SkillRule, second: SkillRule) -> SkillRule | None:
    one = read_sign_rule(brief, first.text)
    other = read_sign_rule(brief, second.text)
    if first.topic != second.topic or one is None or other is None or one[0] != other[0] or not one[1] or not other[1]:
        return None
    (field, answer), signs = one
    every = list(dict.fromkeys((*signs, *other[1])))
    if len(every) > MOST_SIGNS:
        return None
    counts = dict.fromkeys(every, SignCount(1, 1)) | read_evidence(first.why)
    for sign, count in read_evidence(second.why).items():
        counts[sign] = max(counts.get(sign, SignCount()), count, key=lambda each: each.total)
    text = rule_text(field, ordered_signs(every, counts), answer)
    return SkillRule(first.id or second.id, first.section, first.topic, text, evidence_text(counts))


_SECTION = "instruction"
_DATUM = re.compile(r"Example\((\{.*?\})\) \(input_keys=\{(.*?)\}\)", re.DOTALL)
_RULE = re.compile(r"\s*(?:^|(?<=\.)|\n)\s*-\s+(?=[A-Z])")
_FIELD = re.compile(r"^(?:input|output) \S+: .*$", re.MULTILINE)
# Of 256: each proposal for MIPROv2 contains about three of four rules.
_KEPT = 192


def answer_peer(messages: Messages, sample: object = 0) -> str | None:
    """Return the reply to a prompt of DSPy's optimizers; None for any other prompt."""
    form = read_form("\n\n".join(texts(messages, "system")))
    for inputs, output, write in _PEER_PROMPTS:
        if inputs <= set(form.inputs) and [field.name for field in form.outputs] == [output]:
            users = texts(messages, "user")
            return write_answer(form, {output: write(read_inputs(form, users[-1] if users else ""), sample) or "none"})
    return None


def _improve_instruction(given: Mapping[str, str], sample: object) -> str:
    """GEPA: the instruction with the edits that the feedback calls for."""
    lines = _lines(given["current_instruction"])
    brief = _brief(_FIELD.findall(given.get("additional_instructions", "")), lines)
    cases = tuple(_cases(given["examples_with_feedback"], brief.labels))
    found = replace(brief, cases=cases, inputs=brief.inputs or _input_names(cases))
    return _markdown(_apply_all(lines, _reflect_on_failures(found), _SECTION))


def _observe_data(given: Mapping[str, str], sample: object) -> str:
    """MIPROv2: rules that set the given examples' right answers apart."""
    read = (_datum(found[1], found[2], f"d{i}") for i, found in enumerate(_DATUM.finditer(given["examples"])))
    cases = [case for case in read if case is not None]
    labels = sorted({case.gold for case in cases if case.gold is not None})
    brief = replace(_brief((), ()), cases=tuple(cases), labels=tuple(labels), inputs=_input_names(cases))
    return _markdown(_apply_all((), _reflect_on_failures(brief), _SECTION))


def _propose_instruction(given: Mapping[str, str], sample: object) -> str:
    """MIPROv2: the instruction, and the rules of the description that this sample draws."""
    rules = _rules(given.get("dataset_description", ""))
    drawn = [rule for rule in rules if hashlib.sha256(f"{sample}\0{rule}".encode()).digest()[0] < _KEPT]
    kept = [SkillRule("", _SECTION, "", rule) for rule in drawn]
    return _markdown((*_lines(given["basic_instruction"]), *kept))


_PEER_PROMPTS: tuple[tuple[set[str], str, Callable[[Mapping[str, str], object], str]], ...] = (
    ({"current_instruction", "examples_with_feedback"}, "new_instruction", _improve_instruction),
    ({"examples"}, "observations", _observe_data),
    # MIPROv2: the rules among its observations, each once.
    ({"observations"}, "summary", lambda given, _: "\n".join(f"- {rule}" for rule in _rules(given["observations"]))),
    ({"basic_instruction", "task_demos"}, "proposed_instruction", _propose_instruction),
)


def _lines(text: str) -> tuple[SkillRule, ...]:
    """Return the rules of an instruction; a text in parentheses means that it is empty."""
    if text.startswith("(") and text.endswith(")"):
        return ()
    found: list[SkillRule] = []
    topic = ""
    for line in text.splitlines():
        plain = line.strip()
        if plain.startswith("#"):
            topic = plain.lstrip("#").strip()
        elif plain:
            found.append(SkillRule(f"g{len(found)}", _SECTION, topic, re.sub(r"^[-*+]\s+", "", plain)))
    return tuple(found)


def _brief(fields: Sequence[str], lines: Sequence[SkillRule]) -> Brief:
    """Read an instruction as skillc's own prompt would present it."""
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
    cases = []
    for i, row in enumerate(parse_json(text, []), 1):
        answers, feedback = row.get("Generated Outputs"), str(row.get("Feedback", ""))
        outputs = tuple(answers) if isinstance(answers, dict) else ()
        answer = find_answer(json.dumps(answers) if outputs else str(answers), labels, outputs) or ""
        found = EXPECTED.search(feedback)
        gold = find_answer(found[1], labels, outputs) if found else None
        gold = answer if gold is None and "score is 1," in feedback else gold
        inputs = {name: str(value) for name, value in dict(row.get("Inputs") or {}).items()}
        cases.append(Case(f"t{i}", "", inputs, answer, gold))
    return cases


def _datum(values: str, keys: str, tag: str) -> Case | None:
    """Read an example as DSPy prints it; its answer is the first value that is not an input."""
    try:
        row, inputs = ast.literal_eval(values), ast.literal_eval(f"[{keys}]")
    except (ValueError, SyntaxError):
        return None
    gold = next((str(value) for name, value in row.items() if name not in inputs), None)
    return Case(tag, "", {name: str(row[name]) for name in inputs if name in row}, "", gold)


def _rules(text: str) -> list[str]:
    return list(dict.fromkeys(rule.strip() for rule in _RULE.split(text) if rule.strip().endswith(".")))


def _input_names(cases: Iterable[Case]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for case in cases for name in case.inputs))

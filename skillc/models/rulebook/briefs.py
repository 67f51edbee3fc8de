"""Read an optimizer's prompt as `skillc/optimize/propose/prompts` write it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from skillc.dataclass import dataclass
from skillc.json_values import parse_json
from skillc.models.rulebook.agent import TRAJECTORY
from skillc.models.rulebook.sentences import DecisionRule, normal, read_rules, reads_majority

_ESCAPED = re.compile(r"&((?:amp;)*)lt;")
_RULE = re.compile(r"^\s*(?:[-*+]\s+)?\[([\w-]+)\]\s+(.*)$")
_RULE_ID = re.compile(r"^\s*\[[\w-]+\]\s+")
_WHY = re.compile(r"^\s+why:\s*(.*)$")
_SUPPORT = re.compile(r"^\s+support:\s*(.*)$")
_HEADING = re.compile(r"^## (\S+) \((frozen|trainable|slow)\b")
# A script is code, which no rule of the rulebook is about.
_SCRIPT = re.compile(
    r"^## (\S+) \(trainable, [^\n]*, in scripts/[^\n]*(?<!\.md)\)\n.*?(?=^## \S+ \((?:frozen|trainable|slow)\b|\Z)",
    re.DOTALL | re.MULTILINE,
)
_TOPIC = re.compile(r"^### (.+)$")
_FIELD = re.compile(r"^(input|output) (\S+): (.*)$", re.MULTILINE)
_LABEL = re.compile(r'"(?:[^"\\]|\\.)*"')
_LABELS = re.compile(rf"{_LABEL.pattern}(?: \| {_LABEL.pattern})*")
# What a tool returned, in the steps of a case; an agent reads it in the input of that name.
_RESULT = re.compile(r"^\[result\] (.*)$", re.MULTILINE)
_ATTRIBUTE = re.compile(r'(\w+)="([^"]*)"')
EXPECTED = re.compile(
    r"(?:expected|should (?:be|have been)|right answer(?: is| was)?|gold)\s*:?\s*[`\"'“]([^`\"'”]+)[`\"'”]", re.I
)


@dataclass(frozen=True, slots=True)
class SkillRule:
    """A rule of the skill; `id` is empty for a new one, and `read` None if rulebook does not understand it."""

    id: str
    section: str
    topic: str
    text: str
    why: str = ""
    read: DecisionRule | None = None
    support: str = ""


@dataclass(frozen=True, slots=True)
class Case:
    """One trajectory or pair: inputs by name, the answer, the right answer if it is known, and what the metrics said.

    `answer_text` and `gold_text` are as in the prompt; with several outputs, or JSON, `answer` and `gold` are a part.
    """

    tag: str
    kind: str
    inputs: Mapping[str, str]
    answer: str
    gold: str | None
    answer_text: str = ""
    gold_text: str | None = None
    feedback: str = ""

    def normal_inputs(self) -> dict[str, str]:
        """Return the inputs as normal texts."""
        return {name: normal(value) for name, value in self.inputs.items()}


@dataclass(frozen=True, slots=True)
class Brief:
    """One optimizer prompt.

    Attributes:
        outputs: the output fields, each with its type.
        labels: of the first output that has any; empty for free text.
        rules: of all trainable sections, in order.
        sections: names of the trainable sections.
        lines: all that rulebook understands of the skill, in reading order: a rule's id, else "", and the rule.
        majority: whether the answer with the most signs wins.
        rejected: the texts in the rejected-edit buffer.
        further: training examples beside the cases of the request.
        edits: proposed edits by patch.
        kinds: of the patches.
        request: attributes of the request.
        texts: of the slow sections, by name.
        limits: of sections, in tokens.
        memory: the meta skill of earlier epochs.
        decisions: whether each patch was accepted, with the texts of its edits.
    """

    inputs: tuple[str, ...]
    outputs: tuple[tuple[str, str], ...]
    labels: tuple[str, ...]
    rules: tuple[SkillRule, ...]
    sections: tuple[str, ...]
    lines: tuple[tuple[str, DecisionRule], ...]
    majority: bool
    rejected: tuple[str, ...]
    cases: tuple[Case, ...]
    further: tuple[Case, ...]
    edits: tuple[tuple[Mapping[str, object], ...], ...]
    kinds: tuple[str, ...]
    request: Mapping[str, str]
    texts: Mapping[str, str]
    limits: Mapping[str, int]
    memory: str
    decisions: tuple[tuple[bool, tuple[str, ...]], ...]

    @property
    def guidance(self) -> str:
        """The text of the slow section of the request."""
        text = self.texts.get(self.request.get("section", ""), "").strip()
        return "" if text == "(empty)" else text

    @property
    def is_structured(self) -> bool:
        """Whether an answer has several parts, so that a sentence must name its part."""
        return len(self.outputs) > 1 or any(kind == "json" for _, kind in self.outputs)

    @property
    def budget(self) -> int:
        """The maximum number of edits in the reply."""
        value = self.request.get("edits", "")
        return int(value) if value.isdigit() else 4


def plain(text: str) -> str:
    """Undo the escaping of data in a prompt."""
    return _ESCAPED.sub(lambda m: f"&{m[1][4:]}lt;" if m[1] else "<", text)


def read_brief(prompt: str) -> Brief:
    """Read a prompt; missing parts are empty."""
    task = _inside(prompt, "task")
    fields = [(m[1], m[2], m[3]) for m in _FIELD.finditer(task)]
    inputs = tuple(name for kind, name, _ in fields if kind == "input")
    if re.search(r"^\[call\] ", prompt, re.MULTILINE):
        inputs += (TRAJECTORY,)
    outputs = tuple(name for kind, name, _ in fields if kind == "output")
    labels = next((each for kind, _, text in fields if kind == "output" and (each := _labels(text))), ())
    types = tuple((name, _type(text)) for kind, name, text in fields if kind == "output")
    skill = plain(_inside(prompt, "skill"))
    scripts = {found[1] for found in _SCRIPT.finditer(skill)}
    skill = _SCRIPT.sub("", skill)
    rules, sections, lines, texts = _read_skill(skill, inputs)
    found = re.search(r"<request([^>]*)>", prompt)
    further = _inside(prompt, "cases") if '<request stage="draft"' in prompt else ""
    # Right cases beside failures, and the further cases of a draft, are not cases of the request.
    about = re.sub(r'<trajectories kind="right">.*?</trajectories>', "", prompt, count=1, flags=re.DOTALL)
    about = about.replace(further, "") if further else about
    rows = [dict(_ATTRIBUTE.findall(m[1])) for m in re.finditer(r"<section ([^>]*)/>", prompt)]
    trainable = [row["name"] for row in rows if row.get("mode", "trainable") == "trainable" and "name" in row]
    trainable = [name for name in trainable if name not in scripts]
    request = dict(_ATTRIBUTE.findall(found[1])) if found else {}
    if scripts and "sections" in request:
        request["sections"] = " ".join(name for name in request["sections"].split() if name not in scripts)
    patches = elements(_inside(prompt, "patches"), "patch") or [({}, _inside(prompt, "edits"))]
    return Brief(
        inputs=inputs,
        outputs=types,
        labels=labels,
        rules=tuple(rules),
        sections=tuple(sections or trainable),
        lines=tuple(lines),
        majority=any(reads_majority(_RULE_ID.sub("", line)) for line in skill.splitlines() if not _WHY.match(line)),
        rejected=tuple(plain(line[2:]) for line in _inside(prompt, "rejected").splitlines() if line.startswith("- ")),
        cases=tuple(_cases(about, labels, outputs)),
        further=tuple(_cases(further, labels, outputs)),
        edits=tuple(tuple(_edits(body)) for _, body in patches),
        kinds=tuple(row.get("kind", "failures") for row, _ in patches),
        request=request,
        texts=texts,
        limits={row["name"]: int(row["limit"]) for row in rows if row.get("limit", "").isdigit()},
        memory=plain(_inside(prompt, "memory")),
        decisions=tuple(
            (row.get("accepted") == "yes", tuple(plain(text) for _, text in elements(body, "edit")))
            for row, body in elements(prompt, "decision")
        ),
    )


def _inside(text: str, tag: str) -> str:
    """Return the text within the first tag of a name, without the newlines next to the tag."""
    found = re.search(rf"<{tag}(?: [^>]*)?>\n?(.*?)\n?</{tag}>", text, re.DOTALL)
    return found[1] if found else ""


def elements(text: str, tag: str) -> list[tuple[dict[str, str], str]]:
    """Return attributes and content of each element of a name."""
    found = re.finditer(rf"<{tag}( [^>]*)?>(.*?)</{tag}>", text, re.DOTALL)
    return [(dict(_ATTRIBUTE.findall(m[1] or "")), m[2]) for m in found]


def _type(text: str) -> str:
    """Return a type without the field's description: `labels`, `text`, `number`, `list of text`."""
    kind = "labels" if text.startswith('"') else text.partition(" (")[0].removesuffix(" | none").strip()
    return plain(kind)


def _labels(text: str) -> tuple[str, ...]:
    """Return the labels of a type such as `"billing" | "shipping"`."""
    found = _LABELS.match(text)
    return tuple(map(json.loads, _LABEL.findall(found[0]))) if found else ()


def _read_skill(
    text: str, fields: tuple[str, ...]
) -> tuple[list[SkillRule], list[str], list[tuple[str, DecisionRule]], dict[str, str]]:
    """Return rules, sections, lines and texts, as `Brief` names them."""
    rules: list[SkillRule] = []
    sections: list[str] = []
    lines: list[tuple[str, DecisionRule]] = []
    texts: dict[str, str] = {}
    section, mode, topic = "", "", ""
    for line in text.splitlines():
        heading, under, rule, why, support = (p.match(line) for p in (_HEADING, _TOPIC, _RULE, _WHY, _SUPPORT))
        if heading:
            section, mode, topic = heading[1], heading[2], ""
            sections += [section] if mode == "trainable" else []
            continue
        if mode == "slow":
            texts[section] = f"{texts.get(section, '')}\n{line}"
        if under:
            topic = under[1].strip()
        elif why and rules and mode == "trainable":
            rules[-1] = replace(rules[-1], why=why[1])
        elif support and rules and mode == "trainable":
            rules[-1] = replace(rules[-1], support=support[1])
        elif rule and mode == "trainable":
            read = read_rules(rule[2], fields)
            rules.append(SkillRule(rule[1], section, topic, rule[2], "", read[0] if len(read) == 1 else None))
            lines += [(rule[1], each) for each in read]
        else:
            lines += [("", each) for each in read_rules(line, fields)]
    return rules, sections, lines, texts


def _cases(prompt: str, labels: Sequence[str], outputs: Sequence[str]) -> list[Case]:
    cases = []
    for tag, answered in (("trajectory", "answer"), ("case", "after")):
        for attributes, body in elements(prompt, tag):
            inputs = {row["name"]: plain(value) for row, value in elements(body, "input") if "name" in row}
            if seen := _RESULT.findall(plain(_inside(body, "steps"))):
                inputs[TRAJECTORY] = "\n".join(seen)
            answer_text = plain(_inside(body, answered))
            gold_text = plain(_inside(body, "gold")) if "<gold>" in body else None
            answer = find_answer(answer_text, labels, outputs) or ""
            feedback = plain(_inside(body, "feedback"))
            stated = EXPECTED.search(feedback)
            right = gold_text if gold_text is not None else stated[1] if stated else None
            gold = find_answer(right, labels, outputs) if right is not None else None
            kind = attributes.get("kind", "")
            tag = attributes.get("tag", "")
            cases.append(Case(tag, kind, inputs, answer, gold, answer_text, gold_text, feedback))
    return cases


def find_answer(text: str, labels: Sequence[str], outputs: Sequence[str]) -> str | None:
    """Find the answer in a text: a bare value, JSON or `name: value` lines; with labels, one of them or None."""
    candidates = [text.strip().strip("`\"'")]
    value = parse_json(text)
    if isinstance(value, Mapping):
        candidates += [str(value[name]) for name in outputs if name in value]
    elif isinstance(value, list):
        candidates += [str(item) for item in value]
    for name in outputs:
        candidates += re.findall(rf"^\s*{re.escape(name)}\s*[:=]\s*[`\"']?(.*?)[`\"']?\s*$", text, re.MULTILINE)
    if not labels:
        return candidates[-1] or None
    return next((candidate for candidate in candidates if candidate in labels), None)


def _edits(body: str) -> list[Mapping[str, object]]:
    edits = [parse_json(plain(text)) for _, text in elements(body, "edit")]
    return [edit if isinstance(edit, Mapping) else {} for edit in edits]

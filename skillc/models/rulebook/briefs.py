"""Reads an optimizer's prompt: the structure that `skillc/optimize/propose/prompts` write."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from skillc.models.rulebook.sentences import Rule, read_rules, reads_majority

_ESCAPED = re.compile(r"&((?:amp;)*)lt;")
_RULE = re.compile(r"^\s*(?:[-*+]\s+)?\[([\w-]+)\]\s+(.*)$")
_RULE_ID = re.compile(r"^\s*\[[\w-]+\]\s+")
_WHY = re.compile(r"^\s+why:\s*(.*)$")
_SUPPORT = re.compile(r"^\s+support:\s*(.*)$")
_HEADING = re.compile(r"^## (\S+) \((frozen|trainable|slow)\b")
_TOPIC = re.compile(r"^### (.+)$")
_FIELD = re.compile(r"^(input|output) (\S+): (.*)$", re.MULTILINE)
_LABEL = re.compile(r'"(?:[^"\\]|\\.)*"')
_ATTRIBUTE = re.compile(r'(\w+)="([^"]*)"')
EXPECTED = re.compile(
    r"(?:expected|should (?:be|have been)|right answer(?: is| was)?|gold)\s*:?\s*[`\"'“]([^`\"'”]+)[`\"'”]", re.I
)


@dataclass(frozen=True, slots=True)
class SkillRule:
    """A rule of the skill as the optimizer sees it.

    Attributes:
        read: what rulebook understands of it, None for nothing.
        support: its evidence, where the prompt has it.
    """

    id: str
    section: str
    topic: str
    text: str
    why: str
    read: Rule | None
    support: str = ""


@dataclass(frozen=True, slots=True)
class Case:
    """One trajectory or pair: inputs by name, what was answered, and the right answer where it can be known.

    `said` and `right` are both as the prompt shows them: with several outputs, or JSON, `answer` and `gold` are a part.
    """

    tag: str
    kind: str
    inputs: Mapping[str, str]
    answer: str
    gold: str | None
    said: str = ""
    right: str | None = None


@dataclass(frozen=True, slots=True)
class Brief:
    """One optimizer prompt.

    Attributes:
        inputs: names of the input fields.
        outputs: the output fields, each with its type.
        labels: of the first output that has any; empty for free text.
        rules: of all trainable sections, in order.
        sections: names of the trainable sections.
        lines: what rulebook understands of the whole skill, in reading order: a rule's id ("" elsewhere) and the rule.
        majority: whether the skill says that the answer with the most signs wins.
        rejected: the texts in the rejected-edit buffer.
        cases: trajectories or pairs that the request is about.
        beside: right cases shown beside failures.
        further: training examples with their right answers.
        edits: proposed edits by patch, as JSON objects.
        kinds: of the patches.
        request: attributes of the request.
        texts: of the slow sections, by name.
        limits: of the sections that have one, in tokens, by name.
        memory: its own, of earlier epochs.
        decisions: accepted or not, with the texts of the edits.
    """

    inputs: tuple[str, ...]
    outputs: tuple[tuple[str, str], ...]
    labels: tuple[str, ...]
    rules: tuple[SkillRule, ...]
    sections: tuple[str, ...]
    lines: tuple[tuple[str, Rule], ...]
    majority: bool
    rejected: tuple[str, ...]
    cases: tuple[Case, ...]
    beside: tuple[Case, ...]
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
        """The present text of the slow section that the request is about."""
        return self.texts.get(self.request.get("section", ""), "")

    @property
    def is_structured(self) -> bool:
        """Whether an answer has several parts, so that a sentence must name the one it is about."""
        return len(self.outputs) > 1 or any(kind == "json" for _, kind in self.outputs)

    @property
    def budget(self) -> int:
        """The edits that the reply may hold."""
        value = self.request.get("edits", "")
        return int(value) if value.isdigit() else 4


def plain(text: str) -> str:
    """Data as it was before it was fenced."""
    return _ESCAPED.sub(lambda m: f"&{m[1][4:]}lt;" if m[1] else "<", text)


def read_brief(prompt: str) -> Brief:
    """Read a prompt; what is missing is empty."""
    task = _inside(prompt, "task")
    fields = [(m[1], m[2], m[3]) for m in _FIELD.finditer(task)]
    inputs = tuple(name for kind, name, _ in fields if kind == "input")
    labelled = [labels for kind, _, text in fields if kind == "output" and (labels := _labels(text))]
    outputs = tuple(name for kind, name, _ in fields if kind == "output")
    labels = labelled[0] if labelled else ()
    types = tuple((name, _type(text)) for kind, name, text in fields if kind == "output")
    skill = plain(_inside(prompt, "skill"))
    rules, sections, lines = _skill(skill, inputs)
    found = re.search(r"<request([^>]*)>", prompt)
    about, beside, further = _apart(prompt)
    return Brief(
        inputs=inputs,
        outputs=types,
        labels=labels,
        rules=rules,
        sections=sections or _section_names(prompt),
        lines=lines,
        majority=any(reads_majority(_RULE_ID.sub("", line)) for line in skill.splitlines() if not _WHY.match(line)),
        rejected=tuple(plain(line[2:]) for line in _inside(prompt, "rejected").splitlines() if line.startswith("- ")),
        cases=tuple(_cases(about, labels, outputs)),
        beside=tuple(_cases(beside, labels, outputs)),
        further=tuple(_cases(further, labels, outputs)),
        edits=tuple(_patches(prompt)),
        kinds=tuple(row.get("kind", "failures") for row, _ in _each(_inside(prompt, "patches"), "patch"))
        or ("failures",),
        request=dict(_ATTRIBUTE.findall(found[1])) if found else {},
        texts=_texts(skill),
        limits=_limits(prompt),
        memory=plain(_inside(prompt, "memory")),
        decisions=tuple(_decisions(prompt)),
    )


def _apart(prompt: str) -> tuple[str, str, str]:
    """The prompt without the right cases beside its failures and without a draft's further cases; then these two."""
    found = re.search(r'<trajectories kind="right">.*?</trajectories>', prompt, re.DOTALL)
    beside = found[0] if found else ""
    further = _inside(prompt, "cases") if '<request stage="draft"' in prompt else ""
    about = prompt
    for part in (beside, further):
        about = about.replace(part, "") if part else about
    return about, beside, further


def _inside(text: str, tag: str) -> str:
    """The text between the first tag of a name and its end, without the newlines next to them."""
    found = re.search(rf"<{tag}(?: [^>]*)?>\n?(.*?)\n?</{tag}>", text, re.DOTALL)
    return found[1] if found else ""


def _each(text: str, tag: str) -> list[tuple[dict[str, str], str]]:
    found = re.finditer(rf"<{tag}( [^>]*)?>(.*?)</{tag}>", text, re.DOTALL)
    return [(dict(_ATTRIBUTE.findall(m[1] or "")), m[2]) for m in found]


def attributes_of(text: str) -> dict[str, str]:
    """The attributes of a tag."""
    return dict(_ATTRIBUTE.findall(text))


def _section_names(prompt: str) -> tuple[str, ...]:
    rows = _section_rows(prompt)
    return tuple(row["name"] for row in rows if row.get("mode", "trainable") == "trainable" and "name" in row)


def _section_rows(prompt: str) -> list[dict[str, str]]:
    return [dict(_ATTRIBUTE.findall(m[1])) for m in re.finditer(r"<section ([^>]*)/>", prompt)]


def _limits(prompt: str) -> dict[str, int]:
    return {row["name"]: int(row["limit"]) for row in _section_rows(prompt) if row.get("limit", "").isdigit()}


def _texts(skill: str) -> dict[str, str]:
    """The texts of the slow sections."""
    found: dict[str, list[str]] = {}
    open_: list[str] = []
    for line in skill.splitlines():
        heading = _HEADING.match(line)
        if heading:
            open_ = found.setdefault(heading[1], []) if heading[2] == "slow" else []
        else:
            open_.append(line)
    texts = {name: "\n".join(lines).strip() for name, lines in found.items()}
    return {name: "" if text == "(empty)" else text for name, text in texts.items()}


def _type(text: str) -> str:
    """A type without what its field is about: `labels`, `text`, `number`, `list of text`."""
    kind = "labels" if text.startswith('"') else text.partition(" (")[0].removesuffix(" | none").strip()
    return plain(kind)


def _labels(text: str) -> tuple[str, ...]:
    """The labels of a type such as `"billing" | "shipping"`."""
    if not text.startswith('"'):
        return ()
    labels: list[str] = []
    at = 0
    while found := _LABEL.match(text, at):
        labels.append(json.loads(found[0]))
        at = found.end()
        if not text.startswith(" | ", at):
            break
        at += 3
    return tuple(labels)


def _skill(
    text: str, fields: tuple[str, ...]
) -> tuple[tuple[SkillRule, ...], tuple[str, ...], tuple[tuple[str, Rule], ...]]:
    rules: list[SkillRule] = []
    sections: list[str] = []
    lines: list[tuple[str, Rule]] = []
    section, mode, topic = "", "", ""
    for line in text.splitlines():
        heading, under, rule, why = (p.match(line) for p in (_HEADING, _TOPIC, _RULE, _WHY))
        if heading:
            section, mode, topic = heading[1], heading[2], ""
            sections += [section] if mode == "trainable" else []
        elif under:
            topic = under[1].strip()
        elif why and rules and mode == "trainable":
            rules[-1] = replace(rules[-1], why=why[1])
        elif rules and mode == "trainable" and (support := _SUPPORT.match(line)):
            rules[-1] = replace(rules[-1], support=support[1])
        elif rule and mode == "trainable":
            read = read_rules(rule[2], fields)
            rules.append(SkillRule(rule[1], section, topic, rule[2], "", read[0] if len(read) == 1 else None))
            lines += [(rule[1], each) for each in read]
        else:
            lines += [("", each) for each in read_rules(line, fields)]
    return tuple(rules), tuple(sections), tuple(lines)


def _cases(prompt: str, labels: Sequence[str], outputs: Sequence[str]) -> list[Case]:
    cases = []
    for tag, answered in (("trajectory", "answer"), ("case", "after")):
        for attributes, body in _each(prompt, tag):
            inputs = {row["name"]: plain(value) for row, value in _each(body, "input") if "name" in row}
            said = plain(_inside(body, answered))
            right = plain(_inside(body, "gold")) if "<gold>" in body else None
            answer = value_of(said, labels, outputs) or ""
            gold = _gold(body, labels, outputs)
            kind = attributes.get("kind", "")
            cases.append(Case(attributes.get("tag", ""), kind, inputs, answer, gold, said, right))
    return cases


def _gold(body: str, labels: Sequence[str], outputs: Sequence[str]) -> str | None:
    if "<gold>" in body:
        return value_of(plain(_inside(body, "gold")), labels, outputs)
    found = EXPECTED.search(plain(_inside(body, "feedback")))
    return value_of(found[1], labels, outputs) if found else None


def value_of(text: str, labels: Sequence[str], outputs: Sequence[str]) -> str | None:
    """The answer in a text: the bare value, JSON, or `name: value` lines; with labels, one of them or None."""
    candidates = [text.strip().strip("`\"'")]
    try:
        value = json.loads(text)
    except json.JSONDecodeError:
        value = None
    if isinstance(value, Mapping):
        candidates += [str(value[name]) for name in outputs if name in value]
    elif isinstance(value, list):
        candidates += [str(item) for item in value]
    for name in outputs:
        candidates += re.findall(rf"^\s*{re.escape(name)}\s*[:=]\s*[`\"']?(.*?)[`\"']?\s*$", text, re.MULTILINE)
    if not labels:
        return candidates[-1] or None
    return next((candidate for candidate in candidates if candidate in labels), None)


def _patches(prompt: str) -> list[tuple[Mapping[str, object], ...]]:
    """Edits of `<patches>`, patch by patch, else those of `<edits>` as one patch."""
    bodies = [body for _, body in _each(_inside(prompt, "patches"), "patch")] or [_inside(prompt, "edits")]
    return [tuple(_edits(body)) for body in bodies]


def _edits(body: str) -> list[Mapping[str, object]]:
    edits = []
    for _, text in _each(body, "edit"):
        try:
            value = json.loads(plain(text))
        except json.JSONDecodeError:
            value = {}
        edits.append(value if isinstance(value, Mapping) else {})
    return edits


def _decisions(prompt: str) -> list[tuple[bool, tuple[str, ...]]]:
    return [
        (attributes.get("accepted") == "yes", tuple(plain(text) for _, text in _each(body, "edit")))
        for attributes, body in _each(prompt, "decision")
    ]

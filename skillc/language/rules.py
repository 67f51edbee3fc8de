"""Rules over declarations: what each may combine, what a program must have, what waits for a later version."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice

from skillc.diagnostics.diagnostic import LATER_VERSION, Label, Reporter
from skillc.diagnostics.suggest import spelling_hint
from skillc.fences import describe_unclosed
from skillc.gates.functions import NAMES
from skillc.language.arguments import GROUPS
from skillc.language.checked import Entity, Invocation, Setting, Shares, Unsupported, Word
from skillc.language.loop import CAPS
from skillc.language.modules import Module
from skillc.language.statements import KindDeclaration
from skillc.syntax.source import Span

ABOUT_CHARACTERS = 1024
NAME_CHARACTERS = 64


def check_names(report: Reporter, module: Module) -> None:
    """No two declarations of one namespace are alike, and none takes the name of a function of the language."""
    spaces: dict[tuple[str, str], KindDeclaration] = {}
    goal: KindDeclaration | None = None
    for decl in module.declarations:
        if decl.kind.word == "goal":
            goal = _one_goal(report, module, goal, decl)
        for space, name in _places(decl):
            first = spaces.setdefault((space, name), decl)
            if first is not decl:
                label = Label(module.source, first.span, "the first is here")
                hint = "keep one of them" if decl.name is None or decl.bare else "give one of them another name"
                report.add(
                    "SK203", module.source, decl.span, f"`{name}` is declared twice", secondary=(label,), hint=hint
                )
        if decl.node.parameters is not None and decl.name is not None and decl.name.text in NAMES:
            message = f"`{decl.name.text}` is a function of the language"
            report.add("SK220", module.source, decl.name.span, message, hint="give it another name")


def _one_goal(
    report: Reporter, module: Module, first: KindDeclaration | None, decl: KindDeclaration
) -> KindDeclaration:
    if first is None:
        return decl
    label = Label(module.source, first.span, "the first is here")
    hint = "make one a metric, and join them: `goal score = 0.8 * a + 0.2 * b`"
    report.add("SK222", module.source, decl.span, "there are two goals", secondary=(label,), hint=hint)
    return first


def _places(decl: KindDeclaration) -> list[tuple[str, str]]:
    """The namespaces that a declaration takes a name in."""
    kind = decl.kind.word
    if decl.name is None:
        return [(kind, kind)] if decl.kind.once else []
    name = decl.name.text
    found = [("metric" if kind == "goal" else kind, name)]
    if decl.node.parameters is not None:
        found.append(("function", name))
    return found


def check_fields(report: Reporter, entities: Iterable[Entity], module: Module) -> None:
    """Fields of task and data, and metrics, have names of their own: all are values of one metric."""
    seen: dict[str, Entity] = {}
    for entity in entities:
        for child in entity.children if entity.kind in ("task", "data") else ():
            assert child.name is not None
            first = seen.setdefault(child.name, child)
            if first is not child:
                label = Label(first.source, first.span, f"an {first.kind}" if first.kind != "field" else "a field")
                message = f"`{child.name}` is declared twice"
                hint = "give it another name"
                if child.kind == "field":
                    hint += ', and its column: `{ column = "..." }`'
                report.add("SK203", child.source, child.span, message, secondary=(label,), hint=hint)
    for kind in ("metric", "goal"):
        for name, decl in module.named(kind).items():
            if name in seen and decl.node.parameters is None:
                assert decl.name is not None
                label = Label(seen[name].source, seen[name].span, "the field")
                message = f"`{name}` is a field and a metric"
                hint = "give the metric another name"
                report.add("SK203", module.source, decl.name.span, message, secondary=(label,), hint=hint)


# ---- task and skill -------------------------------------------------------------------------------


def check_whole(report: Reporter, entity: Entity, lost: frozenset[str] | set[str]) -> None:
    """Report what a declaration lacks, unless it may be what could not be read: `lost` are the words of that."""
    if entity.kind == "task":
        _check_task(report, entity, lost)
    elif entity.kind == "skill":
        _check_skill(report, entity, lost)
    elif entity.kind == "data" and lost.isdisjoint(_FILES):
        _check_files(report, entity)
    elif entity.kind == "budget" and entity.name is None and lost.isdisjoint(CAPS):
        _check_budget(report, entity)


def _check_task(report: Reporter, task: Entity, lost: frozenset[str] | set[str]) -> None:
    """A task has something to read and something to answer."""
    for kind in ("input", "output"):
        if kind not in lost and not any(child.kind == kind for child in task.children):
            hint = f"add `{kind} name: text`"
            report.add("SK405", task.source, task.span, f"the task needs an {kind}", hint=hint)


def _check_skill(report: Reporter, skill: Entity, lost: frozenset[str] | set[str]) -> None:
    """Check that a skill has a description and something to train."""
    if "about" not in skill.settings and "about" not in lost:
        hint = 'add `about = "what it is for, and when to use it"`'
        report.add("SK407", skill.source, skill.span, f"`{skill.name}` does not say what it is about", hint=hint)
    trained = any("trainable" in child.words or "slow" in child.words for child in skill.children)
    if "section" not in lost and not trained:
        hint = "add `trainable section rules`"
        report.add("SK408", skill.source, skill.span, f"nothing of `{skill.name}` may be trained", hint=hint)


def check_skill(report: Reporter, skill: Entity) -> None:
    """Names that an agent can load, sections that differ, and texts that keep their limits."""
    _check_about(report, skill)
    name = skill.name or ""
    if not (name.isascii() and name.replace("_", "")):
        hint = "use the letters a to z, digits and `_`"
        report.add("SK563", skill.source, skill.span, f"an agent can't load a skill named `{skill.name}`", hint=hint)
    if skill.name is not None and len(skill.name) > NAME_CHARACTERS:
        message = f"the name has {len(skill.name)} characters, and an agent loads at most {NAME_CHARACTERS}"
        report.add("SK218", skill.source, skill.span, message, hint="choose a shorter one")
    seen: dict[str, Entity] = {}
    for child in skill.children:
        if child.kind != "section" or child.name is None:
            continue
        first = seen.setdefault(child.name, child)
        if first is not child:
            label = Label(first.source, first.span, "the first is here")
            message = f"two sections are called `{child.name}`"
            report.add("SK203", child.source, child.span, message, secondary=(label,), hint="rename one of them")
        check_section(report, child)


def _check_about(report: Reporter, skill: Entity) -> None:
    about = skill.settings.get("about")
    if about is None:
        return
    length = len(about.value) if isinstance(about.value, str) else 0
    if length > ABOUT_CHARACTERS:
        message = f"`about` has {length} characters, and an agent reads at most {ABOUT_CHARACTERS}"
        report.add("SK407", about.source, about.span, message, hint="say what it is for and when to use it, no more")
    elif (not length or not str(about.value).strip()) and not _ends_open(report, about):
        report.add("SK407", about.source, about.span, "`about` is empty", hint="say what the skill is for")


def _ends_open(report: Reporter, setting: Setting) -> bool:
    """Whether the text of a setting has no end, which has been reported."""
    return any(setting.span.start <= start < setting.span.end for start in report.offsets("SK006", setting.source))


def _open_text(report: Reporter, declared: Entity) -> bool:
    """Whether the text of a declaration is one without an end, which has been reported."""
    starts = report.offsets("SK006", declared.source)
    return any(not declared.source.text[declared.span.end : start].strip(" =\t\r\n") for start in starts)


def check_section(report: Reporter, section: Entity) -> None:
    """A frozen section has a text, and a text keeps its own limit."""
    text = section.value if isinstance(section.value, str) else ""
    if "frozen" in section.words and not text.strip() and not _open_text(report, section):
        hint = 'give it one: `= """..."""`, or make it trainable'
        report.add("SK406", section.source, section.span, f"the frozen section `{section.name}` has no text", hint=hint)
    problem = describe_unclosed(text)
    if problem is not None:
        in_code = "code block" in problem
        hint = (
            "close it with a line of the same fence" if in_code else "close it with `-->`, or put `<!--` in backticks"
        )
        message = f"the text of `{section.name}`{problem.removeprefix('the text')}"
        report.add("SK420", section.source, section.span, message, hint=hint)
    limit = section.settings.get("limit")
    amount = getattr(limit.value, "value", None) if limit is not None else None
    # A token has at least one character.
    if limit is None or amount is None or len(text) <= amount:
        return
    from skillc.tokens import count_tokens

    found = count_tokens(text)
    if found > amount:
        message = f"the text of `{section.name}` has {found} tokens, and its limit is {int(amount)}"
        report.add("SK411", limit.source, limit.span, message, hint="raise the limit, or shorten the text")


# ---- data and budget ------------------------------------------------------------------------------


_FILES = ("source", "train", "validation", "test")


def _check_files(report: Reporter, data: Entity) -> None:
    """There is a source that is split, or a file for each side."""
    given = _files(data)
    if not given:
        hint = 'add `source = "examples.jsonl"`'
        report.add("SK401", data.source, data.span, "the data names no file", hint=hint)
    elif "source" not in given:
        for side in ("train", "validation"):
            if side not in given:
                hint = f'add `{side} = "..."`, or give one `source` that is split'
                report.add("SK401", data.source, data.span, f"the data has no {side} file", hint=hint)


def _files(data: Entity) -> list[str]:
    return [name for name in _FILES if name in data.settings]


def check_data(report: Reporter, data: Entity, fields: Mapping[str, Entity | None]) -> None:
    """Files, split and group agree with each other and with the fields; a field that is None is broken."""
    given = _files(data)
    if "source" in given and len(given) > 1:
        other = data.settings[given[1]]
        message = f"`source` is split, so `{given[1]}` has no place beside it"
        hint = "keep `source`, or give `train`, `validation`, `test`"
        report.add("SK401", other.source, other.span, message, hint=hint)
    _check_split(report, data, given)
    _check_group(report, data, fields)


def _check_split(report: Reporter, data: Entity, given: list[str]) -> None:
    setting = data.settings.get("split")
    if setting is None or not isinstance(setting.value, Shares):
        return
    span = setting.span
    parts = [part.value for part in setting.value.parts]
    units = {part.unit for part in setting.value.parts}
    hint = "write `2 : 1 : 2`, or `80 examples : 40 examples : 280 examples`"
    if given and "source" not in given:
        report.add(
            "SK402", data.source, span, "there is no `source` to split", hint="remove `split`: each side has a file"
        )
    elif len(parts) not in (2, 3):
        report.add("SK402", data.source, span, "a split is train : validation, or train : validation : test", hint=hint)
    elif len(units) > 1:
        report.add("SK402", data.source, span, "shares and numbers of examples don't go together", hint=hint)
    elif any(part < 0 for part in parts) or 0 in parts[:2]:
        report.add("SK402", data.source, span, "train and validation need a part above 0", hint=hint)
    elif units == {"examples"} and any(part.denominator != 1 for part in parts):
        report.add("SK402", data.source, span, "there is no half example", hint="write whole numbers")


def _check_group(report: Reporter, data: Entity, fields: Mapping[str, Entity | None]) -> None:
    setting = data.settings.get("group")
    if setting is None or not isinstance(setting.value, Word):
        return
    name = setting.value.text
    place = _last(setting.source.text, setting.span, name)
    if name in fields and fields[name] is None:
        return
    found = fields.get(name)
    known = [each for each, entity in fields.items() if entity is not None and entity.kind != "output"]
    if found is None or found.kind == "output":
        what = "what the model answers, no property of an example" if found else "no field of this program"
        hint = spelling_hint(name, known) or f"declare it: `field {name}: text`"
        if found is not None:
            hint = f'declare the gold answer as a field: `field gold_{name}: text {{ column = "{name}" }}`'
        report.add("SK403", setting.source, place, f"`{name}` is {what}", hint=hint)
    elif found.type is not None and found.type.kind not in GROUPS:
        message = f"`{name}` is of type {found.type.kind}, which examples can't be grouped by"
        report.add("SK404", setting.source, place, message, hint="group by a text, a label or a number")


def _last(text: str, span: Span, word: str) -> Span:
    """Where a word ends a setting."""
    start = text.rfind(word, span.start, span.end)
    return Span(start, start + len(word)) if start >= 0 else span


def _check_budget(report: Reporter, budget: Entity) -> None:
    """A budget has a cap, so that a run has an end."""
    if not any(cap in budget.settings for cap in CAPS):
        hint = "add `epochs = 4`, or `cost = $3`"
        report.add("SK508", budget.source, budget.span, "the budget caps nothing, so a run would not end", hint=hint)


_LIBRARY = ("task", "skill", "data", "goal")
_LOST_SEARCHED = 2000
_ROLES = ("target", "optimizer")
_NEEDED = {
    "task": "add `task { input question: text; output answer: text }`",
    "skill": 'add `skill name { about = "..."; trainable section rules }`',
    "data": 'add `data { source = "examples.jsonl" }`',
    "goal": "add `goal correct = exact_match(answer)`",
    "budget": "add `budget { epochs = 4 }`",
    "gate": "add `gate better = candidate.correct > incumbent.correct`",
}


def is_library(module: Module) -> bool:
    """Whether a file only declares what others use."""
    kinds = {decl.kind.word for decl in module.declarations}
    in_force = {decl.kind.word for decl in module.declarations if decl.name is None}
    gates = any(s.kind.word == "gate" and s.node.parameters is None for s in module.declarations)
    return not kinds & {*_LIBRARY} and not in_force & {"budget", "optimize"} and not gates


def check_missing(report: Reporter, module: Module, lost: Collection[str]) -> None:
    """Report what a program lacks.

    `lost` are the words of statements that could not be read: what one of them may have been is not lacking.
    """
    place = _place(module)
    for kind, hint in _NEEDED.items():
        if _has(module, kind) or _lost(kind, lost):
            continue
        named = next(
            (s for s in module.declarations if s.kind.word == kind and s.kind.name == "optional" and s.name), None
        )
        if named is not None and named.name is not None:
            message = f"the {kind} `{named.name.text}` is only there to be reused"
            hint = f"remove its name, or add `{kind} = {named.name.text}`"
            report.add("SK206", module.source, named.span, message, hint=hint)
        else:
            read = report.take_missing_metric() if kind == "goal" else None
            secondary: tuple[Label, ...] = ()
            if read is not None:
                name, label = read
                hint = f"add `goal {name} = ...`, which the gates read"
                secondary = (replace(label, text=f"`{name}` is read here"),)
            report.add("SK206", module.source, place, f"the program has no {kind}", hint=hint, secondary=secondary)
    roles = module.named("model")
    for role in _ROLES:
        if role not in roles and not _lost(role, lost):
            hint = spelling_hint(role, roles) or f'add `model {role} = "provider/name"`'
            report.add("SK206", module.source, place, f"the program has no model for `{role}`", hint=hint)


def _lost(word: str, lost: Collection[str]) -> bool:
    return word in lost or any(spelling_hint(each, [word]) is not None for each in islice(lost, _LOST_SEARCHED))


def _has(module: Module, kind: str) -> bool:
    for decl in module.declarations:
        if decl.kind.word != kind or (decl.kind.name == "optional" and decl.name is not None):
            continue
        # A function is no gate, and what slow updates must pass says nothing of the steps.
        if kind == "gate" and (decl.node.parameters is not None or decl.suffix):
            continue
        return True
    return False


def _place(module: Module) -> Span:
    """The first line of the file that says something, where messages about the whole program point."""
    text = module.source.text
    start = len(text) - len(text.lstrip())
    if module.declarations and not text[start:].startswith("language"):
        return module.declarations[0].span
    end = text.find("\n", start)
    return Span(start, end if end >= 0 else len(text))


ROLLOUTS = {"environment": "0.5", "react": "0.5", "code": "0.5", "codex": "0.5", "command": "0.5"}
SECOND_SKILL = "0.5"
ON_DEMAND = "0.5"

_ROLLOUT_HINT = "this version compiles `predict` and `chain_of_thought`"
_LOAD_HINT = "leave it out: this version has the target read the skill for every example"
_SKILL_HINT = "move it into a program of its own; programs share models, budgets and sections by `use`"


def needs(entities: Sequence[Entity], called: Iterable[Unsupported]) -> tuple[Unsupported, ...]:
    """List everything that waits for a later version, once for each place, in the order of the file.

    Args:
        entities: the declarations of the program.
        called: the functions that its metrics and gates call and this version does not have.
    """
    found = [each for entity in entities for each in _of_entity(entity)]
    skills = [entity for entity in entities if entity.kind == "skill"]
    found += [
        Unsupported("a second skill", skill.source, skill.span, SECOND_SKILL, _SKILL_HINT) for skill in skills[1:]
    ]
    found += called
    unique = {(each.what, each.source.name, each.span): each for each in found}
    return tuple(sorted(unique.values(), key=lambda each: (each.source.name, each.span)))


def report_unsupported(report: Reporter, unsupported: Iterable[Unsupported]) -> None:
    """Report each of them as an error."""
    for each in unsupported:
        message = f"{each.what} comes with skillc {each.version}, so this version can't compile it"
        report.add(LATER_VERSION, each.source, each.span, message, hint=each.hint)


def _of_entity(entity: Entity) -> Iterator[Unsupported]:
    if entity.kind == "task":
        yield from _chosen(entity, "rollout", ROLLOUTS, _ROLLOUT_HINT)
    elif entity.kind == "skill":
        yield from _chosen(entity, "load", {"on_demand": ON_DEMAND}, _LOAD_HINT)


def _chosen(entity: Entity, name: str, versions: dict[str, str], hint: str) -> Iterator[Unsupported]:
    setting = entity.settings.get(name)
    word = _word(setting) if setting is not None else None
    if setting is not None and word is not None and word in versions:
        yield Unsupported(f"`{name} = {word}`", setting.source, setting.span, versions[word], hint)


def _word(setting: Setting) -> str | None:
    if isinstance(setting.value, Invocation):
        return setting.value.function
    return setting.value.text if isinstance(setting.value, Word) else None

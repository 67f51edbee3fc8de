"""Rules over declarations: unique names, required parts, limits of texts, and what this version can't compile."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from itertools import islice

from skillc.artifact_paths import ABOUT_CHARACTERS, NAME_CHARACTERS, is_script
from skillc.diagnostics.diagnostic import LATER_VERSION, Label, Reporter
from skillc.diagnostics.suggest import spelling_hint
from skillc.fences import describe_unclosed
from skillc.gates.functions import NAMES
from skillc.language.arguments import group_problem
from skillc.language.checked import Entity, Setting, Shares, Unsupported, Word, amount_of, is_trained, text_of
from skillc.language.kinds import DATA_FILES
from skillc.language.loop import CAPS
from skillc.language.modules import Module
from skillc.language.rollouts import ONE_TURN, SEES_IMAGES, WITHOUT_OPENING, agent_block, rollout_kind
from skillc.language.statements import KindDeclaration
from skillc.language.types import FileErrors, add_error, check_distinct
from skillc.syntax.source import Span

LEAST_CUT = 20
_CUTTABLE = frozenset({"text", "file"})


def check_names(report: Reporter, module: Module) -> None:
    """Check that names are unique in their namespaces, and that no function has the name of a builtin."""
    errors = FileErrors(report, module.source)
    spaces: dict[tuple[str, str], KindDeclaration] = {}
    goal: KindDeclaration | None = None
    for decl in module.declarations:
        if decl.kind.word == "goal":
            goal = goal or decl
            if goal is not decl:
                label = Label(module.source, goal.span, "first declared here")
                hint = "make one a metric, and combine them: `goal score = 0.8 * a + 0.2 * b`"
                errors.add("SK222", decl.span, "the program has two goals", hint, secondary=(label,))
        for space, name in _namespaces(decl):
            first = spaces.setdefault((space, name), decl)
            if first is not decl:
                label = Label(module.source, first.span, "first declared here")
                hint = "keep one of them" if decl.name is None or decl.bare else "rename one of them"
                errors.add("SK203", decl.span, f"`{name}` is declared twice", hint, secondary=(label,))
        if decl.node.parameters is not None and decl.name is not None and decl.name.text in NAMES:
            errors.add("SK220", decl.name.span, f"`{decl.name.text}` is the name of a builtin function", "rename it")


def _namespaces(decl: KindDeclaration) -> list[tuple[str, str]]:
    """The namespaces of a declaration, each with the name that it has there."""
    kind = decl.kind.word
    if decl.name is None:
        return [(kind, kind)] if decl.kind.once else []
    name = decl.name.text
    found = [("metric" if kind == "goal" else kind, name)]
    if decl.node.parameters is not None:
        found.append(("function", name))
    return found


def check_fields(report: Reporter, entities: Iterable[Entity], module: Module) -> None:
    """Check that fields of task and data and metrics have different names: expressions use all of them."""
    seen: dict[str, Entity] = {}
    for entity in entities:
        for child in entity.children if entity.kind in ("task", "data") else ():
            assert child.name is not None
            first = seen.setdefault(child.name, child)
            if first is not child:
                label = Label(first.source, first.span, f"an {first.kind}" if first.kind != "field" else "a field")
                hint = "rename one of them"
                if child.kind == "field":
                    hint += ', and give the column: `{ column = "..." }`'
                add_error(report, "SK203", child, f"`{child.name}` is declared twice", hint, (label,))
    for kind in ("metric", "goal"):
        for name, decl in module.named(kind).items():
            if name in seen and decl.node.parameters is None:
                assert decl.name is not None
                label = Label(seen[name].source, seen[name].span, "the field")
                message, hint = f"`{name}` is both a field and a metric", "rename the metric"
                report.add("SK203", module.source, decl.name.span, message, secondary=(label,), hint=hint)


# ---- task and skill -------------------------------------------------------------------------------


def check_required(report: Reporter, entity: Entity, lost: Collection[str], *, beside: bool = False) -> None:
    """Report what a declaration lacks, unless a part that could not be read may be it: `lost` are its words.

    A skill `beside` one with a trainable part needs none.
    """
    if entity.kind == "task":
        for kind in ("input", "output"):
            if kind not in lost and not any(child.kind == kind for child in entity.children):
                add_error(report, "SK405", entity, f"the task has no {kind}", f"add `{kind} name: text`")
    elif entity.kind == "skill":
        if "about" not in entity.settings and "about" not in lost:
            hint = 'add `about = "what it is for, and when to use it"`'
            add_error(report, "SK407", entity, f"`{entity.name}` has no description", hint)
        if "section" not in lost and not is_trained(entity) and not beside:
            add_error(
                report, "SK408", entity, f"`{entity.name}` has no trainable part", "add `trainable section rules`"
            )
    elif entity.kind == "data" and not any(name in lost for name in DATA_FILES):
        _check_files(report, entity)
    elif (
        entity.kind == "budget"
        and entity.name is None
        and not any(cap in lost or cap in entity.settings for cap in CAPS)
    ):
        message = "the budget has no cap, so a run would not end"
        add_error(report, "SK508", entity, message, "add `epochs = 4`, or `cost = $3`")


def check_cuts(report: Reporter, task: Entity) -> None:
    """Check that each input with `cut` has a limit and a type that can be cut."""
    for field in task.children:
        cut, limit, type_ = field.settings.get("cut"), amount_of(field.settings, "limit"), field.type
        if cut is None or type_ is None:
            continue
        kind = type_.of_items.kind
        if kind not in _CUTTABLE:
            message = f"`{field.name}` can't be cut: only a text, a file and lists of them can"
            add_error(report, "SK421", cut, message, "remove `cut`")
        elif kind == "file" and rollout_kind(task) not in ONE_TURN:
            message = f"`{field.name}` can't be cut: this kind of rollout reads the file itself"
            add_error(report, "SK421", cut, message, "remove `cut`")
        elif limit is None:
            message = f"`cut` of `{field.name}` has no limit to cut at"
            add_error(report, "SK421", cut, message, "add `limit = 4_000 tokens`")
        elif limit < LEAST_CUT:
            message = f"`{field.name}` can't be cut to {int(limit)} tokens: the note of the omission takes up to 10"
            add_error(report, "SK421", field.settings["limit"], message, f"write `limit = {LEAST_CUT} tokens` or more")


def check_images(report: Reporter, task: Entity) -> None:
    """Check that each input with `pixels` is an image that the target gets as one."""
    sent = rollout_kind(task) in SEES_IMAGES or agent_block(task) is not None
    for field in task.children:
        pixels, type_ = field.settings.get("pixels"), field.type
        if pixels is None or type_ is None:
            continue
        if type_.of_items.kind != "image":
            message = f"`{field.name}` is not an image, so it has no `pixels`"
            hint = "remove `pixels`, or declare the type `image`"
        elif not sent:
            message = f"`{field.name}` is not scaled down: this kind of rollout reads the file itself"
            hint = "remove `pixels`, and scale the files down"
        else:
            continue
        add_error(report, "SK441", pixels, message, hint)


def check_skill(report: Reporter, skill: Entity) -> None:
    """Check the name and the description of a skill, its section names, and its sections."""
    _check_about(report, skill)
    name = skill.name or ""
    if not (name.isascii() and name.replace("_", "")):
        message = f"an agent can't load a skill named `{skill.name}`"
        add_error(report, "SK563", skill, message, "use the letters a to z, digits and `_`")
    if len(name) > NAME_CHARACTERS:
        message = f"the name has {len(name)} characters; agents load at most {NAME_CHARACTERS}"
        add_error(report, "SK218", skill, message, "choose a shorter name")
    check_distinct(report, skill.children_of("section"), "sections")
    for section in skill.children_of("section"):
        check_section(report, section)


def check_opening(report: Reporter, task: Entity, skills: Iterable[Entity]) -> None:
    """Check that the target can open the skills that are offered to it."""
    kind = rollout_kind(task)
    if kind not in WITHOUT_OPENING:
        return
    for skill in skills:
        load, beside = skill.settings.get("load"), skill.settings.get("beside")
        message = f"a target of `rollout = {kind}` cannot open skills"
        if load is not None and load.value == Word("on_demand"):
            add_error(report, "SK422", load, message, "write `load = always`")
        elif beside is not None:
            add_error(report, "SK422", beside, message, "remove `beside`")


def _check_about(report: Reporter, skill: Entity) -> None:
    about = skill.settings.get("about")
    if about is None:
        return
    text = text_of(skill.settings, "about") or ""
    unclosed_text = any(about.span.start <= each < about.span.end for each in report.offsets("SK006", about.source))
    if len(text) > ABOUT_CHARACTERS:
        message = f"`about` has {len(text)} characters; agents read at most {ABOUT_CHARACTERS}"
        add_error(report, "SK407", about, message, "shorten it to what the skill is for and when to use it")
    elif not text.strip() and not unclosed_text:
        add_error(report, "SK407", about, "`about` is empty", "write what the skill is for and when to use it")


def _has_unclosed_text(report: Reporter, entity: Entity) -> bool:
    """Whether the text of a declaration is not closed, which is reported already."""
    starts = report.offsets("SK006", entity.source)
    return any(not entity.source.text[entity.span.end : start].strip(" =\t\r\n") for start in starts)


def check_section(report: Reporter, section: Entity) -> None:
    """Check that a frozen section has a text, and that a text is closed and within its limit."""
    text = section.text
    if "frozen" in section.words and not text.strip() and not _has_unclosed_text(report, section):
        hint = 'add a text: `= """..."""`, or make it trainable'
        add_error(report, "SK406", section, f"the frozen section `{section.name}` has no text", hint)
    problem = None if is_script(text_of(section.settings, "file")) else describe_unclosed(text)
    if problem is not None:
        hint = "close it with `-->`, or put `<!--` in backticks"
        if "code block" in problem:
            hint = "close it with a line of the same fence"
        add_error(report, "SK420", section, f"the text of `{section.name}`{problem.removeprefix('the text')}", hint)
    most = amount_of(section.settings, "limit")
    # A token has at least one character.
    if most is None or len(text) <= most:
        return
    from skillc.tokens import count_tokens

    found = count_tokens(text)
    if found > most:
        message = f"the text of `{section.name}` has {found} tokens, over its limit of {int(most)}"
        add_error(report, "SK411", section.settings["limit"], message, "raise the limit, or shorten the text")


# ---- rollout --------------------------------------------------------------------------------------


def check_rollout(report: Reporter, task: Entity, module: Module, fields: Mapping[str, Entity | None]) -> None:
    """Check the simulated user of an environment: its model and its goal exist."""
    rollout = task.settings.get("rollout")
    user = rollout.block.get("user") if rollout is not None else None
    if user is None or not isinstance(user.value, Word):
        return
    role, roles = user.value.text, module.named("model")
    if role not in roles and not _lost(role, module.dropped):
        hint = spelling_hint(role, roles) or f'add `model {role} = "provider/name"`'
        report.add("SK206", user.source, user.span, f"the program has no model for `{role}`", hint=hint)
    goal = user.block.get("goal")
    if goal is not None and isinstance(goal.value, Word) and goal.value.text not in fields:
        hint = spelling_hint(goal.value.text, fields) or f"declare it in `data`: `field {goal.value.text}: text`"
        report.add("SK403", goal.source, goal.span, f"unknown field `{goal.value.text}`", hint=hint)


# ---- data and budget ------------------------------------------------------------------------------


def _check_files(report: Reporter, data: Entity) -> None:
    """Check that the data has one source to split, or a file for each side."""
    given = [name for name in DATA_FILES if name in data.settings]
    if not given:
        add_error(report, "SK401", data, "the data has no file", 'add `source = "examples.jsonl"`')
    elif "source" not in given:
        for side in ("train", "validation"):
            if side not in given:
                hint = f'add `{side} = "..."`, or replace all files by one `source` to split'
                add_error(report, "SK401", data, f"the data has no {side} file", hint)


def check_data(report: Reporter, data: Entity, fields: Mapping[str, Entity | None]) -> None:
    """Check that files, split and group agree; a field that is None is broken."""
    given = [name for name in DATA_FILES if name in data.settings]
    if "source" in given and len(given) > 1:
        hint = "keep `source`, or the files `train`, `validation`, `test`"
        add_error(report, "SK401", data.settings[given[1]], f"`{given[1]}` can't be combined with `source`", hint)
    split, group = data.settings.get("split"), data.settings.get("group")
    if split is not None and isinstance(split.value, Shares):
        hint = "write `2 : 1 : 2`, or `80 examples : 40 examples : 280 examples`"
        if given and "source" not in given:
            hint = "remove `split`: each side has a file"
            report.add("SK402", data.source, split.span, "the data has no `source` to split", hint=hint)
        elif (message := _split_problem(split.value)) is not None:
            report.add("SK402", data.source, split.span, message, hint=hint)
    if group is not None and isinstance(group.value, Word):
        _check_group(report, group, group.value.text, fields)


def _split_problem(shares: Shares) -> str | None:
    parts, units = [part.value for part in shares.parts], {part.unit for part in shares.parts}
    if len(parts) not in (2, 3):
        return "a split is train : validation, or train : validation : test"
    if len(units) > 1:
        return "shares and numbers of examples can't be combined"
    if any(part < 0 for part in parts) or 0 in parts[:2]:
        return "train and validation must be above 0"
    if units == {"examples"} and any(part.denominator != 1 for part in parts):
        return "a number of examples must be whole"
    return None


def _check_group(report: Reporter, setting: Setting, name: str, fields: Mapping[str, Entity | None]) -> None:
    found = fields.get(name)
    if name in fields and found is None:
        return
    start = setting.source.text.rfind(name, setting.span.start, setting.span.end)
    place = Span(start, start + len(name)) if start >= 0 else setting.span
    if found is None or found.type is None:
        known = [each for each, entity in fields.items() if entity is not None and entity.kind != "output"]
        hint = spelling_hint(name, known) or f"declare it: `field {name}: text`"
        report.add("SK403", setting.source, place, f"unknown field `{name}`", hint=hint)
    elif (problem := group_problem(name, found.kind, found.type.kind)) is not None:
        report.add(problem[0], setting.source, place, problem[1], hint=problem[2])


# ---- the program ----------------------------------------------------------------------------------


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
    """Whether a file only contains declarations for other programs."""
    kinds = {decl.kind.word for decl in module.declarations}
    in_force = {decl.kind.word for decl in module.declarations if decl.name is None}
    gates = any(s.kind.word == "gate" and s.node.parameters is None for s in module.declarations)
    return not kinds & {*_LIBRARY} and not in_force & {"budget", "optimize"} and not gates


def check_missing(report: Reporter, module: Module, lost: Collection[str]) -> None:
    """Report what a program lacks, unless a statement that could not be read may be it: `lost` are its words."""
    errors, place = FileErrors(report, module.source), _first_line(module)
    for kind, hint in _NEEDED.items():
        if _has(module, kind) or _lost(kind, lost):
            continue
        named = next(
            (s for s in module.declarations if s.kind.word == kind and s.kind.name == "optional" and s.name), None
        )
        if named is not None and named.name is not None:
            message = f"the {kind} `{named.name.text}` is declared but not used"
            errors.add("SK206", named.span, message, f"remove its name, or add `{kind} = {named.name.text}`")
        else:
            read = report.take_missing_metric() if kind == "goal" else None
            secondary: tuple[Label, ...] = ()
            if read is not None:
                name, label = read
                hint = f"add `goal {name} = ...`, which the gates read"
                secondary = (replace(label, text=f"`{name}` is read here"),)
            errors.add("SK206", place, f"the program has no {kind}", hint, secondary=secondary)
    roles = module.named("model")
    for role in _ROLES:
        if role not in roles and not _lost(role, lost):
            hint = spelling_hint(role, roles) or f'add `model {role} = "provider/name"`'
            errors.add("SK206", place, f"the program has no model for `{role}`", hint)


def _lost(word: str, lost: Collection[str]) -> bool:
    return word in lost or any(spelling_hint(each, [word]) is not None for each in islice(lost, _LOST_SEARCHED))


def _has(module: Module, kind: str) -> bool:
    for decl in module.declarations:
        if decl.kind.word != kind or (decl.kind.name == "optional" and decl.name is not None):
            continue
        # Neither a function nor a gate of slow updates decides on a step.
        if kind == "gate" and (decl.node.parameters is not None or decl.suffix):
            continue
        return True
    return False


def _first_line(module: Module) -> Span:
    """The first line that is not blank: the place of messages about the whole program."""
    text = module.source.text
    start = len(text) - len(text.lstrip())
    if module.declarations and not text[start:].startswith("language"):
        return module.declarations[0].span
    return Span(start, module.source.line_end(start))


def unsupported_parts(called: Iterable[Unsupported]) -> tuple[Unsupported, ...]:
    """List what this version can't compile, each once, in the order of the file."""
    unique = {(each.what, each.source.name, each.span): each for each in called}
    return tuple(sorted(unique.values(), key=lambda each: (each.source.name, each.span)))


def report_unsupported(report: Reporter, unsupported: Iterable[Unsupported]) -> None:
    """Report each of them as an error."""
    for each in unsupported:
        message = f"{each.what} needs skillc {each.version}; this version can't compile it"
        report.add(LATER_VERSION, each.source, each.span, message, hint=each.hint)

"""Rules over declarations: unused ones, ambiguous names, related judges, and a goal that no gate reads.

Other files use most declarations of a library, so most rules skip libraries.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction

from skillc.diagnostics.diagnostic import Diagnostic, Fix, Label
from skillc.gates.functions import NAMES, RUN_FUNCTIONS
from skillc.gates.noisy import rates_of
from skillc.gates.terms import CallTerm, FieldTerm, MetricTerm, Term, WordTerm, calls, metrics_read, show_term, walk
from skillc.language.checked import word_of
from skillc.language.judges import family_of, judge_calls, judge_roles
from skillc.language.modules import Module
from skillc.language.rollouts import ONE_TURN, rollout_kind
from skillc.lint.rules import ProgramFacts, note, rule, warning
from skillc.syntax import nodes
from skillc.syntax.source import Source, Span

_MARKED = {
    "section": "write `frozen section rules = {name}` in the skill",
    "budget": "write `budget = {name}`",
    "optimize": "write `optimize = {name}`",
}
_INPUTS_ONLY = (*ONE_TURN, "react")
"""Rollouts that read only inputs of the data."""
_SESSION = "session"
"""The field with the key of the recorded session that an example is from: its rules keep it."""
_OTHER_MAKER = "ask a model of another maker, or a panel with one"
_HALF = Fraction(1, 2)
_RENAME = "give the module another name with `as`"


@rule(ProgramFacts, libraries=True)
def weak_signals(facts: ProgramFacts) -> Iterator[Diagnostic]:
    """Noisy signals that keep less than half of a gain."""
    for metric in facts.checked.metrics:
        rates = rates_of(metric.term)
        if rates is not None and rates.youden < _HALF:
            message = f"`{metric.name}` keeps {float(rates.youden):.0%} of a gain: the rest is lost in its errors"
            times = 1 / float(rates.youden) ** 2
            hint = f"a gain takes {times:.0f} times the examples or more; use a better signal, or an exact metric"
            yield warning("SK608", metric, message.replace("%", " %"), hint)


@rule(ProgramFacts)
def single_examples_of_signals(facts: ProgramFacts) -> Iterator[Diagnostic]:
    """Gates that compare single examples by a noisy signal, where most differences are errors."""
    rates = {metric.name: rates_of(metric.term) for metric in facts.checked.metrics}
    for gate in facts.checked.gates:
        for call in calls(gate.term):
            builtin, read = RUN_FUNCTIONS.get(call.function), call.arguments[:1]
            if builtin is None or not builtin.direction or not isinstance(read[0], MetricTerm):
                continue
            name, own = read[0].name, rates.get(read[0].name)
            if own is None:
                continue
            ends = sorted(own.at_equal_answers(Fraction(right)) for right in (0, 1))
            shown = " to ".join(dict.fromkeys(f"{float(end) * 100:.1f}" for end in ends))
            message = f"`{show_term(call)}` counts errors of the signal too: {shown} points where nothing has changed"
            compared = f"candidate.{name} >= incumbent.{name} - 2%"
            yield warning("SK609", gate, message, f"compare the means, where the errors cancel: `{compared}`")


# ---- modules --------------------------------------------------------------------------------------


@rule(ProgramFacts, libraries=True)
def unused_modules(facts: ProgramFacts) -> Iterator[Diagnostic]:
    """Modules that are not used."""
    module = facts.module
    for alias, place in module.places.items():
        if alias not in module.used and module.uses.get(alias) is not None:
            fix = _line_removed(module.source, place)
            message = f"the module `{alias}` is not used"
            yield note("SK109", Label(module.source, place), message, "remove the line", fix=fix)


def _line_removed(source: Source, place: Span) -> Fix | None:
    """The fix that removes the line of a statement, if the line has nothing else."""
    begin = source.text.rfind("\n", 0, place.start) + 1
    end = source.text.find("\n", place.end)
    end = end + 1 if end >= 0 else len(source.text)
    alone = not source.text[begin : place.start].strip() and not source.text[place.end : end].strip()
    return Fix(Span(begin, end), "") if alone else None


@rule(ProgramFacts, libraries=True)
def ambiguous_modules(facts: ProgramFacts) -> Iterator[Diagnostic]:
    """Module names with another meaning, and modules with two names.

    They are legal, as only a module name is followed by a dot. Fields are left out: `input text: text` beside
    `use std.text` is common.
    """
    module = facts.module
    for alias, place in module.places.items():
        if module.uses.get(alias) is None:
            continue
        meaning, where = _other_meaning(module, alias)
        if meaning is not None:
            message = f"`{alias}` is a module before a `.`, and {meaning} elsewhere"
            yield note("SK118", Label(module.source, place), message, _RENAME, secondary=where)
    yield from _used_twice(module)
    yield from _named_like_packages(module, facts.checked.program.statements)


def _other_meaning(module: Module, alias: str) -> tuple[str | None, tuple[Label, ...]]:
    for decl in module.declarations:
        if decl.name is not None and decl.name.text == alias and decl.kind.word != "skill":
            kind = "the goal" if decl.kind.word == "goal" else f"a {decl.kind.word}"
            return kind, (Label(module.source, decl.name.span, "declared here"),)
        for parameter in decl.node.parameters or ():
            if parameter.name.text == alias:
                return "a parameter", (Label(module.source, parameter.name.span, "declared here"),)
    if alias in NAMES:
        return "a function of the language", ()
    return None, ()


def _used_twice(module: Module) -> Iterator[Diagnostic]:
    first: dict[str, str] = {}
    for alias, used in module.uses.items():
        if used is None:
            continue
        other = first.setdefault(used.key, alias)
        if other != alias and alias in module.places and other in module.places:
            labels = (Label(module.source, module.places[other], "first name"),)
            message = f"`{alias}` and `{other}` are the same module, `{used.label}`"
            place = Label(module.source, module.places[alias])
            yield note("SK118", place, message, "keep one of the lines", secondary=labels)


def _named_like_packages(module: Module, statements: Iterable[nodes.Statement]) -> Iterator[Diagnostic]:
    """Files named like a package that the program uses."""
    for path in [use.path for use in statements if isinstance(use, nodes.Use) and use.path is not None]:
        used = module.uses.get(path[0].text)
        if used is None or (len(path) > 1 and used.package is not None and used.package.name == path[0].text):
            continue
        labels = (Label(module.source, path[0].span, "the package"),)
        message = f"`{path[0].text}` is a module of this file, and the name of a package"
        yield note("SK118", Label(module.source, module.places[path[0].text]), message, _RENAME, secondary=labels)


# ---- unused declarations ---------------------------------------------------------------------------


@rule(ProgramFacts)
def unread_metrics(facts: ProgramFacts) -> Iterator[Diagnostic]:
    """Metrics that neither a gate nor the goal reads."""
    read = {name for term in _terms(facts) for name in metrics_read(term)}
    for metric in facts.checked.metrics:
        if metric.declared and not metric.goal and metric.name not in read:
            message = f"no gate and no goal reads the metric `{metric.name}`"
            yield note("SK409", metric, message, "it is still measured and reported")


@rule(ProgramFacts)
def unasked_models(facts: ProgramFacts) -> Iterator[Diagnostic]:
    """Models that no metric calls."""
    judges = {each.word for term in _metrics(facts) for each in walk(term) if isinstance(each, WordTerm)}
    # A model that another model is based on is used.
    asked = {
        "target",
        "optimizer",
        *judges,
        *_simulated_users(facts),
        *(name for kind, name in facts.module.reached if kind == "model"),
    }
    for model in facts.of_kind("model"):
        if model.name not in asked:
            message = f"no metric calls the model `{model.name}`"
            judged, tried = f"judge(answer, rubric, model = {model.name})", f"skillc eval --model {model.name}"
            hint = f"remove it; `{tried}` tries it as the target, and `{judged}` makes it a judge"
            yield note("SK604", model, message, hint)


def _simulated_users(facts: ProgramFacts) -> Iterator[str]:
    for task in facts.of_kind("task"):
        rollout = task.settings.get("rollout")
        user = word_of(rollout.block, "user") if rollout is not None else None
        if user is not None:
            yield user


@rule(ProgramFacts)
def uncalled_functions(facts: ProgramFacts) -> Iterator[Diagnostic]:
    """Metrics and gates with parameters that nothing calls."""
    module = facts.module
    for name, decl in module.functions().items():
        if ("function", name) not in module.reached and decl.name is not None:
            kind = decl.kind.word
            message = f"nothing calls the {kind} `{name}`"
            hint = f"call it: `{kind} x = {name}(...)`; or move it into another file if other programs use it"
            yield note("SK415", Label(module.source, decl.name.span), message, hint)


@rule(ProgramFacts)
def unused_declarations(facts: ProgramFacts) -> Iterator[Diagnostic]:
    """Rubrics that no judge uses, and reusable declarations that nothing uses."""
    asked = {call.arguments[1] for call in judge_calls(_terms(facts))}
    for entity in facts.checked.entities:
        if entity.kind == "rubric" and WordTerm(entity.name or "") not in asked:
            message = f"no judge uses the rubric `{entity.name}`"
            hint = f"remove it, or ask for it: `judge(answer, {entity.name}, model = referee)`"
            yield note("SK416", entity, message, hint)
        elif entity.kind in _MARKED and entity.name and (entity.kind, entity.name) not in facts.module.reached:
            message = f"nothing uses the {entity.kind} `{entity.name}`"
            yield note("SK418", entity, message, f"{_MARKED[entity.kind].format(name=entity.name)}, or remove it")


@rule(ProgramFacts)
def unread_fields(facts: ProgramFacts) -> Iterator[Diagnostic]:
    """Fields of the data that nothing reads; a function of the user or an environment may read any."""
    terms = [each for term in _terms(facts) for each in walk(term)]
    if any(isinstance(each, CallTerm) and each.function == "python" for each in terms):
        return
    if any(rollout_kind(task) not in _INPUTS_ONLY for task in facts.of_kind("task")):
        return
    read = {each.name for each in terms if isinstance(each, FieldTerm)}
    read |= {word_of(rubric.settings, "each") or "" for rubric in facts.of_kind("rubric")}
    for data in facts.of_kind("data"):
        for field in data.children:
            if field.name not in read | {_SESSION} and field.name != word_of(data.settings, "group"):
                message = f"nothing reads the field `{field.name}`"
                hint = f"use it in a gate, `regressed(metric, by = {field.name})`, a metric or `group`; or remove it"
                yield note("SK417", field, message, hint)


def _metrics(facts: ProgramFacts) -> list[Term]:
    return [metric.term for metric in facts.checked.metrics]


def _terms(facts: ProgramFacts) -> list[Term]:
    return [*_metrics(facts), *(gate.term for gate in facts.checked.gates)]


# ---- judges and the goal -------------------------------------------------------------------------------------


@rule(ProgramFacts)
def related_judges(facts: ProgramFacts) -> Iterator[Diagnostic]:
    """Judges of the target's family, which they prefer, and judges that are the optimizer's model."""
    models = {model.name or "": model for model in facts.of_kind("model")}
    target, optimizer = (models[role].text if role in models else "" for role in ("target", "optimizer"))
    # A panel decides with models of other families.
    alone = (call for call in judge_calls(_metrics(facts)) if call.option("panel") is None)
    for role in dict.fromkeys(role for call in alone for role in judge_roles(call)):
        model = models.get(role)
        name = model.text if model is not None else ""
        family = family_of(name) if name else None
        if model is None or family is None:
            continue
        if role == "target" or name == target:
            message = f"the judge `{role}` is the target's model, `{name}`: it judges its own answers"
            yield warning("SK606", model, message, _OTHER_MAKER)
        elif target and family == family_of(target):
            message = f"the judge `{role}` (`{name}`) is of the target's family (`{target}`)"
            hint = f"models prefer answers like their own; {_OTHER_MAKER}"
            place = Label(models["target"].source, models["target"].span, "the target")
            yield warning("SK606", model, message, hint, secondary=(place,))
        elif role == "optimizer" or name == optimizer:
            message = f"the judge `{role}` is the optimizer's model, `{name}`: it judges what it proposed"
            yield note("SK607", model, message, _OTHER_MAKER)


@rule(ProgramFacts)
def unread_goal(facts: ProgramFacts) -> Iterator[Diagnostic]:
    """A goal that shares no metric with the gates of a step."""
    accept = word_of(facts.settings("optimize"), "accept")
    deciding = [gate for gate in facts.checked.gates if gate.kind == "gate" and gate.for_ is None]
    if facts.goal is None or not deciding or accept == "always":
        return
    goal, terms = facts.goal, {metric.name: metric.term for metric in facts.checked.metrics}
    read = _closure((name for gate in deciding for name in metrics_read(gate.term)), terms)
    if not read & _closure([goal.name], terms):
        message = f"no gate reads the goal `{goal.name}`, so edits that lower it are accepted"
        yield warning("SK514", goal, message, f"add `gate better = candidate.{goal.name} > incumbent.{goal.name}`")


def _closure(names: Iterable[str], terms: Mapping[str, Term]) -> set[str]:
    """Metrics, and all that they are computed from."""
    found: set[str] = set()
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += metrics_read(terms[name]) if name in terms else ()
    return found

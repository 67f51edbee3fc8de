"""The first half of every verb: from a path to a checked program, to a plan, to an estimate of what it may spend."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from skillc.artifact_paths import ArtifactPaths
from skillc.diagnostics.diagnostic import Diagnostic, Label, Reporter, Severity, Suppressed
from skillc.errors import SkillcError
from skillc.language.check import CheckState, analyse
from skillc.language.checked import Checked
from skillc.language.modules import Loader
from skillc.lint.rules import DataFacts, PlanFacts, ProgramFacts, lint, place_of
from skillc.syntax.files import read_main
from skillc.syntax.source import Source, Span
from skillc.text import counted

if TYPE_CHECKING:
    from skillc.budget.bounds import Bounds
    from skillc.budget.spend import Sizes
    from skillc.data.dataset import Dataset
    from skillc.diagnostics.suppress import FilteredDiagnostics
    from skillc.plan.lock import OptionsLock
    from skillc.plan.schema import Plan


class ProgramError(SkillcError):
    """A program with errors; the diagnostics say which."""

    def __init__(self, path: Path, diagnostics: Sequence[Diagnostic]) -> None:
        count = sum(d.severity is Severity.ERROR for d in diagnostics)
        super().__init__(f"`{path}` has {counted(count, 'error')}, so there is nothing to compile")
        self.diagnostics = tuple(diagnostics)


class UnfitDataError(ProgramError):
    """A program whose data can't be used; the diagnostics say why."""

    def __init__(self, path: Path, diagnostics: Sequence[Diagnostic]) -> None:
        super().__init__(path, diagnostics)
        self.message = f"the data of `{path}` does not fit the program"
        self.args = (self.message,)


@dataclass(frozen=True, slots=True)
class Planned:
    """A program's plan, the folder that its paths start from, and what is to be said about it.

    Attributes:
        as_written: whether nothing of it was changed for one call.
        suppressed: what comments of the program keep out of `diagnostics`.
        options: those that changed the plan for this call.
    """

    path: Path
    checked: Checked
    plan: Plan
    diagnostics: tuple[Diagnostic, ...]
    as_written: bool = True
    suppressed: tuple[Suppressed, ...] = ()
    options: OptionsLock | None = None

    @property
    def root(self) -> Path:
        """The program's folder."""
        return self.path.parent


@dataclass(frozen=True, slots=True)
class Estimated:
    """The program's data, and what a compile may spend on it."""

    dataset: Dataset
    sizes: Sizes
    bounds: Bounds
    diagnostics: tuple[Diagnostic, ...]
    suppressed: tuple[Suppressed, ...] = ()

    @property
    def failed(self) -> bool:
        """Whether the budget cannot pay."""
        return any(d.severity is Severity.ERROR for d in self.diagnostics)


def check_file(path: Path) -> Checked:
    """The checked program in a file.

    Raises:
        SkillcError: the file cannot be read.
    """
    return check_source(read_main(path), path.parent)


def check_source(source: Source, folder: Path) -> Checked:
    """The checked program of a text; what it uses is below a folder."""
    return check(source, Loader(folder, skill_sections=_sections))


def check(source: Source, loader: Loader | None = None) -> Checked:
    """The meaning of a program, all that is wrong with it, and advice."""
    return advised(analyse(source, loader))


def advised(work: CheckState) -> Checked:
    """Add the findings of lint to a checked program, and take out what its comments suppress."""
    checked, name = work.checked, work.source.name
    found, suppressed = checked.diagnostics, tuple[Suppressed, ...]()
    if not checked.broken:
        found = Reporter((*found, *lint(ProgramFacts(checked, work.module)))).diagnostics()
    if "skillc:" in work.source.text:
        from skillc.diagnostics.suppress import apply_suppressions

        filtered = apply_suppressions(found, checked.program, ("check",))
        found, suppressed = filtered.kept, filtered.suppressed
    ordered = sorted(found, key=lambda d: (d.primary.source.name != name, d.primary.source.name, d.primary.span))
    return replace(checked, diagnostics=tuple(ordered), suppressed=suppressed)


def _sections(file: Path) -> Mapping[str, str]:
    from skillc.document.skill_md import sections_of

    return sections_of(file.read_text(encoding="utf-8"))


def plan_file(
    path: Path,
    *,
    checked: Checked | None = None,
    models: Sequence[str] = (),
    settings: Sequence[str] = (),
    offline: bool = False,
    runnable: bool = False,
    complete: bool = True,
    every_model: bool = True,
) -> Planned:
    """The plan of a program, with `--model`, `--set` and `--offline` applied.

    `checked` is the program where it was checked before, such as one that an editor has not saved yet. `runnable`
    refuses what only a later version can run; without it such a program can be compared and examined. A plan that is
    not `complete` may lack what only a call of a model needs: a name from the environment, a command's folder. Without
    `every_model` it holds those that a compile asks.

    Raises:
        ProgramError: the program has errors.
        SkillcError: the file cannot be read, a change names something that is not there, or a model has no name.
    """
    import os

    from skillc.diagnostics.suppress import apply_suppressions
    from skillc.plan.models import override_models, put_offline, require_names, resolve_model_names, with_used_models
    from skillc.plan.resolve import resolve
    from skillc.plan.settings import override

    checked = checked or check_file(path)
    if checked.broken or (runnable and checked.failed):
        raise ProgramError(path, checked.diagnostics)
    resolved = resolve(checked)
    filtered = apply_suppressions(resolved.diagnostics, checked.program, ())
    # Where a later version is needed, that says enough.
    diagnostics = checked.diagnostics if checked.failed else (*checked.diagnostics, *filtered.kept)
    if resolved.plan is None:
        raise ProgramError(path, diagnostics)
    plan = before = resolve_model_names(resolved.plan, os.environ)
    plan = override_models(plan, pairs(models, "--model", "target=openai/gpt-5.5-mini"))
    plan = override(plan, pairs(settings, "--set", "budget.cost=1"))
    plan = put_offline(plan) if offline else plan
    plan = plan if every_model else with_used_models(plan)
    if complete:
        require_names(plan)
        refuse_folders(checked, plan, path.parent)
    as_written = not (models or settings or offline)
    changed = plan != (before if every_model else with_used_models(before))
    options = _options(models, settings, offline=offline) if changed else None
    suppressed = (*checked.suppressed, *filtered.suppressed)
    return Planned(path, checked, plan, diagnostics, as_written, suppressed, options)


def _options(models: Sequence[str], settings: Sequence[str], *, offline: bool) -> OptionsLock:
    """The options of a call in one order; the last of two on one thing counts."""
    from skillc.plan.lock import OptionsLock

    def listed(texts: Sequence[str]) -> tuple[str, ...]:
        return tuple(f"{name}={value}" for name, value in sorted(pairs(texts, "", "").items()))

    return OptionsLock(models=listed(models), settings=listed(settings), offline=offline)


def refuse_folders(checked: Checked, plan: Plan, root: Path) -> None:
    """Raises where a command's working folder is not there.

    Raises:
        ProgramError: with one diagnostic for each.
    """
    found = []
    for entity in checked.entities:
        model = plan.models.get(entity.name or "") if entity.kind == "model" else None
        if model is None or model.exec is None or model.exec.folder is None or "exec" not in entity.settings:
            continue
        setting = entity.settings["exec"].block.get("folder")
        if setting is not None and not (root / model.exec.folder).is_dir():
            message = f"there is no folder `{model.exec.folder}` beside the program"
            hint = "make it, or leave `folder` out: each call has an empty one then"
            found.append(Diagnostic("SK624", message, Label(setting.source, setting.span), hint=hint))
    if found:
        raise ProgramError(Path(checked.program.source.name), found)


def estimate(planned: Planned) -> Estimated:
    """The data of a plan, its bounds, and the findings about both, errors first.

    Raises:
        UnfitDataError: the data cannot be read, or does not fit the program.
        SkillcError: another obstacle.
    """
    from skillc.budget.bounds import bounds
    from skillc.data.dataset import load, sizes_of
    from skillc.data.problems import DataError
    from skillc.diagnostics.suppress import apply_suppressions
    from skillc.models.prices import price_table

    try:
        dataset = load(planned.plan.task, planned.plan.data, planned.root)
    except DataError as problem:
        raise UnfitDataError(planned.path, _unusable(planned, problem)) from None
    sizes = sizes_of(planned.plan, dataset)
    spent = bounds(planned.plan, sizes, price_table(planned.plan))
    severities = list(Severity)
    found = sorted(
        lint(PlanFacts(planned.checked, planned.plan, spent)), key=lambda each: severities.index(each.severity)
    )
    # With a model or a setting changed for one call, what the program suppresses may well not arise.
    filtered = apply_suppressions(found, planned.checked.program, ("plan",) if planned.as_written else ())
    return Estimated(dataset, sizes, spent, filtered.kept, filtered.suppressed)


def check_data(path: Path) -> FilteredDiagnostics:
    """What is found in a program, its plan and its examples, and what comments of the program suppress.

    Data that can't be read, or does not fit the program, is an error among the others.

    Raises:
        SkillcError: the program's file cannot be read.
    """
    from skillc.diagnostics.suppress import FilteredDiagnostics, apply_suppressions

    checked = check_file(path)
    if checked.failed or checked.library:
        return FilteredDiagnostics(checked.diagnostics, checked.suppressed)
    try:
        planned = plan_file(path, complete=False)
    except ProgramError as problem:
        return FilteredDiagnostics(problem.diagnostics, checked.suppressed)
    try:
        estimated = estimate(planned)
        compiled = _compiled(planned)
    except UnfitDataError as problem:
        return FilteredDiagnostics((*planned.diagnostics, *problem.diagnostics), planned.suppressed)
    except SkillcError as problem:
        return FilteredDiagnostics((*planned.diagnostics, *_unusable(planned, problem)), planned.suppressed)
    facts = DataFacts(planned.checked, planned.plan, estimated.dataset, estimated.sizes, compiled)
    filtered = apply_suppressions(list(lint(facts)), planned.checked.program, ("data",))
    # A rule over the text and the plan finds the same again, and better, once there is a plan.
    again = {_key(each) for each in (*estimated.diagnostics, *(each.diagnostic for each in estimated.suppressed))}
    first = (each for each in planned.diagnostics if _key(each) not in again)
    suppressed = (each for each in planned.suppressed if _key(each.diagnostic) not in again)
    return FilteredDiagnostics(
        (*first, *estimated.diagnostics, *filtered.kept), (*suppressed, *estimated.suppressed, *filtered.suppressed)
    )


def _key(found: Diagnostic) -> tuple[str, str, Span]:
    return found.code, found.primary.source.name, found.primary.span


def _unusable(planned: Planned, problem: SkillcError) -> list[Diagnostic]:
    """One error for each thing that is wrong with the data."""
    from skillc.data.problems import DataError

    place = place_of(planned.checked, "data", None, "source" if planned.plan.data.source else "train")
    if not isinstance(problem, DataError):
        return [Diagnostic("SK437", problem.message, place, hint=problem.hint)]
    found = [
        Diagnostic("SK437", str(each), place_of(planned.checked, *each.at) if each.at else place, hint=each.hint)
        for each in problem.problems
    ]
    if problem.more:
        found.append(Diagnostic("SK437", f"the data has {problem.more:,} more such problems", place))
    return found


def _compiled(planned: Planned) -> Mapping[str, str]:
    """The texts of the skill that was compiled beside the program; none where there is none."""
    file = ArtifactPaths.beside(planned.root, planned.plan.skill.artifact).skill
    if not file.is_file():
        return {}
    shown = file.relative_to(planned.root).as_posix()
    try:
        sections = _sections(file)
    except (OSError, UnicodeDecodeError) as problem:
        raise SkillcError(f"`{shown}` can't be read") from problem
    declared = {section.text.strip() for section in planned.plan.skill.sections}
    # What the program says itself is told where it stands.
    return {f"`{shown}`": "\n\n".join(text for text in sections.values() if text.strip() not in declared)}


def pairs(texts: Sequence[str], option: str, example: str) -> dict[str, str]:
    """`name=value` texts of an option.

    Raises:
        SkillcError: a text has no `=`.
    """
    split = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not (equals and name.strip() and value.strip()):
            raise SkillcError(
                f"`{option} {text}` is not of the form name=value", hint=f"for example `{option} {example}`"
            )
        split[name.strip()] = value.strip()
    return split

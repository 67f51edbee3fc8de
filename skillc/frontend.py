"""The common first steps of all commands: from a path to a checked program, a plan, and an estimate of its cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from skillc.artifact_paths import ArtifactPaths
from skillc.dataclass import dataclass
from skillc.diagnostics.diagnostic import Diagnostic, Label, Reporter, Severity, Suppressed
from skillc.errors import SkillcError
from skillc.language.check import CheckState, analyse
from skillc.language.checked import Checked
from skillc.language.modules import Loader
from skillc.lint.rules import DataFacts, PlanFacts, ProgramFacts, lint, place_of
from skillc.syntax.files import read_main
from skillc.syntax.source import Source, Span
from skillc.text import counted
from skillc.tools.source import tool_findings

if TYPE_CHECKING:
    from skillc.budget.bounds import Bounds
    from skillc.budget.spend import CompanySize, Sizes
    from skillc.data.dataset import Dataset
    from skillc.diagnostics.suppress import FilteredDiagnostics
    from skillc.plan.lock import OptionsLock
    from skillc.plan.schema import Plan


class ProgramError(SkillcError):
    """A program with errors."""

    def __init__(self, path: Path, diagnostics: Sequence[Diagnostic]) -> None:
        count = sum(d.severity is Severity.ERROR for d in diagnostics)
        super().__init__(f"`{path}` has {counted(count, 'error')}, so there is nothing to compile")
        self.diagnostics = tuple(diagnostics)


class UnfitDataError(ProgramError):
    """A program whose data can't be used."""

    def __init__(self, path: Path, diagnostics: Sequence[Diagnostic]) -> None:
        super().__init__(path, diagnostics)
        self.message = f"the data of `{path}` does not fit the program"
        self.args = (self.message,)


@dataclass(frozen=True, slots=True)
class Planned:
    """The plan of a program, and its findings.

    Attributes:
        as_written: whether no option of the call overrides the program.
        suppressed: suppressed findings.
        options: the options that changed the plan.
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
        """The program's folder, to which its paths are relative."""
        return self.path.parent


@dataclass(frozen=True, slots=True)
class Estimated:
    """The data of a program, and the bounds of a compile."""

    dataset: Dataset
    sizes: Sizes
    bounds: Bounds
    diagnostics: tuple[Diagnostic, ...]
    suppressed: tuple[Suppressed, ...] = ()

    @property
    def failed(self) -> bool:
        """Whether there is an error, such as a budget that is too small."""
        return any(d.severity is Severity.ERROR for d in self.diagnostics)


def check_file(path: Path) -> Checked:
    """Check the program in a file.

    Raises:
        SkillcError: the file can't be read.
    """
    return check_source(read_main(path), path.parent)


def check_source(source: Source, folder: Path, *, complete: bool = True) -> Checked:
    """Check a program whose files are in a folder; one that is not complete lacks what only a run needs."""
    return check(source, Loader(folder, skill_sections=read_sections, complete=complete))


def check(source: Source, loader: Loader | None = None) -> Checked:
    """Check a program: its meaning, its errors, and advice."""
    return add_advice(analyse(source, loader))


def add_advice(work: CheckState) -> Checked:
    """Add the findings of lint to a checked program, and apply its suppressions."""
    checked, name = work.checked, work.source.name
    found, suppressed = checked.diagnostics, tuple[Suppressed, ...]()
    if not checked.broken:
        tools = tool_findings(checked, work.loader.source)
        found = Reporter((*found, *tools, *lint(ProgramFacts(checked, work.module)))).diagnostics()
    if "skillc:" in work.source.text:
        from skillc.diagnostics.suppress import apply_suppressions

        filtered = apply_suppressions(found, checked.program, ("check",))
        found, suppressed = filtered.kept, filtered.suppressed
    ordered = sorted(found, key=lambda d: (d.primary.source.name != name, d.primary.source.name, d.primary.span))
    return replace(checked, diagnostics=tuple(ordered), suppressed=suppressed)


def read_sections(file: Path) -> Mapping[str, str]:
    """Read the sections of a markdown skill."""
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
    """Plan a program, with `--model`, `--set` and `--offline` applied.

    Args:
        path: the program.
        checked: the checked program, if it was checked before, such as an unsaved one of an editor.
        models: the `--model` options.
        settings: the `--set` options.
        offline: whether to use the embedded models.
        runnable: reject features of later versions; without it, such a program can still be examined.
        complete: reject a plan without what only calls of models need: environment variables, working folders.
        every_model: include models that a compile does not call.

    Raises:
        ProgramError: the program has errors.
        SkillcError: the file can't be read, an option names something unknown, or a model has no name.
    """
    import os

    from skillc.diagnostics.suppress import apply_suppressions
    from skillc.plan.models import override_models, put_offline, require_names, resolve_model_names, with_used_models
    from skillc.plan.resolve import resolve
    from skillc.plan.settings import override, with_trained

    checked = checked or check_file(path)
    if checked.broken or (runnable and checked.failed):
        raise ProgramError(path, checked.diagnostics)
    resolved = resolve(checked)
    filtered = apply_suppressions(resolved.diagnostics, checked.program, ())
    # If a later version is required, further findings are of no use.
    diagnostics = checked.diagnostics if checked.failed else (*checked.diagnostics, *filtered.kept)
    if resolved.plan is None:
        raise ProgramError(path, diagnostics)
    plan = before = resolve_model_names(resolved.plan, os.environ)
    plan = override_models(plan, parse_pairs(models, "--model", "target=openai/gpt-5.5-mini"))
    changes = dict(parse_pairs(settings, "--set", "budget.cost=1"))
    trained = changes.pop("skill.train", None)
    plan = override(plan if trained is None else with_trained(plan, trained), changes)
    plan = put_offline(plan) if offline else plan
    plan = plan if every_model else with_used_models(plan)
    if complete:
        require_names(plan)
        check_folders(checked, plan, path.parent)
    as_written = not (models or settings or offline)
    changed = plan != (before if every_model else with_used_models(before))
    options = _options(models, settings, offline=offline) if changed else None
    suppressed = (*checked.suppressed, *filtered.suppressed)
    return Planned(path, checked, plan, diagnostics, as_written, suppressed, options)


def _options(models: Sequence[str], settings: Sequence[str], *, offline: bool) -> OptionsLock:
    """Return the options of a call, sorted; of two for the same name the last counts."""
    from skillc.plan.lock import OptionsLock

    def listed(texts: Sequence[str]) -> tuple[str, ...]:
        return tuple(f"{name}={value}" for name, value in sorted(parse_pairs(texts, "", "").items()))

    return OptionsLock(models=listed(models), settings=listed(settings), offline=offline)


def check_folders(checked: Checked, plan: Plan, root: Path) -> None:
    """Check that the working folders of commands exist.

    Raises:
        ProgramError: some do not, with a diagnostic for each.
    """
    found = []
    for entity in checked.entities:
        model = plan.models.get(entity.name or "") if entity.kind == "model" else None
        if model is None or model.exec is None or model.exec.folder is None or "exec" not in entity.settings:
            continue
        setting = entity.settings["exec"].block.get("folder")
        if setting is not None and not (root / model.exec.folder).is_dir():
            message = f"the folder `{model.exec.folder}` does not exist beside the program"
            hint = "create it, or remove `folder`: each call then runs in a new empty folder"
            found.append(Diagnostic("SK624", message, Label(setting.source, setting.span), hint=hint))
    if found:
        raise ProgramError(Path(checked.program.source.name), found)


def estimate(planned: Planned) -> Estimated:
    """Load the data of a plan, compute its bounds, and return findings about both, errors first.

    Raises:
        UnfitDataError: the data can't be read, or does not fit the program.
        SkillcError: the bounds can't be computed.
    """
    from skillc.budget.bounds import bounds
    from skillc.data.dataset import load_data, sizes_of
    from skillc.data.problems import DataError
    from skillc.diagnostics.suppress import apply_suppressions
    from skillc.models.prices import price_table

    try:
        dataset = load_data(planned.plan, planned.root)
    except DataError as problem:
        raise UnfitDataError(planned.path, _unusable(planned, problem)) from None
    sizes = replace(sizes_of(planned.plan, dataset, planned.root), company=_company_size(planned))
    spent = bounds(planned.plan, sizes, price_table(planned.plan))
    severities = list(Severity)
    found = sorted(
        lint(PlanFacts(planned.checked, planned.plan, spent)), key=lambda each: severities.index(each.severity)
    )
    # With overrides a suppressed finding may not occur, so unused suppressions are not reported.
    filtered = apply_suppressions(found, planned.checked.program, ("plan",) if planned.as_written else ())
    return Estimated(dataset, sizes, spent, filtered.kept, filtered.suppressed)


def _company_size(planned: Planned) -> CompanySize:
    from skillc.budget.spend import CompanySize
    from skillc.document.offer import offer_text
    from skillc.document.skill import tokens
    from skillc.plan.company import company_of
    from skillc.tokens import count_tokens

    company = company_of(planned.plan, planned.root)
    return CompanySize(
        len(company.offered),
        count_tokens(offer_text(company.offered)) if company.offered else 0,
        max(map(tokens, company.offered), default=0),
        sum(map(tokens, company.read)),
    )


def check_data(path: Path) -> FilteredDiagnostics:
    """Return the findings in a program, its plan and its examples; unusable data is a finding too.

    Raises:
        SkillcError: the program's file can't be read.
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
    # Rules over the plan repeat findings of the text with more detail.
    again = {_key(each) for each in (*estimated.diagnostics, *(each.diagnostic for each in estimated.suppressed))}
    first = (each for each in planned.diagnostics if _key(each) not in again)
    suppressed = (each for each in planned.suppressed if _key(each.diagnostic) not in again)
    return FilteredDiagnostics(
        (*first, *estimated.diagnostics, *filtered.kept), (*suppressed, *estimated.suppressed, *filtered.suppressed)
    )


def _key(found: Diagnostic) -> tuple[str, str, Span]:
    return found.code, found.primary.source.name, found.primary.span


def _unusable(planned: Planned, problem: SkillcError) -> list[Diagnostic]:
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
    """Return the learned text of the compiled skill beside the program; nothing if there is none."""
    from skillc.document.folder import read_skill

    file = ArtifactPaths.beside(planned.root, planned.plan.skill.artifact).skill
    if not file.is_file():
        return {}
    shown = file.relative_to(planned.root).as_posix()
    try:
        text = file.read_text(encoding="utf-8")
        sections = {section.name: section.text for section in read_skill(file, text).sections}
    except (OSError, UnicodeDecodeError) as problem:
        raise SkillcError(f"`{shown}` can't be read") from problem
    # Texts of the program are checked in the program.
    declared = {section.text.strip() for section in planned.plan.skill.sections}
    return {f"`{shown}`": "\n\n".join(text for text in sections.values() if text.strip() not in declared)}


# ---- `skillc check` -------------------------------------------------------------------------------

Fixes = Literal["none", "safe", "unsafe"]


@dataclass(frozen=True, slots=True)
class CheckedFile:
    """The findings in one file, and its text before and after fixes.

    Attributes:
        path: the file.
        diagnostics: the findings.
        suppressed: suppressed findings.
        readable: whether it could be read; if not, that is the only finding.
        before: its text.
        after: its text after the fixes.
        fixed: the number of findings that were fixed.
        refused: the number of fixes that were left out because they would have caused a new error.
    """

    path: Path
    diagnostics: tuple[Diagnostic, ...]
    suppressed: tuple[Suppressed, ...] = ()
    readable: bool = True
    before: str = ""
    after: str = ""
    fixed: int = 0
    refused: int = 0


def check_and_fix(path: Path, fixes: Fixes = "none") -> CheckedFile:
    """Check a file, and apply fixes to its text if requested. Nothing is written."""
    try:
        source = read_main(path)
    except SkillcError as error:
        unreadable = Diagnostic("SK040", error.message, Label(Source(str(path), ""), Span(0, 0)), hint=error.hint)
        return CheckedFile(path, (unreadable,), readable=False)
    if fixes == "none":
        checked = check_source(source, path.parent)
        return CheckedFile(path, checked.diagnostics, checked.suppressed, True, source.text, source.text)
    from skillc.diagnostics.fixing import fix

    done = fix(source, lambda text: check_source(text, path.parent), unsafe=fixes == "unsafe")
    diagnostics, suppressed, counts = done.checked.diagnostics, done.checked.suppressed, (done.applied, done.refused)
    return CheckedFile(path, diagnostics, suppressed, True, source.text, done.source.text, *map(len, counts))


def add_data_findings(file: CheckedFile) -> CheckedFile:
    """Add the findings about the plan and the examples; reads the file again."""
    if not file.readable:
        return file
    found = check_data(file.path)
    return replace(file, diagnostics=found.kept, suppressed=found.suppressed)


def exit_status(files: Sequence[CheckedFile]) -> int:
    """Return the exit status: 2 for an unreadable file, 1 for an error or a warning, else 0."""
    if not all(each.readable for each in files):
        return 2
    return int(any(d.severity is not Severity.NOTE for each in files for d in each.diagnostics))


# ---- options --------------------------------------------------------------------------------------


def parse_pairs(texts: Sequence[str], option: str, example: str) -> dict[str, str]:
    """Parse the `name=value` texts of an option.

    Raises:
        SkillcError: a text has no `=`.
    """
    split = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not (equals and name.strip() and value.strip()):
            raise SkillcError(
                f"`{option} {text}` is not of the form `name=value`", hint=f"for example `{option} {example}`"
            )
        split[name.strip()] = value.strip()
    return split

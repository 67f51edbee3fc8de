"""Places to measure a skill outside its program: another kind of rollout, or the data of a related program."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Literal

from skillc.artifact_paths import ArtifactPaths
from skillc.data.dataset import load_data
from skillc.dataclass import dataclass
from skillc.errors import SkillcError
from skillc.evaluate.skills import own_paths
from skillc.frontend import Planned, ProgramError, check_source, plan_file
from skillc.json_values import canonical_ascii
from skillc.outcomes import Example
from skillc.syntax.files import read_main
from skillc.syntax.source import Source

PlaceKind = Literal["own", "rollout", "data"]


@dataclass(frozen=True, slots=True)
class Place:
    """One place.

    Attributes:
        kind: `own` for the program as it is, `rollout` for it with another kind of rollout, `data` for a related one.
        label: the name in a table; empty for the program as it is, where it is the only place.
        planned: the program whose examples, rollout and goal are used.
        paths: of the compiled skill of that program; its lock counts the looks at its test split.
    """

    kind: PlaceKind
    label: str
    planned: Planned
    paths: ArtifactPaths


def places_of(
    planned: Planned,
    rollouts: Sequence[str],
    programs: Sequence[Path],
    *,
    settings: Sequence[str] = (),
    offline: bool = False,
) -> tuple[Place, ...]:
    """Return the program itself, then each kind of rollout and each related program, each once.

    Args:
        planned: the program whose skill is measured.
        rollouts: as a program writes them: `react`, or `react { turns = 5 }`.
        programs: paths of related programs.
        settings: of the call; they apply to the program, not to related ones.
        offline: the rulebook replaces every model.

    Raises:
        SkillcError: a kind of rollout does not fit the program, or a related program has errors.
    """
    paths = own_paths(planned)
    own = f"rollout = {planned.plan.task.rollout.kind}" if rollouts else planned.path.name
    found = [Place("own", own if rollouts or programs else "", planned, paths)]
    for text in dict.fromkeys(rollouts):
        other = _with_rollout(planned, text, settings=settings, offline=offline)
        if other.plan.task.rollout != planned.plan.task.rollout:
            found.append(Place("rollout", f"rollout = {' '.join(text.split())}", other, paths))
    for path in dict.fromkeys(programs):
        if path.resolve() == planned.path.resolve():
            continue
        related = plan_file(path, offline=offline, runnable=True, complete=False)
        found.append(Place("data", str(path), related, own_paths(related)))
    return tuple(found)


def _with_rollout(planned: Planned, text: str, *, settings: Sequence[str], offline: bool) -> Planned:
    """Plan the program with another kind of rollout, checked as if it were written there."""
    source = read_main(planned.path)
    task = next(entity for entity in planned.checked.entities if entity.kind == "task")
    if task.source.name != source.name:
        raise SkillcError(
            f"`--rollout`: the task of `{planned.path}` is in another file",
            hint=f"write a program with `rollout = {text}`, and use `--on`",
        )
    setting = task.settings.get("rollout")
    if setting is not None:
        start, end, written = setting.span.start, setting.span.end, f"rollout = {text}"
    else:
        start = end = source.text.index("{", task.span.start) + 1
        written = f" rollout = {text}\n"
    changed = Source(source.name, source.text[:start] + written + source.text[end:])
    checked = check_source(changed, planned.path.parent)
    try:
        return plan_file(
            planned.path, checked=checked, settings=settings, offline=offline, runnable=True, complete=False
        )
    except ProgramError as problem:
        raise RolloutError(text, problem) from problem


class RolloutError(ProgramError):
    """A kind of rollout that does not fit the program; its diagnostics are those of the program with it."""

    def __init__(self, text: str, problem: ProgramError) -> None:
        super().__init__(Path(), problem.diagnostics)
        self.message = f"`--rollout {text}` does not fit the program"
        self.args = (self.message,)


def shared_examples(planned: Planned, examples: Iterable[Example]) -> int:
    """Return how many examples of a related program have the inputs of one that the skill was made with."""
    data = load_data(planned.plan, planned.root)
    known = {_inputs(example) for example in (*data.train, *data.validation)}
    return sum(_inputs(example) in known for example in examples)


def _inputs(example: Example) -> str:
    # Related programs may have other names for the same inputs.
    return "\n".join(sorted(canonical_ascii(value) for value in example.inputs.values()))

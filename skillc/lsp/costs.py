"""Estimate the share of a compile's cost that a part of the program causes, with the estimates of `skillc plan`.

This reads the data, so it runs in a thread, and results are cached until a file changes. It runs no user code and sends
nothing.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from skillc.dataclass import dataclass
from skillc.errors import SkillcError
from skillc.frontend import estimate, plan_file
from skillc.gates import units
from skillc.language.forms import SettingKind
from skillc.language.kinds import DATA_FILES
from skillc.language.links import Symbol
from skillc.lsp.workspace import Analysis, stamp_of
from skillc.text import counted, listed

if TYPE_CHECKING:
    from skillc.budget.bounds import Bounds
    from skillc.budget.spend import Stage
    from skillc.plan.schema import Plan

DATA_LIMIT = 50_000_000
"""Maximum size of the data that is read for a hover, in bytes."""
TABLE_HEADING = "estimated cost of a compile:"

_KEPT = 16
_MEASURING = (
    *("baseline", "second measurement", "reference", "rollout", "screen", "gate", "slow update", "tidy", "search"),
    *("final test", "no skill", "always read", "null arm"),
)


@dataclass(frozen=True, slots=True)
class Costs:
    """A plan and what it may spend."""

    plan: Plan
    bounds: Bounds


class Estimates:
    """The costs of programs, computed once for each state of the program and its data."""

    def __init__(self) -> None:
        self._known: OrderedDict[tuple[object, ...], Costs | None] = OrderedDict()

    def of(self, analysis: Analysis) -> Costs | None:
        """Return the costs of a program, None if unknown. May read the data, which can be slow."""
        key = (analysis.source.name, tuple(sorted(analysis.read.items())), _data_stamps(analysis))
        if key not in self._known:
            self._known[key] = _estimate(analysis)
            while len(self._known) > _KEPT:
                self._known.popitem(last=False)
        return self._known[key]


def _estimate(analysis: Analysis) -> Costs | None:
    path = Path(analysis.source.name)
    if analysis.checked.failed or analysis.checked.library or not path.is_absolute():
        return None
    if sum(stamp[1] for stamp in _data_stamps(analysis) if stamp is not None) > DATA_LIMIT:
        return None
    try:
        planned = plan_file(path, checked=analysis.checked, complete=False, every_model=False)
        return Costs(planned.plan, estimate(planned).bounds)
    except (SkillcError, OSError):
        return None


def _data_stamps(analysis: Analysis) -> tuple[tuple[int, int, int] | None, ...]:
    root = Path(analysis.source.name).parent
    data = [entity.settings for entity in analysis.checked.entities if entity.kind == "data"]
    values = [settings[name].value for settings in data for name in DATA_FILES if name in settings]
    return tuple(stamp_of(root / value) for value in values if isinstance(value, str))


# ---- shares of symbols ----------------------------------------------------------------------------


def describe_price(costs: Costs, role: str) -> str | None:
    """Describe the price of a model; None for a role that is not in the plan."""
    if role not in costs.bounds.prices:
        return None
    price = costs.bounds.prices[role]
    if price is None:
        return "price: unknown"
    if not (price.input or price.output or price.call):
        return "price: free"
    each = f", and {units.dollars(price.call)} a call" if price.call else ""
    sent, replied = units.dollars(price.input), units.dollars(price.output)
    return f"price of a million tokens: {sent} input, {replied} output{each}"


def describe_cost(costs: Costs, symbol: Symbol) -> str | None:
    """Describe the calls of a part of the program in one line, or of the whole program as a table."""
    if symbol.kind == "statement" and symbol.name in ("budget", "optimize", "task", "goal"):
        return _table(costs)
    stages, what = _stages_of(costs, symbol)
    return f"{what}: {_share(costs, stages)}" if what and stages else what


def _stages_of(costs: Costs, symbol: Symbol) -> tuple[tuple[Stage, ...], str | None]:
    plan, name = costs.plan, symbol.name
    if symbol.kind == "gate":
        return _gate(costs, name)
    if symbol.kind in ("goal", "metric"):
        if all(metric.name != name for metric in plan.metrics):
            return (), None
        return _named(costs, _MEASURING), "rollouts, each of which measures it"
    if symbol.kind == "model":
        return _of_role(costs, name)
    if symbol.kind == "section" and any(each.name == name and each.mode == "slow" for each in plan.skill.sections):
        return _named(costs, ("slow update",)), "the slow update"
    if isinstance(symbol.origin, SettingKind) and symbol.origin.stages:
        stages = _named(costs, symbol.origin.stages)
        shown = listed([stage.name for stage in stages], "and")
        return stages, f"size of {shown}" if stages else None
    return (), None


def _gate(costs: Costs, name: str) -> tuple[tuple[Stage, ...], str | None]:
    gates = costs.plan.gates
    gate = next((each for each in gates if each.name == name), None)
    if gate is None:
        return (), None
    if gate.stage == "text":
        return (), "decided by the text alone, without calls"
    where = "the slow update" if gate.for_ == "slow" else "the gates"
    stages = _named(costs, ("slow update",) if gate.for_ == "slow" else ("gate", "tidy"))
    on = "the training batch" if gate.stage == "batch" else "validation"
    others = sum(each.stage == gate.stage and each.for_ == gate.for_ for each in gates) - 1
    shared = f", shared with {counted(others, 'other')}" if others else ""
    return stages, f"{where} on {on}{shared}" if stages else None


def _of_role(costs: Costs, role: str) -> tuple[tuple[Stage, ...], str | None]:
    from skillc.plan.models import OPTIMIZER, TARGET

    if role not in costs.plan.models:
        return (), None
    if role in costs.bounds.judged and role not in (TARGET, OPTIMIZER):
        return costs.bounds.judged[role], "calls of this judge"
    stages = tuple(stage for stage in costs.bounds.stages if stage.role == role)
    both = [stage.name for stage in costs.bounds.stages if stage.role in ("both", "all")]
    besides = f", without its part of {listed(both, 'and')}" if both else ""
    return stages, f"calls of this model{besides}" if stages else None


def _named(costs: Costs, names: Iterable[str]) -> tuple[Stage, ...]:
    wanted = set(names)
    return tuple(stage for stage in costs.bounds.stages if stage.name in wanted)


def _share(costs: Costs, stages: Iterable[Stage]) -> str:
    from skillc.budget.spend import Spend

    part, whole = sum((stage.bound.estimate for stage in stages), Spend()), costs.bounds.total.estimate
    calls = f"about {part.calls:,} of {whole.calls:,} calls"
    if part.calls and whole.calls:
        calls += f" ({units.percent(part.calls / whole.calls)})"
    if part.cost is None or not whole.cost:
        return calls
    share = units.percent(float(part.cost / whole.cost))
    return f"{calls} and {units.dollars(part.cost)} of {units.dollars(whole.cost)} ({share})"


def _table(costs: Costs) -> str:
    """Return the stages with their shares of the estimate."""
    whole = costs.bounds.total.estimate
    rows = ["| stage | calls | share | cost | share |", "|---|--:|--:|--:|--:|"]
    for stage in costs.bounds.stages:
        spent = stage.bound.estimate
        calls = units.percent(spent.calls / whole.calls) if whole.calls else ""
        cost = units.percent(float(spent.cost / whole.cost)) if spent.cost is not None and whole.cost else ""
        rows.append(f"| {stage.name} | {spent.calls:,} | {calls} | {units.dollars(spent.cost)} | {cost} |")
    rows.append(f"| all | {whole.calls:,} | | {units.dollars(whole.cost)} | |")
    return f"{TABLE_HEADING}\n\n" + "\n".join(rows)

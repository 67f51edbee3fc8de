"""Where a skill should be opened: the conditions of `precision` and `recall`, and the examples that decide them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from skillc.data.dataset import Dataset
from skillc.errors import SkillcError
from skillc.gates.functions import CONDITIONAL
from skillc.gates.terms import CallTerm, Term, calls, show_term
from skillc.metrics.meter import condition_holds
from skillc.plan.schema import Plan
from skillc.text import counted


def conditions(terms: Iterable[Term]) -> Iterator[CallTerm]:
    """Yield each call of `precision` or `recall`; its second argument is the condition."""
    for term in terms:
        yield from (call for call in calls(term) if call.function in CONDITIONAL)


def undecided(plan: Plan, dataset: Dataset, terms: Iterable[Term]) -> list[SkillcError]:
    """Return the conditions of gates that hold for all validation examples or for none, once each."""
    found: dict[str, SkillcError] = {}
    for call in conditions(terms):
        condition = call.arguments[1]
        examples = dataset.validation
        positive = sum(condition_holds(plan, condition, example) for example in examples)
        if 0 < positive < len(examples):
            continue
        all_or_none = "none" if not positive else "all"
        message = f"`{show_term(condition)}` holds for {all_or_none} of {counted(len(examples), 'validation example')}"
        missing = "examples of the skill" if not positive else "near misses, where the skill must stay closed"
        hint = f"add {missing}: `{call.function}` says nothing without them"
        found.setdefault(message, SkillcError(message, hint=hint))
    return list(found.values())


def check_decided(plan: Plan, dataset: Dataset) -> None:
    """Check the conditions of all gates before the first call.

    Raises:
        SkillcError: a condition holds for all validation examples, or for none.
    """
    for problem in undecided(plan, dataset, [gate.term for gate in plan.gates]):
        raise problem

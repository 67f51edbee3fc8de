"""Gates that can never hold or always do, that exclude each other, or that another one implies.

All gates of a candidate must hold, so together they are one condition. What `gates/prove.py` can't show in a limited
number of tries is not reported.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

from skillc.diagnostics.diagnostic import Diagnostic, Label
from skillc.gates.intervals import Interval
from skillc.gates.normal import Clause, Demand, Sum, TooMany, clauses
from skillc.gates.prove import Axioms, Prover, TooLarge
from skillc.gates.terms import CallTerm, Operation, StateTerm, Term, show_term
from skillc.language.checked import Checked, CheckedGate, CheckedMetric, Entity
from skillc.language.scope import largest_change
from skillc.lint.rules import note, warning
from skillc.text import joined, listed
from skillc.tokens import count_tokens

_MOST_GATES = 64
"""Gates that are held against each other: each is, with all others, so that the time grows with the square."""
_MOST_TRIED = 200
"""Combinations of alternatives that one program is tried for, so that `check` stays quick."""
_MOST_EACH = 128
"""Those of one question."""
_CHANGED = Demand(
    Sum({CallTerm("change", (StateTerm("candidate"),)): Fraction(1)}),
    True,
    CallTerm("change", (StateTerm("candidate"),)),
)
"""What each candidate does that is no mere move of rules."""


def judge_gates(checked: Checked) -> Iterator[Diagnostic]:
    """Yield what the gates and requires of a program can't do, alone and together."""
    skills = [entity for entity in checked.entities if entity.kind == "skill"]
    frozen = _frozen_tokens(skills)
    judge = _Judge(_axioms(checked.metrics, largest_change(skills), frozen), frozen)
    gates = checked.gates[:_MOST_GATES]
    if len(checked.gates) > _MOST_GATES:
        message = f"only the first {_MOST_GATES} of {len(checked.gates):,} gates were held against each other"
        hint = "from here on no contradiction and no repetition is looked for; join gates that ask for the same"
        yield note("SK518", checked.gates[_MOST_GATES], message, hint)
    settled = {gate.name for gate in gates if judge.settled(gate)}
    standing = [gate for gate in gates if gate.name not in settled]
    requires = [gate for gate in standing if gate.kind == "require"]
    ordinary = [gate for gate in standing if gate.kind == "gate" and gate.for_ is None]
    slow = [gate for gate in standing if gate.for_ == "slow"]
    for group in (ordinary, slow):
        for together in judge.related([*requires, *group]):
            if not judge.exclusive(together):
                judge.implied(together)
    yield from judge.found


def _axioms(metrics: Sequence[CheckedMetric], change: Fraction | None, least_tokens: int) -> Axioms:
    """What is known of the quantities of a program: every skill of a run has at least its frozen tokens."""
    functions = {"tokens": Interval.of(Fraction(least_tokens), None)}
    if change is not None:
        functions["change"] = Interval(Fraction(0), change)
    ranges = {metric.name: Interval.of(metric.low, metric.high) for metric in metrics}
    return Axioms(ranges, {metric.name: metric.term for metric in metrics}, functions)


def _frozen_tokens(skills: Sequence[Entity]) -> int:
    """Tokens that no edit takes away."""
    if len(skills) != 1:
        return 0
    texts = (child.value for child in skills[0].children if "frozen" in child.words)
    return sum(count_tokens(text) for text in texts if isinstance(text, str))


@dataclass(frozen=True, slots=True)
class _Case:
    """A gate by its alternatives."""

    gate: CheckedGate
    clauses: list[Clause]


def _excluded(prover: Prover, cases: Iterable[_Case]) -> bool:
    return prover.excluded(case.clauses for case in cases)


class _Judge:
    def __init__(self, axioms: Axioms, least_tokens: int) -> None:
        self.found: list[Diagnostic] = []
        self._prover = Prover(axioms, _MOST_TRIED, _MOST_EACH)
        self._least_tokens = least_tokens

    # ---- one gate ----

    def settled(self, gate: CheckedGate) -> bool:
        """Whether a gate is decided whatever the candidate does; says so."""
        try:
            case = clauses(gate.term)
            if self._prover.excluded([case]):
                self._can_never(gate, case)
            elif self._prover.excluded([clauses(gate.term, holds=False)]):
                hint = "remove it" if gate.kind == "require" else "remove it, or ask for more"
                message = f"the {gate.kind} `{gate.name}` always holds, so it protects nothing"
                self.found.append(warning("SK511", gate, message, hint))
            else:
                self._only_moves(gate, case)
                self._parts(gate, gate.term)
                return False
        except (TooMany, TooLarge):
            return False
        return True

    def _can_never(self, gate: CheckedGate, case: list[Clause]) -> None:
        message = f"the {gate.kind} `{gate.name}` can never hold"
        hint = f"{self._reason(case[0])}" if len(case) == 1 else "each of its alternatives excludes itself"
        self.found.append(warning("SK510", gate, message, hint))

    def _parts(self, gate: CheckedGate, term: Term) -> None:
        """Notes conditions within a gate that are settled, while the whole is not."""
        if not isinstance(term, Operation) or term.operator not in ("and", "or", "not"):
            return
        for part in term.operands:
            shown = f"`{show_term(part)}` in the {gate.kind} `{gate.name}`"
            if self._prover.excluded([clauses(part)]):
                self.found.append(note("SK510", gate, f"{shown} can never hold", "remove it"))
            elif self._prover.excluded([clauses(part, holds=False)]):
                self.found.append(note("SK511", gate, f"{shown} always holds", "remove it"))
            else:
                self._parts(gate, part)

    def _only_moves(self, gate: CheckedGate, case: list[Clause]) -> None:
        """Where no token may change, rules may still be moved, and empty sections written."""
        if not any("change" in show_term(demand.leaf) for clause in case for demand in clause):
            return
        if self._prover.excluded([case, [(_CHANGED,)]]):
            message = (
                f"the gate `{gate.name}` lets no edit through but one that moves a rule or adds to an empty section"
            )
            hint = "allow some change: `change(candidate) <= 30%`"
            self.found.append(warning("SK510", gate, message, hint))

    # ---- several ----

    def related(self, gates: Sequence[CheckedGate]) -> Iterable[list[CheckedGate]]:
        """The gates that speak of quantities which hang together; those that stand alone are left out."""
        parts: list[tuple[set[Term], list[CheckedGate]]] = []
        for gate in gates:
            try:
                spoken = {term for clause in clauses(gate.term) for demand in clause for term in demand.sum.weights}
            except TooMany:
                continue
            terms, joined = self._prover.axioms.related(spoken), [gate]
            apart = [part for part in parts if part[0].isdisjoint(terms)]
            for part in parts:
                if part not in apart:
                    terms, joined = terms | part[0], [*part[1], *joined]
            parts = [*apart, (terms, joined)]
        order = list(gates)
        return [sorted(joined, key=order.index) for _, joined in parts if len(joined) > 1]

    def exclusive(self, gates: Sequence[CheckedGate]) -> bool:
        """Whether some gates can't hold together; says which."""
        try:
            cases = [_Case(gate, clauses(gate.term)) for gate in gates]
            if len(cases) < 2 or not _excluded(self._prover, cases):
                return False
            least = self._least(cases)
            single = all(len(case.clauses) == 1 for case in least)
            together = tuple(demand for case in least for demand in case.clauses[0])
            hint = self._reason(together) if single else "loosen one of them"
        except (TooMany, TooLarge):
            return False
        *others, last = [case.gate for case in least]
        named = listed([gate.name for gate in (*others, last)], "and")
        message = f"{named} can't {'both' if len(others) == 1 else 'all'} hold, so no candidate passes"
        if len({gate.kind for gate in others} | {last.kind}) == 1:
            message = f"the gates {message}"
        labels = tuple(Label(gate.source, gate.span, f"this {gate.kind}") for gate in others)
        self.found.append(warning("SK512", last, message, hint, secondary=labels))
        return True

    def _least(self, cases: list[_Case]) -> list[_Case]:
        """As few of the cases as exclude each other already."""
        for case in list(cases):
            rest = [each for each in cases if each is not case]
            if _excluded(self._prover, rest):
                cases = rest
        return cases

    def implied(self, gates: Sequence[CheckedGate]) -> None:
        """Notes gates that hold wherever the others do; of two that say the same the later one."""
        standing = list(gates)
        for gate in reversed([each for each in gates if each.kind == "gate"]):
            others = [each for each in standing if each is not gate]
            try:
                by = self._implying(gate, others)
            except (TooMany, TooLarge):
                continue
            if by:
                standing = others
                named = listed([each.name for each in by], "and")
                message = f"the gate `{gate.name}` holds wherever {named} {'does' if len(by) == 1 else 'do'}"
                labels = tuple(Label(each.source, each.span, f"this {each.kind}") for each in by)
                hint = "remove it, or ask for more"
                self.found.append(note("SK513", gate, message, hint, secondary=labels))

    def _implying(self, gate: CheckedGate, others: Sequence[CheckedGate]) -> list[CheckedGate]:
        """The gates that a gate follows from; none where it may fail while they hold."""
        opposite = _Case(gate, clauses(gate.term, holds=False))
        cases = [_Case(each, clauses(each.term)) for each in others]
        if not cases or not _excluded(self._prover, [*cases, opposite]):
            return []
        for case in list(cases):
            rest = [each for each in cases if each is not case]
            if rest and _excluded(self._prover, [*rest, opposite]):
                cases = rest
        return [case.gate for case in cases]

    def _reason(self, clause: Clause) -> str:
        """The comparisons that exclude each other, as few as there are."""
        sources = sorted(self._prover.conflict(clause) or ())
        for each in list(sources):
            rest = [i for i in sources if i != each]
            if self._prover.conflict(tuple(clause[i] for i in rest)) is not None:
                sources = rest
        shown = list(dict.fromkeys(f"`{show_term(clause[i].leaf)}`" for i in sources))
        if len(shown) == 1 and self._least_tokens and "tokens(" in shown[0]:
            return f"the frozen sections alone have {self._least_tokens} tokens"
        if len(shown) == 1:
            return f"nothing can meet {shown[0]}"
        return f"{joined(shown)} exclude each other"

"""Gates that never or always hold, that exclude each other, or that follow from others.

All gates of a candidate must hold, so together they are one condition. What `gates/prove.py` can't prove within its
limits is not reported.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction

from skillc.diagnostics.diagnostic import Diagnostic, Label
from skillc.gates.intervals import Interval
from skillc.gates.normal import Clause, Constraint, Sum, TooMany, clauses
from skillc.gates.prove import Axioms, Prover, TooLarge
from skillc.gates.terms import CallTerm, Operation, StateTerm, Term, show_term
from skillc.language.checked import Checked, CheckedGate, CheckedMetric, Entity, of_kind
from skillc.language.scope import largest_change
from skillc.lint.rules import note, warning
from skillc.text import joined, listed
from skillc.tokens import count_tokens

_MOST_GATES = 64
"""Each gate is compared with all others, so the time grows with the square."""
_MOST_TRIED = 200
"""Combinations of alternatives to try for one program, so that `check` stays fast."""
_MOST_EACH = 128
"""Combinations to try for one proof."""
_CHANGE = CallTerm("change", (StateTerm("candidate"),))
_CHANGED = Constraint(Sum({_CHANGE: Fraction(1)}), True, _CHANGE)
"""Every candidate changes text, unless it only moves rules."""


def judge_gates(checked: Checked) -> Iterator[Diagnostic]:
    """Yield the findings on the gates and requires of a program, alone and together."""
    skills = of_kind(checked.entities, "skill")
    frozen = _frozen_tokens(skills)
    judge = _Judge(_axioms(checked.metrics, largest_change(skills), frozen), frozen)
    gates = checked.gates[:_MOST_GATES]
    if len(checked.gates) > _MOST_GATES:
        message = f"only the first {_MOST_GATES} of {len(checked.gates):,} gates were compared with each other"
        hint = "contradictions and repetitions of the others are not reported; join gates that ask for the same"
        yield note("SK518", checked.gates[_MOST_GATES], message, hint)
    undecided = [gate for gate in gates if not judge.decides(gate)]
    requires = [gate for gate in undecided if gate.kind == "require"]
    ordinary = [gate for gate in undecided if gate.kind == "gate" and gate.for_ is None]
    slow = [gate for gate in undecided if gate.for_ == "slow"]
    for group in (ordinary, slow):
        for together in judge.related([*requires, *group]):
            if not judge.exclusive(together):
                judge.note_implied(together)
    yield from judge.found


def _axioms(metrics: Sequence[CheckedMetric], change: Fraction | None, least_tokens: int) -> Axioms:
    functions = {"tokens": Interval.of(Fraction(least_tokens), None)}
    if change is not None:
        functions["change"] = Interval(Fraction(0), change)
    ranges = {metric.name: Interval.of(metric.low, metric.high) for metric in metrics}
    return Axioms(ranges, {metric.name: metric.term for metric in metrics}, functions)


def _frozen_tokens(skills: Sequence[Entity]) -> int:
    """Tokens that no edit removes."""
    if len(skills) != 1:
        return 0
    return sum(count_tokens(child.text) for child in skills[0].children if "frozen" in child.words)


_Case = tuple[CheckedGate, list[Clause]]
"""A gate and its alternatives."""


class _Judge:
    def __init__(self, axioms: Axioms, least_tokens: int) -> None:
        self.found: list[Diagnostic] = []
        self._prover = Prover(axioms, _MOST_TRIED, _MOST_EACH)
        self._least_tokens = least_tokens

    # ---- one gate ----

    def decides(self, gate: CheckedGate) -> bool:
        """Report a gate that never or always holds; return whether it is one."""
        try:
            case = clauses(gate.term)
            if self._prover.excluded([case]):
                hint = self._reason(case[0]) if len(case) == 1 else "each of its alternatives excludes itself"
                self.found.append(warning("SK510", gate, f"the {gate.kind} `{gate.name}` can never hold", hint))
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

    def _parts(self, gate: CheckedGate, term: Term) -> None:
        """Note parts of a condition that never or always hold, while the whole is open."""
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
        """Report a gate that allows no change of tokens, so that rules can only be moved and empty sections written."""
        if not any("change" in show_term(constraint.leaf) for clause in case for constraint in clause):
            return
        if self._prover.excluded([case, [(_CHANGED,)]]):
            message = f"the gate `{gate.name}` rejects every edit except moved rules and additions to empty sections"
            hint = "allow some change: `change(candidate) <= 30%`"
            self.found.append(warning("SK510", gate, message, hint))

    # ---- several ----

    def related(self, gates: Sequence[CheckedGate]) -> list[list[CheckedGate]]:
        """Group gates over related quantities; a gate alone in its group is left out."""
        groups: list[tuple[set[Term], list[CheckedGate]]] = []
        for gate in gates:
            try:
                named = {atom for clause in clauses(gate.term) for each in clause for atom in each.sum.weights}
            except TooMany:
                continue
            terms, members = self._prover.axioms.related(named), [gate]
            apart = [group for group in groups if group[0].isdisjoint(terms)]
            for group in groups:
                if group not in apart:
                    terms, members = terms | group[0], [*group[1], *members]
            groups = [*apart, (terms, members)]
        order = list(gates)
        return [sorted(members, key=order.index) for _, members in groups if len(members) > 1]

    def exclusive(self, gates: Sequence[CheckedGate]) -> bool:
        """Report gates that can't hold together; return whether there are any."""
        try:
            cases = [(gate, clauses(gate.term)) for gate in gates]
            if len(cases) < 2 or not self._excluded(cases):
                return False
            least = self._fewest(cases, [])
            single = all(len(alternatives) == 1 for _, alternatives in least)
            together = tuple(constraint for _, alternatives in least for constraint in alternatives[0])
            hint = self._reason(together) if single else "loosen one of them"
        except (TooMany, TooLarge):
            return False
        *others, last = [gate for gate, _ in least]
        named = listed([gate.name for gate in (*others, last)], "and")
        message = f"{named} can't {'both' if len(others) == 1 else 'all'} hold, so no candidate passes"
        if len({gate.kind for gate in others} | {last.kind}) == 1:
            message = f"the gates {message}"
        self.found.append(warning("SK512", last, message, hint, secondary=_labels(others)))
        return True

    def note_implied(self, gates: Sequence[CheckedGate]) -> None:
        """Note gates that hold wherever the others do; of two equivalent ones the later one."""
        kept = list(gates)
        for gate in reversed([each for each in gates if each.kind == "gate"]):
            others = [each for each in kept if each is not gate]
            try:
                premises = self._implying(gate, others)
            except (TooMany, TooLarge):
                continue
            if premises:
                kept = others
                named = listed([each.name for each in premises], "and")
                message = f"the gate `{gate.name}` holds wherever {named} {'does' if len(premises) == 1 else 'do'}"
                hint = "remove it, or ask for more"
                self.found.append(note("SK513", gate, message, hint, secondary=_labels(premises)))

    def _implying(self, gate: CheckedGate, others: Sequence[CheckedGate]) -> list[CheckedGate]:
        """The gates that a gate follows from; none if it may fail while they hold."""
        opposite = (gate, clauses(gate.term, holds=False))
        cases = [(each, clauses(each.term)) for each in others]
        if not cases or not self._excluded([*cases, opposite]):
            return []
        return [gate for gate, _ in self._fewest(cases, [opposite])]

    def _excluded(self, cases: Iterable[_Case]) -> bool:
        return self._prover.excluded(alternatives for _, alternatives in cases)

    def _fewest(self, cases: list[_Case], fixed: list[_Case]) -> list[_Case]:
        """As few of the cases as still exclude each other and the fixed ones."""
        for case in list(cases):
            rest = [each for each in cases if each is not case]
            if rest and self._excluded([*rest, *fixed]):
                cases = rest
        return cases

    def _reason(self, clause: Clause) -> str:
        """The fewest comparisons that exclude each other."""
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


def _labels(gates: Iterable[CheckedGate]) -> tuple[Label, ...]:
    return tuple(Label(gate.source, gate.span, f"this {gate.kind}") for gate in gates)

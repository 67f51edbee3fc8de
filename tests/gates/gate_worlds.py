"""Random gates and random worlds to decide them in, and a second evaluator that knows no intervals."""

from collections import Counter
from fractions import Fraction
from math import prod

from hypothesis import strategies as st

from skillc.gates.evidence import Evidence, MetricRange, SplitEvidence, TextEvidence
from skillc.gates.terms import CallTerm, Constant, FieldTerm, MeanTerm, MetricTerm, Operation, StateTerm, WordTerm
from skillc.outcomes import MICRO, Example, Scored, Unmeasured
from skillc.stats.subsets import SUBSETS, subset_sums

STATES = ("candidate", "incumbent", "best", "initial")
METRICS = {"m": MetricRange(0, MICRO), "wide": MetricRange(-2 * MICRO, 3 * MICRO)}
RUN = (("over", WordTerm("run")),)
PLANNED = 3
SEED = 7
DEAREST = 2000


# ---- gates ----------------------------------------------------------------------------------------


def p_values(columns, *, count, seed):
    """Of each column (1 + subsets whose sum is at most 0) / (subsets + 1)."""
    return [Fraction(1 + int((row <= 0).sum()), len(row) + 1) for row in subset_sums(columns, count, seed)]


def means():
    return st.builds(MeanTerm, st.sampled_from(STATES), st.sampled_from(sorted(METRICS)))


def moved():
    options = st.sampled_from([(), (("by", FieldTerm("f")),), (("on", WordTerm("batch")),)])
    names = st.sampled_from(["improved", "regressed"])
    return st.builds(lambda n, m, o: CallTerm(n, (MetricTerm(m),), o), names, st.sampled_from(sorted(METRICS)), options)


def sure():
    claim = st.builds(
        lambda o, m: Operation(o, (MeanTerm("candidate", m), MeanTerm("incumbent", m))),
        st.sampled_from([">", "<", ">="]),
        st.sampled_from(sorted(METRICS)),
    )
    tests = st.sampled_from(["confidence", "e_value"])
    return st.builds(lambda f, c, o: CallTerm(f, (c,), o), tests, claim, st.sampled_from([(), RUN]))


constants = st.fractions(min_value=-1, max_value=2, max_denominator=10).map(Constant)
texts = st.sampled_from(
    [CallTerm(f, (StateTerm("candidate"),)) for f in ("tokens", "change", "overlap", "cost")]
    + [CallTerm("cost", (StateTerm("incumbent"),))]
)
worst = st.builds(lambda m: CallTerm("worst", (m,), (("by", FieldTerm("f")),)), means())


def sums(parts):
    binary = st.builds(lambda o, a, b: Operation(o, (a, b)), st.sampled_from("+-*/"), parts, parts)
    calls = st.builds(lambda f, a, b: CallTerm(f, (a, b)), st.sampled_from(["min", "max"]), parts, parts)
    clamped = st.builds(
        lambda x, a, b: CallTerm("clamp", (x, *sorted((a, b), key=lambda c: c.value))), parts, constants, constants
    )
    return binary | calls | clamped | st.builds(lambda x: Operation("negate", (x,)), parts)


quantities = st.recursive(means() | moved() | worst | constants | texts | sure(), sums, max_leaves=3)
comparisons = st.builds(
    lambda o, a, b: Operation(o, (a, b)), st.sampled_from([">", ">=", "<", "<=", "==", "!="]), quantities, quantities
)


def logic(parts):
    both = st.builds(lambda o, a, b: Operation(o, (a, b)), st.sampled_from(["and", "or"]), parts, parts)
    return both | st.builds(lambda a: Operation("not", (a,)), parts)


gates = st.recursive(comparisons, logic, max_leaves=3)


# ---- worlds ---------------------------------------------------------------------------------------


def example(i, groups):
    return Example(f"e{i}", {}, {}, {"f": f"v{groups[i] % 3}"}, f"g{groups[i]}")


@st.composite
def worlds(draw, most_examples=8, most_samples=3, lost=20):
    """(examples, samples, cells, order of arrival, wave); about one candidate cell in `lost` stays unmeasured."""
    n, samples = draw(st.integers(1, most_examples)), draw(st.integers(1, most_samples))
    groups = draw(st.lists(st.integers(0, 4), min_size=n, max_size=n))
    cells = {}
    for state in STATES:
        for i in range(n):
            for sample in range(samples):
                values = {m: draw(st.integers(r.low // MICRO, r.high // MICRO)) * MICRO for m, r in METRICS.items()}
                missing = state == "candidate" and lost and draw(st.integers(0, lost - 1)) == 0
                cells[state, f"e{i}", sample] = {
                    m: Unmeasured("transport") if missing else Scored(v) for m, v in values.items()
                }
    order = draw(st.permutations([(f"e{i}", s) for i in range(n) for s in range(samples)]))
    return [example(i, groups) for i in range(n)], samples, cells, order, draw(st.integers(1, 4))


def price_of(item, sample):
    return 1000 + len(item.id) * sample


def evidence(examples, samples, cells, sent, batch=None):
    """What is known once the candidate's cells in `sent` have arrived; `sent` may grow behind its back."""

    def lookup(state, item, sample):
        if state == "candidate" and (item.id, sample) not in sent:
            return None
        return cells.get((state, item.id, sample))

    def price(state, item, sample):
        found = lookup(state, item, sample)
        lost = found is None or any(isinstance(cell, Unmeasured) for cell in found.values())
        return None if lost else price_of(item, sample)

    split = SplitEvidence(tuple(examples), samples, lookup, METRICS, price, DEAREST)
    seen = SplitEvidence(tuple(examples[:3] if batch is None else batch), 1, lookup, METRICS, price, DEAREST)
    read = TextEvidence(dict.fromkeys(STATES, 40), Fraction(1, 5), dict.fromkeys(STATES, Fraction(1, 8)))
    return Evidence(split, seen, read, planned=PLANNED, seed=SEED)


# ---- exact evaluation -----------------------------------------------------------------------------


class UndefinedError(Exception):
    """A division by zero: no value, so no truth."""


class Exact:
    """Gates over complete cells, by plain numbers: what the intervals have to agree with."""

    def __init__(self, examples, samples, cells, smallest_group):
        self.examples, self.samples, self.cells, self.smallest = examples, samples, cells, smallest_group

    def holds(self, term):
        if term.operator in ("and", "or"):
            parts = [self.holds(part) for part in term.operands]
            return all(parts) if term.operator == "and" else any(parts)
        if term.operator == "not":
            return not self.holds(term.operands[0])
        a, b = (self.value(part) for part in term.operands)
        return {">": a > b, ">=": a >= b, "<": a < b, "<=": a <= b, "==": a == b, "!=": a != b}[term.operator]

    def value(self, term):
        if isinstance(term, Constant):
            return term.value
        if isinstance(term, MeanTerm):
            return self.mean([self.x(term.state, term.metric, e) for e in self.examples])
        if isinstance(term, Operation):
            return self.sum(term)
        return getattr(self, f"on_{term.function}")(term)

    def sum(self, term):
        parts = [self.value(part) for part in term.operands]
        if term.operator == "negate":
            return -parts[0]
        a, b = parts
        if term.operator == "/":
            if b == 0:
                raise UndefinedError
            return a / b
        return {"+": a + b, "-": a - b, "*": a * b}[term.operator]

    def x(self, state, metric, item, samples=None):
        count = samples or self.samples
        return Fraction(sum(self.cells[state, item.id, s][metric].value for s in range(count)), count * MICRO)

    @staticmethod
    def mean(values):
        return sum(values) / Fraction(len(values))

    def by_field(self, items):
        groups = {}
        for item in items:
            groups.setdefault(item.fields["f"], []).append(item)
        small = [item for group in groups.values() if len(group) < self.smallest for item in group]
        large = [group for group in groups.values() if len(group) >= self.smallest]
        return [*large, *([small] if small else [])]

    def on_min(self, term):
        return min(self.value(part) for part in term.arguments)

    def on_max(self, term):
        return max(self.value(part) for part in term.arguments)

    def on_clamp(self, term):
        x, low, high = (self.value(part) for part in term.arguments)
        return max(low, min(x, high))

    def moves(self, term):
        metric, sign = term.arguments[0].name, 1 if term.function == "improved" else -1
        batch = term.option("on") is not None
        items, count = (self.examples[:3], 1) if batch else (self.examples, self.samples)
        change = {
            i.id: max(
                Fraction(0), sign * (self.x("candidate", metric, i, count) - self.x("incumbent", metric, i, count))
            )
            for i in items
        }
        if term.option("by") is None:
            return [self.mean(list(change.values()))]
        return [self.mean([change[item.id] for item in group]) for group in self.by_field(items)]

    def on_improved(self, term):
        return min(self.moves(term))

    def on_regressed(self, term):
        return max(self.moves(term))

    def on_worst(self, term):
        of = term.arguments[0]
        return min(self.mean([self.x(of.state, of.metric, i) for i in g]) for g in self.by_field(self.examples))

    def on_tokens(self, term):
        return Fraction(40)

    def on_change(self, term):
        return Fraction(1, 5)

    def on_overlap(self, term):
        return Fraction(1, 8)

    def on_cost(self, term):
        cells = [price_of(item, s) for item in self.examples for s in range(self.samples)]
        return Fraction(sum(cells), len(cells) * 10**9)

    def differences(self, term):
        claim = term.arguments[0]
        above, below = claim.operands if claim.operator in (">", ">=") else claim.operands[::-1]
        by_group = {}
        for item in self.examples:
            difference = self.x(above.state, above.metric, item) - self.x(below.state, below.metric, item)
            by_group[item.group] = by_group.get(item.group, 0) + int(difference * MICRO * self.samples)
        return above.metric, by_group

    def on_e_value(self, term):
        metric, by_group = self.differences(term)
        whole, sizes = METRICS[metric], Counter(item.group for item in self.examples)
        width = (whole.high - whole.low) * self.samples * max(sizes.values())
        bets = [Fraction(i, 8) for i in range(1, 8)]
        paid = sum(prod(1 + bet * Fraction(each, width) for each in by_group.values()) for bet in bets)
        return paid / len(bets) / (PLANNED if term.option("over") else 1)

    def on_confidence(self, term):
        _, by_group = self.differences(term)
        import hashlib

        seed = hashlib.sha256(f"confidence {SEED}".encode()).digest()
        (p,) = p_values([[by_group[name] for name in sorted(by_group)]], count=SUBSETS, seed=seed)
        return 1 - min(Fraction(1), p * (PLANNED if term.option("over") else 1))

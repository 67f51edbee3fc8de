"""What the figures of a plan give reason to say."""

import math
import random
from dataclasses import replace
from fractions import Fraction

import pytest
from plan_samples import BETTER, PRICES, SAFE, SIZES, checked, plan

from skillc.budget.bounds import bounds
from skillc.budget.spend import Sizes
from skillc.diagnostics.codes import CODES
from skillc.diagnostics.codes.code import program, trivia
from skillc.diagnostics.diagnostic import Severity
from skillc.frontend import estimate, plan_file
from skillc.gates.terms import CallTerm, Constant, MeanTerm, Operation, StateTerm, WordTerm
from skillc.lint.plan import margin_of
from skillc.lint.rules import PlanFacts, lint
from skillc.plan.schema import GatePlan
from skillc.stats.power import chance_of_accept, inflation, null_run, smallest_gain


def found(program=None, sizes=SIZES, prices=PRICES):
    program = program or plan()
    return {d.code: d for d in lint(PlanFacts(checked(), program, bounds(program, sizes, prices)))}


def gate(term, name="g", stage="validation"):
    return GatePlan(name=name, term=term, text="", stage=stage)


def test_a_quiet_program_has_one_note():
    assert [d.severity for d in found(plan(budget={"cost": None})).values()] == [Severity.NOTE]


def test_a_budget_below_the_least_is_an_error_that_shows_the_sum():
    error = found(plan(budget={"calls": 500}))["SK501"]
    assert error.severity is Severity.ERROR
    assert error.message == (
        "the budget allows 500 calls, and a run with a result takes preflight 2 + baseline 80 + 3 decisions x "
        "(40 rollouts + 5 reflections + 80 validation) + final test 2 x 160 = 777 calls"
    )
    assert error.hint == "write `calls = 777` or more"


@pytest.mark.parametrize(
    ("cap", "low", "unit"), [("tokens", 9_000, " tokens"), ("cost", Fraction(1, 100), "$"), ("calls", 776, " calls")]
)
def test_each_cap_is_held_against_the_least(cap, low, unit):
    error = found(plan(budget={"cost": None, cap: low}))["SK501"]
    assert unit in error.message
    assert "3 decisions x" in error.message


def test_the_least_itself_would_do():
    assert "SK501" not in found(plan(budget={"calls": 777}))


def test_a_budget_below_the_estimate_is_a_warning():
    warning = found(plan(budget={"calls": 777, "cost": None}))["SK551"]
    assert warning.severity is Severity.WARNING
    assert "777 calls" in warning.message
    assert "SK551" not in found(plan(budget={"calls": 100_000, "cost": None}))


def test_the_suggested_budgets_would_do():
    least = bounds(plan(), SIZES, PRICES).minimum.total
    hint = found(plan(budget={"tokens": 10, "cost": None}))["SK501"].hint
    assert int(hint.split("= ")[1].partition("`")[0]) >= least.tokens
    hint = found(plan(budget={"cost": Fraction(1, 1000)}))["SK501"].hint
    assert Fraction(hint.split("$")[1].partition("`")[0]) >= least.cost


def test_an_unknown_price_under_a_cap_on_cost_is_an_error():
    unknown = {**PRICES, "optimizer": None}
    error = found(prices=unknown)["SK651"]
    assert error.severity is Severity.ERROR
    assert "`openai/large`" in error.message
    assert "price { input" in error.hint
    assert "SK651" not in found(plan(budget={"cost": None}), prices=unknown)


def test_patience_above_the_steps_there_are():
    assert "16" in found(plan(budget={"patience": 17}))["SK507"].message
    assert "SK507" not in found(plan(budget={"patience": 16}))


def test_a_batch_larger_than_train():
    assert "SK553" in found(plan(optimize={"batch": 161}))
    assert "SK553" not in found(plan(optimize={"batch": 160}))


def test_the_smallest_group_of_a_gate_is_named():
    note = found(plan(gates=(gate(SAFE),)))["SK554"]
    assert "`other`, has 6 examples" in note.message
    assert note.hint == "one regression there is 17 %"
    assert "SK554" not in found(plan(gates=(gate(SAFE),)), replace(SIZES, values={"product": {"a": 40, "b": 40}}))


def test_chance_in_the_targets_answers_asks_for_samples():
    target = plan().models["target"].model_copy(update={"parameters": {"temperature": 0.7}})
    warm = {**plan().models, "target": target}
    assert "samples = 2" in found(plan(models=warm))["SK555"].hint
    assert "SK555" not in found(plan(models=warm, optimize={"samples": 2}))
    assert "SK555" not in found()


def test_a_gate_over_an_unbounded_quantity():
    slow = Operation("<", (CallTerm("latency", (StateTerm("candidate"),)), Constant(Fraction(1), "s")))
    assert found(plan(gates=(gate(BETTER), gate(slow, "quick"))))["SK504"].severity is Severity.NOTE


def test_a_gate_on_cost_needs_a_price():
    cost = Operation("<", (CallTerm("cost", (StateTerm("candidate"),)), Constant(Fraction(1), "$")))
    gates = (gate(BETTER), gate(cost, "cheap"))
    assert "SK504" not in found(plan(gates=gates))
    unpriced = found(plan(gates=gates), prices={**PRICES, "target": None})["SK504"]
    assert (unpriced.severity, "is unknown" in unpriced.message) == (Severity.WARNING, True)


def test_a_test_split_that_can_show_nothing():
    assert "unverified" in found(sizes=replace(SIZES, test=0, groups=0))["SK561"].message
    assert "SK561" in found(sizes=replace(SIZES, groups=5))
    assert "SK561" not in found(sizes=replace(SIZES, groups=6))


def test_a_budget_that_lets_only_few_calls_fly():
    assert "SK562" in found(plan(budget={"cost": Fraction(3, 5)}))


def test_a_wave_as_large_as_the_split():
    assert "SK567" in found(plan(optimize={"wave": 60}))


def test_a_tolerance_that_adds_up():
    incumbent = Operation("-", (MeanTerm("incumbent", "correct"), Constant(Fraction(1, 100))))
    loose = gate(Operation(">=", (MeanTerm("candidate", "correct"), incumbent)), "loose")
    warning = found(plan(gates=(loose,)))["SK568"]
    assert "1 point," in warning.message
    anchored = gate(Operation(">=", (MeanTerm("candidate", "correct"), MeanTerm("initial", "correct"))))
    assert "SK568" not in found(plan(gates=(loose, anchored)))
    assert "SK568" not in found(plan(gates=(loose, gate(BETTER))))


def test_errors_come_first(tmp_path):
    text = program("optimize { batch = 64 }").replace("epochs = 4", "epochs = 4; calls = 120; patience = 99 steps")
    (tmp_path / "trivia.skill").write_text(text)
    (tmp_path / "trivia.jsonl").write_text(trivia(100))
    severities = [each.severity for each in estimate(plan_file(tmp_path / "trivia.skill")).diagnostics]
    assert severities == sorted(severities, key=list(Severity).index)
    assert set(severities) == set(Severity)


def test_every_code_is_registered():
    program = plan(budget={"calls": 5, "patience": 99}, optimize={"batch": 400, "wave": 79})
    every = list(lint(PlanFacts(checked(), program, bounds(program, SIZES, {"target": None}))))
    assert {d.code for d in every} <= set(CODES)
    for d in every:
        assert not d.message.endswith(".")
        assert d.message[0].islower() or d.message[0] == "`"


def test_tiny_data_is_no_reason_to_fall_over():
    tiny = Sizes(train=1, validation=1, test=0)
    assert "SK561" in found(sizes=tiny)


# ---- chance -----------------------------------------------------------------------------------------


def test_chance_agrees_with_the_simulations_of_the_engine():
    """Forty nulls, 98 % for strict `>`, 46 % at 95 % confidence, 8 points at 200 examples."""
    assert chance_of_accept(40, 0) == pytest.approx(0.98, abs=0.01)
    assert chance_of_accept(40, 1.645) == pytest.approx(0.46, abs=0.03)
    assert inflation(null_run(40, 0), 200) == pytest.approx(0.08, abs=0.005)


@pytest.mark.parametrize("candidates", [1, 2, 9, 99])
def test_strict_gates_accept_a_null_unless_the_incumbent_is_the_luckiest(candidates):
    assert chance_of_accept(candidates, 0) == pytest.approx(candidates / (candidates + 1), abs=1e-6)


@pytest.mark.parametrize(("candidates", "margin"), [(1, 0.0), (24, 0.0), (24, 0.5), (40, 1.645), (10, -0.5)])
def test_the_nulls_that_a_plan_expects_are_those_of_a_simulation(candidates, margin):
    draw = random.Random(f"{candidates} {margin}")
    accepts, luck = [], []
    for _ in range(6_000):
        incumbent, count = draw.gauss(0, 1), 0
        for _ in range(candidates):
            candidate = draw.gauss(0, 1)
            if candidate > incumbent + math.sqrt(2) * margin:
                incumbent, count = candidate, count + 1
        accepts.append(count)
        luck += [incumbent] if count else []
    run = null_run(candidates, margin)
    assert run.accepts == pytest.approx(sum(accepts) / len(accepts), abs=0.07)
    assert chance_of_accept(candidates, margin) == pytest.approx(sum(a > 0 for a in accepts) / len(accepts), abs=0.03)
    assert run.luck == pytest.approx(sum(luck) / len(luck), abs=0.1)


def test_runs_without_end_are_followed_as_far_as_they_matter():
    assert null_run(10_000, 0).accepts == pytest.approx(math.log(10_001) + 0.5772 - 1, abs=1e-3)
    assert null_run(10_000, 1.645).accepts < null_run(10_000, 0).accepts


def exact_power(pairs, differing, gain):
    """The chance that McNemar's exact test, one-sided at 2.5 %, shows a gain: what the verdict does on 0/1 scores."""

    def share(n, k, p):
        return math.comb(n, k) * p**k * (1 - p) ** (n - k)

    power = 0.0
    for flips in range(1, pairs + 1):
        weight = share(pairs, flips, differing)
        if weight < 1e-7:
            continue
        losses, below = -1, 0.0
        while (below := below + share(flips, losses + 1, 0.5)) <= 0.025:
            losses += 1
        worse = (differing - gain) / 2 / differing
        power += weight * sum(share(flips, k, worse) for k in range(losses + 1))
    return power


@pytest.mark.parametrize(("pairs", "differing"), [(80, 0.25), (120, 0.25), (240, 0.25), (400, 0.1), (400, 0.5)])
def test_the_smallest_gain_is_shown_in_eight_of_ten_runs(pairs, differing):
    assert exact_power(pairs, differing, smallest_gain(pairs, differing)) == pytest.approx(0.8, abs=0.02)


def test_later_looks_and_fewer_examples_show_less_and_no_gain_exceeds_what_differs():
    assert smallest_gain(200, look=3) > smallest_gain(200) > smallest_gain(400)
    assert smallest_gain(6, 0.1) == 0.1


def test_margins_are_read_from_gates():
    ahead = Operation(
        ">",
        (
            MeanTerm("candidate", "correct"),
            Operation("+", (MeanTerm("incumbent", "correct"), Constant(Fraction(1, 50)))),
        ),
    )
    turned = Operation("<", tuple(reversed(BETTER.operands)))
    sure = Operation(">=", (CallTerm("confidence", (BETTER,)), Constant(Fraction(19, 20))))
    over_run = Operation(
        ">=", (CallTerm("confidence", (BETTER,), (("over", WordTerm("run")),)), Constant(Fraction(19, 20)))
    )

    def margin(term):
        return margin_of([gate(term)], lambda metric: Fraction(1), 200, 40)

    assert margin(BETTER) == margin(turned) == 0
    assert margin(ahead) == pytest.approx(0.02 * 20)
    assert margin(sure) == pytest.approx(1.645, abs=1e-3)
    assert margin(over_run) == pytest.approx(3.02, abs=0.01)
    assert margin(Operation("and", (BETTER, sure))) == margin(sure)
    bet, shared = (
        Operation(">=", (CallTerm("e_value", (BETTER,), options), Constant(Fraction(20))))
        for options in ((), (("over", WordTerm("run")),))
    )
    assert "SK557" in found(plan(gates=(gate(bet),)))
    assert "SK557" not in found(plan(gates=(gate(shared),)))
    # 50 discordant pairs of 200 examples: 35 must be better, or 39 where 40 decisions share the error.
    assert margin(bet) == pytest.approx(20 / 50**0.5)
    assert margin(shared) == pytest.approx(28 / 50**0.5)
    assert margin(SAFE) is None
    assert "no gate asks for a higher mean" in found(plan(gates=(gate(SAFE),)))["SK557"].message


def test_a_setting_that_another_one_leaves_without_effect():
    back = {"rollback": Fraction(1, 20)}
    assert "`accept = always`" in found(plan(optimize=back))["SK569"].hint
    assert "SK569" not in found(plan(optimize={**back, "accept": "always"}))


def test_a_billion_candidates_are_reckoned_at_once():
    from skillc.stats.power import null_run

    exact = sum(1 / i for i in range(2, 5002))
    assert abs(null_run(5000, 0).accepts - exact) < 1e-9
    assert 20 < null_run(10**18, 0).accepts < 50

from fractions import Fraction

from skillc.optimize.schedule import Patience


def replay(patience, steps):
    for number, (result, goal) in enumerate(steps, 1):
        patience = patience.after(result, goal)
        if patience.reason:
            return number, patience.reason
    return None, None


def test_the_published_curve_stops_at_56():
    """Best at step 36 of 80, patience 20, threshold 0.001."""
    curve = [
        ("accept", Fraction(50 + i, 100)) if i % 4 == 0 and i <= 36 else ("reject", Fraction(0)) for i in range(1, 81)
    ]
    start = Patience(limit=20, min_gain=Fraction(1, 1000), reference=Fraction(1, 2))
    assert replay(start, curve) == (56, "patience")


def test_gains_below_the_minimum_do_not_start_anew_but_add_up():
    start = Patience(limit=3, min_gain=Fraction(2, 100), reference=Fraction(1, 2))
    small = [("accept", Fraction(51, 100)), ("accept", Fraction(52, 100)), ("reject", Fraction(52, 100))]
    after = start
    for result, goal in small:
        after = after.after(result, goal)
    assert after.waited == 1
    assert after.reference == Fraction(52, 100)


def test_undecided_steps_are_free_until_three_in_a_row():
    start = Patience(limit=2, min_gain=Fraction(0), reference=Fraction(0))
    after = start.after("undecided", Fraction(0)).after("undecided", Fraction(0))
    assert (after.waited, after.reason) == (0, None)
    assert after.after("undecided", Fraction(0)).reason == "undecided"
    assert after.after("reject", Fraction(0)).undecided == 0

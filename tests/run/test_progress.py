import io

from rich.console import Console

from skillc.run.progress import Terminal, decision_line

DECIDED = {
    "place": "step 3/24",
    "gains": 2,
    "losses": 1,
    "evaluated": 48,
    "of": 118,
    "goal": {"incumbent": "0.703", "candidate": ["0.2", "0.703"]},
}
REJECT = {**DECIDED, "result": "reject", "blame": "better", "brief": "at best 70.3 %, needs more than 70.3 %"}
ACCEPT = {**DECIDED, "result": "accept", "blame": None}


def printed(*told):
    """What a terminal shows of decisions and completions."""
    out = io.StringIO()
    terminal = Terminal(Console(file=out, width=160), spent=lambda: "")
    for name, record in told:
        getattr(terminal, name)(record)
    return out.getvalue()


def test_a_reject_shows_the_gate_with_the_values_under_it():
    line = decision_line(REJECT).plain
    assert "70.3 %" in line
    assert line.endswith("+2 −1 on 48 of 118   gate `better` failed: at best 70.3 %, needs more than 70.3 %")


def test_an_accept_that_came_early_shows_the_least_and_then_the_whole():
    shown = printed(("decided", ACCEPT), ("completed", {"completed": 3, "goal": "0.75"}))
    first, second = shown.splitlines()
    assert "70.3 % →  20.0+ %" in first
    assert second.strip() == "=  75.0 % on all of validation"


def test_an_accept_on_all_evidence_has_one_line():
    whole = {**ACCEPT, "goal": {"incumbent": "0.703", "candidate": "0.75"}}
    shown = printed(("decided", whole), ("completed", {"completed": 3, "goal": "0.75"}))
    assert len(shown.splitlines()) == 1
    assert "75.0 %" in shown


def test_candidates_of_a_pool_have_numbers_and_an_undecided_gate_its_values():
    lost = {
        **DECIDED,
        "result": "undecided",
        "reason": "rollouts stayed unmeasured",
        "brief": "70 % to 80 %, needs more than 75 %",
    }
    line = decision_line({**lost, "pool": {"candidate": 2, "of": 3}}).plain
    assert line.startswith("  step 3/24 #2")
    assert line.endswith("rollouts stayed unmeasured: 70 % to 80 %, needs more than 75 %")

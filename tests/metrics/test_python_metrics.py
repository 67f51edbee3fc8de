import sys

import pytest
from metric_plans import example, metric, plan, python

from skillc.errors import SkillcError
from skillc.metrics.meter import Meter, MetricError, metric_sources
from skillc.trajectories.trajectory import Trajectory
from skillc.user_code import load_function


@pytest.fixture(autouse=True)
def _modules_of_one_test():
    yield
    for name in ("own", "helper", "deep", "later", "leaves", "broken"):
        sys.modules.pop(name, None)


def write(folder, **modules):
    folder.mkdir(exist_ok=True)
    for name, text in modules.items():
        (folder / f"{name}.py").write_text(text)
    return folder


def measure(root, name="own:m", *, term=None, item=None, low=0, high=1, prediction=None):
    one = metric("m", term or python(name), low=low, high=high)
    measured = Meter(plan(one), root).measure(item or example(), Trajectory(answer=prediction or {"team": "x"}))
    return measured.cells["m"].value, measured.feedback


@pytest.mark.parametrize(
    ("result", "micro", "feedback"),
    [
        ("True", 1_000_000, ""),
        ("0.1 + 0.2", 300_000, ""),
        ("1 / 3", 333_333, ""),
        ("(0.5, 'half')", 500_000, "half"),
        ("__import__('types').SimpleNamespace(score=0.25, feedback='a quarter')", 250_000, "a quarter"),
        ("{'score': 1, 'feedback': None}", 1_000_000, ""),
        ("__import__('decimal').Decimal('0.7')", 700_000, ""),
        ("__import__('fractions').Fraction(2, 3)", 666_667, ""),
        ("__import__('numpy').bool_(True)", 1_000_000, ""),
        ("__import__('numpy').float32(0.5)", 500_000, ""),
        ("__import__('numpy').int64(1)", 1_000_000, ""),
    ],
)
def test_what_a_function_may_give(result, micro, feedback, tmp_path):
    write(tmp_path, own=f"def m(example, prediction):\n    return {result}\n")
    assert measure(tmp_path) == (micro, feedback)


@pytest.mark.parametrize(
    ("result", "message"),
    [
        ("float('nan')", "`nan` is not a finite number"),
        ("float('inf')", "`inf` is not a finite number"),
        ("1e305", "OverflowError"),
        ("1.5", "1.5 is outside the range 0 to 1"),
        ("'0.5'", "a score must be a number, not str"),
        ("None", "a score must be a number, not NoneType"),
        ("1 / 0", "ZeroDivisionError"),
        ("example['zzz']", "KeyError: 'zzz'"),
    ],
)
def test_what_stops_the_run(result, message, tmp_path):
    write(tmp_path, own=f"def m(example, prediction):\n    return {result}\n")
    with pytest.raises(MetricError) as caught:
        measure(tmp_path)
    assert message in caught.value.message
    assert "`m` on example `t001`" in caught.value.message


def test_the_declared_range_is_the_functions_own_whatever_is_made_of_it(tmp_path):
    from fractions import Fraction

    from skillc.gates.terms import Constant, Operation

    write(tmp_path, own="def m(example, prediction):\n    return 1.5\n")
    halved = Operation("*", (Constant(Fraction(1, 2)), python("own:m")))
    with pytest.raises(MetricError, match=r"1\.5 is outside the range 0 to 1"):
        measure(tmp_path, term=halved)
    assert measure(tmp_path, term=python("own:m", low=0, high=2), high=2) == (1_500_000, "")


def test_a_score_out_of_range_says_how_to_declare_the_range(tmp_path):
    write(tmp_path, own="def m(example, prediction):\n    return 1.5\n")
    with pytest.raises(MetricError) as caught:
        measure(tmp_path)
    assert caught.value.message == (
        "the metric `m` on example `t001`: 1.5 is outside the range 0 to 1\n"
        '  ticket = "a ticket"\n  gold.team = "billing"\n  answer.team = "x"'
    )
    assert caught.value.hint == "declare the range with `low = ...` and `high = ...`, or use `clamp`"


def test_a_function_sees_inputs_fields_gold_and_the_answer(tmp_path):
    write(tmp_path, own="def m(e, p):\n    return 0, repr((e['ticket'], e['weight'], e['gold'], e['id'], p))\n")
    _, told = measure(tmp_path, item=example(weight=2))
    assert told == repr(("a ticket", 2, {"team": "billing"}, "t001", {"team": "x"}))


def test_a_function_cannot_change_the_example(tmp_path):
    write(tmp_path, own="def m(e, p):\n    e['gold']['team'].append(1); p['team'].append(1)\n    return 1\n")
    item, prediction = example(gold=["a"]), {"team": ["a"]}
    measure(tmp_path, item=item, prediction=prediction)
    assert (item.gold, prediction) == ({"team": ["a"]}, {"team": ["a"]})


def test_the_programs_folder_is_on_the_path_only_while_importing(tmp_path):
    write(tmp_path, own="import sys\nat_import = list(sys.path)\ndef m(e, p):\n    return 1\n")
    before = list(sys.path)
    function = load_function("own:m", tmp_path, "metric")
    assert function.__globals__["at_import"][0] == str(tmp_path.resolve())
    assert sys.path == before


def test_two_programs_may_name_their_modules_alike(tmp_path):
    one = write(tmp_path / "one", own="import helper\ndef m(e, p):\n    return helper.x\n", helper="x = 0.25\n")
    two = write(tmp_path / "two", own="import helper\ndef m(e, p):\n    return helper.x\n", helper="x = 0.75\n")
    assert measure(one)[0] == 250_000
    assert measure(two)[0] == 750_000
    assert measure(one)[0] == 250_000


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("own", "`own` is not a function's name"),
        ("own:", "`own:` is not a function's name"),
        ("own:zzz", "the module `own` has no function `zzz`"),
        ("own:x", "the module `own` has no function `x`"),
        ("zzz_missing:m", "the module `zzz_missing` of the metric `zzz_missing:m` cannot be imported"),
        ("broken:m", "SyntaxError"),
        ("leaves:m", "SystemExit"),
    ],
)
def test_a_function_that_cannot_be_had_is_a_message(name, message, tmp_path):
    write(tmp_path, own="x = 1\n", broken="def\n", leaves="raise SystemExit(1)\n")
    with pytest.raises(SkillcError) as caught:
        load_function(name, tmp_path, "metric")
    assert message in caught.value.message


def test_the_source_of_a_metric_holds_the_files_that_it_imports(tmp_path):
    write(
        tmp_path,
        own="import helper\nfrom deep import *\ndef m(e, p):\n    import later\n    return 1\n",
        helper="",
        later="",
        deep="",
        other="",
    )
    found = [metric_sources(plan(metric("m", python("own:m"))), tmp_path)]
    for name in ("own", "helper", "deep", "later"):
        path = tmp_path / f"{name}.py"
        path.write_text(path.read_text() + "# changed\n")
        found.append(metric_sources(plan(metric("m", python("own:m"))), tmp_path))
    (tmp_path / "other.py").write_text("# changed\n")
    assert metric_sources(plan(metric("m", python("own:m"))), tmp_path) == found[-1]
    assert len({tuple(digests.items()) for digests in found}) == 5
    assert list(found[0]) == ["own:m"]
    assert metric_sources(plan(metric("m", python("json:dumps"))), tmp_path).keys() == {"json:dumps"}

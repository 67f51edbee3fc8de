"""The peers' methods under the loop's ledger, gates and verdict."""

import gc
import hashlib
import importlib.util
import json
import sys
from functools import cache
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "cli"))

from conftest_cli import PROGRAM, rows

from skillc.errors import SkillcError
from skillc.frontend import estimate, plan_file
from skillc.models.client import Client
from skillc.models.failures import CallFailed
from skillc.optimize.host import SilentObserver
from skillc.optimize.methods import dspy_optimizers
from skillc.pipeline.compile import Job, compile_job
from skillc.run.history import read_history
from skillc.run.stop import Stop

NEEDS = {"gepa": "gepa", "miprov2": "optuna"}
METHODS = [
    pytest.param(
        name,
        marks=pytest.mark.skipif(
            name in NEEDS and importlib.util.find_spec(NEEDS[name]) is None, reason=f"{NEEDS.get(name)} is missing"
        ),
    )
    for name in ("gepa", "miprov2", "one_shot")
]
every_method = pytest.mark.parametrize("method", METHODS)


class Spy(Client):
    """Keeps every call, may fail some, and may answer for the optimizer."""

    def __init__(self, plan, fails=None, says=None):
        super().__init__(plan, cache_folder=None)
        self.calls = []
        self._fails = fails
        self._says = says

    async def _complete(self, call):
        text = "\n".join(str(message.content) for message in call.messages)
        self.calls.append((call.role, call.stage, text))
        if self._fails and self._fails(call.role, call.stage, text, len(self.calls)):
            raise CallFailed("transient", "the server is down")
        done = await super()._complete(call)
        if self._says and call.role == "optimizer":
            from dataclasses import replace

            return replace(done, text=self._says(text))
        return done


class Impatient(SilentObserver):
    """Wants to stop once a number of rollouts are done."""

    def __init__(self, after, why):
        super().__init__()
        self._left = after
        self._why = why

    def advance(self, count=1):
        self._left -= count

    def stop_wanted(self):
        return self._why if self._left <= 0 else None


class Presser(SilentObserver):
    """Presses Ctrl-C once a number of rollouts are done."""

    def __init__(self, after, stop):
        super().__init__()
        self._left = after
        self._stop = stop

    def advance(self, count=1):
        self._left -= count
        if self._left == 0:
            self._stop.ask()


def compiled(folder, method, *settings, fails=None, says=None, observer=None, program=PROGRAM, stop=None):
    """A compile in this process: what it gave, the calls, what was told, the estimate."""
    folder.mkdir(exist_ok=True)
    (folder / "things.skill").write_text(program)
    (folder / "things.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows()))
    planned = plan_file(
        folder / "things.skill", settings=("budget.steps=2", *settings, f"optimize.method={method}"), runnable=True
    )
    estimated = estimate(planned)
    spy, watch = Spy(planned.plan, fails, says), observer or SilentObserver()
    job = Job(planned, estimated, folder / "skills", folder / ".skillc")
    try:
        return compile_job(job, watch, spy, stop), spy, watch, estimated
    finally:
        spy.close()


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A compile with a method, made once: as `compiled`, and its folder."""

    @cache
    def made(method):
        folder = tmp_path_factory.mktemp(method)
        return *compiled(folder, method), folder

    return made


def spent(result):
    return {(line["role"], line["stage"]): line for line in result.spent["charged"]["lines"]}


@every_method
@pytest.mark.quick_cases(1)
def test_a_methods_result_is_one_decision_with_the_usual_lock_history_and_verdict(whole, method):
    result, _, watch, _, folder = whole(method)
    assert len(watch.decisions) == result.trained.state.decisions == 1
    (record,) = watch.decisions
    assert record["kind"] == method
    assert record["result"] in ("accept", "reject")
    assert set(record["gates"]) <= {"better", "compact"}
    (written,) = read_history(folder / "skills" / "sort-things.history.jsonl")
    assert written["candidate"] == record["candidate"]
    assert result.lock.stopped == "method after decision 1"
    assert result.lock.verdict in ("improved", "worse", "no significant gain")
    if record["result"] == "accept":
        assert result.lock.skill.best == record["candidate"]
        assert result.lock.test.n == len(result.trained.engine.dataset.test)


@every_method
@pytest.mark.quick_cases(1)
def test_calls_are_booked_by_role_and_stage_and_stay_within_the_bounds(whole, method):
    result, _, watch, estimated, _ = whole(method)
    lines, bounds = spent(result), {stage.name: stage.bound for stage in estimated.bounds.stages}
    assert lines["target", "baseline"]["calls"] == len(estimated.dataset.validation)
    assert lines["target", "search"]["calls"] == watch.decisions[0]["rollouts"] <= bounds["search"].most.calls
    asked = lines["optimizer", "propose"]
    assert 1 <= asked["calls"] <= bounds["propose"].most.calls
    assert asked["tokens"] <= bounds["propose"].most.tokens
    assert lines["target", "search"]["tokens"] <= bounds["search"].most.tokens
    known = {"baseline", "search", "propose", "gate", "validation", "test", "no skill"}
    assert {stage for _, stage in lines} <= known


@every_method
def test_the_methods_optimizer_never_sees_validation_or_test(whole, method):
    _, spy, _, estimated, _ = whole(method)
    prompts = [text for role, _, text in spy.calls if role == "optimizer"]
    dataset = estimated.dataset
    assert any(example.inputs["text"] in prompt for prompt in prompts for example in dataset.train)
    hidden = [example.inputs["text"] for example in (*dataset.validation, *dataset.test)]
    assert not any(text in prompt for prompt in prompts for text in hidden)


@every_method
def test_right_answers_stay_hidden_where_the_program_withholds_them(tmp_path, method):
    program = PROGRAM.replace("batch = 12;", "batch = 12; sees = [trajectory];")
    _, spy, _, _ = compiled(tmp_path, method, program=program)
    prompts = [text for role, _, text in spy.calls if role == "optimizer"]
    assert prompts
    assert not any("right answer is `" in p or "expected `" in p or "</gold>" in p for p in prompts)
    assert not any("'kind':" in prompt for prompt in prompts)


@every_method
@pytest.mark.quick_cases(1)
def test_a_cap_ends_a_method_before_it_is_passed(tmp_path, method):
    _, _, _, estimated = compiled(tmp_path / "free", "one_shot", "budget.steps=1")
    validation, test = len(estimated.dataset.validation), len(estimated.dataset.test)
    cap = validation + 14 + 2 * test
    result, _, _, _ = compiled(tmp_path / "capped", method, f"budget.calls={cap}")
    assert result.spent["charged"]["total"]["calls"] <= cap
    assert result.trained.stopped == "calls"
    assert result.trained.state.decisions <= 1
    assert result.lock.validation.initial.n == validation


def test_a_method_that_is_cut_off_gives_the_best_skill_that_it_had_measured(tmp_path):
    pytest.importorskip("gepa")
    whole, _, _, _ = compiled(tmp_path / "whole", "gepa", "budget.steps=6")
    calls = whole.spent["charged"]["total"]["calls"]
    searched, bare = (spent(whole)["target", stage]["calls"] for stage in ("search", "no skill"))
    cap = f"budget.calls={calls - bare - searched // 3}"
    cut, _, watch, _ = compiled(tmp_path / "cut", "gepa", "budget.steps=6", cap)
    assert cut.trained.stopped == "calls"
    assert watch.decisions[0]["tried"] >= 1
    assert watch.decisions[0]["result"] in ("accept", "reject", "empty")


@every_method
@pytest.mark.parametrize("why", ["time", "interrupted"])
def test_the_clock_and_the_user_end_a_method(tmp_path, method, why):
    if method == "one_shot":
        pytest.skip("one rewrite has no boundary before its decision")
    result, _, watch, _ = compiled(tmp_path, method, observer=Impatient(30, why))
    assert result.trained.stopped == why
    assert watch.decisions[0]["result"] == "empty"


@every_method
def test_ctrl_c_ends_a_method_and_writes_what_there_is(tmp_path, method):
    stop = Stop()
    after = 24 + (5 if method == "one_shot" else 20)
    result, spy, _, _ = compiled(tmp_path, method, observer=Presser(after, stop), stop=stop)
    assert result.trained.stopped == "interrupted"
    assert result.lock.verdict in ("unverified", "no significant gain")
    assert (tmp_path / "skills" / "sort-things" / "SKILL.md").exists()
    assert not any(stage in ("test", "no skill") for _, stage, _ in spy.calls)


@every_method
def test_a_text_over_its_sections_limit_is_refused_with_the_limit_in_words(tmp_path, method):
    long = "\n".join(f"- If the text mentions thing number {i}, answer tool." for i in range(200))
    replies = {
        "[[ ## new_instruction ## ]]": f"[[ ## new_instruction ## ]]\n{long}\n\n[[ ## completed ## ]]",
        "[[ ## proposed_instruction ## ]]": f"[[ ## proposed_instruction ## ]]\n{long}\n\n[[ ## completed ## ]]",
        "[[ ## observations ## ]]\n{": "[[ ## observations ## ]]\nnothing to say\n\n[[ ## completed ## ]]",
        "[[ ## summary ## ]]": "[[ ## summary ## ]]\nnothing to say\n\n[[ ## completed ## ]]",
        "<request": json.dumps({"sections": {"rules": long}}),
    }

    def says(prompt):
        return next(reply for mark, reply in replies.items() if mark in prompt)

    result, spy, watch, _ = compiled(tmp_path, method, says=says)
    (record,) = watch.decisions
    assert record["result"] == "empty"
    assert result.lock.skill.best == result.lock.skill.initial
    if method == "one_shot":
        assert "600" in record["reason"]
    elif method == "gepa":
        prompts = [text for role, _, text in spy.calls if role == "optimizer"]
        assert all("at most 600 tokens" in prompt for prompt in prompts)


def test_a_rewrite_of_a_frozen_section_is_refused(tmp_path):
    stolen = json.dumps({"sections": {"role": "- You are free.", "rules": "- If it is red, answer fruit."}})
    result, _, watch, _ = compiled(tmp_path, "one_shot", says=lambda prompt: stolen)
    assert "`role`" in watch.decisions[0]["reason"]
    assert result.lock.skill.best == result.lock.skill.initial


@every_method
def test_rollouts_that_fail_for_good_never_decide(tmp_path, method):
    """Half of all prompts after the baseline fail for good: nothing is accepted or rejected on missing evidence."""

    def fails(role, stage, text, number):
        return role == "target" and stage != "baseline" and hashlib.sha256(text.encode()).digest()[0] % 2 == 0

    result, _, watch, _ = compiled(tmp_path, method, fails=fails)
    assert {record["result"] for record in watch.decisions} <= {"empty", "undecided"}
    assert result.lock.skill.best == result.lock.skill.initial
    if method != "one_shot":
        assert result.trained.stopped == "unmeasured"


@every_method
def test_an_optimizer_that_never_answers_leaves_the_initial_skill_and_says_so(tmp_path, method):
    result, _, watch, _ = compiled(tmp_path, method, fails=lambda role, stage, text, number: role == "optimizer")
    assert result.lock.skill.best == result.lock.skill.initial
    assert watch.decisions[0]["result"] == "empty"
    assert any("got no answer" in note or "skipped" in note for note in watch.notes)


@every_method
@pytest.mark.quick_cases(1)
def test_a_method_is_a_function_of_plan_data_and_responses(whole, tmp_path, method):
    before, _, watched, *_ = whole(method)
    result, _, watch, _ = compiled(tmp_path, method)
    assert watch.decisions == watched.decisions
    assert result.lock.model_dump(mode="json") == before.lock.model_dump(mode="json")


@every_method
@pytest.mark.parametrize("cap", ["", "budget.calls=230"])
@pytest.mark.quick_cases(2)
def test_a_method_keeps_still_even_when_it_is_cut_off(tmp_path, method, cap, capfd):
    compiled(tmp_path, method, *[cap][: len(cap)])
    gc.collect()
    shown = capfd.readouterr()
    assert shown.out == ""
    assert shown.err == ""


def test_a_batch_gate_is_decided_on_the_runs_first_batch(tmp_path):
    program = PROGRAM + "gate early = improved(correct, on = batch) > 0\n"
    result, _, watch, _ = compiled(tmp_path, "one_shot", program=program)
    assert "early" in watch.decisions[0]["gates"]
    assert spent(result)["target", "gate"]["calls"] >= 12


@pytest.mark.parametrize(("method", "package"), NEEDS.items())
def test_a_missing_package_is_named_before_anything_is_spent(tmp_path, method, package, monkeypatch):
    monkeypatch.setattr(dspy_optimizers, "find_spec", lambda name: None)
    with pytest.raises(SkillcError, match=f"needs the package `{package}`") as raised:
        compiled(tmp_path, method)
    assert f"skillc[{method}]" in raised.value.hint


def test_a_model_may_improve_its_own_skill(tmp_path):
    program = PROGRAM.replace('model optimizer = "rulebook/v1"', "model optimizer = target")
    result, spy, _, _ = compiled(tmp_path, "skillc", program=program)
    models = result.trained.engine.plan.models
    assert models["optimizer"].model == models["target"].model
    assert {role for role, _, _ in spy.calls} == {"target", "optimizer"}
    assert result.trained.state.decisions == 2

"""The loop against a spy in front of the models, and against models that fail."""

import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "cli"))

from conftest_cli import PROGRAM, rows

from skillc.errors import SkillcError
from skillc.frontend import estimate, plan_file
from skillc.models.client import Client
from skillc.models.failures import BudgetReached, CallFailed
from skillc.optimize.host import SilentObserver
from skillc.pipeline.compile import Job, compile_job


class Spy(Client):
    """A client that keeps every call, and may fail some."""

    def __init__(self, plan, fails=None):
        super().__init__(plan, cache_folder=None)
        self.calls = []
        self._fails = fails

    async def complete(self, call):
        text = "\n".join(str(message.content) for message in call.messages)
        self.calls.append((call.role, call.stage, text))
        if self._fails and self._fails(call.role, call.stage, text, len(self.calls)):
            raise CallFailed("transient", "the server is down")
        return await super().complete(call)


class Watch(SilentObserver):
    """Notes how many calls had been made at each decision."""

    def __init__(self, spy):
        super().__init__()
        self._spy = spy
        self.marks = []

    def decided(self, record):
        super().decided(record)
        self.marks.append(len(self._spy.calls))


def compiled(folder, *, settings=("budget.steps=4",), fails=None, program=PROGRAM):
    """A compile in this process, with the spy and what it saw."""
    (folder / "things.skill").write_text(program)
    (folder / "things.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows()))
    planned = plan_file(folder / "things.skill", settings=settings)
    estimated = estimate(planned)
    spy = Spy(planned.plan, fails)
    watch = Watch(spy)
    job = Job(planned, estimated, folder / "skills", folder / ".skillc")
    try:
        return compile_job(job, watch, spy), spy, watch, estimated.dataset
    finally:
        spy.close()


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A compile in which nothing fails, and its folder."""
    folder = tmp_path_factory.mktemp("whole")
    return *compiled(folder), folder


def texts(examples):
    return [example.inputs["text"] for example in examples]


def test_the_test_split_is_scored_only_after_the_last_decision_and_every_look_is_counted(whole):
    result, spy, watch, dataset, _ = whole
    for _, stage, text in spy.calls[: watch.marks[-1]]:
        assert stage not in ("test", "no skill")
        assert not any(known in text for known in texts(dataset.test))
    assert len(result.lock.looks) == 1
    assert result.lock.test.look == 1


def test_optimizer_prompts_never_see_validation_or_test(whole):
    _, spy, _, dataset, _ = whole
    prompts = [text for role, _, text in spy.calls if role == "optimizer"]
    assert prompts
    assert any(known in prompt for prompt in prompts for known in texts(dataset.train))
    hidden = texts((*dataset.validation, *dataset.test))
    assert not any(known in prompt for prompt in prompts for known in hidden)


def test_gold_answers_stay_hidden_where_the_program_withholds_them(tmp_path):
    program = PROGRAM.replace("batch = 12;", "batch = 12; sees = [trajectory];")
    _, spy, _, _ = compiled(tmp_path, program=program, settings=("budget.steps=1",))
    prompts = [text for role, stage, text in spy.calls if (role, stage) == ("optimizer", "reflect")]
    assert prompts
    assert not any("</gold>" in prompt or "expected `" in prompt for prompt in prompts)


def test_the_loop_is_a_pure_function_of_plan_data_and_responses(whole, tmp_path):
    result, _, watch, _ = compiled(tmp_path)
    assert watch.decisions == whole[2].decisions
    assert result.lock.model_dump(mode="json") == whole[0].lock.model_dump(mode="json")


def test_an_infrastructure_failure_is_never_a_score(whole, tmp_path):
    """Each third rollout of a candidate fails once; scores and decisions are those of a run without failures."""
    calm = whole[2]
    failed = set()

    def fails(role, stage, text, number):
        if role == "target" and stage == "validation" and text not in failed and number % 3 == 0:
            failed.add(text)
            return True
        return False

    result, _, storm, _ = compiled(tmp_path, fails=fails)
    assert [d["result"] for d in storm.decisions][:1] == [d["result"] for d in calm.decisions][:1]
    assert result.lock.validation.initial.mean is not None


def test_a_dead_target_stops_the_run_with_a_message_and_no_score(tmp_path):
    with pytest.raises(SkillcError, match="could not be measured"):
        compiled(tmp_path, fails=lambda role, stage, text, number: role == "target")
    assert not (tmp_path / "skills").exists()


def test_a_candidate_that_cannot_be_measured_is_undecided_never_rejected(tmp_path):
    result, _, watch, _ = compiled(tmp_path, fails=lambda role, stage, text, number: stage == "gate")
    assert {d["result"] for d in watch.decisions} <= {"undecided", "empty"}
    assert result.tested.verdict.verdict == "unverified"
    assert any(d["result"] == "undecided" for d in watch.decisions)


def test_an_unmeasured_validation_example_is_quarantined_and_listed(tmp_path):
    lost = {}

    def fails(role, stage, text, number):
        if role != "target":
            return False
        lost.setdefault("marker", "(" + str(next(iter_ids)) + ")") if not lost else None
        return lost["marker"] in text

    program = PROGRAM.replace("split = 2 : 1 : 2", "split = 2 : 2 : 2")
    (tmp_path / "things.skill").write_text(program)
    (tmp_path / "things.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows()))
    dataset = estimate(plan_file(tmp_path / "things.skill")).dataset
    iter_ids = iter([dataset.validation[0].id[1:]])
    result, _, _, _ = compiled(tmp_path, fails=fails, program=program)
    assert result.lock.quarantined == (dataset.validation[0].id,)


def test_three_undecided_steps_in_a_row_stop_the_run(tmp_path):
    result, _, watch, _ = compiled(
        tmp_path, settings=("budget.epochs=3",), fails=lambda role, stage, text, number: stage == "gate"
    )
    assert [d["result"] for d in watch.decisions] == ["undecided"] * 3
    assert result.lock.stopped == "undecided after decision 3"


def test_a_cap_inside_the_completion_of_an_accept_keeps_it(tmp_path):
    def cap(role, stage, text, number):
        if stage == "validation":
            raise BudgetReached("calls")
        return False

    result, _, watch, _ = compiled(tmp_path, fails=cap, settings=("budget.steps=4", "optimize.wave=4"))
    accepted = [d for d in watch.decisions if d["result"] == "accept"]
    assert len(accepted) == len(watch.completions) + 1 == result.trained.state.accepted
    assert watch.decisions[-1] == accepted[-1]
    assert result.lock.stopped == f"calls after decision {accepted[-1]['decision']}"
    assert result.lock.skill.best == accepted[-1]["candidate"]
    last = json.loads((tmp_path / "skills" / "sort-things.history.jsonl").read_text().splitlines()[-1])
    assert (last["result"], "completed" in last) == ("accept", False)


def test_an_accept_is_completed_in_the_history(whole):
    result, _, watch, _, folder = whole
    lines = (folder / "skills" / "sort-things.history.jsonl").read_text().splitlines()
    accepted = [line for line in map(json.loads, lines) if line["result"] == "accept"]
    assert len(accepted) == len(watch.completions) == result.trained.state.accepted > 0
    assert [line["completed"] for line in accepted] == [record["goal"] for record in watch.completions]
    assert all(line["credit"]["association"] for line in accepted if line["kind"] == "step")


def test_pools_and_smaller_patches_keep_within_the_bounds(tmp_path):
    settings = ("budget.steps=4", "optimize.candidates=3", "optimize.retries=2")
    result, _, watch, _ = compiled(tmp_path, settings=settings)
    pools = [d for d in watch.decisions if "pool" in d]
    assert {d["pool"]["of"] for d in pools} & {2, 3}
    assert result.trained.state.decisions == len(watch.decisions) == watch.decisions[-1]["decision"]
    by_step = {}
    for decision in watch.decisions:
        if decision["kind"] == "step":
            by_step.setdefault(decision["place"], []).append(decision["result"])
    assert all(results.count("accept") <= 1 for results in by_step.values())
    assert all(len(results) <= 5 for results in by_step.values())
    planned = plan_file(tmp_path / "things.skill", settings=settings)
    most = estimate(planned).bounds.total.most
    assert result.lock.charged.calls <= most.calls


def test_the_winner_of_a_pool_is_never_worse_than_a_lone_candidate_would_be(tmp_path):
    """The first step meets the same edits with one candidate and with three."""
    firsts = []
    for count in (1, 3):
        (tmp_path / str(count)).mkdir()
        settings = ("budget.steps=1", f"optimize.candidates={count}")
        _, _, watch, _ = compiled(tmp_path / str(count), settings=settings)
        firsts.append(max((float(record["goal"]) for record in watch.completions), default=0.0))
    assert firsts[1] >= firsts[0]

"""Rollouts of tasks in the format of Harbor: what the agent sees, what the tests see, and what is no score."""

import asyncio
from types import SimpleNamespace

import pytest
from harbor_tasks import DOCKERFILE, SETTINGS, TEST, made
from model_plans import Scripted, plan_of, reply

from skillc.document.skill import document_of
from skillc.errors import SkillcError
from skillc.models.client import Client
from skillc.outcomes import Example
from skillc.plan.schema import RolloutPlan
from skillc.processes.command import CommandResult
from skillc.sandbox.run import problem_of
from skillc.tasks.harbor.play import commands_in
from skillc.tasks.harbor.verify import _reward
from skillc.tasks.kind import Skill, find_kind
from skillc.tasks.runner import RolloutRunner
from skillc.trajectories.trajectory import FileChange, Message, Observation, ToolCall

SKILL = Skill.of(document_of("work", "works", [("rules", "trainable", "- Write the word that is asked for.", None)]))
SANDBOXED = pytest.mark.skipif(problem_of("bubblewrap") is not None, reason="bubblewrap does not work here")


def plan(**settings):
    made_of = plan_of()
    (output,) = made_of.task.outputs
    rollout = RolloutPlan(kind="harbor", settings={"folder": "{id}", **settings})
    outputs = (output.model_copy(update={"name": "report", "type": output.type.model_copy(update={"kind": "text"})}),)
    task = made_of.task.model_copy(update={"rollout": rollout, "outputs": outputs})
    return made_of.model_copy(update={"task": task})


def run(root, *replies, name="word", times=1, **settings):
    """Play a target that gives these replies in turn."""
    left = iter(replies)
    transport = Scripted(lambda sent: reply(next(left), usage=(9, 4)))
    made_of, notes = plan(**settings), []

    async def scenario():
        with Client(made_of, transport=transport) as client:
            client.pacing.report = notes.append
            runner = RolloutRunner(made_of, client, root=root)
            try:
                example = Example(name, {"ticket": "write it"}, {}, {}, name)
                return [await runner(SKILL, example, sample, "rollout") for sample in range(times)]
            finally:
                await runner.close()

    rollouts = asyncio.run(scenario())
    prompts = [[str(m["content"]) for m in sent["messages"]] for sent in transport.sent]
    last = rollouts[-1]
    return SimpleNamespace(rollouts=rollouts, rollout=last, trajectory=last.trajectory, prompts=prompts, notes=notes)


def block(code):
    return f"I do it.\n```bash\n{code}\n```"


@SANDBOXED
def test_commands_work_in_a_copy_of_the_environment_and_the_tests_give_the_reward(tmp_path):
    path = made(tmp_path)
    done = run(tmp_path, block("pwd; ls\nexport WORD=right"), block("echo right > out.txt; false"), "Done.")
    assert done.rollout.failure is None, done.rollout.detail
    found = done.trajectory
    assert (found.reward, found.turns, found.outcome) == (1, 3, "finished")
    assert found.answer == {"report": "Done."}
    assert found.steps == (
        Message("I do it."),
        ToolCall("shell", {"command": "pwd; ls\nexport WORD=right\n"}),
        Observation("/app\ngiven.txt"),
        Message("I do it."),
        ToolCall("shell", {"command": "echo right > out.txt; false\n"}),
        Observation("it ended with status 1", failed=True),
        FileChange("app/out.txt", "added", "right\n"),
        Message("Done."),
    )
    system, asked = done.prompts[0]
    assert "Write the word that is asked for" in system
    assert "They run in /app" in system
    assert "You have 30 turns" in asked
    assert "(29 turns left)" in done.prompts[1][-1]
    assert not (path / "environment/files/out.txt").exists()


@SANDBOXED
def test_neither_tests_nor_solution_are_visible_and_each_rollout_has_its_own_files(tmp_path):
    made(tmp_path)
    code = (
        "ls /tests /solution /logs 2>/dev/null; cat out.txt 2>/dev/null; ls /root\nfind /app /sandbox -name secret.txt"
    )
    plant = "echo wrong > out.txt; mkdir -p /logs/verifier; echo 1 > /logs/verifier/reward.txt"
    again = (block(f"{code}; {plant}"), "Done.")
    done = run(tmp_path, *again, *again, times=2)
    assert [rollout.trajectory.reward for rollout in done.rollouts] == [0, 0]
    for rollout in done.rollouts:
        (seen,) = (step for step in rollout.trajectory.steps if isinstance(step, Observation))
        assert seen.text == "it printed nothing"
    assert "the word is right" not in str(done.prompts)


@SANDBOXED
def test_what_the_tests_print_is_shown_only_where_it_is_declared(tmp_path):
    made(tmp_path)
    assert "checked out.txt" not in str(run(tmp_path, "Nothing to do.").trajectory.steps)
    shown = run(tmp_path, "Nothing to do.", shown=True)
    printed = "the tests printed:\nchecked out.txt\ncat: /app/out.txt: No such file or directory"
    assert shown.trajectory.steps[-1] == Observation(printed)
    assert shown.trajectory.reward == 0
    assert "checked" not in str(shown.prompts)


@SANDBOXED
@pytest.mark.parametrize(
    ("test", "said"),
    [
        ("exit 3", "its tests wrote no reward: they ended with status 3"),
        ("echo broken >&2; exit 1", "its tests wrote no reward: broken"),
        ("sleep 30", "its tests were stopped: it ran longer than 1 s"),
        ("echo much > /logs/verifier/reward.txt", "the reward that its tests wrote cannot be read"),
        ("ln -s /etc/passwd /logs/verifier/reward.txt", "cannot be read: it is no small file"),
        ("echo 7 > /logs/verifier/reward.txt", "wrote the reward 7, which is not between 0 and 1"),
    ],
)
def test_tests_that_fail_themselves_are_no_score(tmp_path, test, said):
    made(tmp_path, test=f"#!/bin/bash\n{test}\n", settings=SETTINGS.replace("timeout_sec = 10", "timeout_sec = 1"))
    done = run(tmp_path, "Done.", oracle=False)
    assert done.rollout.failure == "environment"
    assert said in done.rollout.detail
    assert done.trajectory is None or done.trajectory.reward is None


@SANDBOXED
@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"solution": "#!/bin/bash\necho wrong > out.txt\n"}, "its own solution gets the reward 0 here"),
        ({"test": "#!/bin/bash\necho 1 > /logs/verifier/reward.txt\n"}, "the full reward to an untouched environment"),
    ],
)
def test_a_task_whose_tests_cannot_be_trusted_is_not_measured(tmp_path, change, said):
    made(tmp_path, **change)
    done = run(tmp_path, "Done.", times=1)
    assert done.rollout.failure == "environment"
    assert said in done.rollout.detail
    assert said in done.notes[0]
    assert run(tmp_path, "Done.", oracle=False).rollout.failure is None


@SANDBOXED
def test_the_time_of_a_task_ends_the_work_and_what_was_done_is_scored(tmp_path):
    made(tmp_path, settings=SETTINGS.replace("timeout_sec = 20", "timeout_sec = 1"))
    done = run(tmp_path, block("echo right > out.txt; sleep 30"))
    assert (done.trajectory.reward, done.trajectory.outcome) == (1, "time")
    assert "it was stopped: it ran longer than 1 s" in done.trajectory.steps[2].text


@SANDBOXED
def test_the_last_turn_ends_the_work(tmp_path):
    made(tmp_path)
    done = run(tmp_path, block("echo one"), block("echo two"), turns=2)
    assert (done.trajectory.outcome, done.trajectory.turns, done.trajectory.answer) == ("turns", 2, {"report": ""})
    assert "No turns are left" in done.prompts[1][-1] or "1 turn" in done.prompts[1][-1]


@SANDBOXED
def test_a_dockerfile_is_followed_with_the_programs_of_this_machine(tmp_path):
    recipe = f"{DOCKERFILE}COPY more.txt /data/\nENV WORD=left\nRUN echo $WORD > /data/word.txt && mkdir deep\n"
    recipe += "WORKDIR deep\n"
    made(tmp_path, dockerfile=recipe, **{"more.txt": "more\n"})
    done = run(
        tmp_path, block("pwd; ls .. /data; cat /data/word.txt; echo $WORD > /data/again.txt"), "Done.", oracle=False
    )
    (seen,) = (step for step in done.trajectory.steps if isinstance(step, Observation))
    assert seen.text == "/app/deep\n..:\ndeep\ngiven.txt\n\n/data:\nmore.txt\nword.txt\nleft"
    assert FileChange("data/again.txt", "added", "left\n") in done.trajectory.steps


@SANDBOXED
@pytest.mark.parametrize(
    ("dockerfile", "said"),
    [
        (None, "has no Dockerfile"),
        ("FROM x\n", "sets no working folder"),
        ("FROM x\nWORKDIR /usr/src\n", "writes into `/usr/src`"),
        (f"{DOCKERFILE}RUN echo no network >&2; exit 7\n", "line 4 of its Dockerfile fails: no network"),
        (f"{DOCKERFILE}COPY --from=x a b\n", "has line 4: `COPY --from=x a b` in its Dockerfile"),
        (f"{DOCKERFILE}COPY gone.txt .\n", "copies `gone.txt`, which is not in its environment"),
        (f"{DOCKERFILE}COPY ../tests/secret.txt .\n", "copies `../tests/secret.txt`, which is not in its environment"),
    ],
)
def test_an_environment_that_cannot_be_made_here_is_an_error_of_the_program(tmp_path, dockerfile, said):
    made(tmp_path, dockerfile=dockerfile)
    with pytest.raises(SkillcError) as raised:
        run(tmp_path, "Done.")
    assert said in raised.value.message


@SANDBOXED
def test_a_task_reads_no_variable_of_this_machine_that_is_not_declared(tmp_path, monkeypatch):
    monkeypatch.setenv("SECRET_WORD", "hush")
    variables = '[environment.env]\nWORD = "${SECRET_WORD}"\nOTHER = "${NOT_SET:-else}"\n'
    made(tmp_path, settings=SETTINGS + variables)
    with pytest.raises(SkillcError, match="a task reads the variable `SECRET_WORD`"):
        run(tmp_path, "Done.")
    allowed = [{"function": "env", "arguments": ["SECRET_WORD"]}]
    done = run(tmp_path, block("echo $OTHER ${#WORD}"), "Done.", environment=allowed)
    assert done.trajectory.steps[2].text == "else 4"


def reward(folder, **files):
    for name, text in files.items():
        (folder / name.replace("_", ".")).write_text(text)
    place = SimpleNamespace(task=SimpleNamespace(name="word"))
    return _reward(place, folder, CommandResult("ended", 0, b"", b""))


@pytest.mark.parametrize(
    ("files", "value"),
    [
        ({"reward_txt": "1\n"}, 1),
        ({"reward_txt": " 0.25 "}, 0.25),
        ({"reward_json": '{"reward": 0.5, "files": 3}'}, 0.5),
        ({"reward_json": '{"score": 1}', "reward_txt": "0"}, 1),
        ({"reward_json": "0.75"}, 0.75),
    ],
)
def test_a_reward_is_read_as_harbor_reads_it(tmp_path, files, value):
    assert reward(tmp_path, **files) == value


@pytest.mark.parametrize(
    "files",
    [
        {},
        {"reward_txt": ""},
        {"reward_txt": "nan"},
        {"reward_txt": "-1"},
        {"reward_json": "{}"},
        {"reward_json": '{"a": 1, "b": 0}'},
        {"reward_json": '{"reward": "1"}'},
        {"reward_json": "[1]"},
        {"reward_json": "1e309"},
    ],
)
def test_no_other_text_is_a_reward(tmp_path, files):
    with pytest.raises(Exception, match="the task `word`"):
        reward(tmp_path, **files)


@pytest.mark.parametrize(
    ("text", "commands"),
    [
        ("Done.", ""),
        ("```bash\nls\n```", "ls\n"),
        ("a\n```sh\nls\n```\nb\n```shell\npwd\n```", "ls\n\npwd\n"),
        ("```bash\nls", "ls\n"),
        ("```python\nprint(1)\n```", ""),
        ("```bash\n\n```", ""),
    ],
)
def test_the_commands_of_a_reply_are_its_blocks_of_shell(text, commands):
    assert commands_in(text) == commands


def test_a_task_outside_of_the_program_or_without_its_folder_is_refused(tmp_path):
    if problem_of("bubblewrap"):
        pytest.skip("bubblewrap does not work here")
    made(tmp_path, "other")
    for settings, said in (
        ({"folder": "../{id}"}, "outside the program's folder"),
        ({"folder": "{task}"}, "needs the column `task`"),
        ({"folder": "nothing/{id}"}, "is no task"),
    ):
        with pytest.raises(SkillcError, match=said):
            run(tmp_path, "Done.", **settings)


def test_tasks_belong_to_the_run(tmp_path):
    path = made(tmp_path / "tasks")
    made_of = plan(folder="tasks/{id}")
    kind = find_kind(made_of)
    before = kind.source(made_of, tmp_path)
    assert kind.source(made_of, tmp_path) == before
    (path / "tests/test.sh").write_text(f"{TEST}\n")
    assert kind.source(made_of, tmp_path) != before

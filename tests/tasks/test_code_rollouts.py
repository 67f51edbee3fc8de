"""Rollouts that write and run code, in the sandboxes that work on this machine."""

import asyncio
import sys
import textwrap
from types import SimpleNamespace

import pytest
from model_plans import Scripted, plan_of, reply

from skillc.document.skill import Document, Section, document_of
from skillc.errors import SkillcError
from skillc.models.client import Client
from skillc.outcomes import Example
from skillc.plan.schema import RolloutPlan, TypePlan
from skillc.sandbox.run import problem_of
from skillc.tasks import programs
from skillc.tasks.code import code_in
from skillc.tasks.kind import Skill
from skillc.tasks.runner import RolloutRunner
from skillc.trajectories.trajectory import FileChange, Message, Observation, ToolCall

SKILL = Skill.of(document_of("route-tickets", "routes", [("rules", "trainable", "- Invoices go to billing.", None)]))
SANDBOXED = [kind for kind in ("bubblewrap", "landlock") if problem_of(kind) is None]


@pytest.fixture(params=["bubblewrap", "landlock"])
def sandbox(request):
    if request.param not in SANDBOXED:
        pytest.skip(f"{request.param}: {problem_of(request.param)}")
    return request.param


def plan(sandbox="unsafe", *, file=False, limits=None, **settings):
    made = plan_of()
    settings["sandbox"] = {"kind": sandbox, **(limits or {})}
    task = made.task.model_copy(update={"rollout": RolloutPlan(kind="code", settings=settings)})
    if file:
        (ticket,) = task.inputs
        task = task.model_copy(update={"inputs": (ticket.model_copy(update={"type": TypePlan(kind="file")}),)})
    return made.model_copy(update={"task": task})


def block(code):
    return f"I compute it.\n```python\n{code}\n```"


def run(folder, made, *replies, ticket="my invoice", skill=SKILL):
    """Play a target that gives these replies in turn."""
    left = iter(replies)
    transport = Scripted(lambda sent: answer if isinstance(answer := next(left), dict) else reply(answer, usage=(9, 4)))
    notes = []

    async def scenario():
        with Client(made, transport=transport) as client:
            client.pacing.report = notes.append
            runner = RolloutRunner(made, client, root=folder)
            try:
                return await runner(skill, Example("1", {"ticket": ticket}, {}, {}, "1"), 0, "rollout")
            finally:
                await runner.close()

    rollout = asyncio.run(scenario())
    prompts = [[str(m["content"]) for m in sent["messages"]] for sent in transport.sent]
    return SimpleNamespace(rollout=rollout, trajectory=rollout.trajectory, prompts=prompts, notes=notes)


def observed(done):
    return [step for step in done.trajectory.steps if isinstance(step, Observation)]


def test_code_reads_and_writes_the_workspace_and_what_it_prints_comes_back(sandbox, tmp_path):
    (tmp_path / "books/7").mkdir(parents=True)
    (tmp_path / "books/7/total.csv").write_text("ship\nping\n")
    code = (
        "text = open('total.csv').read()\nopen('word.txt', 'w').write(''.join(text.split()))\nprint('wrote', len(text))"
    )
    again = "print(open('word.txt').read())"
    done = run(tmp_path, plan(sandbox, file=True), block(code), block(again), "shipping", ticket="books/7/total.csv")
    assert done.rollout.failure is None, done.rollout.detail
    assert done.trajectory.answer == {"team": "shipping"}
    assert done.trajectory.steps == (
        Message("I compute it."),
        ToolCall("python", {"code": f"{code}\n"}),
        Observation("wrote 10"),
        Message("I compute it."),
        ToolCall("python", {"code": f"{again}\n"}),
        Observation("shipping"),
        FileChange("word.txt", "added", "shipping"),
        Message("shipping"),
    )
    assert (done.trajectory.turns, done.trajectory.tokens) == (3, 39)
    system, question = done.prompts[0]
    assert "Invoices go to billing" in system
    assert "total.csv" in question
    assert str(tmp_path) not in str(done.prompts)
    assert "shipping" in done.prompts[2][-1]
    assert (tmp_path / "books/7/total.csv").read_text() == "ship\nping\n"


def test_code_that_fails_is_an_observation_with_its_traceback_and_no_path_of_this_machine(sandbox, tmp_path):
    code = "import sys\nprint(object())\nprint('before')\nraise ValueError('no such column')"
    done = run(tmp_path, plan(sandbox), block(code), "billing")
    (seen,) = observed(done)
    assert seen.failed
    assert "ValueError: no such column" in seen.text
    assert "object at 0x...>\nbefore" in seen.text
    assert 'File "/home/agent/program.py", line 4' in seen.text
    assert "skillc-" not in seen.text
    assert done.trajectory.answer == {"team": "billing"}


def test_a_limit_that_stops_code_is_an_observation(sandbox, tmp_path):
    made = plan(sandbox, limits={"time": 1, "memory": 200_000_000})
    done = run(tmp_path, made, block("import time\ntime.sleep(60)"), "billing")
    assert observed(done) == [Observation("it was stopped: it ran longer than 1 s", failed=True)]


def test_the_program_cannot_read_beside_its_workspace(sandbox, tmp_path):
    (tmp_path / "tickets.jsonl").write_text("planted-4711")
    code = f"print(open({str(tmp_path / 'tickets.jsonl')!r}).read())"
    (seen,) = observed(run(tmp_path, plan(sandbox), block(code), "billing"))
    assert seen.failed
    assert "planted-4711" not in seen.text


def test_declared_files_are_readable_and_cannot_be_changed(sandbox, tmp_path):
    (tmp_path / "tables").mkdir()
    (tmp_path / "tables/rates.csv").write_text("19")
    where = str(tmp_path / "tables/rates.csv")
    code = f"print(open({where!r}).read())\nopen({where!r}, 'w').write('7')"
    (seen,) = observed(run(tmp_path, plan(sandbox, reads=["tables"]), block(code), "billing"))
    assert seen.text.startswith("19\n")
    assert seen.failed
    assert (tmp_path / "tables/rates.csv").read_text() == "19"


def test_long_output_is_cut_to_the_declared_tokens(tmp_path):
    (seen,) = observed(run(tmp_path, plan(output=20), block("print('word ' * 900)"), "billing"))
    assert "tokens left out" in seen.text
    assert len(seen.text) < 300


def test_after_the_last_round_one_more_reply_answers(tmp_path):
    done = run(tmp_path, plan(rounds=1), block("print(1)"), "billing")
    assert done.trajectory.answer == {"team": "billing"}
    assert "No rounds are left" in done.prompts[1][-1]
    done = run(tmp_path, plan(rounds=1), block("print(1)"), block("print(2)"))
    assert (done.trajectory.answer, done.trajectory.outcome, done.trajectory.turns) == (None, "turns", 2)
    assert done.trajectory.problem == "it gave no answer after 1 round of code"
    assert len(observed(done)) == 1


def test_rounds_that_no_longer_fit_the_model_are_left_out(tmp_path):
    class TooLongError(Exception):
        status_code = 400

    full = TooLongError("This model's maximum context length is 9 tokens")
    replies = iter([block("print('first')"), block("print('second')"), full, "billing"])

    def answer(_):
        each = next(replies)
        return each if isinstance(each, TooLongError) else reply(each)

    made = plan()
    transport = Scripted(answer)
    with Client(made, transport=transport) as client:
        runner = RolloutRunner(made, client, root=tmp_path)
        rollout = asyncio.run(runner(None, Example("1", {"ticket": "x"}, {}, {}, "1"), 0, "rollout"))
    assert rollout.prediction == {"team": "billing"}
    sent = [str(m["content"]) for m in transport.sent[-1]["messages"]]
    assert len(sent) == 4
    assert "second" in sent[-1]


@pytest.mark.parametrize("broken", ["raises", "prints"])
def test_a_sandbox_that_breaks_is_unmeasured(tmp_path, monkeypatch, broken):
    from skillc.processes.command import CommandResult

    async def fail(*_, **__):
        if broken == "raises":
            raise OSError("no more processes")
        return CommandResult("ended", 1, b"", b"bwrap: No permissions to create a new namespace\n")

    monkeypatch.setattr(programs, "run_in_sandbox", fail)
    done = run(tmp_path, plan(), block("print(1)"), "billing")
    assert done.rollout.failure == "environment"
    assert ("no more processes" if broken == "raises" else "No permissions") in done.rollout.detail


def test_code_cannot_pretend_that_the_sandbox_broke(sandbox, tmp_path):
    code = "import os, sys\nsys.stderr.write('bwrap: broken\\n')\nos._exit(1)"
    done = run(tmp_path, plan(sandbox), block(code), "billing")
    assert done.rollout.failure is None
    assert observed(done) == [Observation("bwrap: broken", failed=True)]


def test_without_a_sandbox_a_note_says_so(tmp_path):
    done = run(tmp_path, plan(), "billing")
    assert "without a sandbox" in done.notes[0]
    assert done.trajectory.steps == (Message("billing"),)


def test_the_declared_interpreter_runs_the_code(tmp_path):
    done = run(tmp_path, plan(python=sys.executable), block("import sys\nprint(sys.executable)"), "billing")
    assert observed(done) == [Observation(sys.executable)]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"python": "no-such-python"}, "`no-such-python` was not found"),
        ({"reads": ["nowhere"]}, "nowhere` does not exist"),
    ],
)
def test_what_the_code_needs_is_checked_before_the_first_call(tmp_path, settings, message):
    with pytest.raises(SkillcError, match=message):
        run(tmp_path, plan(**settings), "billing")


def test_a_second_run_sends_no_call_again(tmp_path):
    """What a program prints is in the next prompt, so equal programs must print the same."""
    code = "print({'a', 'b', 'c'}, object(), __file__)\nimport os\nprint(os.getcwd())"
    first, second = (run(tmp_path, plan(SANDBOXED[0]), block(code), "billing") for _ in range(2))
    assert first.prompts == second.prompts


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("```python\na = 1\n```", "a = 1\n"),
        ("```py\na = 1\n```\nthen\n``` Python\nb = 2\n```", "a = 1\n\n\nb = 2\n"),
        ("```python\nprint('```')\n```", "print('```')\n"),
        ("```python\nunclosed = 1", "unclosed = 1\n"),
        ("```json\n{}\n```", ""),
        ("```\nplain\n```", ""),
        ("no code", ""),
        ("```python\n\n```", ""),
    ],
)
def test_the_code_of_a_reply(text, code):
    assert code_in(text) == code


def test_code_runs_the_scripts_of_the_skill_and_reads_the_files_that_it_keeps(sandbox, tmp_path):
    script = Section("double", "trainable", "import sys\nprint(2 * int(sys.argv[1]))\n", file="scripts/double.py")
    rules = Section("rules", "trainable", "- Run the script.", file="references/rules.md")
    document = Document("numbers", "doubles", (rules, script), files=(("assets/team.txt", b"billing"),))
    code = """
        import subprocess, sys
        print(subprocess.check_output([sys.executable, "skills/numbers/scripts/double.py", "21"], text=True))
        print(open("skills/numbers/assets/team.txt").read())
    """
    done = run(tmp_path, plan(sandbox), block(textwrap.dedent(code)), "billing", skill=Skill.of(document))
    assert observed(done) == [Observation("42\n\nbilling")]
    assert not [step for step in done.trajectory.steps if isinstance(step, FileChange)]
    system, question = done.prompts[0]
    assert "Run [scripts/double.py](scripts/double.py)." in system
    assert "- Run the script." in system
    assert "The files of the skill are in the folder skills/numbers:\nassets/team.txt\nscripts/double.py\n" in question

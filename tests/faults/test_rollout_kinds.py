"""What holds for every kind of rollout: kills change no byte, caps are kept, and a failure is never a score."""

import json
import random
import re
import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))

from loopback import Loopback
from nursery import Nursery
from test_resume import IN_FLIGHT, REMOTE, compiled, finish, killed, shop, start

_AGENT = """
import pathlib
import dspy


def run(inputs, skill, lm, example):
    if FLAKY and hash_of(example) % 5 == 0:
        once = pathlib.Path("lost", example)
        if not once.exists():
            once.parent.mkdir(exist_ok=True)
            once.touch()
            raise ConnectionError("the agent's server went away")
    with dspy.context(lm=lm):
        return dspy.Predict(dspy.Signature("text -> kind", skill or "Name the kind."))(text=inputs["text"]).kind


def hash_of(text):
    return sum(map(ord, text))
"""

# Follows the rules of the skill by their quoted words; needs no model.
_COMMAND = """
import pathlib, re, sys
text = sys.stdin.read().partition("## text")[2]
place, example = pathlib.Path(sys.argv[2]), re.search("\\\\((\\\\d+)\\\\)", text)[1]
if FLAKY and int(example) % 5 == 0 and not (place / example).exists():
    place.mkdir(exist_ok=True)
    (place / example).touch()
    sys.exit("the agent's server went away")
skill = pathlib.Path(sys.argv[1])
for line in skill.read_text().splitlines() if sys.argv[1] else ():
    if any(word in text for word in re.findall('"(.*?)"|`(.*?)`', line) for word in word if word):
        print(line.rstrip(".").split()[-1])
        break
else:
    print("fruit")
"""

_TOOL = """
import pathlib


def look(text: str) -> str:
    \"\"\"Look a text up.

    Args:
        text: the first line
    \"\"\"
    if FLAKY and sum(map(ord, text)) % 5 == 0:
        once = pathlib.Path("lost", str(sum(map(ord, text))))
        if not once.exists():
            once.parent.mkdir(exist_ok=True)
            once.touch()
            raise ConnectionError("the tool's server went away")
    return f"the text has {len(text)} letters"
"""


def writes_code(messages):
    """Play a target that writes a program for the rules of the skill, and answers with what it prints."""
    skill, question = (str(message["content"]) for message in messages[:2])
    if "```python block" not in skill:
        return None
    if len(messages) > 2:
        return str(messages[-1]["content"]).split()[0]
    rules = [(re.findall('"(.*?)"', line), line.rstrip(".").split()[-1]) for line in skill.splitlines() if '"' in line]
    text = question.partition("## text")[2]
    found = "next((kind for words, kind in rules if any(word in text for word in words)), 'fruit')"
    return f"```python\ntext = {text!r}\nrules = {rules!r}\nprint({found})\n```"


_ENVIRONMENT = """
import os
import pathlib


class Sorting:
    def reset(self, example):
        self.right, self.won = example["gold"]["kind"], False
        number = sum(map(ord, example["text"]))
        if FLAKY and number % 5 == 0:
            # A rollout is repeated once before it is unmeasured.
            times = [pathlib.Path("lost", f"{number}-{time}") for time in range(2)]
            times[0].parent.mkdir(exist_ok=True)
            for each in times:
                if not each.exists():
                    each.touch()
                    os._exit(3)
        return "Name the kind."

    def step(self, action):
        self.won = action == self.right
        return "", float(self.won), True, {}

    def score(self):
        return float(self.won)
"""


def acts(messages):
    """Play a target that follows the rules of the skill by their quoted words, after a look where it has a tool."""
    system, said = str(messages[0]["content"]), "\n".join(str(message["content"]) for message in messages[1:])
    if "You act in an environment" not in system:
        return None
    text = said.partition("## text")[2].partition("## observation")[0]
    rules = [(re.findall('"(.*?)"', line), line.rstrip(".").split()[-1]) for line in system.splitlines() if '"' in line]
    kind = next((kind for words, kind in rules if any(word in text for word in words)), "fruit")
    if "next_tool_name" not in system:
        return kind
    tool, given = ("act", {"kind": kind}) if "observation_1" in said else ("look", {"text": text.strip()})
    fields = {"next_thought": "so", "next_tool_name": tool, "next_tool_args": json.dumps(given)}
    return "\n\n".join([*(f"[[ ## {name} ## ]]\n{value}" for name, value in fields.items()), "[[ ## completed ## ]]"])


@dataclass(frozen=True)
class Case:
    """A kind of rollout: its declaration, its files, and those of one whose infrastructure fails once on some.

    `cap` is a number of calls that ends a run before its end.
    """

    rollout: str
    files: dict[str, str] = field(default_factory=dict)
    flaky: dict[str, str] = field(default_factory=dict)
    replies: Callable[[list[dict[str, Any]]], str | None] | None = None
    cap: int = 220


pytestmark = pytest.mark.thorough

CASES = {
    "python": Case(
        'python("my_agent:run")',
        {"my_agent.py": f"FLAKY = False\n{_AGENT}"},
        {"my_agent.py": f"FLAKY = True\n{_AGENT}"},
    ),
    "react": Case(
        'react { tools = [python("my_tools:look")]; turns = 3 }',
        {"my_tools.py": f"FLAKY = False\n{_TOOL}"},
        {"my_tools.py": f"FLAKY = True\n{_TOOL}"},
        cap=800,
    ),
    "react by the provider's API": Case(
        'react { tools = [python("my_tools:look")]; turns = 3; tool_calls = native }',
        {"my_tools.py": f"FLAKY = False\n{_TOOL}"},
        {"my_tools.py": f"FLAKY = True\n{_TOOL}"},
        cap=500,
    ),
    "command": Case(
        f'command("{sys.executable}", "-IS", "{{here}}/agent.py", "{{skill}}", "{{here}}/lost") {{ sandbox = unsafe }}',
        {"agent.py": f"FLAKY = False\n{_COMMAND}"},
        {"agent.py": f"FLAKY = True\n{_COMMAND}"},
    ),
    "code": Case("code { rounds = 2 }", replies=writes_code),
    "environment": Case(
        'environment("sorting:Sorting") { processes = 4; turns = 1 }',
        {"sorting.py": f"FLAKY = False\n{_ENVIRONMENT}"},
        {"sorting.py": f"FLAKY = True\n{_ENVIRONMENT}"},
        replies=acts,
    ),
    "environment with tools": Case(
        'environment("sorting:Sorting") { turns = 1; agent = react { tools = [python("my_tools:look")]; calls = 1 } }',
        {"sorting.py": f"FLAKY = False\n{_ENVIRONMENT}", "my_tools.py": f"FLAKY = False\n{_TOOL}"},
        {"sorting.py": f"FLAKY = False\n{_ENVIRONMENT}", "my_tools.py": f"FLAKY = True\n{_TOOL}"},
        replies=acts,
        cap=800,
    ),
}


@pytest.fixture(scope="module")
def nursery():
    return Nursery()


@pytest.fixture
def server(case):
    with Loopback(latency=0.002) as server:
        server.replies = case.replies
        yield server


def project(folder, case, *, flaky=False):
    made = shop(folder, REMOTE.replace("task {", f"task {{\n  rollout = {case.rollout}", 1))
    for name, text in (case.flaky if flaky else case.files).items():
        (made / name).write_text(text)
    return made


@pytest.fixture(scope="module", params=CASES)
def case(request):
    return CASES[request.param]


@pytest.fixture(scope="module")
def whole(nursery, case, tmp_path_factory):
    """An undisturbed run: its bytes, and what the server was asked."""
    folder = project(tmp_path_factory.mktemp("whole") / "things", case)
    with Loopback(latency=0.002) as server:
        server.replies = case.replies
        finish(nursery, server, folder)
        return compiled(folder), server.asked.copy()


def test_kills_change_no_byte(nursery, server, case, whole, tmp_path):
    bytes_of_whole, once = whole
    folder, dice = project(tmp_path / "things", case), random.Random(7)
    kills = sum(killed(nursery, server, folder, dice, most=80) == -signal.SIGKILL for _ in range(4))
    finish(nursery, server, folder)
    assert kills > 1
    assert compiled(folder) == bytes_of_whole
    assert set(server.asked) == set(once)
    assert server.total - once.total() <= kills * IN_FLIGHT


def test_a_cap_is_kept(nursery, server, case, tmp_path):
    folder = project(tmp_path / "things", case)
    start(nursery, server, folder, "--set", f"budget.calls={case.cap}")
    assert nursery.wait() in (0, 3)
    assert server.total <= case.cap
    assert 100 < _lock(compiled(folder))["charged"]["calls"] <= case.cap


def test_a_failure_of_what_a_rollout_runs_in_is_tried_again_and_never_scored(nursery, server, case, whole, tmp_path):
    if not case.flaky:
        pytest.skip("nothing of the program can fail like a sandbox")
    folder = project(tmp_path / "things", case, flaky=True)
    finish(nursery, server, folder)
    assert any((folder / "lost").iterdir())
    undisturbed, disturbed = _lock(whole[0]), _lock(compiled(folder))
    # A batch goes on without what it lost, so the two may learn in another order; what is scored is scored whole.
    assert disturbed["test"]["n"] == undisturbed["test"]["n"]
    assert disturbed["validation"]["initial"] == undisturbed["validation"]["initial"]


def _lock(files):
    return json.loads(files["sort-things.lock"])

"""Scripts trained behind their tests through the whole loop, without a network."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from skillc.cli import skillc
from skillc.errors import SkillcError
from skillc.sandbox.run import CHOSEN, problem_of
from skillc.tasks import programs
from skillc.tasks.script_tests import ScriptTests

pytestmark = pytest.mark.skipif(
    all(problem_of(kind) is not None for kind in CHOSEN), reason="no sandbox works on this machine"
)
NAME = "double-numbers"
SCRIPT = Path("skills") / NAME / "scripts/double.py"
FIRST = "def double(n):\n    return n + 2\n"
GOOD = "def double(n):\n    return 2 * n\n"
FAILS = "def double(n):\n    return 3 * n\n"
MISLED = "def double(n):\n    return n * n\n"
TESTS = """
from double import double


def test_two():
    assert double(2) == 4, f"double(2) is {double(2)}"
"""
PROGRAM = """language 1
task {
  input  n: text
  output twice: text
  rollout = python("models:run")
}
skill double_numbers {
  about = "Double numbers."
  files = "extras"
  trainable section rules { limit = 300 tokens }
  trainable section double {
    file  = "scripts/double.py"
    about = "To double a number"
    tests = "checks"
  }
}
model target    = "play/target" { backend = python("models:optimizer") }
model optimizer = "play/optimizer" { backend = python("models:optimizer") }
data { source = "numbers.jsonl"; split = 2 : 1 : 1 }
goal correct = exact_match(twice)
optimize { batch = 8; drafts = 0; update = edits; meta_skill = off; tidy = off; screen = 2 }
budget { steps = 2 }
gate better = candidate.correct > incumbent.correct
"""
MODELS = '''
import json, os, pathlib, re

HERE = pathlib.Path(__file__).parent
FIRST, SECOND = json.loads((HERE / "replies.json").read_text())


def dies(place):
    """Kill this process at a place, once."""
    marker = HERE / f"killed-{place}"
    if os.environ.get("KILL") == place and not marker.exists():
        marker.touch()
        os.kill(os.getpid(), 9)


def run(inputs, folder):
    """Call the script of the skill, and note its version."""
    if not folder:
        return "unknown"
    text = pathlib.Path(folder, "double-numbers/scripts/double.py").read_text()
    with open(HERE / "ran.txt", "a") as file:
        file.write(text.splitlines()[1].strip() + "\\n")
    if "2 * n" in text:
        dies("agent")
    space = {}
    exec(text, space)
    return str(space["double"](int(inputs["n"])))


def optimizer(messages, role, settings):
    """Reply once, and again after the tests failed."""
    prompt = messages[1]["content"]
    with open(HERE / "prompts.jsonl", "a") as file:
        file.write(json.dumps(messages) + "\\n")
    rule = re.search(r"Its one rule `(\\w+)` is", prompt)[1]
    again = "fails its tests" in prompt
    if again:
        dies("optimizer")
    reply = SECOND if again else FIRST
    if 'stage="draft"' in prompt or 'stage="rewrite"' in prompt:
        text = reply.get("text", "")
        return json.dumps({"sections": [{"section": "double", "rules": [{"rule": rule, "text": text}]}]})
    cures = re.findall(r'tag="(t\\d+)"', prompt)
    return json.dumps({"edits": [{"op": "replace", "rule": rule, "rationale": "x", "cures": cures, **reply}]})
'''


def write_program(folder, first=None, second=None, program=PROGRAM, tests=TESTS):
    """A program with its models, data, script and tests."""
    (folder / "extras/scripts").mkdir(parents=True)
    (folder / "checks").mkdir()
    files = {
        "double.skill": program,
        "models.py": MODELS,
        "replies.json": json.dumps([first or {"text": FAILS}, second or {"old": "n + 2", "text": "2 * n"}]),
        "numbers.jsonl": "".join(json.dumps({"n": str(n), "twice": str(2 * n)}) + "\n" for n in range(2, 50)),
        "extras/scripts/double.py": FIRST,
        "checks/test_double.py": tests,
    }
    for name, text in files.items():
        (folder / name).write_text(text)
    return folder


@pytest.fixture
def project(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield lambda *args, **options: write_program(tmp_path, *args, **options)
    sys.modules.pop("models", None)


def compile_here(*words):
    """Compile, and return the status and the output."""
    sys.modules.pop("models", None)
    done = CliRunner().invoke(skillc, ["compile", "double.skill", *words], standalone_mode=False)
    assert done.exception is None, done.output
    return done.return_value or 0, done.output


def refused_here():
    """Compile, and return the message of the error and its hint."""
    sys.modules.pop("models", None)
    done = CliRunner().invoke(skillc, ["compile", "double.skill"], standalone_mode=False)
    assert isinstance(done.exception, SkillcError), done.output
    return f"{done.exception.message}; {done.exception.hint}"


def decisions():
    return [json.loads(line) for line in Path(f"skills/{NAME}.history.jsonl").read_text().splitlines()]


def ran():
    """The versions of the script that rollouts used."""
    return set(Path("ran.txt").read_text().splitlines()) if Path("ran.txt").exists() else set()


def prompts():
    return Path("prompts.jsonl").read_text().splitlines()


def outcome(folder="."):
    """All that git gets, except the digest of nothing but time."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(Path(folder, "skills").rglob("*"))
        if path.is_file()
    }


# ---- refused and accepted ---------------------------------------------------------------------------


SENDS = "def double(n):\n    import urllib.request\n    return 2 * n\n"


@pytest.mark.parametrize("sessions", [True, False])
def test_a_script_that_sends_data_is_not_learned_from_sessions_and_not_run(sessions, project):
    """It is right and passes its tests; where the data names no sessions, it is the author's choice."""
    program = PROGRAM.replace('source = "numbers.jsonl"', 'source = "numbers.jsonl"; field session: text')
    project(first={"text": SENDS}, second={"text": SENDS}, program=program if sessions else PROGRAM)
    rows = [json.loads(line) for line in Path("numbers.jsonl").read_text().splitlines()]
    lines = [json.dumps({**row, "session": f"s:{row['n']}"} if sessions else row) + "\n" for row in rows]
    Path("numbers.jsonl").write_text("".join(lines))
    compile_here()
    assert ("import urllib.request" in ran()) != sessions
    if sessions:
        assert not SCRIPT.exists() or SCRIPT.read_text() == FIRST
        assert "the script `scripts/double.py` opens a network connection" in json.dumps(decisions())
    else:
        assert SCRIPT.read_text() == SENDS


@pytest.mark.parametrize("maker", ["edits", pytest.param("draft", marks=pytest.mark.thorough)])
def test_a_version_that_fails_its_tests_runs_in_no_rollout_and_its_failure_is_fed_back(maker, project):
    program = PROGRAM if maker == "edits" else PROGRAM.replace("drafts = 0; update = edits; ", "drafts = 1; ")
    project(second={"text": GOOD}, program=program.replace("steps = 2", "steps = 4"))
    status, output = compile_here()
    assert status == 0, output
    first = decisions()[0]
    assert (first["result"], first["blame"], first["evaluated"]) == ("reject", "script tests", 0)
    assert first["reason"] == "`scripts/double.py` fails its tests: 1 of 1 tests failed"
    assert "`scripts/double.py` fails its tests" in output
    assert ran() == {"return n + 2", "return 2 * n"}
    assert any("double(2) is 6" in prompt for prompt in prompts())
    assert [each["result"] for each in decisions()].count("accept") == 1
    assert SCRIPT.read_text() == GOOD
    assert "run [scripts/double.py](scripts/double.py)" in (SCRIPT.parents[1] / "SKILL.md").read_text()


@pytest.mark.thorough
def test_a_version_that_passes_its_tests_has_to_pass_the_gates_too(project):
    project(first={"text": MISLED})
    compile_here()
    assert "return n * n" in ran()
    assert not any(each["result"] == "accept" for each in decisions())
    assert SCRIPT.read_text() == FIRST


@pytest.mark.thorough
def test_an_edit_of_one_place_keeps_all_other_bytes(project):
    folder = project(first={"old": "n + 2", "text": "2 * n"})
    first = "# -*- coding: utf-8 -*-\r\n\tX = 'é'  \r\n\n\ndef double(n):\n    return n + 2\n\n\n\n".replace("\tX", "X")
    (folder / "extras/scripts/double.py").write_bytes(first.encode())
    compile_here()
    assert SCRIPT.read_bytes() == first.replace("n + 2", "2 * n").encode()


@pytest.mark.thorough
def test_the_optimizer_reads_the_tests_only_if_they_are_shown(project):
    folder = project(first={"text": GOOD})
    compile_here()
    assert not any("test_two" in each for each in prompts())
    assert any("Its one rule" in each for each in prompts())
    (folder / "prompts.jsonl").unlink()
    (folder / "double.skill").write_text(PROGRAM.replace('tests = "checks"', 'tests = "checks" { shown = on }'))
    compile_here()
    assert all("def test_two()" in each for each in prompts())


# ---- before the first call --------------------------------------------------------------------------


def test_a_first_script_that_fails_its_tests_stops_the_compile_before_the_first_call_and_is_tested_again(project):
    folder = project(tests=TESTS.replace("== 4", "== 5"))
    problem = refused_here()
    assert "`scripts/double.py` fails its tests: 1 of 1 tests failed" in problem
    assert "fix the script, or its tests" in problem
    assert not (folder / "ran.txt").exists()
    assert not (folder / "prompts.jsonl").exists()
    (folder / "checks/test_double.py").write_text(TESTS)
    assert compile_here()[0] == 0


def test_a_sandbox_that_does_not_work_stops_the_compile_before_the_first_call(project):
    declared = 'tests = "checks" { sandbox = docker { image = "no-such-image-anywhere" } }'
    folder = project(program=PROGRAM.replace('tests = "checks"', declared))
    problem = refused_here()
    assert "the sandbox `docker` does not work here" in problem
    assert not (folder / "ran.txt").exists()


def test_a_function_that_gets_no_folder_cannot_run_scripts(project):
    folder = project()
    (folder / "models.py").write_text(MODELS.replace("def run(inputs, folder)", "def run(inputs, folder_=None)"))
    (folder / "models.py").write_text((folder / "models.py").read_text().replace("folder_=None", "skill"))
    problem = refused_here()
    assert "cannot run the skill's scripts" in problem
    assert "the parameter `folder`" in problem


# ---- failures of the sandbox, and resume ------------------------------------------------------------


def test_tests_that_could_not_be_run_reject_nothing_and_are_run_again(project, monkeypatch):
    project(first={"text": GOOD}, program=PROGRAM.replace("steps = 2", "steps = 3"))
    real, calls = programs.run_in_sandbox, []

    async def flaky(*args, **options):
        calls.append(1)
        if 2 <= len(calls) <= 10:
            raise OSError("no more processes")
        return await real(*args, **options)

    monkeypatch.setattr(programs, "run_in_sandbox", flaky)
    assert compile_here()[0] == 0
    first, *later = decisions()
    assert first["result"] == "undecided"
    assert "could not be run" in first["reason"]
    assert not any(each["result"] == "reject" for each in decisions())
    assert later[-1]["result"] == "accept"
    assert SCRIPT.read_text() == GOOD
    assert not any("fails its tests" in each for each in prompts())


@pytest.mark.parametrize("place", ["optimizer", "agent"])
@pytest.mark.thorough
def test_a_killed_run_ends_with_the_same_bytes_and_repeats_no_test_of_a_closed_step(place, tmp_path):
    whole, killed = (write_program(tmp_path / name) for name in ("whole", "killed"))

    def compile_in(folder, **variables):
        command = [sys.executable, "-m", "skillc", "compile", "double.skill"]
        environment = {**os.environ, **variables}
        return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, env=environment)

    assert compile_in(whole).returncode == 0
    assert compile_in(killed, KILL=place).returncode == -9
    assert not (killed / "skills").exists()
    (killed / "sitecustomize.py").write_text(
        "import skillc.tasks.script_tests as tests\n"
        "first = tests.ScriptTests.run\n"
        "async def run(self, document, name):\n"
        "    open('again.txt', 'a').write(document.section(name).body.splitlines()[1].strip() + '\\n')\n"
        "    return await first(self, document, name)\n"
        "tests.ScriptTests.run = run\n"
    )
    resumed = compile_in(killed, PYTHONPATH=str(killed))
    assert resumed.returncode == 0, resumed.stderr
    assert outcome(killed) == outcome(whole)
    again = (killed / "again.txt").read_text().splitlines() if (killed / "again.txt").exists() else []
    # What a decision is based on is on disk with it; only the result of the open step may be lost.
    assert set(again) <= {"return 2 * n"}


def test_recorded_results_decide_a_resumed_run(project, monkeypatch):
    folder = project()
    assert compile_here()[0] == 0
    before = outcome()
    # The store of the run has the results; without the mark of its end the same command resumes it.
    (info,) = (folder / ".skillc/runs").glob("*/run.json")
    info.write_text(info.read_text().replace('"finished": true', '"finished": false'))

    async def differs(self, document, name):
        return "the tests changed their mind"

    monkeypatch.setattr(ScriptTests, "run", differs)
    assert compile_here()[0] == 0
    assert outcome() == before


# ---- hand edits and the lock ------------------------------------------------------------------------


def test_an_edited_script_is_protected_until_the_program_has_it(project):
    folder = project(first={"text": GOOD})
    compile_here()
    SCRIPT.write_text(GOOD + "# mine\n")
    problem = refused_here()
    assert "was edited by hand and would be overwritten" in problem
    assert "make the edits in `extras` beside the program" in problem
    (folder / "extras/scripts/double.py").write_text(GOOD + "# mine\n")
    assert compile_here()[0] == 0
    assert SCRIPT.read_text() == GOOD + "# mine\n"


@pytest.mark.parametrize(
    "changed", ["checks/test_double.py", pytest.param("extras/scripts/double.py", marks=pytest.mark.thorough)]
)
def test_changed_tests_and_a_changed_first_script_are_reported_by_the_lock(changed, project):
    folder = project(first={"text": GOOD})
    compile_here()
    locked = CliRunner().invoke(skillc, ["check", "double.skill", "--locked"], standalone_mode=False)
    assert (locked.return_value or 0) == 0, locked.output
    lock = json.loads(Path(f"skills/{NAME}.lock").read_text())
    assert f"{NAME}/scripts/double.py" in lock["files"]
    (folder / changed).write_text((folder / changed).read_text() + "# changed\n")
    locked = CliRunner().invoke(skillc, ["check", "double.skill", "--locked"], standalone_mode=False)
    assert locked.return_value == 1
    assert "code, or the tests of its scripts, changed" in locked.output


def test_a_diff_shows_changed_settings_of_tests_and_a_changed_first_script(project):
    folder = project(program=PROGRAM.replace('"checks"', '"checks/test_double.py"'))
    git = ["git", "-c", "user.email=a@b", "-c", "user.name=a", "-c", "commit.gpgsign=false"]
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "x"]):
        subprocess.run([*git, *words], check=True)
    (folder / "extras/scripts/double.py").write_text(GOOD)
    (folder / "checks/test_double.py").write_text(TESTS.replace("double(2) == 4", "double(3) == 6"))
    shown = PROGRAM.replace('"checks"', '"checks/test_double.py" { shown = on }')
    (folder / "double.skill").write_text(shown)
    output = CliRunner().invoke(skillc, ["diff", "double.skill"], standalone_mode=False).output
    assert "shown of tests" in output
    assert "+     return 2 * n" in output
    assert "double(3) == 6" in output


# ---- checked before anything ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (('tests = "checks"', ""), "SK428"),
        (("trainable section rules {", 'trainable section rules { tests = "checks";'), "SK428"),
        (("trainable section double {", 'frozen section double = "x" {'), "SK426 SK428"),
        (('tests = "checks"', 'tests = "nowhere"'), "SK429"),
        (('tests = "checks"', 'tests = "../checks"'), "SK429"),
        (('tests = "checks"', 'tests = "/checks"'), "SK429"),
        (('tests = "checks"', 'tests = "."'), "SK429"),
        (('tests = "checks"', 'tests = "extras/scripts"'), "SK429"),
        (('tests = "checks"', 'tests = "numbers.jsonl"'), "SK429"),
        (('tests = "checks"', 'tests = "checks" { command = [] }'), "SK429"),
        (("scripts/double.py", "scripts/other.py"), "SK429"),
        (('files = "extras"', ""), "SK429"),
        (('about = "To double a number"', "limit = 3 tokens"), "SK411"),
        (('python("models:run")', "predict"), "SK423"),
        (("drafts = 0;", "drafts = 0; method = gepa;"), "SK423"),
        (("scripts/double.py", "../double.py"), "SK424"),
        (("trainable section double {", 'trainable section double = "x = 1" {'), "SK426"),
        (('tests = "checks"', 'tests = "checks" { shown = on; sandbox = landlock { time = 5 s } }'), None),
        (('tests = "checks"', 'tests = "numbers.jsonl" { command = ["sh", "-c", "true"] }'), None),
    ],
)
def test_what_cannot_be_trained_is_a_finding(change, code, project):
    project(program=PROGRAM.replace(*change))
    done = CliRunner().invoke(skillc, ["check", "double.skill", "--json"], standalone_mode=False)
    found = {each["code"] for each in json.loads(done.output)["diagnostics"] if each["severity"] == "error"}
    assert found == set((code or "").split())


def test_a_script_that_is_no_text_or_empty_is_a_finding(project):
    folder = project()
    for content in (b"\xff\xfe", b" \n"):
        (folder / "extras/scripts/double.py").write_bytes(content)
        done = CliRunner().invoke(skillc, ["check", "double.skill", "--json"], standalone_mode=False)
        assert [each["code"] for each in json.loads(done.output)["diagnostics"]] == ["SK429"]

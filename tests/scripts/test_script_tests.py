"""The tests of a script in the sandboxes that work on this machine, and scripts that mean harm."""

import asyncio
import socket
import textwrap

import pytest
from model_plans import plan_of

from skillc.document.skill import Document, Section
from skillc.errors import SkillcError
from skillc.plan.digest import digest_of_tests
from skillc.plan.schema import SectionPlan, TestsPlan
from skillc.sandbox.run import problem_of
from skillc.tasks import programs
from skillc.tasks.programs import SandboxFailed
from skillc.tasks.script_tests import ScriptTests

SANDBOXED = [kind for kind in ("bubblewrap", "landlock") if problem_of(kind) is None]
SANDBOX = SANDBOXED[0] if SANDBOXED else "bubblewrap"
DOUBLE = """import sys


def double(n):
    return 2 * n


if __name__ == '__main__':
    print(double(int(sys.argv[1])))
"""
TESTS = """
import subprocess
import sys
import unittest

from double import double


def test_function():
    assert double(4) == 8, "double(4)"


class TestMethods:
    def test_method(self):
        assert double(0) == 0


class Cases(unittest.TestCase):
    def test_command(self):
        done = subprocess.run([sys.executable, "scripts/double.py", "21"], capture_output=True, text=True)
        self.assertEqual(done.stdout, "42\\n")
"""


@pytest.fixture(params=["bubblewrap", "landlock"])
def sandbox(request):
    if request.param not in SANDBOXED:
        pytest.skip(f"{request.param}: {problem_of(request.param)}")
    return request.param


def program(folder, tests, sandbox=SANDBOX, path="tests/test_double.py", **settings):
    """Write the tests and return the plan of a program with one script."""
    for name, text in (tests if isinstance(tests, dict) else {path: tests}).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(textwrap.dedent(text))
    limits = settings.pop("limits", {})
    declared = TestsPlan(path=path, sandbox={"kind": sandbox, "time": 20, **limits}, **settings)
    made = plan_of()
    section = SectionPlan(name="double", mode="trainable", file="scripts/double.py", tests=declared)
    return made.model_copy(update={"skill": made.skill.model_copy(update={"sections": (section,)})})


def skill(script=DOUBLE, file="scripts/double.py", files=()):
    return Document("numbers", "Doubles.", (Section("double", "trainable", script, file=file),), files=files)


def result(folder, plan, document):
    tests = ScriptTests(plan, folder)
    return asyncio.run(tests.run(document, "double"))


def test_cases_functions_and_methods_run_and_pass(sandbox, tmp_path):
    assert result(tmp_path, program(tmp_path, TESTS, sandbox), skill()) == ""


def test_a_failed_test_is_shown_with_its_traceback_and_no_path_or_time_of_this_machine(sandbox, tmp_path):
    plan = program(tmp_path, TESTS, sandbox)
    found = result(tmp_path, plan, skill(DOUBLE.replace("2 * n", "n + 2")))
    assert found.startswith("3 of 3 tests failed")
    assert "FAILED test_function" in found
    assert "AssertionError: double(4)" in found
    assert 'File "/sandbox/tests/test_double.py"' in found
    assert "run_tests" not in found
    assert "skillc-" not in found
    assert found == result(tmp_path, plan, skill(DOUBLE.replace("2 * n", "n + 2")))


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ("def double(n) return n\n", "scripts/double.py does not parse: "),
        ("x = '\0'\n", "scripts/double.py does not parse: "),
        ("(" * 9000 + ")" * 9000, "scripts/double.py does not parse: "),
        ("import sys\nsys.exit(0)\n", "tests/test_double.py cannot be loaded:"),
        ("import os\nos._exit(0)\n", "the tests ended early"),
        ("raise KeyboardInterrupt\n", "tests/test_double.py cannot be loaded:"),
        ("def double(n):\n    raise SystemExit(0)\n", "3 of 3 tests failed"),
        ("import os, signal\nos.kill(os.getpid(), signal.SIGKILL)\n", "ended with status"),
    ],
)
def test_a_script_that_ends_the_process_or_does_not_parse_fails(script, reason, tmp_path):
    found = result(tmp_path, program(tmp_path, TESTS), skill(script))
    assert reason in found


@pytest.mark.parametrize(
    ("script", "limits", "reason"),
    [
        ("while True:\n    pass\n", {"time": 1}, "it was stopped: it ran longer than 1 s"),
        (
            "import os, time\nwhile True:\n    if os.fork() == 0:\n        time.sleep(60)\n        os._exit(0)\n",
            {"processes": 20, "time": 10},
            "it was stopped: it ran more than 20 processes",
        ),
        ("x = []\nwhile True:\n    x.append(b'x' * 10**7)\n", {"memory": 200_000_000}, "memory"),
    ],
    ids=["loop", "forks", "memory"],
)
def test_a_limit_stops_a_script_and_is_its_own_fault(script, limits, reason, tmp_path):
    found = result(tmp_path, program(tmp_path, TESTS, limits=limits), skill(script))
    # Landlock refuses the fork or ends the process, without a word of the limit.
    assert reason in found or "MemoryError" in found or (found and SANDBOXED == ["landlock"])


def test_a_script_reads_no_file_of_this_machine_and_reaches_no_port(sandbox, tmp_path):
    (tmp_path / "secret.txt").write_text("planted-4711")
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        tests = f"""
            import socket

            def test_secret():
                print(open({str(tmp_path / "secret.txt")!r}).read())

            def test_port():
                socket.create_connection(("127.0.0.1", {port}), timeout=2)

            def test_environment():
                import os
                assert "PLANTED" not in os.environ
        """
        plan = program(tmp_path, tests, sandbox)
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("PLANTED", "planted-4711")
            found = result(tmp_path, plan, skill())
    assert found.startswith("2 of 3 tests failed")
    assert "planted-4711" not in found


def test_a_script_changes_neither_its_tests_nor_the_next_run(tmp_path):
    script = DOUBLE + "open('tests/test_double.py', 'w').write('')\nopen('scripts/double.py', 'a').write('broken(')\n"
    plan = program(tmp_path, TESTS)
    before = (tmp_path / "tests/test_double.py").read_bytes()
    tests = ScriptTests(plan, tmp_path)
    first, second = (asyncio.run(tests.run(skill(script), "double")) for _ in range(2))
    assert first == second
    assert (tmp_path / "tests/test_double.py").read_bytes() == before


def test_kept_files_other_scripts_and_a_folder_of_tests_are_there(tmp_path):
    files = {
        "checks/test_one.py": "import shared\n\ndef test_kept():\n    assert open('assets/n.txt').read() == '7'\n",
        "checks/shared.py": "import helper\nassert helper.N == 7\n",
        "checks/inner/other_test.py": "async def test_later():\n    from scripts import double\n",
        "checks/data.bin": "no test",
    }
    document = skill(files=(("assets/n.txt", b"7"), ("scripts/helper.py", b"N = 7\n")))
    assert result(tmp_path, program(tmp_path, files, path="checks"), document) == ""


@pytest.mark.parametrize(
    ("tests", "reason"),
    [
        ("import double\n", "tests/test_double.py has no tests"),
        (
            "import unittest\n@unittest.skip('later')\nclass Cases(unittest.TestCase):\n    def test_a(self): pass\n",
            "every test was skipped",
        ),
        (
            "def test_path(tmp_path):\n    pass\n",
            "test_path needs arguments: tmp_path; a `command` such as pytest has them",
        ),
    ],
)
def test_tests_that_test_nothing_fail(tests, reason, tmp_path):
    assert reason in result(tmp_path, program(tmp_path, tests), skill())


def test_a_declared_command_passes_by_its_status_and_python_is_parsed_first(tmp_path):
    plan = program(tmp_path, "test -s scripts/double.py\n", path="checks/run.sh", command=("sh", "checks/run.sh"))
    assert result(tmp_path, plan, skill()) == ""
    assert "does not parse" in result(tmp_path, plan, skill("def (\n"))
    failing = program(tmp_path, "echo no such day; exit 3\n", path="checks/run.sh", command=("sh", "checks/run.sh"))
    assert result(tmp_path, failing, skill()) == "no such day"
    silent = program(tmp_path, "exit 3\n", path="checks/run.sh", command=("sh", "checks/run.sh"))
    assert result(tmp_path, silent, skill()) == "the tests ended with status 3 and printed nothing"


def test_a_script_of_another_language_is_run_by_its_first_line(tmp_path):
    tests = (
        "import subprocess\ndef test_it():\n    assert subprocess.check_output(['scripts/double.sh', '2']) == b'4\\n'\n"
    )
    made = program(tmp_path, tests)
    section = made.skill.sections[0].model_copy(update={"file": "scripts/double.sh"})
    plan = made.model_copy(update={"skill": made.skill.model_copy(update={"sections": (section,)})})
    found = result(tmp_path, plan, skill("#!/bin/sh\necho $((2 * $1))\n", file="scripts/double.sh"))
    assert found == ""


@pytest.mark.parametrize("broken", ["raises", "prints"])
def test_a_sandbox_that_breaks_is_no_fault_of_the_script(tmp_path, monkeypatch, broken):
    from skillc.processes.command import CommandResult

    async def fail(*_, **__):
        if broken == "raises":
            raise OSError("no more processes")
        return CommandResult("ended", 1, b"", b"bwrap: No permissions to create a new namespace\n")

    monkeypatch.setattr(programs, "run_in_sandbox", fail)
    with pytest.raises(SandboxFailed, match=r"no more processes|No permissions"):
        result(tmp_path, program(tmp_path, TESTS), skill())


def test_a_sandbox_that_does_not_work_here_is_an_error_before_the_first_test(tmp_path, monkeypatch):
    plan = program(tmp_path, TESTS, "docker")
    with pytest.raises(SkillcError, match="the sandbox `docker` does not work here"):
        ScriptTests(plan, tmp_path)


def test_the_key_changes_with_the_code_and_the_tests_and_not_with_texts(tmp_path):
    plan = program(tmp_path, TESTS)
    tests = ScriptTests(plan, tmp_path)
    base = tests.keys(skill())
    text = Section("rules", "trainable", "- Double it.")
    assert tests.keys(Document("numbers", "Other.", (text, *skill().sections))) == base
    assert tests.keys(skill(DOUBLE + "#")) != base
    assert tests.keys(skill(files=(("scripts/helper.py", b""),))) != base
    before = digest_of_tests(plan, tmp_path)
    changed = program(tmp_path, TESTS + "\n")
    assert ScriptTests(changed, tmp_path).keys(skill()) != base
    assert digest_of_tests(changed, tmp_path) not in (before, "")
    assert digest_of_tests(plan_of(), tmp_path) == ""

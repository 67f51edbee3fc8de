"""What `check` says of the settings of agents."""

import pytest
from checking import run

from skillc.diagnostics.diagnostic import Severity

PROGRAM = """language 1
task {
  input  issue: text
  output patch: text
  rollout = ROLLOUT
}
skill fix { about = "Fix an issue."; trainable section rules }
model target    = "openai/tiny" { base_url = "http://localhost:8000/v1"; price { input = $1; output = $2 } }
model optimizer = "rulebook/v1"
data { source = "issues.jsonl"; field repo: text }
budget { epochs = 2 CAP }
goal correct = exact_match(patch)
gate better = candidate.correct > incumbent.correct
"""


def found(rollout, cap=""):
    checked = run(PROGRAM.replace("ROLLOUT", rollout).replace("CAP", cap))
    return [each for each in checked.diagnostics if each.severity is Severity.ERROR]


@pytest.mark.parametrize(
    "rollout",
    [
        "codex",
        'codex { version = "0.169.0"; time = 5min; tokens = 60_000 tokens; sandbox = bubblewrap { memory = 2 GB } }',
        'opencode { files = "cases/{repo}/{id}"; prompt = "{question} Fix {issue} and keep {{this}}." }',
        'hermes { hosts = ["pypi.org:443"]; reads = ["/opt/tools"]; environment = [env("GITHUB_TOKEN")] }',
        "claude_code { cost = $0.50; sandbox = unsafe }",
        'codex { sandbox = docker { image = "own/codex:1"; memory = 2 GB; processes = 64; disk = 1 GB } }',
        "opencode { sandbox = podman }",
        'command("sh {here}/agent.sh {skill} {report}") { answer = json(".result") }',
        'command("agent", "--model", "{model}", "{prompt}")',
    ],
)
def test_sound_settings_are_accepted(rollout):
    assert found(rollout) == []


@pytest.mark.parametrize(
    ("rollout", "message"),
    [
        ('command("agent {promt}")', "unknown placeholder `{promt}`"),
        ('command("agent \'x")', "a quote in the command is not closed"),
        ('command("")', "the command has no program"),
        ('command("{prompt} x")', "the program can't be a placeholder"),
        ('codex { prompt = "{isue}" }', "unknown placeholder `{isue}`"),
        ('codex { files = "/etc" }', "is not a path below the program's folder"),
        ('codex { files = "../x" }', "is not a path below the program's folder"),
        ('codex { files = "{id}" }', "`files` begins with a placeholder"),
        ('codex { files = "cases/{nr}" }', "unknown placeholder `{nr}`"),
        ('codex { hosts = ["pypi.org"] }', "`pypi.org` is not an address"),
        ('codex { environment = [env("A B")] }', "`A B` is not the name of a variable"),
    ],
)
def test_wrong_settings_are_errors_with_a_fix(rollout, message):
    (error,) = found(rollout)
    assert error.code == "SK634"
    assert message in error.message
    assert error.hint


def test_a_wrong_answer_has_the_code_of_commands():
    (error,) = found('command("agent") { answer = json("result") }')
    assert error.code == "SK622"


@pytest.mark.parametrize("cap", ["tokens = 1M", "cost = $5"])
def test_a_cap_needs_a_maximum_of_one_rollout(cap):
    (error,) = found("codex", f"; {cap}")
    assert error.code == "SK635"
    assert found("codex { tokens = 50_000 tokens }", f"; {cap}") == []


def test_a_maximum_of_the_cost_holds_no_cap_on_tokens():
    assert found("codex { cost = $0.50 }", "; cost = $5") == []
    (error,) = found("codex { cost = $0.50 }", "; tokens = 1M")
    assert error.code == "SK635"


def test_settings_of_others_are_unknown():
    assert [error.code for error in found("codex { turns = 5 }")] == ["SK202"]
    assert [error.code for error in found('command("a") { version = "1" }')] == ["SK202"]

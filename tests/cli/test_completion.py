"""What the tab key offers, asked of real shells."""

import shlex
import shutil
import subprocess
import sys

import pytest
from conftest_cli import ROOT, skillc
from forked import command

from skillc.cli import VERBS


@pytest.fixture
def shell(tmp_path):
    """A folder with programs, and a `skillc` on the path of the shells that run in it."""
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin/skillc"
    program.write_text(f'#!/bin/sh\nexec {shlex.join(command())} "$@"\n')
    program.chmod(0o755)
    folder = tmp_path / "work"
    (folder / "shops").mkdir(parents=True)
    (folder / "shops/inner.skill").touch()
    (folder / ".hidden.skill").touch()
    (folder / "two words.skill").touch()
    (folder / "tickets.skill").touch()
    (folder / "tickets.jsonl").touch()

    def run(name, script):
        if shutil.which(name) is None:
            pytest.skip(f"there is no {name} here")
        done = subprocess.run(
            [name, "-c", script],
            cwd=folder,
            env={"PATH": f"{tmp_path}/bin:/usr/bin:/bin", "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"},
            capture_output=True,
            text=True,
            timeout=600,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.splitlines()

    return run


def bash(shell, *words):
    """What bash offers for the last word."""
    quoted = " ".join(f"'{word}'" for word in words)
    return shell(
        "bash",
        f"""eval "$(skillc completion bash)"
        compopt() {{ echo "<$2>"; }}
        COMP_WORDS=({quoted}); COMP_CWORD={len(words) - 1}
        $(complete -p skillc | sed 's/.*-F \\([^ ]*\\).*/\\1/') skillc
        printf '%s\\n' "${{COMPREPLY[@]}}" """,
    )


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (("skillc", "ch"), {"check"}),
        (("skillc", "--v"), {"--version"}),
        (("skillc", "check", "--for"), {"--format"}),
        (("skillc", "check", ""), {"tickets.skill", "two words.skill", "shops/"}),
        (("skillc", "compile", "tick"), {"tickets.skill"}),
        (("skillc", "plan", "shops/"), {"shops/inner.skill"}),
        (("skillc", "plan", "sho"), {"<dirnames>", ""}),
        (("skillc", "plan", "nowhere/"), {"<dirnames>", ""} - {"<dirnames>"}),
        (("skillc", "check", "."), {".hidden.skill"}),
        (("skillc", "explain", "SK00"), None),
        (("skillc", "fmt", "tick"), {"tickets.skill"}),
        (("skillc", "diff", "tickets.skill", "shops/"), {"shops/inner.skill"}),
        (("skillc", "std", "ga"), {"gates"}),
        (("skillc", "std", "std.sco"), {"std.scores"}),
        (("skillc", "std", "gates.stri"), {"gates.strict"}),
        (("skillc", "std", "std.gates.stri"), {"std.gates.strict"}),
        (("skillc", "std", "nothing."), {""}),
        (("skillc", "cache", "pr"), {"prune"}),
        (("skillc", "completion", ""), {"bash", "zsh", "fish"}),
        (("skillc", "compile", "--require", "i"), {"improved"}),
    ],
)
def test_bash_offers_verbs_options_programs_and_codes(shell, words, offered):
    found = set(bash(shell, *words))
    if offered is None:
        assert {"SK001", "SK002"} <= found
    else:
        assert found == offered


def test_bash_offers_every_verb(shell):
    assert set(bash(shell, "skillc", "")) == set(VERBS)


def test_zsh_offers_verbs_with_what_they_do(shell):
    lines = shell(
        "zsh",
        """autoload -U compinit; compinit -u -d ./dump
        eval "$(skillc completion zsh)"
        compadd() { print -l -- "$@"; }; _describe() { print -l -- ${(P)3}; }
        words=(skillc ch); CURRENT=2
        _skillc_completion""",
    )
    assert f"check:{VERBS['check']}" in lines


def test_fish_offers_verbs(shell):
    lines = shell("fish", "skillc completion fish | source; complete --do-complete 'skillc ch'")
    assert any(line.startswith("check") for line in lines)


@pytest.mark.parametrize("name", ["bash", "zsh", "fish"])
def test_a_script_names_the_function_that_it_defines(name, tmp_path):
    done = skillc("completion", name, folder=tmp_path)
    assert done.returncode == 0
    assert done.stdout.count("_skillc_completion") >= 2
    assert f"_SKILLC_COMPLETE={name}_complete" in done.stdout


def test_the_list_of_verbs_imports_no_verb(tmp_path):
    code = (
        "import os, sys\n"
        "os.environ |= {'_SKILLC_COMPLETE': 'bash_complete', 'COMP_WORDS': 'skillc ', 'COMP_CWORD': '1'}\n"
        "sys.argv = ['skillc']\n"
        "from skillc.cli import main\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        "print(sorted(name for name in sys.modules if name.startswith('skillc.')))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    expected = ["skillc.cli", "skillc.cli.output", "skillc.errors"]
    assert done.stdout.splitlines()[-1] == str(expected)

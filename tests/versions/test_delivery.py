"""`require improved`: a skill without that verdict is not delivered, and what is delivered stays as it is."""

import json
import os
import shutil
import signal
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner
from forked import command
from shops import edited, learnable, rows, write_rows, write_shop

from skillc.artifact_paths import ArtifactPaths
from skillc.cli import skillc
from skillc.errors import SkillcError
from skillc.frontend import ProgramError, plan_file
from skillc.plan.digest import plan_digest
from skillc.plan.lock import read_lock
from skillc.run.history import read_history
from skillc.versions.locked import locked_findings

IMPROVES = edited("budget { epochs = 1; => budget { steps = 1;", program=learnable())
REQUIRES = edited("gate small => require improved\ngate small", program=IMPROVES)
# No candidate passes, so the best skill is the initial one.
FAILS = edited("small_step(80%) => compact(30 tokens)", program=IMPROVES)
FAILS_REQUIRED = edited("gate small => require improved\ngate small", program=FAILS)
PATHS = ArtifactPaths(Path("skills"), "sort-things")
CANDIDATE = ArtifactPaths(Path("skills.candidate"), "sort-things")


def run(*words):
    done = CliRunner().invoke(skillc, [*map(str, words)], standalone_mode=False)
    if done.exception is not None:
        raise done.exception
    return done


def compiled(*words, status=0):
    """The summary of a compile."""
    done = run("compile", "things.skill", "--json", *words)
    assert done.return_value == status, done.stdout
    return json.loads(done.stdout)


def delivered():
    """All delivered files with their contents."""
    return {path.name: path.read_bytes() for path in PATHS.base.rglob("*") if path.is_file()}


@pytest.fixture
def shop(tmp_path, monkeypatch):
    """A folder with a program that cannot improve, never compiled."""
    write_shop(tmp_path, FAILS_REQUIRED)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="module")
def withheld(tmp_path_factory):
    """Such a folder after its first compile, and the summary of that."""
    folder = tmp_path_factory.mktemp("withheld") / "shop"
    folder.mkdir()
    write_shop(folder, FAILS_REQUIRED)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        return folder, compiled(status=1)


@pytest.fixture
def tried(withheld, tmp_path, monkeypatch):
    """A copy of it; another compile is answered by its record."""
    shutil.copytree(withheld[0], tmp_path / "shop")
    monkeypatch.chdir(tmp_path / "shop")
    return tmp_path / "shop"


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A shop with a delivered, improved skill."""
    folder = tmp_path_factory.mktemp("made") / "shop"
    folder.mkdir()
    write_shop(folder, REQUIRES)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        told = compiled()
    assert (told["verdict"], told["delivered"], told["required"]) == ("improved", True, "improved")
    assert told["candidate"] is None
    return folder


@pytest.fixture
def improved(made, tmp_path, monkeypatch):
    """A copy of it."""
    shutil.copytree(made, tmp_path / "shop")
    monkeypatch.chdir(tmp_path / "shop")
    return tmp_path / "shop"


def swap_test_labels(folder):
    """Data whose test split contradicts the rest: what is learned is wrong there."""
    every = list(rows())
    wrong = {"fruit": "tool", "tool": "animal", "animal": "fruit"}
    write_rows(folder / "train.jsonl", every[:48])
    write_rows(folder / "validation.jsonl", every[48:72])
    write_rows(folder / "test.jsonl", [{**row, "kind": wrong[row["kind"]]} for row in every[72:]])
    files = 'train = "train.jsonl"; validation = "validation.jsonl"; test = "test.jsonl"'
    changes = (f'source = "things.jsonl" => {files}', "split = 2 : 1 : 2; group = shop_id; => ")
    (folder / "things.skill").write_text(edited(*changes, program=IMPROVES))


# ---- not delivered --------------------------------------------------------------------------------


def test_a_first_compile_without_the_verdict_delivers_nothing(withheld, tried):
    _, told = withheld
    assert told["verdict"] == "no significant gain"
    assert told["delivered"] is False
    assert told["artifact"] is None
    assert told["candidate"] == "skills.candidate/sort-things/SKILL.md"
    assert not PATHS.base.exists()
    assert "You sort texts." in CANDIDATE.skill.read_text()
    assert CANDIDATE.module.is_file()
    assert read_lock(CANDIDATE.lock).verdict == "no significant gain"


def test_the_first_line_says_that_nothing_was_delivered_and_where_the_candidate_is(tried):
    done = run("compile", "things.skill")
    lines = done.stdout.strip().splitlines()
    assert lines[0] == "not delivered: the verdict is `no significant gain`, and `improved` is required"
    assert "skill     skills/sort-things/SKILL.md is not written yet" in lines
    assert lines[-1] == "candidate skills.candidate/sort-things/SKILL.md; `--require none` delivers it"


@pytest.mark.parametrize("option", [False, True])
def test_a_delivered_skill_stays_byte_for_byte(improved, option):
    before = delivered()
    (improved / "things.skill").write_text(FAILS if option else FAILS_REQUIRED)
    told = compiled(*(["--require", "improved"] if option else []), status=1)
    assert told["candidate"] == str(CANDIDATE.skill)
    assert delivered() == before
    assert CANDIDATE.skill.read_bytes() != PATHS.skill.read_bytes()
    done = run("compile", "things.skill", "--require", "improved")
    assert "skill     skills/sort-things/SKILL.md is unchanged" in done.stdout


def test_a_worse_skill_is_withheld_and_only_its_look_is_counted(improved):
    before, lock = delivered(), read_lock(PATHS.lock)
    swap_test_labels(improved)
    done = run("compile", "things.skill", "--require", "improved")
    assert done.return_value == 1
    first = done.stdout.strip().splitlines()[0]
    assert first.startswith(
        "not delivered: the verdict is `worse`, and `improved` is required; the candidate has 0.0 % on test"
    )
    now = delivered()
    assert {name for name in now if now[name] != before[name]} == {"sort-things.lock"}
    after = read_lock(PATHS.lock)
    assert after.model_copy(update={"looks": lock.looks}) == lock
    assert len(after.looks) == 2
    assert after.looks == read_lock(CANDIDATE.lock).looks
    assert read_lock(CANDIDATE.lock).verdict == "worse"


def test_without_the_requirement_a_worse_skill_is_delivered_and_the_first_line_says_so(shop):
    swap_test_labels(shop)
    told = compiled()
    assert (told["verdict"], told["delivered"], told["below_initial"]) == ("worse", True, True)
    lines = run("compile", "things.skill").stdout.strip().splitlines()
    assert lines[0].startswith("below the initial skill: the compiled skill has 0.0 % on test, the initial skill ")
    assert "and was delivered; " in lines[0]
    assert "`require improved`" in lines[0]


def test_an_improved_skill_has_no_such_line(improved):
    """Its first line is the table."""
    done = run("compile", "things.skill", "--quiet")
    assert done.stdout.strip().startswith("correct "), done.output


def test_a_run_that_a_cap_stops_is_not_delivered_and_has_status_3(improved):
    before = delivered()
    changes = ("steps = 1; => epochs = 40; calls = 100;", "patience = 6 => patience = 99")
    (improved / "things.skill").write_text(edited(*changes, program=FAILS_REQUIRED))
    with pytest.raises(ProgramError) as refused:
        compiled()
    least = next(each.hint for each in refused.value.diagnostics if each.code == "SK501").split("`")[1]
    told = compiled("--set", f"budget.{least.replace(' ', '')}", status=3)
    assert told["stopped"].startswith("calls")
    assert told["delivered"] is False
    assert delivered() == before


# ---- looks and history ----------------------------------------------------------------------------


def test_looks_count_though_nothing_was_ever_delivered(shop):
    swap_test_labels(shop)
    assert compiled("--require", "improved", status=1)["test"]["look"] == 1
    assert not PATHS.lock.exists()
    edited_program = Path("things.skill").read_text().replace("You sort texts.", "You sort all texts.")
    Path("things.skill").write_text(edited_program)
    assert compiled("--require", "improved", status=1)["test"]["look"] == 2
    assert len(read_lock(CANDIDATE.lock).looks) == 2
    # The same test again keeps its number.
    assert compiled("--require", "improved", status=1)["test"]["look"] == 2
    assert compiled()["test"]["look"] == 2
    assert len(read_lock(PATHS.lock).looks) == 2


def test_require_none_delivers_the_candidate_from_what_is_recorded(withheld, tried):
    _, first = withheld
    told = compiled("--require", "none")
    assert (told["delivered"], told["required"], told["artifact"]) == (True, None, str(PATHS.skill))
    assert told["spent"]["paid"] == first["spent"]["paid"]
    assert read_lock(PATHS.lock).program.options is None
    assert not CANDIDATE.base.exists()


def test_the_history_of_what_was_not_delivered_is_taken_over(improved):
    old = read_history(PATHS.history)
    (improved / "things.skill").write_text(FAILS_REQUIRED)
    compiled(status=1)
    refused = read_history(CANDIDATE.history)
    assert refused
    assert read_history(PATHS.history) == old
    (improved / "things.skill").write_text(REQUIRES.replace("You sort texts.", "You sort all texts."))
    compiled()
    found = read_history(PATHS.history)
    assert [line["link"] for line in (*old, *refused)] == [line["link"] for line in found][: len(old) + len(refused)]
    assert len(found) > len(old) + len(refused)
    assert not CANDIDATE.base.exists()
    assert locked_findings(Path("things.skill")) == ()


def test_a_candidate_of_another_skill_stays(improved):
    other = ArtifactPaths(CANDIDATE.base, "other")
    other.folder.mkdir(parents=True)
    other.skill.write_text("other")
    (improved / "things.skill").write_text(FAILS_REQUIRED)
    compiled(status=1)
    (improved / "things.skill").write_text(REQUIRES)
    compiled()
    assert [path for path in CANDIDATE.base.rglob("*") if path.is_file()] == [other.skill]


def test_an_edited_candidate_is_saved_before_it_is_replaced_and_never_removed(tried):
    CANDIDATE.skill.write_text(CANDIDATE.skill.read_text() + "\nmine\n")
    done = run("compile", "things.skill", "--require", "none")
    assert "edited by hand, so the candidate is kept" in " ".join(done.stderr.split())
    assert "mine" in CANDIDATE.skill.read_text()
    done = run("compile", "things.skill")
    assert done.return_value == 1
    assert "mine" not in CANDIDATE.skill.read_text()
    kept = [path for path in (tried / ".skillc/written").iterdir() if "mine" in path.read_text()]
    assert len(kept) == 1
    assert kept[0].name[:12] in done.stderr.replace("\n", "").replace(" ", "")


# ---- killed ---------------------------------------------------------------------------------------

KILLED = """
import os, signal, sys
from skillc.files import write_atomically
left, real = [int(sys.argv[1])], write_atomically
def write(path, content, **options):
    if "skills" in str(path):
        if not left[0]:
            os.kill(os.getpid(), signal.SIGKILL)
        left[0] -= 1
    real(path, content, **options)
import skillc.program.artifact as artifact, skillc.run.history as history, skillc.plan.lock as lock
import skillc.skill_files as files, skillc.versions.candidate
for module in (artifact, files, history, lock, skillc.versions.candidate):
    module.write_atomically = write
unlink = skillc.versions.candidate.Path.unlink
def removing(path, **options):
    if "skills" in str(path) and path.suffix != ".new":
        if not left[0]:
            os.kill(os.getpid(), signal.SIGKILL)
        left[0] -= 1
    unlink(path, **options)
skillc.versions.candidate.Path.unlink = removing
from skillc.cli import main
sys.argv = ["skillc", "compile", "things.skill", *sys.argv[2:]]
main()
"""


def killed_after(writes, *words):
    """A compile in a forked process that kills itself, as `kill -9` does, before one of its writes."""
    return subprocess.run(
        [*command("python"), "-c", KILLED, str(writes), *words],
        capture_output=True,
        text=True,
        env={**os.environ},
        check=False,
    ).returncode


@pytest.mark.parametrize("survived", range(6))
@pytest.mark.quick_cases(1)
def test_a_kill_between_two_writes_leaves_what_is_delivered_whole(improved, survived):
    """Writes: the look in the lock, SKILL.md, module, history, attributes, lock of the candidate."""
    swap_test_labels(improved)
    before = delivered()
    assert killed_after(survived, "--require", "improved") == -signal.SIGKILL
    now = delivered()
    assert {name for name in now if now[name] != before.get(name)} == ({"sort-things.lock"} if survived else set())
    compiled("--require", "improved", status=1)
    assert len(read_lock(PATHS.lock).looks) == 2
    assert {name for name in delivered() if delivered()[name] != before.get(name)} == {"sort-things.lock"}
    assert read_lock(CANDIDATE.lock).looks == read_lock(PATHS.lock).looks
    assert not list((improved / ".skillc" / "written").glob("*.json"))


@pytest.mark.parametrize("survived", [0, 3, 5, 8])
@pytest.mark.quick_cases(1)
def test_a_kill_while_a_candidate_gives_way_leaves_nothing_behind(tried, survived):
    """Writes: SKILL.md, module, history, attributes and lock, then four files of the candidate are removed."""
    assert killed_after(survived, "--require", "none") == -signal.SIGKILL
    assert CANDIDATE.lock.exists()
    compiled("--require", "none")
    assert not CANDIDATE.base.exists()
    assert [found.code for found in locked_findings(Path("things.skill"))] == ["SK762"]


# ---- other verbs ----------------------------------------------------------------------------------


def test_a_candidate_is_no_delivered_skill_for_check_install_eval_and_load(tried, tmp_path):
    import skillc as package

    (found,) = locked_findings(Path("things.skill"))
    assert found.code == "SK751"
    assert "not delivered: the verdict is `no significant gain`" in found.message
    with pytest.raises(SkillcError, match="is not compiled") as refused:
        run("install", "things.skill", "--to", "claude-code", "--project", tmp_path)
    assert "--require none" in refused.value.hint
    done = run("eval", "things.skill")
    assert "--skill skills.candidate/sort-things/SKILL.md" in " ".join(done.stderr.split())
    with pytest.warns(UserWarning, match="was not delivered"):
        package.load("things.skill")


def test_check_locked_looks_at_the_delivered_skill_alone(improved):
    (improved / "things.skill").write_text(FAILS_REQUIRED)
    compiled(status=1)
    (found,) = locked_findings(Path("things.skill"))
    assert found.code == "SK752"
    assert "not delivered: the verdict is `no significant gain`" in found.hint
    (improved / "things.skill").write_text(REQUIRES)
    assert locked_findings(Path("things.skill")) == ()


def test_a_skill_of_before_the_requirement_is_a_note(tried):
    (tried / "things.skill").write_text(FAILS)
    compiled()
    assert locked_findings(Path("things.skill")) == ()
    (tried / "things.skill").write_text(FAILS_REQUIRED)
    (found,) = locked_findings(Path("things.skill"))
    assert (found.code, found.severity.value) == ("SK762", "note")
    assert run("check", "things.skill", "--locked").return_value == 0


def test_the_requirement_changes_no_decision_so_no_digest(shop):
    required = plan_file(shop / "things.skill").plan
    (shop / "things.skill").write_text(FAILS)
    plan = plan_file(shop / "things.skill").plan
    assert (required.required_verdict, plan.required_verdict) == ("improved", None)
    assert plan_digest(required) == plan_digest(plan)


def test_a_program_that_can_never_deliver_is_an_error_before_any_call(shop):
    swap_test_labels(shop)
    write_rows(shop / "test.jsonl", list(rows())[72:77])
    with pytest.raises(ProgramError) as refused:
        compiled("--require", "improved")
    assert "SK561" in [each.code for each in refused.value.diagnostics if each.severity.value == "error"]
    assert not Path(".skillc").exists()


def test_a_file_in_the_candidate_s_place_is_an_error_before_any_call(shop):
    CANDIDATE.base.write_text("mine")
    with pytest.raises(SkillcError, match=r"`skills.candidate` is a file"):
        compiled()
    assert not (shop / ".skillc/runs").exists()


def test_sanity_needs_no_verdict(shop):
    assert run("compile", "things.skill", "--sanity").return_value in (0, 1)
    assert not CANDIDATE.base.exists()


def test_plan_and_breaking_report_it(repo):
    repo.write("gate small => require improved\ngate small")
    repo.commit("require")
    told = run("plan", "things.skill").stdout
    assert "require  improved" in told
    assert json.loads(run("plan", "things.skill", "--json").stdout)["plan"]["required_verdict"] == "improved"
    repo.write("require improved\n => ")
    done = run("breaking", "things.skill", "--against", "main")
    assert "`require improved` is gone: a skill is delivered with any verdict" in done.stdout
    assert "SK704" in done.stdout
    repo.write("gate small => require improved\ngate small")
    assert "+ require   improved   (stricter)" in run("diff", "things.skill", "--against", "main~1").stdout

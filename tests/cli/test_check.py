"""`skillc check` as a user types it: folders, formats, fixes."""

import json
import subprocess
import sys

import pytest
from conftest_cli import PROGRAM, skillc

WRONG = PROGRAM.replace("exact_match(kind)", "exact_match(kind) * .5").replace('"rulebook/v1"', "'rulebook/v1'", 1)
NOTED = PROGRAM + "metric other = one_of(kind)  # skillc: ignore[SK409] shown in the report\n"


@pytest.fixture
def tree(shop):
    (shop / "below" / "more").mkdir(parents=True)
    (shop / ".hidden").mkdir()
    (shop / "below" / "more" / "wrong one.skill").write_text(WRONG)
    (shop / "below" / "b.skill").write_text(PROGRAM)
    (shop / ".hidden" / "c.skill").write_text("not looked at")
    return shop


def test_a_folder_stands_for_all_programs_below_it(tree):
    done = skillc("check", ".", "things.skill", "--format", "concise", folder=tree)
    assert done.returncode == 1
    lines = done.stdout.splitlines()
    assert [line.split(":")[0] for line in lines] == ["below/more/wrong one.skill"] * 2
    (tree / "empty").mkdir()
    none = skillc("check", "empty", folder=tree)
    assert (none.returncode, "no program" in none.stderr) == (2, True)


@pytest.mark.parametrize("style", ["text", "concise", "json", "sarif", "github"])
def test_a_file_that_cannot_be_read_is_a_finding_and_stops_no_other(tree, style):
    wrong = "below/more/wrong one.skill"
    done = skillc("check", "missing.skill", "below", "--format", style, folder=tree)
    assert done.returncode == 2
    assert "wrong" in done.stdout
    assert "there is no file `missing.skill`" in (done.stderr if style == "text" else done.stdout)
    if style == "json":
        found = json.loads(done.stdout)
        assert [each["code"] for each in found["diagnostics"]] == ["SK040", "SK018", "SK021"]
        assert found["diagnostics"][1]["file"] == wrong
    if style == "sarif":
        (run,) = json.loads(done.stdout)["runs"]
        uris = [r["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] for r in run["results"]]
        assert uris == ["missing.skill", *["below/more/wrong%20one.skill"] * 2]
    if style == "github":
        assert done.stdout.startswith("::error file=missing.skill,")
        assert len(done.stdout.splitlines()) == 3
    if style != "text":
        assert done.stderr == ""


def test_fixes_are_written_and_the_rest_is_told(tree):
    path = tree / "below" / "more" / "wrong one.skill"
    path.write_bytes(b"\xef\xbb\xbf" + WRONG.replace("sort_things {", "sort_things {\n  limt = 3").encode())
    path.chmod(0o640)
    shown = skillc("check", "below", "--diff", folder=tree)
    assert shown.returncode == 1
    assert "+goal correct = exact_match(kind) * 0.5" in shown.stdout
    assert shown.stderr.strip() == "would fix 2 findings in below/more/wrong one.skill"
    assert path.read_bytes().startswith(b"\xef\xbb\xbf")
    assert b"* .5" in path.read_bytes()
    done = skillc("check", "below", "--fix", "--json", folder=tree)
    assert done.returncode == 1
    assert done.stderr.strip() == "fixed 2 findings in below/more/wrong one.skill"
    assert [each["code"] for each in json.loads(done.stdout)["diagnostics"]] == ["SK202"]
    assert path.read_bytes().startswith(b"\xef\xbb\xbflanguage 1\n")
    assert b"* 0.5" in path.read_bytes()
    assert path.stat().st_mode & 0o777 == 0o640
    again = skillc("check", "below", "--diff", folder=tree)
    assert (again.returncode, again.stdout) == (0, "")


def test_a_file_that_is_mended_is_clean(tree):
    done = skillc("check", "below", "--fix", folder=tree)
    assert (done.returncode, done.stdout.strip()) == (0, "no findings")
    assert skillc("check", "below", "--unsafe-fixes", folder=tree).returncode == 2


def test_the_summary_says_what_can_be_fixed_and_what_is_suppressed(tree):
    done = skillc("check", "below", folder=tree)
    assert done.stdout.splitlines()[-1] == "2 errors, 2 fixable with `--fix`"
    assert "error[SK021] [*]: a number begins with a digit" in done.stdout
    (tree / "noted.skill").write_text(NOTED)
    noted = skillc("check", "noted.skill", folder=tree)
    assert noted.stdout.strip() == "no findings, 1 suppressed"
    (found,) = json.loads(skillc("check", "noted.skill", "--json", folder=tree).stdout)["suppressed"]
    assert (found["code"], found["reason"]) == ("SK409", "shown in the report")


def test_a_link_stays_a_link(tree):
    path = tree / "below" / "more" / "wrong one.skill"
    (tree / "link.skill").symlink_to(path)
    linked = skillc("check", "link.skill", "--fix", folder=tree)
    assert linked.returncode == 0
    assert (tree / "link.skill").is_symlink()
    assert "* 0.5" in path.read_text()


def test_a_clean_program_loads_neither_pages_nor_formats_nor_fixes(shop):
    code = (
        "import sys\n"
        "sys.argv = ['skillc', 'check', 'things.skill']\n"
        "from skillc.cli import main\n"
        "try:\n    main()\nexcept SystemExit as end:\n    assert end.code == 0\n"
        "parts = ('codes', 'sarif', 'annotations', 'fixing', 'suppress', 'suggest', 'recovery', 'mistakes')\n"
        "print([part for part in parts if f'skillc.language.{part}' in sys.modules])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=shop, capture_output=True, text=True, check=False)
    assert done.stdout.splitlines()[-1] == "[]", done.stdout + done.stderr

"""`skillc std`, and a package with a metric of its own from check to a compiled skill."""

import json
import os
import sys

from conftest_cli import PROGRAM, rows, skillc

from skillc.language.library import standard_library

ENTRY = "[skillc.modules]\nacme = acme_skills\n"
METRICS = """# Metrics of ours
language 1
use std.text

/// 1 where the answer has the length of the right one, else 0.
///
///     metric sized = metrics.sized(kind)
metric sized(x: text, off: number = 0) = python("acme_skills.scoring:sized", x, off)

/// Right, and short.
metric good(x: text) = exact_match(x) * text.avoids(x, ["I think"])
"""
SCORING = """from acme_skills.helper import length
def sized(example, prediction, name, off):
    return abs(length(prediction[name]) - length(example["gold"][name])) <= off
"""
SCHEDULE = "language 1\noptimize quick { batch = 12; edits = constant(4) }\nbudget glance { steps = 2 }\n"


def installed(site):
    """A distribution `acme-skills` in a folder, and the environment that finds it there."""
    files = {
        "acme_skills/__init__.py": "",
        "acme_skills/metrics.skill": METRICS,
        "acme_skills/runs/quick.skill": SCHEDULE,
        "acme_skills/scoring.py": SCORING,
        "acme_skills/helper.py": "length = len\n",
        "acme_skills-1.2.dist-info/METADATA": "Metadata-Version: 2.1\nName: acme-skills\nVersion: 1.2\n",
        "acme_skills-1.2.dist-info/entry_points.txt": ENTRY,
    }
    for path, text in files.items():
        (site / path).parent.mkdir(parents=True, exist_ok=True)
        (site / path).write_text(text)
    before = [path for path in [os.environ.get("PYTHONPATH")] if path]
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(site), *before])}


def program_with_package(folder):
    folder.mkdir(exist_ok=True)
    text = PROGRAM.replace("task {", "use acme.metrics\nuse acme.runs.quick\ntask {", 1)
    text = text.replace("goal correct = exact_match(kind)", "goal correct = metrics.good(kind)")
    text = text.replace("optimize { batch = 12; edits = cosine(4, 2) }", "optimize = quick.quick")
    text = text.replace("budget { epochs = 2; patience = 6 steps }", "budget = quick.glance")
    text += "metric sized = metrics.sized(kind)\ngate fits = candidate.sized >= incumbent.sized\n"
    (folder / "things.skill").write_text(text)
    (folder / "things.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows()))
    return folder


def test_modules_are_listed_with_a_line_each(tmp_path):
    env = installed(tmp_path / "site")
    done = skillc("std", folder=tmp_path, env=env)
    assert (done.returncode, done.stderr) == (0, "")
    for module in standard_library().modules:
        assert module.summary in done.stdout
    assert "acme.metrics" in done.stdout
    assert "Metrics of ours" in done.stdout
    assert "acme.runs.quick" in done.stdout


def test_a_module_and_a_declaration_are_shown(tmp_path):
    env = installed(tmp_path / "site")
    done = skillc("std", "gates", folder=tmp_path)
    assert "gate strict(m: metric, more_than: share = 0%)" in done.stdout
    done = skillc("std", "std.gates.strict", folder=tmp_path)
    assert "gate better = gates.strict(score)" in done.stdout
    assert "candidate.m > incumbent.m + more_than" in done.stdout
    done = skillc("std", "acme.metrics.sized", folder=tmp_path, env=env)
    assert "1 where the answer has the length of the right one, else 0." in done.stdout
    assert "metric sized = metrics.sized(kind)" in done.stdout


def test_names_that_there_are_not_are_explained(tmp_path):
    env = installed(tmp_path / "site")
    cases = {
        "gatez": "did you mean `gates`?",
        "gates.strct": "did you mean `gates.strict`?",
        "text.strict": "`strict` is in `std.gates`",
        "strict": "`skillc std gates.strict`",
        "acme": "`acme.metrics`, `acme.runs.quick`",
        "zzzzzz": "`skillc std` lists all modules",
        "gates.zzzzzz": "`skillc std gates` lists its declarations",
    }
    for name, hint in cases.items():
        done = skillc("std", name, folder=tmp_path, env=env)
        assert (done.returncode, done.stdout) == (2, ""), name
        assert hint in done.stderr, name


def test_the_same_as_json(tmp_path):
    listed = json.loads(skillc("std", "--json", folder=tmp_path).stdout)
    assert listed["format_version"] == 1
    assert {each["name"] for each in listed["modules"]} >= {"std.gates", "std.text"}
    module = json.loads(skillc("std", "gates", "--json", folder=tmp_path).stdout)["module"]
    assert module["declarations"][0]["name"] == "gates.strict"
    found = json.loads(skillc("std", "gates.strict", "--json", folder=tmp_path).stdout)["declaration"]
    assert set(found) == {"name", "module", "kind", "signature", "doc", "example", "source"}


def test_packages_that_cannot_be_used_are_told_beside_the_list(tmp_path):
    env = installed(tmp_path / "site")
    entry = tmp_path / "site" / "acme_skills-1.2.dist-info" / "entry_points.txt"
    entry.write_text("[skillc.modules]\nacme = acme.skills\nstd = acme_skills\nno-name = acme_skills\n")
    done = skillc("std", folder=tmp_path, env=env)
    assert done.returncode == 0
    assert "names no package" in done.stderr
    assert "`std` of `acme-skills 1.2` is the name of the standard library" in done.stderr
    assert "`no-name` of `acme-skills 1.2` can't be written after `use`" in done.stderr
    assert "acme" not in done.stdout


def test_what_a_package_says_cannot_move_the_cursor(tmp_path):
    env = installed(tmp_path / "site")
    (tmp_path / "site" / "acme_skills" / "metrics.skill").write_text("# red \x1b[31m head\nlanguage 1\n")
    assert "\x1b" not in skillc("std", folder=tmp_path, env=env).stdout


def test_a_program_with_a_package_is_checked_planned_and_compiled(tmp_path):
    env = installed(tmp_path / "site")
    folder = program_with_package(tmp_path / "program")
    done = skillc("check", "things.skill", folder=folder, env=env)
    assert done.returncode == 0, done.stdout + done.stderr
    planned = json.loads(skillc("plan", "things.skill", "--json", folder=folder, env=env).stdout)
    assert "acme_skills.scoring:sized" in json.dumps(planned)
    done = skillc("compile", "things.skill", "--offline", "--json", folder=folder, env=env)
    assert done.returncode == 0, done.stderr
    assert (folder / json.loads(done.stdout)["artifact"]).is_file()
    assert "pip" not in done.stderr
    without = skillc("check", "things.skill", folder=folder)
    assert without.returncode == 1
    assert "no package `acme` is installed" in without.stdout


def test_what_is_hashed_of_a_package(tmp_path, monkeypatch):
    """The meaning of its files, and the code of its functions with what that imports; no comment, no unused file."""
    from skillc.frontend import plan_file
    from skillc.metrics.meter import metric_sources
    from skillc.plan.digest import plan_digest

    installed(tmp_path / "site")
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    folder = program_with_package(tmp_path / "program")
    package = tmp_path / "site" / "acme_skills"

    def digests():
        plan = plan_file(folder / "things.skill").plan
        return plan_digest(plan), metric_sources(plan, folder)["acme_skills.scoring:sized"]

    def changed(name, old, new):
        text = (package / name).read_text()
        assert old in text
        (package / name).write_text(text.replace(old, new))
        return digests()

    try:
        plan, code = digests()
        assert changed("metrics.skill", "# Metrics of ours", "# Metrics of theirs") == (plan, code)
        assert changed("__init__.py", "", "# nothing\n") == (plan, code)
        other, same = changed("metrics.skill", '["I think"]', '["I believe"]')
        assert (other != plan, same) == (True, code)
        assert changed("metrics.skill", '["I believe"]', '["I think"]') == (plan, code)
        same, other = changed("helper.py", "len", "lambda x: len(x)")
        assert (same, other != code) == (plan, True)
    finally:
        for name in [name for name in sys.modules if name.startswith("acme_skills")]:
            del sys.modules[name]

"""The doctor's lines about sandboxes."""

import pytest
from model_plans import plan_of

from skillc.doctor.checks import check_sandboxes
from skillc.doctor.report import status_of
from skillc.plan.schema import RolloutPlan, SectionPlan, TestsPlan


def found(settings, problems, kind="code"):
    """The findings of a program with this sandbox, where those with a problem do not work."""
    made = plan_of()
    rollout = RolloutPlan(kind=kind, settings=settings)
    plan = made.model_copy(update={"task": made.task.model_copy(update={"rollout": rollout})})
    return list(check_sandboxes(plan, lambda kind, image, _: problems.get(kind, "").format(image=image) or None))


def test_each_sandbox_has_a_line_and_the_one_in_use_says_so():
    findings = found({}, {"bubblewrap": "`bwrap` or `prlimit` is not installed"})
    assert [(each.level, each.what) for each in findings] == [("note", "bubblewrap"), ("ok", "landlock")]
    assert "rollouts use it" in findings[1].detail
    assert "package `bubblewrap`" in findings[0].fix
    both = found({}, {})
    assert ["rollouts use it" in each.detail for each in both] == [True, False]


def test_without_any_a_compile_is_blocked():
    findings = found({}, {"bubblewrap": "no", "landlock": "no"})
    assert status_of(findings) == 1
    assert [each.level for each in findings] == ["note", "note", "missing"]


def test_a_declared_one_that_does_not_work_is_missing_although_another_would():
    problems = {"docker": "the image `{image}` is not on this machine; run `docker pull {image}`"}
    findings = found({"sandbox": {"kind": "docker", "image": "own:1"}}, problems)
    (missing,) = [each for each in findings if each.level == "missing"]
    assert (missing.what, missing.fix) == ("docker", "`docker pull own:1`")
    assert not any("rollouts use it" in each.detail for each in findings)


def test_unsafe_is_a_note():
    (note,) = found({"sandbox": "unsafe"}, {}, kind="command")
    assert (note.level, note.what) == ("note", "unsafe")


@pytest.mark.parametrize("kind", ["predict", "react", "python"])
def test_a_program_that_runs_no_code_has_no_line(kind):
    assert found({}, {}, kind=kind) == []


def test_the_tests_of_scripts_have_their_own_sandbox():
    made = plan_of()
    tests = TestsPlan(path="tests", sandbox={"kind": "landlock", "time": 20})
    section = SectionPlan(name="double", mode="trainable", file="scripts/double.py", tests=tests)
    plan = made.model_copy(update={"skill": made.skill.model_copy(update={"sections": (section,)})})

    def levels(**problems):
        return [
            (each.level, each.what, each.detail) for each in check_sandboxes(plan, lambda kind, *_: problems.get(kind))
        ]

    first, second = levels()
    assert first[:2] == ("ok", "bubblewrap")
    assert "use it" not in first[2]
    assert second[2].endswith("; the tests of `scripts/double.py` use it")
    assert levels(landlock="no kernel")[1] == ("missing", "landlock", "no kernel, and the program declares it")


@pytest.mark.parametrize(
    ("kind", "settings", "hosts"),
    [("code", {}, False), ("code", {"hosts": ["localhost:80"]}, True), ("codex", {}, True), ("command", {}, True)],
)
def test_a_container_is_asked_for_hosts_where_rollouts_need_them(kind, settings, hosts):
    made = plan_of()
    rollout = RolloutPlan(kind=kind, settings={"sandbox": "podman", **settings})
    plan = made.model_copy(update={"task": made.task.model_copy(update={"rollout": rollout})})
    asked = {}
    list(check_sandboxes(plan, lambda kind, _, hosts: asked.update({kind: hosts})))
    assert asked == {"bubblewrap": False, "landlock": False, "podman": hosts}

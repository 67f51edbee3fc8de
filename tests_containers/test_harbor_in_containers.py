"""Tasks in the format of Harbor in containers: the image is built from the task's Dockerfile, and its files last."""

import pytest
from harbor_tasks import SETTINGS, made
from test_harbor import block, run
from test_sandbox import IMAGE

from skillc.errors import SkillcError
from skillc.trajectories.trajectory import FileChange, Observation

DOCKERFILE = (
    f"FROM {IMAGE}\nWORKDIR /app\nCOPY files/ ./\n"
    "RUN echo of the image > /usr/local/share/word.txt && echo made > made.txt\nENV PLACE=inside\n"
)
# Some engines take seconds to start a container.
SLOW = SETTINGS.replace("timeout_sec = 20", "timeout_sec = 300").replace("timeout_sec = 10", "timeout_sec = 120")


def seen(done):
    return [step.text for step in done.trajectory.steps if isinstance(step, Observation)]


def test_a_task_runs_in_the_image_that_its_dockerfile_makes(kind, tmp_path) -> None:
    # The folder of the test is part of the recipe, so that no earlier run has made the image.
    made(tmp_path, dockerfile=f"# {tmp_path}\n{DOCKERFILE}", settings=SLOW)
    sandbox = {"kind": kind}
    with pytest.raises(SkillcError, match="is not on this machine") as refused:
        run(tmp_path, "Done.", sandbox=sandbox)
    assert f"{kind} build" in refused.value.hint
    code = "pwd; ls; cat /usr/local/share/word.txt; echo $PLACE; ls /tests /solution 2>/dev/null"
    done = run(tmp_path, block(code), block("echo right > out.txt"), "Done.", sandbox=sandbox, build=True)
    assert done.rollout.failure is None, done.rollout.detail
    first = "/app\ngiven.txt\nmade.txt\nof the image\ninside\nit ended with status 2"
    assert seen(done) == [first, "it printed nothing"]
    assert FileChange("app/out.txt", "added", "right\n") in done.trajectory.steps
    assert done.trajectory.reward == 1


def test_an_image_that_cannot_be_built_is_an_error_of_the_program(kind, tmp_path) -> None:
    made(tmp_path, dockerfile=f"FROM {IMAGE}\nWORKDIR /app\nRUN exit 7\n")
    with pytest.raises(SkillcError, match="the image of the task `word` cannot be built"):
        run(tmp_path, "Done.", sandbox={"kind": kind}, build=True)


def test_a_built_image_is_named_by_the_task(kind, tmp_path) -> None:
    settings = SLOW + f'docker_image = "{IMAGE}"\nworkdir = "/srv/work"\n'
    made(tmp_path, dockerfile=None, settings=settings, test="#!/bin/bash\necho 0 > /logs/verifier/reward.txt\n")
    done = run(tmp_path, block("pwd; ls -R"), "Done.", sandbox={"kind": kind}, oracle=False)
    assert done.rollout.failure is None, done.rollout.detail
    assert seen(done) == ["/srv/work\n.:\nfiles\n\n./files:\ngiven.txt"]
    assert done.trajectory.reward == 0

"""The part of a Dockerfile that says which files an environment has."""

import pytest

from skillc.errors import SkillcError
from skillc.tasks.harbor.places import outermost
from skillc.tasks.harbor.recipe import Copying, Running, instructions, read_recipe

DOCKERFILE = """\
# syntax=docker/dockerfile:1
FROM python:3.13-slim
ARG PLACE=/srv/data
ENV MODE=fast LEVEL="two words"
ENV OLD the old form
WORKDIR /app
COPY --chown=1:1 files/ ./
COPY a.txt b.txt $PLACE/
COPY ["with blank.txt", "/app/sub/kept.txt"]
WORKDIR sub
RUN mkdir x \\
    # a comment between lines
    && touch x/y
RUN ["echo", "two words"]
RUN --mount=type=cache,target=/c echo cached
RUN <<EOF
echo one
echo two
EOF
USER nobody
CMD ["bash"]
"""


def recipe(tmp_path, text):
    (tmp_path / "task/environment").mkdir(parents=True)
    path = tmp_path / "task/environment/Dockerfile"
    path.write_text(text)
    return read_recipe(path)


def test_files_commands_and_variables_are_read_in_order(tmp_path):
    found = recipe(tmp_path, DOCKERFILE)
    copies = [step for step in found.steps if isinstance(step, Copying)]
    assert [(each.sources, each.target, each.folder) for each in copies] == [
        (("files/",), "/app", True),
        (("a.txt", "b.txt"), "/srv/data", True),
        (("with blank.txt",), "/app/sub/kept.txt", False),
    ]
    runs = [step for step in found.steps if isinstance(step, Running)]
    assert [each.command for each in runs] == [
        "mkdir x && touch x/y",
        "echo 'two words'",
        "echo cached",
        "echo one\necho two",
    ]
    assert {each.workdir for each in runs} == {"/app/sub"}
    assert found.workdir == "/app/sub"
    assert found.variables == {"MODE": "fast", "LEVEL": "two words", "OLD": "the old form"}
    assert outermost(found.folders) == ("/app", "/srv/data")
    assert found.problem == ""


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("COPY --from=build /x /app/", "line 3: `COPY --from=build /x /app/`"),
        ("ADD https://example.com/x /app/", "line 3: `ADD https://example.com/x /app/`"),
        ("ADD data.tar.gz /app/", "line 3: `ADD data.tar.gz /app/`"),
        ("FROM scratch", "2 stages"),
    ],
)
def test_what_only_docker_can_do_is_a_problem(tmp_path, line, problem):
    assert recipe(tmp_path, f"FROM a AS build\nWORKDIR /app\n{line}\n").problem == problem


def test_what_no_dockerfile_has_is_refused(tmp_path):
    with pytest.raises(SkillcError, match="line 2: `COPPY` is no instruction"):
        recipe(tmp_path, "FROM a\nCOPPY x y\n")


@pytest.mark.parametrize("text", ["", "\\", "RUN", "COPY", "RUN <<END\nno end", "ENV", "RUN [", 'COPY "open', "\0"])
def test_no_text_breaks_the_reader(text):
    assert isinstance(list(instructions(text)), list)

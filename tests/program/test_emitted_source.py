from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from model_plans import plan_of
from thorough import example_count

from skillc.artifact_paths import ArtifactPaths, module_name
from skillc.document.skill import document_of
from skillc.errors import SkillcError
from skillc.plan.schema import FieldPlan, RolloutPlan, SkillPlan, TaskPlan, TypePlan
from skillc.program.artifact import artifact_files, check_folder, write_artifact
from skillc.program.emitted import literal, module_source
from skillc.program.inputs import target_inputs
from skillc.program.names import as_read, class_name, field_names

HOSTILE = [
    '"',
    "'",
    "\\",
    '"""',
    "'''",
    "{}",
    "{x}",
    "%s",
    "\n",
    "\x00",
    "\u202e",
    "\u2028",
    "é",
    "🦀",
    "#",
    "\\N{BULLET}",
]
TEXTS = st.text(max_size=60) | st.lists(st.sampled_from([*HOSTILE, "word ", "x" * 50]), max_size=12).map("".join)
NAMES = st.from_regex(r"[a-z_][a-z0-9_]{0,30}", fullmatch=True) | st.sampled_from(
    [
        "lm",
        "signature",
        "class",
        "import",
        "fields",
        "json",
        "copy",
        "model_config",
        "_hidden",
        "completed",
        "self",
        "reasoning",
    ]
)
PARTS = ("start", "middle", "end")
LABELS = st.lists(TEXTS.filter(bool), min_size=1, max_size=3, unique=True).map(tuple)


@st.composite
def types(draw: Any, depth: int = 0) -> TypePlan:
    kinds = ["text", "bool", "number", "integer", "json", "file", "image", "labels"] + (["list"] if depth < 2 else [])
    kind = draw(st.sampled_from(kinds))
    labels = draw(LABELS) if kind == "labels" else ()
    item = draw(types(depth + 1)) if kind == "list" else None
    return TypePlan(kind=kind, labels=labels, item=item, optional=draw(st.booleans()))


@st.composite
def tasks(draw: Any) -> TaskPlan:
    names = draw(st.lists(NAMES, min_size=2, max_size=5, unique=True))
    fields = [
        FieldPlan(name=name, type=draw(types()), column=name, about=draw(st.none() | TEXTS.map(str.strip)) or None)
        for name in names
    ]
    cuts = [{}, {}, *({"cut": part, "limit": 200} for part in PARTS)]
    fields = [
        field.model_copy(update=draw(st.sampled_from(cuts))) if field is not fields[0] else field for field in fields
    ]
    kind = draw(st.sampled_from(["predict", "chain_of_thought"]))
    return TaskPlan(inputs=tuple(fields[1:]), outputs=(fields[0],), rollout=RolloutPlan(kind=kind))


def ruff(*arguments: str, text: str) -> str:
    command = [sys.executable, "-m", "ruff", *arguments, "--stdin-filename", "route_tickets.py", "-"]
    done = subprocess.run(command, input=text.encode(), capture_output=True)
    return "" if done.returncode == 0 else (done.stdout + done.stderr).decode()


def evaluate(source: str) -> dict[str, Any]:
    namespace: dict[str, Any] = {"__name__": "emitted", "__file__": __file__}
    read = source.replace('Path(__file__).parent / _FOLDER / "SKILL.md"', "Path(__file__)")
    assert read != source
    exec(compile(read, "emitted", "exec"), namespace)
    return namespace


@settings(max_examples=example_count(25), deadline=None)
@given(task=tasks(), name=st.from_regex(r"[a-z_][a-z0-9_]{0,60}", fullmatch=True))
@example(task=plan_of().task, name="route_tickets")
@example(task=plan_of().task, name="class")
@example(task=plan_of().task, name="program")
def test_emitted_modules_are_sound_and_formatted_whatever_the_names(task: TaskPlan, name: str) -> None:
    skill = SkillPlan(name=name, artifact="route-tickets", about="x", sections=())
    source = module_source(plan_of(task=task, skill=skill), document_of("route-tickets", "x", []))
    for arguments in (
        ("format", "--check", "--isolated"),
        ("format", "--check", "--isolated", "--line-length", "120"),
        ("check", "--isolated"),
        ("check", "--config", str(Path(__file__).parents[2] / "pyproject.toml"), "--ignore", "E501"),
    ):
        assert not ruff(*arguments, text=source), source
    namespace = evaluate(source)
    signature = namespace[class_name(name)]
    names = field_names(task)
    assert list(signature.input_fields) == [names[field.name] for field in task.inputs]
    assert list(signature.output_fields) == [names[field.name] for field in task.outputs]
    for field in (*task.inputs, *task.outputs):
        described = signature.fields[names[field.name]].json_schema_extra["desc"]
        assert described == f"${{{names[field.name]}}}"  # `about` is in SKILL.md


@given(text=st.text() | TEXTS)
def test_a_literal_reads_back_as_the_text(text: str) -> None:
    assert ast.literal_eval(literal(text)) == text
    assert literal(text).isprintable() or " " in literal(text)


def test_the_emitted_and_the_built_signature_are_the_same() -> None:
    from skillc.program.module import signature_of
    from skillc.program.names import instructions

    plan = plan_of()
    built = signature_of(plan.task, plan.skill.name, instructions(plan.task, "x"))
    emitted = evaluate(module_source(plan, document_of("route-tickets", "x", [])))["RouteTickets"]
    assert built.__name__ == emitted.__name__
    for name, field in built.fields.items():
        assert field.annotation == emitted.fields[name].annotation
        assert field.json_schema_extra == emitted.fields[name].json_schema_extra


def test_names_that_python_can_import() -> None:
    assert module_name("route_tickets") == "route_tickets"
    assert module_name("class") == "skill_class"
    assert module_name("2fa") == "skill_2fa"
    assert class_name("route_tickets") == "RouteTickets"
    assert class_name("program") == "SkillProgram"
    assert class_name("path") == "SkillPath"
    assert class_name("o") == "SkillO"
    assert module_name("dspy") == "skill_dspy"
    assert module_name("json") == "skill_json"


def test_a_skill_in_the_layout_of_before_says_what_to_move(tmp_path: Path) -> None:
    paths = ArtifactPaths(tmp_path, "route-tickets")
    paths.folder.mkdir()
    (paths.folder / "skill.lock").write_text("{}")
    with pytest.raises(SkillcError, match="layout of an earlier version") as refused:
        check_folder(paths)
    assert str(paths.lock) in str(refused.value.hint)


def test_a_folder_that_cannot_be_written_is_a_clear_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    for base, name in ((tmp_path, "file"), (tmp_path / "file", "a")):
        with pytest.raises(SkillcError, match="is a file"):
            check_folder(ArtifactPaths(base, name))
    paths = ArtifactPaths(tmp_path / "file" / "sub", "a")
    with pytest.raises(SkillcError, match="cannot be written"):
        write_artifact(paths, artifact_files(paths, plan_of(), document_of("a", "x", [])))


PASSAGES = st.lists(st.sampled_from(["a lamp ", "12345 ", "\n", "漢字", "…", "ünder ", "x" * 60]), max_size=60).map(
    "".join
)


def reading(part: str, kind: str, *, many: bool = False) -> tuple[TaskPlan, dict[str, Any]]:
    """A task with one input that is cut, and the namespace of its module."""
    inner = TypePlan(kind=kind)  # type: ignore[arg-type]
    type_ = TypePlan(kind="list", item=inner) if many else inner
    field = FieldPlan(name="given", type=type_, column="given", limit=40, cut=part)  # type: ignore[arg-type]
    task = plan_of().task.model_copy(update={"inputs": (field,)})
    return task, evaluate(module_source(plan_of(task=task), document_of("route-tickets", "x", [])))


@pytest.mark.parametrize("part", PARTS)
@given(one=PASSAGES, several=st.lists(PASSAGES, max_size=5))
def test_an_emitted_module_cuts_as_the_compile_did(part: str, one: str, several: list[str]) -> None:
    for value, many in ((one, False), (several, True)):
        task, module = _READING[part, many]
        assert module["_inputs"]({"given": value}) == target_inputs(task, {"given": value}, Path())


_READING = {(part, many): reading(part, "text", many=many) for part in PARTS for many in (False, True)}


@pytest.mark.parametrize("part", PARTS)
def test_an_emitted_module_reads_files_as_the_compile_did(
    part: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for i, text in enumerate(("word " * 90, "short", "ein Text – " * 9)):
        (tmp_path / f"{i}.txt").write_text(text, encoding="utf-8")
    task, module = reading(part, "file")
    for path in ("0.txt", "1.txt", tmp_path / "2.txt"):
        assert module["_inputs"]({"given": path}) == target_inputs(task, {"given": path}, Path())
    task, module = reading(part, "file", many=True)
    for numbers in ((0, 1, 2), (1,), (1, 2, 0), ()):
        paths = [f"{i}.txt" for i in numbers]
        assert module["_inputs"]({"given": paths}) == target_inputs(task, {"given": paths}, Path())
    assert module["_inputs"]({"given": None}) == {"given": None}


SHOP = '''
def find_order(number: str, fields: list[str] = []) -> dict:
    """Find an order.

    Args:
        number: the "number", such as A-1.
        fields: what to return.
    """
    if number == "A-0":
        raise KeyError("no such order")
    return {"number": number, "state": "late"}
'''


def test_an_agents_module_shows_its_tools_and_reports_their_errors_as_the_compile_did(tmp_path, monkeypatch) -> None:
    import asyncio

    import dspy

    from skillc.tasks.episodes import dspy_tool
    from skillc.tools.functions import function_tool
    from skillc.tools.tool import ToolLimits, call_tool

    (tmp_path / "emitted_shop.py").write_text(SHOP)
    monkeypatch.syspath_prepend(str(tmp_path))
    tool = function_tool("emitted_shop:find_order", tmp_path)
    plan = plan_of()
    rollout = RolloutPlan(kind="react", settings={"turns": 4, "result": 10})
    plan = plan.model_copy(update={"task": plan.task.model_copy(update={"rollout": rollout})})
    source = module_source(plan, document_of("route-tickets", "x", []), [tool])
    for arguments in (("format", "--check", "--isolated"), ("check", "--isolated")):
        assert not ruff(*arguments, text=source), source
    namespace = evaluate(source)
    program = namespace["program"]
    compiled = dspy.ReAct(namespace["RouteTickets"], tools=[dspy_tool(tool)], max_iters=4)
    assert program.answer.react.signature.instructions == compiled.react.signature.instructions
    assert program.answer.max_iters == 4
    for call in ({"number": "A-1"}, {"number": "A-0"}, {"number": 3}, {"nr": 3}, {"number": "x" * 99}):
        seen = asyncio.run(call_tool(tool, call, ToolLimits(10, 10)))
        assert program.answer.tools["find_order"](**call) == seen.text


def test_an_agent_with_tools_reads_the_paths_of_files() -> None:
    field = FieldPlan(name="book", type=TypePlan(kind="file"), column="book")
    plan = plan_of(task=plan_of().task.model_copy(update={"inputs": (field,)}))
    react = plan.task.model_copy(update={"rollout": RolloutPlan(kind="react")})
    assert target_inputs(react, {"book": Path("none.csv")}, Path()) == {"book": "none.csv"}
    assert as_read(react) == react
    with pytest.raises(SkillcError, match=r"the file `none\.csv` cannot be read"):
        target_inputs(plan.task, {"book": "none.csv"}, Path())

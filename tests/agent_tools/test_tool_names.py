"""A skill may rename the tools of an agent, which metrics go on to know by their names in the program."""

import asyncio
import importlib
import json
import sys

import pytest

import skillc
from skillc.document.edits import Add, Replace, apply_edits
from skillc.document.skill import document_of
from skillc.document.tool_lines import knowing_tools
from skillc.errors import SkillcError
from skillc.frontend import check_source, estimate, plan_file
from skillc.models.client import Client
from skillc.optimize.host import SilentObserver
from skillc.pipeline.compile import Job, compile_job
from skillc.plan.initial import initial_document
from skillc.program.emitted import module_source
from skillc.syntax.source import Source
from skillc.tools.tool import Tool, text_lines, with_texts
from skillc.trajectories.signals import signals
from skillc.trajectories.trajectory import Message, Observation, ToolCall, Trajectory, render

PROGRAM = """language 1
task {
  input  ticket: text
  output team: "billing" | "shipping"
  rollout = react { tools = [python("shop:find_order"), python("shop:refund")]; turns = 3 }
}
skill route_orders {
  about = "Routes a question about an order."
  trainable section rules
  trainable section tools TEXT { limit = 300 tokens; rename = on }
}
model target    = "mind/target" { backend = python("mind:target") }
model optimizer = "mind/optimizer" { backend = python("mind:optimizer") }
data { source = "tickets.jsonl"; split = 4 examples : 4 examples : 4 examples }
metric looked = used("find_order")
goal   correct = exact_match(team)
optimize { batch = 4; drafts = 0; screen = 0; meta_skill = off; replay = 0 }
budget   { steps = 1 }
gate better = candidate.looked > incumbent.looked
"""
SHOP = '''
def find_order(number: str) -> str:
    """Find an order.

    Args:
        number: the order's number.
    """
    return "the invoice is late" if number == "A-1" else "the parcel is late"


def refund(number: str) -> str:
    """Refund an order.

    Args:
        number: the order's number.
    """
    return "done"
'''
# The target calls a tool only if its name says that it finds something out; the optimizer has the idea.
MIND = r"""
import json, re

def written(**fields):
    return "\n\n".join(f"[[ ## {name} ## ]]\n{value}" for name, value in fields.items()) + "\n\n[[ ## completed ## ]]"

def target(messages, model, sent):
    system, user = messages[0]["content"], messages[-1]["content"]
    if "next_tool_name" not in system:
        return written(reasoning="-", team="billing" if "invoice" in user else "shipping")
    if "observation_0" in user or "look_up_order," not in system:
        return written(next_thought="enough", next_tool_name="finish", next_tool_args="{}")
    number = re.search(r"A-\d", user)[0]
    return written(next_thought="look", next_tool_name="look_up_order", next_tool_args=json.dumps({"number": number}))

asked = []

def optimizer(messages, model, sent):
    asked.append(messages[-1]["content"])
    texts = ["find_order -> refund", "find_order -> look up", "find_order -> look_up_order: Look up an order first."]
    edits = [{"op": "add", "section": "tools", "text": text, "cures": ["t1", "t2"]} for text in texts]
    return json.dumps({"summary": "-", "edits": edits})
"""


def program(folder, text=""):
    (folder / "shop.py").write_text(SHOP)
    (folder / "mind.py").write_text(MIND)
    rows = [{"ticket": f"{i}: order A-{i % 2}?", "team": "billing" if i % 2 else "shipping"} for i in range(12)]
    (folder / "tickets.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "orders.skill").write_text(PROGRAM.replace("TEXT", f'= "{text}"' if text else ""))
    return folder / "orders.skill"


@pytest.fixture
def fresh_modules():
    before = set(sys.modules)
    yield
    for name in set(sys.modules) - before:
        if name in ("shop", "mind", "route_orders"):
            del sys.modules[name]


def test_a_compile_renames_a_tool_and_goes_on_to_measure_it_by_its_name_in_the_program(
    tmp_path, monkeypatch, fresh_modules
) -> None:
    planned = plan_file(program(tmp_path), runnable=True)
    job = Job(planned, estimate(planned), tmp_path / "skills", tmp_path / ".skillc")
    with Client(planned.plan, root=tmp_path) as client:
        done = compile_job(job, SilentObserver(), client)
        asked = sys.modules["mind"].asked
    best = done.trained.state.best
    assert [rule.text for rule in best.section("tools").rules] == [
        "find_order -> look_up_order: Look up an order first."
    ]
    (record,) = map(json.loads, (tmp_path / "skills/route-orders.history.jsonl").read_text().splitlines())
    assert [each["fate"] for each in record["fates"]] == ["refused", "refused", "accepted"]
    assert "taken by the tool `refund`" in record["fates"][0]["why"]

    # The optimizer reads what the agent reads.
    assert "tool find_order: Find an order." in asked[0]
    assert "renames the tool for the agent" in asked[0]
    text = (tmp_path / "skills/route-orders/SKILL.md").read_text()
    assert "- find_order -> look_up_order: Look up an order first." in text

    # The emitted module calls the real function by the name that the agent uses.
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.syspath_prepend(str(tmp_path / "skills"))
    tools = importlib.import_module("route_orders").program.answer.tools
    assert set(tools) == {"look_up_order", "refund", "finish"}
    assert tools["look_up_order"].desc == "Look up an order first."
    assert tools["look_up_order"](number="A-1") == "the invoice is late"
    loaded = skillc.load(tmp_path / "orders.skill")(ticket="order A-1?")
    assert loaded.team == "billing"
    assert loaded.trajectory.calls() == (ToolCall("find_order", {"number": "A-1"}, "look_up_order"),)


def tool(name, **more):
    async def call(arguments, seconds):
        return ""

    return Tool(name, f"Does {name}.", {"number": {"description": "a number"}}, (), call, **more)


def skill(*lines, mode="trainable"):
    text = "\n".join(f"- {line}" for line in lines)
    return document_of("route", "routes", [("tools", mode, text, None)])


@pytest.mark.parametrize("mode", ["trainable", "frozen"])
def test_lines_use_either_name_of_a_renamed_tool(mode) -> None:
    named = with_texts(
        [tool("find"), tool("buy")],
        skill("find -> look_up", "`look_up`: Look it up.", "find.number: its number", "buy: Buy it.", mode=mode),
        renames=True,
    )
    assert text_lines(named) == [
        "find -> look_up",
        "look_up: Look it up.",
        "look_up.number: its number",
        "buy: Buy it.",
        "buy.number: a number",
    ]
    assert [each.program_name for each in named] == ["find", "buy"]


def test_without_the_setting_an_arrow_is_advice() -> None:
    assert [each.name for each in with_texts([tool("find")], skill("find -> look_up: Look."))] == ["find"]


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("find -> buy", "taken by the tool `buy`"),
        ("find -> BUY", "taken by the tool `buy`"),
        ("find -> look-up", "taken by the tool `see`"),
        ("find -> look up", "`look up` is not a name of a tool"),
        ("find -> 9x", "`9x` is not a name of a tool"),
        ("find -> ", "`` is not a name of a tool"),
        ("find -> büy", "is not a name of a tool"),
        (f"find -> {'x' * 65}", "has 65 characters; agents accept at most 64"),
        ("find -> finish", "one of the agent's own tools"),
        ("fond -> look", "there is no tool `fond` to rename, but `buy`, `find` and `see`"),
        ("see -> watch", "the tool `see` is renamed twice, to `look_up` and `watch`"),
    ],
)
def test_an_edit_with_a_wrong_name_is_refused(line, problem) -> None:
    start = skill("see -> look_up")
    allowed = start.with_section(
        type(start.sections[0])("tools", "trainable", rules=start.sections[0].rules, renames=())
    )
    document = knowing_tools(allowed, ["find", "buy", "see"])
    done = apply_edits(document, [Add("tools", line)])
    assert not done.results[0].applied
    assert problem in done.results[0].message
    assert done.document == document


def test_a_good_name_and_prose_with_an_arrow_are_no_problem() -> None:
    start = skill("see -> look_up")
    section = type(start.sections[0])("tools", "trainable", rules=start.sections[0].rules, renames=("find", "see"))
    document = start.with_section(section)
    rule = section.rules[0].id
    edits = [
        Add("tools", "find -> Find-1: Find it."),
        Add("tools", "A late parcel -> see."),
        Replace(rule, "see -> see"),
    ]
    done = apply_edits(document, edits)
    assert [each.applied for each in done.results] == [True, True, True]
    assert [each.name for each in with_texts([tool("find"), tool("see")], done.document, renames=True)] == [
        "Find-1",
        "see",
    ]


def test_a_program_whose_own_text_names_a_tool_wrongly_is_refused_before_the_first_rollout() -> None:
    start = skill("search -> look up")
    section = type(start.sections[0])("tools", "trainable", rules=start.sections[0].rules, renames=())
    with pytest.raises(SkillcError, match="`look up` is not a name"):
        knowing_tools(start.with_section(section), ["search"])


@pytest.mark.parametrize(
    ("old", "new", "found"),
    [
        ("", "", None),
        ("TEXT", '= "- find_order -> refund"', "taken by the tool `refund`"),
        ("TEXT", '= "- find_orders -> find"', "there is no tool `find_orders`"),
        ("section tools", "section hints", "the section `hints` cannot rename tools"),
        ('rollout = react { tools = [python("shop:find_order"), python("shop:refund")]; turns = 3 }', "", "no tools"),
        ('python("shop:refund")', 'mcp("shop-server")', None),
    ],
)
def test_check_reports_names_that_cannot_be_used(tmp_path, old, new, found) -> None:
    program(tmp_path)
    text = PROGRAM.replace(old, new) if old else PROGRAM
    text = text.replace("TEXT", "").replace('used("find_order")', "turns()").replace("looked >", "correct >")
    text = text.replace("incumbent.looked", "incumbent.correct")
    codes = [
        d for d in check_source(Source(str(tmp_path / "p.skill"), text), tmp_path).diagnostics if d.code == "SK225"
    ]
    assert [found in each.message for each in codes] == ([True] if found else [])


def test_a_plan_without_renaming_has_the_digest_that_it_had(tmp_path) -> None:
    from skillc.plan.digest import plan_digest

    with_, without, off = (
        plan_file(_with(tmp_path, text), complete=False).plan for text in ("; rename = on", "", "; rename = off")
    )
    assert plan_digest(without) == plan_digest(off) != plan_digest(with_)
    assert initial_document(with_).section("tools").renames == ()
    assert initial_document(without).section("tools").renames is None


def _with(folder, text):
    path = program(folder)
    path.write_text(path.read_text().replace("; rename = on", text))
    return path


def test_the_emitted_module_maps_the_names_of_a_servers_tools(tmp_path) -> None:
    plan = plan_file(program(tmp_path), complete=False).plan
    source = module_source(plan, skill("search -> look_up"), [tool("search"), tool("buy")])
    assert '_NAMES = {\n    "search": "look_up",\n}' in source
    assert "given = {_NAMES.get(t.name, t.name): t.func for t in tools}" in source
    assert "search, buy." in source


STEPS = (
    Message("look"),
    ToolCall("find", {"number": 1}, "look_up"),
    Observation("error: none", failed=True),
    ToolCall("", {"number": 1}, "find"),
    Observation("error: there is no tool `find`", failed=True),
)


def test_a_trajectory_shows_the_name_that_the_agent_used_and_that_of_the_program() -> None:
    trajectory = Trajectory(STEPS)
    assert '[call] look_up (find) {"number": 1}\n' in render(trajectory, None)
    assert '[call] find {"number": 1}\n' in render(trajectory, None)
    assert signals(trajectory)[0].startswith("`look_up (find)` failed, 1 of 1 call")
    assert Trajectory.from_json(json.loads(json.dumps(trajectory.to_json()))) == trajectory
    assert Trajectory((ToolCall("find"),)).to_json()["steps"] == [["call", "find", {}]]


def test_a_call_by_the_old_name_fails_and_is_no_use_of_the_tool(tmp_path, monkeypatch, fresh_modules) -> None:
    from skillc.metrics.meter import Meter
    from skillc.outcomes import Example
    from skillc.tasks.kind import Skill
    from skillc.tasks.runner import RolloutRunner

    plan = plan_file(program(tmp_path), complete=False).plan
    (tmp_path / "mind.py").write_text(
        MIND.replace('"look_up_order," not in system', "False").replace('="look_up_order"', '="find_order"')
    )
    lines = skill("find_order -> look_up_order")
    with Client(plan, root=tmp_path) as client:
        runner = RolloutRunner(plan, client, root=tmp_path)
        example = Example("1", {"ticket": "order A-1?"}, {"team": "billing"}, {}, "1")
        done = asyncio.run(runner(Skill.of(lines), example, 0, "rollout"))
    known = "error: there is no tool `find_order`, but `look_up_order`, `refund` and `finish`"
    assert done.trajectory.steps[:3] == (
        Message("look"),
        ToolCall("", {"number": "A-1"}, "find_order"),
        Observation(known, failed=True),
    )
    assert done.trajectory.outcome == "finished"
    cell = Meter(plan, tmp_path).measure(example, done.trajectory).cells["looked"]
    assert cell.value == 0


def test_diff_says_that_names_may_change_now(tmp_path) -> None:
    from click.testing import CliRunner

    from skillc.cli import skillc as command

    new = program(tmp_path)
    old = tmp_path / "old.skill"
    old.write_text(new.read_text().replace("; rename = on", ""))
    said = [
        CliRunner().invoke(command, ["diff", *map(str, pair)], standalone_mode=False).stdout
        for pair in ((old, new), (new, old))
    ]
    assert "  ~ section tools: rename   off → on   (looser)\n" in said[0]
    assert "  ~ section tools: rename   on → off   (stricter)\n" in said[1]

"""What `check` finds in the functions among an agent's tools, without running them."""

import pytest

from skillc.frontend import check_source
from skillc.syntax.source import Source

PROGRAM = """language 1
task { input ticket: text; output team: text; rollout = react { tools = [TOOLS] } }
skill route { about = "Routes."; trainable section rules }
model target = "rulebook/v1"
model optimizer = "rulebook/v1"
data { source = "tickets.jsonl" }
goal correct = exact_match(team)
budget { epochs = 1 }
gate better = candidate.correct > incumbent.correct
"""
GOOD = '''
from typing import Annotated
from pydantic import Field
raise SystemExit("checking runs nothing")
def find(number: str, how: Annotated[str, Field(description="how")] = "") -> str:
    """Find an order.

    Args:
        number: its number.
    """
'''


def found(folder, code, tools='python("shop:find")'):
    (folder / "shop.py").write_text(code)
    source = Source(str(folder / "p.skill"), PROGRAM.replace("TOOLS", tools))
    return [(each.code, each.message) for each in check_source(source, folder).diagnostics]


def test_a_sound_tool_has_no_findings(tmp_path) -> None:
    assert found(tmp_path, GOOD) == []
    assert found(tmp_path, "from elsewhere import find\n") == []
    assert found(tmp_path, "", 'python("package_elsewhere:find")') == []


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("def search(): ...\n", "the module `shop` has no function `find`"),
        ("def find(): ...\n", "the tool `shop:find` has no docstring"),
        ("def find(number):\n    '''Find.'''\n", "the parameter `number` of the tool `shop:find` has no type"),
        ("def find(number: str):\n    '''Find.'''\n", "the tool `shop:find` does not describe `number`"),
        ("async def find(*n: str):\n    '''Find.'''\n", "the tool `shop:find` takes `n`, which an agent cannot pass"),
    ],
)
def test_what_an_agent_could_not_use_is_an_error(tmp_path, code, message) -> None:
    (one,) = found(tmp_path, code)
    assert one[0] == "SK223"
    assert message in one[1]


def test_two_functions_of_one_name_are_an_error(tmp_path) -> None:
    (tmp_path / "other.py").write_text(GOOD)
    (one,) = found(tmp_path, GOOD, 'python("shop:find"), python("other:find")')
    assert one == ("SK224", "two tools are named `find`, `shop:find` and `other:find`")


IN_ENVIRONMENT = PROGRAM.replace(
    "rollout = react { tools = [TOOLS] }", 'rollout = environment("shop:Shop") { agent = react { tools = [TOOLS] } }'
)


def in_environment(folder, code, tools='python("shop:find")'):
    (folder / "shop.py").write_text(code)
    source = Source(str(folder / "p.skill"), IN_ENVIRONMENT.replace("TOOLS", tools))
    return [(each.code, each.message) for each in check_source(source, folder).diagnostics]


def test_the_tools_of_an_agent_in_an_environment_are_checked_alike(tmp_path) -> None:
    assert in_environment(tmp_path, GOOD) == []
    assert in_environment(tmp_path, "def find(): ...\n") == [
        ("SK223", "the tool `shop:find` has no docstring, which an agent chooses it by")
    ]
    named = in_environment(tmp_path, GOOD.replace("def find", "def act"), 'python("shop:act")')
    assert named == [("SK224", "`shop:act` has the name of the agent's action")]

"""The kinds of rollouts: their settings, what each of them lacks, and the limits that a program gives to one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction
from types import MappingProxyType
from typing import Any

from skillc.language.checked import Entity, Invocation, Settings, Value, amount_of, items_of, word_of
from skillc.language.forms import (
    DOLLARS,
    ENV,
    FIELD,
    PYTHON,
    SWITCH,
    TEXT,
    TIME,
    Form,
    SettingKind,
    amount,
    count,
    words,
)

_MCP = Form(
    "call",
    name="mcp",
    arguments=(TEXT,),
    options=(
        SettingKind("key", (ENV,), "the environment variable with the token for an address"),
        SettingKind("environment", (Form("list", items=(ENV,)),), "environment variables for a command"),
    ),
)
_TOOLS = SettingKind(
    "tools", (Form("list", items=(PYTHON, _MCP)),), "what the agent may call: functions, and the tools of MCP servers"
)
_TOOL_LIMITS = (
    SettingKind("timeout", (TIME,), "time limit of one call of a tool", default=Fraction(60)),
    SettingKind(
        "result",
        (amount("tokens", low=1, whole=True),),
        "limit of tokens of what a tool returns; a longer result is cut in its middle",
        default=2000,
    ),
)
_REACT_SETTINGS = (
    _TOOLS,
    SettingKind("turns", (count("turns"),), "the largest number of turns of one rollout", default=10),
    SettingKind(
        "tool_calls",
        (words("text", "native"),),
        "how the agent calls tools: in fields of its text, or by the tool calls of the provider's API",
        default="text",
    ),
    *_TOOL_LIMITS,
)
_REACT = Form("word", words=("react",), block=_REACT_SETTINGS)
_REACT_IN_TURN_SETTINGS = (
    _TOOLS,
    SettingKind("calls", (count(),), "the most calls of tools in one turn, before its action", default=3),
    *_TOOL_LIMITS,
)
_REACT_IN_TURN = Form("word", words=("react",), block=_REACT_IN_TURN_SETTINGS)


# ---- sandboxes ------------------------------------------------------------------------------------


def _sandbox(*limits: SettingKind, local: tuple[str, ...] = ("bubblewrap", "landlock", "unsafe")) -> tuple[Form, ...]:
    image = SettingKind("image", (TEXT,), "what the container contains", unset="`python:3.13-slim`")
    return (
        Form("word", words=local, block=limits),
        Form("word", words=("docker", "podman"), block=(image, *limits)),
    )


_LIMITS = (
    SettingKind("memory", (amount("bytes", low=1),), "memory limit of all its processes", default=2 * 10**9),
    SettingKind("time", (TIME,), "time limit of one run", default=Fraction(60)),
    SettingKind("processes", (count(),), "limit of concurrent processes", default=64),
    SettingKind("disk", (amount("bytes", low=1),), "what one run may write", default=10**9),
)
_SANDBOX = _sandbox(*_LIMITS)
# Tasks name files by absolute paths, which these can give them, and have their own limits of time.
_SANDBOX_WITH_PATHS = _sandbox(*(each for each in _LIMITS if each.name != "time"), local=("bubblewrap",))
_PYTHON_OF_CODE = SettingKind(
    "python", (TEXT,), "the interpreter, by name or path", unset="that of skillc, or `python3` of the container"
)
TESTS = Form(
    "text",
    block=(
        SettingKind(
            "command",
            (Form("list", items=(TEXT,)),),
            'what runs them in the skill\'s folder, as `["node", "--test"]`; they pass if it ends with status 0',
            unset="Python runs each test function and `unittest` case",
        ),
        SettingKind("shown", (SWITCH,), "whether the optimizer reads their source", default=False),
        SettingKind("sandbox", _SANDBOX, "what they run in", unset="the best that works here"),
        _PYTHON_OF_CODE,
        SettingKind("reads", (Form("list", items=(TEXT,)),), "files and folders that they may read besides their own"),
    ),
)
_CODE_SETTINGS = (
    SettingKind("rounds", (count("rounds"),), "limit of rounds of writing and running code", default=10),
    SettingKind("sandbox", _SANDBOX, "what the code runs in", unset="the best that works here"),
    SettingKind(
        "output",
        (amount("tokens", low=1, whole=True),),
        "limit of tokens of what one run prints; a longer text is cut in its middle",
        default=2000,
    ),
    _PYTHON_OF_CODE,
    SettingKind("reads", (Form("list", items=(TEXT,)),), "files and folders that the code may read besides its own"),
    SettingKind("hosts", (Form("list", items=(TEXT,)),), "addresses `name:port` that the code may reach"),
)
_HARBOR_SETTINGS = (
    SettingKind("folder", (TEXT,), "the folder of an example's task", default="{task}"),
    SettingKind("turns", (count("turns"),), "the largest number of turns of one rollout", default=30),
    SettingKind(
        "output",
        (amount("tokens", low=1, whole=True),),
        "limit of tokens of what the commands of one turn print; a longer text is cut in its middle",
        default=2000,
    ),
    SettingKind(
        "oracle",
        (SWITCH,),
        "whether the tests of a task must first give the full reward to its own solution, and less to no work",
        default=True,
    ),
    SettingKind("shown", (SWITCH,), "whether the optimizer reads what the tests print", default=False),
    SettingKind("sandbox", _SANDBOX_WITH_PATHS, "what the commands run in", unset="bubblewrap"),
    SettingKind("build", (SWITCH,), "whether images of tasks are built that are not on this machine", default=False),
    _PYTHON_OF_CODE,
    SettingKind("reads", (Form("list", items=(TEXT,)),), "files and folders that commands may read besides the task's"),
    SettingKind("hosts", (Form("list", items=(TEXT,)),), "addresses `name:port` that commands and tests may reach"),
    SettingKind("environment", (Form("list", items=(ENV,)),), "environment variables that tasks may read"),
)


# ---- agents that are command lines ------------------------------------------------------------------


_AGENT_SANDBOX = _sandbox(
    SettingKind("memory", (amount("bytes", low=1),), "memory limit of all its processes", default=4 * 10**9),
    SettingKind("processes", (count(),), "limit of concurrent processes", default=256),
    SettingKind("disk", (amount("bytes", low=1),), "what it may write", default=10**9),
)
_CLI_AGENT = (
    SettingKind("time", (TIME,), "wall time limit of one rollout", default=Fraction(600)),
    SettingKind("executable", (TEXT,), "its program, by name or path", unset="the name of the agent"),
    SettingKind("version", (TEXT,), "the version that it must have, as it prints it", unset="any"),
    SettingKind("prompt", (TEXT,), "its prompt, with `{question}` and inputs", unset="`{question}`"),
    SettingKind("files", (TEXT,), "a file or folder whose content is copied into the workspace: `cases/{id}`"),
    SettingKind("tokens", (amount("tokens", low=1, whole=True),), "the most tokens of one rollout, which are reserved"),
    SettingKind("cost", (DOLLARS,), "the largest cost of one rollout, which is reserved", unset="that of `tokens`"),
    SettingKind("sandbox", _AGENT_SANDBOX, "what it runs in", unset="the best that works here"),
    SettingKind("hosts", (Form("list", items=(TEXT,)),), "addresses `name:port` that it may reach besides the model"),
    SettingKind("reads", (Form("list", items=(TEXT,)),), "further files and folders that it may read"),
    SettingKind("environment", (Form("list", items=(ENV,)),), "environment variables that are passed on"),
)
ANSWER = (
    words("stdout"),
    Form("call", name="json", arguments=(TEXT,)),
    Form("call", name="after", arguments=(TEXT,)),
    Form("call", name="match", arguments=(TEXT,)),
    Form("call", name="file", arguments=(TEXT,)),
)
AGENTS = ("codex", "opencode", "hermes", "claude_code")
"""Agents whose command lines skillc knows."""


def is_agent(kind: str) -> bool:
    """Whether a kind of rollout runs the command line of an agent."""
    return kind == "command" or kind in AGENTS


# ---- the kinds ------------------------------------------------------------------------------------

_ENVIRONMENT = (
    SettingKind(
        "agent",
        (words("predict", "chain_of_thought"), _REACT_IN_TURN),
        "how the agent answers in each turn",
        default="predict",
    ),
    SettingKind(
        "action",
        (words("last_line", "whole_reply"),),
        "the part of a reply that is the action, if the only output is a text",
        default="last_line",
    ),
    SettingKind("turns", (count("turns"),), "the largest number of turns of one rollout", default=50),
    SettingKind("history", (count("tokens"),), "limit of past turns in a prompt; the oldest are cut", default=4000),
    SettingKind(
        "observation", (count("tokens"),), "limit of one observation, and of one list of actions", default=2000
    ),
    SettingKind("processes", (count(),), "the most environments at once", default=16),
    SettingKind("step_time", (TIME,), "time limit of one step", default=Fraction(60)),
    SettingKind("reset_time", (TIME,), "time limit of a start and of a reset", default=Fraction(120)),
    SettingKind("memory", (amount("bytes", low=1, whole=True),), "limit of the memory of one process"),
    SettingKind("python", (TEXT,), "the interpreter of the environment", unset="that of skillc, or found by its name"),
    SettingKind(
        "user",
        (
            Form(
                "role",
                block=(SettingKind("goal", (FIELD,), "the field with the user's goal", unset="all data fields"),),
            ),
        ),
        "the model that plays a simulated user",
    ),
)
ONE_TURN = ("predict", "chain_of_thought")
"""Kinds of rollouts that are one call of the target."""
SEES_IMAGES = (*ONE_TURN, "react")
"""Kinds of rollouts whose target gets images as parts of a prompt, as do agents with tools in an environment."""
WITHOUT_REWARD = (*ONE_TURN, "react", "code", *AGENTS, "command")
"""Kinds of rollouts that give no reward."""
WITHOUT_FILES = (*ONE_TURN, "react", "environment")
"""Kinds of rollouts that have no workspace, so that they write no files and run no scripts."""
STARTS_FROM_FIELDS = ("environment", "harbor")
"""Kinds of rollouts whose start is decided by the fields of an example too: the same inputs are no duplicates."""
WITHOUT_OPENING = ("code", "harbor")
"""Kinds of rollouts whose targets cannot open skills by themselves."""
ENVIRONMENT = "environment"
"""The parameter by which a tool of an agent gets the environment of its rollout."""
ACT = "act"
"""The tool of a trajectory by which a target acts in an environment."""


def _defaults(*settings: SettingKind) -> Mapping[str, Any]:
    return MappingProxyType({each.name: each.default for each in settings})


REACT_DEFAULTS = _defaults(*_REACT_SETTINGS, *_REACT_IN_TURN_SETTINGS)
"""The settings of `react`, and of an environment's `agent = react`."""
ENVIRONMENT_DEFAULTS = _defaults(*_ENVIRONMENT)
"""The settings of `environment(...)`; its block passes all others to the class."""
HARBOR_DEFAULTS = _defaults(*_HARBOR_SETTINGS)
"""The settings of `harbor`."""
_DEFAULTS = {
    "react": REACT_DEFAULTS,
    "environment": ENVIRONMENT_DEFAULTS,
    "code": _defaults(*_CODE_SETTINGS),
    "harbor": HARBOR_DEFAULTS,
}

ROLLOUT = (
    words(*ONE_TURN),
    _REACT,
    Form("call", name="environment", arguments=(TEXT,), block=_ENVIRONMENT, passes=True),
    Form("word", words=("code",), block=_CODE_SETTINGS),
    Form("word", words=("harbor",), block=_HARBOR_SETTINGS),
    Form("word", words=AGENTS, block=_CLI_AGENT),
    Form(
        "call",
        name="command",
        arguments=(TEXT,),
        many=True,
        block=(
            *(each for each in _CLI_AGENT if each.name not in ("executable", "version")),
            SettingKind("answer", ANSWER, "where its last message is in its output", default="stdout"),
        ),
    ),
    PYTHON,
    Form("call", name="plugin", arguments=(TEXT,), block=(), passes=True),
)

EXECUTOR = (
    words("local"),
    Form(
        "word",
        words=("ray",),
        block=(
            SettingKind("address", (TEXT,), "address of the cluster", unset="one is started on this machine"),
            SettingKind("workers", (count(),), "processes that run rollouts", unset="one on each CPU of the cluster"),
        ),
    ),
)


# ---- what a program declares ------------------------------------------------------------------------


def rollout_kind(task: Entity | None) -> str:
    """The kind of a program's rollouts; empty without a task."""
    return "" if task is None else word_of(task.settings, "rollout") or ONE_TURN[0]


def agent_block(task: Entity | None) -> Settings | None:
    """The settings of an agent with tools, `react` or an environment's `agent = react`; None for any other."""
    rollout = task.settings.get("rollout") if task is not None else None
    if rollout is not None and rollout.word == "environment":
        rollout = rollout.block.get("agent")
    return rollout.block if rollout is not None and rollout.word == "react" else None


def tool_names(tools: Iterable[Value]) -> tuple[str, ...] | None:
    """The names of tools, if all of them are functions; None if only a run can know them."""
    found = tuple(tools)
    functions = [each for each in found if isinstance(each, Invocation) and each.function == "python"]
    names = tuple(str(each.arguments[0]).rpartition(":")[2] for each in functions)
    return names if names and len(names) == len(found) else None


def tools_of(task: Entity | None) -> tuple[str, ...] | None:
    """The names of an agent's tools, with that by which it acts; None if only a run can know them."""
    names = tool_names(items_of(agent_block(task) or {}, "tools"))
    return (*names, ACT) if names is not None and rollout_kind(task) == "environment" else names


def most_turns(task: Entity | None) -> Fraction | None:
    """The limit of the turns of a rollout, if there is one; `code` answers after its last round."""
    kind = rollout_kind(task)
    if kind in ONE_TURN:
        return Fraction(1)
    name = "rounds" if kind == "code" else "turns"
    rollout = task.settings.get("rollout") if task is not None else None
    declared = amount_of(rollout.block, name) if rollout is not None else None
    limit = _DEFAULTS.get(kind, {}).get(name) if declared is None else declared
    return None if limit is None else Fraction(limit) + (kind == "code")


def most_calls(task: Entity | None) -> Fraction | None:
    """The limit of the calls of one tool, if there is one: one in a turn, or those before the action of each turn."""
    turns, block = most_turns(task), agent_block(task)
    if turns is None or block is None or rollout_kind(task) != "environment":
        return turns
    declared = amount_of(block, "calls")
    return turns * (Fraction(REACT_DEFAULTS["calls"]) if declared is None else declared)

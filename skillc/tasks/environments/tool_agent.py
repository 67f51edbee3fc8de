"""How the target answers with tools: `agent = react { tools = [...] }`.

In a reply the target calls one tool. Where no tool of the program acts in the environment, `act` is its action, and the
tools are answered beside it, at most `calls` of them in a turn. Where tools act, through their parameter `environment`,
each reply is a turn, and `finish` ends the rollout with the answer.

The fields of a reply are those of `dspy.ReAct`, and the prompts grow at their end: what is over the limit of the
history is cut to half of it, but nothing of the present turn and no skill that the target has opened.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from functools import cached_property
from typing import Any, Literal

import dspy
from dspy.utils.exceptions import AdapterParseError
from pydantic import TypeAdapter
from pydantic_core import to_jsonable_python

from skillc.dataclass import dataclass
from skillc.document.offer import OPEN
from skillc.errors import SkillcError
from skillc.json_values import JsonObject
from skillc.language.rollouts import ACT
from skillc.models.calls import Message
from skillc.models.dspy_lm import sent_messages
from skillc.models.scope import current_scope
from skillc.outcomes import Example
from skillc.plan.schema import TaskPlan
from skillc.program.inputs import target_inputs
from skillc.program.module import annotation, signature_of
from skillc.program.names import as_read, field_names, instructions
from skillc.tasks.answers import read_answer
from skillc.tasks.environments.acting import Acted, Ask, Moment, TurnAgent, acted
from skillc.tasks.environments.prompts import Form, first_actions, first_kept
from skillc.tasks.episodes import FINISH, AgentTools, dspy_tool, setting_of
from skillc.tasks.kind import Recent, Site, Skill
from skillc.tasks.opening import Openings, opening_tool
from skillc.tasks.predict import unreadable
from skillc.text import counted
from skillc.tokens import count_tokens
from skillc.tools.functions import plain_schema
from skillc.tools.tool import Tool, ToolFailed, check_arguments, with_texts
from skillc.trajectories.trajectory import Message as Said
from skillc.trajectories.trajectory import Observation, Step, ToolCall

_TAKEN = {ACT: "is how an agent acts in an environment", OPEN: "is how an agent opens skills"}
_ADAPTER = dspy.ChatAdapter(use_json_adapter_fallback=False)


class ToolForm:
    """How the turns of agents with tools are written, and the tools of the program.

    `form` has the limits of turns, history and observations; `settings` are those of `react { ... }`.

    Attributes:
        acting: whether tools act in the environment.
        calls: the most calls of tools in one turn, before the action.
        last: the tool with the outputs of the task as arguments: the action, or the end of the rollout.

    Raises:
        SkillcError: a tool cannot be used.
    """

    def __init__(self, site: Site, form: Form, settings: Mapping[str, Any]) -> None:
        self.site = site
        self.form = form
        self.calls = int(setting_of(settings, "calls"))
        self.declared = AgentTools(settings, site, inside=True)
        self.task = as_read(site.plan.task)
        self.acting = any(tool.acts for tool in self.declared.tools)
        self.last = _last_tool(self.task, acting=self.acting)
        for tool in self.declared.tools:
            if tool.name in (self.last.name, OPEN):
                raise SkillcError(f"`{tool.name}` of {tool.origin} {_TAKEN[tool.name]}", hint="rename the tool")
        self._names = field_names(self.task)
        self._signatures: Recent[str, type[dspy.Signature]] = Recent()

    def signature(self, skill: Skill | None, tools: Sequence[Tool]) -> type[dspy.Signature]:
        """Return the signature of a reply with these tools."""
        text = self._instructions(self.site.read_at_once(skill), tools)

        def make() -> type[dspy.Signature]:
            task = signature_of(self.task, self.site.plan.skill.name, "")
            names: Any = Literal[tuple(tool.name for tool in tools)]
            made: type[dspy.Signature] = (
                dspy.Signature({**task.input_fields}, text)
                .append("trajectory", dspy.InputField(), type_=str)
                .append("next_thought", dspy.OutputField(), type_=str)
                .append("next_tool_name", dspy.OutputField(), type_=names)
                .append("next_tool_args", dspy.OutputField(), type_=dict[str, Any])
            )
            return made

        return self._signatures.of(text, make)

    def inputs(self, example: Example) -> dict[str, Any]:
        """Return the inputs of an example as fields of the signature."""
        read = target_inputs(self.task, example.inputs, self.site.root, current_scope().images)
        return {self._names[name]: value for name, value in read.items()}

    def tools(self, skill: Skill | None) -> tuple[Tool, ...]:
        """Return the last tool, those of the program as the skill names and describes them, and `open_skill`."""
        offered = self.site.offered(skill)
        last = with_texts((self.last,), skill.document if skill is not None else None)
        return (*last, *self.declared.described_by(skill), *([opening_tool(offered)] if offered else ()))

    def _instructions(self, text: str | None, tools: Sequence[Tool]) -> str:
        turns = counted(self.form.turns, "turn")
        begin, how = (
            (
                f"You act in an environment by tools, one call in each turn, in at most {turns}.",
                f"`{FINISH}` ends your work with the answer.",
            )
            if self.acting
            else (
                f"You act in an environment, one action in each turn, in at most {turns}.",
                f"`{ACT}` is your action, and its result the next observation. The other tools help you before it, in "
                f"at most {counted(self.calls, 'call')} in a turn.",
            )
        )
        return "\n".join(
            [
                instructions(self.task, text),
                "",
                f"{begin} The trajectory has what you did and observed so far. In each reply you call one tool: write "
                "what you see and plan in next_thought, then next_tool_name and next_tool_args, a JSON object.",
                f"{how} next_tool_name is one of:",
                "",
                *(f"({number}) {dspy_tool(tool)}" for number, tool in enumerate(tools, 1)),
            ]
        )


@dataclass
class _Entry:
    """A reply and what followed it, as fields of the trajectory that the target reads.

    Attributes:
        kept: whether no limit of the history leaves it out: the text of a skill.
    """

    number: int
    fields: dict[str, str] = field(default_factory=dict)
    kept: bool = False

    @cached_property
    def text(self) -> str:
        """The fields as text, once the entry is complete."""
        return self.written()

    @cached_property
    def size(self) -> int:
        """Tokens that count against the limit of the history."""
        return 0 if self.kept else count_tokens(self.text)

    def written(self) -> str:
        """Return the fields as text."""
        return "\n\n".join(f"[[ ## {name}_{self.number} ## ]]\n{value}" for name, value in self.fields.items())


class ToolAgent(TurnAgent):
    """A target that calls tools."""

    def __init__(self, form: ToolForm, skill: Skill | None, example: Example, ask: Ask, steps: list[Step]) -> None:
        super().__init__(steps)
        self._form = form
        self._tools = {tool.name: tool for tool in form.tools(skill)}
        self._signature = form.signature(skill, tuple(self._tools.values()))
        self._inputs = form.inputs(example)
        self._openings = Openings(form.site.offered(skill))
        self._ask = ask
        self._entries: list[_Entry] = [_Entry(0)]

    async def act(self, turn: Moment) -> Acted:
        """As `TurnAgent.act`."""
        if turn.observation is not None:
            self._entries[-1].fields["observation"] = turn.observation
        return await (self._by_tool(turn) if self._form.acting else self._after_tools(turn))

    async def _after_tools(self, turn: Moment) -> Acted:
        """Call tools until the target acts."""
        start = len(self._entries) - 1
        for left in range(self._form.calls, -1, -1):
            chosen = await self._choose(start, turn.actions, None if left else ACT)
            if isinstance(chosen, Acted):
                return chosen
            if chosen.tool == ACT:
                action, problem = self._outputs(chosen, turn.actions)
                self.steps += acted(chosen.thought, action if action is not None else chosen.arguments)
                return Acted(action, problem)
            if not left:
                self._record(chosen.thought, ToolCall(chosen.tool, chosen.arguments))
                limit = counted(self._form.calls, "call")
                return Acted(problem=f"`{chosen.tool}` was not called: after {limit} in a turn comes `{ACT}`")
            await self._call(chosen)
        raise AssertionError("the last reply of a turn ends it")

    async def _by_tool(self, turn: Moment) -> Acted:
        """Call one tool, which may act, or finish."""
        assert turn.handle is not None
        chosen = await self._choose(len(self._entries) - 1, turn.actions, FINISH if turn.last else None)
        if isinstance(chosen, Acted):
            return chosen
        if chosen.tool == FINISH:
            self.steps += [Said(chosen.thought)] if chosen.thought else []
            answer, problem = self._outputs(chosen, None)
            return Acted(problem=problem, answer=answer)
        if turn.last:
            self._record(chosen.thought, ToolCall(chosen.tool, chosen.arguments))
            return Acted(problem=f"`{chosen.tool}` was not called: after the last turn comes `{FINISH}`")
        with turn.handle.passed():
            await self._call(chosen, turn.handle.checked)
        self.steps += turn.handle.said()
        return Acted()

    async def _choose(self, start: int, actions: Sequence[str] | None, only: str | None) -> _Chosen | Acted:
        """Ask for the next tool; an unreadable reply has no action. The present turn begins at entry `start`."""
        reply = await self._ask(self._prompt(start, actions, only))
        entry = _Entry(len(self._entries))
        self._entries.append(entry)
        try:
            fields = _read(self._signature, reply)
        except AdapterParseError as raised:
            entry.fields["reply"] = reply
            self.steps.append(Said(reply))
            return Acted(problem=unreadable(raised))
        arguments = to_jsonable_python(fields["next_tool_args"], inf_nan_mode="strings")
        chosen = _Chosen(str(fields["next_thought"] or ""), str(fields["next_tool_name"]), arguments)
        written = json.dumps(arguments, ensure_ascii=False)
        entry.fields |= {"thought": chosen.thought, "tool_name": chosen.tool, "tool_args": written}
        return chosen

    def _outputs(self, chosen: _Chosen, actions: Sequence[str] | None) -> tuple[JsonObject | None, str | None]:
        """Return the outputs of the task in the arguments of the last tool, or None and the problem."""
        task, arguments = self._form.task, chosen.arguments
        try:
            check_arguments(self._form.last, arguments)
        except ToolFailed as wrong:
            return None, str(wrong)
        only = next(iter(arguments.values())) if len(task.outputs) == 1 else None
        if isinstance(only, str):
            return self._form.form.action(only, actions)
        return read_answer(task, json.dumps(arguments))

    def _record(self, thought: str, call: ToolCall) -> None:
        self.steps += [*((Said(thought),) if thought else ()), call]

    async def _call(self, chosen: _Chosen, checked: Callable[[Observation], Observation] = lambda seen: seen) -> None:
        """Call a tool, and show and record its result, as `checked` returns it."""
        if chosen.tool == OPEN and OPEN in self._tools:
            call, seen = ToolCall(OPEN, chosen.arguments), self._opened(chosen.arguments)
        else:
            call, seen = await self._form.declared.call(self._tools, chosen.tool, chosen.arguments)
        seen = checked(seen)
        self._record(chosen.thought, call)
        self.steps.append(seen)
        self._entries[-1].fields["observation"] = seen.text
        self._entries[-1].kept = chosen.tool == OPEN and not seen.failed

    def _opened(self, arguments: JsonObject) -> Observation:
        """Open a skill, whole, whatever the limit of results is."""
        try:
            check_arguments(self._tools[OPEN], arguments)
        except ToolFailed as wrong:
            return Observation(f"error: {wrong}", failed=True)
        return self._openings.open(str(arguments["name"]))

    def _prompt(self, start: int, actions: Sequence[str] | None, only: str | None) -> tuple[Message, ...]:
        past, present = self._entries[:start], self._entries[start:]
        first = first_kept([each.size for each in past], self._form.form.history)
        shown = [each.text for i, each in enumerate(past) if i >= first or each.kept]
        gone = len(past) - len(shown)
        parts = [f"[{counted(gone, 'earlier step')} left out]"] if gone else []
        parts += [*shown, *(each.written() for each in present)]
        if actions is not None:
            listed = "\n".join(first_actions(actions, self._form.form.observation))
            parts.append(f"[[ ## possible_actions ## ]]\n{listed}")
        if only is not None:
            parts.append(f"[only `{only}` can be called now]")
        given = {**self._inputs, "trajectory": "\n\n".join(parts)}
        return sent_messages(_ADAPTER.format(self._signature, [], given))


@dataclass(frozen=True, slots=True)
class _Chosen:
    """The tool that a reply calls."""

    thought: str
    tool: str
    arguments: JsonObject


def _read(signature: type[dspy.Signature], reply: str) -> dict[str, Any]:
    """Return the fields of a reply, also with the name of a tool that does not exist: that call fails.

    Raises:
        AdapterParseError: a field is missing or has the wrong form.
    """
    try:
        found: dict[str, Any] = _ADAPTER.parse(signature, reply)
    except AdapterParseError:
        found = _ADAPTER.parse(signature.with_updated_fields("next_tool_name", type_=str), reply)
    return found


def _last_tool(task: TaskPlan, *, acting: bool) -> Tool:
    """Return the tool with the outputs of the task as arguments, where other tools are `acting` or not."""
    arguments: dict[str, JsonObject] = {}
    for output in task.outputs:
        schema = plain_schema(TypeAdapter(annotation(output.type)).json_schema())
        arguments[output.name] = {**schema, "description": output.about or output.name.replace("_", " ")}
    required = tuple(output.name for output in task.outputs if not output.type.optional)
    if acting:
        return Tool(FINISH, "End your work with the answer.", arguments, required, _never)
    return Tool(ACT, "Act in the environment. This ends the turn.", arguments, required, _never)


async def _never(arguments: JsonObject, seconds: float) -> str:
    raise AssertionError("the environment answers the action")

"""Check what a program declares of an agent that is a command line: its words, its prompt, its files, its caps."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from pathlib import PurePosixPath

from skillc.diagnostics.diagnostic import Reporter
from skillc.diagnostics.suggest import spelling_hint
from skillc.language.checked import Entity, Invocation, Items, Setting, Word
from skillc.language.commands import answer_problem, is_variable, placeholders, split_command, within
from skillc.language.rollouts import is_agent
from skillc.language.types import add_error
from skillc.text import listed

COMMAND_PLACEHOLDERS: Mapping[str, str] = {
    "prompt": "what the agent is told",
    "workspace": "the working folder, with the task's files",
    "home": "the home of the rollout",
    "skill": "the path of SKILL.md; empty without a skill, and where it opens it by itself",
    "report": "the path where it may write a report",
    "model": "the model's name behind its provider",
    "base_url": "the model's address",
    "here": "the folder of the program",
}
"""Names allowed in braces in `command(...)`. Without `{prompt}` it is on standard input."""

_HOST = re.compile(r"(\[[0-9a-fA-F:]+\]|[^\s:/\[\]]+):\d{1,5}")
_CAPPED = ("tokens", "cost")


def check_agent(
    report: Reporter,
    rollout: Setting | None,
    inputs: Collection[str],
    fields: Collection[str],
    budgets: Iterable[Entity],
) -> None:
    """Check the settings of an agent; of another kind of rollout nothing.

    Args:
        report: gets the errors.
        rollout: the setting `rollout` of the task.
        inputs: the names of the task's inputs.
        fields: those of the data's fields.
        budgets: the declared budgets; the one without a name applies.
    """
    if rollout is None or not is_agent(_kind(rollout)):
        return
    if _kind(rollout) == "command":
        _check_words(report, rollout)
    _check_names(report, rollout.block.get("prompt"), ("question", *inputs))
    _check_files(report, rollout.block.get("files"), ("id", *inputs, *fields))
    _check_hosts(report, rollout.block.get("hosts"))
    _check_variables(report, rollout.block.get("environment"))
    answer = rollout.block.get("answer")
    if answer is not None and isinstance(answer.value, Invocation):
        problem = answer_problem(answer.value.function, str(answer.value.arguments[0]))
        if problem is not None:
            add_error(report, "SK622", answer, *problem)
    for budget in budgets:
        if budget.name is None:
            _check_caps(report, rollout, budget)


def _kind(rollout: Setting) -> str:
    value = rollout.value
    return value.function if isinstance(value, Invocation) else value.text if isinstance(value, Word) else ""


def _check_words(report: Reporter, rollout: Setting) -> None:
    assert isinstance(rollout.value, Invocation)
    texts = [str(text) for text in rollout.value.arguments]
    try:
        words = split_command(texts[0]) if len(texts) == 1 else tuple(texts)
    except ValueError:
        add_error(report, "SK634", rollout, "a quote in the command is not closed", "close it")
        return
    if not words or not words[0] or any("\0" in word for word in words):
        add_error(report, "SK634", rollout, "the command has no program", 'write `command("my-agent {prompt}")`')
        return
    _check_names(report, rollout, COMMAND_PLACEHOLDERS, [*words])
    if any(name != "here" for name in placeholders(words[0])):
        add_error(report, "SK634", rollout, "the program can't be a placeholder", "begin with the name of the program")


def _check_names(
    report: Reporter, setting: Setting | None, known: Collection[str], words: Iterable[str] | None = None
) -> None:
    """Check the names in braces."""
    if setting is None:
        return
    found = [name for word in words or [str(setting.value)] for name in placeholders(word)]
    for name in dict.fromkeys(found):
        if name not in known:
            near = spelling_hint(name, known)
            options = f"valid options: {listed(f'{{{each}}}' for each in known)}"
            hint = f"{near}; for literal braces write `{{{{{name}}}}}`" if near else options
            place = within(setting, f"{{{name}}}")
            report.add("SK634", setting.source, place, f"unknown placeholder `{{{name}}}`", hint=hint)


def _check_files(report: Reporter, files: Setting | None, known: Collection[str]) -> None:
    if files is None:
        return
    path = PurePosixPath(str(files.value))
    if path.is_absolute() or ".." in path.parts or not path.parts:
        message = f"`{files.value}` is not a path below the program's folder"
        add_error(report, "SK634", files, message, 'write a folder beside the program: `files = "cases/{id}"`')
    elif any(True for _ in placeholders(path.parts[0])):
        message = "`files` begins with a placeholder"
        add_error(report, "SK634", files, message, 'put the files of all examples into one folder: `"cases/{id}"`')
    else:
        _check_names(report, files, known)


def _check_hosts(report: Reporter, hosts: Setting | None) -> None:
    for host in hosts.value.items if hosts is not None and isinstance(hosts.value, Items) else ():
        if hosts is not None and not _HOST.fullmatch(str(host)):
            place = within(hosts, f'"{host}"')
            hint = 'write name and port: `"pypi.org:443"`'
            report.add("SK634", hosts.source, place, f"`{host}` is not an address", hint=hint)


def _check_variables(report: Reporter, variables: Setting | None) -> None:
    for item in variables.value.items if variables is not None and isinstance(variables.value, Items) else ():
        name = str(item.arguments[0]) if isinstance(item, Invocation) else ""
        if variables is not None and not is_variable(name):
            place = within(variables, f'"{name}"')
            hint = 'write the name alone: `env("GITHUB_TOKEN")`'
            report.add("SK634", variables.source, place, f"`{name}` is not the name of a variable", hint=hint)


def _check_caps(report: Reporter, rollout: Setting, budget: Entity) -> None:
    """Check that each rollout has a maximum that the caps on tokens and cost can reserve."""
    for cap in _CAPPED:
        declared = "tokens" in rollout.block or (cap == "cost" and "cost" in rollout.block)
        if cap in budget.settings and not declared:
            hint = "declare the most that one rollout may use: `rollout = ... { tokens = 200_000 tokens }`"
            message = (
                f"the agent calls its model itself, and no rollout has a maximum that a cap on {cap} could reserve"
            )
            add_error(report, "SK635", budget.settings[cap], message, hint)
            return

"""Commands, of models and of agents: split them, fill their placeholders, and check what a program declares of them."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from pathlib import PurePosixPath, PureWindowsPath

from skillc.diagnostics.diagnostic import Reporter
from skillc.diagnostics.suggest import spelling_hint
from skillc.language.checked import (
    Amount,
    Entity,
    Invocation,
    Setting,
    fields_of,
    items_of,
    of_kind,
    text_of,
    value_of,
    variable_of,
)
from skillc.language.rollouts import is_agent, rollout_kind
from skillc.language.types import add_error
from skillc.syntax.source import Span
from skillc.text import listed

PLACEHOLDERS: Mapping[str, str] = {
    "prompt": "the whole conversation as one text",
    "system": "the text of the system messages",
    "user": "the conversation without the system messages",
    "messages": "the path of a JSON file with the messages in the chat format",
    "model": "the model's name after `exec/`",
    "here": "the folder of the program",
}
"""Names in braces of a model's command. One with none of the first four reads the prompt on its standard input."""

AGENT_PLACEHOLDERS: Mapping[str, str] = {
    "prompt": "what the agent is told",
    "workspace": "the working folder, with the task's files",
    "home": "the home of the rollout",
    "skill": "the path of SKILL.md; empty without a skill, and where it opens it by itself",
    "report": "the path where it may write a report",
    "model": "the model's name behind its provider",
    "base_url": "the model's address",
    "here": "the folder of the program",
}
"""Names in braces of an agent's `command(...)`. Without `{prompt}` it is on standard input."""

_PLACE = re.compile(r"\{\{(\w+)\}\}|\{([A-Za-z_]\w*)\}")
_STEP = re.compile(r"\.([^.\[\]\s]+)|\[(-?\d{1,6})\]")
_PATH = re.compile(rf"(?:{_STEP.pattern})+")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_HOST = re.compile(r"(\[[0-9a-fA-F:]+\]|[^\s:/\[\]]+):\d{1,5}")


def split_command(command: str) -> tuple[str, ...]:
    """Split a command into words by the rules of a POSIX shell; it runs without a shell.

    Raises:
        ValueError: a quote is not closed.

    >>> split_command("tool --json 'two words' --prompt={prompt}")
    ('tool', '--json', 'two words', '--prompt={prompt}')
    """
    import shlex

    return tuple(shlex.split(command))


def placeholders(word: str) -> Iterator[str]:
    """Yield the names in braces; `{{name}}` is literal text.

    >>> list(placeholders("{prompt} {{prompt}} {a: 1} {nope}"))
    ['prompt', 'nope']
    """
    return (match[2] for match in _PLACE.finditer(word) if match[2])


def fill_placeholders(word: str, value: Callable[[str], str]) -> str:
    """Fill the placeholders of a word; placeholders in the values are not filled.

    >>> fill_placeholders("--in={prompt}{{prompt}}", lambda name: "{model}")
    '--in={model}{prompt}'
    """
    return _PLACE.sub(lambda match: value(match[2]) if match[2] else f"{{{match[1]}}}", word)


def json_path(text: str) -> tuple[str | int, ...] | None:
    """Parse a path into JSON; None if it is not one.

    >>> json_path(".choices[0].message.content"), json_path(".a-b[-1]"), json_path("x")
    (('choices', 0, 'message', 'content'), ('a-b', -1), None)
    """
    if not _PATH.fullmatch(text):
        return None
    return tuple(int(index) if index else name for name, index in _STEP.findall(text))


# ---- parts of both ----------------------------------------------------------------------------------

_CLOSE = "close it; a lone `'` is written `\"'\"`"


def _check_words(
    report: Reporter, code: str, setting: Setting, texts: Sequence[str], known: Collection[str], example: str
) -> list[str]:
    """Check the words of a command, one text to split or the words themselves; return its placeholders."""
    try:
        words = split_command(texts[0]) if len(texts) == 1 else tuple(texts)
    except ValueError:
        add_error(report, code, setting, "a quote in the command is not closed", _CLOSE)
        return []
    if not words or not words[0] or any("\0" in word for word in words):
        add_error(report, code, setting, "the command has no program", f"write `{example}`")
        return []
    found = _check_placeholders(report, code, setting, words, known)
    if any(name != "here" for name in placeholders(words[0])):
        part = "" if isinstance(setting.value, Invocation) else words[0]
        hint = "begin with the name of the program"
        _add_within(report, code, setting, part, "the program can't be a placeholder", hint)
    return found


def _check_placeholders(
    report: Reporter, code: str, setting: Setting, words: Iterable[str], known: Collection[str]
) -> list[str]:
    """Check the names in braces, and return them."""
    found = list(dict.fromkeys(name for word in words for name in placeholders(word)))
    for name in found:
        if name not in known:
            near = spelling_hint(name, known)
            options = f"valid options: {listed(f'{{{each}}}' for each in known)}"
            hint = f"{near}; for literal braces write `{{{{{name}}}}}`" if near else options
            _add_within(report, code, setting, f"{{{name}}}", f"unknown placeholder `{{{name}}}`", hint)
    return found


def _check_variables(report: Reporter, code: str, owner: Setting, example: str) -> None:
    """Check the names of the environment variables that a command is given."""
    for name in (variable_of(item) or "" for item in items_of(owner.block, "environment")):
        if not _VARIABLE.fullmatch(name):
            message, hint = f"`{name}` is not the name of a variable", f'write the name alone: `env("{example}")`'
            _add_within(report, code, owner.block["environment"], f'"{name}"', message, hint)


def _check_answer(report: Reporter, owner: Setting) -> str | None:
    """Check the argument of a form of answers, such as `json(".result")`; return the form of a correct one."""
    answer = owner.block.get("answer")
    if answer is None or not isinstance(answer.value, Invocation):
        return None
    form = answer.value.function
    problem = _answer_problem(form, str(answer.value.arguments[0]))
    if problem is None:
        return form
    add_error(report, "SK622", answer, *problem)
    return None


def _answer_problem(form: str, argument: str) -> tuple[str, str] | None:
    if form == "json" and json_path(argument) is None:
        return f"`{argument}` is not a path into JSON", 'write `json(".result")`, `json(".choices[0].text")`'
    if form == "after" and not argument:
        return "the marker is empty", 'write `after("Answer:")`, or remove `answer` to use the whole output'
    if form == "match":
        try:
            groups = re.compile(argument).groups
        except (re.error, OverflowError, RecursionError) as problem:
            return f"not a regular expression: {problem}", "use the syntax of Python's `re`"
        if groups > 1:
            return f"the expression has {groups} groups; at most one is allowed", "write the others as `(?:...)`"
    if form == "file":
        posix, windows = PurePosixPath(argument), PureWindowsPath(argument)
        outside = posix.is_absolute() or windows.anchor or ".." in (*posix.parts, *windows.parts)
        if outside or "\0" in argument or not (posix.parts or windows.parts):
            return f"`{argument}` is not a file in the working folder", 'write its name: `file("last.txt")`'
    return None


def _add_within(report: Reporter, code: str, setting: Setting, part: str, message: str, hint: str) -> None:
    """Report an error at a part of a setting's text; at the whole setting if the source spells it differently."""
    start = setting.source.text.find(part, setting.span.start, setting.span.end) if part else -1
    place = Span(start, start + len(part)) if start >= 0 else setting.span
    report.add(code, setting.source, place, message, hint=hint)


# ---- models ---------------------------------------------------------------------------------------


COMMANDS = "exec"
"""The provider of models that a command answers for."""
_WITH_COMMAND = frozenset({"exec", "key", "price", "max_reply", "timeout", "concurrency", "rpm", "tpm"})
_ELSEWHERE = frozenset({"base_url", "serve", "backend"})
_VLLM_FLAGS = ("--enable-auto-tool-choice", "--tool-call-parser")


def check_models(report: Reporter, models: Iterable[Entity]) -> None:
    """Check that one backend answers for each model, with settings that it supports, and check the commands."""
    bare: set[str] = set()
    for model in models:
        provider = model.value.partition("/")[0] if isinstance(model.value, str) else None
        command, backend = model.settings.get("exec"), model.settings.get("backend")
        if command is not None:
            _check_command_alone(report, model, provider)
            _check_command(report, model, command)
        elif provider == COMMANDS and model.value not in bare:
            # Models that reuse this one are not reported again.
            bare.add(str(model.value))
            hint = 'add `exec = "mytool --prompt {prompt}"` to its block'
            add_error(report, "SK623", model, f"no command is configured for `{model.value}`", hint)
        if backend is not None and command is None:
            _check_backend(report, model, backend, provider)


def check_native_calls(report: Reporter, entities: Sequence[Entity]) -> None:
    """Check that the target of an agent with `tool_calls = native` can be given tools."""
    rollout = next((task.settings.get("rollout") for task in of_kind(entities, "task")), None)
    calls = rollout.block.get("tool_calls") if rollout is not None and rollout.word == "react" else None
    target = next((model for model in of_kind(entities, "model") if model.name == "target"), None)
    if calls is None or calls.word != "native" or target is None:
        return
    serve = target.settings.get("serve")
    given = {str(each).split("=")[0] for each in items_of(serve.block, "args")} if serve is not None else set()
    missing = [flag for flag in _VLLM_FLAGS if flag not in given]
    if "exec" in target.settings:
        message = "the target is a command, which cannot call tools by an API"
        add_error(report, "SK625", calls, message, "write `tool_calls = text`, or give `target` another model")
    elif serve is not None and missing:
        message = f"the server of `target` reads no tool calls without {listed(missing, 'and')}"
        hint = (
            'add `args = ["--enable-auto-tool-choice", "--tool-call-parser", "hermes"]`, with the parser of the model'
        )
        add_error(report, "SK625", serve, message, hint)


def _check_command_alone(report: Reporter, model: Entity, provider: str | None) -> None:
    if provider not in (None, COMMANDS):
        setting = model.settings["exec"]
        message = f"a command can't answer for `{model.value}`: its provider is not `exec`"
        hint = f'rename the model: `"exec/{str(model.value).rpartition("/")[2]}"`'
        add_error(report, "SK623", setting, message, hint)
    for name, setting in model.settings.items():
        if name in _ELSEWHERE:
            message, hint = f"`{name}` can't be combined with `exec`", "keep one of them"
        elif name not in _WITH_COMMAND:
            message, hint = f"`{name}` is not sent to a command", "pass it as an option of the command"
        else:
            continue
        add_error(report, "SK623", setting, message, hint)


def _check_backend(report: Reporter, model: Entity, backend: Setting, provider: str | None) -> None:
    if provider in (COMMANDS, "rulebook"):
        message = f"a function can't answer for `{model.value}`: `{provider}` is a built-in provider"
        add_error(report, "SK623", backend, message, 'rename the model: `"mine/large"`')
    if "serve" in model.settings:
        message = "`serve` can't be combined with `backend`"
        add_error(report, "SK623", model.settings["serve"], message, "keep one of them")
    name = backend.value.arguments[0] if isinstance(backend.value, Invocation) else ""
    module, colon, function = str(name).partition(":")
    if not (module and colon and function):
        hint = 'write `python("module:function")`'
        add_error(report, "SK623", backend, f"`{name}` is not the name of a function", hint)


def _check_command(report: Reporter, model: Entity, command: Setting) -> None:
    example = 'exec = "mytool --prompt {prompt}"'
    found = _check_words(report, "SK621", command, [str(command.value)], PLACEHOLDERS, example)
    if "user" in found and not {"system", "prompt", "messages"} & set(found):
        message = "`{user}` omits the system messages, which contain the skill"
        _add_within(report, "SK621", command, "{user}", message, "add `{system}`, or write `{prompt}`")
    one_call = value_of(model.settings, "concurrency") == Amount(Fraction(1))
    if _check_answer(report, command) == "file" and "folder" in command.block and not one_call:
        message = "concurrent calls would write the same file in the same folder"
        hint = "add `concurrency = 1` to the model's block, or remove `folder`: each call then has its own"
        add_error(report, "SK622", command.block["answer"], message, hint)
    folder = text_of(command.block, "folder")
    if folder is not None and not folder.strip():
        add_error(report, "SK621", command.block["folder"], "`folder` is empty", "remove it to run in a new folder")
    _check_variables(report, "SK621", command, "CODEX_HOME")


# ---- agents ---------------------------------------------------------------------------------------


def check_agent(
    report: Reporter, task: Entity, entities: Sequence[Entity], broken: Collection[str], dropped: Collection[str]
) -> None:
    """Check the settings of an agent that is a command line; of another kind of rollout nothing.

    `broken` are names of declarations with an error and `dropped` words of statements that could not be read: what
    they may have declared is not unknown.
    """
    kind, rollout = rollout_kind(task), task.settings.get("rollout")
    if rollout is None or not is_agent(kind):
        return
    if isinstance(rollout.value, Invocation):
        words = [str(text) for text in rollout.value.arguments]
        _check_words(report, "SK634", rollout, words, AGENT_PLACEHOLDERS, 'command("my-agent {prompt}")')
    inputs = [*(each.name or "" for each in task.children_of("input")), *broken]
    if "prompt" in rollout.block:
        prompt = rollout.block["prompt"]
        _check_placeholders(report, "SK634", prompt, [str(prompt.value)], ("question", *inputs))
    if "files" in rollout.block:
        _check_files(report, rollout.block["files"], ("id", *inputs, *fields_of(entities), *broken, *dropped))
    for host in map(str, items_of(rollout.block, "hosts")):
        if not _HOST.fullmatch(host):
            message, hint = f"`{host}` is not an address", 'write name and port: `"pypi.org:443"`'
            _add_within(report, "SK634", rollout.block["hosts"], f'"{host}"', message, hint)
    _check_variables(report, "SK634", rollout, "GITHUB_TOKEN")
    _check_answer(report, rollout)
    for budget in of_kind(entities, "budget"):
        if budget.name is None:
            _check_caps(report, rollout, budget)


def _check_files(report: Reporter, files: Setting, known: Collection[str]) -> None:
    path = PurePosixPath(str(files.value))
    if path.is_absolute() or ".." in path.parts or not path.parts:
        message = f"`{files.value}` is not a path below the program's folder"
        add_error(report, "SK634", files, message, 'write a folder beside the program: `files = "cases/{id}"`')
    elif any(True for _ in placeholders(path.parts[0])):
        message = "`files` begins with a placeholder"
        add_error(report, "SK634", files, message, 'put the files of all examples into one folder: `"cases/{id}"`')
    else:
        _check_placeholders(report, "SK634", files, [str(files.value)], known)


def _check_caps(report: Reporter, rollout: Setting, budget: Entity) -> None:
    """Check that each rollout has a maximum that the caps on tokens and cost can reserve."""
    for cap in ("tokens", "cost"):
        declared = "tokens" in rollout.block or (cap == "cost" and "cost" in rollout.block)
        if cap in budget.settings and not declared:
            hint = "declare the most that one rollout may use: `rollout = ... { tokens = 200_000 tokens }`"
            message = (
                f"the agent calls its model itself, and no rollout has a maximum that a cap on {cap} could reserve"
            )
            add_error(report, "SK635", budget.settings[cap], message, hint)
            return

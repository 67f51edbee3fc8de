"""Commands that answer for a model: split them, fill their placeholders, and check them."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable, Iterator
from fractions import Fraction
from pathlib import PurePosixPath, PureWindowsPath

from skillc.diagnostics.diagnostic import Reporter
from skillc.diagnostics.suggest import spelling_hint
from skillc.language.checked import Amount, Entity, Invocation, Items, Setting, Word
from skillc.language.types import add_error
from skillc.syntax.source import Span
from skillc.text import listed

PLACEHOLDERS = {
    "prompt": "the whole conversation as one text",
    "system": "the text of the system messages",
    "user": "the conversation without the system messages",
    "messages": "the path of a JSON file with the messages in the chat format",
    "model": "the model's name after `exec/`",
    "here": "the folder of the program",
}
"""Names allowed in braces. A command with none of the first four reads the prompt on its standard input."""

_PLACE = re.compile(r"\{\{(\w+)\}\}|\{([A-Za-z_]\w*)\}")


def split_command(command: str) -> tuple[str, ...]:
    """Split a command into words by the rules of a POSIX shell; it runs without a shell.

    Raises:
        ValueError: a quote is not closed.

    >>> split_command("tool --json 'two words' --prompt={prompt}")
    ('tool', '--json', 'two words', '--prompt={prompt}')
    """
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


_STEP = re.compile(r"\.([^.\[\]\s]+)|\[(-?\d{1,6})\]")
_PATH = re.compile(rf"(?:{_STEP.pattern})+")


COMMANDS = "exec"
"""The provider of models that a command answers for."""

_WITH_COMMAND = frozenset({"exec", "key", "price", "max_reply", "timeout", "concurrency", "rpm", "tpm"})
_ELSEWHERE = frozenset({"base_url", "serve", "backend"})
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def is_variable(name: str) -> bool:
    """Whether a text is the name of an environment variable."""
    return _VARIABLE.fullmatch(name) is not None


def check_models(report: Reporter, models: Iterable[Entity]) -> None:
    """Check that one backend answers for each model, with settings that it supports, and check the commands."""
    bare: set[str] = set()
    for model in models:
        provider = model.value.partition("/")[0] if isinstance(model.value, str) else None
        command, backend = model.settings.get("exec"), model.settings.get("backend")
        if command is not None:
            _check_command_alone(report, model, provider)
            _check_words(report, command)
            _check_answer(report, command, model.settings.get("concurrency"))
            _check_environment(report, command)
        elif provider == COMMANDS and model.value not in bare:
            # Models that reuse this one are not reported again.
            bare.add(str(model.value))
            hint = 'add `exec = "mytool --prompt {prompt}"` to its block'
            add_error(report, "SK623", model, f"no command is configured for `{model.value}`", hint)
        if backend is not None and command is None:
            _check_backend(report, model, backend, provider)


_VLLM_FLAGS = ("--enable-auto-tool-choice", "--tool-call-parser")


def check_native_calls(report: Reporter, entities: Iterable[Entity]) -> None:
    """Check that the target of an agent with `tool_calls = native` can be given tools."""
    known = list(entities)
    rollout = next((each.settings.get("rollout") for each in known if each.kind == "task"), None)
    calls = rollout.block.get("tool_calls") if rollout is not None and rollout.value == Word("react") else None
    target = next((each for each in known if each.kind == "model" and each.name == "target"), None)
    if calls is None or calls.value != Word("native") or target is None:
        return
    serve = target.settings.get("serve")
    args = serve.block.get("args") if serve is not None else None
    given = [str(each) for each in args.value.items] if args is not None and isinstance(args.value, Items) else []
    missing = [flag for flag in _VLLM_FLAGS if not any(each.split("=")[0] == flag for each in given)]
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


# ---- the command ----------------------------------------------------------------------------------


def _check_words(report: Reporter, command: Setting) -> None:
    text = str(command.value)

    def wrong(message: str, hint: str, part: str = "") -> None:
        report.add("SK621", command.source, within(command, part), message, hint=hint)

    try:
        words = split_command(text)
    except ValueError:
        wrong("a quote in the command is not closed", "close it; a lone `'` is written `\"'\"`")
        return
    if not words or not words[0] or "\0" in text:
        wrong("the command has no program", 'write `exec = "mytool --prompt {prompt}"`')
        return
    found = [place for word in words for place in placeholders(word)]
    for place in dict.fromkeys(found):
        if place not in PLACEHOLDERS:
            options = listed(f"{{{each}}}" for each in PLACEHOLDERS)
            near = spelling_hint(place, PLACEHOLDERS)
            hint = f"{near}; for literal braces write `{{{{{place}}}}}`" if near else f"valid options: {options}"
            wrong(f"unknown placeholder `{{{place}}}`", hint, f"{{{place}}}")
    if any(place != "here" for place in placeholders(words[0])):
        wrong("the program can't be a placeholder", "begin with the name of the program", words[0])
    if "user" in found and not {"system", "prompt", "messages"} & set(found):
        message = "`{user}` omits the system messages, which contain the skill"
        wrong(message, "add `{system}`, or write `{prompt}`", "{user}")


def within(setting: Setting, part: str) -> Span:
    """The place of a part of a setting's text; the whole setting if the source spells it differently."""
    start = setting.source.text.find(part, setting.span.start, setting.span.end) if part else -1
    return Span(start, start + len(part)) if start >= 0 else setting.span


# ---- its answer -----------------------------------------------------------------------------------


def _check_answer(report: Reporter, command: Setting, concurrency: Setting | None) -> None:
    answer = command.block.get("answer")
    if answer is None or not isinstance(answer.value, Invocation):
        return
    form, argument = answer.value.function, str(answer.value.arguments[0])
    problem = answer_problem(form, argument)
    one_call = concurrency is not None and concurrency.value == Amount(Fraction(1))
    if problem is not None:
        add_error(report, "SK622", answer, *problem)
    elif form == "file" and "folder" in command.block and not one_call:
        message = "concurrent calls would write the same file in the same folder"
        hint = "add `concurrency = 1` to the model's block, or remove `folder`: each call then has its own"
        add_error(report, "SK622", answer, message, hint)


def answer_problem(form: str, argument: str) -> tuple[str, str] | None:
    """Message and hint for a wrong argument of a form of answers, such as `json(".result")`."""
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


# ---- its environment ------------------------------------------------------------------------------


def _check_environment(report: Reporter, command: Setting) -> None:
    folder, environment = command.block.get("folder"), command.block.get("environment")
    if folder is not None and not str(folder.value).strip():
        add_error(report, "SK621", folder, "`folder` is empty", "remove it to run in a new folder")
    if environment is None or not isinstance(environment.value, Items):
        return
    for item in environment.value.items:
        name = str(item.arguments[0]) if isinstance(item, Invocation) else ""
        if not is_variable(name):
            place = within(environment, f'"{name}"')
            hint = 'write the name alone: `env("CODEX_HOME")`'
            report.add("SK621", environment.source, place, f"`{name}` is not the name of a variable", hint=hint)

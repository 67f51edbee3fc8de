"""Commands that answer for a model: reading their words and places, and checking them."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import PurePosixPath, PureWindowsPath

from skillc.diagnostics.diagnostic import Reporter
from skillc.diagnostics.suggest import spelling_hint
from skillc.language.checked import Amount, Entity, Invocation, Items, Setting
from skillc.syntax.source import Span

PLACEHOLDERS = {
    "prompt": "the whole conversation as one text",
    "system": "what the system messages say",
    "user": "the conversation without the system messages",
    "messages": "the path of a JSON file with the messages in the chat format",
    "model": "the model's name behind `exec/`",
    "here": "the folder of the program",
}
"""What may stand in braces. A command with none of the first four reads the prompt on its standard input."""

_PLACE = re.compile(r"\{\{(\w+)\}\}|\{([A-Za-z_]\w*)\}")


def split_command(command: str) -> tuple[str, ...]:
    """The words of a command, by the rules of a POSIX shell; no shell reads it.

    Raises:
        ValueError: a quote is not closed.

    >>> split_command("tool --json 'two words' --prompt={prompt}")
    ('tool', '--json', 'two words', '--prompt={prompt}')
    """
    return tuple(shlex.split(command))


def placeholders(word: str) -> Iterator[str]:
    """The names in braces; `{{name}}` is literal text.

    >>> list(placeholders("{prompt} {{prompt}} {a: 1} {nope}"))
    ['prompt', 'nope']
    """
    return (match[2] for match in _PLACE.finditer(word) if match[2])


def fill_placeholders(word: str, value: Callable[[str], str]) -> str:
    """The word with a value at each place. Places in a value are not filled.

    >>> fill_placeholders("--in={prompt}{{prompt}}", lambda name: "{model}")
    '--in={model}{prompt}'
    """
    return _PLACE.sub(lambda match: value(match[2]) if match[2] else f"{{{match[1]}}}", word)


def json_path(text: str) -> tuple[str | int, ...] | None:
    """The steps of a path into JSON, None where it is none.

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


def check_models(report: Reporter, models: Iterable[Entity]) -> None:
    """One thing answers for a model, it takes every setting, and a command has its program and its answer."""
    bare: set[str] = set()
    for model in models:
        provider = model.value.partition("/")[0] if isinstance(model.value, str) else None
        command, backend = model.settings.get("exec"), model.settings.get("backend")
        if command is not None:
            _check_command_alone(report, model, provider)
            _check_words(report, command)
            _check_answer(report, command, model.settings.get("concurrency"))
            _check_around(report, command)
        elif provider == COMMANDS and model.value not in bare:
            # A model that reuses this one is not to be blamed again.
            bare.add(str(model.value))
            message = f"`{model.value}` is answered by a command, and none is given"
            hint = 'add `exec = "mytool --prompt {prompt}"` to its block'
            report.add("SK623", model.source, model.span, message, hint=hint)
        if backend is not None and command is None:
            _check_backend(report, model, backend, provider)


def _check_command_alone(report: Reporter, model: Entity, provider: str | None) -> None:
    if provider not in (None, COMMANDS):
        setting = model.settings["exec"]
        message = f"a command answers for a model of the provider `exec`, not for `{model.value}`"
        hint = f'name the model `"exec/{str(model.value).rpartition("/")[2]}"`'
        report.add("SK623", setting.source, setting.span, message, hint=hint)
    for name, setting in model.settings.items():
        if name in _ELSEWHERE:
            message, hint = f"a command answers, so `{name}` has no place beside it", "keep one of them"
        elif name not in _WITH_COMMAND:
            message, hint = f"a command is sent no `{name}`", "write it into the command, as its own option"
        else:
            continue
        report.add("SK623", setting.source, setting.span, message, hint=hint)


def _check_backend(report: Reporter, model: Entity, backend: Setting, provider: str | None) -> None:
    if provider in (COMMANDS, "rulebook"):
        message = f"`{provider}` is a provider of skillc's own, so no other function can answer for `{model.value}`"
        report.add("SK623", backend.source, backend.span, message, hint='choose another name: `"mine/large"`')
    if "serve" in model.settings:
        served = model.settings["serve"]
        message = "a function of your own answers, so `serve` has no place beside it"
        report.add("SK623", served.source, served.span, message, hint="keep one of them")
    name = backend.value.arguments[0] if isinstance(backend.value, Invocation) else ""
    module, colon, function = str(name).partition(":")
    if not (module and colon and function):
        report.add(
            "SK623",
            backend.source,
            backend.span,
            f"`{name}` names no function",
            hint='write `python("module:function")`',
        )


# ---- the command ----------------------------------------------------------------------------------


def _check_words(report: Reporter, command: Setting) -> None:
    text = str(command.value)

    def wrong(message: str, hint: str, part: str = "") -> None:
        report.add("SK621", command.source, _within(command, part), message, hint=hint)

    try:
        words = split_command(text)
    except ValueError:
        wrong("a quote in the command is not closed", "close it; a lone `'` is written `\"'\"`")
        return
    if not words or not words[0] or "\0" in text:
        wrong("the command names no program", 'write `exec = "mytool --prompt {prompt}"`')
        return
    found = [place for word in words for place in placeholders(word)]
    for place in dict.fromkeys(found):
        if place not in PLACEHOLDERS:
            listed = ", ".join(f"`{{{each}}}`" for each in PLACEHOLDERS)
            near = spelling_hint(place, PLACEHOLDERS)
            hint = f"{near}; for braces as they are write `{{{{{place}}}}}`" if near else f"there is {listed}"
            wrong(f"a command has no place `{{{place}}}`", hint, f"{{{place}}}")
    if any(place != "here" for place in placeholders(words[0])):
        wrong("the program itself can't come from a call", "begin with the program's name", words[0])
    if "user" in found and not {"system", "prompt", "messages"} & set(found):
        wrong(
            "`{user}` leaves out the system messages, where the skill stands",
            "add `{system}`, or write `{prompt}`",
            "{user}",
        )


def _within(setting: Setting, part: str) -> Span:
    """Where a part of a setting's text stands, the whole setting where it is written otherwise."""
    start = setting.source.text.find(part, setting.span.start, setting.span.end) if part else -1
    return Span(start, start + len(part)) if start >= 0 else setting.span


# ---- its answer -----------------------------------------------------------------------------------


def _check_answer(report: Reporter, command: Setting, concurrency: Setting | None) -> None:
    answer = command.block.get("answer")
    if answer is None or not isinstance(answer.value, Invocation):
        return
    said = str(answer.value.arguments[0])
    problem = _ANSWERS[answer.value.function](said)
    if problem is not None:
        report.add("SK622", answer.source, answer.span, problem[0], hint=problem[1])
    elif answer.value.function == "file" and "folder" in command.block and not _is_one(concurrency):
        message = "calls at the same time would write the same file in the same folder"
        hint = "add `concurrency = 1` to the model's block, or leave `folder` out: each call has one of its own then"
        report.add("SK622", answer.source, answer.span, message, hint=hint)


def _is_one(setting: Setting | None) -> bool:
    return setting is not None and isinstance(setting.value, Amount) and setting.value.value == 1


Problem = tuple[str, str]


def _json_problem(path: str) -> Problem | None:
    if json_path(path) is not None:
        return None
    return f"`{path}` is no path into JSON", 'write `json(".result")`, `json(".choices[0].text")`'


def _after_problem(marker: str) -> Problem | None:
    return (
        None
        if marker
        else ("the marker is empty", 'write `after("Answer:")`, or leave `answer` out for the whole output')
    )


def _match_problem(pattern: str) -> Problem | None:
    try:
        groups = re.compile(pattern).groups
    except (re.error, OverflowError, RecursionError) as problem:
        return f"this is no regular expression: {problem}", "it is one of Python's `re`"
    if groups > 1:
        return f"the expression has {groups} groups, and the answer is one", "write the others as `(?:...)`"
    return None


def _file_problem(name: str) -> Problem | None:
    parts = {*PurePosixPath(name).parts, *PureWindowsPath(name).parts}
    outside = PurePosixPath(name).is_absolute() or PureWindowsPath(name).anchor or ".." in parts
    if not parts or outside or "\0" in name:
        return f"`{name}` is no file within the working folder", 'write its name: `file("last.txt")`'
    return None


_ANSWERS: Mapping[str, Callable[[str], Problem | None]] = {
    "json": _json_problem,
    "after": _after_problem,
    "match": _match_problem,
    "file": _file_problem,
}


# ---- what it runs in ------------------------------------------------------------------------------


def _check_around(report: Reporter, command: Setting) -> None:
    folder, environment = command.block.get("folder"), command.block.get("environment")
    if folder is not None and not str(folder.value).strip():
        report.add("SK621", folder.source, folder.span, "the folder has no name", hint="leave it out for an empty one")
    if environment is None or not isinstance(environment.value, Items):
        return
    for item in environment.value.items:
        name = str(item.arguments[0]) if isinstance(item, Invocation) else ""
        if not _VARIABLE.fullmatch(name):
            place = _within(environment, f'"{name}"')
            hint = 'write its name alone: `env("CODEX_HOME")`'
            report.add("SK621", environment.source, place, f"`{name}` is no name of a variable", hint=hint)

"""`exec = "command {prompt}"`: a command that answers for a model, one run for each attempt of a call."""

from __future__ import annotations

import errno
import json
import shutil
import signal
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from skillc.errors import SkillcError
from skillc.json_values import digest
from skillc.language.commands import COMMANDS
from skillc.models.backends.command_run import MOST_OUTPUT, AnswerMissing, Ended, prepare, run, take
from skillc.models.calls import well_formed
from skillc.models.endpoint import Backend, Endpoint, Transport, key_of
from skillc.models.failures import CallFailed, PermanentFailure, scrub
from skillc.plan.schema import ExecPlan, ModelPlan

_SYSTEM = frozenset({"system", "developer"})

Messages = Sequence[Mapping[str, Any]]


class NotPlain(ValueError):  # noqa: N818
    """A message holds more than text."""


def system_text(messages: Messages) -> str:
    """The system messages as one text.

    Raises:
        NotPlain: a message holds an image, a sound or a file.
    """
    return "\n\n".join(_text(message) for message in messages if message["role"] in _SYSTEM)


def user_text(messages: Messages) -> str:
    """The rest of the conversation: a single message as it is, several with their roles over them.

    Raises:
        NotPlain: a message holds an image, a sound or a file.
    """
    rest = [message for message in messages if message["role"] not in _SYSTEM]
    if len(rest) == 1:
        return _text(rest[0])
    return "\n\n".join(f"[{message['role']}]\n{_text(message)}" for message in rest)


def prompt_text(messages: Messages) -> str:
    """The whole conversation: the system messages, and the rest below them.

    Raises:
        NotPlain: a message holds an image, a sound or a file.
    """
    return "\n\n".join(part for part in (system_text(messages), user_text(messages)) if part)


def _text(message: Mapping[str, Any]) -> str:
    content = message.get("content")
    if content is None or isinstance(content, str):
        return content or ""
    for part in content:
        if part.get("type") != "text":
            raise NotPlain(f"a message holds a part of type `{part.get('type')}`")
    return "\n".join(str(part["text"]) for part in content)


# Variables that every command gets: paths of programs and the user, language and time zone.
_GIVEN = ("PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ", "TMPDIR")
# Linux takes no argument of more bytes, the zero behind it included.
_LONGEST = 128 * 1024 - 1 if sys.platform == "linux" else None
_NOT_FOUND, _NOT_EXECUTABLE = 127, 126
_PASSING = frozenset({errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ENFILE, errno.ETXTBSY})
_TOLD = 300
# A shorter value is no secret, and hiding it would tear holes into every text.
_SECRET = 6


class CommandFailed(ConnectionError):  # noqa: N818
    """A run that gave no answer, where another one may: agents fail by chance."""


def command_endpoint(model: ModelPlan, environ: Mapping[str, str]) -> Endpoint:
    """The endpoint in cache keys: a digest of the command as written, how its answer is found, folder and variables.

    Neither its path nor its version, so that the same program is the same run on another machine.

    Raises:
        SkillcError: the key is not set.
    """
    assert model.exec is not None
    return Endpoint(f"{COMMANDS}:{digest(model.exec)[:16]}", None, key_of(model, environ, model.key_env), model.key_env)


class Command:
    """The transport of a role that a command answers for.

    Args:
        model: the role's plan.
        environ: where the command's variables come from.
        root: the program's folder.

    Raises:
        SkillcError: the command, its folder or one of its variables is not there.
    """

    def __init__(self, model: ModelPlan, environ: Mapping[str, str], root: Path) -> None:
        if model.exec is None:
            raise SkillcError(
                f"model `{model.role}` is `{model.model}`, which a command answers for, and none is declared",
                hint='add `exec = "mytool --prompt {prompt}"` to its block',
            )
        if model.provider != COMMANDS:
            raise SkillcError(
                f"model `{model.role}` is `{model.model}`, and a command answers for models of the provider `exec`",
                hint="name it `exec/...`",
            )
        self._model = model
        self._exec: ExecPlan = model.exec
        self._root = root.resolve()
        self._environment, self._secrets = _environment(model, environ)
        self._folder = self._declared_folder()
        self._program = self._found()

    async def __call__(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """One run; the reply in the chat format.

        Raises:
            PermanentFailure: no other run would do better.
            CommandFailed, AnswerMissing, CallFailed, TimeoutError: what this one gave is no answer.
        """
        if arguments.get("tools"):
            self._refuse("a command can't call tools of the program's", "give this role a model that can")
        with tempfile.TemporaryDirectory(prefix="skillc-", ignore_cleanup_errors=True) as place:
            given = _Given(self._exec, arguments["messages"], self._model.model, self._root, Path(place))
            folder = self._folder or given.empty_folder()
            words, stdin = self._words(given)
            ended = await self._run(words, folder, stdin, float(arguments["timeout"]))
            text = self._answer(ended, folder, float(arguments["timeout"]))
        message = {"role": "assistant", "content": text}
        return {"choices": [{"message": message, "finish_reason": "stop"}], "model": self._model.model, "usage": None}

    # ---- before the first run ----

    def _declared_folder(self) -> Path | None:
        if self._exec.folder is None:
            return None
        folder = self._root / self._exec.folder
        if not folder.is_dir():
            self._refuse(
                f"there is no folder `{self._exec.folder}` beside the program", "make it, or leave `folder` out"
            )
        return folder

    def _found(self) -> str:
        """The path of the program; one with a slash is looked for from the program's folder."""
        name = ExecPlan(command=self._exec.command[:1]).filled(lambda _: str(self._root))[0]
        if "/" in name:
            name = str(self._root / name)
        found = shutil.which(name, path=self._environment.get("PATH"))
        if found is None:
            there = Path(name).exists()
            what = "can't be executed" if there else "is not there"
            fix = f"`chmod +x {name}`" if there else "install it, or write its path; it is looked for on `PATH`"
            self._refuse(f"the command `{self._exec.command[0]}` {what}", fix)
        return found

    # ---- one run ----

    def _words(self, given: _Given) -> tuple[list[str], bytes | None]:
        """The arguments and the standard input."""
        try:
            words = [self._program, *self._exec.filled(given.value)[1:]]
            rest = given.left_over()
        except NotPlain as problem:
            self._refuse(
                f"{problem}, and a command takes texts", "write `{messages}`, the path of a file with all of them"
            )
        for template, word in zip(self._exec.command[1:], words[1:], strict=True):
            size = len(word.encode())
            if "\0" in word or (_LONGEST is not None and size > _LONGEST):
                why = "holds a zero byte" if "\0" in word else f"has {size:,} bytes, and the system takes {_LONGEST:,}"
                self._refuse(
                    f"the argument `{template}` {why}",
                    "write `{messages}`, the path of a file, or leave the place out: standard input holds it then",
                )
        return words, None if rest is None else rest.encode()

    async def _run(self, words: list[str], folder: Path, stdin: bytes | None, timeout: float) -> Ended:
        try:
            prepare(self._exec.answer, folder)
            return await run(words, folder=folder, environment=self._environment, stdin=stdin, timeout=timeout)
        except OSError as problem:
            what = f"the command `{self._exec.command[0]}` can't be started: {problem.strerror}"
            if problem.errno in _PASSING:
                raise CommandFailed(what) from None
            if problem.errno == errno.E2BIG:
                self._refuse(what, "write `{messages}`, or leave the places out: the prompt stands on standard input")
            self._refuse(what, "try it in a terminal")

    def _answer(self, ended: Ended, folder: Path, timeout: float) -> str:
        """The answer of a run that came to its end.

        Raises:
            TimeoutError, CommandFailed, AnswerMissing, CallFailed, PermanentFailure: there is none.
        """
        said = self._said(ended)
        if ended.why == "timeout":
            raise TimeoutError(self._scrubbed(f"the command gave no answer within {timeout:g} s{said}"))
        if ended.why == "much":
            raise AnswerMissing(self._scrubbed(f"the command printed more than {MOST_OUTPUT // 2**20} MiB{said}"))
        if ended.status in (_NOT_FOUND, _NOT_EXECUTABLE):
            self._refuse(
                f"the command ended with status {ended.status}: a program in it can't be run{said}", "install it"
            )
        if ended.status != 0:
            raise CommandFailed(self._scrubbed(f"the command {_status(ended.status)}{self._astray()}{said}"))
        try:
            text = take(self._exec.answer, ended.stdout, folder)
        except AnswerMissing as problem:
            raise AnswerMissing(self._scrubbed(f"{problem}{said}")) from None
        if not text:
            raise CallFailed("empty", self._scrubbed(f"the command gave no text{said}"))
        return text

    def _said(self, ended: Ended) -> str:
        """The end of standard error, else of the output."""
        for raw in (ended.stderr, ended.stdout[-_TOLD * 4 :] if ended.status else b""):
            text = " ".join(raw.decode(errors="replace").split())
            if text:
                return f": {'…' if len(text) > _TOLD else ''}{text[-_TOLD:]}"
        return ""

    def _astray(self) -> str:
        """Point out an argument that names a file beside the program, which the empty working folder lacks."""
        for word in self._exec.command[1:]:
            if (
                self._folder is None
                and "{" not in word
                and not word.startswith(("-", "/"))
                and (self._root / word).is_file()
            ):
                mended = f"write `{{here}}/{word}`"
                return f" (`{word}` lies beside the program, and the command runs in an empty folder: {mended})"
        return ""

    def _scrubbed(self, text: str) -> str:
        return scrub(text, self._secrets)

    def _refuse(self, what: str, hint: str) -> NoReturn:
        model = self._model
        raise PermanentFailure(self._scrubbed(f"model `{model.role}` (`{model.model}`): {what}"), hint=hint)


@dataclass(frozen=True, slots=True)
class _Given:
    """Values for the placeholders of one run, and a private folder outside the working folder."""

    plan: ExecPlan
    messages: Messages
    model: str
    root: Path
    place: Path

    def empty_folder(self) -> Path:
        folder = self.place / "work"
        folder.mkdir()
        return folder

    def value(self, place: str) -> str:
        """The value of a place in a word.

        Raises:
            NotPlain: a message holds more than text.
        """
        if place == "messages":
            file = self.place / "messages.json"
            file.write_text(well_formed(json.dumps(list(self.messages), ensure_ascii=False)), encoding="utf-8")
            return str(file)
        if place in ("model", "here"):
            return self.model.partition("/")[2] if place == "model" else str(self.root)
        text = well_formed({"prompt": prompt_text, "system": system_text, "user": user_text}[place](self.messages))
        # An argument that begins with a dash would be taken for an option.
        return f" {text}" if text.startswith("-") else text

    def left_over(self) -> str | None:
        """The standard input: what no placeholder of the command holds.

        Raises:
            NotPlain: a message holds more than text.
        """
        if self.plan.places & {"prompt", "user", "messages"}:
            return None
        return well_formed((user_text if "system" in self.plan.places else prompt_text)(self.messages))


def _environment(model: ModelPlan, environ: Mapping[str, str]) -> tuple[dict[str, str], list[str]]:
    """The variables of a command, and the values among them that no text may hold.

    Raises:
        SkillcError: a declared one is not set.
    """
    assert model.exec is not None
    key_of(model, environ, model.key_env)
    declared = {*model.exec.environment, *([model.key_env] if model.key_env else [])}
    for name in sorted(declared):
        if not environ.get(name):
            raise SkillcError(
                f"the command of model `{model.role}` is given `{name}`, which is not set", hint=f"export {name}=..."
            )
    names = {*_GIVEN, *(name for name in environ if name.startswith("LC_")), *declared}
    given = {name: environ[name] for name in sorted(names) if name in environ}
    return given, [given[name] for name in declared if len(given[name]) >= _SECRET]


def _status(status: int) -> str:
    if status >= 0:
        return f"ended with status {status}"
    try:
        return f"was ended by {signal.Signals(-status).name}"
    except ValueError:
        return f"was ended by signal {-status}"


def _connect(model: ModelPlan, environ: Mapping[str, str], root: Path) -> tuple[Endpoint, Transport] | None:
    if model.exec is None and model.provider != COMMANDS:
        return None
    command = Command(model, environ, root)
    return command_endpoint(model, environ), command


COMMAND = Backend("command", _connect, users=True)

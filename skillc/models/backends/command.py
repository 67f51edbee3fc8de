"""`exec = "command {prompt}"`: a command that answers for a model, one run for each attempt of a call."""

from __future__ import annotations

import errno
import json
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

from skillc.dataclass import dataclass
from skillc.errors import SkillcError
from skillc.json_values import as_text, digest
from skillc.language.commands import COMMANDS
from skillc.models.calls import well_formed
from skillc.models.endpoint import Backend, Endpoint, Transport, key_of, secrets_of
from skillc.models.failures import CallFailed, PermanentFailure, scrub
from skillc.plan.schema import AnswerPlan, ExecPlan, ModelPlan
from skillc.processes.command import MOST_OUTPUT, STDERR_KEPT, CommandResult, describe_status, run
from skillc.redaction import Redactor

_SYSTEM = frozenset({"system", "developer"})
# Variables that every command gets: paths of programs and the user, language and time zone.
_INHERITED = ("PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ", "TMPDIR")
# Bytes of an argument that Linux accepts, with the zero at its end.
_LONGEST = 128 * 1024 - 1 if sys.platform == "linux" else None
_NOT_FOUND, _NOT_EXECUTABLE = 127, 126
_TEMPORARY = frozenset({errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ENFILE, errno.ETXTBSY})
# Characters of a command's output that messages quote.
_QUOTED = 300

Messages = Sequence[Mapping[str, Any]]


class UnsupportedContent(ValueError):  # noqa: N818
    """A message contains an image, a sound or a file."""


class CommandFailed(ConnectionError):  # noqa: N818
    """A run without an answer, where another run may have one: agents fail by chance."""


def system_text(messages: Messages) -> str:
    """Return the system messages as one text."""
    return "\n\n".join(_text(message) for message in messages if message["role"] in _SYSTEM)


def user_text(messages: Messages) -> str:
    """Return the other messages: a single one unchanged, several below their roles."""
    rest = [message for message in messages if message["role"] not in _SYSTEM]
    if len(rest) == 1:
        return _text(rest[0])
    return "\n\n".join(f"[{message['role']}]\n{_text(message)}" for message in rest)


def prompt_text(messages: Messages) -> str:
    """Return the whole conversation, the system messages first."""
    return "\n\n".join(part for part in (system_text(messages), user_text(messages)) if part)


def _text(message: Mapping[str, Any]) -> str:
    content = message.get("content")
    if content is None or isinstance(content, str):
        return content or ""
    for part in content:
        if part.get("type") != "text":
            raise UnsupportedContent(f"a message contains a part of type `{part.get('type')}`")
    return "\n".join(str(part["text"]) for part in content)


class CommandTransport:
    """Sends the attempts of a role to its command; raises `SkillcError` if it, its folder or a variable is missing.

    Attributes:
        endpoint: of the role.
    """

    def __init__(self, model: ModelPlan, environ: Mapping[str, str], root: Path) -> None:
        if model.exec is None:
            raise SkillcError(
                f"model `{model.role}` (`{model.model}`) declares no command",
                hint='add `exec = "mytool --prompt {prompt}"` to its block',
            )
        if model.provider != COMMANDS:
            raise SkillcError(
                f"model `{model.role}` (`{model.model}`) has a command, but its provider is not `exec`",
                hint="name it `exec/...`",
            )
        self._model = model
        self._exec: ExecPlan = model.exec
        self._root = root.resolve()
        # Neither the command's path nor its version, so that the same program is the same run on another machine.
        identity = f"{COMMANDS}:{digest(model.exec)[:16]}"
        self.endpoint = Endpoint(identity, None, key_of(model, environ, model.key_env), model.key_env)
        self._environment = _environment(model, model.exec, environ)
        self._hide = Redactor(secrets_of(model, self.endpoint, environ))
        self._folder = self._declared_folder()
        self._program = self._find_program()

    async def __call__(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Run the command once and return the reply in the chat format.

        Raises `PermanentFailure` if no other run would do better, other errors if this run gave no answer.
        """
        if arguments.get("tools"):
            self._refuse("a command cannot call tools", "give this role a model that can")
        with tempfile.TemporaryDirectory(prefix="skillc-", ignore_cleanup_errors=True) as private:
            inputs = _Inputs(self._exec, arguments["messages"], self._model.bare_name, self._root, Path(private))
            folder = self._folder or Path(tempfile.mkdtemp(dir=private))
            words, stdin = self._command_line(inputs)
            timeout = float(arguments["timeout"])
            text = self._answer(await self._run(words, folder, stdin, timeout), folder, timeout)
        message = {"role": "assistant", "content": text}
        return {"choices": [{"message": message, "finish_reason": "stop"}], "model": self._model.model, "usage": None}

    def _declared_folder(self) -> Path | None:
        if self._exec.folder is None:
            return None
        folder = self._root / self._exec.folder
        if not folder.is_dir():
            self._refuse(f"the folder `{self._exec.folder}` does not exist", "create it, or leave `folder` out")
        return folder

    def _find_program(self) -> str:
        """Find the executable; a relative path starts at the folder of the skill's program."""
        name = ExecPlan(command=self._exec.command[:1]).filled(lambda _: str(self._root))[0]
        if "/" in name:
            name = str(self._root / name)
        found = shutil.which(name, path=self._environment.get("PATH"))
        if found is None and Path(name).exists():
            self._refuse(f"the command `{self._exec.command[0]}` cannot be executed", f"`chmod +x {name}`")
        if found is None:
            fix = "install it, or write its path; it is looked up on `PATH`"
            self._refuse(f"the command `{self._exec.command[0]}` was not found", fix)
        return found

    def _command_line(self, inputs: _Inputs) -> tuple[list[str], bytes | None]:
        try:
            words = [self._program, *self._exec.filled(inputs.value)[1:]]
            rest = inputs.left_over()
        except UnsupportedContent as problem:
            self._refuse(
                f"{problem}, but a command takes text only", "use `{messages}`, the path of a file with all messages"
            )
        for template, word in zip(self._exec.command[1:], words[1:], strict=True):
            size = len(word.encode())
            if "\0" in word or (_LONGEST is not None and size > _LONGEST):
                why = "contains a zero byte" if "\0" in word else f"has {size:,} bytes; the system accepts {_LONGEST:,}"
                self._refuse(
                    f"the argument `{template}` {why}",
                    "use `{messages}`, the path of a file, or leave the placeholder out to pass it on standard input",
                )
        return words, None if rest is None else rest.encode()

    async def _run(self, words: list[str], folder: Path, stdin: bytes | None, timeout: float) -> CommandResult:
        try:
            prepare_answer(self._exec.answer, folder)
            return await run(words, folder=folder, environment=self._environment, stdin=stdin, timeout=timeout)
        except OSError as problem:
            what = f"the command `{self._exec.command[0]}` cannot be started: {problem.strerror}"
            if problem.errno in _TEMPORARY:
                raise CommandFailed(what) from None
            if problem.errno == errno.E2BIG:
                fix = "use `{messages}`, or leave the placeholders out to pass the prompt on standard input"
                self._refuse(what, fix)
            self._refuse(what, "try it in a terminal")

    def _answer(self, result: CommandResult, folder: Path, timeout: float) -> str:
        output = self._quoted_output(result)
        if result.why == "timeout":
            raise TimeoutError(self._scrub(f"the command did not answer within {timeout:g} s{output}"))
        if result.why == "output":
            raise AnswerMissing(self._scrub(f"the command printed more than {MOST_OUTPUT // 2**20} MiB{output}"))
        if result.status in (_NOT_FOUND, _NOT_EXECUTABLE):
            what = f"the command exited with status {result.status}: a program in it cannot be run{output}"
            self._refuse(what, "install it")
        if result.status != 0:
            what = f"the command {describe_status(result.status)}{self._misplaced_file()}{output}"
            raise CommandFailed(self._scrub(what))
        try:
            text = take_answer(self._exec.answer, result.stdout, folder)
        except AnswerMissing as problem:
            raise AnswerMissing(self._scrub(f"{problem}{output}")) from None
        if not text:
            raise CallFailed("empty", self._scrub(f"the command printed no text{output}"))
        return text

    def _quoted_output(self, result: CommandResult) -> str:
        """Quote the end of standard error, else of the output."""
        for raw in (result.stderr, result.stdout if result.status else b""):
            # Redacted before it is cut, because a part of a secret is not found.
            text = " ".join(self._hide.message(_end(raw)).split())
            if text:
                return f": {'…' if len(text) > _QUOTED else ''}{text[-_QUOTED:]}"
        return ""

    def _misplaced_file(self) -> str:
        """Point out an argument that names a file beside the program, which the empty working folder lacks."""
        for word in self._exec.command[1:] if self._folder is None else ():
            if "{" not in word and not word.startswith(("-", "/")) and (self._root / word).is_file():
                fix = f"write `{{here}}/{word}`"
                return f" (`{word}` is beside the program, but the command runs in an empty folder: {fix})"
        return ""

    def _scrub(self, text: str) -> str:
        return scrub(text, self._hide)

    def _refuse(self, what: str, hint: str) -> NoReturn:
        model = self._model
        raise PermanentFailure(self._scrub(f"model `{model.role}` (`{model.model}`): {what}"), hint=hint)


@dataclass(frozen=True, slots=True)
class _Inputs:
    """Values for the placeholders of one run, and a private folder outside the working folder."""

    plan: ExecPlan
    messages: Messages
    model: str
    root: Path
    private: Path

    def value(self, placeholder: str) -> str:
        if placeholder == "messages":
            file = self.private / "messages.json"
            file.write_text(well_formed(json.dumps(list(self.messages), ensure_ascii=False)), encoding="utf-8")
            return str(file)
        if placeholder in ("model", "here"):
            return self.model if placeholder == "model" else str(self.root)
        text = well_formed(
            {"prompt": prompt_text, "system": system_text, "user": user_text}[placeholder](self.messages)
        )
        # An argument that begins with a dash would be read as an option.
        return f" {text}" if text.startswith("-") else text

    def left_over(self) -> str | None:
        """Return the standard input: all that no placeholder of the command has."""
        if self.plan.places & {"prompt", "user", "messages"}:
            return None
        return well_formed((user_text if "system" in self.plan.places else prompt_text)(self.messages))


def _environment(model: ModelPlan, plan: ExecPlan, environ: Mapping[str, str]) -> dict[str, str]:
    declared = {*plan.environment, *([model.key_env] if model.key_env else [])}
    for name in sorted(declared):
        if not environ.get(name):
            raise SkillcError(
                f"the command of model `{model.role}` needs `{name}`, which is not set", hint=f"export {name}=..."
            )
    names = {*_INHERITED, *(name for name in environ if name.startswith("LC_")), *declared}
    return {name: environ[name] for name in sorted(names) if name in environ}


def _end(output: bytes) -> str:
    """Return the end of an output, without the first word if that may be the rest of a longer one."""
    text = output[-STDERR_KEPT:].decode(errors="replace")
    return text.split(maxsplit=1)[-1] if len(output) >= STDERR_KEPT and text.strip() else text


# ---- the answer in the output ----


class AnswerMissing(ValueError):  # noqa: N818
    """The output of a command has no answer in the declared place, so it is malformed."""


def prepare_answer(answer: AnswerPlan, folder: Path) -> None:
    """Date the answer's file of an earlier call to the epoch, so that it is not read as this call's."""
    if answer.kind == "file" and (folder / answer.text).exists():
        os.utime(folder / answer.text, ns=(0, 0))


def take_answer(answer: AnswerPlan, output: bytes, folder: Path) -> str:
    """Return the answer, stripped, or empty if the command printed nothing; raise `AnswerMissing` if it has none."""
    if answer.kind == "file":
        return _decode(_read_file(folder, answer.text), f"the file `{answer.text}`").strip()
    text = _decode(output, "the output").strip()
    return _READERS[answer.kind](answer, text).strip() if text else ""


def _decode(raw: bytes, what: str) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError as problem:
        raise AnswerMissing(f"{what} is not UTF-8 at byte {problem.start}") from None


def _json(answer: AnswerPlan, text: str) -> str:
    """Return the value at the path in the output, or in the last line that has one there."""
    for part in (text, *reversed(text.splitlines())):
        try:
            value = json.loads(part)
            for step in answer.path:
                value = value[step]
        except (ValueError, RecursionError, KeyError, IndexError, TypeError):
            continue
        if value is not None:
            return as_text(value)
    path = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in answer.path)
    raise AnswerMissing(f"no JSON in the output has a value at `{path}`")


def _after(answer: AnswerPlan, text: str) -> str:
    _, found, rest = text.rpartition(answer.text)
    if not found:
        raise AnswerMissing(f"the output does not contain `{answer.text}`")
    return rest


def _match(answer: AnswerPlan, text: str) -> str:
    last = None
    for last in re.finditer(answer.text, text):  # noqa: B007
        pass
    found = last and last[last.re.groups]
    if found is None:
        raise AnswerMissing(f"nothing in the output matches `{answer.text}`")
    return str(found)


_READERS: Mapping[str, Callable[[AnswerPlan, str], str]] = {
    "stdout": lambda answer, text: text,
    "json": _json,
    "after": _after,
    "match": _match,
}


def _read_file(folder: Path, name: str) -> bytes:
    path = folder / name
    try:
        if not path.resolve().is_relative_to(folder.resolve()) or not path.is_file():
            raise AnswerMissing(f"the command wrote no file `{name}` into its working folder")
        stat = path.stat()
        if stat.st_mtime_ns == 0:
            raise AnswerMissing(f"the command did not write the file `{name}`; it is from an earlier call")
        if stat.st_size > MOST_OUTPUT:
            raise AnswerMissing(f"the file `{name}` is too large: {stat.st_size:,} bytes")
        return path.read_bytes()
    except OSError as problem:
        raise AnswerMissing(f"the file `{name}` cannot be read: {problem.strerror}") from None


# ---- the backend ----


def _connect(model: ModelPlan, environ: Mapping[str, str], root: Path) -> tuple[Endpoint, Transport] | None:
    if model.exec is None and model.provider != COMMANDS:
        return None
    transport = CommandTransport(model, environ, root)
    return transport.endpoint, transport


COMMAND = Backend("command", _connect, users=True)

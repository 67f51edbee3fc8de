"""Codes SK6xx: models, and what a command or a function of the user answers for."""

from __future__ import annotations

from skillc.diagnostics.codes.code import Code, Phase
from skillc.diagnostics.codes.samples import program, trivia

_TARGET = 'model target    = "rulebook/v1"'
_OPTIMIZER = 'model optimizer = "rulebook/v1"'


_DECLARED = (
    Code(
        601,
        "a model without a provider",
        "A model is named `provider/name`, as litellm reads it: `openai/gpt-5.5-mini`, `hosted_vllm/Qwen/Qwen3.5-4B`. "
        "`rulebook/v1` is the small model without weights that ships with skillc.",
        program().replace(_TARGET, 'model target = "gpt-5.5"'),
        program().replace(_TARGET, 'model target = "openai/gpt-5.5"'),
    ),
    Code(
        602,
        "a key in the program",
        'Programs are shared and kept in git, so a key never stands in one. `key = env("NAME")` reads it from the '
        "environment when it is needed.",
        program().replace(_TARGET, 'model target = "openai/gpt-5.5" { key = "sk-123" }'),
        program().replace(_TARGET, 'model target = "openai/gpt-5.5" { key = env("OPENAI_API_KEY") }'),
    ),
    Code(
        603,
        "declarations that refer to each other",
        "`model optimizer = target` reuses a model, `budget = lab.nightly` a budget. Along such references there "
        "must be a value at last.",
        program().replace(_TARGET, "model target = optimizer").replace(_OPTIMIZER, "model optimizer = target"),
        program().replace(_OPTIMIZER, "model optimizer = target"),
    ),
    Code(
        604,
        "a model that nothing asks",
        "A note: besides `target` and `optimizer` a model is there to judge, and no metric names this one. Judges "
        "come with skillc 0.5.",
        program('model referee = "rulebook/v1"'),
        program(),
    ),
)


def _own(number: int, title: str, explanation: str, bad: str, good: str, *, found_by: Phase = "check") -> Code:
    files = {"trivia.jsonl": trivia(100)} if found_by != "check" else {}
    return Code(number, title, explanation, bad, good, files, found_by=found_by)


def _with(model: str) -> str:
    return program().replace(_TARGET, f"model target = {model}")


_OWN = (
    _own(
        621,
        "a command that can't be run as it is written",
        "`exec` is a program and its arguments, split into words as a POSIX shell would; no shell reads it. In braces "
        "stand the places that are filled at each call, each within one word, so that no text of a prompt becomes "
        "another argument: `{prompt}` (the whole conversation as one text), `{system}` and `{user}` (its two parts), "
        "`{messages}` (the path of a JSON file with the messages in the chat format), `{model}` (the name behind "
        "`exec/`) and `{here}` (the program's folder). Braces that are meant as they are stand twice: `{{name}}`.\n\n"
        "A command without a place for the conversation reads it on its standard input; one with `{system}` alone "
        "reads the rest there. Otherwise its standard input is empty. It runs in an empty folder of its own, unless "
        "`folder` names one, and is given the variables `PATH`, `HOME`, those of the language and the time zone, the "
        'model\'s `key`, and what `environment = [env("NAME")]` names.',
        _with('"exec/tool" { exec = "tool {promt}" }'),
        _with('"exec/tool" { exec = "tool {prompt}" }'),
    ),
    _own(
        622,
        "an answer that can't be found so",
        "`answer` says where the answer stands. `stdout` is all that the command prints, without the blanks around it. "
        '`json(".path[0].to")` is the text at a path of the JSON that it prints, or of the last of its lines that '
        'has one there. `after("marker")` is what follows the last such marker, `match("expression")` the group of the '
        'last match of a regular expression, or the match itself where it has no group. `file("last.txt")` is a file '
        "that the command writes into its working folder; where all calls share a folder, only one may run at a "
        "time.\n\nAn answer that is not there is a failure of the call, never a score.",
        _with('"exec/tool" { exec = "tool {prompt}" { answer = json("result") } }'),
        _with('"exec/tool" { exec = "tool {prompt}" { answer = json(".result") } }'),
    ),
    _own(
        623,
        "settings of a model that don't go together",
        'A model is answered by a provider that litellm knows, by a command, `"exec/name"` with `exec = "..."`, or by '
        'a function of your own, `"mine/name"` with `backend = python("module:function")`. A command is sent nothing '
        "but what stands in it, so parameters such as `temperature` belong into the command.",
        _with('"exec/tool" { exec = "tool {prompt}"; temperature = 0 }'),
        _with('"exec/tool" { exec = "tool --temperature 0 {prompt}" }'),
    ),
    _own(
        624,
        "a working folder that is not there",
        "`folder` names the folder in which a command runs, from the program's folder onwards. It is not made, since "
        "an empty one is rarely what is meant: without the setting each call has an empty folder of its own.",
        _with('"exec/tool" { exec = "tool {prompt}" { folder = "workshop" } }'),
        _with('"exec/tool" { exec = "tool {prompt}" }'),
        found_by="compile",
    ),
)

CODES: tuple[Code, ...] = (*_DECLARED, *_OWN)

"""The command of a model: words as a shell would split them, with places that are filled at each call.

A place always lies inside one word, so that no text of a prompt becomes another argument.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator

PLACES = {
    "prompt": "the whole conversation as one text",
    "system": "what the system messages say",
    "user": "the conversation without the system messages",
    "messages": "the path of a JSON file with the messages in the chat format",
    "model": "the model's name behind `exec/`",
    "here": "the folder of the program",
}
"""What may stand in braces. A command with none of the first four reads the prompt on its standard input."""

_PLACE = re.compile(r"\{\{(\w+)\}\}|\{([A-Za-z_]\w*)\}")


def words_of(command: str) -> tuple[str, ...]:
    """The words of a command, by the rules of a POSIX shell; no shell reads it.

    Raises:
        ValueError: a quote is not closed.

    >>> words_of("tool --json 'two words' --prompt={prompt}")
    ('tool', '--json', 'two words', '--prompt={prompt}')
    """
    return tuple(shlex.split(command))


def places_in(word: str) -> Iterator[str]:
    """The names in braces; `{{name}}` stands for itself.

    >>> list(places_in("{prompt} {{prompt}} {a: 1} {nope}"))
    ['prompt', 'nope']
    """
    return (match[2] for match in _PLACE.finditer(word) if match[2])


def fill(word: str, value: Callable[[str], str]) -> str:
    """The word with a value at each place. What stands in a value is never read again.

    >>> fill("--in={prompt}{{prompt}}", lambda name: "{model}")
    '--in={model}{prompt}'
    """
    return _PLACE.sub(lambda match: value(match[2]) if match[2] else f"{{{match[1]}}}", word)


def path_of(text: str) -> tuple[str | int, ...] | None:
    """The steps of a path into JSON, None where it is none.

    >>> path_of(".choices[0].message.content"), path_of(".a-b[-1]"), path_of("x")
    (('choices', 0, 'message', 'content'), ('a-b', -1), None)
    """
    if not _PATH.fullmatch(text):
        return None
    return tuple(int(index) if index else name for name, index in _STEP.findall(text))


_STEP = re.compile(r"\.([^.\[\]\s]+)|\[(-?\d{1,6})\]")
_PATH = re.compile(rf"(?:{_STEP.pattern})+")

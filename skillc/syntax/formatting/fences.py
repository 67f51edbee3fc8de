'''Texts in `"""` fences, indented anew without a change of what they say.'''

from __future__ import annotations

from skillc.syntax.texts import dedented

FENCE = '"""'
STEP = 2
"""Columns of one level of indentation."""


def indented(raw: str, indent: int) -> list[str]:
    r'''The lines of a text, fences included, for a line of that indentation.

    A text that its author began and closed on one line stays as it is; all others have both fences on lines of their
    own, the closing one as far indented as the line of the opening one, and what is between one step further.

    >>> indented('"""\n      You route.\n    """', 2)
    ['"""', '    You route.', '  """']
    '''
    if "\n" not in raw:
        return [raw]
    lines = dedented(raw)
    margin = " " * (indent + STEP)
    body = [margin + line if line else "" for line in lines]
    made = _whole([FENCE, *(body if lines != [""] else ()), " " * indent + FENCE])
    # A text whose first line stands at the fence may hold an indentation that no other layout can say.
    return made if dedented("\n".join(made)) == lines else _whole(raw.replace("\r\n", "\n").split("\n"))


def _whole(lines: list[str]) -> list[str]:
    """The lines, so that a carriage return at the end of one is not read as part of the line end."""
    return [line + "\r" if line.endswith("\r") else line for line in lines]

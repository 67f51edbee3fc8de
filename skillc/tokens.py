"""The token counter of `language 1`: one fixed rule for limits, gates and hashes, never a model's own tokenizer."""

from __future__ import annotations

import re

# Tokens around the content of a section and of a prompt, as measured on the compiled modules and on skillc's prompts.
A_HEADING = 8
LEAST_AROUND_ROLLOUT = 150
LEAST_AROUND_QUESTION = 1_000

_PIECE = re.compile(r"[^\W\d_]+|\d+|[^\w\s]|_")
_LETTERS_A_TOKEN = 7
_DIGITS_A_TOKEN = 3
# The tokens of a text that is ASCII alone, which most are. By ASCII rules four separators are no white space.
_TOKEN = re.compile(rf"[a-zA-Z]{{1,{_LETTERS_A_TOKEN}}}|[0-9]{{1,{_DIGITS_A_TOKEN}}}|[^\w\s\x1c-\x1f]|_", re.ASCII)


def count_tokens(text: str) -> int:
    """Count the tokens of a text by the rule of `language 1`.

    A run of letters counts one token for each seven letters begun, a run of digits one for each three begun, any other
    visible character one; a letter outside the alphabetic scripts of Europe counts one by itself. White space is free.
    The rule stays within some 15 % of the common byte-pair tokenizers on English prose and needs no vocabulary.
    """
    if text.isascii():
        return len(_TOKEN.findall(text))
    total = 0
    for piece in _PIECE.findall(text):
        if piece.isdigit():
            total += -(-len(piece) // _DIGITS_A_TOKEN)
        elif ord(max(piece)) < 0x2000:
            total += -(-len(piece) // _LETTERS_A_TOKEN)
        else:
            total += len(piece)
    return total


def split_tokens(text: str) -> list[str]:
    """Return the tokens themselves, in order; as many as `count_tokens` counts."""
    found: list[str] = []
    for piece in _PIECE.findall(text):
        letters = _LETTERS_A_TOKEN if ord(max(piece)) < 0x2000 else 1
        size = _DIGITS_A_TOKEN if piece.isdigit() else letters
        found += [piece[i : i + size] for i in range(0, len(piece), size)]
    return found

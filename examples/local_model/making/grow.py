"""Begins the second stage of the training: the first stage's network with tokens for words with capitals.

A token with a capital has the code of the token in lower case but for
two of its places, which say whether its first letter and the others are capitals.
"""

from __future__ import annotations

from dataclasses import replace

import torch

from . import tokenizer
from .network import CODE, Network

FIRST_LETTER, OTHER_LETTERS = 1, 2  # places of a code that say what is a capital
ADDED_SEED = 6


def grown(first: Network) -> Network:
    """Return the network that the second stage trains."""
    before, after = tokenizer.build(marks=True), tokenizer.build()
    made = Network(replace(first.shape, vocabulary=after.get_vocab_size()), seed=ADDED_SEED)
    with torch.no_grad():
        made.layers.load_state_dict(first.layers.state_dict())
        made.norm.copy_(first.norm)
        known, twins = before.get_vocab(), tokenizer.twins()
        moved = set(tokenizer.structural(after))
        for token, number in after.get_vocab().items():
            code = made.embed_tokens[number]
            origin = token if token in known else twins.get(token)
            if origin is not None:
                code.copy_(first.embed_tokens[known[origin]])
            if number not in moved or token in twins:
                body = token.removeprefix(tokenizer.JOIN)
                code[FIRST_LETTER] = 2 * CODE if body[:1].isupper() else -2 * CODE
                code[OTHER_LETTERS] = 2 * CODE if len(body) > 1 and body[1:].isupper() else -2 * CODE
            if origin is None:
                code[0] = 2 * CODE if token.startswith(tokenizer.JOIN) else -2 * CODE
    return made

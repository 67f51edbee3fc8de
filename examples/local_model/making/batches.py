"""Documents as arrays of tokens, with the places that the losses ask for."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
from numpy.typing import NDArray
from tokenizers import Encoding, Tokenizer

from . import tokenizer
from .asking import Query
from .documents import Document, document
from .sources import Level, training_source

Array = NDArray[np.int64]
IGNORED = -100
# Lists of places, and how many numbers each place has.
WIDTHS = {"triggers": 3, "labels": 3, "bound": 3, "matches": 6, "found": 2, "misses": 3, "decided": 4, "copied": 3}
Lists = dict[str, list[tuple[int, ...]]]


@dataclass(frozen=True, slots=True)
class Batch:
    """B documents with Q inputs each; places are (document, token) or (document, input, token).

    Attributes:
        skill, lengths: tokens [B, S], and how many of them are no padding.
        inputs, targets: tokens [B, Q, L], and what is to follow each, or `IGNORED`.
        first: [B, Q] the token before the label.
        triggers, labels: [N, 3] document, token and rule of the rules' triggers and labels.
        bound: [N, 3] document, a trigger or the label of a rule, and the first token of what comes first of these:
            it is known as soon as it is read, and two rules seldom share it.
        matches: [N, 6] document, input, token of a trigger in an input; token of that trigger in the skill; its rule's
            label's first token, or -1 where the rule says more than `any`; the rule.
        found: [N, 2] number of a match, and a token of the skill where its rule's label stands; where labels come
            first, that of any other such rule with the same label will do.
        misses: [N, 3] document, input and token of words of inputs that are no triggers.
        decided: [N, 4] document, input, and a token of the deciding rule's triggers in the input (1), or of the
            default's label in the skill (0).
        rules_start: [B] where the skill's own text begins.
        copied: [N, 3] document, input and token of a reply that is followed by more of a name or a label.
    """

    skill: Array
    lengths: Array
    inputs: Array
    targets: Array
    first: Array
    triggers: Array
    labels: Array
    bound: Array
    matches: Array
    found: Array
    misses: Array
    decided: Array
    rules_start: Array
    copied: Array


@cache
def _tokenizer(marks: bool) -> Tokenizer:
    return tokenizer.build(marks=marks)


def batch(seed: str, level: Level, tokens: int, room: int, length: int, *, marks: bool = False) -> Batch:
    """A batch of about so many tokens, padding included; the same for the same seed.

    Args:
        seed: of its documents.
        level: how hard they are.
        tokens: of all skills and inputs.
        room: tokens that a skill is padded to; a shorter one has at least half as many, a longer one is left out.
        length: tokens that an input and its reply are padded to; a document with a longer one is left out.
        marks: capitals are written as in the first stage.
    """
    words = _tokenizer(marks)
    chance = random.Random(seed)
    source = training_source(level.phrasings, level.pieces)
    found: list[tuple[Document, Encoding, list[Encoding]]] = []
    while len(found) < max(1, tokens // (room + level.queries * length)):
        # No batch is bare, so that each loss has something to look at.
        made = document(chance, level if found else replace(level, bare=0), source)
        skill = words.encode(f"{tokenizer.SYSTEM}{made.system}{tokenizer.END}")
        if len(skill.ids) <= room and (len(skill.ids) >= room // 2 or not made.rules):
            asked = words.encode_batch([_whole(query) for query in made.queries])
            if max(len(query.ids) for query in asked) <= length:
                found.append((made, skill, asked))
    return arrays(found, room, length, words)


def _whole(query: Query) -> str:
    reply = f"{query.before}{query.label}{query.after}"
    return f"{tokenizer.USER}{query.user}{tokenizer.END}{tokenizer.ASSISTANT}{reply}{tokenizer.END}"


def last_token(encoding: Encoding, end: int, shift: int) -> int:
    """The token in which the text ends at a place; `shift` is the length of what the encoding has before the text."""
    found = encoding.char_to_token(end + shift - 1)
    assert found is not None
    return int(found)


def first_token(encoding: Encoding, start: int, shift: int) -> int:
    """The token that holds the text's letter at a place, the mark of a capital left out."""
    found = encoding.char_to_token(start + shift)
    assert found is not None
    return int(found)


def arrays(found: list[tuple[Document, Encoding, list[Encoding]]], room: int, length: int, words: Tokenizer) -> Batch:
    """Documents and their tokens as one batch, skills padded to `room` tokens and inputs to `length`."""
    queries = len(found[0][2])
    shape = (len(found), queries, length)
    skill = np.zeros((len(found), room), np.int64)
    inputs, targets = np.zeros(shape, np.int64), np.full(shape, IGNORED, np.int64)
    first = np.zeros(shape[:2], np.int64)
    lists: Lists = {name: [] for name in WIDTHS}
    rules_start = []
    for b, (made, whole, asked) in enumerate(found):
        skill[b, : len(whole.ids)] = whole.ids
        places = _places(made, whole)
        rules_start.append(min(places.values(), default=room))
        _list_rules(lists, b, made, places, whole)
        for q, (query, tokens) in enumerate(zip(made.queries, asked, strict=True)):
            ids = tokens.ids
            inputs[b, q, : len(ids)] = ids
            reply = ids.index(words.token_to_id(tokenizer.ASSISTANT))
            targets[b, q, reply : len(ids) - 1] = ids[reply + 1 :]
            first[b, q] = _before_label(query, tokens, words)
            lists["copied"] += [(b, q, token) for token in range(reply, len(ids) - 1) if token != first[b, q]]
            _list_hits(lists, (b, q), made, query, tokens, places, whole.ids)
            if query.rule is not None and made.rules[query.rule].kind == "default":
                lists["decided"].append((b, q, places[query.rule, 0], 0))
    return Batch(
        skill,
        np.array([len(whole.ids) for _, whole, _ in found]),
        inputs,
        targets,
        first,
        rules_start=np.array(rules_start),
        **{name: np.array(rows, np.int64).reshape(-1, WIDTHS[name]) for name, rows in lists.items()},
    )


def _places(made: Document, whole: Encoding) -> dict[tuple[int, int], int]:
    """The token of each rule's label, its first, and of its triggers, their last."""
    shift = len(tokenizer.SYSTEM)
    return {
        key: last_token(whole, end, shift) if key[1] else first_token(whole, start, shift)
        for key, (start, end) in made.places.items()
    }


def _list_rules(lists: Lists, b: int, made: Document, places: dict[tuple[int, int], int], whole: Encoding) -> None:
    """Notes where the labels and triggers of a document's rules are."""
    for number, rule in enumerate(made.rules):
        label = places[number, 0]
        lists["labels"].append((b, label, number))
        triggers = [places[number, slot] for slot in range(1, len(rule.triggers) + 1)]
        lists["triggers"] += [(b, token, number) for token in triggers]
        start = min(made.places[number, slot][0] for slot in range(len(triggers) + 1))
        first = first_token(whole, start, len(tokenizer.SYSTEM))
        lists["bound"] += [(b, token, first) for token in (label, *triggers) if triggers]


def _alike(made: Document, places: dict[tuple[int, int], int], rule: int) -> list[int]:
    """The position of a rule's label; if labels come first, those of other such rules look the same to a reader."""

    def early(number: int) -> bool:
        return bool(made.rules[number].triggers) and places[number, 0] < places[number, 1]

    same = (n for n, other in enumerate(made.rules) if other.label == made.rules[rule].label and early(n))
    return [places[n, 0] for n in same] if early(rule) else [places[rule, 0]]


def _before_label(query: Query, tokens: Encoding, words: Tokenizer) -> int:
    """The token after which the label comes."""
    shift = len(tokenizer.USER + tokenizer.END + tokenizer.ASSISTANT)
    start = first_token(tokens, len(query.user) + len(query.before), shift)
    # A capital's mark comes before its letter, and is what the label begins with.
    marked = tokens.ids[start - 1] == words.token_to_id(tokenizer.MARK)
    return start - 2 if marked else start - 1


def _list_hits(
    lists: Lists,
    at: tuple[int, int],
    made: Document,
    query: Query,
    tokens: Encoding,
    places: dict[tuple[int, int], int],
    skill: list[int],
) -> None:
    """Notes which words of an input are triggers, which of these decide, and which words are no triggers."""
    shift = len(tokenizer.USER)
    covered: set[int] = set()
    for begin, end, rule, slot in query.hits:
        token = last_token(tokens, end, shift)
        covered |= set(range(first_token(tokens, begin, shift), token + 1))
        plain = made.rules[rule].kind == "any"
        if plain:
            lists["found"] += [(len(lists["matches"]), place) for place in _alike(made, places, rule)]
        lists["matches"].append((*at, token, places[rule, slot], skill[places[rule, 0]] if plain else -1, rule))
        if rule == query.rule and plain:
            lists["decided"].append((*at, token, 1))
    low, high = first_token(tokens, query.text[0], shift), last_token(tokens, query.text[1], shift)
    lists["misses"] += [(*at, token) for token in range(low, high + 1) if token not in covered]

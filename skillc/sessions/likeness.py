"""Clusters of sessions whose requests are nearly the same: pasted again, or with another number, path or date.

MinHash over word shingles, those of a template left out, with locality-sensitive hashing for the
candidates and union-find for the clusters: Broder, *On the resemblance and containment of documents* (1997); Leskovec,
Rajaraman and Ullman, *Mining of Massive Datasets*, chapter 3. Memory for a session is bounded: at most 500 shingles, a
signature and its keys.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING
from zlib import crc32

import numpy as np

from skillc.dataclass import dataclass
from skillc.errors import SkillcError

if TYPE_CHECKING:
    from datasketch import MinHash, MinHashLSH
    from numpy.typing import NDArray

THRESHOLD = 0.6
"""The Jaccard similarity of shingles from which two requests are the same."""
_HASHES = 128
_BANDS, _ROWS = 32, 4
_SHINGLE = 3
_MOST_WORDS, _MOST_CHARACTERS = 500, 5_000
# Shingles that more than this share of the requests have are a template's.
_TEMPLATE, _MANY = 0.2, 16
# A session this like one that is compared already finds no others, and a cluster needs no more members to be found.
_SAME, _MEMBERS = 0.95, 32

_MONTHS = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sep(?:tember)?|oct(?:ober)?|"
    r"nov(?:ember)?|dec(?:ember)?)"
)
_ENDINGS = "py|ts|js|tsx|jsx|rs|go|java|c|h|cpp|md|txt|json|jsonl|yaml|yml|toml|csv|sql|sh|html|css|log|pdf|png"
# What changes when a request is pasted again, the longest form first, each with a character that it cannot be without.
_VARIABLE: tuple[tuple[str, re.Pattern[str], str], ...] = (
    ("[", re.compile(r"\[[a-z ]+ \d+\]"), "xremovedx"),
    (":", re.compile(r"\bhttps?://\S+"), " xaddressx "),
    ("\\", re.compile(r"(?:(?<=[\s\"'`(])|^)[a-z]:\\[^\s\"'`),;]+"), " xpathx "),
    ("/", re.compile(r"(?:(?<=[\s\"'`(])|^)(?:~?/|\.{1,2}/)[^\s\"'`),;]+"), " xpathx "),
    ("/", re.compile(r"\b[\w.-]+(?:/[\w.-]+)+"), " xpathx "),
    (".", re.compile(rf"\b[\w-]+\.(?:{_ENDINGS})\b"), " xpathx "),
    ("", re.compile(r"\b(?=[a-f]*\d)[0-9a-f]{7,64}\b"), " xnumberx "),
    ("", re.compile(rf"\b{_MONTHS}\b(?=\.? *\d)|(?<=\d ){_MONTHS}\b"), " xnumberx "),
    ("", re.compile(r"[$€£#]?\d(?:[\d.,:/-]*\d)?(?:st|nd|rd|th)?"), " xnumberx "),
)
_DIGIT = re.compile(r"\d")
# An odd number with many bits, from SplitMix64.
_MIX = np.uint64(0xBF58476D1CE4E5B9)
_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class Clusters:
    """Which sessions have nearly the same request.

    Attributes:
        of: the cluster of each session by its key: the key of the cluster's first session, so that a session that is
            added later changes no name.
    """

    of: Mapping[str, str]

    @property
    def sizes(self) -> Counter[str]:
        """The number of sessions of each cluster."""
        return Counter(self.of.values())


def cluster(requests: Iterable[tuple[str, str]]) -> Clusters:
    """Join sessions by the likeness of their requests.

    Args:
        requests: key and request of each session, the oldest first.

    Raises:
        SkillcError: the extra `sessions` is not installed.
    """
    empty, lsh = _index()
    joined = _Sets()
    by_text: dict[bytes, str] = {}
    parts: dict[str, NDArray[np.uint64]] = {}
    for key, request in requests:
        joined.add(key)
        words = normal_words(request)
        same = by_text.setdefault(_digest(" ".join(words), 12), key)
        if same != key:
            joined.join(same, key)
        elif words:
            parts[key] = shingles(words)
    shared = _shared(parts)
    signatures: dict[str, MinHash] = {}
    members = Counter[str]()
    for key, whole in parts.items():
        own = np.setdiff1d(whole, shared, assume_unique=True)
        signature = empty.copy()
        signature.update_batch((own if own.size else whole).astype(np.uint32).tolist())
        near = 0.0
        for other in lsh.query(signature):
            likeness = signature.jaccard(signatures[other])
            if likeness >= THRESHOLD:
                near = max(near, likeness)
                joined.join(other, key)
        if near < _SAME and members[root := joined.find(key)] < _MEMBERS:
            lsh.insert(key, signature, check_duplication=False)
            signatures[key] = signature
            members[root] += 1
    return Clusters(joined.all())


def _shared(parts: Mapping[str, NDArray[np.uint64]]) -> NDArray[np.uint64]:
    """Return the shingles that many requests have: the words of a template, which make no two requests the same."""
    if len(parts) < _MANY:
        return np.array([], np.uint64)
    every, counts = np.unique(np.concatenate(list(parts.values())), return_counts=True)
    return every[counts > max(_MANY // 2, len(parts) * _TEMPLATE)]


def normal_words(request: str) -> list[str]:
    """Return the words of a request in lower case, with one word in place of each number, date, path and address."""
    text = request[:_MOST_CHARACTERS].casefold()
    for needs, pattern, word in _VARIABLE:
        if needs in text if needs else _DIGIT.search(text):
            text = pattern.sub(word, text)
    words = _WORD.findall(text)[:_MOST_WORDS]
    # `12 May 2026` and `2026-05-12` are one value each.
    return [word for i, word in enumerate(words) if not (word == "xnumberx" and i and words[i - 1] == word)]


def shingles(words: list[str]) -> NDArray[np.uint64]:
    """Return the digests of the distinct sequences of three words, sorted; of a shorter text, of its words together."""
    each = np.array([crc32(word.encode("utf-8", "replace")) for word in words], np.uint64)
    size = min(_SHINGLE, len(each))
    found = np.zeros(len(each) - size + 1, np.uint64)
    for i in range(size):
        found = (found ^ each[i : i + len(found)]) * _MIX
        found ^= found >> np.uint64(29)
    return np.unique(found)


def _digest(text: str, size: int) -> bytes:
    return hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=size).digest()


def _index() -> tuple[MinHash, MinHashLSH]:
    try:
        from datasketch import MinHash, MinHashLSH
    except ImportError as problem:
        raise SkillcError(
            "comparing requests of sessions needs datasketch", hint='pip install "skillc[sessions]"'
        ) from problem
    # What it is given are digests already.
    return MinHash(num_perm=_HASHES, seed=1, hashfunc=int), MinHashLSH(num_perm=_HASHES, params=(_BANDS, _ROWS))


class _Sets:
    """Disjoint sets of keys, each known by the key that was added first."""

    def __init__(self) -> None:
        self._parent: dict[str, str] = {}
        self._place: dict[str, int] = {}

    def add(self, key: str) -> None:
        self._parent.setdefault(key, key)
        self._place.setdefault(key, len(self._place))

    def find(self, key: str) -> str:
        root = key
        while self._parent[root] != root:
            root = self._parent[root]
        while self._parent[key] != root:
            self._parent[key], key = root, self._parent[key]
        return root

    def join(self, first: str, second: str) -> None:
        one, two = sorted((self.find(first), self.find(second)), key=self._place.__getitem__)
        self._parent[two] = one

    def all(self) -> dict[str, str]:
        """Return the first key of each key's set."""
        return {key: self.find(key) for key in self._parent}

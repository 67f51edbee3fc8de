"""Cluster sessions whose requests are nearly the same: pasted again, or with another number, path or date.

MinHash over word shingles, those of a template left out, with locality-sensitive hashing for the
candidates and union-find for the clusters: Broder, *On the resemblance and containment of documents* (1997); Leskovec,
Rajaraman and Ullman, *Mining of Massive Datasets*, chapter 3. Shingles, signatures and keys of bands are in temporary
files, and one band is in memory at a time, so a session takes its key and about 100 bytes.
"""

from __future__ import annotations

import hashlib
import re
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from tempfile import TemporaryFile
from typing import IO, TYPE_CHECKING
from zlib import crc32

import numpy as np

from skillc.dataclass import dataclass
from skillc.errors import SkillcError

if TYPE_CHECKING:
    from datasketch import MinHash
    from numpy.typing import NDArray

THRESHOLD = 0.6
"""The Jaccard similarity of shingles from which two requests count as the same."""
_HASHES = 128
_BANDS, _ROWS = 32, 4
_SHINGLE = 3
_MOST_WORDS, _MOST_CHARACTERS = 500, 5_000
# Shingles in more than this share of the requests belong to a template.
_TEMPLATE, _MANY = 0.2, 16
# Compare no later sessions with one that nearly equals an earlier one, nor with more than so many of a cluster.
_SAME, _MEMBERS = 0.95, 32
# The most requests of a bucket that others are compared with, counters of shingles, and rows of bands read at once.
_COMPARED, _COUNTERS, _ROWS_READ = 1_000, 2**20, 4_096

_MONTHS = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sep(?:tember)?|oct(?:ober)?|"
    r"nov(?:ember)?|dec(?:ember)?)"
)
_ENDINGS = "py|ts|js|tsx|jsx|rs|go|java|c|h|cpp|md|txt|json|jsonl|yaml|yml|toml|csv|sql|sh|html|css|log|pdf|png"
# Parts that change when a request is pasted again, the longest form first, each with a character that it must contain.
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
_NONE = np.array([], np.uint64)


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
        SkillcError: the extra `sessions` is not installed, or there is no room for temporary files.
    """
    empty = _empty_signature()
    keys: dict[str, int] = {}
    digests = array("Q")
    try:
        with TemporaryFile() as parts, TemporaryFile() as signatures, TemporaryFile() as bands:
            for key, request in requests:
                if key in keys:
                    continue
                keys[key] = len(keys)
                words = normal_words(request)
                digests.frombytes(_digest(" ".join(words), 16))
                found = shingles(words) if words else _NONE
                parts.write(np.uint32(len(found)).tobytes() + found.tobytes())
            first = _first_of_each(digests)
            joined = _Sets(len(keys))
            for number, other in enumerate(first):
                if other != number:
                    joined.join(int(other), number)
            shared = _shared(parts, first)
            own = array("L")
            for number, whole in _read(parts, first):
                left = whole[~np.isin(whole, shared)] if shared.size else whole
                signature = empty.copy()
                signature.update_batch((left if left.size else whole).astype(np.uint32).tolist())
                values = signature.hashvalues.astype(np.uint32)
                signatures.write(values.tobytes())
                bands.write(_keys_of_bands(values).tobytes())
                own.append(number)
            _join_alike(np.array(own, np.int64), signatures, bands, joined)
    except OSError as problem:
        raise SkillcError(f"requests cannot be compared: {str(problem).lower()}") from problem
    names = list(keys)
    return Clusters({key: names[joined.find(number)] for key, number in keys.items()})


def _first_of_each(digests: array[int]) -> NDArray[np.int64]:
    """Return for each request the number of the first one with the same words."""
    pairs = np.frombuffer(digests, np.uint64).reshape(-1, 2)
    if not len(pairs):
        return np.array([], np.int64)
    _, first, inverse = np.unique(pairs, axis=0, return_index=True, return_inverse=True)
    return np.asarray(first, np.int64)[inverse.reshape(-1)]


def _read(parts: IO[bytes], first: NDArray[np.int64]) -> Iterator[tuple[int, NDArray[np.uint64]]]:
    """Yield number and shingles of the requests that are the first with their words and have any."""
    parts.seek(0)
    for number, other in enumerate(first):
        size = int(np.frombuffer(parts.read(4), np.uint32)[0])
        content = parts.read(8 * size)
        if size and other == number:
            yield number, np.frombuffer(content, np.uint64)


def _shared(parts: IO[bytes], first: NDArray[np.int64]) -> NDArray[np.uint64]:
    """Return the shingles that many requests have: the words of a template, which make no two requests the same."""
    counts = np.zeros(_COUNTERS, np.uint32)
    total = 0
    for _, found in _read(parts, first):
        counts[found % _COUNTERS] += 1
        total += 1
    if total < _MANY or not (often := np.flatnonzero(counts > max(_MANY // 2, total * _TEMPLATE))).size:
        return _NONE
    # Several shingles share a counter, so those of a frequent one are counted by themselves.
    exact = Counter[int]()
    for _, found in _read(parts, first):
        exact.update(found[np.isin(found % _COUNTERS, often)].tolist())
    return np.array(
        sorted(one for one, count in exact.items() if count > max(_MANY // 2, total * _TEMPLATE)), np.uint64
    )


def _keys_of_bands(values: NDArray[np.uint32]) -> NDArray[np.uint64]:
    """Return one number for the hashes of each band, so that equal bands have equal numbers."""
    found = np.zeros(_BANDS, np.uint64)
    for column in values.reshape(_BANDS, _ROWS).T:
        found = (found ^ column) * _MIX
        found ^= found >> np.uint64(29)
    return found


def _join_alike(own: NDArray[np.int64], signatures: IO[bytes], bands: IO[bytes], joined: _Sets) -> None:
    """Compare the requests that share a band, and join those that are alike; `own` are those with a signature."""
    for band in range(_BANDS):
        keys = _column(bands, band, len(own))
        order = np.argsort(keys, kind="stable")
        ends = np.flatnonzero(np.diff(keys[order])) + 1
        for start, end in zip((0, *ends.tolist()), (*ends.tolist(), len(order)), strict=True):
            if end - start > 1:
                _join_bucket(order[start:end], own, signatures, joined)


def _column(bands: IO[bytes], band: int, rows: int) -> NDArray[np.uint64]:
    """Return the keys of one band, read a part of the file at a time."""
    found = np.empty(rows, np.uint64)
    bands.seek(0)
    for start in range(0, rows, _ROWS_READ):
        count = min(_ROWS_READ, rows - start)
        part = np.frombuffer(bands.read(8 * _BANDS * count), np.uint64).reshape(count, _BANDS)
        found[start : start + count] = part[:, band]
    return found


def _join_bucket(bucket: NDArray[np.int64], own: NDArray[np.int64], signatures: IO[bytes], joined: _Sets) -> None:
    """Join the requests of a bucket that are alike, each compared with a few of every cluster that is in it already."""
    numbers = own[bucket].tolist()
    if len({joined.find(number) for number in numbers}) == 1:
        return
    seen: list[int] = []
    values = np.empty((min(len(numbers), _COMPARED), _HASHES), np.uint32)
    members = Counter[int]()
    for place, number in zip(bucket.tolist(), numbers, strict=True):
        signature = _signature(signatures, place)
        alike = (values[: len(seen)] == signature).mean(axis=1)
        for other in np.flatnonzero(alike >= THRESHOLD).tolist():
            joined.join(seen[other], number)
        near = float(alike.max(initial=0.0))
        root = joined.find(number)
        if near < _SAME and members[root] < _MEMBERS and len(seen) < _COMPARED:
            values[len(seen)] = signature
            seen.append(number)
            members[root] += 1


def _signature(signatures: IO[bytes], place: int) -> NDArray[np.uint32]:
    signatures.seek(4 * _HASHES * place)
    return np.frombuffer(signatures.read(4 * _HASHES), np.uint32)


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


def _empty_signature() -> MinHash:
    try:
        from datasketch import MinHash
    except ImportError as problem:
        raise SkillcError(
            "comparing requests of sessions needs datasketch", hint='pip install "skillc[sessions]"'
        ) from problem
    # The input is digests already.
    return MinHash(num_perm=_HASHES, seed=1, hashfunc=int)


class _Sets:
    """Disjoint sets of numbers, each known by its smallest one."""

    def __init__(self, size: int) -> None:
        self._parent = array("L", range(size))

    def find(self, number: int) -> int:
        root = number
        while self._parent[root] != root:
            root = self._parent[root]
        while self._parent[number] != root:
            self._parent[number], number = root, self._parent[number]
        return root

    def join(self, first: int, second: int) -> None:
        one, two = sorted((self.find(first), self.find(second)))
        self._parent[two] = one

"""Redact secrets and personal data in sessions before anything is stored.

detect-secrets finds secrets, and Presidio's pattern recognizers find personal data. Equal values of a session get the
same mark, such as `[email 2]`, so that references to them can still be followed. Names of people are not found: that
takes a language model, which Presidio can use but does not contain. Passwords are found only after a keyword, and only
if they are more than a word.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from typing import Any, NamedTuple

from skillc.errors import SkillcError
from skillc.sessions.prefilter import Prefilter
from skillc.sessions.session import Session

MISSING = SkillcError(
    "importing sessions needs detect-secrets and presidio-analyzer, which remove secrets and personal data",
    hint='install them with `pip install "skillc[sessions]"`',
)

_SURE = 0.4
"""Presidio's score from which a match counts: that of a phone number that is valid in its form."""
_PREFIXES = re.compile(r"[@:=]|\d[\d .()-]{6,}\d|[A-Za-z0-9+/_-]{20}|/home/|/Users/|\\Users\\|PRIVATE KEY")
"""A text without a match contains nothing to redact, and is not searched further."""
_PRIVATE_KEY = re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)", re.DOTALL)
_HOME = re.compile(r"(?:/home/|/Users/|\\Users\\)([A-Za-z0-9._-]+)")
_SHARED_HOMES = frozenset({"shared", "public", "runner", "ubuntu", "root", "node", "user", "vscode", "runneradmin"})
_NOT_PERSONAL = re.compile(
    r"(?:git|noreply|no-reply|donotreply)@|@(?:[\w-]+\.)*example\.(?:com|org|net)\Z", re.IGNORECASE
)
_TOKEN = re.compile(r"(?<![A-Za-z0-9+/_=-])[A-Za-z0-9+/_-]{24,}={0,2}")
_ENTROPY = 4.5
"""Bits of a character from which a token of both cases and digits is taken for a secret, as in detect-secrets."""
_KEYWORD = re.compile(r"secret|passw|pwd|token|api.?key|private.?key|credential|auth|key|hmac", re.IGNORECASE)
# Nearly every line of a log begins with a date and a time, which are neither numbers of persons nor addresses.
_DATE = r"\d{4}([-/.])\d{1,2}\1\d{1,2}(?!\d)"
_PHONE = re.compile(rf"(?<!\w)(?<!\d[-./])(?!{_DATE})[+(]?\d(?:[ .()/-]{{0,4}}\d){{6,}}")
_NUMBER = re.compile(rf"(?<!\d)(?!{_DATE})\d(?:[ .()/-]{{0,4}}\d){{8,}}")
_ADDRESS = re.compile(r"\d\.\d{1,3}\.\d|::|[0-9A-Fa-f]:(?:[0-9A-Fa-f]{1,4}:){2}")
_VERSION = re.compile(r"\.\d")
"""Follows a number with four parts that is not an address."""
_API_KEY = re.compile(r"\bsk-[A-Za-z0-9_-]{20,}")
"""Keys of Anthropic, OpenAI and others that use their form, which detect-secrets knows in older forms only."""
_LONGEST_LINE = 4_000


class Found(NamedTuple):
    """A part of a text that must not be kept."""

    start: int
    end: int
    kind: str


class Cleaner:
    """Finds and replaces secrets and personal data; one serves many sessions.

    Raises:
        SkillcError: the libraries are not installed.
    """

    def session(self, session: Session) -> tuple[Session, Counter[str]]:
        """Return the session without secrets and personal data, and how many values of each kind were removed."""
        marks: dict[tuple[str, str], str] = {}
        numbers: Counter[str] = Counter()

        def hide(text: str) -> str:
            return self._replaced(text, marks, numbers)

        return session.redacted(hide), numbers

    def hider(self) -> Callable[[str], str]:
        """Return a function that cleans texts, with the same mark for equal values of all of them."""
        marks: dict[tuple[str, str], str] = {}
        numbers: Counter[str] = Counter()
        return lambda text: self._replaced(text, marks, numbers)

    def text(self, text: str) -> str:
        """Return a text without secrets and personal data."""
        return self.hider()(text)

    def _replaced(self, text: str, marks: dict[tuple[str, str], str], numbers: Counter[str]) -> str:
        if not _PREFIXES.search(text):
            return text
        parts, end = [], 0
        for found in _apart(self.find(text)):
            value = text[found.start : found.end]
            mark = marks.get((found.kind, value))
            if mark is None:
                numbers[found.kind] += 1
                mark = marks[found.kind, value] = f"[{found.kind} {numbers[found.kind]}]"
            parts += [text[end : found.start], mark]
            end = found.end
        return "".join([*parts, text[end:]]) if parts else text

    def find(self, text: str) -> Iterator[Found]:
        """Yield what is found in a text, in any order; parts may overlap."""
        for match in _PRIVATE_KEY.finditer(text):
            yield Found(match.start(), match.end(), "private key")
        for match in _HOME.finditer(text):
            if match[1].lower() not in _SHARED_HOMES:
                yield Found(match.start(1), match.end(1), "user name")
        yield from self._secrets(text)
        yield from self._personal(text)

    def _secrets(self, text: str) -> Iterator[Found]:
        for match in _API_KEY.finditer(text):
            yield Found(match.start(), match.end(), "api key")
        for match in _TOKEN.finditer(text):
            if _is_random(match[0], self._entropy):
                yield Found(match.start(), match.end(), "token")
        lines = _Lines(text, _KEYWORD)
        low = text.lower()
        for kind, pattern, prefilter in self._patterns:
            if not prefilter.may_match(low):
                continue
            if kind in _SLOW:
                yield from lines.found(Found(*_value_of(match), kind) for match in pattern.finditer(lines.text))
            else:
                yield from (Found(*_value_of(match), kind) for match in pattern.finditer(text))
        at = 0
        for line in lines.text.splitlines(keepends=True):
            if len(line) <= _LONGEST_LINE:
                for value in self._keyword_values(line.rstrip("\n")):
                    start = at + line.rfind(value)
                    yield from lines.found([Found(start, start + len(value), "password")])
            at += len(line)

    def _personal(self, text: str) -> Iterator[Found]:
        for hint, recognizers in self._recognizers:
            lines = _Lines(text, hint)
            for kind, recognizer in recognizers if lines.text else ():
                for result in recognizer.analyze(lines.text, recognizer.supported_entities, None) or ():
                    value = lines.text[result.start : result.end]
                    longer = _VERSION.match(lines.text, result.end) is not None
                    if result.score >= _SURE and not longer and _is_personal(kind, value):
                        yield from lines.found([Found(result.start, result.end, kind)])

    # ---- the libraries -----------------------------------------------------------------------------

    @cached_property
    def _patterns(self) -> list[tuple[str, re.Pattern[str], Prefilter]]:
        try:
            from detect_secrets.core.plugins.util import get_mapping_from_secret_type_to_class
            from detect_secrets.plugins.base import RegexBasedDetector
        except ImportError:
            raise MISSING from None
        kinds: dict[str, Any] = get_mapping_from_secret_type_to_class()
        detectors = {kind: kinds[kind] for kind in sorted(kinds) if issubclass(kinds[kind], RegexBasedDetector)}
        # Presidio finds addresses, and private keys are matched as a whole.
        left = {"Public IP (ipv4)", "Private Key"}
        return [
            (_named(kind), pattern, Prefilter(pattern))
            for kind, detector in detectors.items()
            if kind not in left
            for pattern in map(re.compile, detector().denylist)
        ]

    @cached_property
    def _entropy(self) -> Callable[[str], float]:
        from detect_secrets.plugins.high_entropy_strings import Base64HighEntropyString

        measure: Callable[[str], float] = Base64HighEntropyString(_ENTROPY).calculate_shannon_entropy
        return measure

    @cached_property
    def _keyword_values(self) -> Callable[[str], Iterable[str]]:
        from detect_secrets.filters import heuristic
        from detect_secrets.plugins import keyword

        detector = keyword.KeywordDetector()
        assignments = {**keyword.QUOTES_REQUIRED_DENYLIST_REGEX_TO_GROUP, **keyword.CONFIG_DENYLIST_REGEX_TO_GROUP}

        def values(line: str) -> Iterator[str]:
            for value in detector.analyze_string(line, assignments):
                plain = heuristic.is_templated_secret(value) or heuristic.is_prefixed_with_dollar_sign(value)
                if _is_password(value) and not plain:
                    yield value

        return values

    @cached_property
    def _recognizers(self) -> list[tuple[re.Pattern[str], list[tuple[str, Any]]]]:
        try:
            from presidio_analyzer import predefined_recognizers as known
            from tldextract import TLDExtract
        except ImportError:
            raise MISSING from None
        # Without addresses of lists, so that nothing is fetched.
        suffixes = TLDExtract(suffix_list_urls=(), cache_dir=None)

        class Email(known.EmailRecognizer):
            def validate_result(self, pattern_text: str) -> bool:
                return bool(suffixes(pattern_text).suffix)

        numbers = [
            ("payment card", known.CreditCardRecognizer()),
            ("social security number", known.UsSsnRecognizer()),
            ("bank account", known.IbanRecognizer()),
        ]
        return [
            (re.compile("@"), [("email", Email())]),
            (_PHONE, [("phone number", known.PhoneRecognizer(leniency=2))]),
            (_NUMBER, numbers),
            (_ADDRESS, [("IP address", known.IpRecognizer())]),
        ]


class _Lines:
    """The lines of a text that a search needs, joined, so that a slow search reads only these."""

    def __init__(self, text: str, hint: re.Pattern[str]) -> None:
        self._places: list[tuple[int, int]] = []
        parts: list[str] = []
        size, end = 0, 0
        while match := hint.search(text, end):
            start = text.rfind("\n", 0, match.start()) + 1
            end = text.find("\n", match.end()) + 1 or len(text)
            self._places.append((size, start))
            parts.append(text[start:end])
            size += end - start
            if end == len(text):
                break
        self.text = "".join(parts)

    def found(self, parts: Iterable[Found]) -> Iterator[Found]:
        """Yield what was found in the lines with its place in the whole text."""
        for part in parts:
            here, there = self._places[bisect_right(self._places, part.start, key=lambda place: place[0]) - 1]
            yield Found(part.start - here + there, part.end - here + there, part.kind)


# Patterns that try each place of a text; what they find is on a line with a keyword.
_SLOW = frozenset({"cloudant credentials", "ibm cos hmac credentials", "ibm cloud iam key", "softlayer credentials"})


_GENERAL = frozenset({"token", "password"})
"""Kinds that are named only where no other kind fits."""


def _named(kind: str) -> str:
    """Return the kind of a secret in lower case, without signs that a mark does not need."""
    return re.sub(r"[^a-z0-9 ]+", " ", kind.lower()).strip()


def _value_of(match: re.Match[str]) -> tuple[int, int]:
    """Return the secret's place: the longest group if it may be a secret, else all that matched."""
    groups = [match.span(i) for i in range(1, len(match.groups()) + 1) if match[i]]
    longest = max(groups, key=lambda span: span[1] - span[0], default=(0, 0))
    is_secret = longest[1] - longest[0] >= 16 or match[0].startswith("://")
    return longest if is_secret else match.span()


def _is_random(token: str, entropy: Callable[[str], float]) -> bool:
    kinds = (str.islower, str.isupper, str.isdigit)
    return all(any(map(kind, token)) for kind in kinds) and token.count("/") < 4 and entropy(token) > _ENTROPY


def _is_password(value: str) -> bool:
    """Return whether a value after a keyword is more than a word or an expression: letters with digits or signs."""
    if len(value) < 6 or re.search(r"[\s()\[\]{}<>]", value):
        return False
    return any(map(str.isalpha, value)) and re.search(r"[0-9!@#$%^&*+]", value) is not None


def _is_personal(kind: str, value: str) -> bool:
    if kind == "email":
        return _NOT_PERSONAL.search(value) is None
    if kind == "IP address":
        import ipaddress

        try:
            return ipaddress.ip_address(value).is_global
        except ValueError:
            return False
    return True


def _apart(found: Iterable[Found]) -> Iterator[Found]:
    """Yield parts by place that neither overlap nor touch; those that do are joined under the kind of the first."""
    last: Found | None = None
    for each in sorted(found, key=lambda part: (part.start, -part.end, part.kind in _GENERAL)):
        if last is not None and each.start <= last.end:
            last = last._replace(end=max(last.end, each.end))
            continue
        if last is not None:
            yield last
        last = each
    if last is not None:
        yield last

"""Failures of calls: their classification, their redaction, and the fixes that a user is offered."""

from __future__ import annotations

import base64
import math
import re
from collections.abc import Iterable, Mapping
from email.utils import parsedate_to_datetime
from typing import Any, Literal
from urllib.parse import quote, quote_plus

from skillc.errors import SkillcError
from skillc.models.calls import Usage
from skillc.text import cut

FailureKind = Literal["transient", "empty", "cut", "malformed"]
WireKind = Literal["unreachable", "late", "broken", "redirected", "refused", "malformed"]
# What an attempt's end shows of its endpoint: `answered` is an error of a server that is there, `other` shows nothing.
AttemptOutcome = Literal["served", "strained", "refused", "unreachable", "answered", "other"]

_RETRIED_STATUS = frozenset({408, 409, 425, 429, 499})
_RETRIED_NAMES = frozenset(
    {
        "APIConnectionError",
        "APIError",
        "BadGatewayError",
        "InternalServerError",
        "RateLimitError",
        "ServiceUnavailableError",
        "Timeout",
    }
)
_REFUSALS = frozenset({429, 503, 529})
_REFUSAL_CODES = frozenset({"content_filter", "content_policy_violation"})
_TOO_LONG = re.compile(
    r"context.{0,20}(?:length|window|size)|prompt is too long|too many (?:input )?tokens|exceeds? the (?:max|limit)",
    re.I,
)
_USED_UP = re.compile(r"insufficient_quota|credit balance is too low|billing hard limit", re.I)
# A shorter secret is part of common words, and easily guessed.
_SHORTEST = 4
# No server is waited for longer; it is asked again instead.
_LONGEST_WAIT = 3600.0
_MALFORMED_NAMES = frozenset(
    {"APIResponseValidationError", "AnswerMissing", "JSONDecodeError", "JSONSchemaValidationError"}
)
_PREFIX = re.compile(r"^(?:(?:litellm\.)?\w+(?:Error|Exception|Timeout)(?::| -) )+")
_SECRET = re.compile(
    r"(?:sk|pk|rk|gsk|xai|hf|AIza|ya29|ghp|key)[-_][A-Za-z0-9_*\-]{6,}"
    r"|[\w\-]+\*{3,}[\w\-]*|AIza[\w\-]{10,}|(?i:bearer|basic)\s+[^\s'\",}]+|(?<=://)[^/\s@]+@|(?i:(?<=[?&]key=)|(?<=api_key=))[^&\s'\"]+"
)


class CallFailed(Exception):  # noqa: N818
    """A call that gave no whole reply: unmeasured, never a score.

    Attributes:
        kind: `transient` after all retries, `empty`, `cut` at the reply's limit, or `malformed`.
        usage: what the provider reported all the same, for the ledger.
    """

    def __init__(self, kind: FailureKind, detail: str, *, usage: Usage | None = None) -> None:
        super().__init__(f"{kind}: {detail}")
        self.kind: FailureKind = kind
        self.detail = detail
        self.usage = usage


class WireFailure(Exception):  # noqa: N818
    """The failure of one attempt on the wire.

    Attributes:
        kind: `unreachable`: there was no connection; `late`: no whole reply in time; `broken`: the connection ended
            before the reply; `redirected`: to another address, which is not followed; `refused`: an answer with an
            error's status; `malformed`: a whole answer that is no reply.
        detail: what happened, for a message.
        status_code: of the answer, None where none came.
        headers: of the answer, names in lower case.
        code: the provider's own code of the error, empty without one.
        name: what litellm calls it.
    """

    def __init__(
        self,
        kind: WireKind,
        detail: str,
        *,
        status: int | None = None,
        headers: Mapping[str, str] | None = None,
        code: str = "",
        name: str = "",
    ) -> None:
        super().__init__(detail)
        self.kind: WireKind = kind
        self.detail = detail
        self.status_code = status
        self.headers = dict(headers or {})
        self.code = code
        self.name = name


class PermanentFailure(SkillcError):  # noqa: N818
    """An error that no retry fixes: it stops the run, and names role, model, endpoint and the fix."""

    kind = "permanent"


class BackendFailed(PermanentFailure):
    """A function of the user's own that answers for a model raised, or gave no reply."""

    def on(self, example: str) -> BackendFailed:
        """The same error, with the example that was asked."""
        return BackendFailed(f"{self.message}\n  asked for {example}", hint=self.hint)


class BudgetReached(SkillcError):  # noqa: N818
    """A cap does not admit the next call. `cap` is `calls`, `tokens` or `cost`."""

    def __init__(self, cap: str, message: str | None = None) -> None:
        super().__init__(message or f"the budget's cap on {cap} does not admit the next call")
        self.cap = cap


class EndpointUnreachable(SkillcError):  # noqa: N818
    """An endpoint that had answered stayed away for longer than its roles wait; the run stops, and can go on later."""

    status = 3


def find_failure(problem: BaseException) -> CallFailed | SkillcError | None:
    """The error of ours under an exception that another library wrapped around it."""
    seen: set[int] = set()
    todo: list[BaseException | None] = [problem]
    while todo:
        here = todo.pop()
        if here is None or id(here) in seen:
            continue
        if isinstance(here, CallFailed | SkillcError):
            return here
        seen.add(id(here))
        todo += [here.__context__, here.__cause__]
        if isinstance(here, BaseExceptionGroup):
            todo += here.exceptions
    return None


def scrub(text: str, secrets: Iterable[str]) -> str:
    """The text without the secrets that we know, and without what looks like one; at most 500 characters."""
    for secret in sorted({form for s in secrets if len(s) >= _SHORTEST for form in _forms(s)}, key=len, reverse=True):
        text = text.replace(secret, "***")
    return cut(_SECRET.sub("***", text), 500)


def _forms(secret: str) -> Iterable[str]:
    """A secret as it is, and as addresses and headers hold it."""
    yield from (secret, quote(secret, safe=""), quote_plus(secret))
    for coded in (base64.b64encode(secret.encode()), base64.urlsafe_b64encode(secret.encode())):
        yield from (coded.decode(), coded.decode().rstrip("="))


def is_transient(problem: Exception) -> bool:
    """Whether a retry may help: 429, 5xx, timeouts, connections; not a used-up account."""
    if is_used_up(problem):
        return False
    if isinstance(problem, WireFailure) and problem.kind != "refused":
        return problem.kind in ("unreachable", "late", "broken")
    status = status_of(problem)
    if status is not None:
        return status in _RETRIED_STATUS or status >= 500
    return _name(problem) in _RETRIED_NAMES or isinstance(problem, TimeoutError | ConnectionError)


def is_refusal(problem: Exception) -> bool:
    """Whether a content filter kept the reply: one example's trouble, not the run's."""
    return _name(problem) == "ContentPolicyViolationError" or _code(problem) in _REFUSAL_CODES


def is_malformed(problem: Exception) -> bool:
    """Whether something came back that is no reply in the provider's own format."""
    if isinstance(problem, WireFailure):
        return problem.kind == "malformed"
    return _name(problem) in _MALFORMED_NAMES


def is_used_up(problem: Exception) -> bool:
    """Whether the provider's account is used up, which has several statuses."""
    text = f"{_code(problem)} {problem}"
    return status_of(problem) == 402 or _name(problem) == "BudgetExceededError" or bool(_USED_UP.search(text))


def is_unreachable(problem: Exception) -> bool:
    """Whether there was no connection."""
    if isinstance(problem, WireFailure):
        return problem.kind == "unreachable"
    return isinstance(problem, ConnectionError) or _name(problem) == "APIConnectionError"


def reached_nobody(problem: Exception) -> bool:
    """Whether the address itself cannot be reached, whatever is asked there; a narrower question than the above."""
    return isinstance(problem, ConnectionRefusedError) or (
        isinstance(problem, WireFailure) and problem.kind == "unreachable"
    )


def is_late(problem: Exception) -> bool:
    """Whether no whole reply came in time."""
    if isinstance(problem, WireFailure):
        return problem.kind == "late"
    return isinstance(problem, TimeoutError) or _name(problem) == "Timeout"


def was_refused(problem: Exception) -> bool:
    """Whether nothing was generated or billed: an answer with an error's status, or no connection."""
    if isinstance(problem, WireFailure):
        return problem.kind in ("unreachable", "redirected", "refused")
    status = status_of(problem)
    answered = getattr(problem, "response", None) is not None or getattr(problem, "litellm_response_headers", None)
    return _name(problem) == "RateLimitError" or bool(status and status < 500) or bool(status and answered)


def told(problem: Exception) -> str:
    """The message of an exception, without the names that litellm puts in front, with the server's status."""
    text = _PREFIX.sub("", str(problem)).strip().rstrip(".") or _name(problem)
    return f"status {status_of(problem)}: {text}" if was_refused(problem) and status_of(problem) else text


def status_of(problem: Exception) -> int | None:
    """The HTTP status that an exception carries."""
    status = getattr(problem, "status_code", None)
    return status if isinstance(status, int) else None


def retry_after(problem: Exception, now: float) -> float | None:
    """Seconds that the server asks to wait, an hour at most; `now` in seconds since the epoch, for dates."""
    headers = _headers(problem)
    for name, scale in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        value = headers.get(name)
        if value is None:
            continue
        try:
            seconds = float(value) * scale
        except ValueError:
            try:
                seconds = parsedate_to_datetime(value).timestamp() - now
            except (ValueError, TypeError, OverflowError):
                continue
        if math.isfinite(seconds):
            return min(max(0.0, seconds), _LONGEST_WAIT)
    return None


def _name(problem: Exception) -> str:
    return problem.name if isinstance(problem, WireFailure) else type(problem).__name__


def _code(problem: Exception) -> str:
    return problem.code if isinstance(problem, WireFailure) else str(getattr(problem, "code", None) or "")


def _headers(problem: Exception) -> dict[str, str]:
    if isinstance(problem, WireFailure):
        return problem.headers
    found: Any = getattr(problem, "litellm_response_headers", None) or getattr(
        getattr(problem, "response", None), "headers", None
    )
    return {str(k).lower(): str(v) for k, v in dict(found).items()} if found else {}


def is_overload(problem: Exception) -> bool:
    """Whether the server sent an attempt away unserved, for want of capacity: 429, 503, 529, or in words."""
    if not is_transient(problem):
        return False
    status = status_of(problem)
    return status in _REFUSALS or (was_refused(problem) and "overloaded" in str(problem).lower())


def outcome_of(problem: Exception) -> AttemptOutcome:
    """Return what an exception shows of the endpoint.

    `refused`; `unreachable` where there was no connection; `strained` where one gave no answer, as after a timeout or
    a reset; `answered` where the answer was an error; else `other`.
    """
    if is_overload(problem):
        return "refused"
    if reached_nobody(problem):
        return "unreachable"
    if is_transient(problem) and not was_refused(problem):
        return "strained"
    return "other" if status_of(problem) is None else "answered"


# ---- fixes that a user is offered ----

OFFLINE = "run with `--offline`"
OFFLINE_INSTEAD = f"{OFFLINE}, which uses the embedded rulebook instead"
FIXES = {
    "redirected": "if that is where the model is, name that address in `base_url`",
    "malformed": "check `base_url`: what answers there does not speak this provider's protocol",
    "used up": "the provider's account is used up; top it up, then run the same command again",
    "too long": "the prompt is too long for this model: lower the sections' limits, or the limit of an input",
    "key": "check the key in `{key}`",
    "no key": 'declare the key: `key = env("NAME")`',
    "name": "check the model's name and `base_url`",
    "late": "if its server is still starting, wait until it is ready and run the same command again",
    "unreachable": "check `base_url`, and that the server runs",
    "parameters": "check the model's parameters in the program; they are sent as they are",
    "overuse": "raise `max_tokens` in its block, so that a reply's whole length is reserved",
    "away": "start it again, then run the same command, which goes on from here; "
    "`down = {longer}` in the model's block waits longer",
    "backend": "where another attempt may help, raise `TimeoutError` or `ConnectionError`",
}


def fix_for(problem: Exception, key_env: str | None) -> str:
    """The fix of an error that no retry fixes, in one line."""
    return FIXES[_cause(problem, key_env)].format(key=key_env)


def _cause(problem: Exception, key_env: str | None) -> str:
    """The key of `FIXES` that an error calls for."""
    name, status = _name(problem), status_of(problem)
    kind = problem.kind if isinstance(problem, WireFailure | CallFailed) else None
    if kind in ("redirected", "malformed"):
        return kind
    if is_used_up(problem):
        return "used up"
    if name == "ContextWindowExceededError" or (status in {400, 413} and _TOO_LONG.search(str(problem))):
        return "too long"
    if name in {"AuthenticationError", "PermissionDeniedError"} or status in {401, 403}:
        return "key" if key_env else "no key"
    if name == "NotFoundError" or status == 404:
        return "name"
    if is_unreachable(problem):
        return "unreachable"
    return "late" if is_late(problem) else "parameters"

"""What can go wrong with a call. No text in here ever holds a secret."""

from __future__ import annotations

import re
from collections.abc import Iterable
from email.utils import parsedate_to_datetime
from typing import Any, Literal

from skillc.errors import SkillcError
from skillc.models.calls import Usage

FailureKind = Literal["transient", "empty", "cut", "malformed"]

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
_MALFORMED_NAMES = frozenset(
    {"APIResponseValidationError", "AnswerMissing", "JSONDecodeError", "JSONSchemaValidationError"}
)
_PREFIX = re.compile(r"^(?:(?:litellm\.)?\w+(?:Error|Exception|Timeout)(?::| -) )+")
_SECRET = re.compile(
    r"(?:sk|pk|rk|gsk|xai|hf|AIza|ya29|ghp|key)[-_][A-Za-z0-9_*\-]{6,}"
    r"|AIza[\w\-]{10,}|(?i:bearer)\s+[^\s'\",}]+|(?<=://)[^/\s@]+@|(?i:(?<=[?&]key=)|(?<=api_key=))[^&\s'\"]+"
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


class PermanentFailure(SkillcError):  # noqa: N818
    """An error that no retry mends: it stops the run, and names role, model, endpoint and the fix."""

    kind = "permanent"


class BudgetReached(SkillcError):  # noqa: N818
    """A cap does not admit the next call. `cap` is `calls`, `tokens` or `cost`."""

    def __init__(self, cap: str, message: str | None = None) -> None:
        super().__init__(message or f"the budget's cap on {cap} does not admit the next call")
        self.cap = cap


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
    for secret in sorted((s for s in secrets if s), key=len, reverse=True):
        text = text.replace(secret, "***")
    text = " ".join(_SECRET.sub("***", text).split())
    return text if len(text) <= 500 else text[:500] + "…"


def is_transient(problem: Exception) -> bool:
    """Whether a retry may help: 429, 5xx, timeouts, connections; not a used-up account."""
    if "insufficient_quota" in str(problem) or _name(problem) == "BudgetExceededError":
        return False
    status = status_of(problem)
    if status is not None and _name(problem) not in _RETRIED_NAMES:
        return status in _RETRIED_STATUS or status >= 500
    return _name(problem) in _RETRIED_NAMES or isinstance(problem, TimeoutError | ConnectionError)


def is_refusal(problem: Exception) -> bool:
    """Whether a content filter kept the reply: one example's trouble, not the run's."""
    return _name(problem) == "ContentPolicyViolationError"


def is_malformed(problem: Exception) -> bool:
    """Whether something came back that is no reply in the provider's own format."""
    return _name(problem) in _MALFORMED_NAMES


def was_refused(problem: Exception) -> bool:
    """Whether the server answered with an error, so that nothing was generated and nothing is billed."""
    status = status_of(problem)
    answered = getattr(problem, "response", None) is not None or getattr(problem, "litellm_response_headers", None)
    return _name(problem) == "RateLimitError" or bool(status and status < 500) or bool(status and answered)


def told(problem: Exception) -> str:
    """What an exception says, once: without the names that litellm puts in front, with the server's status."""
    text = _PREFIX.sub("", str(problem)).strip().rstrip(".") or _name(problem)
    return f"status {status_of(problem)}: {text}" if was_refused(problem) and status_of(problem) else text


def status_of(problem: Exception) -> int | None:
    """The HTTP status that an exception carries."""
    status = getattr(problem, "status_code", None)
    return status if isinstance(status, int) else None


def retry_after(problem: Exception, now: float) -> float | None:
    """Seconds that the server asks to wait; `now` in seconds since the epoch, for headers that hold a date."""
    headers = _headers(problem)
    for name, scale in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        value = headers.get(name)
        if value is None:
            continue
        try:
            return max(0.0, float(value) * scale)
        except ValueError:
            pass
        try:
            return max(0.0, parsedate_to_datetime(value).timestamp() - now)
        except (ValueError, TypeError):
            continue
    return None


def fix_for(problem: Exception, key_env: str | None) -> str:
    """What to do about a permanent error, in one line."""
    name, status = _name(problem), status_of(problem)
    if name == "ContextWindowExceededError":
        return "the prompt is too long for this model: lower the sections' limits, or the limit of an input"
    if name in {"AuthenticationError", "PermissionDeniedError"} or status in {401, 403}:
        return f"check the key in `{key_env}`" if key_env else 'declare the key: `key = env("NAME")`'
    if name == "NotFoundError" or status == 404:
        return "check the model's name and `base_url`"
    if "insufficient_quota" in str(problem) or status == 402:
        return "the provider's account is used up; top it up, then run the same command again"
    return "check the model's parameters in the program; they are sent as they are"


def _name(problem: Exception) -> str:
    return type(problem).__name__


def _headers(problem: Exception) -> dict[str, str]:
    found: Any = getattr(problem, "litellm_response_headers", None) or getattr(
        getattr(problem, "response", None), "headers", None
    )
    return {str(k).lower(): str(v) for k, v in dict(found).items()} if found else {}

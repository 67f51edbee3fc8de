"""Failures of calls: classification, redaction of secrets, and the fixes that messages offer."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import field
from email.utils import parsedate_to_datetime
from typing import Any, Literal, TypeVar

from skillc.dataclass import dataclass
from skillc.errors import SkillcError
from skillc.models.calls import Usage
from skillc.redaction import Redactor
from skillc.text import cut

FailureKind = Literal["transient", "empty", "cut", "malformed"]
WireKind = Literal["unreachable", "unsent", "late", "broken", "redirected", "refused", "malformed"]
# What an attempt shows of its endpoint: `strained` is a timeout or a reset, `answered` an error, `other` shows nothing.
AttemptOutcome = Literal["served", "strained", "refused", "unreachable", "answered", "other"]

_RETRIED_STATUS = frozenset({408, 409, 425, 429, 499})
_RETRIED_NAMES = frozenset(
    {"APIConnectionError", "APIError", "BadGatewayError", "InternalServerError", "RateLimitError"}
    | {"ServiceUnavailableError", "Timeout"}
)
_REFUSALS = frozenset({429, 503, 529})
_REFUSAL_CODES = frozenset({"content_filter", "content_policy_violation"})
_TOO_LONG = re.compile(
    r"context.{0,20}(?:length|window|size)|prompt is too long|too many (?:input )?tokens|exceeds? the (?:max|limit)",
    re.I,
)
_USED_UP = re.compile(r"insufficient_quota|credit balance is too low|billing hard limit", re.I)
# Seconds; after that the server is asked again.
_LONGEST_WAIT = 3600.0
_MALFORMED_NAMES = frozenset(
    {"APIResponseValidationError", "AnswerMissing", "JSONDecodeError", "JSONSchemaValidationError"}
)
_PREFIX = re.compile(r"^(?:(?:litellm\.)?\w+(?:Error|Exception|Timeout)(?::| -) )+")
# What is redacted already stays as it is.
_SECRET = re.compile(
    r"(?:sk|pk|rk|gsk|xai|hf|AIza|ya29|ghp|key)[-_][A-Za-z0-9_*\-]{6,}"
    r"|[\w\-]+\*{3,}[\w\-]*|AIza[\w\-]{10,}|(?i:bearer|basic)\s+(?!\[secret )[^\s'\",}]+|(?<=://)[^/\s@]+@"
    r"|(?i:(?<=[?&]key=)|(?<=api_key=))(?!\[secret )[^&\s'\"]+"
)


@dataclass(eq=False, repr=False)
class CallFailed(Exception):  # noqa: N818
    """A call without a complete reply: unmeasured, never a score.

    Attributes:
        kind: `transient` after all retries, `empty`, `cut` at the reply's limit, or `malformed`.
        usage: as the provider reported it, if it did.
    """

    kind: FailureKind
    detail: str
    usage: Usage | None = None

    def __str__(self) -> str:
        return f"{self.kind}: {self.detail}"


@dataclass(eq=False, repr=False)
class WireFailure(Exception):  # noqa: N818
    """The failure of one attempt on the wire.

    Attributes:
        kind: `unreachable`: no connection; `unsent`: this process can open no further one; `late`: no complete reply in
            time; `broken`: the connection closed before the reply; `redirected`: to another address, which is not
            followed; `refused`: a response with an error's status; `malformed`: a whole response that is not a reply.
        detail: for messages.
        status_code: of the response, if any.
        headers: of the response, names in lower case.
        code: the provider's code of the error, empty without one.
        name: of litellm's exception.
    """

    kind: WireKind
    detail: str
    status_code: int | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    code: str = ""
    name: str = ""

    def __str__(self) -> str:
        return self.detail


class PermanentFailure(SkillcError):  # noqa: N818
    """An error that no retry fixes: it stops the run, and names role, model, endpoint and fix."""


class BackendFailed(PermanentFailure):
    """The user's function that answers for a model raised an error, or returned no reply."""

    def on(self, example: str) -> BackendFailed:
        """Add the example to the message."""
        return BackendFailed(f"{self.message}\n  asked for {example}", hint=self.hint)


class BudgetReached(SkillcError):  # noqa: N818
    """A cap does not admit the next call. `cap` is `calls`, `tokens`, `cost`, `judge_calls` or `judge_cost`."""

    def __init__(self, cap: str) -> None:
        shown = cap.replace("judge_", "judges' ")
        super().__init__(f"the budget's cap on {shown} does not admit the next call")
        self.cap = cap


class EndpointUnreachable(SkillcError):  # noqa: N818
    """An endpoint that had answered stayed out of reach for longer than its roles wait; the run can be resumed."""

    status = 3


F = TypeVar("F", bound=CallFailed | SkillcError)


def find_failure(problem: BaseException) -> CallFailed | SkillcError | None:
    """Find skillc's error under an exception that another library wrapped around it."""
    seen: set[int] = set()
    pending: list[BaseException | None] = [problem]
    while pending:
        current = pending.pop()
        if current is None or id(current) in seen:
            continue
        if isinstance(current, CallFailed | SkillcError):
            return current
        seen.add(id(current))
        pending += [current.__context__, current.__cause__]
        if isinstance(current, BaseExceptionGroup):
            pending += current.exceptions
    return None


def is_too_long(failure: Exception) -> bool:
    """Whether a prompt did not fit the model."""
    return isinstance(failure, PermanentFailure) and failure.hint == FIXES["too long"]


def scrub(text: str, hide: Redactor) -> str:
    """Redact the given secrets and everything that looks like one; return at most 500 characters."""
    return cut(_SECRET.sub("***", hide.message(text)), 500)


def redact(problem: F, hide: Redactor) -> F:
    """Redact the given secrets in an error for the user, and return it."""
    if isinstance(problem, CallFailed):
        problem.detail = hide.message(problem.detail)
    elif isinstance(problem, SkillcError):
        problem.message = hide.message(problem.message)
        problem.hint = problem.hint and hide.message(problem.hint)
        problem.args = (problem.message,)
    return problem


def is_transient(problem: Exception) -> bool:
    """Whether a retry may help: 429, 5xx, timeouts, connections; not a used-up account."""
    if _is_used_up(problem):
        return False
    if isinstance(problem, WireFailure) and problem.kind != "refused":
        return problem.kind in ("unreachable", "unsent", "late", "broken")
    status = status_of(problem)
    if status is not None:
        return status in _RETRIED_STATUS or status >= 500
    return _name(problem) in _RETRIED_NAMES or isinstance(problem, TimeoutError | ConnectionError)


def is_refusal(problem: Exception) -> bool:
    """Whether a content filter withheld the reply, which concerns one example only."""
    return _name(problem) == "ContentPolicyViolationError" or _code(problem) in _REFUSAL_CODES


def is_malformed(problem: Exception) -> bool:
    """Whether the response is not a reply in the provider's format."""
    return problem.kind == "malformed" if isinstance(problem, WireFailure) else _name(problem) in _MALFORMED_NAMES


def _is_used_up(problem: Exception) -> bool:
    """Whether the provider's account is used up, for which providers send several statuses."""
    text = f"{_code(problem)} {problem}"
    return status_of(problem) == 402 or _name(problem) == "BudgetExceededError" or bool(_USED_UP.search(text))


def is_unreachable(problem: Exception) -> bool:
    """Whether there was no connection."""
    if isinstance(problem, WireFailure):
        return problem.kind == "unreachable"
    return isinstance(problem, ConnectionError) or _name(problem) == "APIConnectionError"


def is_late(problem: Exception) -> bool:
    """Whether no complete reply came in time."""
    if isinstance(problem, WireFailure):
        return problem.kind == "late"
    return isinstance(problem, TimeoutError) or _name(problem) == "Timeout"


def was_refused(problem: Exception) -> bool:
    """Whether nothing was generated or billed: a response with an error's status, or no connection."""
    if isinstance(problem, WireFailure):
        return problem.kind in ("unreachable", "unsent", "redirected", "refused")
    status = status_of(problem)
    answered = getattr(problem, "response", None) is not None or getattr(problem, "litellm_response_headers", None)
    return _name(problem) == "RateLimitError" or bool(status and status < 500) or bool(status and answered)


def describe(problem: Exception) -> str:
    """Return the message of an exception without litellm's prefixes, with the server's status."""
    text = _PREFIX.sub("", str(problem)).strip().rstrip(".") or _name(problem)
    return f"status {status_of(problem)}: {text}" if was_refused(problem) and status_of(problem) else text


def status_of(problem: Exception) -> int | None:
    """Return the HTTP status of an exception, if it has one."""
    status = getattr(problem, "status_code", None)
    return status if isinstance(status, int) else None


def retry_after(problem: Exception, now: float) -> float | None:
    """Return the seconds that the server asks to wait, at most an hour; `now` in seconds since the epoch, for dates."""
    if isinstance(problem, WireFailure):
        headers = problem.headers
    else:
        response = getattr(problem, "response", None)
        found: Any = getattr(problem, "litellm_response_headers", None) or getattr(response, "headers", None)
        headers = {str(name).lower(): str(value) for name, value in dict(found or {}).items()}
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


def outcome_of(problem: Exception) -> AttemptOutcome:
    """Return what an exception shows of the endpoint."""
    overloaded = status_of(problem) in _REFUSALS or (was_refused(problem) and "overloaded" in str(problem).lower())
    if overloaded and is_transient(problem):
        return "refused"
    # Narrower than `is_unreachable`: the address itself cannot be reached, whatever is sent.
    if isinstance(problem, ConnectionRefusedError) or getattr(problem, "kind", None) == "unreachable":
        return "unreachable"
    if getattr(problem, "kind", None) == "unsent" or (is_transient(problem) and not was_refused(problem)):
        return "strained"
    return "other" if status_of(problem) is None else "answered"


# ---- fixes that messages offer ----

OFFLINE = "run with `--offline`"
OFFLINE_INSTEAD = f"{OFFLINE}, which uses the embedded rulebook instead"
FIXES = {
    "redirected": "if the model is there, set `base_url` to that address",
    "malformed": "check `base_url`: the server there does not speak this provider's protocol",
    "used up": "the provider's account is used up; top it up, then run the same command again",
    "too long": "the prompt is too long for this model: lower the sections' limits, or the limit of an input",
    "key": "check the key in `{key}`",
    "no key": 'declare the key: `key = env("NAME")`',
    "name": "check the model's name and `base_url`",
    "late": "if its server is still starting, wait until it is ready and run the same command again",
    "unreachable": "check `base_url`, and that the server runs",
    "parameters": "check the model's parameters in the program; they are sent unchanged",
    "overuse": "raise `max_tokens` in its block, so that the whole reply is reserved",
    "away": "restart it, then run the same command to resume; `down = {longer}` in the model's block waits longer",
    "backend": "to have a call retried, raise `TimeoutError` or `ConnectionError`",
}


def fix_for(problem: Exception, key_env: str | None) -> str:
    """Return the fix of an error that no retry fixes, in one line."""
    return FIXES[_cause(problem, key_env)].format(key=key_env)


def _cause(problem: Exception, key_env: str | None) -> str:
    """Return the key in `FIXES`."""
    name, status = _name(problem), status_of(problem)
    kind = problem.kind if isinstance(problem, WireFailure | CallFailed) else None
    if kind in ("redirected", "malformed"):
        return kind
    if _is_used_up(problem):
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

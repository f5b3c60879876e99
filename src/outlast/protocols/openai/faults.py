"""What this dialect's errors are: a status, a body or an error inside an answer -> `Fault`.

Owns the reading of error objects and of `Retry-After`. What follows from a fault is not decided
here but by `model.fault.judge`.

Surprising cases: a spent quota comes as 429 but is a matter of the bill, so its code outranks its
status; an error inside a 200 has the meaning of its own status or type; a prompt that is too long
is for now a caller's error like any other 400 (its code is kept). Codes are compared, never
phrases: an error's message can quote the prompt.

Sources: OpenAI's guide to error codes, and the bodies of vLLM, Azure, OpenRouter and Groq
(November 2026).
"""

import re
from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import Any

import msgspec

from outlast.model.clock import WallTime
from outlast.model.fault import Fault, FaultKind
from outlast.protocols.dialect import Headers

MESSAGE_CHARS_MAX = 4096
"""More of a provider's message than this helps nobody."""

_BILLING = frozenset(
    {"insufficient_quota", "billing_hard_limit_reached", "billing_not_active", "payment_required"}
)
_BILLING_STATUSES = frozenset({400, 402, 403, 429})
_REFUSED = frozenset({"content_policy_violation", "content_filter"})

_STATUS_OF_WORD = {
    "overloaded_error": 529,
    "overloaded": 529,
    "rate_limit_error": 429,
    "rate_limit_exceeded": 429,
    "rate_limited": 429,
    "too_many_requests": 429,
    "insufficient_quota": 429,
    "billing_hard_limit_reached": 429,
    "billing_not_active": 429,
    "payment_required": 402,
    "api_error": 500,
    "server_error": 500,
    "internal_error": 500,
    "internal_server_error": 500,
    "service_unavailable": 503,
    "service_unavailable_error": 503,
    "timeout": 504,
    "timeout_error": 504,
    "invalid_request_error": 400,
    "context_length_exceeded": 400,
    "content_policy_violation": 400,
    "content_filter": 400,
    "authentication_error": 401,
    "invalid_api_key": 401,
    "permission_error": 403,
    "permission_denied": 403,
    "not_found_error": 404,
    "model_not_found": 404,
}
"""What an error that came without a status stands for, by its code or type."""

_STATUS_UNKNOWN = 500
_SECONDS = re.compile(rb"\d{1,12}(\.\d{1,12})?")
_decode = msgspec.json.Decoder().decode


class _Said(msgspec.Struct, frozen=True):
    """The fields of an error object, absent where they are missing or of another type."""

    code: str | None = None
    type: str | None = None
    param: str | None = None
    message: str | None = None
    status: int | None = None


RETRY_AFTER_MAX_S = 365 * 86_400.0
"""A longer wait is cut: an instant beyond the calendar's end cannot be said."""


def read_error(status: int, headers: Headers, body: bytes, wall: WallTime) -> Fault:
    """Say what an answer that is no 2xx means. `wall` is needed for `Retry-After` as a date."""
    return _fault(status, _said(_parsed(body)), _retry_after_s(headers, wall))


_object = msgspec.json.Decoder(dict[str, Any]).decode


def fault_inside(body: bytes, error: object) -> Fault:
    """Say what the `error` of a 200's object means, whatever else that object holds.

    Its neighbours may hold what cannot be read (numbers out of range, no UTF-8); then the error
    speaks for itself.
    """
    try:
        holder = _object(body)
    except (msgspec.DecodeError, RecursionError):
        holder = {"error": error}
    return embedded_fault(holder)


def embedded_fault(holder: dict[str, Any]) -> Fault:
    """Say what an error inside a 200 means. `holder` is the object whose `error` it is."""
    said = _said(holder)
    return _fault(_embedded_status(said), said, None)


def _embedded_status(said: _Said) -> int:
    if said.status is not None:
        return said.status
    for word in (said.code, said.type):
        if word is not None and word.lower() in _STATUS_OF_WORD:
            return _STATUS_OF_WORD[word.lower()]
    return _STATUS_UNKNOWN


def _fault(status: int, said: _Said, retry_after_s: float | None) -> Fault:
    return Fault(
        _kind(status, said),
        status=status,
        retry_after_s=retry_after_s,
        code=said.code or said.type,
        param=said.param,
        message=said.message,
        detail=f"the provider answered {status}",
    )


def _kind(status: int, said: _Said) -> FaultKind:
    words = {word.lower() for word in (said.code, said.type) if word is not None}
    if status in _BILLING_STATUSES and words & _BILLING:
        return FaultKind.PROVIDER_BILLING
    if status == 400 and words & _REFUSED:
        return FaultKind.REFUSAL
    return _kind_of_status(status)


def _kind_of_status(status: int) -> FaultKind:
    match status:
        case 402:
            return FaultKind.PROVIDER_BILLING
        case 401 | 403:
            return FaultKind.PROVIDER_AUTH
        case 404 | 410:
            return FaultKind.PROVIDER_NOT_FOUND
        case 408:
            return FaultKind.TIMEOUT
        case 409 | 424 | 425:
            return FaultKind.TRANSIENT_CONFLICT
        case 413:
            return FaultKind.REQUEST_TOO_LARGE
        case 429:
            return FaultKind.PROVIDER_RATE_LIMITED
        case _ if 400 <= status < 500:
            return FaultKind.CALLER_ERROR
        case _ if 500 <= status < 600:
            return FaultKind.PROVIDER_5XX
        case _:
            return FaultKind.MALFORMED_RESPONSE


def _parsed(body: bytes) -> object:
    try:
        return _decode(body)
    except (msgspec.DecodeError, RecursionError):
        return None


def _said(value: object) -> _Said:
    """Find the error object: alone, under `error`, or as the one element of an array."""
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    if not isinstance(value, dict):
        return _Said()
    inner = value.get("error")
    if isinstance(inner, str):
        return _from_object({**value, "message": inner})
    return _from_object(inner if isinstance(inner, dict) else value)


def _from_object(error: dict[str, Any]) -> _Said:
    message = _text(error.get("message"))
    return _Said(
        code=_text(error.get("code")),
        type=_text(error.get("type")),
        param=_text(error.get("param")),
        message=None if message is None else message[:MESSAGE_CHARS_MAX],
        status=_status(error.get("status")) or _status(error.get("code")),
    )


def _text(value: object) -> str | None:
    """Return a word; integer codes become words, everything else is no word."""
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return value if isinstance(value, str) and value else None


def _status(value: object) -> int | None:
    """Return an HTTP status that is an error, spelled as a number or as digits."""
    if isinstance(value, str) and re.fullmatch("[45][0-9][0-9]", value):
        return int(value)
    return value if isinstance(value, int) and 400 <= value < 600 else None


def _retry_after_s(headers: Headers, wall: WallTime) -> float | None:
    """Return the wait that was asked for, in seconds (RFC 9110, section 10.2.3), None if none was.

    `retry-after-ms` is finer and goes first. What is negative or no time at all is ignored.
    """
    fields = dict(headers)
    milliseconds = fields.get(b"retry-after-ms", b"").strip()
    if _SECONDS.fullmatch(milliseconds):
        return min(float(milliseconds) / 1000, RETRY_AFTER_MAX_S)
    value = fields.get(b"retry-after", b"").strip()
    if _SECONDS.fullmatch(value):
        return min(float(value), RETRY_AFTER_MAX_S)
    try:
        date = parsedate_to_datetime(value.decode("latin-1"))
    except (ValueError, OverflowError):
        return None
    # A date without a zone is read as GMT, the only zone that HTTP has.
    delay_s = (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp() - wall
    return min(delay_s, RETRY_AFTER_MAX_S) if delay_s >= 0 else None

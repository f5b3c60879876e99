"""What went wrong, what it means and whom it blames: the decision table.

`Fault` is what a dialect or the transport saw. `judge` is the only place that says what follows:
what the breaker records, whether the same deployment may be asked again, whether the request may
move on. It is an exhaustive match: a new kind fails the type check until it has a row here.

Surprising cases: a 429 is no failure but a rest; a refused credential says nothing about the
deployment behind it; a caller's own mistake never reaches a breaker; an attempt that was cut by
the request's deadline is nobody's fault unless it had used up the operator's own limit.
"""

from enum import Enum
from typing import assert_never

from msgspec import Struct


class FaultKind(Enum):
    """One word per row (or group of rows) of the decision table."""

    CONNECTION_ERROR = "connection_error"
    TIMEOUT = "timeout"
    PROVIDER_5XX = "provider_5xx"
    PROVIDER_RATE_LIMITED = "provider_rate_limited"
    PROVIDER_BILLING = "provider_billing"
    PROVIDER_AUTH = "provider_auth"
    NOT_ENTITLED = "not_entitled"
    PROVIDER_NOT_FOUND = "provider_not_found"
    CALLER_ERROR = "caller_error"
    PARAM_REJECTED = "param_rejected"
    CONTEXT_LENGTH = "context_length"
    REQUEST_TOO_LARGE = "request_too_large"
    TRANSLATION_FAULT = "translation_fault"
    TRANSIENT_CONFLICT = "transient_conflict"
    REFUSAL = "refusal"
    MALFORMED_RESPONSE = "malformed_response"
    EMPTY_RESPONSE = "empty_response"
    STREAM_BROKEN = "stream_broken"
    CALLER_GONE = "caller_gone"
    DEADLINE = "deadline"
    SUPERSEDED = "superseded"
    OUTPUT_TOO_LARGE = "output_too_large"
    GATEWAY_FAULT = "gateway_fault"


class Timer(Enum):
    """Which of our timers ran out."""

    CONNECT = "connect"
    RESPONSE_HEADERS = "response_headers"
    FIRST_TOKEN = "first_token"  # noqa: S105 - a timer's name
    REQUEST = "request"
    IDLE_STREAM = "idle_stream"


class Phase(Enum):
    """How far an attempt had come when its transport failed."""

    DNS = "dns"
    CONNECT = "connect"
    TLS = "tls"
    HEAD = "head"  # the request went out (perhaps in part), no complete response head came back
    BODY = "body"


class Break(Enum):
    """How the transport failed."""

    REFUSED = "refused"
    TIMEOUT = "timeout"
    RESET = "reset"
    EOF = "eof"  # the peer closed where its own framing says that more must come
    GARBAGE = "garbage"  # bytes that are no HTTP/1.1, or framing that we refuse
    TOO_LARGE = "too_large"  # a head or a chunk extension over its limit
    EXHAUSTED = "exhausted"  # our own limit of connections is the problem


class TransportFailure(Struct, frozen=True):
    """What the upstream leg reports instead of an answer.

    `detail` is for operators: it names addresses and system errors, never headers or bodies.
    """

    phase: Phase
    how: Break
    detail: str = ""


class Fault(Struct, frozen=True):
    """One thing that went wrong with one attempt.

    `status` is the provider's HTTP status, or the status its embedded error stands for; None when
    no answer came. `retry_after_s` is what the provider asked for, in seconds from now (None: it
    said nothing). `code`, `param` and `message` are the provider's own words: `message` may quote
    the caller's prompt, so it reaches the caller at most and no log.
    """

    kind: FaultKind
    status: int | None = None
    retry_after_s: float | None = None
    code: str | None = None
    param: str | None = None
    message: str | None = None
    detail: str = ""
    timer: Timer | None = None
    phase: Phase | None = None


class Effect(Enum):
    """What one outcome does to the health of what it blames."""

    SUCCESS = "success"
    FAILURE = "failure"
    NEUTRAL = "neutral"
    THROTTLE = "throttle"  # the deployment rests, its breaker does not move
    HARD_DOWN = "hard_down"  # the blamed scope rests, the breaker does not move


class Retry(Enum):
    """May the same deployment be asked again?"""

    NEVER = "never"
    ONCE = "once"
    YES = "yes"
    IF_LAST = "if_last"  # a slow failure: only without another candidate, or with `when: always`


class Blame(Enum):
    """Whose fault it is; decides which scope is marked."""

    CALLER = "caller"
    DEPLOYMENT = "deployment"
    CREDENTIAL = "credential"
    PROVIDER = "provider"
    GATEWAY = "gateway"
    NOBODY = "nobody"


class Verdict(Struct, frozen=True):
    """What follows from a fault."""

    effect: Effect
    retry: Retry
    hop: bool
    blame: Blame


_FAILED = Verdict(Effect.FAILURE, Retry.YES, hop=True, blame=Blame.DEPLOYMENT)
_FAILED_SLOWLY = Verdict(Effect.FAILURE, Retry.IF_LAST, hop=True, blame=Blame.DEPLOYMENT)
_FAILED_FOR_GOOD = Verdict(Effect.FAILURE, Retry.NEVER, hop=True, blame=Blame.DEPLOYMENT)
_CONFLICT = Verdict(Effect.FAILURE, Retry.ONCE, hop=True, blame=Blame.DEPLOYMENT)
_BROKEN = Verdict(Effect.FAILURE, Retry.NEVER, hop=False, blame=Blame.DEPLOYMENT)
_THROTTLED = Verdict(Effect.THROTTLE, Retry.IF_LAST, hop=True, blame=Blame.DEPLOYMENT)
_BAD_CREDENTIAL = Verdict(Effect.HARD_DOWN, Retry.NEVER, hop=True, blame=Blame.CREDENTIAL)
_NOT_THERE = Verdict(Effect.HARD_DOWN, Retry.NEVER, hop=True, blame=Blame.DEPLOYMENT)
_CALLER = Verdict(Effect.NEUTRAL, Retry.NEVER, hop=False, blame=Blame.CALLER)
_CALLER_FITS_ELSEWHERE = Verdict(Effect.NEUTRAL, Retry.NEVER, hop=True, blame=Blame.CALLER)
_REFUSED = Verdict(Effect.SUCCESS, Retry.NEVER, hop=False, blame=Blame.CALLER)
_NOTHING_SAID = Verdict(Effect.NEUTRAL, Retry.NEVER, hop=True, blame=Blame.NOBODY)
_OVER = Verdict(Effect.NEUTRAL, Retry.NEVER, hop=False, blame=Blame.NOBODY)
_TRANSLATION = Verdict(Effect.NEUTRAL, Retry.ONCE, hop=True, blame=Blame.GATEWAY)
_OURS = Verdict(Effect.NEUTRAL, Retry.NEVER, hop=False, blame=Blame.GATEWAY)

_RETRYABLE_5XX = frozenset({500, 502, 503, 504, *range(520, 530)})


def judge(fault: Fault) -> Verdict:  # noqa: C901, PLR0912 - one row per kind, as in the table
    """Say what follows from a fault. The only place that does.

    A 5xx outside 500, 502-504 and 520-529 (501, 505 and the odd rest) is not asked again at the
    same deployment: it says that the provider cannot, not that it cannot now. A 408 is a timeout
    that came back at once, so it may be retried as an instant failure.
    """
    kind = fault.kind
    match kind:
        case FaultKind.CONNECTION_ERROR:
            return _FAILED
        case FaultKind.TIMEOUT:
            return _FAILED if fault.status == 408 else _FAILED_SLOWLY
        case FaultKind.PROVIDER_5XX:
            known = fault.status is None or fault.status in _RETRYABLE_5XX
            return _FAILED if known else _FAILED_FOR_GOOD
        case FaultKind.PROVIDER_RATE_LIMITED:
            return _THROTTLED
        case FaultKind.PROVIDER_BILLING | FaultKind.PROVIDER_AUTH:
            return _BAD_CREDENTIAL
        case FaultKind.NOT_ENTITLED | FaultKind.PROVIDER_NOT_FOUND:
            return _NOT_THERE
        case FaultKind.CALLER_ERROR | FaultKind.PARAM_REJECTED:
            return _CALLER
        case FaultKind.CONTEXT_LENGTH | FaultKind.REQUEST_TOO_LARGE:
            return _CALLER_FITS_ELSEWHERE
        case FaultKind.TRANSLATION_FAULT:
            return _TRANSLATION
        case FaultKind.TRANSIENT_CONFLICT:
            return _CONFLICT
        case FaultKind.REFUSAL:
            return _REFUSED
        case FaultKind.MALFORMED_RESPONSE:
            return _FAILED_FOR_GOOD
        case FaultKind.EMPTY_RESPONSE:
            return _NOTHING_SAID
        case FaultKind.STREAM_BROKEN:
            return _BROKEN
        case FaultKind.CALLER_GONE | FaultKind.DEADLINE | FaultKind.SUPERSEDED:
            return _OVER
        case FaultKind.OUTPUT_TOO_LARGE | FaultKind.GATEWAY_FAULT:
            return _OURS
        case _:  # pragma: no cover - the type check proves that nothing is left
            assert_never(kind)

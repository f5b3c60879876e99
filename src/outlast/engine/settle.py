"""The end of a walk without an answer: which error the caller gets, and how honest a Retry-After.

Reads what was tried and what was passed over; decides nothing about the walk itself. A caller's
own error is relayed as its provider sent it, everything else is worded by us, because a
provider's 401, 402, 403, 429 or 5xx can quote keys, hosts and prompts.
"""

from collections import Counter
from typing import assert_never

from msgspec import Struct

from outlast.errors import AttemptSummary, GatewayError
from outlast.model.clock import Instant, WallTime
from outlast.model.fault import Fault, FaultKind
from outlast.model.health import Unavailable
from outlast.model.plan import Plan, Skipped, SkipReason
from outlast.model.records import AttemptEnded
from outlast.resilience.failover import GiveUpReason

SATURATED_RETRY_S = 2.0
"""Retry-After when all candidates are merely full: a slot frees any moment."""

RETRY_AFTER_MAX_S = 60.0
"""A later recovery is told in the body alone: SDKs sleep on the header (errors.retry_after_max)."""

_NORMALIZED = {
    FaultKind.CONNECTION_ERROR: "provider_unavailable",
    FaultKind.TIMEOUT: "timeout",
    FaultKind.PROVIDER_5XX: "provider_unavailable",
    FaultKind.PROVIDER_RATE_LIMITED: "provider_rate_limited",
    FaultKind.PROVIDER_BILLING: "provider_unavailable",
    FaultKind.PROVIDER_AUTH: "unauthenticated",
    FaultKind.NOT_ENTITLED: "forbidden",
    FaultKind.PROVIDER_NOT_FOUND: "provider_unavailable",
    FaultKind.CALLER_ERROR: "invalid_request",
    FaultKind.PARAM_REJECTED: "invalid_request",
    FaultKind.CONTEXT_LENGTH: "invalid_request",
    FaultKind.REQUEST_TOO_LARGE: "invalid_request",
    FaultKind.REFUSAL: "invalid_request",
    FaultKind.DEADLINE: "timeout",
}
"""Normalised codes; what is not listed reads as `provider_unavailable`."""


class Tried(Struct, frozen=True):
    """One attempt of a walk that found no answer."""

    record: AttemptEnded
    display_name: str
    fault: Fault


def normalized_code(fault: Fault) -> str:
    """The public word for a fault."""
    if fault.kind is FaultKind.PROVIDER_AUTH and fault.status == 403:
        return "forbidden"
    return _NORMALIZED.get(fault.kind, "provider_unavailable")


class Ending(Struct, frozen=True):
    """Everything that the final error may say. `refusals` holds who could not be taken, and why."""

    plan: Plan
    tried: tuple[Tried, ...]
    refusals: tuple[tuple[Skipped, Unavailable], ...]
    still_resting: tuple[Unavailable | None, ...]  # every candidate, at the end; None: usable
    failovers: int
    now: Instant
    wall: WallTime

    @property
    def skipped(self) -> tuple[Skipped, ...]:
        return self.plan.skipped + tuple(skipped for skipped, _ in self.refusals)


def final_error(ending: Ending, reason: GiveUpReason, fault: Fault | None) -> GatewayError:
    """What the caller gets when nothing could be relayed to it."""
    match reason:
        case GiveUpReason.EXHAUSTED:
            return _exhausted(ending)
        case GiveUpReason.DEADLINE:
            return _error(
                ending,
                504,
                "deadline_exceeded",
                f"No answer for {ending.plan.asked} within its deadline of "
                f"{ending.plan.policy.deadline_s:g} s (failover.deadline).",
                error_type="timeout",
                normalized="timeout",
            )
        case GiveUpReason.FINAL:
            assert fault is not None
            return _final(ending, fault)
        case GiveUpReason.CALLER_GONE:
            return _error(
                ending,
                499,
                "client_gone",
                "The caller left.",
                error_type="client_gone",
                normalized=None,
                retryable=False,
            )
        case _:  # pragma: no cover - the type check proves that nothing is left
            assert_never(reason)


def _exhausted(ending: Ending) -> GatewayError:
    asked = ending.plan.asked
    kinds = {tried.fault.kind for tried in ending.tried}
    if not kinds:
        return _error(
            ending,
            503,
            "unavailable_route",
            f"no available provider for {asked}{_reasons(ending)}",
            error_type="provider_overloaded",
            normalized="provider_unavailable",
            retry_after_s=_soonest_s(ending) or SATURATED_RETRY_S,
        )
    if kinds == {FaultKind.PROVIDER_RATE_LIMITED}:
        hints = [t.fault.retry_after_s for t in ending.tried if t.fault.retry_after_s is not None]
        return _error(
            ending,
            429,
            "provider_rate_limited",
            f"Every provider tried for {asked} is rate limited.",
            error_type="rate_limit_exceeded",
            normalized="provider_rate_limited",
            retry_after_s=min(hints) if hints else _soonest_s(ending) or 1.0,
        )
    if kinds == {FaultKind.REQUEST_TOO_LARGE}:
        return _error(
            ending,
            413,
            "request_too_large",
            f"The request is larger than any provider of {asked} accepts.",
            error_type="payload_too_large",
            normalized="invalid_request",
            retryable=False,
        )
    if kinds == {FaultKind.CONTEXT_LENGTH}:
        return _error(
            ending,
            400,
            "context_length_exceeded",
            f"The prompt is longer than any provider of {asked} accepts.",
            error_type="context_length_exceeded",
            normalized="invalid_request",
            retryable=False,
        )
    return _error(
        ending,
        502,
        "all_routes_failed",
        f"All providers tried for {asked} failed.",
        error_type="provider_unavailable",
        normalized=normalized_code(ending.tried[-1].fault),
        retry_after_s=_all_rest_s(ending) or 1.0,
    )


def _final(ending: Ending, fault: Fault) -> GatewayError:
    """A fault that allows no other candidate, in our own words: none of the provider's travel."""
    kind = fault.kind
    if kind is FaultKind.PROVIDER_RATE_LIMITED:
        return _error(
            ending,
            429,
            "provider_rate_limited",
            f"The provider of {ending.plan.asked} is rate limited, and "
            "failover.on_rate_limit is off.",
            error_type="rate_limit_exceeded",
            normalized="provider_rate_limited",
            retry_after_s=fault.retry_after_s or 1.0,
        )
    if kind is FaultKind.OUTPUT_TOO_LARGE:
        size = ending.plan.policy.answer_bytes_max
        return _error(
            ending,
            502,
            "provider_output_too_large",
            f"The provider's answer is larger than streaming.answer_max ({size} bytes).",
            error_type="provider_unavailable",
            normalized="provider_unavailable",
            retryable=False,
        )
    if kind is FaultKind.GATEWAY_FAULT:
        return _error(
            ending,
            503,
            "gateway_overloaded",
            "The gateway has no upstream connection left for this request.",
            error_type="provider_overloaded",
            normalized="provider_unavailable",
            retry_after_s=1.0,
        )
    refused = kind is FaultKind.REFUSAL
    status = fault.status if fault.status is not None and 400 <= fault.status < 500 else 400
    return _error(
        ending,
        status,
        "refusal" if refused else "invalid_request",
        "The provider refused the request." if refused else "The provider rejected the request.",
        error_type="refusal" if refused else "invalid_request",
        normalized="invalid_request",
        retryable=False,
    )


def _error(
    ending: Ending,
    status: int,
    code: str,
    message: str,
    *,
    error_type: str,
    normalized: str | None,
    retryable: bool = True,
    retry_after_s: float | None = None,
) -> GatewayError:
    return GatewayError(
        status,
        code,
        message,
        error_type=error_type,
        retryable=retryable,
        normalized_code=normalized,
        retry_after_s=retry_after_s,
        retry_at=_retry_at(ending, retry_after_s),
        attempts=tuple(
            AttemptSummary(
                t.display_name, t.record.deployment, t.record.status, normalized_code(t.fault)
            )
            for t in ending.tried
        ),
        skipped=ending.skipped,
        failovers=ending.failovers,
    )


def _retry_at(ending: Ending, retry_after_s: float | None) -> WallTime | None:
    """The true instant of a recovery that lies beyond what Retry-After may say."""
    if retry_after_s is None or retry_after_s <= RETRY_AFTER_MAX_S:
        return None
    return ending.wall + retry_after_s


def _reasons(ending: Ending) -> str:
    counted = Counter(skipped.reason for skipped in ending.skipped)
    if not counted:
        return ""
    return ": " + ", ".join(f"{number} {reason.value}" for reason, number in counted.items())


def _soonest_s(ending: Ending) -> float | None:
    """Seconds until the first resting candidate may be taken again; None: nobody rests."""
    untils = [u.until for _, u in ending.refusals if u.until is not None]
    untils += [u.until for u in ending.still_resting if u is not None and u.until is not None]
    return max(min(untils) - ending.now, 1.0) if untils else None


def _all_rest_s(ending: Ending) -> float | None:
    """As `_soonest_s`, but None while any candidate could be taken at once."""
    resting = ending.still_resting
    if not resting or any(u is None or u.reason is SkipReason.AT_CAPACITY for u in resting):
        return None
    return _soonest_s(ending)

"""Rests that are no breaker state: one instant per scope until which it is left alone.

A 429 throttles a deployment; a refused key (401, 402, 403) takes a credential out; a model that
is not there (404) takes a deployment out. The longer of two rests wins. A success ends any rest
early, since it proves more than the order that began it.
"""

from outlast.model.clock import Instant
from outlast.model.fault import Fault, FaultKind
from outlast.model.health import Unavailable
from outlast.model.plan import SkipReason
from outlast.model.policy import RestPolicy


class Rest:
    """The rest of one deployment or one credential."""

    __slots__ = ("reason", "until")

    def __init__(self) -> None:
        self.until: Instant = 0.0
        self.reason = SkipReason.THROTTLED

    def order(self, reason: SkipReason, until: Instant) -> None:
        """Rest until then, unless it rests longer already."""
        if until > self.until:
            self.until = until
            self.reason = reason

    def end(self) -> None:
        self.until = 0.0

    def unavailable(self, now: Instant) -> Unavailable | None:
        """None when it does not rest now."""
        return Unavailable(self.reason, self.until) if now < self.until else None


def rest_ordered(fault: Fault, policy: RestPolicy) -> tuple[SkipReason, float] | None:
    """What rest a fault orders, in seconds from now; None: none.

    A 429's own Retry-After (capped) outranks `throttle_s`; `throttle_s` None turns throttling off
    altogether. A 429 that says 0 may be asked again at once.
    """
    kind = fault.kind
    rests = {
        FaultKind.PROVIDER_AUTH: policy.auth_s,
        FaultKind.PROVIDER_BILLING: policy.billing_s,
        FaultKind.NOT_ENTITLED: policy.not_found_s,
        FaultKind.PROVIDER_NOT_FOUND: policy.not_found_s,
    }
    if kind is FaultKind.PROVIDER_RATE_LIMITED:
        if policy.throttle_s is None:
            return None
        asked = fault.retry_after_s
        seconds = policy.throttle_s if asked is None else min(asked, policy.max_retry_after_s)
        return SkipReason.THROTTLED, seconds
    ordered = rests.get(kind)
    return None if ordered is None else (SkipReason.HARD_DOWN, ordered)

"""Rests ordered by 429, 401, 402, 403 and 404."""

import pytest

from outlast.model.fault import Fault, FaultKind
from outlast.model.health import Unavailable
from outlast.model.plan import SkipReason
from outlast.model.policy import RestPolicy
from outlast.resilience.rests import Rest, rest_ordered


def test_the_longer_of_two_rests_wins_and_a_success_ends_it():
    rest = Rest()
    assert rest.unavailable(0.0) is None
    rest.order(SkipReason.HARD_DOWN, 50.0)
    rest.order(SkipReason.THROTTLED, 20.0)
    assert rest.unavailable(49.9) == Unavailable(SkipReason.HARD_DOWN, 50.0)
    assert rest.unavailable(50.0) is None
    rest.order(SkipReason.THROTTLED, 90.0)
    rest.end()
    assert rest.unavailable(60.0) is None


LIMITED = FaultKind.PROVIDER_RATE_LIMITED
POLICY = RestPolicy(throttle_s=30.0, auth_s=60.0, billing_s=None, not_found_s=5.0)


@pytest.mark.parametrize(
    ("fault", "ordered"),
    [
        (Fault(LIMITED), (SkipReason.THROTTLED, 30.0)),
        (Fault(LIMITED, retry_after_s=7.0), (SkipReason.THROTTLED, 7.0)),
        (Fault(LIMITED, retry_after_s=0.0), (SkipReason.THROTTLED, 0.0)),
        (Fault(LIMITED, retry_after_s=1e9), (SkipReason.THROTTLED, 86400.0)),
        (Fault(FaultKind.PROVIDER_AUTH), (SkipReason.HARD_DOWN, 60.0)),
        (Fault(FaultKind.PROVIDER_BILLING), None),
        (Fault(FaultKind.NOT_ENTITLED), (SkipReason.HARD_DOWN, 5.0)),
        (Fault(FaultKind.PROVIDER_NOT_FOUND), (SkipReason.HARD_DOWN, 5.0)),
        (Fault(FaultKind.CALLER_ERROR), None),
        (Fault(FaultKind.PROVIDER_5XX, retry_after_s=9.0), None),
    ],
)
def test_what_rest_a_fault_orders(fault, ordered):
    assert rest_ordered(fault, POLICY) == ordered


def test_throttling_can_be_turned_off():
    assert rest_ordered(Fault(LIMITED, retry_after_s=7.0), RestPolicy(throttle_s=None)) is None

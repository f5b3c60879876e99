"""The walk, event by event: what follows from each failure."""

import pytest

from outlast.model.fault import Fault, FaultKind, Timer
from outlast.model.ids import CredentialId, DeploymentName, ProviderName
from outlast.model.plan import Candidate, Plan
from outlast.model.policy import (
    Backoff,
    CandidatePolicy,
    Jitter,
    RequestPolicy,
    RetryPolicy,
    RetryWhen,
    Timeouts,
)
from outlast.resilience.failover import (
    Begin,
    CallerLeft,
    Committed,
    Cut,
    Dispatched,
    Failed,
    Failover,
    GiveUp,
    GiveUpReason,
    HeadArrived,
    Phase,
    Refused,
    TimerFired,
    Try,
)

EXACT = Backoff(base_delay_s=0.2, max_delay_s=4.0, jitter=Jitter.NONE)
RETRY = RetryPolicy(backoff=EXACT)
SERVER_ERROR = Fault(FaultKind.PROVIDER_5XX, status=500)
LIMITED = FaultKind.PROVIDER_RATE_LIMITED


def plan_of(number: int, *, request=None, retry=RETRY, timeouts=None) -> Plan:
    policy = CandidatePolicy(retry=retry, timeouts=timeouts or Timeouts())
    candidates = tuple(
        Candidate(DeploymentName(n), ProviderName(n), CredentialId(n), policy)
        for n in "abcdef"[:number]
    )
    return Plan("m", "pool", "order", candidates, (), request or RequestPolicy())


def machine(plan: Plan, *, stream: bool = True) -> Failover:
    return Failover(plan, 0.0, stream=stream, chance=lambda: 0.5)


def begun(plan: Plan, *, stream: bool = True, others: bool = True) -> Failover:
    walk = machine(plan, stream=stream)
    assert walk.on(Begin(), 0.0) == [Try(0)]
    assert walk.on(Dispatched(0, others), 0.0) == []
    return walk


def fails(walk: Failover, fault: Fault, now: float = 1.0, *, others: bool = True):
    return walk.on(Failed(walk.candidate, fault, others), now)


def test_a_failure_moves_to_the_next_candidate_at_once():
    walk = begun(plan_of(2))
    assert fails(walk, SERVER_ERROR) == [Try(1)]
    walk.on(Dispatched(1, False), 1.0)
    assert walk.on(Committed(1), 2.0) == []
    assert (walk.phase, walk.failovers, walk.attempts) == (Phase.COMMITTED, 1, 2)
    assert walk.wake_at is None


def test_a_refused_candidate_costs_no_hop_and_no_time():
    walk = machine(plan_of(3))
    walk.on(Begin(), 0.0)
    assert walk.on(Refused(0), 0.0) == [Try(1)]
    assert walk.on(Refused(1), 0.0) == [Try(2)]
    assert walk.failovers == 0
    assert walk.on(Refused(2), 0.0) == [GiveUp(GiveUpReason.EXHAUSTED)]


def test_the_last_candidate_is_asked_again_up_to_max_attempts():
    walk = begun(plan_of(1), others=False)
    for expected_s in (0.2, 0.4):
        assert fails(walk, SERVER_ERROR, others=False) == []
        assert walk.wake_at == pytest.approx(1.0 + expected_s)
        assert walk.on(TimerFired(False), 1.0) == []  # too early
        assert walk.on(TimerFired(False), 2.0) == [Try(0)]
        walk.on(Dispatched(0, False), 2.0)
    over = fails(walk, SERVER_ERROR, 2.0, others=False)
    assert over == [GiveUp(GiveUpReason.EXHAUSTED)]
    assert walk.attempts == 3


def test_retry_always_asks_the_same_one_first():
    retry = RetryPolicy(when=RetryWhen.ALWAYS, max_attempts=2, backoff=EXACT)
    walk = begun(plan_of(2, retry=retry))
    assert fails(walk, Fault(FaultKind.TIMEOUT)) == []
    assert walk.on(TimerFired(True), 5.0) == [Try(0)]
    walk.on(Dispatched(0, True), 5.0)
    assert fails(walk, SERVER_ERROR, 5.0) == [Try(1)]


def test_retry_never_does_not():
    walk = begun(plan_of(1, retry=RetryPolicy(when=RetryWhen.NEVER)), others=False)
    assert fails(walk, SERVER_ERROR, others=False)[-1].reason is GiveUpReason.EXHAUSTED


def test_a_conflict_is_asked_again_once():
    walk = begun(plan_of(1), others=False)
    conflict = Fault(FaultKind.TRANSIENT_CONFLICT, status=409)
    assert fails(walk, conflict, others=False) == []
    walk.on(TimerFired(False), 5.0)
    walk.on(Dispatched(0, False), 5.0)
    assert fails(walk, conflict, 5.0, others=False)[-1].reason is GiveUpReason.EXHAUSTED


def test_retry_on_limits_which_kinds_are_retried():
    retry = RetryPolicy(retry_on=frozenset({"timeout"}), backoff=EXACT)
    walk = begun(plan_of(1, retry=retry), others=False)
    assert fails(walk, SERVER_ERROR, others=False)[-1].reason is GiveUpReason.EXHAUSTED


def test_a_short_retry_after_is_slept_exactly_and_ones_own_throttle_does_not_count():
    walk = begun(plan_of(1), others=False)
    assert fails(walk, Fault(LIMITED, retry_after_s=3.0), others=False) == []
    assert walk.wake_at == 4.0
    assert walk.on(TimerFired(False), 4.0) == [Try(0, slept_for_it=True)]


def test_a_long_retry_after_is_obeyed_by_moving_on():
    walk = begun(plan_of(2))
    assert fails(walk, Fault(LIMITED, retry_after_s=60.0)) == [Try(1)]
    walk = begun(plan_of(1), others=False)
    over = fails(walk, Fault(LIMITED, retry_after_s=60.0), others=False)
    assert over[-1].reason is GiveUpReason.EXHAUSTED


def test_any_retry_after_is_slept_where_the_deadline_alone_bounds_it():
    retry = RetryPolicy(max_retry_after_s=None)
    walk = begun(plan_of(1, retry=retry), others=False)
    assert fails(walk, Fault(LIMITED, retry_after_s=60.0), others=False) == []
    assert walk.wake_at == 61.0


def test_sleeping_never_passes_the_deadline():
    retry = RetryPolicy(max_retry_after_s=None)
    plan = plan_of(1, request=RequestPolicy(deadline_s=50.0), retry=retry)
    walk = begun(plan, others=False)
    over = fails(walk, Fault(LIMITED, retry_after_s=60.0), others=False)
    assert over[-1].reason is GiveUpReason.EXHAUSTED


def test_with_failover_off_for_rate_limits_a_429_is_final():
    walk = begun(plan_of(2, request=RequestPolicy(on_rate_limit=False)))
    fault = Fault(LIMITED, retry_after_s=1.0)
    assert fails(walk, fault) == [GiveUp(GiveUpReason.FINAL, fault)]


def test_the_callers_own_mistake_is_final():
    walk = begun(plan_of(2))
    fault = Fault(FaultKind.CALLER_ERROR, status=400)
    assert fails(walk, fault) == [GiveUp(GiveUpReason.FINAL, fault)]


def test_max_failovers_counts_dispatched_candidates():
    walk = begun(plan_of(4, request=RequestPolicy(max_failovers=1)))
    assert fails(walk, SERVER_ERROR) == [Try(1)]
    assert walk.on(Refused(1), 1.0) == [Try(2)]
    walk.on(Dispatched(2, True), 1.0)
    # The one hop is used: this is the last candidate, so it is asked again.
    assert fails(walk, SERVER_ERROR) == []
    assert walk.phase is Phase.WAITING


def test_max_total_attempts_ends_the_walk():
    walk = begun(plan_of(3, request=RequestPolicy(max_total_attempts=2)))
    assert fails(walk, SERVER_ERROR) == [Try(1)]
    walk.on(Dispatched(1, True), 1.0)
    assert fails(walk, SERVER_ERROR)[-1] == GiveUp(GiveUpReason.EXHAUSTED, SERVER_ERROR)


def test_unlimited_attempts_are_still_bounded():
    plan = plan_of(2, request=RequestPolicy(max_total_attempts=None, max_failovers=None))
    assert (plan.attempts_max, plan.calls_max) == (7, 14)
    walk = begun(plan)
    assert fails(walk, SERVER_ERROR) == [Try(1)]


def test_hop_backoff_waits_between_candidates():
    walk = begun(plan_of(2, request=RequestPolicy(hop_backoff=EXACT)))
    assert fails(walk, SERVER_ERROR) == []
    assert walk.wake_at == pytest.approx(1.2)
    assert walk.on(TimerFired(True), 1.3) == [Try(1)]


def test_the_deadline_ends_a_wait():
    request = RequestPolicy(hop_backoff=EXACT, deadline_s=1.1)
    walk = begun(plan_of(2, request=request))
    assert fails(walk, SERVER_ERROR) == []
    assert walk.wake_at == 1.1
    assert walk.on(TimerFired(True), 1.1) == [GiveUp(GiveUpReason.DEADLINE)]


def test_no_first_token_in_time_cuts_and_moves_on():
    walk = begun(plan_of(2))
    assert walk.wake_at == 20.0
    assert walk.on(TimerFired(True), 19.0) == []
    fault = Fault(FaultKind.TIMEOUT, timer=Timer.FIRST_TOKEN)
    assert walk.on(TimerFired(True), 20.0) == [Cut(0, fault), Try(1)]
    walk.on(Dispatched(1, False), 20.0)
    assert walk.wake_at == 50.0  # the last candidate has longer


def test_the_last_candidate_is_also_the_one_after_which_no_attempt_is_left():
    walk = begun(plan_of(3, request=RequestPolicy(max_total_attempts=1)))
    # Dispatch 1 of 1: `attempts` says so only after the dispatch, hence 30 s at once.
    assert walk.wake_at == 30.0


def test_without_a_first_token_limit_the_deadline_alone_bounds_a_stream():
    timeouts = Timeouts(first_token_s=None, first_token_last_s=None)
    walk = begun(plan_of(2, timeouts=timeouts))
    assert walk.wake_at == walk.deadline


def test_response_headers_in_time_stop_that_timer():
    timeouts = Timeouts(response_headers_s=5.0)
    walk = begun(plan_of(2, timeouts=timeouts))
    assert walk.wake_at == 5.0
    walk.on(HeadArrived(0), 4.0)
    assert walk.wake_at == 20.0
    late = begun(plan_of(2, timeouts=timeouts))
    headers = Fault(FaultKind.TIMEOUT, timer=Timer.RESPONSE_HEADERS)
    assert late.on(TimerFired(True), 5.0)[0] == Cut(0, headers)


def test_a_whole_attempt_has_the_request_limit():
    walk = begun(plan_of(2), stream=False)
    assert walk.wake_at == 120.0
    fault = Fault(FaultKind.TIMEOUT, timer=Timer.REQUEST)
    assert walk.on(TimerFired(True), 120.0) == [Cut(0, fault), Try(1)]


def test_a_slice_shortened_by_the_deadline_is_nobodys_fault():
    walk = begun(plan_of(2, request=RequestPolicy(deadline_s=10.0)))
    assert walk.on(TimerFired(True), 10.0) == [
        Cut(0, Fault(FaultKind.DEADLINE)),
        GiveUp(GiveUpReason.DEADLINE),
    ]


def test_an_own_limit_that_ends_with_the_deadline_is_blamed():
    walk = begun(plan_of(2, request=RequestPolicy(deadline_s=20.0)))
    assert walk.on(TimerFired(True), 20.0) == [
        Cut(0, Fault(FaultKind.TIMEOUT, timer=Timer.FIRST_TOKEN)),
        GiveUp(GiveUpReason.DEADLINE),
    ]


def test_no_attempt_starts_after_the_deadline():
    walk = begun(plan_of(2, request=RequestPolicy(deadline_s=10.0)))
    assert fails(walk, SERVER_ERROR, 11.0) == [GiveUp(GiveUpReason.DEADLINE)]


def test_a_caller_that_leaves_ends_every_phase():
    running = begun(plan_of(2))
    gone = Fault(FaultKind.CALLER_GONE)
    assert running.on(CallerLeft(), 1.0) == [Cut(0, gone), GiveUp(GiveUpReason.CALLER_GONE)]
    waiting = begun(plan_of(1), others=False)
    fails(waiting, SERVER_ERROR, others=False)
    assert waiting.on(CallerLeft(), 1.0) == [GiveUp(GiveUpReason.CALLER_GONE)]


def test_timers_that_come_too_late_do_nothing():
    walk = begun(plan_of(1), others=False)
    walk.on(Committed(0), 1.0)
    assert walk.on(TimerFired(False), 500.0) == []

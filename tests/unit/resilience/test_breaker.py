"""The breaker, step by step. Time is a number here."""

import pytest

from outlast.model.fault import Effect
from outlast.model.policy import BreakerPolicy
from outlast.resilience.breaker import QUIET_COOLDOWNS, Breaker, Moved, Permit, State

POLICY = BreakerPolicy(
    consecutive_failures=2,
    open_duration_s=10.0,
    open_multiplier=2.0,
    max_open_duration_s=40.0,
    open_jitter=0.0,
)


def make(policy: BreakerPolicy = POLICY, chance: float = 0.5) -> tuple[Breaker, list[Moved]]:
    moves: list[Moved] = []
    return Breaker(policy, lambda: chance, moves.append), moves


def admitted(breaker: Breaker, now: float) -> Permit:
    permit = breaker.admit(now)
    assert permit is not None
    return permit


def fail(breaker: Breaker, now: float) -> None:
    breaker.settle(admitted(breaker, now), Effect.FAILURE, now)


def succeed(breaker: Breaker, now: float) -> None:
    permit = admitted(breaker, now)
    breaker.first_token(permit, now)
    breaker.settle(permit, Effect.SUCCESS, now)


def tripped(policy: BreakerPolicy = POLICY, chance: float = 0.5) -> tuple[Breaker, list[Moved]]:
    breaker, moves = make(policy, chance)
    for _ in range(policy.consecutive_failures or 0):
        fail(breaker, 0.0)
    return breaker, moves


def test_trips_at_the_configured_streak_and_not_before():
    breaker, moves = make()
    fail(breaker, 0.0)
    assert breaker.state is State.CLOSED
    fail(breaker, 0.0)
    assert breaker.state is State.OPEN
    assert moves == [Moved(State.CLOSED, State.OPEN, 2)]
    assert breaker.admit(9.9) is None
    assert breaker.rests_until(9.9) == 10.0


def test_a_success_at_its_end_resets_the_streak():
    breaker, _ = make()
    fail(breaker, 0.0)
    succeed(breaker, 0.0)
    fail(breaker, 0.0)
    assert breaker.state is State.CLOSED


def test_a_first_token_alone_does_not_reset_the_streak():
    breaker, _ = make()
    for _ in range(2):
        permit = admitted(breaker, 0.0)
        breaker.first_token(permit, 0.0)
        breaker.settle(permit, Effect.FAILURE, 1.0)
    assert breaker.state is State.OPEN
    assert breaker.counts(1.0) == (0, 2)


def test_without_a_streak_limit_it_never_trips():
    breaker, _ = make(BreakerPolicy(consecutive_failures=None))
    for _ in range(100):
        fail(breaker, 0.0)
    assert breaker.state is State.CLOSED
    assert breaker.rests_until(0.0) is None


@pytest.mark.parametrize("effect", [Effect.NEUTRAL, Effect.THROTTLE, Effect.HARD_DOWN])
def test_outcomes_that_blame_nobody_change_nothing(effect):
    breaker, _ = make()
    fail(breaker, 0.0)
    for _ in range(1000):
        breaker.settle(admitted(breaker, 0.0), effect, 0.0)
    assert (breaker.state, breaker.streak, breaker.counts(0.0)) == (State.CLOSED, 1, (0, 1))


def test_half_open_lets_exactly_the_configured_probes_out():
    breaker, _ = tripped()
    assert breaker.rests_until(10.0) is None
    admitted(breaker, 10.0)
    assert [breaker.admit(10.0) for _ in range(50)] == [None] * 50
    assert breaker.rests_until(10.0) == 10.0


def test_a_neutral_probe_gives_its_slot_back():
    breaker, _ = tripped()
    breaker.settle(admitted(breaker, 10.0), Effect.NEUTRAL, 11.0)
    assert breaker.state is State.HALF_OPEN
    admitted(breaker, 11.0)


def test_a_probes_first_token_closes_and_its_later_break_is_the_new_streaks_first_failure():
    breaker, moves = tripped()
    probe = admitted(breaker, 10.0)
    breaker.first_token(probe, 10.5)
    breaker.first_token(probe, 10.6)  # said once
    assert breaker.state is State.CLOSED
    breaker.settle(probe, Effect.FAILURE, 12.0)
    assert breaker.streak == 1
    fail(breaker, 12.0)
    assert breaker.state is State.OPEN
    assert [m.after for m in moves] == [State.OPEN, State.HALF_OPEN, State.CLOSED, State.OPEN]


def test_a_whole_answer_closes_without_a_first_token():
    breaker, _ = tripped()
    breaker.settle(admitted(breaker, 10.0), Effect.SUCCESS, 11.0)
    assert breaker.state is State.CLOSED


def test_several_successes_to_close_are_all_needed():
    breaker, _ = tripped(
        BreakerPolicy(
            consecutive_failures=1, open_duration_s=1.0, open_jitter=0.0, successes_to_close=3
        )
    )
    breaker.settle(admitted(breaker, 1.0), Effect.SUCCESS, 1.0)
    succeed(breaker, 1.0)
    assert breaker.state is State.HALF_OPEN
    breaker.settle(admitted(breaker, 1.0), Effect.SUCCESS, 1.0)
    assert breaker.state is State.CLOSED


def test_a_probe_that_began_but_failed_reopens_while_more_successes_are_needed():
    policy = BreakerPolicy(
        consecutive_failures=1, open_duration_s=1.0, open_jitter=0.0, successes_to_close=2
    )
    breaker, _ = tripped(policy)
    probe = admitted(breaker, 1.0)
    breaker.first_token(probe, 1.0)
    assert breaker.state is State.HALF_OPEN
    breaker.settle(probe, Effect.FAILURE, 1.0)
    assert breaker.state is State.OPEN


def test_a_stragglers_outcome_from_before_the_trip_is_ignored():
    breaker, _ = make()
    straggler, other = admitted(breaker, 0.0), admitted(breaker, 0.0)
    fail(breaker, 0.0)
    fail(breaker, 0.0)
    admitted(breaker, 10.0)  # the probe is out
    breaker.settle(straggler, Effect.SUCCESS, 10.0)
    breaker.first_token(other, 10.0)
    breaker.settle(other, Effect.FAILURE, 10.0)
    assert breaker.state is State.HALF_OPEN
    assert breaker.admit(10.0) is None


def test_the_cooldown_grows_to_its_cap_and_forgets_after_a_long_quiet():
    breaker, _ = tripped()
    lengths, now = [], 0.0
    for _ in range(4):
        lengths.append(breaker.open_until - now)
        now = breaker.open_until
        fail(breaker, now)
    assert lengths == [10.0, 20.0, 40.0, 40.0]
    now = breaker.open_until
    succeed(breaker, now)
    now += QUIET_COOLDOWNS * POLICY.max_open_duration_s + 1
    fail(breaker, now)
    fail(breaker, now)
    assert breaker.open_until - now == 10.0


def test_the_cooldown_stays_finite_after_thousands_of_trips():
    breaker, _ = tripped()
    for _ in range(2000):
        fail(breaker, breaker.open_until)
    assert breaker.state is State.OPEN


@pytest.mark.parametrize(("chance", "cooldown"), [(0.0, 9.0), (0.5, 10.0), (0.999999, 11.0)])
def test_jitter_spreads_the_cooldown_both_ways(chance, cooldown):
    policy = BreakerPolicy(consecutive_failures=1, open_duration_s=10.0, open_jitter=0.1)
    breaker, _ = tripped(policy, chance)
    assert breaker.open_until == pytest.approx(cooldown, rel=1e-4)


def test_one_attempt_has_exactly_one_outcome():
    breaker, _ = make()
    permit = admitted(breaker, 0.0)
    breaker.settle(permit, Effect.SUCCESS, 0.0)
    breaker.first_token(permit, 0.0)
    with pytest.raises(AssertionError, match="exactly one outcome"):
        breaker.settle(permit, Effect.SUCCESS, 0.0)
    assert breaker.counts(0.0) == (1, 0)

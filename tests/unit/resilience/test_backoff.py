"""Delays: their formula at both ends of chance."""

import pytest

from outlast.model.policy import Backoff, Jitter
from outlast.resilience.backoff import delay_s


def delays(jitter: Jitter, chance: float, base_s: float = 0.1, cap_s: float = 2.0) -> list[float]:
    backoff = Backoff(base_delay_s=base_s, max_delay_s=cap_s, jitter=jitter)
    return [round(delay_s(backoff, n, lambda: chance), 6) for n in range(1, 8)]


def test_without_jitter_delays_double_up_to_the_cap():
    assert delays(Jitter.NONE, 0.9) == [0.1, 0.2, 0.4, 0.8, 1.6, 2.0, 2.0]


def test_full_jitter_draws_below_the_delay():
    assert delays(Jitter.FULL, 0.0) == [0.0] * 7
    assert delays(Jitter.FULL, 0.5) == [0.05, 0.1, 0.2, 0.4, 0.8, 1.0, 1.0]


def test_additive_jitter_adds_up_to_one_base_after_the_cap():
    assert delays(Jitter.ADDITIVE, 0.99)[-1] == pytest.approx(2.099)
    assert delays(Jitter.ADDITIVE, 0.0) == delays(Jitter.NONE, 0.0)


def test_huge_numbers_stay_finite():
    assert delay_s(Backoff(jitter=Jitter.NONE), 10**6, lambda: 0.0) == 4.0

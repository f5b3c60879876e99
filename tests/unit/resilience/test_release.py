"""The idle clock of a committed stream."""

from outlast.resilience.release import COMMENTS_IN_A_ROW_MAX, IdleClock


def test_data_moves_the_stall_and_comments_only_a_few_times_in_a_row():
    idle = IdleClock(10.0, 0.0)
    assert idle.stalls_at == 10.0
    idle.data(4.0)
    assert idle.stalls_at == 14.0
    for number in range(10):
        idle.comment(5.0 + number)
    assert idle.stalls_at == 10.0 + 5.0 + COMMENTS_IN_A_ROW_MAX - 1
    idle.data(16.0)
    idle.comment(17.0)
    assert idle.stalls_at == 27.0


def test_time_that_the_caller_costs_is_added():
    idle = IdleClock(10.0, 0.0)
    idle.caller_was_slow(3.0)
    assert idle.stalls_at == 13.0


def test_without_a_limit_nothing_stalls():
    idle = IdleClock(None, 0.0)
    idle.data(1.0)
    idle.comment(1.0)
    idle.caller_was_slow(5.0)
    assert idle.stalls_at is None

"""Counts over the last seconds against a plain list of outcomes."""

from hypothesis import given
from hypothesis import strategies as st

from outlast.resilience.window import BUCKETS, Window


@given(st.lists(st.tuples(st.floats(0, 20), st.booleans()), max_size=60), st.floats(0.5, 60))
def test_counts_equal_a_plain_list_over_whole_buckets(steps, window_s):
    window, seen, now = Window(window_s), [], 0.0
    bucket_s = window_s / BUCKETS
    for gap, failed in steps:
        now += gap
        window.record(now, failed=failed)
        seen.append((int(now / bucket_s), failed))
        newest = int(now / bucket_s)
        alive = [f for number, f in seen if number > newest - BUCKETS]
        assert window.counts(now) == (alive.count(False), alive.count(True))


def test_a_provisional_success_that_fails_is_replaced_not_added():
    window = Window(10.0)
    bucket = window.record(1.0, failed=False)
    window.replace(bucket, 5.0)
    assert window.counts(5.0) == (0, 1)


def test_replacing_a_success_that_left_the_window_counts_the_failure_alone():
    window = Window(10.0)
    bucket = window.record(1.0, failed=False)
    window.replace(bucket, 100.0)
    assert window.counts(100.0) == (0, 1)

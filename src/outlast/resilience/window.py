"""Outcomes of the last seconds, in ten buckets.

Owns nothing but counts. The ring is anchored to multiples of the bucket's length, so a bucket
always means the same stretch of time however irregularly it is read; what is counted therefore
covers between nine and ten tenths of `window_s`.
"""

from typing import NamedTuple

from outlast.model.clock import Instant

BUCKETS = 10


class Counts(NamedTuple):
    """Outcomes inside the window."""

    successes: int
    failures: int


class Window:
    """Success and failure counts over the last `window_s` seconds."""

    def __init__(self, window_s: float) -> None:
        self._bucket_s = window_s / BUCKETS
        self._successes = [0] * BUCKETS
        self._failures = [0] * BUCKETS
        self._newest = 0  # number of the newest bucket since the clock's zero

    def record(self, now: Instant, *, failed: bool) -> int:
        """Count one outcome; returns the number of its bucket, for `replace`."""
        self._advance(now)
        ring = self._failures if failed else self._successes
        ring[self._newest % BUCKETS] += 1
        return self._newest

    def replace(self, bucket: int, now: Instant) -> None:
        """A success that was counted provisionally in `bucket` failed: count it as a failure.

        When its bucket has left the window the success is gone already and only the failure is
        counted, now.
        """
        self._advance(now)
        if bucket > self._newest - BUCKETS:
            self._successes[bucket % BUCKETS] -= 1
        self._failures[self._newest % BUCKETS] += 1

    def counts(self, now: Instant) -> Counts:
        self._advance(now)
        return Counts(sum(self._successes), sum(self._failures))

    def _advance(self, now: Instant) -> None:
        number = int(now / self._bucket_s)
        step = number - self._newest
        if step <= 0:
            return
        for passed in range(self._newest + 1, self._newest + 1 + min(step, BUCKETS)):
            self._successes[passed % BUCKETS] = 0
            self._failures[passed % BUCKETS] = 0
        self._newest = number

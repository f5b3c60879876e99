"""What may happen to a stream after commit: the longest gap that is still alive.

Owns the idle clock of one committed stream. Data events set it; bytes that are only comments set
it too, but at most `COMMENTS_IN_A_ROW_MAX` times in a row, so a provider that only pings is a
stall in the end. Time that the caller makes us wait does not count.
"""

from outlast.model.clock import Instant

COMMENTS_IN_A_ROW_MAX = 3
"""Keep-alives without data that may still prolong the wait."""


class IdleClock:
    """When a committed stream counts as stalled. `idle_s` None: never."""

    __slots__ = ("_comments", "_idle_s", "stalls_at")

    def __init__(self, idle_s: float | None, now: Instant) -> None:
        self._idle_s = idle_s
        self._comments = 0
        self.stalls_at: Instant | None = None if idle_s is None else now + idle_s

    def data(self, now: Instant) -> None:
        """A data event came."""
        if self._idle_s is not None:
            self.stalls_at = now + self._idle_s
            self._comments = 0

    def comment(self, now: Instant) -> None:
        """Bytes came that hold no data event."""
        if self._idle_s is not None and self._comments < COMMENTS_IN_A_ROW_MAX:
            self.stalls_at = now + self._idle_s
            self._comments += 1

    def caller_was_slow(self, wait_s: float) -> None:
        """The caller held us up for `wait_s` seconds, in which nothing was read."""
        if self.stalls_at is not None:
            self.stalls_at += wait_s

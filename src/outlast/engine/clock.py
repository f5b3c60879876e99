"""The running loop's time, real or virtual."""

import asyncio
from collections.abc import Callable

from outlast.model.clock import Instant, WallTime
from outlast.ports import Handle


class LoopClock:
    """`ports.Clock` on an event loop. `wall_at_zero` is wall time minus the loop's time."""

    __slots__ = ("_loop", "_wall_at_zero", "now")

    def __init__(self, loop: asyncio.AbstractEventLoop, wall_at_zero: WallTime) -> None:
        self._loop = loop
        self._wall_at_zero = wall_at_zero
        self.now: Callable[[], Instant] = loop.time

    def wall(self) -> WallTime:
        return self._wall_at_zero + self._loop.time()

    def call_at(self, when: Instant, callback: Callable[[], None]) -> Handle:
        return self._loop.call_at(when, callback)

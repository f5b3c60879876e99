"""One timer for all connections of a loop. Owns when to look; each connection knows what to do.

Per-request timers cost more than a microsecond each; one walk over 2,000 connections four times a
second does not. The timer runs from the first connection to the last, so an idle gateway sleeps.
"""

import asyncio
from typing import Protocol

from uvicorn.server import ServerState

from outlast.server.limits import Limits


class Swept(Protocol):
    """A connection that can tell whether its time is up."""

    def sweep(self, now: float) -> None: ...


class DataPlaneState(ServerState):
    """What the connections of one listener share.

    `served` counts connections that were not refused for their number. `quiet` is set while
    there is no connection at all.
    """

    def __init__(self, limits: Limits) -> None:
        super().__init__()
        self.limits = limits
        self.served = 0
        self.quiet = asyncio.Event()
        self.quiet.set()
        self._live: set[Swept] = set()
        self._timer: asyncio.TimerHandle | None = None

    def enter(self, connection: Swept, loop: asyncio.AbstractEventLoop) -> None:
        """A connection was accepted."""
        self._live.add(connection)
        self.quiet.clear()
        if self._timer is None:
            self._timer = loop.call_later(self.limits.sweep_s, self._sweep, loop)

    def leave(self, connection: Swept) -> None:
        """A connection is gone."""
        self._live.discard(connection)
        if self._live:
            return
        self.quiet.set()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _sweep(self, loop: asyncio.AbstractEventLoop) -> None:
        self._timer = loop.call_later(self.limits.sweep_s, self._sweep, loop)
        now = loop.time()
        for connection in list(self._live):
            connection.sweep(now)

"""Which connections exist and which of them are free. Owns both sets and their limits.

Free connections are a stack per origin: the last one used is the likeliest to be alive, and those
at the bottom grow old and are swept. One timer serves the whole pool and exists only while
something is idle.

Surprising cases: a connection counts from the moment somebody intends to open it, so that a burst
cannot open more than the limit. `admit` closes the connection that has been idle longest, of any
origin, before it says no.
"""

import asyncio

from outlast.model.topology import Origin
from outlast.upstream.connection import Connection
from outlast.upstream.limits import Limits

CLOSE_WAIT_S = 2.0
"""How long a closing client waits for its sockets: a loop that forgets one must not keep us."""


class Pool:
    """The connections of one client."""

    def __init__(self, loop: asyncio.AbstractEventLoop, limits: Limits) -> None:
        self._loop = loop
        self._limits = limits
        self._existing: set[Connection] = set()
        self._idle: dict[Origin, list[Connection]] = {}
        self._sweep: asyncio.TimerHandle | None = None
        self._emptied: asyncio.Future[None] | None = None

    @property
    def existing_count(self) -> int:
        """Connections that are open or being opened."""
        return len(self._existing)

    @property
    def idle_count(self) -> int:
        """Connections that nobody uses."""
        return sum(map(len, self._idle.values()))

    def admit(self, origin: Origin) -> Connection | None:
        """A place for a connection that is yet to be opened; None: the limit is reached."""
        if len(self._existing) >= self._limits.connections_max and not self._evict():
            return None
        connection = Connection(origin, self.forget)
        self._existing.add(connection)
        return connection

    def take(self, origin: Origin) -> Connection | None:
        """A free connection, the most recently used one first."""
        stack = self._idle.get(origin)
        while stack:
            connection = stack.pop()
            if not stack:
                del self._idle[origin]
            if connection.usable:
                return connection
        return None

    def put(self, connection: Connection) -> None:
        """Keep a connection whose exchange ended cleanly."""
        stack = self._idle.setdefault(connection.origin, [])
        connection.idle_since = self._loop.time()
        stack.append(connection)
        if len(stack) > self._limits.idle_per_origin_max:
            stack.pop(0).abort()
        if self._sweep is None:
            self._sweep = self._loop.call_later(self._limits.idle_expiry_s, self._expire)

    def forget(self, connection: Connection) -> None:
        """A connection is gone, or never came about."""
        self._existing.discard(connection)
        stack = self._idle.get(connection.origin)
        if stack is not None and connection in stack:
            stack.remove(connection)
            if not stack:
                del self._idle[connection.origin]
        if not self._existing and self._emptied is not None and not self._emptied.done():
            self._emptied.set_result(None)

    async def aclose(self) -> None:
        """Tell the receivers, close everything and wait until the sockets are gone."""
        if self._sweep is not None:
            self._sweep.cancel()
            self._sweep = None
        self._idle.clear()
        for connection in list(self._existing):
            if connection.receiver is not None:
                connection.receiver.shut()
            connection.abort()
        if self._existing:
            self._emptied = self._loop.create_future()
            await asyncio.wait([self._emptied], timeout=CLOSE_WAIT_S)
        # The last sockets may have been given up only now; they close at the loop's next turn.
        turned = self._loop.create_future()
        self._loop.call_soon(turned.set_result, None)
        await turned

    def _evict(self) -> bool:
        if not self._idle:
            return False
        # The bottom of each stack is its oldest.
        oldest = min((stack[0] for stack in self._idle.values()), key=lambda one: one.idle_since)
        oldest.abort()
        self.forget(oldest)
        return True

    def _expire(self) -> None:
        self._sweep = None
        oldest_allowed = self._loop.time() - self._limits.idle_expiry_s
        for origin, stack in list(self._idle.items()):
            kept = [one for one in stack if one.idle_since > oldest_allowed]
            for connection in stack[: len(stack) - len(kept)]:
                connection.abort()
            if kept:
                self._idle[origin] = kept
            else:
                del self._idle[origin]
        if self._idle:
            soonest = min(stack[0].idle_since for stack in self._idle.values())
            when = soonest + self._limits.idle_expiry_s
            self._sweep = self._loop.call_at(when, self._expire)

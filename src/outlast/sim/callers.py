"""Simulated callers: `ports.Responder` that writes down what it is given, and when.

A caller may leave early or read slowly. What breaks the port's own rules (two answers, bytes
before a start, anything after the end) is kept as `misuse`, for the checkers to report.
"""

import asyncio
from collections.abc import Callable

from outlast.errors import GatewayError
from outlast.model.clock import Instant
from outlast.ports import Clock, Headers
from outlast.sim.world import Visit


class Caller:
    """One caller.

    `answered_at` is when the first byte (or the error) reached it, `left_at` when it closed the
    connection, `over_at` when the gateway was done with it.
    """

    def __init__(self, visit: Visit, clock: Clock) -> None:
        self.visit = visit
        self.gone = False
        self.cut_off = False
        self.answered_at: Instant | None = None
        self.left_at: Instant | None = None
        self.over_at: Instant | None = None
        self.status: int | None = None
        self.headers: dict[bytes, bytes] = {}
        self.parts: list[bytes] = []
        self.streamed = False
        self.ended = False
        self.aborted = False
        self.error: GatewayError | None = None
        self.misuse: list[str] = []
        self._clock = clock
        self._on_gone: list[Callable[[], None]] = []
        self._reading: asyncio.Event | None = None

    @property
    def body(self) -> bytes:
        return b"".join(self.parts)

    @property
    def stayed(self) -> bool:
        """Whether it was there to the end, so that it may expect an answer."""
        return not self.gone and not self.cut_off

    def leave(self) -> None:
        """Close the connection, unless all has come."""
        if self.gone or self.over_at is not None:
            return
        self.gone = True
        self.left_at = self._clock.now()
        if self._reading is not None:
            self._reading.set()
        callbacks, self._on_gone = self._on_gone, []
        for callback in callbacks:
            callback()

    def on_gone(self, callback: Callable[[], None]) -> None:
        if self.gone:
            self._clock.call_at(self._clock.now(), callback)
        else:
            self._on_gone.append(callback)

    async def whole(self, status: int, headers: Headers, body: bytes) -> None:
        self._begin(status, headers)
        if not self.gone:
            self.parts.append(body)
            self.ended = True

    async def start(self, status: int, headers: Headers) -> None:
        self._begin(status, headers)
        self.streamed = True

    async def write(self, data: bytes) -> None:
        if not self.streamed or self.ended or self.aborted:
            self.misuse.append("bytes outside of a stream")
        if self.gone:
            return
        self.parts.append(data)
        slow_s = self.visit.slow_write_s
        if slow_s is not None:
            self._reading = asyncio.Event()
            timer = self._clock.call_at(self._clock.now() + slow_s, self._reading.set)
            try:
                await self._reading.wait()
            finally:
                timer.cancel()

    async def end(self) -> None:
        if not self.streamed or self.ended or self.aborted:
            self.misuse.append("an end outside of a stream")
        self.ended = not self.gone

    def abort(self) -> None:
        self.aborted = True

    def fail(self, error: GatewayError) -> None:
        """The answer is an error that the server would word."""
        self._begin(error.status, [])
        self.error = error

    def _begin(self, status: int, headers: Headers) -> None:
        if self.status is not None:
            self.misuse.append("a second answer")
        if self.gone:
            return
        self.answered_at = self._clock.now()
        self.status = status
        self.headers = dict(headers)

"""The socket host: plays behaviours over HTTP/1.1 on the loopback interface.

Owns listeners, their connections and what is counted about them. The wire is as plain as can be:
keep-alive, chunked unless the script announces a `content-length`, no TLS. Real sockets are meant
(tests and the demo providers), so a virtual loop refuses it.

Surprising cases: an accepted connection cannot refuse, so `Refuse` and `Blackhole` close without
an answer here; `closed_port` and `silent_port` lend addresses that really do. `Cut` sends a TCP
reset (linger 0), because an orderly close would read as the end of a body without framing.
"""

import asyncio
import random
import socket
import struct
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from http import HTTPStatus
from typing import cast

import httptools

from outlast.sim.player import Player
from outlast.sim.provider import Behaviour, SimRequest
from outlast.sim.script import (
    Blackhole,
    Body,
    Cut,
    End,
    Hang,
    Head,
    Refuse,
    ScriptHeaders,
    Step,
    Wait,
    content_length,
)
from outlast.sim.virtual_loop import running_clock

REQUESTS_KEPT_MAX = 1_000
"""The newest requests stay readable for tests; a demo that runs for days must not grow."""

_REASONS = {status.value: status.phrase for status in HTTPStatus}
_LINGER_NONE = struct.pack("ii", 1, 0)


class SimServer:
    """One listener. `calls` counts requests, `left_early` those whose caller closed midway."""

    def __init__(self, behaviour: Behaviour, *, seed: int) -> None:
        self.behaviour = behaviour
        self.port = 0
        self.calls = 0
        self.connections_made = 0
        self.left_early = 0
        self.requests: deque[SimRequest] = deque(maxlen=REQUESTS_KEPT_MAX)
        self._rng = random.Random(seed)  # noqa: S311 - chance of a simulation
        self._open: set[_Connection] = set()
        self._waiters: list[tuple[Callable[[], bool], asyncio.Event]] = []

    @property
    def open_connections(self) -> int:
        return len(self._open)

    async def reached(self, condition: Callable[[], bool], *, limit_s: float = 5.0) -> None:
        """Wait until `condition` holds; it is looked at whenever a count changes.

        Raises:
            TimeoutError: it did not hold within `limit_s`.
        """
        if condition():
            return
        event = asyncio.Event()
        waiter = (condition, event)
        self._waiters.append(waiter)
        try:
            async with asyncio.timeout(limit_s):
                await event.wait()
        finally:
            self._waiters.remove(waiter)

    async def closed(self, *, open_at_most: int = 0, limit_s: float = 5.0) -> None:
        """Wait until no more than `open_at_most` connections are open.

        Raises:
            TimeoutError: more of them were open for all of `limit_s`.
        """
        await self.reached(lambda: len(self._open) <= open_at_most, limit_s=limit_s)

    def called(self, request: SimRequest) -> tuple[Step, ...]:
        """Count a request and ask what to do with it."""
        number = self.calls
        self.calls += 1
        self.requests.append(request)
        self._changed()
        return self.behaviour(request, number, self._rng)

    def opened(self, connection: "_Connection") -> None:
        self._open.add(connection)
        self.connections_made += 1
        self._changed()

    def lost(self, connection: "_Connection", *, midway: bool) -> None:
        self._open.discard(connection)
        self.left_early += midway
        self._changed()

    def abort(self) -> None:
        """Close every connection at once."""
        for connection in list(self._open):
            connection.abort()

    def _changed(self) -> None:
        for condition, event in self._waiters:
            if condition():
                event.set()


class _Connection(asyncio.Protocol):
    """One accepted connection: reads requests and plays one script at a time."""

    def __init__(self, server: SimServer) -> None:
        self._server = server
        self._transport: asyncio.Transport
        self._parser = httptools.HttpRequestParser(self)
        self._player: Player | None = None
        self._closing = False
        self._chunked = True
        self._owed_bytes: int | None = None
        self._head_sent = False
        self._fresh()

    def _fresh(self) -> None:
        self._target = b""
        self._headers: list[tuple[bytes, bytes]] = []
        self._body: list[bytes] = []

    def abort(self) -> None:
        self._closing = True
        self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's is no subclass of it
        self._server.opened(self)

    def connection_lost(self, _exc: Exception | None) -> None:
        midway = self._player is not None and not self._closing
        if self._player is not None:
            self._player.stop()
        self._server.lost(self, midway=midway)

    def data_received(self, data: bytes) -> None:
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError:
            self.abort()

    def on_url(self, url: bytes) -> None:
        self._target += url

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers.append((name.lower(), value))

    def on_body(self, body: bytes) -> None:
        self._body.append(body)

    def on_message_complete(self) -> None:
        if self._player is not None:  # a pipelined request; no client of ours sends any
            self.abort()
            return
        method = self._parser.get_method()
        request = SimRequest(method, self._target, tuple(self._headers), b"".join(self._body))
        self._fresh()
        self._head_sent = False
        script = self._server.called(request)
        self._player = Player(script, running_clock(), self._perform)
        self._player.start()

    def _perform(self, step: Step) -> None:
        match step:
            case Head(status, headers):
                self._send_head(status, headers)
            case Body(data):
                self._send_body(data)
            case End():
                self._end()
            case Cut():
                self._reset()
            case Refuse() | Blackhole():
                self._close()
            case Wait() | Hang():
                return  # the player does the waiting; silence needs no step of its own

    def _send_head(self, status: int, headers: ScriptHeaders) -> None:
        self._owed_bytes = content_length(headers)
        self._chunked = self._owed_bytes is None
        self._head_sent = True
        reason = _REASONS.get(status, "Unknown")
        lines = [f"HTTP/1.1 {status} {reason}".encode()]
        lines += [name + b": " + value for name, value in headers]
        if self._chunked:
            lines.append(b"transfer-encoding: chunked")
        self._transport.write(b"\r\n".join(lines) + b"\r\n\r\n")

    def _send_body(self, data: bytes) -> None:
        if self._owed_bytes is not None:
            self._owed_bytes -= len(data)
            self._transport.write(data)
        else:
            self._transport.write(b"%x\r\n%b\r\n" % (len(data), data))

    def _end(self) -> None:
        if not self._head_sent or self._owed_bytes:
            self._close()
            return
        self._player = None
        if self._chunked:
            self._transport.write(b"0\r\n\r\n")

    def _reset(self) -> None:
        """Break off with a TCP reset, as a crashed process or a middlebox does."""
        raw = self._transport.get_extra_info("socket")
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _LINGER_NONE)
        self.abort()

    def _close(self) -> None:
        self._closing = True
        self._transport.close()


@asynccontextmanager
async def serve(
    behaviour: Behaviour, *, host: str = "127.0.0.1", port: int = 0, seed: int = 0
) -> AsyncIterator[SimServer]:
    """Listen on `port` (0: any free one, see `SimServer.port`) until the block ends.

    Raises:
        OSError: the port is taken.
    """
    server = SimServer(behaviour, seed=seed)
    loop = asyncio.get_running_loop()
    listener = await loop.create_server(lambda: _Connection(server), host, port)
    try:
        server.port = listener.sockets[0].getsockname()[1]
        yield server
    finally:
        listener.close()
        server.abort()
        await server.closed()


@contextmanager
def closed_port(host: str = "127.0.0.1") -> Iterator[int]:
    """A port that refuses connections: bound, so that nobody else takes it, but not listening."""
    with socket.socket() as holder:
        holder.bind((host, 0))
        yield holder.getsockname()[1]


@contextmanager
def silent_port(host: str = "127.0.0.1") -> Iterator[int]:
    """A port where connections are never established: its accept queue is full."""
    with socket.socket() as listener:
        listener.bind((host, 0))
        listener.listen(0)
        address = listener.getsockname()
        fillers = [socket.socket() for _ in range(4)]
        try:
            for filler in fillers:
                filler.setblocking(False)
                filler.connect_ex(address)
            yield address[1]
        finally:
            for filler in fillers:
                filler.close()

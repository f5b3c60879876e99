"""A raw HTTP peer: says exactly the bytes that a test writes down, on loopback, port 0.

A test gives one coroutine function; every accepted connection runs it with its `Line`. Whatever
happens, the block that opened the peer ends with every connection closed.
"""

import asyncio
import contextlib
import socket
import struct
from collections.abc import Awaitable, Callable
from contextlib import asynccontextmanager

LIMIT_S = 10.0


class Line:
    """One accepted connection. `number` counts from 0 in order of arrival."""

    def __init__(self, number, reader, writer):
        self.number = number
        self.reader = reader
        self.writer = writer
        self.requests = []

    async def request(self):
        """Read one request; returns its head and its body."""
        head = await self.reader.readuntil(b"\r\n\r\n")
        fields = dict(line.split(b": ", 1) for line in head.split(b"\r\n")[1:-2])
        body = await self.reader.readexactly(int(fields.get(b"content-length", b"0")))
        self.requests.append((head, body))
        return head, body

    def say(self, *pieces):
        self.writer.write(b"".join(pieces))

    def close(self):
        self.writer.close()

    def reset(self):
        """Close with a TCP reset."""
        sock = self.writer.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.writer.transport.abort()

    async def gone(self):
        """Wait until the client has closed; whatever it still sent is dropped."""
        with contextlib.suppress(ConnectionError):
            while await self.reader.read(65536):
                pass


Talk = Callable[[Line], Awaitable[None]]


class Peer:
    def __init__(self, talk, *, limit):
        self.port = 0
        self.lines = []
        self._talk = talk
        self._open = set()
        self._moved = asyncio.Event()
        self.limit = limit

    @property
    def open_count(self):
        return len(self._open)

    @property
    def requests(self):
        return [request for line in self.lines for request in line.requests]

    async def until(self, condition):
        """Wait until `condition()` holds; looked at when a connection comes or goes."""
        async with asyncio.timeout(LIMIT_S):
            while not condition():
                self._moved.clear()
                await self._moved.wait()

    async def accept(self, reader, writer):
        line = Line(len(self.lines), reader, writer)
        self.lines.append(line)
        self._open.add(asyncio.current_task())
        self._moved.set()
        try:
            # A test's client may leave at any time; that is its business.
            with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
                await self._talk(line)
        finally:
            writer.transport.abort()
            self._open.discard(asyncio.current_task())
            self._moved.set()

    async def stop(self):
        for task in self._open.copy():
            task.cancel()
        await self.until(lambda: not self._open)


@asynccontextmanager
async def listen(talk, *, ssl_context=None, host="127.0.0.1"):
    peer = Peer(talk, limit=LIMIT_S)
    server = await asyncio.start_server(peer.accept, host, 0, ssl=ssl_context, limit=2**20)
    peer.port = server.sockets[0].getsockname()[1]
    try:
        yield peer
    finally:
        server.close()
        await peer.stop()
        await server.wait_closed()


def answering(*answers, then_close=False):
    """A talk: to the n-th request of each connection, the n-th answer (the last one again)."""

    async def talk(line):
        count = 0
        while True:
            await line.request()
            line.say(answers[min(count, len(answers) - 1)])
            count += 1
            if then_close:
                line.close()
                return

    return talk


def ok(body=b"ok", *fields):
    """A whole answer with a content length."""
    head = b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n" % len(body)
    return head + b"".join(field + b"\r\n" for field in fields) + b"\r\n" + body


async def elapsed(seconds):
    """Wait for a timer; only for what a peer does, never for what a test asserts."""
    done = asyncio.Event()
    asyncio.get_running_loop().call_later(seconds, done.set)
    await done.wait()

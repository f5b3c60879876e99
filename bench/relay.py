"""The bare relay: the same server leg, the same client, one fixed target, no decision at all.

What it lacks is what Outlast is: no body is read but for its length, nothing is planned, counted,
timed, looked into or logged. The ratio to it is therefore what the product itself costs.
"""

import asyncio
import sys
from typing import Any

import uvloop

from outlast.model.fault import TransportFailure
from outlast.model.topology import Origin
from outlast.ports import Headers, UpstreamCall
from outlast.server.body import read_body
from outlast.server.listen import Listener
from outlast.upstream.client import HttpUpstream


class Pipe:
    """The sink of one call: data and its end, for one waiting coroutine."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._waiter: asyncio.Future[None] | None = None
        self.status = 0
        self.headers: Headers = []
        self.parts: list[bytes] = []
        self.over = False

    def on_head(self, status: int, headers: Headers) -> None:
        self.status, self.headers = status, headers

    def on_data(self, data: bytes) -> None:
        self.parts.append(data)
        self._wake()

    def on_end(self) -> None:
        self.over = True
        self._wake()

    def on_failure(self, failure: TransportFailure) -> None:
        self.on_end()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    async def wait(self) -> None:
        if not (self.parts or self.over):
            self._waiter = self._loop.create_future()
            await self._waiter

    def take(self) -> bytes:
        data = b"".join(self.parts)
        self.parts.clear()
        return data


class Relay:
    """The ASGI application."""

    def __init__(self, upstream: HttpUpstream, port: int) -> None:
        self._upstream = upstream
        self._origin = Origin("http", "127.0.0.1", port)
        self._headers = ((b"content-type", b"application/json"), (b"authorization", b"Bearer k"))

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        body = await read_body(receive, 1 << 25)
        assert isinstance(body, bytes)
        pipe = Pipe(asyncio.get_running_loop())
        call = UpstreamCall(
            self._origin, b"POST", b"/v1/chat/completions", self._headers, body, 2.0
        )
        self._upstream.dispatch(call, pipe)
        await pipe.wait()
        headers = [h for h in pipe.headers if h[0] in (b"content-type", b"content-length")]
        await send({"type": "http.response.start", "status": pipe.status, "headers": headers})
        while not pipe.over:
            await send({"type": "http.response.body", "body": pipe.take(), "more_body": True})
            await pipe.wait()
        await send({"type": "http.response.body", "body": pipe.take(), "more_body": False})


async def _main(upstream_port: int) -> None:
    upstream = HttpUpstream(asyncio.get_running_loop())
    listener = Listener(Relay(upstream, upstream_port))
    await listener.serve(lambda port: print(port, flush=True))


if __name__ == "__main__":
    uvloop.run(_main(int(sys.argv[1])))

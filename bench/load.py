"""The callers of the benchmark: a closed loop over keep-alive connections. Own process.

Prints the number of requests that were answered whole, and of events in them. Bounded by its
number of requests.
"""

import asyncio
import sys
from typing import cast

import uvloop

LIMIT_S = 120
"""A load that takes longer has hung."""

_MESSAGES = b'"messages":[{"role":"user","content":"' + b"question " * 150 + b'"}]}'


def request(*, stream: bool) -> bytes:
    """One request of 1.4 KB."""
    body = b'{"model":"bench","stream":' + (b"true," if stream else b"false,") + _MESSAGES
    return (
        b"POST /v1/chat/completions HTTP/1.1\r\nhost: 127.0.0.1\r\n"
        b"content-type: application/json\r\nauthorization: Bearer x\r\ncontent-length: "
        + str(len(body)).encode()
        + b"\r\n\r\n"
        + body
    )


class Caller(asyncio.Protocol):
    """One connection that asks again when it is answered."""

    def __init__(self, requests: int, message: bytes, done: "asyncio.Future[int]") -> None:
        self._left = requests
        self._message = message
        self._done = done
        self._seen = bytearray()
        self._events = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._transport.write(self._message)

    def data_received(self, data: bytes) -> None:
        self._seen += data
        seen = self._seen
        if b"transfer-encoding: chunked" in seen[:400]:
            whole = seen.endswith(b"\r\n0\r\n\r\n")
        else:
            head, end, rest = bytes(seen).partition(b"\r\n\r\n")
            size = head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0]
            whole = bool(end) and len(rest) >= int(size)
        if not whole:
            return
        if not seen.startswith(b"HTTP/1.1 200"):
            self._done.set_exception(RuntimeError(bytes(seen[:200]).decode()))
            return
        self._events += seen.count(b'"content":"xx')
        seen.clear()
        self._left -= 1
        if self._left:
            self._transport.write(self._message)
        else:
            self._done.set_result(self._events)
            self._transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        if not self._done.done():
            self._done.set_exception(RuntimeError(f"cut: {exc}"))


async def _main(port: int, callers: int, each: int, *, stream: bool) -> None:
    loop = asyncio.get_running_loop()
    message = request(stream=stream)
    futures = [loop.create_future() for _ in range(callers)]
    for future in futures:
        await loop.create_connection(
            lambda future=future: Caller(each, message, future),  # type: ignore[misc]
            "127.0.0.1",
            port,
        )
    async with asyncio.timeout(LIMIT_S):
        events = await asyncio.gather(*futures)
    print(callers * each, sum(events))


if __name__ == "__main__":
    _port, _callers, _each = map(int, sys.argv[1:4])
    uvloop.run(_main(_port, _callers, _each, stream=sys.argv[4] == "stream"))

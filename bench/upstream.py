"""The provider of the benchmark: answers at once, or streams events with gaps. Own process.

One small `asyncio.Protocol`, so that it costs less than what is measured. The answer to a request
is whole or a stream as its body says; a stream's gap is a constant of the run.
"""

import asyncio
import sys
from typing import cast

import uvloop

EVENTS = 64
_CONTENT = "x" * 40
_WHOLE_BODY = (
    b'{"id":"chatcmpl-1","object":"chat.completion","created":1800000000,"model":"bench",'
    b'"choices":[{"index":0,"message":{"role":"assistant","content":"' + b"word " * 200 + b'"},'
    b'"finish_reason":"stop"}],"usage":{"prompt_tokens":9,"completion_tokens":200,'
    b'"total_tokens":209}}'
)
WHOLE = (
    b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: "
    + str(len(_WHOLE_BODY)).encode()
    + b"\r\n\r\n"
    + _WHOLE_BODY
)
HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"


def _chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


def _event(delta: str, finish: str = "null") -> bytes:
    return _chunk(
        b'data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1800000000,'
        b'"model":"bench","choices":[{"index":0,"delta":{%b},"finish_reason":%b}]}\n\n'
        % (delta.encode(), finish.encode())
    )


STREAM = [
    _event('"role":"assistant","content":""'),
    *[_event(f'"content":"{_CONTENT}"')] * EVENTS,
    _event("", '"stop"'),
    _chunk(b"data: [DONE]\n\n") + b"0\r\n\r\n",
]


class Provider(asyncio.Protocol):
    """One connection."""

    def __init__(self, gap_s: float) -> None:
        self._gap_s = gap_s
        self._seen = b""
        self._next = 0
        self._loop = asyncio.get_running_loop()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        self._seen += data
        head, end, rest = self._seen.partition(b"\r\n\r\n")
        if not end:
            return
        length = int(head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0])
        if len(rest) < length:
            return
        self._seen = rest[length:]
        if b'"stream":true' in rest:
            self._next = 0
            self._transport.write(HEAD)
            self._say()
        else:
            self._transport.write(WHOLE)

    def _say(self) -> None:
        if self._transport.is_closing():
            return
        self._transport.write(STREAM[self._next])
        self._next += 1
        if self._next < len(STREAM):
            self._loop.call_later(self._gap_s, self._say)


async def _main(gap_s: float) -> None:
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Provider(gap_s), "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(_main(float(sys.argv[1])))

"""A caller that is nothing but a socket: it can leave whenever it likes."""

import asyncio
import json
from typing import Any

from msgspec import Struct


class Answer(Struct, frozen=True):
    """What came back. Header names are in lower case."""

    status: int
    headers: dict[str, str]
    body: bytes


def chat(pool: str, *, stream: bool = False, prompt: str = "hi", **members: Any) -> bytes:
    """The body of a chat request."""
    messages = [{"role": "user", "content": prompt}]
    return json.dumps({"model": pool, "messages": messages, "stream": stream, **members}).encode()


class Wire:
    """One connection to a gateway, for one request after the other."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self._writer = writer

    @classmethod
    async def to(cls, port: int) -> "Wire":
        return cls(*await asyncio.open_connection("127.0.0.1", port))

    async def send(self, body: bytes) -> None:
        """Send a chat request, all of it."""
        head = (
            b"POST /v1/chat/completions HTTP/1.1\r\nhost: gateway\r\n"
            b"content-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(body)
        )
        self._writer.write(head + body)
        await self._writer.drain()

    async def head(self) -> tuple[int, dict[str, str]]:
        lines = (await self.reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        fields = (line.partition(":") for line in lines[1:] if line)
        return int(lines[0].split()[1]), {n.lower(): v.strip() for n, _, v in fields}

    async def answer(self) -> Answer:
        """Read one answer to its end."""
        status, headers = await self.head()
        if "content-length" in headers:
            return Answer(status, headers, await self._exactly(int(headers["content-length"])))
        parts = []
        while size := int((await self.reader.readline()).split(b";")[0], 16):
            parts.append((await self._exactly(size + 2))[:-2])
        await self._exactly(2)
        return Answer(status, headers, b"".join(parts))

    def leave(self) -> None:
        """Close the socket at once."""
        self._writer.transport.abort()

    async def _exactly(self, size: int) -> bytes:
        return await self.reader.readexactly(size)

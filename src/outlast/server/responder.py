"""The leg to one caller over ASGI: `ports.Responder`.

Owns whether the caller is gone and how far the answer got. On our own protocol the connection
says so through the link in the scope; on any other ASGI server `watch` must run beside the answer.
Every head leaves with the request's `x-request-id`, whoever built it.
"""

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from outlast.ports import Headers
from outlast.server.link import CallerLink

Message = MutableMapping[str, Any]
Send = Callable[[Message], Awaitable[None]]
Receive = Callable[[], Awaitable[Message]]


class AsgiResponder:
    """Implements `ports.Responder`. `started`: the head is out; `ended`: so is the last byte."""

    __slots__ = (
        "_callback",
        "_link",
        "_request_id",
        "_send",
        "aborted",
        "ended",
        "gone",
        "started",
    )

    def __init__(self, send: Send, link: CallerLink | None, request_id: str) -> None:
        self._send = send
        self._link = link
        self._request_id = (b"x-request-id", request_id.encode("ascii"))
        self._callback: Callable[[], None] | None = None
        self.gone = False
        self.started = False
        self.ended = False
        self.aborted = False
        if link is not None:
            if link.lost:
                self.gone = True
            else:
                link.on_lost(self.leave)

    @property
    def linked(self) -> bool:
        """The connection itself tells when the caller leaves; nothing needs to watch."""
        return self._link is not None

    def on_gone(self, callback: Callable[[], None]) -> None:
        """Call back once when the caller leaves, at the next turn of the loop if it has."""
        if self.gone:
            asyncio.get_running_loop().call_soon(callback)
        else:
            self._callback = callback

    def leave(self) -> None:
        """The caller left."""
        if self.gone:
            return
        self.gone = True
        callback, self._callback = self._callback, None
        if callback is not None:
            callback()

    async def whole(self, status: int, headers: Headers, body: bytes) -> None:
        """Send a complete answer."""
        if self.gone:
            return
        self.started = True
        head = self._identified(headers)
        head.append((b"content-length", b"%d" % len(body)))
        if self._link is not None and self._link.answer(status, head, body):
            self.ended = True
            return
        await self._send({"type": "http.response.start", "status": status, "headers": head})
        self.ended = True
        await self._send({"type": "http.response.body", "body": body})

    async def start(self, status: int, headers: Headers) -> None:
        """Send the head of an answer whose length is not known."""
        if self.gone:
            return
        self.started = True
        await self._send(
            {
                "type": "http.response.start",
                "status": status,
                "headers": self._identified(headers),
            }
        )

    async def write(self, data: bytes) -> None:
        """Send body bytes; waits while the caller does not read."""
        if not self.gone:
            await self._send({"type": "http.response.body", "body": data, "more_body": True})

    async def end(self) -> None:
        """End the body as its framing demands."""
        if not self.gone:
            self.ended = True
            await self._send({"type": "http.response.body", "body": b""})

    def abort(self) -> None:
        """Cut the connection. Without a link the server cuts it, as no last event ever comes."""
        self.aborted = True
        if self._link is not None:
            self._link.abort()

    def refuse(self, status: int, headers: Headers, body: bytes) -> bool:
        """Answer before the body was read and close. False: this server cannot, use `whole`."""
        if self._link is None or self.gone:
            return self.gone
        self.started = self.ended = True
        self._link.close_with(status, self._identified(headers), body)
        return True

    async def watch(self, receive: Receive) -> None:
        """Wait for the disconnect event, once the body was read (servers without a link)."""
        while (await receive())["type"] != "http.disconnect":
            pass
        if not self.ended:
            self.leave()

    def _identified(self, headers: Headers) -> Headers:
        """A list of its own: `headers` with the request's id, if they do not hold one."""
        head = list(headers)
        for name, _ in head:
            if name == b"x-request-id":
                return head
        head.append(self._request_id)
        return head

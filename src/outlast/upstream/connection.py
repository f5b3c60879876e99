"""One socket to a provider. Owns the transport; holds no state of any response.

A connection works for one exchange at a time and hands it bytes and the news of its loss. While
nobody uses it, any byte or an end from the peer closes it: an answer without a question is either
a goodbye or a desynchronised peer, and both must not meet the next request.

Surprising cases: the end of the peer's sending side closes the whole connection at once, because
waiting for our own unsent bytes to drain into a peer that has left could take for ever.
`drained` looks at both transports under TLS: the outer one does not count what the inner holds.
"""

import asyncio
from collections.abc import Callable
from typing import Protocol, cast

from outlast.model.clock import Instant
from outlast.model.topology import Origin


class Receiver(Protocol):
    """What a connection tells the exchange it works for."""

    def received(self, data: bytes) -> None: ...

    def lost(self, error: Exception | None) -> None:
        """The connection is gone; None: the peer ended it in order."""
        ...

    def shut(self) -> None:
        """The client closes."""
        ...


class Connection(asyncio.Protocol):
    """A connection being opened, idle, or at work for `receiver`."""

    __slots__ = (
        "_on_closed",
        "_raw",
        "_transport",
        "established",
        "idle_since",
        "origin",
        "receiver",
    )

    def __init__(self, origin: Origin, on_closed: Callable[["Connection"], None]) -> None:
        self.origin = origin
        self.receiver: Receiver | None = None
        self.established = False  # until then its opening cleans up, not the loss of one address
        self.idle_since: Instant = 0.0
        self._on_closed = on_closed
        self._raw: asyncio.Transport | None = None
        self._transport: asyncio.Transport | None = None

    @property
    def raw(self) -> asyncio.Transport | None:
        """The TCP transport, under TLS the inner one."""
        return self._raw

    @property
    def usable(self) -> bool:
        """Open, and nobody has begun to close it."""
        return self._transport is not None and not self._transport.is_closing()

    @property
    def drained(self) -> bool:
        """Everything that was written has left for the kernel."""
        raw, transport = self._raw, self._transport
        if raw is None or transport is None or raw.get_write_buffer_size() > 0:
            return False
        return transport is raw or transport.get_write_buffer_size() == 0

    def secured(self, transport: asyncio.Transport) -> None:
        """From here on bytes go through TLS; `connection_made` is not called a second time."""
        self._transport = transport

    def write(self, data: bytes) -> None:
        """Send bytes; dropped if the connection is gone, which `lost` then tells."""
        if self._transport is not None:
            self._transport.write(data)

    def pause_reading(self) -> None:
        """Take no more bytes in. Also hides the peer's end."""
        if self._transport is not None and not self._transport.is_closing():
            self._transport.pause_reading()

    def resume_reading(self) -> None:
        """Take bytes in again."""
        if self._transport is not None and not self._transport.is_closing():
            self._transport.resume_reading()

    def abort(self) -> None:
        """Close now, unsent bytes are dropped. Harmless when called again."""
        if self._transport is not None:
            self._transport.abort()
        if self._raw is not None and self._raw is not self._transport:
            self._raw.abort()

    # What the transport calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """TCP is established."""
        self._raw = self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        """Bytes came."""
        if self.receiver is None:
            self.abort()
        else:
            self.receiver.received(data)

    def eof_received(self) -> bool:
        """The peer sends no more."""
        self.abort()
        self._end(None)
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        """The socket is gone."""
        self._end(exc)

    def _end(self, error: Exception | None) -> None:
        if not self.established:
            return
        receiver = self.receiver
        self.receiver = None
        # The place is free before anybody is told, who may want it at once.
        self._on_closed(self)
        if receiver is not None:
            receiver.lost(error)

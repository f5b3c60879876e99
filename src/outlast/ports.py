"""What the engine needs of the world: one Protocol each, two implementations each.

`Upstream` is the leg to a provider (`upstream.client` over sockets, `sim.upstream` in memory; one
contract suite runs on both). `Clock` is the event loop's time, real or virtual. `Responder` is
the leg to the caller. `Observer` takes facts and never fails or delays a request.
"""

from collections.abc import Callable
from typing import Protocol

from msgspec import Struct

from outlast.model.clock import Instant, WallTime
from outlast.model.fault import TransportFailure
from outlast.model.records import Record
from outlast.model.topology import Origin

Headers = list[tuple[bytes, bytes]]
"""Names in lower case, in wire order, duplicates kept."""


class Handle(Protocol):
    """A timer that can be cancelled; cancelling twice, or after it fired, is harmless."""

    def cancel(self) -> None: ...


class Clock(Protocol):
    """Time of the running loop."""

    def now(self) -> Instant: ...

    def wall(self) -> WallTime: ...

    def call_at(self, when: Instant, callback: Callable[[], None]) -> Handle:
        """Call back once at `when` (or as soon as possible if that is past), never at once."""
        ...


class UpstreamCall(Struct, frozen=True):
    """One HTTP request to a provider.

    `headers` hold everything but `host`, `content-length` and `connection`, which the client
    writes. `target` is the path with its query. `connect_timeout_s` covers DNS, TCP and TLS.
    `replaceable`: when a reused connection turns out stale before any response byte, the client
    sends the request once more on a fresh one (never above `REPLACEABLE_BYTES_MAX`).
    """

    origin: Origin
    method: bytes
    target: bytes
    headers: tuple[tuple[bytes, bytes], ...]
    body: bytes
    connect_timeout_s: float
    replaceable: bool = True


REPLACEABLE_BYTES_MAX = 1024 * 1024
"""A larger body is not sent twice in silence: the first copy may have been billed."""


class Sink(Protocol):
    """Where an exchange delivers. Called from the loop, never from inside `dispatch`.

    Order: `on_head` once, `on_data` any number of times, then `on_end`; or `on_failure` at any
    point, which is then the last call. After `Exchange.cancel` nothing is called any more.
    """

    def on_head(self, status: int, headers: Headers) -> None:
        """The final response head (1xx are swallowed by the client)."""
        ...

    def on_data(self, data: bytes) -> None:
        """Body bytes, chunk framing removed, never empty."""
        ...

    def on_end(self) -> None:
        """The body ended as its framing says."""
        ...

    def on_failure(self, failure: TransportFailure) -> None: ...


class Exchange(Protocol):
    """One dispatched call. `replaced`: a stale connection was replaced on the way."""

    replaced: bool

    def cancel(self) -> None:
        """Close the connection now. Harmless after the end."""
        ...

    def pause(self) -> None:
        """Stop reading: the caller is slow. `on_data` may still come once more."""
        ...

    def resume(self) -> None: ...


class Upstream(Protocol):
    """Carries calls to providers."""

    def dispatch(self, call: UpstreamCall, sink: Sink) -> Exchange:
        """Begin a call. Never blocks, never raises for a failure of the network."""
        ...

    async def aclose(self) -> None:
        """Close every connection and wait until they are gone."""
        ...


class Responder(Protocol):
    """The leg to one caller. `gone` turns True when the caller left; writes are then dropped."""

    gone: bool

    def on_gone(self, callback: Callable[[], None]) -> None:
        """Call back once when the caller leaves (at the next turn of the loop if it has)."""
        ...

    async def whole(self, status: int, headers: Headers, body: bytes) -> None:
        """Send a complete answer; `content-length` is added here."""
        ...

    async def start(self, status: int, headers: Headers) -> None: ...

    async def write(self, data: bytes) -> None:
        """Send body bytes; waits while the caller does not read."""
        ...

    async def end(self) -> None: ...

    def abort(self) -> None:
        """Cut the connection without a clean end: the only honest ending of a broken body."""
        ...


class Observer(Protocol):
    """Takes facts. Must not raise and must not block."""

    def observe(self, record: Record) -> None: ...

"""One dispatched call from its first byte to its end. Owns what the sink hears, and in what order.

The response's state lives here and not in the connection, so a connection that went back to the
pool knows nothing of it: bytes of one answer cannot reach another caller. Bytes of one read become
one `on_data`.

Surprising cases: a reused connection that dies before one response byte was closed by the peer
while we wrote, so the call goes out once more on a fresh one (`replaced`), unless the call or its
size forbids it: then it fails in phase HEAD like any other. An answer that ends before the request
was fully written is delivered, but its connection is closed. The sink may cancel from inside any
of its callbacks; nothing follows then.
"""

import asyncio
from collections.abc import Callable

from outlast.model.fault import Break, Phase, TransportFailure
from outlast.ports import REPLACEABLE_BYTES_MAX, Sink, UpstreamCall
from outlast.upstream.connection import Connection
from outlast.upstream.limits import Limits
from outlast.upstream.response import Response


class Backstage:
    """What exchanges need of their client."""

    __slots__ = ("keep", "limits", "redial")

    def __init__(
        self,
        limits: Limits,
        keep: Callable[[Connection], None],
        redial: Callable[["HttpExchange"], None],
    ) -> None:
        self.limits = limits
        self.keep = keep
        self.redial = redial


class HttpExchange:
    """`ports.Exchange` over a socket."""

    __slots__ = (
        "_backstage",
        "_connection",
        "_headed",
        "_over",
        "_paused",
        "_response",
        "_reused",
        "_sink",
        "call",
        "opening",
        "replaced",
    )

    def __init__(self, call: UpstreamCall, sink: Sink, backstage: Backstage) -> None:
        self.replaced = False
        self.call = call
        self.opening: asyncio.Task[bool] | None = None  # while a connection is being opened for it
        self._sink = sink
        self._backstage = backstage
        self._connection: Connection | None = None
        self._response: Response | None = None
        self._reused = False
        self._headed = False
        self._paused = False
        self._over = False

    def send_on(self, connection: Connection, request: bytes, *, reused: bool) -> None:
        """Send the request; the connection works for this exchange from now on."""
        if self._over:  # somebody held back the cancellation of the opening
            connection.abort()
            return
        self._response = Response(
            self._backstage.limits, to_head_request=self.call.method == b"HEAD"
        )
        self._connection = connection
        self._reused = reused
        connection.receiver = self
        connection.write(request)
        if self._paused:
            connection.pause_reading()

    def cancel(self) -> None:
        """See `ports.Exchange`."""
        if not self._over:
            self._close()

    def pause(self) -> None:
        """See `ports.Exchange`."""
        if not self._paused and not self._over:
            self._paused = True
            if self._connection is not None:
                self._connection.pause_reading()

    def resume(self) -> None:
        """See `ports.Exchange`."""
        if self._paused and not self._over:
            self._paused = False
            if self._connection is not None:
                self._connection.resume_reading()

    def fail(self, failure: TransportFailure) -> None:
        """End with a failure, unless the exchange is over."""
        if not self._over:
            self._close()
            self._sink.on_failure(failure)

    def received(self, data: bytes) -> None:
        """See `connection.Receiver`."""
        response = self._response
        if response is None:
            return
        response.feed(data)
        if response.status is not None and not self._headed:
            self._headed = True
            self._sink.on_head(response.status, response.headers)
        if response.body and not self._over:
            self._sink.on_data(response.take_body())
        if self._over:
            return
        if response.refusal is not None:
            refusal = response.refusal
            self.fail(TransportFailure(self.phase, refusal.how, refusal.detail))
        elif response.ended:
            self._finish(response)

    def lost(self, error: Exception | None) -> None:
        """See `connection.Receiver`."""
        self._connection = None
        response = self._response
        if self._over or response is None:
            return
        if error is None and response.ends_with_connection:
            self._close()
            self._sink.on_end()
        elif not response.heard and self._may_be_replaced():
            self.replaced = True
            self._release_response()
            self._backstage.redial(self)
        elif error is None:
            self.fail(TransportFailure(self.phase, Break.EOF, "the peer closed the connection"))
        else:
            self.fail(TransportFailure(self.phase, Break.RESET, describe(error)))

    def shut(self) -> None:
        """The client closes; see `connection.Receiver`."""
        self.fail(TransportFailure(self.phase, Break.EXHAUSTED, "this client is closed"))

    @property
    def phase(self) -> Phase:
        """HEAD until a complete response head came, then BODY."""
        response = self._response
        return Phase.BODY if response is not None and response.status is not None else Phase.HEAD

    def _may_be_replaced(self) -> bool:
        # Only a reused connection can be stale, and the second one is always fresh: at most once.
        call = self.call
        return self._reused and call.replaceable and len(call.body) <= REPLACEABLE_BYTES_MAX

    def _finish(self, response: Response) -> None:
        connection = self._connection
        if connection is not None and response.reusable and connection.drained:
            self._connection = None
            connection.receiver = None
            if self._paused:
                connection.resume_reading()
            # First, so that a call dispatched from inside `on_end` finds it.
            self._backstage.keep(connection)
        self._close()
        self._sink.on_end()

    def _close(self) -> None:
        """Be over, and close what is still held."""
        self._over = True
        connection, opening = self._connection, self.opening
        self._connection = self.opening = None
        self._release_response()
        if connection is not None:
            connection.receiver = None
            connection.abort()
        if opening is not None:
            opening.cancel()

    def _release_response(self) -> None:
        if self._response is not None:
            self._response.release()
            self._response = None


def describe(error: BaseException) -> str:
    """A system error in words for operators; such texts name addresses, never content."""
    words = str(error)
    return f"{type(error).__name__}: {words}" if words else type(error).__name__

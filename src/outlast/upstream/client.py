"""`ports.Upstream` over HTTP/1.1 and sockets. Owns the way of a call to a connection.

A free connection takes the call at once, in one write and without a task; only opening a new one
needs a coroutine. Timeouts other than that of connecting belong to whoever holds the exchange.

Surprising cases: a call that no connection can take (limit reached, client closed) fails with
EXHAUSTED at the next turn of the loop. Closing the client fails the exchanges that are still
running. Redirects are answers like any other, and environment proxies have no effect.
"""

import asyncio
import ssl

from outlast.model.fault import Break, Phase, TransportFailure
from outlast.ports import Sink, UpstreamCall
from outlast.upstream.connection import Connection
from outlast.upstream.connector import ConnectError, Connector, Resolver
from outlast.upstream.exchange import Backstage, HttpExchange
from outlast.upstream.limits import STANDARD, Limits
from outlast.upstream.pool import Pool
from outlast.upstream.request_head import RequestHeads, whole_request


class HttpUpstream:
    """Carries calls to providers; see the module header."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        *,
        resolver: Resolver | None = None,
        ssl_context: ssl.SSLContext | None = None,
        limits: Limits = STANDARD,
    ) -> None:
        self._loop = loop
        self._limits = limits
        self._heads = RequestHeads(limits.request_heads_max)
        self._pool = Pool(loop, limits)
        self._connector = Connector(loop, resolver, ssl_context)
        self._backstage = Backstage(limits, self._pool.put, self._dial)
        self._openings: dict[asyncio.Task[bool], HttpExchange] = {}
        self._closed = False

    @property
    def connection_count(self) -> int:
        """Connections that are open or being opened."""
        return self._pool.existing_count

    @property
    def idle_count(self) -> int:
        """Connections that wait for the next call."""
        return self._pool.idle_count

    def dispatch(self, call: UpstreamCall, sink: Sink) -> HttpExchange:
        """See `ports.Upstream`.

        Raises:
            ValueError: the call holds bytes that may not go into a request head.
        """
        prefix = self._heads.prefix(call)
        exchange = HttpExchange(call, sink, self._backstage)
        connection = self._pool.take(call.origin)
        if connection is None:
            self._dial(exchange)
        else:
            exchange.send_on(connection, whole_request(prefix, call), reused=True)
        return exchange

    async def aclose(self) -> None:
        """See `ports.Upstream`. May be called again."""
        self._closed = True
        openings = dict(self._openings)
        for exchange in openings.values():
            exchange.shut()
        await asyncio.gather(*openings, return_exceptions=True)
        await self._pool.aclose()

    def _dial(self, exchange: HttpExchange) -> None:
        """Get the exchange a fresh connection."""
        if self._closed:
            self._refuse(exchange, "this client is closed")
            return
        connection = self._pool.admit(exchange.call.origin)
        if connection is None:
            self._refuse(exchange, f"{self._limits.connections_max} connections are in use")
            return
        # The client outlives any block, so no TaskGroup can own this task: `_openings` does.
        task = self._loop.create_task(self._open(exchange, connection))
        exchange.opening = task
        self._openings[task] = exchange
        task.add_done_callback(lambda task: self._opened(task, connection))

    async def _open(self, exchange: HttpExchange, connection: Connection) -> bool:
        """Open a connection and hand it over. Returns whether it was."""
        call = exchange.call
        try:
            await self._connector.open(connection, call.connect_timeout_s)
        except ConnectError as error:
            exchange.opening = None
            # The place is free before the sink is told, which may want it at once.
            self._pool.forget(connection)
            exchange.fail(error.failure)
            return False
        exchange.opening = None
        connection.established = True
        request = whole_request(self._heads.prefix(call), call)
        exchange.send_on(connection, request, reused=False)
        return True

    def _opened(self, task: asyncio.Task[bool], connection: Connection) -> None:
        """Clean up, also after a task that was cancelled before its first step.

        uvloop closes the socket of an opening that is cancelled late (by us, or by the limit of
        connecting) without telling its protocol, so the place of a connection that was not handed
        over is freed here and not at its loss.
        """
        exchange = self._openings.pop(task)
        error = None if task.cancelled() else task.exception()
        handed_over = not task.cancelled() and error is None and task.result()
        if not (handed_over and connection.usable):
            connection.abort()
            self._pool.forget(connection)
        if error is not None:
            # A bug, most likely of a resolver or a sink: nobody may wait for ever because of it.
            exchange.fail(TransportFailure(Phase.CONNECT, Break.EXHAUSTED, type(error).__name__))
            self._loop.call_exception_handler(
                {"message": "opening a connection failed", "exception": error, "task": task}
            )

    def _refuse(self, exchange: HttpExchange, detail: str) -> None:
        failure = TransportFailure(Phase.CONNECT, Break.EXHAUSTED, detail)
        self._loop.call_soon(exchange.fail, failure)

"""How a connection comes about: name lookup, TCP, TLS. Owns these phases and their failures.

The three phases share one limit of time, and each failure says in which of them it happened.
Addresses are tried one after another in the resolver's order; each gets an equal share of the time
that is left, so a black hole at the first address does not hide a healthy second one.

Surprising cases: a literal address needs no lookup. A lookup that hangs is abandoned, but its
thread lives until the operating system gives up. Running out of descriptors or local ports is
EXHAUSTED, not the provider's fault. Name lookups that fail count as REFUSED. A certificate that
does not verify is REFUSED, a peer that does not speak TLS is GARBAGE.
"""

import asyncio
import errno
import ipaddress
import socket
import ssl
from collections.abc import Awaitable, Callable, Sequence

from outlast.model.clock import Instant
from outlast.model.fault import Break, Phase, TransportFailure
from outlast.model.topology import Origin
from outlast.upstream.connection import Connection
from outlast.upstream.exchange import describe

Resolver = Callable[[str, int], Awaitable[Sequence[str]]]
"""Host and port -> literal addresses, best first. Raises OSError for a name without any."""

_OUR_LIMITS = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.EADDRNOTAVAIL})


class ConnectError(Exception):
    """No connection came about."""

    def __init__(self, failure: TransportFailure) -> None:
        super().__init__(failure.detail)
        self.failure = failure


class Connector:
    """Opens connections. Builds the TLS context once, when the first one is needed."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        resolver: Resolver | None,
        ssl_context: ssl.SSLContext | None,
    ) -> None:
        self._loop = loop
        self._resolver = resolver or self._ask_system
        self._ssl_context = ssl_context

    async def open(self, connection: Connection, timeout_s: float) -> None:
        """Establish `connection`; on any way out but success its socket is closed.

        Raises:
            ConnectError: a phase failed, or `timeout_s` ran out.
        """
        deadline = self._loop.time() + timeout_s
        origin = connection.origin
        established = False
        try:
            addresses = await self._resolve(origin, deadline)
            await self._connect(connection, addresses, deadline)
            if origin.scheme == "https":
                await self._secure(connection, deadline)
            established = True
        finally:
            if not established:
                connection.abort()

    async def _resolve(self, origin: Origin, deadline: Instant) -> Sequence[str]:
        if _is_address(origin.host):
            return (origin.host,)
        try:
            async with asyncio.timeout_at(deadline):
                addresses = await self._resolver(origin.host, origin.port)
        except TimeoutError as error:
            raise _failed(Phase.DNS, Break.TIMEOUT, f"lookup of {origin.host}") from error
        except (OSError, UnicodeError) as error:  # UnicodeError: a label that IDNA cannot spell
            raise _failed(Phase.DNS, _how(error), f"{origin.host}: {describe(error)}") from error
        if not addresses:
            raise _failed(Phase.DNS, Break.REFUSED, f"{origin.host} has no address")
        return addresses

    async def _connect(
        self, connection: Connection, addresses: Sequence[str], deadline: Instant
    ) -> None:
        last: ConnectError | None = None
        for index, address in enumerate(addresses):
            now = self._loop.time()
            share_s = (deadline - now) / (len(addresses) - index)
            try:
                async with asyncio.timeout_at(now + share_s):
                    await self._loop.create_connection(
                        lambda: connection, address, connection.origin.port
                    )
            except OSError as error:  # TimeoutError, ours and the system's, is one
                where = f"{address} port {connection.origin.port}"
                last = _failed(Phase.CONNECT, _how(error), f"{where}: {describe(error)}")
            else:
                return
        if last is not None:
            raise last

    async def _secure(self, connection: Connection, deadline: Instant) -> None:
        raw = connection.raw
        host = connection.origin.host
        if raw is None:
            raise _failed(Phase.TLS, Break.EOF, f"{host} closed before the handshake")
        try:
            async with asyncio.timeout_at(deadline):
                secured = await self._loop.start_tls(
                    raw, connection, self._context(), server_hostname=host
                )
        except ssl.SSLCertVerificationError as error:
            raise _failed(Phase.TLS, Break.REFUSED, f"{host}: {error.verify_message}") from error
        except OSError as error:
            raise _failed(Phase.TLS, _how(error), f"{host}: {describe(error)}") from error
        if secured is None:
            raise _failed(Phase.TLS, Break.EOF, f"{host} closed during the handshake")
        connection.secured(secured)

    def _context(self) -> ssl.SSLContext:
        if self._ssl_context is None:
            self._ssl_context = ssl.create_default_context()
            self._ssl_context.set_alpn_protocols(["http/1.1"])
        return self._ssl_context

    async def _ask_system(self, host: str, port: int) -> Sequence[str]:
        found = await self._loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        return list(dict.fromkeys(str(info[4][0]) for info in found))


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def _how(error: Exception) -> Break:
    match error:
        case TimeoutError():
            return Break.TIMEOUT
        case ConnectionRefusedError():
            return Break.REFUSED
        case ssl.SSLEOFError() | ssl.SSLZeroReturnError():
            return Break.EOF
        case ssl.SSLError():
            return Break.GARBAGE
        case ConnectionError():
            return Break.RESET
        case OSError() if error.errno in _OUR_LIMITS:
            return Break.EXHAUSTED
        case _:
            return Break.REFUSED  # no route, no such name: nobody there


def _failed(phase: Phase, how: Break, detail: str) -> ConnectError:
    return ConnectError(TransportFailure(phase, how, detail))

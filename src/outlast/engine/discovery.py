"""Asks a provider which models it has: one `GET` of its listing, bounded in time.

Used at start, when a key is all that is known of a provider. The answer goes through the same
transport and the same classification as any other call.
"""

import asyncio

from outlast.engine.snapshot import provider_headers
from outlast.model.fault import TransportFailure
from outlast.model.topology import Provider
from outlast.ports import Clock, Headers, Upstream, UpstreamCall
from outlast.protocols.dialect import Dialect

LISTING_TIMEOUT_S = 10.0
LISTING_BYTES_MAX = 8 * 1024 * 1024


class DiscoveryError(Exception):
    """The listing could not be had. Says why, without the provider's own words."""


class _Listing:
    """The sink of one listing."""

    def __init__(self, done: asyncio.Future[bytes]) -> None:
        self._done = done
        self._parts: list[bytes] = []
        self._size = 0
        self._status = 0

    def on_head(self, status: int, headers: Headers) -> None:  # noqa: ARG002 - the port's shape
        self._status = status

    def on_data(self, data: bytes) -> None:
        self._size += len(data)
        if self._size > LISTING_BYTES_MAX:
            self.fail(f"its listing is larger than {LISTING_BYTES_MAX} bytes")
        self._parts.append(data)

    def on_end(self) -> None:
        if self._status != 200:
            self.fail(f"it answered {self._status}")
        elif not self._done.done():
            self._done.set_result(b"".join(self._parts))

    def on_failure(self, failure: TransportFailure) -> None:
        self.fail(f"{failure.how.value} ({failure.phase.value}) {failure.detail}".rstrip())

    def fail(self, why: str) -> None:
        if not self._done.done():
            self._done.set_exception(DiscoveryError(why))


async def discover(
    provider: Provider, dialect: Dialect, *, upstream: Upstream, clock: Clock
) -> list[str]:
    """The upstream model ids that a provider lists.

    Raises:
        DiscoveryError: no listing within `LISTING_TIMEOUT_S`, or one that does not parse.
    """
    done: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
    sink = _Listing(done)
    call = UpstreamCall(
        origin=provider.origin,
        method=b"GET",
        target=(provider.base_path + dialect.models_path).encode("ascii"),
        headers=provider_headers(provider, dialect),
        body=b"",
        connect_timeout_s=LISTING_TIMEOUT_S,
    )
    exchange = upstream.dispatch(call, sink)
    limit = clock.call_at(
        clock.now() + LISTING_TIMEOUT_S,
        lambda: sink.fail(f"no answer within {LISTING_TIMEOUT_S:g} s"),
    )
    try:
        return dialect.read_models(await done)
    except ValueError as error:
        msg = f"its listing does not parse: {error}"
        raise DiscoveryError(msg) from error
    finally:
        limit.cancel()
        exchange.cancel()

"""A client, a raw peer and calls between them: what most tests of the client stand on."""

import asyncio
from contextlib import asynccontextmanager
from typing import Any

import uvloop
from tests.contracts.upstream import Tape
from tests.integration.upstream.peer import LIMIT_S, listen

from outlast.model.topology import Origin
from outlast.ports import UpstreamCall
from outlast.upstream.client import HttpUpstream

LOOPS = {"asyncio": asyncio.new_event_loop, "uvloop": uvloop.new_event_loop}


def run(main, loop_name="uvloop"):
    """Run a coroutine on one of the two loops, with a limit."""

    async def limited():
        async with asyncio.timeout(2 * LIMIT_S):
            return await main

    with asyncio.Runner(loop_factory=LOOPS[loop_name]) as runner:
        return runner.run(limited())


def call_to(port, *, scheme="http", host="127.0.0.1", **changes):
    fields: dict[str, Any] = {
        "origin": Origin(scheme, host, port),
        "method": b"POST",
        "target": b"/v1/chat/completions",
        "headers": ((b"content-type", b"application/json"),),
        "body": b"{}",
        "connect_timeout_s": 5.0,
    }
    return UpstreamCall(**(fields | changes))


@asynccontextmanager
async def client(**options):
    upstream = HttpUpstream(asyncio.get_running_loop(), **options)
    try:
        yield upstream
    finally:
        await upstream.aclose()


@asynccontextmanager
async def client_and_peer(talk, *, server_context=None, host="127.0.0.1", **options):
    async with (
        listen(talk, ssl_context=server_context, host=host) as peer,
        client(**options) as upstream,
    ):
        yield upstream, peer


async def told(upstream, call):
    """Dispatch and wait for the end; returns the tape."""
    tape = Tape()
    upstream.dispatch(call, tape)
    assert tape.told == []
    await tape.ended()
    return tape

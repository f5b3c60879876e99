"""Both hosts play the same: a calamity looks alike in memory and over a socket."""

import asyncio
import json
import random
from contextlib import AsyncExitStack

import pytest

from outlast.model.topology import Origin
from outlast.ports import UpstreamCall
from outlast.sim.calamities import CALAMITIES
from outlast.sim.provider import SimRequest, Voice, healthy
from outlast.sim.script import Blackhole, Hang, Refuse, Wait
from outlast.sim.sockets import closed_port, serve, silent_port
from outlast.sim.upstream import SimUpstream
from outlast.sim.virtual_loop import run, running_clock
from outlast.upstream.client import HttpUpstream

LIMIT_S = 10.0
VOICE = Voice("sim-a", words=5)
BEHAVIOURS = {"healthy": healthy(VOICE)} | {
    name: calamity.behaviour(VOICE) for name, calamity in CALAMITIES.items()
}
CASES = [(name, stream) for name in BEHAVIOURS for stream in (True, False)]
FRAMING = {b"transfer-encoding", b"content-length", b"connection"}


def quick(behaviour):
    """The same script with gaps too short to notice."""

    def behave(request, call, rng):
        script = behaviour(request, call, rng)
        return tuple(Wait(0.001) if isinstance(step, Wait) else step for step in script)

    return behave


class Tape:
    """A sink that keeps what it was told, with the body in one piece."""

    def __init__(self):
        self.head = None
        self.body = b""
        self.last = None
        self.ended = asyncio.Event()
        self.heard = asyncio.Event()

    def on_head(self, status, headers):
        self.head = (status, [h for h in headers if h[0] not in FRAMING])
        self.heard.set()

    def on_data(self, data):
        self.body += data
        self.heard.set()

    def on_end(self):
        self._end("end")

    def on_failure(self, failure):
        self._end((failure.phase, failure.how))

    def _end(self, last):
        assert self.last is None
        self.last = last
        self.heard.set()
        self.ended.set()

    def told(self):
        return self.head, self.body, self.last

    async def until(self, told):
        """Wait until at least as much was told as in `told`."""
        while self.last is None and (self.head is None) == (told[0] is not None):
            await self._more()
        while self.last is None and len(self.body) < len(told[1]):
            await self._more()

    async def _more(self):
        self.heard.clear()
        await self.heard.wait()


def call_for(port, stream):
    body = {"model": "m", "messages": [], "stream": stream}
    if stream:
        body["stream_options"] = {"include_usage": True}
    return UpstreamCall(
        origin=Origin("http", "127.0.0.1", port),
        method=b"POST",
        target=b"/v1/chat/completions",
        headers=((b"content-type", b"application/json"),),
        body=json.dumps(body).encode(),
        connect_timeout_s=0.3,
    )


def script_of(name, stream):
    call = call_for(1, stream)
    request = SimRequest(call.method, call.target, call.headers, call.body)
    return BEHAVIOURS[name](request, 0, random.Random(0))  # noqa: S311 - chance of a simulation


def in_memory(name, stream):
    """What the sink is told; a script that hangs is left after a virtual hour."""

    async def main():
        clock = running_clock()
        upstream = SimUpstream(clock, {"127.0.0.1": quick(BEHAVIOURS[name])})
        tape = Tape()
        exchange = upstream.dispatch(call_for(1, stream), tape)
        clock.call_at(3600.0, tape.ended.set)
        await tape.ended.wait()
        exchange.cancel()
        assert upstream.open_exchanges == 0
        return tape.told()

    return run(main())


async def over_sockets(name, stream, expected):
    """The same over a socket; a script that hangs is left once all has come that must come."""
    step = script_of(name, stream)[0]
    async with asyncio.timeout(LIMIT_S), AsyncExitStack() as stack:
        upstream = HttpUpstream(asyncio.get_running_loop())
        stack.push_async_callback(upstream.aclose)
        server = None
        if isinstance(step, Refuse):
            port = stack.enter_context(closed_port())
        elif isinstance(step, Blackhole):
            port = stack.enter_context(silent_port())
        else:
            server = await stack.enter_async_context(serve(quick(BEHAVIOURS[name])))
            port = server.port
        tape = Tape()
        exchange = upstream.dispatch(call_for(port, stream), tape)
        if server is not None:
            await server.reached(lambda: server.calls == 1)
        if expected[2] is None:
            assert server is not None
            await tape.until(expected)
            exchange.cancel()
            await server.closed()
            assert server.left_early == 1
        else:
            await tape.ended.wait()
        return tape.told()


@pytest.mark.parametrize(("name", "stream"), CASES)
def test_both_hosts_tell_the_same(name, stream):
    expected = in_memory(name, stream)
    assert (expected[2] is None) == isinstance(script_of(name, stream)[-1], Hang)
    assert asyncio.run(over_sockets(name, stream, expected)) == expected


def test_the_connection_to_a_well_provider_is_used_again():
    async def main():
        async with asyncio.timeout(LIMIT_S), serve(quick(healthy(VOICE))) as server:
            upstream = HttpUpstream(asyncio.get_running_loop())
            for _ in range(3):
                tape = Tape()
                upstream.dispatch(call_for(server.port, stream=True), tape)
                await tape.ended.wait()
                assert tape.last == "end"
            made = server.connections_made
            await upstream.aclose()
            await server.closed()
            return made, server.calls

    assert asyncio.run(main()) == (1, 3)

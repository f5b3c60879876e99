"""The socket client keeps the port's contract: on both event loops, plain and under TLS."""

import asyncio
from contextlib import AsyncExitStack, asynccontextmanager

import pytest
import uvloop
from tests.contracts.upstream import RULES
from tests.integration.upstream.certificates import Authority
from tests.integration.upstream.peer import listen
from tests.integration.upstream.scripted import playing

from outlast.model.topology import Origin
from outlast.ports import UpstreamCall
from outlast.sim.script import Blackhole, Refuse
from outlast.sim.sockets import closed_port, silent_port
from outlast.upstream.client import HttpUpstream

LOOPS = {"asyncio": asyncio.new_event_loop, "uvloop": uvloop.new_event_loop}


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("authority"))


def world_maker(scheme, authority):
    @asynccontextmanager
    async def make_world(script):
        async with AsyncExitStack() as stack:
            if isinstance(script[0], Refuse):
                port = stack.enter_context(closed_port())
            elif isinstance(script[0], Blackhole):
                port = stack.enter_context(silent_port())
            else:
                ssl_context = authority.server_context("127.0.0.1") if scheme == "https" else None
                talk = playing(script)
                peer = await stack.enter_async_context(listen(talk, ssl_context=ssl_context))
                port = peer.port
            upstream = HttpUpstream(
                asyncio.get_running_loop(),
                ssl_context=authority.client_context() if scheme == "https" else None,
            )
            stack.push_async_callback(upstream.aclose)
            yield (
                upstream,
                UpstreamCall(
                    origin=Origin(scheme, "127.0.0.1", port),
                    method=b"POST",
                    target=b"/v1/chat/completions",
                    headers=((b"content-type", b"application/json"),),
                    body=b"{}",
                    connect_timeout_s=0.2 if isinstance(script[0], Blackhole) else 5.0,
                ),
            )

    return make_world


@pytest.mark.parametrize("loop_name", LOOPS)
@pytest.mark.parametrize("scheme", ["http", "https"])
@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_the_port_holds(rule, scheme, loop_name, authority):
    with asyncio.Runner(loop_factory=LOOPS[loop_name]) as runner:
        runner.run(rule(world_maker(scheme, authority)))

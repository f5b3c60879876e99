"""The caller's socket closes: so does the provider's, at once, and nobody is blamed.

Times are read from the loop in which both the caller and the provider live. Every single try must
keep the bound.
"""

import pytest
from tests.acceptance.process import eventually
from tests.acceptance.street import voice, well
from tests.acceptance.wire import Wire, chat

from outlast.sim.answers import SSE_HEADERS, role_chunk
from outlast.sim.calamities import CALAMITIES
from outlast.sim.provider import answer
from outlast.sim.script import Body, Hang, Head

pytestmark = pytest.mark.slow

CLOSED_WITHIN_S = 0.1
TRIES = 20
LARGE = "x" * 1_000_000
SIZES = {"small": "hi", "one_megabyte": LARGE}


def preamble(request, call, _rng):
    """The head and the role chunk, then silence."""
    who = voice("preamble").identity(call)
    return answer(
        voice("preamble"),
        request,
        lambda asked: (Head(200, SSE_HEADERS), Body(role_chunk(who, asked)), Hang()),
    )


PHASES = {
    "hang": (CALAMITIES["header_hang"].behaviour(voice("hang")), True),
    "hang_whole": (CALAMITIES["header_hang"].behaviour(voice("hang_whole")), False),
    "preamble": (preamble, True),
    "midway": (CALAMITIES["stall_after_commit"].behaviour(voice("midway")), True),
    "body": (CALAMITIES["stall_after_commit"].behaviour(voice("body")), False),
}
"""Where the provider falls silent, and whether a stream was asked for."""

PATIENT = {"first_token": "60s", "request": "60s", "idle_stream": "60s"}
FIRST_DELAY = {"base_delay": "30s", "max_delay": "30s", "jitter": "none"}


@pytest.fixture(scope="module")
def gateway(street):
    for phase, (behaviour, _) in PHASES.items():
        street.open(phase, behaviour)
    street.open("spare", well("spare"))
    return street.gateway(
        {f"pool-{phase}": [phase, "spare"] for phase in PHASES},
        timeouts=PATIENT,
        failover={"deadline": "200s"},
    )


def gone(gateway):
    return gateway.stats()["totals"]["outcomes"].get("client_gone", 0)


def assert_nobody_is_blamed(gateway, deployment):
    row = gateway.health(deployment)
    assert (row["state"], row["inflight"], row["available"]) == ("closed", 0, True)
    assert (row["consecutive_failures"], row["window_failures"]) == (0, 0)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("phase", PHASES)
def test_a_caller_that_leaves_closes_the_providers_connection(street, gateway, phase, size):
    server = street.at[phase]
    body = chat(f"pool-{phase}", stream=PHASES[phase][1], prompt=SIZES[size])

    async def leave_midway():
        asked, left = server.calls, server.left_early
        wire = await Wire.to(gateway.port)
        try:
            await wire.send(body)
            await server.reached(lambda: server.calls == asked + 1)
            assert len(server.requests[-1].body) > len(SIZES[size])
            if phase == "midway":
                status, _ = await wire.head()
                assert status == 200
                await wire.reader.readuntil(b" w0")
        finally:
            started = street.loop.time()
            wire.leave()
        await server.reached(lambda: server.left_early == left + 1)
        await server.closed()
        return street.loop.time() - started

    before = gone(gateway)
    took_s = [street.run(leave_midway()) for _ in range(TRIES)]
    assert max(took_s) <= CLOSED_WITHIN_S, took_s
    eventually(lambda: gone(gateway) == before + len(took_s))
    assert_nobody_is_blamed(gateway, phase)
    assert street.at["spare"].calls == 0


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("wait", ["retry", "hop"])
def test_a_caller_that_leaves_between_two_calls_ends_the_walk(lane, wait, size):
    lane.open("bad", CALAMITIES["status_503"].behaviour(voice("bad")))
    lane.open("spare", well("spare"))
    if wait == "retry":
        gateway = lane.gateway(
            {"pool": ["bad"]}, retry=FIRST_DELAY, timeouts=PATIENT, failover={"deadline": "200s"}
        )
    else:
        gateway = lane.gateway(
            {"pool": ["bad", "spare"]},
            timeouts=PATIENT,
            failover={"deadline": "200s", "backoff": FIRST_DELAY},
        )
    bad = lane.at["bad"]

    async def leave_in_between():
        wire = await Wire.to(gateway.port)
        await wire.send(chat("pool", prompt=SIZES[size]))
        await bad.reached(lambda: bad.calls == 1)
        return wire

    wire = lane.run(leave_in_between())
    eventually(lambda: gateway.health("bad")["window_failures"] == 1)
    assert gateway.health("bad")["inflight"] == 0
    assert gone(gateway) == 0
    lane.loop.call_soon_threadsafe(wire.leave)
    eventually(lambda: gone(gateway) == 1)  # far sooner than the wait's end: the walk is over
    assert (bad.calls, lane.at["spare"].calls) == (1, 0)
    assert bad.left_early == 0
    row = gateway.health("bad")
    assert (row["window_failures"], row["consecutive_failures"]) == (1, 1)  # its own 503, no more

"""The end of a cooldown: one probe, however many ask, and its slot comes back."""

import asyncio

import pytest
from tests.acceptance.process import eventually
from tests.acceptance.street import voice, well
from tests.acceptance.wire import Wire, chat

from outlast.sim.calamities import CALAMITIES
from outlast.sim.provider import Voice, healthy
from outlast.sim.script import Hang

pytestmark = pytest.mark.slow

TRIPS_AT = 5
CROWD = 50
PROBE_S = 1.0


def failing(name):
    return CALAMITIES["status_500"].behaviour(voice(name))


@pytest.fixture(scope="module")
def gateway(street):
    pools = {}
    for pool in ("crowd", "leaver", "sick"):
        street.open(f"bad-{pool}", failing(f"bad-{pool}"))
        street.open(f"good-{pool}", well(f"good-{pool}"))
        pools[pool] = [f"bad-{pool}", f"good-{pool}"]
    return street.gateway(pools, timeouts={"first_token": "10s", "request": "10s"})


def open_and_cool_down(gateway, pool):
    """Make the first provider's breaker open, and wait until it may be probed."""
    for _ in range(TRIPS_AT):
        status, headers, _ = gateway.request("POST", "/v1/chat/completions", chat(pool))
        assert (status, headers["x-outlast-provider"]) == (200, f"good-{pool}")
    row = gateway.health(f"bad-{pool}")
    assert row["consecutive_failures"] == TRIPS_AT
    assert row["state"] != "closed"
    eventually(lambda: gateway.health(f"bad-{pool}")["available"])


def test_a_crowd_at_the_end_of_a_cooldown_sends_one_probe(street, gateway):
    open_and_cool_down(gateway, "crowd")
    bad = street.at["bad-crowd"]
    asked = bad.calls
    bad.behaviour = healthy(Voice("bad-crowd", words=3, first_token_s=PROBE_S, gap_s=0.0))

    async def ask(wire):
        await wire.send(chat("crowd", stream=True))
        answer = await wire.answer()
        assert answer.status == 200
        return answer.headers["x-outlast-provider"]

    async def crowd():
        wires = [await Wire.to(gateway.port) for _ in range(CROWD)]
        try:
            return await asyncio.gather(*map(ask, wires))
        finally:
            for wire in wires:
                wire.leave()

    who = street.run(crowd())
    assert bad.calls == asked + 1
    assert sorted(set(who)) == ["bad-crowd", "good-crowd"]
    assert who.count("bad-crowd") == 1
    assert gateway.health("bad-crowd")["state"] == "closed"


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_a_probe_whose_caller_leaves_gives_its_slot_back(street, gateway, stream):
    bad = street.at["bad-leaver"]
    bad.behaviour = failing("bad-leaver")
    open_and_cool_down(gateway, "leaver")
    bad.behaviour = lambda _request, _call, _rng: (Hang(),)

    async def leave_midway():
        asked = bad.calls
        wire = await Wire.to(gateway.port)
        await wire.send(chat("leaver", stream=stream))
        await bad.reached(lambda: bad.calls == asked + 1)
        wire.leave()

    street.run(leave_midway())
    eventually(lambda: gateway.health("bad-leaver")["inflight"] == 0)
    row = gateway.health("bad-leaver")
    assert row["available"], row
    assert row["state"] != "closed"
    bad.behaviour = well("bad-leaver")
    _, headers, _ = gateway.request("POST", "/v1/chat/completions", chat("leaver", stream=stream))
    assert headers["x-outlast-provider"] == "bad-leaver"
    assert gateway.health("bad-leaver")["state"] == "closed"


def test_a_probe_that_fails_costs_its_caller_nothing_and_rests_the_provider_again(street, gateway):
    open_and_cool_down(gateway, "sick")
    asked = street.at["bad-sick"].calls
    _, headers, _ = gateway.request("POST", "/v1/chat/completions", chat("sick"))
    assert headers["x-outlast-provider"] == "good-sick"
    assert street.at["bad-sick"].calls == asked + 1
    assert not gateway.health("bad-sick")["available"]

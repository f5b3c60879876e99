"""A start with nothing but a key: the provider's own list of models, or a clear refusal."""

import asyncio
import sys

import pytest
from msgspec import structs

import outlast.cli
from outlast.cli import serve as serve_command
from outlast.config.environment import OPENAI, openai_topology
from outlast.config.load import load
from outlast.engine.clock import LoopClock
from outlast.engine.discovery import LISTING_TIMEOUT_S, DiscoveryError, discover
from outlast.model.policy import RequestPolicy
from outlast.model.topology import Origin
from outlast.protocols.table import DIALECTS
from outlast.sim.answers import error_body
from outlast.sim.provider import Voice, healthy, whole
from outlast.sim.script import Cut, Hang
from outlast.sim.sockets import closed_port, serve
from outlast.sim.upstream import SimUpstream
from outlast.sim.virtual_loop import run, running_clock
from outlast.upstream.client import HttpUpstream

KEY = "sk-canary-of-discovery"


def openai_at(host, port):
    """The provider that the key makes, moved to another place."""
    provider = openai_topology(KEY, RequestPolicy()).providers[OPENAI]
    return structs.replace(provider, origin=Origin("http", host, port))


def answers(*script):
    return lambda _request, _call, _rng: script


async def listed(behaviour):
    """What discovery makes of a provider on a socket, and what that provider was asked."""
    loop = asyncio.get_running_loop()
    async with serve(behaviour) as server:
        upstream = HttpUpstream(loop)
        try:
            found = await discover(
                openai_at("127.0.0.1", server.port),
                DIALECTS["openai"],
                upstream=upstream,
                clock=LoopClock(loop, 0.0),
            )
        finally:
            await upstream.aclose()
        return found, list(server.requests)


def test_the_providers_own_models_are_listed_with_its_key():
    found, requests = asyncio.run(listed(healthy(Voice("openai", models=("gpt-a", "gpt-b")))))
    assert found == ["gpt-a", "gpt-b"]
    (request,) = requests
    assert (request.method, request.target) == (b"GET", b"/v1/models")
    assert dict(request.headers)[b"authorization"] == b"Bearer " + KEY.encode()


REFUSALS = {
    "unauthorised": (whole(401, error_body(f"Wrong key {KEY}", "x")), "it answered 401"),
    "broken": (whole(500, error_body(f"Oops {KEY}", "x")), "it answered 500"),
    "page": (whole(200, b"<!doctype html>"), "its listing does not parse"),
    "reset": ((Cut(),), "reset"),
}


@pytest.mark.parametrize("how", REFUSALS)
def test_a_listing_that_fails_says_why_without_the_providers_words(how):
    script, why = REFUSALS[how]
    with pytest.raises(DiscoveryError, match=why) as caught:
        asyncio.run(listed(answers(*script)))
    assert KEY not in str(caught.value)


def test_a_listing_is_waited_for_ten_seconds_and_no_longer():
    async def play():
        clock = running_clock()
        upstream = SimUpstream(clock, {"openai": answers(Hang())})
        with pytest.raises(DiscoveryError, match="no answer within 10 s"):
            await discover(
                openai_at("openai", 80), DIALECTS["openai"], upstream=upstream, clock=clock
            )
        assert clock.now() == pytest.approx(LISTING_TIMEOUT_S)
        assert upstream.open_exchanges == 0

    run(play())


@pytest.fixture
def start(monkeypatch, capfd):
    """`outlast serve` in this process with nothing but a key, its provider at a loopback port."""

    def begin(port):
        def moved(path, env, *, insecure=False):
            known = {"OPENAI_API_KEY": KEY, "OUTLAST_LISTEN": "127.0.0.1:0"}
            loaded = load(None, known, insecure=insecure)
            provider = openai_at("127.0.0.1", port)
            topology = structs.replace(loaded.topology, providers={OPENAI: provider})
            return structs.replace(loaded, topology=topology)

        monkeypatch.setattr(serve_command, "load", moved)
        monkeypatch.setattr(sys, "argv", ["outlast", "serve"])
        with pytest.raises(SystemExit) as ended:
            outlast.cli.main()
        said = capfd.readouterr()
        return ended.value.code, said.out, said.err

    return begin


def test_a_start_that_cannot_list_models_ends_with_a_clear_message(start, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    with closed_port() as port:
        code, out, err = start(port)
    assert (code, out) == (1, "")
    assert err.startswith("outlast: cannot list the models of OpenAI: refused (connect)")
    assert "Check its key and the network" in err
    assert KEY not in err


def test_a_start_with_a_refused_key_ends_with_a_clear_message(start, lane, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    lane.open("openai", answers(*whole(401, error_body(f"Incorrect API key: {KEY}", "x"))))
    code, out, err = start(lane.at["openai"].port)
    assert (code, out) == (1, "")
    assert err.startswith("outlast: cannot list the models of OpenAI: it answered 401")
    assert KEY not in err

"""A stop while answers are on their way: they end whole, new ones go elsewhere."""

import json
import signal
import threading

import pytest
from tests.acceptance.process import eventually
from tests.acceptance.wire import Wire, chat

from outlast.sim.answers import read_text
from outlast.sim.provider import Voice, healthy

pytestmark = pytest.mark.slow

UNHURRIED = Voice("one", words=30, first_token_s=0.0, gap_s=0.1)
"""Its stream takes longer than the notice that a stop gives to load balancers."""


def test_a_stop_lets_a_running_stream_end_whole_and_turns_new_requests_away(lane):
    lane.open("one", healthy(UNHURRIED))
    gateway = lane.gateway({"pool": ["one"]}, server={"drain_timeout": "10s"})
    begun = threading.Event()
    said = []

    def read():
        stream = gateway.client.chat.completions.create(
            model="pool", messages=[{"role": "user", "content": "hi"}], stream=True
        )
        for chunk in stream:
            said.append(chunk)
            begun.set()

    reader = threading.Thread(target=read)
    reader.start()
    assert begun.wait(5.0)
    gateway.process.send_signal(signal.SIGTERM)
    eventually(lambda: gateway.request("GET", "/readyz")[0] == 503)
    status, headers, body = gateway.request("POST", "/v1/chat/completions", chat("pool"))
    assert status == 503
    assert headers["x-should-retry"] == "true"
    assert json.loads(body)["error"]["metadata"]["gateway_code"] == "gateway_draining"
    assert gateway.wait(limit_s=15.0) == 0
    reader.join(5.0)
    text = "".join(c.choices[0].delta.content or "" for c in said if c.choices)
    assert read_text(text) is not None, text
    assert lane.at["one"].calls == 1


def test_a_second_signal_skips_the_notice(lane):
    lane.open("one", healthy(UNHURRIED))
    gateway = lane.gateway({"pool": ["one"]})
    gateway.process.send_signal(signal.SIGTERM)
    eventually(lambda: gateway.request("GET", "/readyz")[0] == 503)
    assert gateway.signal(signal.SIGTERM, limit_s=5.0) == 0


def test_a_caller_on_an_idle_connection_does_not_hold_up_a_stop(lane):
    lane.open("one", healthy(Voice("one", words=1, first_token_s=0.0, gap_s=0.0)))
    gateway = lane.gateway({"pool": ["one"]}, server={"drain_timeout": "60s"})

    async def connected():
        wire = await Wire.to(gateway.port)
        await wire.send(chat("pool"))
        assert (await wire.answer()).status == 200
        return wire

    wire = lane.run(connected())
    assert gateway.signal(signal.SIGINT, limit_s=5.0) == 0
    lane.loop.call_soon_threadsafe(wire.leave)

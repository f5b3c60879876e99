"""The caller's own mistake comes back as the provider said it, and harms nobody's health."""

import asyncio

import openai
import pytest
from tests.acceptance.street import voice, well
from tests.acceptance.wire import Wire, chat

from outlast.sim.calamities import CALAMITIES
from outlast.sim.script import Body, End, Head

pytestmark = pytest.mark.slow

MISTAKES = 1_000
AT_ONCE = 50

SAID = (
    b'{ "error" :\t{"message":"temp\\u00e9rature \\/ 9 \xe2\x80\x94 is too hot", "x":1e400,\r\n'
    b'"type":"invalid_request_error","param":"temperature","code":"invalid_value"} }\n'
)
"""A body that no encoder would spell again in the same way."""


def refuses(_request, _call, _rng):
    return (Head(400, ((b"content-type", b"application/json; charset=utf-8"),)), Body(SAID), End())


@pytest.fixture(scope="module")
def gateway(street):
    street.open("strict", refuses)
    street.open("strict-too", refuses)
    street.open("next", well("next"))
    return street.gateway({"pool": ["strict", "next"], "crowd": ["strict-too", "next"]})


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_a_callers_mistake_comes_back_byte_for_byte(street, gateway, stream):
    asked = street.at["strict"].calls
    status, headers, body = gateway.request(
        "POST", "/v1/chat/completions", chat("pool", stream=stream)
    )
    assert (status, body) == (400, SAID)
    assert headers["content-type"] == "application/json; charset=utf-8"
    assert headers["x-should-retry"] == "false"
    assert headers["x-outlast-failovers"] == "0"
    assert street.at["strict"].calls == asked + 1
    assert street.at["next"].calls == 0


def test_the_sdk_says_a_mistake_as_the_provider_worded_it(gateway):
    with pytest.raises(openai.BadRequestError) as caught:
        gateway.client.chat.completions.create(
            model="pool", messages=[{"role": "user", "content": "hi"}], temperature=9
        )
    assert caught.value.param == "temperature"
    assert caught.value.code == "invalid_value"
    assert "is too hot" in str(caught.value)


def test_a_thousand_mistakes_move_no_breaker(street, gateway):
    before = street.at["strict-too"].calls

    async def makes_mistakes(number):
        wire = await Wire.to(gateway.port)
        try:
            for turn in range(number):
                await wire.send(chat("crowd", stream=turn % 2 == 1))
                answer = await wire.answer()
                assert (answer.status, answer.body) == (400, SAID)
        finally:
            wire.leave()

    async def crowd():
        async with asyncio.TaskGroup() as group:
            for _ in range(AT_ONCE):
                group.create_task(makes_mistakes(MISTAKES // AT_ONCE))

    street.run(crowd())
    assert street.at["strict-too"].calls == before + MISTAKES
    assert street.at["next"].calls == 0
    row = gateway.health("strict-too")
    assert (row["state"], row["available"]) == ("closed", True)
    assert (row["consecutive_failures"], row["window_failures"], row["inflight"]) == (0, 0, 0)
    assert gateway.stats()["totals"]["breaker_trips"] == 0


def test_the_catalogues_mistake_is_the_callers_too(lane):
    lane.open("strict", CALAMITIES["caller_400"].behaviour(voice("strict")))
    lane.open("next", well("next"))
    gateway = lane.gateway({"pool": ["strict", "next"]})
    with pytest.raises(openai.BadRequestError, match="Bad temperature"):
        gateway.client.chat.completions.create(
            model="pool", messages=[{"role": "user", "content": "hi"}]
        )
    assert lane.at["next"].calls == 0

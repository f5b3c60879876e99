"""How a walk without an answer ends: status, code, and whose words the caller reads."""

import asyncio
import gzip
from typing import Any

import pytest
from msgspec import structs
from tests.house import Caller, House

from outlast.model.fault import Break, Phase, TransportFailure
from outlast.model.ids import DeploymentName
from outlast.model.policy import (
    Backoff,
    CandidatePolicy,
    Jitter,
    RequestPolicy,
    RetryPolicy,
    RetryWhen,
)
from outlast.ports import Sink, UpstreamCall
from outlast.protocols.table import DIALECTS
from outlast.sim.calamities import CALAMITIES
from outlast.sim.provider import Voice, healthy
from outlast.sim.script import Body, Cut, End, Head
from outlast.sim.virtual_loop import run

WELL = healthy(Voice("well"))
JSON = ((b"content-type", b"application/json"),)
ONCE = CandidatePolicy(retry=RetryPolicy(when=RetryWhen.NEVER))
STREAMS = pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])


def says(status: int, body: bytes, *end):
    steps = (Head(status, JSON), Body(body), *(end or (End(),)))
    return lambda _request, _call, _rng: steps


def bad(name: str):
    return CALAMITIES[name].behaviour(Voice("bad"))


async def failing(house: House, *, stream: bool = False):
    caller = await house.ask(stream=stream)
    assert caller.error is not None
    assert caller.status is None
    house.assert_nothing_is_left()
    return caller.error


def test_a_429_with_failover_off_is_the_callers_to_handle_and_moves_nothing():
    async def play():
        house = House(
            {"bad": bad("status_429_retry_after"), "well": WELL},
            request=RequestPolicy(on_rate_limit=False),
        )
        error = await failing(house)
        assert (error.status, error.gateway_code) == (429, "provider_rate_limited")
        assert error.retry_after_s == 7.0
        assert house.upstream.calls == {"bad": 1}
        again = await failing(house)
        assert again.status == 429  # no rest was ordered: it was asked again
        assert house.upstream.calls == {"bad": 2}

    run(play())


def test_too_large_for_everybody_is_413():
    async def play():
        large = says(413, b'{"error":{"message":"too large"}}')
        error = await failing(House({"one": large, "two": large}))
        assert (error.status, error.gateway_code, error.retryable) == (
            413,
            "request_too_large",
            False,
        )

    run(play())


def test_too_large_for_one_goes_to_the_next():
    async def play():
        house = House({"one": says(413, b"{}"), "well": WELL})
        assert (await house.ask(stream=False)).answered_by() == "well"
        assert house.states()["one"] == "closed"

    run(play())


@STREAMS
def test_a_refusal_as_an_error_is_the_answer(stream):
    async def play():
        words = b'{"error":{"message":"no","code":"content_policy_violation"}}'
        house = House({"one": says(400, words), "well": WELL})
        caller = await house.ask(stream=stream)
        assert (caller.status, caller.body) == (400, words)
        assert caller.headers["x-outlast-gateway-code"] == "refusal"
        assert house.upstream.calls == {"one": 1}

    run(play())


def test_a_filtered_answer_is_the_answer_and_says_so_in_its_head():
    async def play():
        answer = (
            b'{"choices":[{"message":{"content":""},"finish_reason":"content_filter"}],'
            b'"usage":{"prompt_tokens":1}}'
        )
        house = House({"one": says(200, answer), "well": WELL})
        caller = await house.ask(stream=False)
        assert (caller.status, caller.headers["x-outlast-gateway-code"]) == (200, "refusal")
        assert house.ended[0].code == "refusal"

    run(play())


@STREAMS
def test_an_error_body_that_is_cut_still_says_its_status(stream):
    async def play():
        house = House({"one": says(401, b'{"err', Cut()), "well": WELL})
        assert (await house.ask(stream=stream)).answered_by() == "well"
        assert house.outcomes[0] == ("one", "provider_auth")

    run(play())


def test_a_huge_error_body_is_cut_and_worded_by_us():
    async def play():
        house = House({"one": says(400, b"x" * 1_100_000)})
        error = await failing(house)
        assert (error.status, error.gateway_code) == (400, "invalid_request")

    run(play())


def test_an_empty_400_is_worded_by_us():
    async def play():
        steps = (Head(400, JSON), End())
        error = await failing(House({"one": lambda _r, _c, _n: steps}))
        assert (error.status, error.message) == (400, "The provider rejected the request.")

    run(play())


def test_a_whole_answer_to_a_stream_request_is_no_answer():
    async def play():
        whole = b'{"choices":[{"message":{"content":"hi"},"finish_reason":"stop"}]}'
        house = House({"one": says(200, whole), "well": WELL})
        assert (await house.ask(stream=True)).answered_by() == "well"
        assert house.outcomes[0] == ("one", "malformed_response")

    run(play())


@pytest.mark.parametrize("status", [201, 204, 302])
def test_a_status_that_is_no_answer_moves_on(status):
    async def play():
        house = House({"one": says(status, b"{}"), "well": WELL})
        assert (await house.ask(stream=False)).answered_by() == "well"
        assert house.outcomes[0] == ("one", "malformed_response")

    run(play())


def test_all_failed_and_all_resting_tells_the_soonest_recovery():
    async def play():
        house = House({"one": bad("status_401"), "two": bad("status_404")}, policy=ONCE)
        error = await failing(house)
        assert (error.status, error.gateway_code) == (502, "all_routes_failed")
        assert error.retry_after_s == 30.0
        assert [a.code for a in error.attempts] == ["unauthenticated", "provider_unavailable"]

    run(play())


class Exhausted:
    """An upstream without a connection left."""

    def __init__(self, house: House) -> None:
        self._house = house

    def dispatch(self, call: UpstreamCall, sink: Sink):
        failure = TransportFailure(Phase.CONNECT, Break.EXHAUSTED, "2000 connections are in use")
        clock = self._house.clock
        clock.call_at(clock.now(), lambda: sink.on_failure(failure))
        return _Idle()

    async def aclose(self) -> None:
        return None


class _Idle:
    replaced = False

    def cancel(self) -> None: ...

    def pause(self) -> None: ...

    def resume(self) -> None: ...


def test_when_our_own_connections_are_the_problem_nobody_is_blamed():
    async def play():
        house = House({"one": WELL, "two": WELL})
        house.engine.world = structs.replace(house.engine.world, upstream=Exhausted(house))
        error = await failing(house)
        assert (error.status, error.gateway_code) == (503, "gateway_overloaded")
        assert error.retry_after_s == 1.0
        assert set(house.states().values()) == {"closed"}

    run(play())


def test_the_walk_waits_between_candidates_where_told_to():
    async def play():
        backoff = Backoff(base_delay_s=1.0, max_delay_s=1.0, jitter=Jitter.NONE)
        house = House(
            {"bad": bad("refused"), "well": WELL}, request=RequestPolicy(hop_backoff=backoff)
        )
        await house.ask(stream=False)
        assert house.clock.now() == pytest.approx(1.05, abs=0.01)
        gone = Caller()
        house.clock.call_at(house.clock.now() + 0.5, gone.leave)
        await house.ask(stream=False, caller=gone)
        assert house.upstream.calls == {"bad": 2, "well": 1}
        assert house.ended[-1].outcome == "client_gone"

    run(play())


GZIPPED = gzip.compress(b'{"error":{"message":"your key sk-one is wrong"}}')


@pytest.mark.parametrize(
    ("headers", "body"),
    [(((b"content-encoding", b"gzip"),), GZIPPED), ((), GZIPPED), ((), b'{"error":"\xff"}')],
    ids=["encoded", "encoded in secret", "not UTF-8"],
)
def test_an_error_body_that_cannot_be_read_for_our_key_is_not_relayed(headers, body):
    async def play():
        steps = (Head(400, (*JSON, *headers)), Body(body), End())
        error = await failing(House({"one": lambda _r, _c, _n: steps}))
        assert (error.status, error.message) == (400, "The provider rejected the request.")

    run(play())


@pytest.mark.parametrize("value", [b"999999999999", b"Fri, 31 Dec 9999 23:59:59 -2359"])
def test_a_retry_after_beyond_all_calendars_is_cut_and_can_be_worded(value):
    async def play():
        steps = (Head(429, (*JSON, (b"retry-after", value))), Body(b"{}"), End())
        error = await failing(House({"one": lambda _r, _c, _n: steps}))
        assert (error.status, error.gateway_code) == (429, "provider_rate_limited")
        assert b"retry_after" in DIALECTS["openai"].error_body(error, "r", None)

    run(play())


@STREAMS
@pytest.mark.parametrize("more", [b'"j":1e999', b'"j":"\xff"', b'"\xff":1'])
def test_an_error_beside_what_cannot_be_read_moves_on_at_once(stream, more):
    async def play():
        body = b'{"error":{"type":"overloaded_error"},' + more + b"}"
        steps = (Head(200, JSON), Body(body), End())
        if stream:
            head = Head(200, ((b"content-type", b"text/event-stream"),))
            steps = (head, Body(b"data: " + body + b"\n\n"), End())
        house = House({"one": lambda _r, _c, _n: steps, "well": WELL})
        assert (await house.ask(stream=stream)).answered_by() == "well"
        assert house.clock.now() < 1.0
        assert house.outcomes[0] == ("one", "provider_5xx")

    run(play())


def test_a_good_answer_with_a_name_that_cannot_be_read_is_relayed_as_it_is():
    async def play():
        answer = (
            b'{"choices":[{"message":{"content":"hi"},"finish_reason":"stop"}],'
            b'"\xff":"routing","x":["routing"]}'
        )
        house = House({"one": says(200, answer)})
        caller = await house.ask(stream=False)
        assert caller.error is None
        assert (caller.status, caller.body) == (200, answer)

    run(play())


@pytest.mark.parametrize("status", [200, 500])
def test_a_reader_that_fails_costs_its_attempt_and_not_the_callers_patience(status):
    async def play():
        heard: list[Any] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, what: heard.append(what))
        house = House({"one": says(status, b"{}"), "well": WELL})
        world = house.engine.world
        routes = dict(world.snapshot.routes)
        name = DeploymentName("one")
        broken = structs.replace(routes[name].dialect, read_whole=explode, read_error=explode)
        routes[name] = structs.replace(routes[name], dialect=broken)
        snapshot = structs.replace(world.snapshot, routes=routes)
        house.engine.world = structs.replace(world, snapshot=snapshot)
        assert (await house.ask(stream=False)).answered_by() == "well"
        assert house.clock.now() < 1.0
        assert house.outcomes[0] == ("one", "malformed_response")
        assert len(heard) == 1  # the defect itself is not swallowed
        house.assert_nothing_is_left()

    run(play())


def explode(*_):
    raise ZeroDivisionError

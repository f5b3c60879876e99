"""After commit nothing is replaced: a broken answer says so, and is counted once, at its end."""

import asyncio
from typing import Any

import pytest
from tests.house import Caller, House

from outlast.model.policy import BreakerPolicy, CandidatePolicy, RequestPolicy, Timeouts
from outlast.sim.calamities import CALAMITIES, Harm
from outlast.sim.provider import Voice, healthy
from outlast.sim.script import Body, End, Head, Wait
from outlast.sim.virtual_loop import run

WELL = healthy(Voice("well"))
BROKEN = [name for name, c in CALAMITIES.items() if c.stream is Harm.AFTER]
SSE = ((b"content-type", b"text/event-stream"),)
WORD = b'data: {"id":"x","choices":[{"index":0,"delta":{"content":"w"},"finish_reason":null}]}\n\n'


def bad(name: str):
    return CALAMITIES[name].behaviour(Voice("bad"))


def says(*steps):
    return lambda _request, _call, _rng: (Head(200, SSE), *steps)


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_stream_ends_in_an_error_event_and_is_counted_once(name):
    async def play():
        house = House({"bad": bad(name), "well": WELL})
        caller = await house.ask(stream=True)
        *words, error, done = caller.events()
        assert words
        assert done == "[DONE]"
        assert error["error"]["metadata"]["gateway_code"] == "stream_broken"
        assert error["choices"][0]["finish_reason"] == "error"
        assert error["id"] == words[0]["id"]
        assert [e for e in words if e["choices"][0]["finish_reason"]] == []
        assert caller.ended
        assert house.upstream.calls == {"bad": 1}
        assert house.outcomes == [("bad", "stream_broken")]
        row = house.engine.world.health.rows(house.clock.now())[0]
        assert (row.window_successes, row.window_failures, row.consecutive_failures) == (0, 1, 1)
        assert (house.ended[0].outcome, house.ended[0].status) == ("stream_broken", 200)
        house.assert_nothing_is_left()

    run(play())


@pytest.mark.parametrize("name", BROKEN)
def test_a_provider_that_always_dies_midway_opens_its_breaker(name):
    async def play():
        house = House({"bad": bad(name), "well": WELL})
        for _ in range(5):
            await house.ask(stream=True)
        assert house.moves == [("bad", "open")]
        assert (await house.ask(stream=True)).answered_by() == "well"

    run(play())


def test_a_stall_is_cut_after_idle_stream_and_not_before():
    async def play():
        policy = CandidatePolicy(timeouts=Timeouts(idle_stream_s=5.0))
        steps = [Body(WORD), Wait(4.9), Body(WORD), Wait(60.0), Body(WORD)]
        house = House({"bad": says(*steps)}, policy=policy)
        caller = await house.ask(stream=True)
        assert caller.body.count(b'"w"') == 2
        assert house.clock.now() == pytest.approx(9.9)
        assert house.of(type(house.ended[0]))[0].attempts[0].timer.value == "idle_stream"
        house.assert_nothing_is_left()

    run(play())


def test_comments_alone_do_not_keep_a_stream_alive_for_ever():
    async def play():
        policy = CandidatePolicy(timeouts=Timeouts(idle_stream_s=5.0))
        pings = [step for _ in range(20) for step in (Wait(4.0), Body(b": ping\n\n"))]
        house = House({"bad": says(Body(WORD), *pings, End())}, policy=policy)
        await house.ask(stream=True)
        assert house.clock.now() == pytest.approx(4.0 * 3 + 5.0)
        assert house.outcomes == [("bad", "stream_broken")]

    run(play())


def test_a_slow_caller_is_not_the_providers_stall():
    async def play():
        policy = CandidatePolicy(timeouts=Timeouts(idle_stream_s=5.0))
        house = House({"well": healthy(Voice("well", gap_s=1.0))}, policy=policy)
        caller = Caller()

        async def hold_up():
            event = asyncio.Event()
            house.clock.call_at(house.clock.now() + 7.0, event.set)
            await event.wait()

        caller.held_up = hold_up
        await house.ask(stream=True, caller=caller)
        assert caller.answered_by() == "well"
        assert house.ended[0].outcome == "ok"

    run(play())


def test_a_slow_callers_backlog_pauses_the_upstream_and_loses_nothing():
    async def play():
        big = b'data: {"choices":[{"index":0,"delta":{"content":"' + b"x" * 60_000 + b'"}}]}\n\n'
        end = (
            b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'
        )
        steps = [step for _ in range(40) for step in (Body(big), Wait(0.01))]
        house = House({"well": says(*steps, Body(end), End())})
        caller = Caller()
        most = 0

        async def hold_up():
            nonlocal most
            event = asyncio.Event()
            house.clock.call_at(house.clock.now() + 1.0, event.set)
            await event.wait()
            sinks: list[Any] = [exchange._sink for exchange in house.upstream._open]
            most = max([most, *(sink._held_bytes for sink in sinks)])

        caller.held_up = hold_up
        await house.ask(stream=True, caller=caller)
        assert caller.body.count(b"x" * 60_000) == 40
        assert 0 < most <= 256 * 1024 + 2 * len(big)
        house.assert_nothing_is_left()

    run(play())


def test_a_caller_that_leaves_midway_blames_nobody_and_closes_the_upstream():
    async def play():
        house = House({"well": healthy(Voice("well", gap_s=1.0))})
        caller = Caller()
        house.clock.call_at(house.clock.now() + 3.5, caller.leave)
        await house.ask(stream=True, caller=caller)
        assert house.clock.now() == pytest.approx(3.5)
        assert house.outcomes == [("well", "caller_gone")]
        assert house.ended[0].outcome == "client_gone"
        row = house.engine.world.health.rows(house.clock.now())[0]
        assert (row.window_failures, row.inflight) == (0, 0)
        house.assert_nothing_is_left()

    run(play())


TRIPPY = CandidatePolicy(
    breaker=BreakerPolicy(consecutive_failures=2, open_duration_s=10.0, open_jitter=0.0)
)


async def later(house: House, seconds: float) -> None:
    done = asyncio.Event()
    house.clock.call_at(house.clock.now() + seconds, done.set)
    await done.wait()


def recovering(failures: int):
    """Fails its first calls, then is well but slow to begin."""
    well = healthy(Voice("sick", first_token_s=3.0))
    down = bad("status_500")

    def behave(request, call, rng):
        return (down if call < failures else well)(request, call, rng)

    return behave


@pytest.mark.parametrize("stream", [True, False])
def test_fifty_requests_at_the_end_of_a_cooldown_send_exactly_one_probe(stream):
    async def play():
        house = House({"sick": recovering(2), "well": WELL}, policy=TRIPPY)
        for _ in range(2):
            await house.ask(stream=stream)
        assert house.states()["sick"] == "open"
        await later(house, 11.0)
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(house.ask(stream=stream)) for _ in range(50)]
        assert house.upstream.calls["sick"] == 3
        who = [t.result().answered_by() for t in tasks]
        assert (who.count("sick"), who.count("well")) == (1, 49)
        assert house.states()["sick"] == "closed"
        house.assert_nothing_is_left()

    run(play())


@pytest.mark.parametrize("stream", [True, False])
def test_a_probe_whose_caller_leaves_gives_its_slot_back(stream):
    async def play():
        house = House({"sick": recovering(2), "well": WELL}, policy=TRIPPY)
        for _ in range(2):
            await house.ask(stream=stream)
        await later(house, 11.0)
        caller = Caller()
        house.clock.call_at(house.clock.now() + 1.0, caller.leave)
        await house.ask(stream=stream, caller=caller)
        assert house.states()["sick"] == "half_open"
        assert (await house.ask(stream=stream)).answered_by() == "sick"
        assert house.states()["sick"] == "closed"

    run(play())


def test_a_probe_that_breaks_midway_is_the_first_failure_of_the_new_streak():
    async def play():
        house = House({"bad": bad("cut_after_commit"), "well": WELL}, policy=TRIPPY)
        for _ in range(2):
            await house.ask(stream=True)
        await later(house, 11.0)
        await house.ask(stream=True)
        assert house.moves == [("bad", "open"), ("bad", "half_open"), ("bad", "closed")]
        await house.ask(stream=True)
        assert house.moves[-1] == ("bad", "open")

    run(play())


def test_only_resting_candidates_give_503_with_the_soonest_recovery():
    async def play():
        request = RequestPolicy(max_total_attempts=1)
        house = House({"bad": bad("status_500")}, policy=TRIPPY, request=request)
        for _ in range(2):
            await house.ask(stream=False)
        error = (await house.ask(stream=False)).error
        assert error is not None
        assert (error.status, error.gateway_code) == (503, "unavailable_route")
        assert error.retry_after_s == pytest.approx(10.0)
        assert error.message == "no available provider for pool: 1 resting"

    run(play())


def test_an_answer_over_its_size_limit_is_said_so_and_blames_nobody():
    async def play():
        house = House({"well": WELL}, request=RequestPolicy(answer_bytes_max=100))
        error = (await house.ask(stream=False)).error
        assert error is not None
        assert (error.gateway_code, error.retryable) == ("provider_output_too_large", False)
        assert house.states() == {"well": "closed"}
        house.assert_nothing_is_left()

    run(play())


def test_a_stream_that_never_says_anything_semantic_is_held_only_so_long():
    async def play():
        role = b'data: {"choices":[{"index":0,"delta":{"role":"assistant","pad":"' + b"x" * 9000
        steps = [Body(role + b'"}}]}\n\n')] * 40
        house = House({"bad": says(*steps, End()), "well": WELL})
        assert (await house.ask(stream=True)).answered_by() == "well"
        assert house.outcomes[0] == ("bad", "malformed_response")

    run(play())

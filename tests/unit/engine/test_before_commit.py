"""Before commit every failure is invisible: a second provider's clean answer is all that shows."""

import asyncio

import pytest
from tests.house import Caller, House

from outlast.model.ids import DeploymentName
from outlast.model.policy import CandidatePolicy, RequestPolicy, Timeouts
from outlast.model.records import Noted
from outlast.sim.calamities import CALAMITIES, Harm
from outlast.sim.provider import Voice, healthy
from outlast.sim.script import Body, End, Head
from outlast.sim.virtual_loop import run

WELL = healthy(Voice("well"))
STREAMS = pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])


def bad(name: str):
    return CALAMITIES[name].behaviour(Voice("bad"))


def hurts(name: str, *, stream: bool) -> Harm:
    return CALAMITIES[name].stream if stream else CALAMITIES[name].whole


@pytest.mark.parametrize(
    ("name", "stream"),
    [
        (name, stream)
        for name in CALAMITIES
        for stream in (True, False)
        if hurts(name, stream=stream) is Harm.BEFORE
    ],
)
def test_a_fault_before_commit_gives_one_clean_answer_from_the_second(name, stream):
    async def play():
        house = House({"bad": bad(name), "well": WELL})
        caller = await house.ask(stream=stream)
        assert caller.error is None
        assert (caller.status, caller.ended, caller.answered_by()) == (200, True, "well")
        assert house.upstream.calls == {"bad": 1, "well": 1}
        assert caller.headers["x-outlast-deployment"] == "well"
        assert caller.headers["x-outlast-failovers"] == "1"
        assert caller.headers["x-outlast-attempts"] == "2"
        (ended,) = house.ended
        assert (ended.outcome, ended.saved, ended.failovers) == ("ok", True, 1)
        assert len(house.outcomes) == 2
        house.assert_nothing_is_left()

    run(play())


@STREAMS
@pytest.mark.parametrize("name", ["no_done", "drip", "malformed_event"])
def test_what_is_merely_odd_is_an_answer(name, stream):
    async def play():
        house = House({"bad": bad(name), "well": WELL})
        caller = await house.ask(stream=stream)
        assert caller.answered_by() == "bad"
        assert house.upstream.calls == {"bad": 1}
        if stream:
            assert caller.events()[-1] == "[DONE]"
        house.assert_nothing_is_left()

    run(play())


@STREAMS
def test_only_one_preamble_reaches_the_caller(stream):
    async def play():
        house = House({"bad": bad("death_after_role"), "well": WELL})
        caller = await house.ask(stream=stream)
        assert caller.body.count(b'"role"') == 1

    run(play())


def test_a_whole_answer_says_who_gave_it_in_its_body_and_keeps_its_own_bytes():
    async def play():
        house = House({"bad": bad("status_500"), "well": WELL})
        caller = await house.ask(stream=False)
        assert b'"routing":{"strategy":"order","selected_provider":"WELL"' in caller.body

    run(play())


def test_the_usage_chunk_says_it_on_streams_that_asked_for_usage():
    async def play():
        house = House({"well": WELL})
        asked = await house.ask(stream=True, stream_options={"include_usage": True})
        assert asked.events()[-2]["routing"]["selected_deployment"] == "well"
        plain = await house.ask(stream=True)
        assert [e for e in plain.events()[:-1] if e["usage"] or not e["choices"]] == []
        assert house.ended[1].usage is not None  # asked for on our own account

    run(play())


@pytest.mark.parametrize(("routing", "in_body", "in_head"), [("header", 0, 1), ("off", 0, 0)])
def test_where_the_answer_says_who_gave_it_can_be_chosen(routing, in_body, in_head):
    async def play():
        house = House({"well": WELL}, request=RequestPolicy(routing=routing))
        caller = await house.ask(stream=False)
        assert (b"routing" in caller.body) == in_body
        assert ("x-outlast-provider" in caller.headers) == in_head

    run(play())


@STREAMS
def test_the_callers_400_comes_back_byte_for_byte_and_moves_no_breaker(stream):
    async def play():
        house = House({"bad": bad("caller_400"), "well": WELL})
        callers = [await house.ask(stream=stream) for _ in range(1000)]
        caller = callers[-1]
        assert caller.status == 400
        assert caller.body == (
            b'{"error":{"message":"Bad temperature","type":"invalid_request_error",'
            b'"param":null,"code":"invalid_value"}}'
        )
        assert caller.headers["x-should-retry"] == "false"
        assert house.moves == []
        assert house.upstream.calls == {"bad": 1000}
        assert house.states() == {"bad": "closed", "well": "closed"}
        house.assert_nothing_is_left()

    run(play())


@STREAMS
def test_when_all_fail_the_error_is_ours_and_names_every_attempt(stream):
    async def play():
        house = House({"one": bad("status_500"), "two": bad("reset_before_head")})
        caller = await house.ask(stream=stream)
        error = caller.error
        assert error is not None
        assert (error.status, error.gateway_code, error.retryable) == (
            502,
            "all_routes_failed",
            True,
        )
        assert error.retry_after_s == 1.0
        # The last candidate may be asked again, three times in all.
        assert [(a.provider, a.code) for a in error.attempts] == [
            ("ONE", "provider_unavailable"),
            *[("TWO", "provider_unavailable")] * 3,
        ]
        assert caller.status is None
        assert house.ended[-1].outcome == "exhausted"
        house.assert_nothing_is_left()

    run(play())


def test_all_429_is_429_with_the_smallest_hint():
    async def play():
        house = House({"one": bad("status_429_retry_after"), "two": bad("status_429_retry_after")})
        error = (await house.ask(stream=True)).error
        assert error is not None
        assert (error.status, error.gateway_code, error.retry_after_s) == (
            429,
            "provider_rate_limited",
            7.0,
        )
        again = (await house.ask(stream=True)).error
        assert again is not None
        assert (again.status, again.gateway_code) == (503, "unavailable_route")
        assert again.message == "no available provider for pool: 2 throttled"
        assert again.retry_after_s == pytest.approx(7.0, abs=0.1)
        assert house.upstream.calls == {"one": 1, "two": 1}

    run(play())


@pytest.mark.parametrize(
    ("name", "reason", "rest_s"),
    [
        ("status_401", "hard_down", 1800),
        ("status_402", "hard_down", 1800),
        ("status_404", "hard_down", 30),
        ("status_429_retry_after", "throttled", 7),
        ("status_429_bare", "throttled", 30),
    ],
)
def test_what_is_refused_rests_and_is_skipped_until_its_time(name, reason, rest_s):
    async def play():
        house = House({"bad": bad(name), "well": WELL})
        await house.ask(stream=False)
        await house.ask(stream=False)
        assert [(s.deployment, s.reason.value) for s in house.ended[1].skipped] == [("bad", reason)]
        assert house.states()["bad"] == "closed"
        assert house.moves == []
        await until(house, rest_s + 1)
        await house.ask(stream=False)
        assert house.upstream.calls["bad"] == 2

    run(play())


async def until(house: House, later_s: float) -> None:
    """Virtual time passes."""
    done = asyncio.Event()
    house.clock.call_at(house.clock.now() + later_s, done.set)
    await done.wait()


def test_a_refused_key_rests_every_deployment_behind_it_and_a_success_ends_that():
    async def play():
        house = House({"bad": bad("status_401"), "well": WELL})
        cell = house.engine.world.health._cells[DeploymentName("bad")]
        await house.ask(stream=False)
        assert cell.credential.unavailable(house.clock.now()) is not None
        assert cell.rest.unavailable(house.clock.now()) is None

    run(play())


@STREAMS
def test_a_hang_costs_the_configured_patience_and_no_more(stream):
    async def play():
        policy = CandidatePolicy(timeouts=Timeouts(first_token_s=2.0, request_s=3.0))
        house = House({"bad": bad("header_hang"), "well": WELL}, policy=policy)
        started = house.clock.now()
        await house.ask(stream=stream)
        assert house.clock.now() - started == pytest.approx(2.0 if stream else 3.0, abs=0.5)
        assert house.outcomes[0] == ("bad", "timeout")

    run(play())


def test_everybody_hanging_ends_at_the_deadline_with_504():
    async def play():
        house = House(
            {"one": bad("header_hang"), "two": bad("header_hang")},
            request=RequestPolicy(deadline_s=25.0),
        )
        error = (await house.ask(stream=True)).error
        assert error is not None
        assert (error.status, error.gateway_code, error.retry_after_s) == (
            504,
            "deadline_exceeded",
            None,
        )
        assert house.clock.now() == pytest.approx(25.0)
        # The second had 5 of its 30 seconds: that proves nothing against it.
        assert [(a.deployment, a.blamed) for a in house.ended[0].attempts] == [
            ("one", True),
            ("two", False),
        ]
        house.assert_nothing_is_left()

    run(play())


@STREAMS
@pytest.mark.parametrize("leaves_s", [0.0, 0.01, 1.0])
def test_a_caller_that_leaves_before_commit_blames_nobody_and_closes_the_upstream(stream, leaves_s):
    async def play():
        house = House({"bad": bad("header_hang"), "well": WELL})
        caller = Caller()
        house.clock.call_at(house.clock.now() + leaves_s, caller.leave)
        await house.ask(stream=stream, caller=caller)
        assert house.clock.now() == pytest.approx(leaves_s)
        assert house.ended[0].outcome == "client_gone"
        assert house.outcomes == [("bad", "caller_gone")]
        assert house.upstream.calls["well"] == 0
        house.assert_nothing_is_left()

    run(play())


def test_a_cancelled_request_gives_everything_back():
    async def play():
        house = House({"bad": bad("header_hang")})
        async with asyncio.TaskGroup() as group:
            task = group.create_task(house.ask(stream=True))
            await until(house, 1.0)
            task.cancel()
        house.assert_nothing_is_left()
        assert house.ended[0].outcome == "client_gone"

    run(play())


def test_a_full_deployment_is_passed_over_and_everything_full_is_said_so():
    async def play():
        house = House({"one": WELL, "two": WELL}, slots=1)
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(house.ask(stream=True)) for _ in range(3)]
        answers = [t.result() for t in tasks]
        assert [a.error.gateway_code for a in answers if a.error] == ["unavailable_route"]
        (full,) = [a.error for a in answers if a.error]
        assert full.retry_after_s == 2.0
        assert house.upstream.calls == {"one": 1, "two": 1}
        house.assert_nothing_is_left()

    run(play())


def test_an_unknown_model_is_404_and_sends_nothing():
    async def play():
        house = House({"well": WELL})
        error = (await house.ask(stream=False, model="nope")).error
        assert error is not None
        assert (error.status, error.param) == (404, "model")
        assert not house.upstream.calls
        assert house.ended[0].model == "unresolved"

    run(play())


def test_a_recovery_beyond_a_minute_is_told_as_an_instant():
    async def play():
        house = House({"bad": bad("status_401")})
        await house.ask(stream=False)
        error = (await house.ask(stream=False)).error
        assert error is not None
        assert error.message == "no available provider for pool: 1 hard_down"
        assert error.retry_at == pytest.approx(house.clock.wall() + 1800.0)

    run(play())


def test_an_error_body_with_our_key_in_it_is_not_relayed():
    async def play():
        leak = b'{"error":{"message":"your key sk-bad is wrong","type":"invalid_request_error"}}'
        steps = (Head(400, ((b"content-type", b"application/json"),)), Body(leak), End())
        house = House({"bad": lambda _request, _call, _rng: steps})
        caller = await house.ask(stream=False)
        assert caller.status is None
        assert caller.error is not None
        assert (caller.error.status, caller.error.gateway_code) == (400, "invalid_request")
        assert "sk-bad" not in caller.error.message

    run(play())


def test_debug_facts_tell_how_a_plan_came_about_and_only_on_demand():
    async def play(*, debug: bool):
        house = House({"well": WELL}, debug=debug)
        await house.ask(stream=False)
        return [note.event for note in house.of(Noted)]

    assert run(play(debug=False)) == []
    assert run(play(debug=True)) == ["candidates_building", "model_resolved"]

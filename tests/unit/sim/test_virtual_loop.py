"""Virtual time: jumps, order, deadlocks, and what it refuses."""

import asyncio
import time

import pytest

from outlast.sim.virtual_loop import (
    WALL_AT_START,
    DeadlockError,
    LivelockError,
    VirtualLoop,
    VirtualTimeError,
    run,
    running_clock,
)


async def _after(seconds: float) -> float:
    loop = asyncio.get_running_loop()
    reached: asyncio.Future[float] = loop.create_future()
    loop.call_later(seconds, lambda: reached.set_result(loop.time()))
    return await reached


def test_a_virtual_day_passes_at_once():
    began = time.perf_counter()
    assert run(_after(86_400.0)) == 86_400.0
    assert time.perf_counter() - began < 5.0


def test_a_wait_longer_than_a_selector_allows_still_ends_exactly():
    assert run(_after(1_000_000.25)) == 1_000_000.25


def test_timers_fire_in_the_order_of_their_times_and_see_exactly_their_time():
    async def main():
        loop = asyncio.get_running_loop()
        seen: list[float] = []
        done = asyncio.Event()
        for delay in (0.3, 0.1, 0.2):
            loop.call_at(delay, lambda: seen.append(loop.time()))
        loop.call_at(0.4, done.set)
        await done.wait()
        return seen

    assert run(main()) == [0.1, 0.2, 0.3]


def test_cancelled_timers_do_not_move_time():
    async def main():
        loop = asyncio.get_running_loop()
        loop.call_later(5.0, lambda: None).cancel()
        return await _after(7.0)

    assert run(main()) == 7.0


def test_timers_are_counted_until_they_are_cancelled():
    async def main():
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        timer = loop.call_later(5.0, lambda: None)
        before = loop.timers()
        timer.cancel()
        return before, loop.timers()

    assert run(main()) == (1, 0)


def test_waiting_for_nothing_is_a_deadlock():
    async def main():
        await asyncio.Event().wait()

    with pytest.raises(DeadlockError):
        run(main())


def test_turning_for_ever_at_one_instant_is_a_livelock():
    async def main():
        loop = asyncio.get_running_loop()

        def again():
            loop.call_soon(again)

        again()
        await asyncio.Event().wait()

    with pytest.raises(LivelockError):
        run(main())


def test_tasks_of_a_deadlocked_program_are_cancelled():
    ended: list[str] = []

    async def stuck():
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("stuck")

    async def main():
        async with asyncio.TaskGroup() as group:
            group.create_task(stuck())

    with pytest.raises(DeadlockError):
        run(main())
    assert ended == ["stuck"]


def test_timeouts_and_task_groups_work():
    async def main():
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(3.0):
                await asyncio.Event().wait()
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(_after(n)) for n in (2.0, 1.0)]
        return [task.result() for task in tasks]

    assert run(main()) == [5.0, 4.0]


def _thread(loop):
    return loop.run_in_executor(None, lambda: None)


async def _refused(ask):
    with pytest.raises(VirtualTimeError, match="under virtual time"):
        await ask(asyncio.get_running_loop())


@pytest.mark.parametrize(
    "ask",
    [
        _thread,
        lambda loop: loop.getaddrinfo("localhost", 80),
        lambda loop: loop.create_connection(asyncio.Protocol, "127.0.0.1", 9),
        lambda loop: loop.create_server(asyncio.Protocol, "127.0.0.1", 0),
        lambda loop: asyncio.to_thread(lambda: None),
        lambda loop: asyncio.create_subprocess_exec("true"),
    ],
    ids=["executor", "lookup", "connection", "listener", "to_thread", "process"],
)
def test_threads_sockets_and_processes_are_refused(ask):
    run(_refused(ask))


def test_the_clock_moves_with_the_loop():
    async def main():
        clock = running_clock()
        before = (clock.now(), clock.wall())
        await _after(60.0)
        return before, (clock.now(), clock.wall())

    before, after = run(main())
    assert before == (0.0, WALL_AT_START)
    assert after == (60.0, WALL_AT_START + 60.0)


def test_the_clock_never_calls_back_at_once():
    async def main():
        clock = running_clock()
        called = asyncio.Event()
        clock.call_at(clock.now() - 1.0, called.set)
        at_once = called.is_set()
        await called.wait()
        return at_once, clock.now()

    assert run(main()) == (False, 0.0)

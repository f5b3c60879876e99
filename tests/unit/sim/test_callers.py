"""Simulated callers keep the responder's contract and notice when somebody else does not."""

import asyncio

import pytest

from outlast.sim.callers import Caller
from outlast.sim.virtual_loop import run, running_clock
from outlast.sim.world import Visit


def caller(**members):
    visit = Visit(0, 0.0, "pool", stream=True, usage=False, **members)
    return Caller(visit, running_clock())


def test_a_stream_is_written_down():
    async def main():
        one = caller()
        await one.start(200, [(b"a", b"b")])
        await one.write(b"x")
        await one.write(b"y")
        await one.end()
        return one

    one = run(main())
    assert (one.status, one.body, one.headers, one.ended) == (200, b"xy", {b"a": b"b"}, True)
    assert one.misuse == []


@pytest.mark.parametrize("steps", ["ww", "sw!w", "e", "see", "sa!w", "ss", "se!w"])
def test_misuse_is_noticed(steps):
    async def main():
        one = caller()
        acts = {
            "w": lambda: one.write(b"x"),
            "s": lambda: one.start(200, []),
            "e": one.end,
        }
        if steps == "ww":
            acts["w"] = lambda: one.whole(200, [], b"x")
        for step in steps.replace("!", ""):
            if step == "a":
                one.abort()
            else:
                await acts[step]()
        if steps == "sw!w":
            await one.whole(200, [], b"")
        return one.misuse

    assert run(main()) != []


def test_leaving_calls_back_once_and_drops_what_comes():
    async def main():
        one, calls = caller(), []
        one.on_gone(lambda: calls.append("before"))
        await one.start(200, [])
        one.leave()
        one.leave()
        await one.write(b"x")
        await one.end()
        one.on_gone(lambda: calls.append("after"))
        at_once = list(calls)
        reached = asyncio.Event()
        asyncio.get_running_loop().call_later(1.0, reached.set)
        await reached.wait()
        return one, at_once, calls

    one, at_once, calls = run(main())
    assert at_once == ["before"]
    assert calls == ["before", "after"]
    assert (one.body, one.ended, one.stayed) == (b"", False, False)


def test_a_slow_caller_makes_the_writer_wait_unless_it_leaves():
    async def main():
        one = caller(slow_write_s=3.0)
        clock = running_clock()
        await one.start(200, [])
        await one.write(b"x")
        first = clock.now()
        clock.call_at(first + 1.0, one.leave)
        await one.write(b"y")
        return first, clock.now()

    assert run(main()) == (3.0, 4.0)

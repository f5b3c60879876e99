"""The in-memory upstream: what its sink is told, when, and what it counts."""

import asyncio

import pytest

from outlast.model.fault import Break, Phase
from outlast.model.topology import Origin
from outlast.ports import UpstreamCall
from outlast.sim.script import Blackhole, Body, Cut, End, Hang, Head, Refuse, Wait
from outlast.sim.upstream import SimUpstream
from outlast.sim.virtual_loop import run, running_clock


class Tape:
    """A sink that writes down what it is told, and when."""

    def __init__(self, clock):
        self.clock = clock
        self.events = []
        self.ended = asyncio.Event()
        self.on_each = lambda _kind: None

    def note(self, *event):
        self.events.append((round(self.clock.now(), 6), *event))
        self.on_each(event[0])

    def on_head(self, status, headers):
        self.note("head", status)

    def on_data(self, data):
        self.note("data", data)

    def on_end(self):
        self.note("end")
        self.ended.set()

    def on_failure(self, failure):
        self.note("failure", failure.phase, failure.how)
        self.ended.set()


def call_to(host, connect_timeout_s=2.0):
    return UpstreamCall(Origin("http", host, 80), b"POST", b"/v1", (), b"{}", connect_timeout_s)


async def until(clock, when):
    reached = asyncio.Event()
    clock.call_at(when, reached.set)
    await reached.wait()


def play(script, act=None):
    """Play `script`; `act(exchange, clock, tape)` may interfere. Returns (events, upstream)."""

    async def main():
        clock = running_clock()
        upstream = SimUpstream(clock, {"a": lambda _request, _call, _rng: script})
        tape = Tape(clock)
        exchange = upstream.dispatch(call_to("a"), tape)
        assert tape.events == []
        if act is None:
            await tape.ended.wait()
        else:
            await act(exchange, clock, tape)
        return tape.events, upstream

    return run(main())


GOOD = (Wait(1.0), Head(200), Wait(0.5), Body(b"ab"), Wait(0.5), Body(b"c"), End())


def test_a_script_is_delivered_at_its_times():
    events, upstream = play(GOOD)
    assert events == [
        (1.0, "head", 200),
        (1.5, "data", b"ab"),
        (2.0, "data", b"c"),
        (2.0, "end"),
    ]
    assert upstream.open_exchanges == 0
    assert upstream.calls == {"a": 1}


SHORT = ((b"content-length", b"5"),)


@pytest.mark.parametrize(
    ("script", "event"),
    [
        ((Refuse(),), (0.0, "failure", Phase.CONNECT, Break.REFUSED)),
        ((Blackhole(),), (2.0, "failure", Phase.CONNECT, Break.TIMEOUT)),
        ((Wait(1.0), Cut()), (1.0, "failure", Phase.HEAD, Break.RESET)),
        ((End(),), (0.0, "failure", Phase.HEAD, Break.EOF)),
        ((Head(200), Body(b"x"), Cut()), (0.0, "failure", Phase.BODY, Break.RESET)),
        ((Head(200, SHORT), Body(b"x"), End()), (0.0, "failure", Phase.BODY, Break.EOF)),
    ],
)
def test_a_broken_call_fails_once_with_its_phase(script, event):
    events, upstream = play(script)
    assert events[-1] == event
    assert [e[1] for e in events].count("failure") == 1
    assert upstream.open_exchanges == 0


def test_an_exact_content_length_ends_well():
    events, _ = play((Head(200, SHORT), Body(b"ab"), Body(b"cde"), End()))
    assert events[-1] == (0.0, "end")


def test_an_unknown_host_does_not_resolve():
    async def main():
        clock = running_clock()
        upstream = SimUpstream(clock, {})
        tape = Tape(clock)
        upstream.dispatch(call_to("nowhere"), tape)
        await tape.ended.wait()
        return tape.events, upstream

    events, upstream = run(main())
    assert events == [(0.0, "failure", Phase.DNS, Break.REFUSED)]
    assert upstream.open_exchanges == 0


@pytest.mark.parametrize("when", [0.0, 0.5, 1.2, 1.7])
def test_after_cancel_nothing_is_delivered(when):
    async def act(exchange, clock, tape):
        if when:
            await until(clock, when)
        before = len(tape.events)
        exchange.cancel()
        exchange.cancel()
        await until(clock, 10.0)
        assert len(tape.events) == before

    _, upstream = play(GOOD, act)
    assert upstream.open_exchanges == 0


@pytest.mark.parametrize("script", [(Hang(),), (Blackhole(),), (Head(200),)])
def test_a_silent_call_stays_open_until_it_is_cancelled(script):
    async def act(exchange, clock, tape):
        await until(clock, 1.5)
        assert all(e[1] == "head" for e in tape.events)
        exchange.cancel()

    _, upstream = play(script, act)
    assert upstream.open_exchanges == 0
    assert upstream.open_most == 1


def test_a_sink_that_cancels_from_inside_hears_nothing_more():
    async def main():
        clock = running_clock()
        script = (Head(200), Body(b"a"), Body(b"b"), End())
        upstream = SimUpstream(clock, {"a": lambda *_: script})
        tape = Tape(clock)
        exchange = upstream.dispatch(call_to("a"), tape)

        def leave(kind):
            if kind == "data":
                exchange.cancel()

        tape.on_each = leave
        await until(clock, 1.0)
        return tape.events

    assert run(main()) == [(0.0, "head", 200), (0.0, "data", b"a")]


def test_a_pause_holds_everything_back_in_order():
    async def act(exchange, clock, tape):
        await until(clock, 1.2)
        exchange.pause()
        await until(clock, 5.0)
        assert tape.events == [(1.0, "head", 200)]
        exchange.resume()
        exchange.resume()
        await tape.ended.wait()

    events, _ = play(GOOD, act)
    assert events[1:] == [(5.0, "data", b"ab"), (5.0, "data", b"c"), (5.0, "end")]


def test_a_pause_from_inside_stops_the_release():
    async def main():
        clock = running_clock()
        upstream = SimUpstream(clock, {"a": lambda *_: GOOD})
        tape = Tape(clock)
        exchange = upstream.dispatch(call_to("a"), tape)
        exchange.pause()
        await until(clock, 3.0)

        def full(kind):
            if kind == "head":
                exchange.pause()

        tape.on_each = full
        exchange.resume()
        await until(clock, 4.0)
        assert tape.events == [(3.0, "head", 200)]
        exchange.resume()
        await tape.ended.wait()
        return tape.events

    assert [e[1] for e in run(main())] == ["head", "data", "data", "end"]


def test_pause_and_resume_after_the_end_do_no_harm():
    async def act(exchange, clock, tape):
        await tape.ended.wait()
        exchange.pause()
        exchange.resume()
        exchange.cancel()

    events, _ = play(GOOD, act)
    assert [e[1] for e in events] == ["head", "data", "data", "end"]


def test_the_number_of_the_call_and_the_chance_are_per_host():
    async def rolls(seed):
        clock = running_clock()
        seen: dict[str, list[tuple[int, float]]] = {"a": [], "b": []}

        def behave(host):
            def inner(_request, call, rng):
                seen[host].append((call, rng.random()))
                return (Refuse(),)

            return inner

        upstream = SimUpstream(clock, {h: behave(h) for h in seen}, seed=seed)
        for host in ("a", "b", "a"):
            tape = Tape(clock)
            upstream.dispatch(call_to(host), tape)
            await tape.ended.wait()
        return seen

    first = run(rolls(1))
    assert first == run(rolls(1))
    assert first != run(rolls(2))
    assert [n for n, _ in first["a"]] == [0, 1]
    assert first["a"][0][1] != first["b"][0][1]


def test_closing_fails_what_is_open():
    async def main():
        clock = running_clock()
        upstream = SimUpstream(clock, {"a": lambda *_: GOOD})
        tape = Tape(clock)
        upstream.dispatch(call_to("a"), tape)
        await until(clock, 1.2)
        await upstream.aclose()
        await until(clock, 9.0)
        return tape.events, upstream

    events, upstream = run(main())
    assert events == [(1.0, "head", 200), (1.2, "failure", Phase.BODY, Break.RESET)]
    assert upstream.open_exchanges == 0

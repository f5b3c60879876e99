"""What every `ports.Upstream` must do, whatever carries its bytes.

`RULES` are coroutine functions; each takes a `MakeWorld`, plays a script of `outlast.sim.script`
and asserts one rule of the port. A test module of an implementation runs them all:

    @pytest.mark.parametrize("rule", RULES)
    def test_the_port_holds(rule):
        asyncio.run(rule(make_world))

`make_world(script)` is an async context giving `(upstream, call)`: an upstream whose provider
plays `script` for every `call`. `call.connect_timeout_s` should be short, a rule waits for it.
"""

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager

from outlast.model.fault import Break, Phase, TransportFailure
from outlast.ports import Exchange, Headers, Upstream, UpstreamCall
from outlast.sim.script import Blackhole, Body, Cut, End, Hang, Head, Refuse, Script, Wait

MakeWorld = Callable[[Script], AbstractAsyncContextManager[tuple[Upstream, UpstreamCall]]]

LIMIT_S = 10.0
PLAIN = Head(200, ((b"content-type", b"text/plain"), (b"x-two", b"1"), (b"x-two", b"2")))
END = "end"
Told = tuple[int, Headers] | bytes | str | TransportFailure


class Tape:
    """A sink that keeps what it was told, in order, and acts when it hears something."""

    def __init__(self, act: Callable[[Told], None] = lambda _: None) -> None:
        self.told: list[Told] = []
        self.act = act
        self._moved = asyncio.Event()

    def on_head(self, status: int, headers: Headers) -> None:
        self._tell((status, headers))

    def on_data(self, data: bytes) -> None:
        assert data, "on_data is never empty"
        self._tell(data)

    def on_end(self) -> None:
        self._tell(END)

    def on_failure(self, failure: TransportFailure) -> None:
        self._tell(failure)

    @property
    def body(self) -> bytes:
        return b"".join(one for one in self.told if isinstance(one, bytes))

    @property
    def pieces(self) -> int:
        return sum(isinstance(one, bytes) for one in self.told)

    @property
    def head(self) -> tuple[int, Headers]:
        head = self.told[0]
        assert isinstance(head, tuple)
        return head

    @property
    def over(self) -> bool:
        return any(one == END or isinstance(one, TransportFailure) for one in self.told)

    @property
    def failure(self) -> tuple[Phase, Break]:
        last = self.told[-1]
        assert isinstance(last, TransportFailure), self.told
        return last.phase, last.how

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(LIMIT_S):
            while not condition():
                self._moved.clear()
                await self._moved.wait()

    async def ended(self) -> None:
        await self.until(lambda: self.over)

    def _tell(self, what: Told) -> None:
        assert not self.over, f"{what!r} after the end of {self.told!r}"
        self.told.append(what)
        self._moved.set()
        self.act(what)


def _dispatch(upstream: Upstream, call: UpstreamCall, tape: Tape) -> Exchange:
    exchange = upstream.dispatch(call, tape)
    assert tape.told == [], "nothing is called from inside dispatch"
    return exchange


async def _play(make_world: MakeWorld, *script: object) -> Tape:
    """Play a script to its end, close the upstream, and see that nothing more came."""
    tape = Tape()
    async with make_world(script) as (upstream, call):  # type: ignore[arg-type]
        exchange = _dispatch(upstream, call, tape)
        await tape.ended()
        assert exchange.replaced is False
        await upstream.aclose()
    return tape


async def a_clean_answer_is_a_head_then_data_then_an_end(make_world: MakeWorld) -> None:
    tape = await _play(make_world, PLAIN, Body(b"one "), Wait(0.01), Body(b"two"), End())
    status, headers = tape.head
    assert status == 200
    ours = [field for field in headers if field[0] in {b"content-type", b"x-two"}]
    assert ours == list(PLAIN.headers), "lower-case names, wire order, duplicates kept"
    assert tape.body == b"one two"
    assert tape.told[-1] == END
    assert len(tape.told) == 2 + tape.pieces


async def an_announced_length_ends_the_body(make_world: MakeWorld) -> None:
    tape = await _play(make_world, Head(200, ((b"content-length", b"4"),)), Body(b"four"), End())
    assert tape.body == b"four"
    assert tape.told[-1] == END


async def an_empty_body_is_no_data(make_world: MakeWorld) -> None:
    tape = await _play(make_world, Head(200, ((b"content-length", b"0"),)), End())
    assert tape.pieces == 0
    assert tape.told[-1] == END


async def an_empty_body_of_unknown_length_is_no_data(make_world: MakeWorld) -> None:
    tape = await _play(make_world, Head(200), End())
    assert tape.pieces == 0
    assert tape.told[-1] == END


async def an_error_status_is_an_answer(make_world: MakeWorld) -> None:
    tape = await _play(make_world, Head(503, ((b"retry-after", b"7"),)), Body(b"{}"), End())
    assert tape.head[0] == 503
    assert (b"retry-after", b"7") in tape.head[1]
    assert tape.told[-1] == END


async def a_refused_connection_fails_in_phase_connect(make_world: MakeWorld) -> None:
    tape = await _play(make_world, Refuse())
    assert len(tape.told) == 1
    assert tape.failure == (Phase.CONNECT, Break.REFUSED)


async def a_connection_that_never_comes_about_times_out(make_world: MakeWorld) -> None:
    tape = await _play(make_world, Blackhole())
    assert len(tape.told) == 1
    assert tape.failure == (Phase.CONNECT, Break.TIMEOUT)


async def a_reset_before_the_head_fails_in_phase_head(make_world: MakeWorld) -> None:
    tape = await _play(make_world, Cut())
    assert len(tape.told) == 1
    assert tape.failure == (Phase.HEAD, Break.RESET)


async def a_close_before_the_head_fails_in_phase_head(make_world: MakeWorld) -> None:
    tape = await _play(make_world, End())
    assert len(tape.told) == 1
    assert tape.failure == (Phase.HEAD, Break.EOF)


async def a_reset_in_the_body_fails_in_phase_body(make_world: MakeWorld) -> None:
    tape = await _play(make_world, PLAIN, Body(b"half"), Wait(0.05), Cut())
    assert tape.head[0] == 200
    assert tape.body == b"half"
    assert tape.failure == (Phase.BODY, Break.RESET)


async def a_body_short_of_its_length_is_no_clean_end(make_world: MakeWorld) -> None:
    head = Head(200, ((b"content-length", b"9"),))
    tape = await _play(make_world, head, Body(b"short"), End())
    assert tape.body == b"short"
    assert tape.failure == (Phase.BODY, Break.EOF)


async def cancel_in_the_middle_of_a_body_silences(make_world: MakeWorld) -> None:
    tape = Tape()
    async with make_world((PLAIN, Body(b"half"), Hang())) as (upstream, call):
        exchange = _dispatch(upstream, call, tape)
        await tape.until(lambda: tape.pieces > 0)
        exchange.cancel()
        exchange.cancel()
        await upstream.aclose()
    assert len(tape.told) == 2


async def cancel_at_once_silences(make_world: MakeWorld) -> None:
    tape, other = Tape(), Tape()
    async with make_world((PLAIN, Body(b"x"), End())) as (upstream, call):
        _dispatch(upstream, call, tape).cancel()
        _dispatch(upstream, call, other)
        await other.ended()
        await upstream.aclose()
    assert tape.told == []


async def cancel_of_a_refused_call_silences(make_world: MakeWorld) -> None:
    tape, other = Tape(), Tape()
    async with make_world((Refuse(),)) as (upstream, call):
        _dispatch(upstream, call, tape).cancel()
        _dispatch(upstream, call, other)
        await other.ended()
        await upstream.aclose()
    assert tape.told == []


async def cancel_from_inside_on_head_silences(make_world: MakeWorld) -> None:
    await _cancel_after(1, make_world)


async def cancel_from_inside_on_data_silences(make_world: MakeWorld) -> None:
    await _cancel_after(2, make_world)


async def _cancel_after(count: int, make_world: MakeWorld) -> None:
    tape, other = Tape(), Tape()
    async with make_world((PLAIN, Body(b"x"), End())) as (upstream, call):
        exchange = _dispatch(upstream, call, tape)

        def leave(_: Told) -> None:
            if len(tape.told) == count:
                exchange.cancel()

        tape.act = leave
        await tape.until(lambda: len(tape.told) >= count)
        _dispatch(upstream, call, other)
        await other.ended()
        await upstream.aclose()
    assert len(tape.told) == count


async def pause_holds_the_body_back_until_resume(make_world: MakeWorld) -> None:
    pieces = (Body(b"a"), Wait(0.02), Body(b"b"), Wait(0.02), Body(b"c"), Wait(0.02))
    slow, quick = Tape(), Tape()
    async with make_world((PLAIN, *pieces, End())) as (upstream, call):
        exchange = _dispatch(upstream, call, slow)

        def pause(told: Told) -> None:
            if isinstance(told, tuple):
                exchange.pause()
                exchange.pause()

        slow.act = pause
        await slow.until(lambda: bool(slow.told))
        _dispatch(upstream, call, quick)  # ends later than the first would have
        await quick.ended()
        assert quick.body == b"abc"
        assert not slow.over
        assert slow.pieces <= 1, "data may come once more after pause"
        exchange.resume()
        exchange.resume()
        await slow.ended()
        assert slow.body == b"abc"
        assert slow.told[-1] == END
        await upstream.aclose()


async def everything_is_harmless_after_the_end(make_world: MakeWorld) -> None:
    tape, other = Tape(), Tape()
    async with make_world((PLAIN, Body(b"x"), End())) as (upstream, call):
        exchange = _dispatch(upstream, call, tape)
        await tape.ended()
        exchange.pause()
        exchange.resume()
        exchange.cancel()
        exchange.pause()
        exchange.cancel()
        _dispatch(upstream, call, other)
        await other.ended()
        await upstream.aclose()
    assert other.body == b"x"
    assert other.told[-1] == END


async def on_end_may_dispatch_the_next_call(make_world: MakeWorld) -> None:
    await _go_on((PLAIN, Body(b"x"), End()), make_world)


async def on_failure_may_dispatch_the_next_call(make_world: MakeWorld) -> None:
    await _go_on((Refuse(),), make_world)


async def _go_on(script: Script, make_world: MakeWorld) -> None:
    first, second = Tape(), Tape()
    async with make_world(script) as (upstream, call):

        def dispatch_second(_: Told) -> None:
            if first.over:
                _dispatch(upstream, call, second)

        first.act = dispatch_second
        _dispatch(upstream, call, first)
        await second.ended()
        await upstream.aclose()
    assert second.told[-1] == first.told[-1]
    assert second.body == first.body


async def calls_at_once_do_not_mix(make_world: MakeWorld) -> None:
    tapes = [Tape() for _ in range(8)]
    script = (PLAIN, Body(b"one"), Wait(0.01), Body(b"two"), End())
    async with make_world(script) as (upstream, call):
        for tape in tapes:
            _dispatch(upstream, call, tape)
        for tape in tapes:
            await tape.ended()
        await upstream.aclose()
    assert [tape.body for tape in tapes] == [b"onetwo"] * 8
    assert all(tape.told[-1] == END for tape in tapes)


async def closing_fails_what_is_still_open(make_world: MakeWorld) -> None:
    tape = Tape()
    async with make_world((PLAIN, Body(b"half"), Hang())) as (upstream, call):
        _dispatch(upstream, call, tape)
        await tape.until(lambda: tape.pieces > 0)
        await upstream.aclose()
    assert tape.failure[0] is Phase.BODY


RULES = (
    a_clean_answer_is_a_head_then_data_then_an_end,
    an_announced_length_ends_the_body,
    an_empty_body_is_no_data,
    an_empty_body_of_unknown_length_is_no_data,
    an_error_status_is_an_answer,
    a_refused_connection_fails_in_phase_connect,
    a_connection_that_never_comes_about_times_out,
    a_reset_before_the_head_fails_in_phase_head,
    a_close_before_the_head_fails_in_phase_head,
    a_reset_in_the_body_fails_in_phase_body,
    a_body_short_of_its_length_is_no_clean_end,
    cancel_in_the_middle_of_a_body_silences,
    cancel_at_once_silences,
    cancel_of_a_refused_call_silences,
    cancel_from_inside_on_head_silences,
    cancel_from_inside_on_data_silences,
    pause_holds_the_body_back_until_resume,
    everything_is_harmless_after_the_end,
    on_end_may_dispatch_the_next_call,
    on_failure_may_dispatch_the_next_call,
    calls_at_once_do_not_mix,
    closing_fails_what_is_still_open,
)

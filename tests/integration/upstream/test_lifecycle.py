"""Cancelling, slowness, early answers and closing: nothing lingers and nobody waits for ever."""

import asyncio
import gc

import pytest
from tests.contracts.upstream import END, Tape
from tests.integration.upstream.peer import answering, ok
from tests.integration.upstream.world import LOOPS, call_to, client_and_peer, run, told

from outlast.model.fault import Break, Phase
from outlast.model.topology import Origin
from outlast.sim.sockets import closed_port
from outlast.upstream.connection import Connection
from outlast.upstream.exchange import HttpExchange
from outlast.upstream.response import Response

HALF = b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf"
MEGABYTE = 2**20


@pytest.fixture(params=LOOPS)
def loop_name(request):
    return request.param


def test_cancel_closes_the_connection_and_it_is_never_used_again(loop_name):
    async def talk(line):
        await line.request()
        line.say(HALF if line.number == 0 else ok(b"other"))
        await line.gone()

    async def main():
        async with client_and_peer(talk) as (upstream, peer):
            exchange = upstream.dispatch(call_to(peer.port), tape := Tape())
            await tape.until(lambda: bool(tape.body))
            exchange.cancel()
            await peer.until(lambda: peer.open_count == 0)
            assert (await told(upstream, call_to(peer.port))).body == b"other"
            assert len(tape.told) == 2

    run(main(), loop_name)


def test_cancel_with_megabytes_unsent_is_seen_by_the_peer_at_once(loop_name):
    async def main():
        async def talk(line):
            await line.reader.readuntil(b"\r\n\r\n")
            reading.set()
            await line.gone()
            gone.set_result(loop.time())

        loop = asyncio.get_running_loop()
        gone = loop.create_future()
        reading = asyncio.Event()
        async with client_and_peer(talk) as (upstream, peer):
            call = call_to(peer.port, body=b"x" * (20 * MEGABYTE))
            exchange = upstream.dispatch(call, Tape())
            await reading.wait()
            exchange.cancel()
            cancelled_at = loop.time()
            assert await gone - cancelled_at < 1.0

    run(main(), loop_name)


def test_a_large_body_arrives_whole(loop_name):
    async def talk(line):
        _, body = await line.request()
        line.say(ok(b"%d" % len(body)))
        await line.gone()

    async def main():
        async with client_and_peer(talk) as (upstream, peer):
            tape = await told(upstream, call_to(peer.port, body=b"x" * (9 * MEGABYTE)))
            assert tape.body == b"%d" % (9 * MEGABYTE)
            assert upstream.idle_count == 1

    run(main(), loop_name)


def test_an_early_answer_is_delivered_and_its_connection_closed(loop_name):
    async def talk(line):
        await line.reader.readuntil(b"\r\n\r\n")
        line.writer.transport.pause_reading()
        line.say(b"HTTP/1.1 413 Too Large\r\ncontent-length: 2\r\n\r\nno")
        await answered.wait()
        line.writer.transport.resume_reading()
        await line.gone()

    async def main():
        async with client_and_peer(talk) as (upstream, peer):
            tape = await told(upstream, call_to(peer.port, body=b"x" * (50 * MEGABYTE)))
            assert tape.head[0] == 413
            assert tape.told[-1] == END
            assert upstream.idle_count == 0
            answered.set()
            await peer.until(lambda: peer.open_count == 0)

    answered = asyncio.Event()
    run(main(), loop_name)


def test_a_paused_exchange_stops_the_peer(loop_name):
    async def main():
        async def talk(line):
            await line.request()
            line.writer.transport.set_write_buffer_limits(high=0)
            line.say(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % (30 * MEGABYTE))
            for _ in range(30):
                line.say(b"x" * MEGABYTE)
                waits.append(line.writer.transport.get_write_buffer_size())
                if waits[-1] > 4 * MEGABYTE:
                    stuck.set()
            await line.writer.drain()
            await line.gone()

        waits: list[int] = []
        stuck = asyncio.Event()
        async with client_and_peer(talk) as (upstream, peer):
            tape = Tape()
            exchange = upstream.dispatch(call_to(peer.port), tape)
            tape.act = lambda told: exchange.pause() if isinstance(told, tuple) else None
            await stuck.wait()
            await tape.until(lambda: bool(tape.told))
            assert tape.pieces <= 1
            exchange.resume()
            await tape.ended()
            assert len(tape.body) == 30 * MEGABYTE
            assert upstream.idle_count == 1

    run(main(), loop_name)


def test_a_connection_that_ended_while_paused_reads_again(loop_name):
    async def main():
        async with client_and_peer(answering(ok())) as (upstream, peer):
            tape = Tape()
            exchange = upstream.dispatch(call_to(peer.port), tape)
            tape.act = lambda told: exchange.pause() if isinstance(told, tuple) else None
            await tape.ended()  # head and body came in one read
            second = await told(upstream, call_to(peer.port))
            assert second.told[-1] == END
            assert len(peer.lines) == 1

    run(main(), loop_name)


def test_paused_before_there_is_a_connection_reads_nothing(loop_name):
    async def main():
        async with client_and_peer(answering(ok())) as (upstream, peer):
            slow = Tape()
            exchange = upstream.dispatch(call_to(peer.port), slow)
            exchange.pause()
            await told(upstream, call_to(peer.port))
            await told(upstream, call_to(peer.port))
            assert slow.told == []
            exchange.resume()
            await slow.ended()
            assert slow.told[-1] == END

    run(main(), loop_name)


def test_a_sink_that_raises_costs_its_connection_only():
    async def main():
        reports = []
        asyncio.get_running_loop().set_exception_handler(lambda _, what: reports.append(what))
        async with client_and_peer(answering(ok())) as (upstream, peer):
            tape = Tape()

            def explode(told):
                if isinstance(told, tuple):
                    raise ZeroDivisionError

            tape.act = explode
            upstream.dispatch(call_to(peer.port), tape)
            await tape.ended()
            assert tape.failure == (Phase.BODY, Break.RESET)
            assert (await told(upstream, call_to(peer.port))).told[-1] == END
        assert reports

    run(main(), "asyncio")


def test_closing_ends_everything_and_later_calls_fail(loop_name):
    async def talk(line):
        await line.request()
        line.say(b"HTTP/1.1 200 OK\r\n\r\nhalf")
        await line.gone()

    async def main():
        async with client_and_peer(talk) as (upstream, peer):
            upstream.dispatch(call_to(peer.port), running := Tape())
            await running.until(lambda: bool(running.body))
            upstream.dispatch(call_to(peer.port), connecting := Tape())
            await upstream.aclose()
            assert running.failure == (Phase.BODY, Break.EXHAUSTED)  # not the end of its body
            assert connecting.failure[1] is Break.EXHAUSTED
            late = await told(upstream, call_to(peer.port))
            assert late.failure == (Phase.CONNECT, Break.EXHAUSTED)
            await upstream.aclose()
            await peer.until(lambda: peer.open_count == 0)

    run(main(), loop_name)


def test_after_many_mixed_cycles_nothing_is_left(loop_name):
    async def talk(line):
        while True:
            _, body = await line.request()
            match body:
                case b"answer":
                    line.say(ok(body))
                case b"reset":
                    line.reset()
                    return
                case b"garbage":
                    line.say(b"no HTTP at all\r\n\r\n")
                case _:
                    line.say(HALF)

    async def main():
        loop = asyncio.get_running_loop()
        before = asyncio.all_tasks()
        timers_before = timers(loop)
        with closed_port() as nobody:
            async with client_and_peer(talk) as (upstream, peer):
                for _ in range(30):
                    tapes = {word: Tape() for word in (b"answer", b"reset", b"garbage")}
                    for word, tape in tapes.items():
                        upstream.dispatch(call_to(peer.port, body=word), tape)
                    refused = Tape()
                    upstream.dispatch(call_to(nobody), refused)
                    upstream.dispatch(call_to(peer.port, body=b"hang"), Tape()).cancel()
                    hanging = Tape()
                    exchange = upstream.dispatch(call_to(peer.port, body=b"hang"), hanging)
                    await hanging.until(lambda hanging=hanging: bool(hanging.body))  # type: ignore[misc]
                    exchange.cancel()
                    for tape in (*tapes.values(), refused):
                        await tape.ended()
                    assert tapes[b"answer"].body == b"answer"
                await upstream.aclose()
                await peer.until(lambda: peer.open_count == 0)
                assert upstream.connection_count == upstream.idle_count == 0
                assert not upstream._openings
                assert upstream._pool._sweep is None
        assert asyncio.all_tasks() == before
        assert timers(loop) == timers_before

    def timers(loop):
        """Only one of the two loops shows them."""
        return {timer for timer in getattr(loop, "_scheduled", []) if not timer.cancelled()}

    run(main(), loop_name)


def test_a_finished_exchange_leaves_no_cycle_to_collect():
    async def main():
        async with client_and_peer(answering(ok())) as (upstream, peer):
            await told(upstream, call_to(peer.port))
            gc.collect()
            gc.disable()
            try:
                for _ in range(5):
                    await told(upstream, call_to(peer.port))
                left = [one for one in gc.get_objects() if isinstance(one, Response)]
                assert left == []
                assert not [one for one in gc.get_objects() if isinstance(one, HttpExchange)]
            finally:
                gc.enable()

    run(main())


async def turns(number):
    """Let the loop turn `number` times."""
    loop = asyncio.get_running_loop()
    for _ in range(number):
        turned = loop.create_future()
        loop.call_soon(turned.set_result, None)
        await turned


def test_a_call_cancelled_at_any_turn_of_its_connecting_frees_its_place(loop_name):
    """uvloop closes a socket whose opening is cancelled late without ever saying it is lost."""

    async def talk(line):
        await line.gone()

    async def main():
        async with client_and_peer(talk) as (upstream, peer):
            for number in range(12):
                for _ in range(8):
                    exchange = upstream.dispatch(call_to(peer.port), Tape())
                    await turns(number)
                    exchange.cancel()
            await peer.until(lambda: peer.open_count == 0)
            await turns(20)
            assert upstream.connection_count == 0

    run(main(), loop_name)


def test_the_loss_of_one_address_does_not_free_the_place_of_the_next():
    forgotten: list[Connection] = []
    connection = Connection(Origin("http", "two.test", 80), forgotten.append)
    connection.connection_lost(None)
    assert forgotten == []
    connection.established = True
    connection.connection_lost(None)
    assert forgotten == [connection]

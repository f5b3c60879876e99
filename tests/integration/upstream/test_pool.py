"""Which connections are used again, and which never: reuse, staleness, limits, expiry."""

import asyncio
import socket

import pytest
from tests.contracts.upstream import END, Tape
from tests.integration.upstream.peer import answering, listen, ok
from tests.integration.upstream.world import LOOPS, call_to, client, client_and_peer, run, told

from outlast.model.fault import Break, Phase
from outlast.ports import REPLACEABLE_BYTES_MAX
from outlast.upstream.limits import Limits


def test_a_connection_is_used_again_and_answers_do_not_mix():
    async def talk(line):
        while True:
            _, body = await line.request()
            line.say(ok(b"you said " + body))

    async def main():
        async with client_and_peer(talk) as (upstream, peer):
            bodies = [b"%d" % number for number in range(20)]
            heard = [(await told(upstream, call_to(peer.port, body=body))).body for body in bodies]
            assert heard == [b"you said " + body for body in bodies]
            assert len(peer.lines) == 1
            assert upstream.connection_count == upstream.idle_count == 1

    run(main())


def test_the_connection_used_last_is_used_first():
    async def main():
        async with client_and_peer(answering(ok())) as (upstream, peer):
            tapes = [Tape(), Tape()]
            for tape in tapes:
                upstream.dispatch(call_to(peer.port), tape)
            for tape in tapes:
                await tape.ended()
            for _ in range(5):
                await told(upstream, call_to(peer.port))
            assert sorted(len(line.requests) for line in peer.lines) == [1, 6]

    run(main())


def test_origins_do_not_share_connections():
    async def main():
        async with (
            client_and_peer(answering(ok(b"a"))) as (upstream, first),
            listen(answering(ok(b"b"))) as second,
        ):
            for _ in range(2):
                assert (await told(upstream, call_to(first.port))).body == b"a"
                assert (await told(upstream, call_to(second.port))).body == b"b"
            assert len(first.lines) == len(second.lines) == 1

    run(main())


@pytest.mark.parametrize("loop_name", LOOPS)
def test_a_small_request_leaves_in_one_segment_and_at_once(loop_name):
    async def talk(line):
        while data := await line.reader.read(65536):
            sizes.append(len(data))
            line.say(ok())

    async def main():
        async with client_and_peer(talk) as (upstream, peer):
            for _ in range(2):
                await told(upstream, call_to(peer.port, body=b"x" * 999))
            sock = next(iter(upstream._pool._existing)).raw.get_extra_info("socket")
            assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)

    sizes: list[int] = []
    run(main(), loop_name)
    assert len(sizes) == 2
    assert sizes[0] == sizes[1] > 1000


def dying(first_answers=1):
    """Connection 0 dies on a later request without a byte; the others are well."""

    async def talk(line):
        for _ in range(first_answers):
            await line.request()
            line.say(ok(b"first"))
        if line.number == 0:
            await line.request()
            line.close()
            return
        await line.request()
        line.say(ok(b"second"))
        await line.gone()

    return talk


@pytest.mark.parametrize("loop_name", LOOPS)
def test_a_stale_connection_is_replaced_once_in_silence(loop_name):
    async def main():
        async with client_and_peer(dying()) as (upstream, peer):
            await told(upstream, call_to(peer.port))
            tape = Tape()
            exchange = upstream.dispatch(call_to(peer.port), tape)
            await tape.ended()
            assert tape.body == b"first"  # a new connection's first answer
            assert exchange.replaced is True
            assert [len(line.requests) for line in peer.lines] == [2, 1]

    run(main(), loop_name)


def test_a_connection_that_the_peer_reset_while_we_wrote_is_replaced_too():
    async def talk(line):
        await line.request()
        line.say(ok())
        if line.number == 0:
            await line.request()
            line.reset()
        else:
            await line.gone()

    async def main():
        async with client_and_peer(talk) as (upstream, peer):
            await told(upstream, call_to(peer.port))
            exchange = upstream.dispatch(call_to(peer.port), tape := Tape())
            await tape.ended()
            assert (tape.told[-1], exchange.replaced) == (END, True)

    run(main())


@pytest.mark.parametrize(
    "changes",
    [{"replaceable": False}, {"body": b"x" * (REPLACEABLE_BYTES_MAX + 1)}],
    ids=["forbidden", "too large"],
)
def test_what_may_not_be_sent_twice_fails_in_phase_head(changes):
    async def main():
        async with client_and_peer(dying()) as (upstream, peer):
            await told(upstream, call_to(peer.port))
            exchange = upstream.dispatch(call_to(peer.port, **changes), tape := Tape())
            await tape.ended()
            assert tape.failure == (Phase.HEAD, Break.EOF)
            assert exchange.replaced is False
            assert len(peer.lines) == 1

    run(main())


def test_a_body_of_just_the_limit_is_replaced():
    async def main():
        async with client_and_peer(dying()) as (upstream, peer):
            await told(upstream, call_to(peer.port))
            call = call_to(peer.port, body=b"x" * REPLACEABLE_BYTES_MAX)
            exchange = upstream.dispatch(call, tape := Tape())
            await tape.ended()
            assert (tape.told[-1], exchange.replaced) == (END, True)

    run(main())


def test_a_fresh_connection_that_dies_is_not_replaced():
    async def talk(line):
        await line.request()
        line.close()

    async def main():
        async with client_and_peer(talk) as (upstream, peer):
            tape = await told(upstream, call_to(peer.port))
            assert tape.failure == (Phase.HEAD, Break.EOF)
            assert len(peer.lines) == 1

    run(main())


def test_the_replacement_is_not_replaced_again():
    async def talk(line):
        await line.request()
        if line.number == 0:
            line.say(ok())
            await line.request()
        line.close()

    async def main():
        async with client_and_peer(talk) as (upstream, peer):
            await told(upstream, call_to(peer.port))
            exchange = upstream.dispatch(call_to(peer.port), tape := Tape())
            await tape.ended()
            assert tape.failure == (Phase.HEAD, Break.EOF)
            assert exchange.replaced is True
            assert len(peer.lines) == 2

    run(main())


def test_one_response_byte_forbids_the_replacement():
    async def talk(line):
        await line.request()
        line.say(ok())
        await line.request()
        line.say(b"H")
        await line.writer.drain()
        line.close()

    async def main():
        async with client_and_peer(talk) as (upstream, peer):
            await told(upstream, call_to(peer.port))
            exchange = upstream.dispatch(call_to(peer.port), tape := Tape())
            await tape.ended()
            assert tape.failure == (Phase.HEAD, Break.EOF)
            assert exchange.replaced is False
            assert len(peer.lines) == 1

    run(main())


@pytest.mark.parametrize("goodbye", [b"", b"HTTP/1.1 408 Timeout\r\ncontent-length: 0\r\n\r\n"])
def test_an_idle_connection_that_hears_anything_is_dropped(goodbye):
    async def talk(line):
        await line.request()
        line.say(ok())
        await speak.wait()
        if goodbye:
            line.say(goodbye)
        else:
            line.writer.write_eof()
        await line.gone()

    async def main():
        async with client_and_peer(talk) as (upstream, peer):
            await told(upstream, call_to(peer.port))
            assert upstream.idle_count == 1
            speak.set()
            await peer.until(lambda: peer.open_count == 0)
            assert upstream.idle_count == upstream.connection_count == 0
            exchange = upstream.dispatch(call_to(peer.port), tape := Tape())
            await tape.ended()
            assert (tape.told[-1], exchange.replaced) == (END, False)

    speak = asyncio.Event()
    run(main())


def test_idle_connections_of_an_origin_are_limited_and_the_oldest_goes():
    async def main():
        limits = Limits(idle_per_origin_max=2)
        async with client_and_peer(answering(ok()), limits=limits) as (upstream, peer):
            tapes = [Tape() for _ in range(4)]
            for tape in tapes:
                upstream.dispatch(call_to(peer.port), tape)
            for tape in tapes:
                await tape.ended()
            assert upstream.idle_count == 2
            await peer.until(lambda: peer.open_count == 2)

    run(main())


def test_idle_connections_expire():
    async def main():
        limits = Limits(idle_expiry_s=0.05)
        async with client_and_peer(answering(ok()), limits=limits) as (upstream, peer):
            await told(upstream, call_to(peer.port))
            await told(upstream, call_to(peer.port))
            await peer.until(lambda: peer.open_count == 0)
            assert upstream.connection_count == 0
            assert upstream._pool._sweep is None
            await told(upstream, call_to(peer.port))
            assert len(peer.lines) == 2

    run(main())


def test_more_connections_than_the_limit_are_our_own_failure():
    async def talk(line):
        await line.request()
        line.say(b"HTTP/1.1 200 OK\r\n\r\nhalf")
        await line.gone()

    async def main():
        limits = Limits(connections_max=2)
        async with client_and_peer(talk, limits=limits) as (upstream, peer):
            tapes = [Tape(), Tape()]
            held = [upstream.dispatch(call_to(peer.port), tape) for tape in tapes]
            for tape in tapes:
                await tape.until(lambda tape=tape: bool(tape.body))  # type: ignore[misc]
            tape = await told(upstream, call_to(peer.port))
            assert tape.failure == (Phase.CONNECT, Break.EXHAUSTED)
            held[0].cancel()
            await peer.until(lambda: peer.open_count <= 1)
            upstream.dispatch(call_to(peer.port), again := Tape())
            await again.until(lambda: bool(again.body))
            assert again.body == b"half"

    run(main())


def test_an_idle_connection_gives_way_when_the_limit_is_reached():
    async def main():
        limits = Limits(connections_max=2)
        async with (
            client(limits=limits) as upstream,
            listen(answering(ok(b"a"))) as first,
            listen(answering(ok(b"b"))) as second,
            listen(answering(ok(b"c"))) as third,
        ):
            for peer in (first, second, third):
                assert (await told(upstream, call_to(peer.port))).told[-1] == END
            await first.until(lambda: first.open_count == 0)  # the one idle longest
            assert second.open_count == third.open_count == 1
            assert upstream.connection_count == 2

    run(main())

"""The socket host: its wire, its counts, and that it leaves nothing open."""

import asyncio

import pytest

from outlast.sim.provider import DEMO
from outlast.sim.script import Body, Cut, End, Hang, Head, Refuse, Wait
from outlast.sim.sockets import closed_port, serve, silent_port

LIMIT_S = 5.0
REQUEST = b"POST /v1?a=b HTTP/1.1\r\nHost: x\r\nX-Y: Z\r\ncontent-length: 2\r\n\r\n{}"


def always(*script):
    return lambda _request, _call, _rng: script


def serving(behaviour, use):
    """Serve, connect, run `use(server, reader, writer)`; a limit bounds all of it."""

    async def main():
        async with asyncio.timeout(LIMIT_S), serve(behaviour) as server:
            reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
            try:
                return await use(server, reader, writer)
            finally:
                writer.close()

    return asyncio.run(main())


def test_a_body_without_a_length_is_chunked_and_the_connection_is_kept():
    async def use(server, reader, writer):
        answers = []
        for _ in range(2):
            writer.write(REQUEST)
            answers.append(await reader.readuntil(b"\r\n0\r\n\r\n"))
        return answers, server.calls, server.connections_made

    script = (Head(200, ((b"x-a", b"1"),)), Body(b"ab"), Wait(0.001), Body(b"c" * 20), End())
    answers, calls, connections = serving(always(*script), use)
    assert answers[0] == answers[1]
    head, _, body = answers[0].partition(b"\r\n\r\n")
    assert head == b"HTTP/1.1 200 OK\r\nx-a: 1\r\ntransfer-encoding: chunked"
    assert body == b"2\r\nab\r\n14\r\n" + b"c" * 20 + b"\r\n0\r\n\r\n"
    assert (calls, connections) == (2, 1)


def test_an_announced_length_is_sent_as_it_is():
    async def use(_server, reader, writer):
        writer.write(REQUEST)
        return await reader.readuntil(b"abc")

    script = (Head(529, ((b"content-length", b"3"),)), Body(b"abc"), End())
    expected = b"HTTP/1.1 529 Unknown\r\ncontent-length: 3\r\n\r\nabc"
    assert serving(always(*script), use) == expected


def test_the_request_arrives_whole():
    async def use(server, reader, writer):
        writer.write(REQUEST)
        await reader.read(1)
        return server.requests[0]

    request = serving(always(Head(204), End()), use)
    assert (request.method, request.target, request.body) == (b"POST", b"/v1?a=b", b"{}")
    assert request.headers[1] == (b"x-y", b"Z")


@pytest.mark.parametrize("script", [(Cut(),), (Head(200), Body(b"x"), Cut())])
def test_a_cut_is_a_reset(script):
    async def use(_server, reader, writer):
        writer.write(REQUEST)
        with pytest.raises(ConnectionResetError):
            await reader.read(-1)

    serving(always(*script), use)


@pytest.mark.parametrize(
    "script", [(End(),), (Refuse(),), (Head(200, ((b"content-length", b"9"),)), Body(b"x"), End())]
)
def test_an_unfinished_answer_is_closed_in_order(script):
    async def use(_server, reader, writer):
        writer.write(REQUEST)
        return await reader.read(-1)

    assert not serving(always(*script), use).endswith(b"0\r\n\r\n")


def test_garbage_and_pipelining_lose_the_connection():
    async def use(server, reader, writer):
        writer.write(REQUEST + REQUEST)
        await server.closed()
        return server.calls

    assert serving(always(Hang()), use) == 1

    async def garbage(server, reader, writer):
        writer.write(b"\x00\x01nonsense\r\n\r\n")
        await server.reached(lambda: server.connections_made == 1)
        await server.closed()
        return server.calls

    assert serving(always(Hang()), garbage) == 0


def test_a_caller_that_leaves_midway_is_counted():
    async def use(server, reader, writer):
        writer.write(REQUEST)
        await reader.readuntil(b"x")
        assert server.open_connections == 1
        writer.close()
        await server.closed()
        return server.left_early

    assert serving(always(Head(200), Body(b"x"), Hang()), use) == 1


def test_a_caller_that_leaves_after_the_end_is_not_early():
    async def use(server, reader, writer):
        writer.write(REQUEST)
        await reader.readuntil(b"0\r\n\r\n")
        writer.close()
        await server.closed()
        return server.left_early

    assert serving(always(Head(200), Body(b"x"), End()), use) == 0


def test_the_end_of_the_block_closes_what_still_hangs():
    async def main():
        async with asyncio.timeout(LIMIT_S):
            async with serve(always(Hang())) as server:
                reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
                writer.write(REQUEST)
                await server.reached(lambda: server.calls == 1)
            assert server.open_connections == 0
            with pytest.raises(ConnectionError):
                await asyncio.open_connection("127.0.0.1", server.port)
            assert await reader.read(-1) == b""
            writer.close()

    asyncio.run(main())


def test_waiting_for_what_never_comes_ends():
    async def use(server, _reader, _writer):
        with pytest.raises(TimeoutError):
            await server.reached(lambda: server.calls == 9, limit_s=0.01)

    serving(always(Hang()), use)


def test_a_closed_port_refuses():
    async def main(port):
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection("127.0.0.1", port)

    with closed_port() as port:
        asyncio.run(main(port))


def test_a_silent_port_never_establishes():
    async def main(port):
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.2):
                await asyncio.open_connection("127.0.0.1", port)

    with silent_port() as port:
        asyncio.run(main(port))


def test_demo_providers_speak_over_sockets():
    body = b'{"model":"m","messages":[],"stream":true}'
    head = b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\ncontent-length: %d\r\n\r\n"

    async def use(_server, reader, writer):
        writer.write(head % len(body) + body)
        return await reader.readuntil(b"\r\n0\r\n\r\n")

    answer = serving(DEMO["sim-fast"], use)
    assert b"text/event-stream" in answer
    assert b"data: [DONE]" in answer

"""Both sides of every limit of the caller's leg."""

import asyncio
import json
import socket

import msgspec
import pytest

from outlast.server.limits import Limits
from outlast.server.routes import ServerSettings

LIMITS = Limits(sweep_s=0.02)


def head_of(size: int) -> bytes:
    """A GET whose target and fields together measure `size`, counted with 4 bytes a field."""
    fixed = len("/healthz") + len("Host") + len("x") + 4 + len("Pad") + 4
    return b"GET /healthz HTTP/1.1\r\nHost: x\r\nPad: " + b"p" * (size - fixed) + b"\r\n\r\n"


async def closed(caller):
    """What still comes until the server closes; a reset counts as closed."""
    try:
        return await caller.rest()
    except ConnectionResetError:
        return b""


@pytest.mark.parametrize("split", [False, True])
def test_a_head_of_32_kib_is_read_and_a_larger_one_refused(serve, split):
    async def scenario(rig):
        assert (await ask(await rig.connect(), LIMITS.head_bytes_max)).status == 200
        caller = await rig.connect()
        answer = await ask(caller, LIMITS.head_bytes_max + 1)
        assert answer.status == 431
        assert (answer.code, answer.headers["connection"]) == ("head_too_large", "close")
        assert len(answer.headers["x-request-id"]) == 32
        assert await closed(caller) == b""

    async def ask(caller, size):
        data = head_of(size)
        if split:
            caller.send(data[:20_000])
            await nothing(caller)
            caller.send(data[20_000:])
        else:
            caller.send(data)
        return await caller.answer()

    async def nothing(caller):
        try:
            async with asyncio.timeout(0.03):
                await caller.reader.read(1)
        except TimeoutError:
            return
        pytest.fail("answered before the head was complete")

    serve(scenario)


def test_a_field_that_never_ends_is_refused_before_it_does(serve):
    async def scenario(rig):
        caller = await rig.connect()
        caller.send(b"GET / HTTP/1.1\r\nHost: x\r\nPad: " + b"p" * 45_000)
        assert (await caller.answer()).status == 431
        assert await closed(caller) == b""

    serve(scenario)


def test_blank_lines_without_end_are_refused(serve):
    async def scenario(rig):
        caller = await rig.connect()
        caller.send(b"\r\n" * 20_000)
        assert (await caller.answer()).status == 431

    serve(scenario)


def test_100_fields_are_read_and_101_refused(serve, get):
    async def scenario(rig):
        for count, status in [(100, 200), (101, 431)]:
            fields = [f"X-{number}: 1" for number in range(count - 1)]
            assert (await rig.ask(get("/healthz", *fields))).status == status

    serve(scenario)


def test_a_target_of_8_kib_is_read_and_a_longer_one_refused(serve, get):
    async def scenario(rig):
        fixed = len("/healthz?")
        assert (await rig.ask(get("/healthz?" + "q" * (8192 - fixed)))).status == 200
        answer = await rig.ask(get("/healthz?" + "q" * (8193 - fixed)))
        assert (answer.status, answer.code) == (414, "target_too_long")

    serve(scenario)


@pytest.mark.slow
def test_a_slow_head_is_refused_however_often_a_byte_comes(serve, fast_limits):
    async def scenario(rig):
        caller = await rig.connect()
        began = asyncio.get_running_loop().time()
        head = b"GET / HTTP/1.1\r\nHost: x\r\nX: " + b"y" * 1000
        answered = asyncio.Event()

        async def drip():
            for byte in head:
                caller.send(bytes([byte]))
                try:
                    async with asyncio.timeout(0.01):
                        await answered.wait()
                except TimeoutError:
                    continue
                return

        async with asyncio.TaskGroup() as group:
            group.create_task(drip())
            answer = await caller.answer()
            answered.set()
        took = asyncio.get_running_loop().time() - began
        assert (answer.status, answer.code) == (408, "request_timeout")
        assert 0.3 <= took < 2

    serve(scenario, limits=fast_limits)


@pytest.mark.slow
def test_a_fresh_connection_without_a_byte_is_closed(serve, fast_limits):
    async def scenario(rig):
        caller = await rig.connect()
        began = asyncio.get_running_loop().time()
        assert await caller.rest() == b""
        assert 0.2 <= asyncio.get_running_loop().time() - began < 2

    serve(scenario, limits=fast_limits)


@pytest.mark.slow
def test_an_answered_connection_is_kept_and_then_closed(serve, get, fast_limits):
    async def scenario(rig):
        caller = await rig.connect()
        caller.send(get("/healthz"))
        assert (await caller.answer()).status == 200
        began = asyncio.get_running_loop().time()
        assert await caller.rest() == b""
        assert 0.35 <= asyncio.get_running_loop().time() - began < 2

    serve(scenario, limits=fast_limits)


@pytest.mark.slow
def test_a_body_without_progress_is_refused(serve, fast_limits):
    async def scenario(rig):
        caller = await rig.connect()
        caller.send(b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n{")
        answer = await caller.answer()
        assert (answer.status, answer.code) == (408, "request_timeout")
        assert await closed(caller) == b""
        assert rig.engine.calls == []
        assert rig.crashes == []

    serve(scenario, limits=fast_limits)


@pytest.mark.slow
def test_a_slow_body_with_progress_is_read(serve, fast_limits):
    async def scenario(rig):
        caller = await rig.connect()
        caller.send(b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 8\r\n\r\n")
        for _ in range(8):
            try:
                async with asyncio.timeout(0.08):
                    await caller.reader.read(1)
            except TimeoutError:
                caller.send(b"x")
        assert (await caller.answer()).body == b'{"bytes":8}'

    serve(scenario, limits=fast_limits)


@pytest.mark.slow
def test_a_long_wait_for_the_engine_is_no_timeout(serve, post, fast_limits):
    async def scenario(rig):
        async def slow(call, responder):
            try:
                async with asyncio.timeout(0.8):
                    await asyncio.Event().wait()
            except TimeoutError:
                await rig.engine.echo(call, responder)

        rig.engine.behaviour = slow
        caller = await rig.connect()
        caller.send(post())
        assert (await caller.answer()).status == 200
        caller.send(post())  # and the connection still works
        assert (await caller.answer()).status == 200

    serve(scenario, limits=fast_limits)


CHUNKED = b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(("extension_bytes", "status"), [(3_000, 200), (20_000, 400)])
@pytest.mark.parametrize("apart", [True, False])
def test_chunk_extensions_have_a_limit(serve, extension_bytes, status, apart):
    async def scenario(rig):
        caller = await rig.connect()
        chunk = b"2;e=" + b"x" * extension_bytes + b"\r\n{}\r\n"
        if apart:
            caller.send(CHUNKED)
            await caller.writer.drain()
            caller.send(chunk)
            await caller.writer.drain()
            caller.send(b"0\r\n\r\n")
        else:
            caller.send(CHUNKED + chunk + b"0\r\n\r\n")
        answer = await caller.answer()
        assert answer.status == status
        assert len(rig.engine.calls) == (1 if status == 200 else 0)

    serve(scenario)


def test_many_small_extensions_count_together(serve):
    async def scenario(rig):
        caller = await rig.connect()
        caller.send(CHUNKED + (b"1;e=" + b"x" * 50 + b"\r\n \r\n") * 1000 + b"0\r\n\r\n")
        assert (await caller.answer()).status == 400

    serve(scenario)


def test_many_small_chunks_without_extensions_are_read(serve):
    async def scenario(rig):
        caller = await rig.connect()
        caller.send(CHUNKED + b"1\r\n \r\n" * 20_000 + b"0\r\n\r\n")
        assert (await caller.answer()).body == b'{"bytes":20000}'

    serve(scenario)


def test_trailers_do_not_become_headers(serve):
    async def scenario(rig):
        caller = await rig.connect()
        caller.send(CHUNKED + b"2\r\n{}\r\n0\r\nX-Request-Id: forged\r\n\r\n")
        answer = await caller.answer()
        assert answer.status == 200
        assert answer.headers["x-request-id"] != "forged"
        assert b"forged" not in [value for _, value in rig.engine.calls[0].headers]

    serve(scenario)


def test_connections_above_the_limit_get_503_and_room_comes_back(serve, get):
    async def scenario(rig):
        callers = [await rig.connect() for _ in range(3)]
        for caller in callers:
            caller.send(get("/healthz"))
            assert (await caller.answer()).status == 200
        excess = await rig.connect()
        excess.send(get("/healthz"))
        answer = await excess.answer()
        assert (answer.status, answer.code) == (503, "gateway_overloaded")
        assert answer.headers["retry-after"] == "1"
        assert await closed(excess) == b""
        callers[0].leave()
        async with asyncio.timeout(2):
            while (await rig.ask(get("/healthz"))).status != 200:
                pass

    serve(scenario, limits=msgspec.structs.replace(LIMITS, connections_max=3))


SMALL = ServerSettings(request_body_max_bytes=1000)


def test_a_declared_length_above_the_limit_is_refused_before_the_body(serve, post):
    async def scenario(rig):
        assert (await rig.ask(post(b"x" * 1000))).status == 200
        caller = await rig.connect()
        caller.send(post(b"x" * 1001)[:-1001])  # the head alone
        answer = await caller.answer()
        assert (answer.status, answer.code) == (413, "request_too_large")
        assert answer.headers["connection"] == "close"
        assert await closed(caller) == b""
        assert len(rig.engine.calls) == 1

    serve(scenario, settings=SMALL)


def test_a_refused_upload_in_full_flight_still_gets_its_answer(serve, post):
    async def scenario(rig):
        # Reads nothing before all is sent: a server that just closes resets this upload.
        loop = asyncio.get_running_loop()
        with socket.create_connection(("127.0.0.1", rig.port)) as sock:
            sock.setblocking(False)
            await loop.sock_sendall(sock, post(b"x" * 12_000_000))
            got = await loop.sock_recv(sock, 65536)
            assert got.startswith(b"HTTP/1.1 413 ")
            assert b"request_too_large" in got

    serve(scenario, settings=SMALL)


def test_a_chunked_body_is_refused_at_the_limit(serve):
    async def scenario(rig):
        def chunk(size):
            return b"%x\r\n" % size + b"x" * size + b"\r\n"

        exact = await rig.ask(CHUNKED + chunk(600) + chunk(400) + b"0\r\n\r\n")
        assert exact.body == b'{"bytes":1000}'
        caller = await rig.connect()
        caller.send(CHUNKED + chunk(600) + chunk(401))  # and no end
        answer = await caller.answer()
        assert (answer.status, answer.code) == (413, "request_too_large")
        assert await closed(caller) == b""

    serve(scenario, settings=SMALL)


def test_no_100_continue_is_sent_for_a_body_that_is_refused(serve, post):
    async def scenario(rig):
        caller = await rig.connect()
        caller.send(post(b"x" * 1001, "Expect: 100-continue")[:-1001])
        assert (await caller.answer()).status == 413
        caller = await rig.connect()
        caller.send(post(b"x" * 10, "Expect: 100-continue")[:-10])
        assert (await caller.answer(bodiless=True)).status == 100
        caller.send(b"x" * 10)
        assert (await caller.answer()).status == 200

    serve(scenario, settings=SMALL)


def test_an_answered_body_is_dropped_up_to_a_limit(serve, post, get):
    async def scenario(rig):
        caller = await rig.connect()
        caller.send(post(b"x" * 100_000, path="/nowhere") + get("/healthz"))
        assert (await caller.answer()).status == 404
        assert (await caller.answer()).status == 200
        caller = await rig.connect()
        caller.send(post(b"x" * 1_000_000, path="/nowhere") + get("/healthz"))
        assert (await caller.answer()).status == 404
        assert await closed(caller) == b""

    serve(scenario, limits=msgspec.structs.replace(LIMITS, discard_bytes_max=200_000))


def test_a_refusal_quotes_nothing_of_what_was_received(serve):
    async def scenario(rig):
        answer = await rig.ask(b"GET /s3cret HTTP/1.1\r\nAuthorization: s3cret\r\n\r\n")
        assert answer.status == 400
        assert b"s3cret" not in answer.body
        assert json.loads(answer.body)["error"]["type"] == "invalid_request_error"

    serve(scenario)

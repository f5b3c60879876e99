"""Ambiguous or malformed bytes: 400, close, and nothing behind them is served."""

import asyncio
import contextlib

import pytest

HEAD = b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\n"
NEXT = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"

MALFORMED = {
    "length and chunked": HEAD
    + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "chunked and length": HEAD
    + b"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n",
    "two lengths": HEAD + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
    "a list of lengths": HEAD + b"Content-Length: 2, 2\r\n\r\n{}",
    "a signed length": HEAD + b"Content-Length: +2\r\n\r\n{}",
    "a negative length": HEAD + b"Content-Length: -2\r\n\r\n{}",
    "a hexadecimal length": HEAD + b"Content-Length: 0x2\r\n\r\n{}",
    "an empty length": HEAD + b"Content-Length:\r\n\r\n",
    "a huge length": HEAD + b"Content-Length: 99999999999999999999\r\n\r\n{}",
    "a hexadecimal prefix of a chunk": HEAD
    + b"Transfer-Encoding: chunked\r\n\r\n0x2\r\n{}\r\n0\r\n\r\n",
    "a signed chunk": HEAD + b"Transfer-Encoding: chunked\r\n\r\n+2\r\n{}\r\n0\r\n\r\n",
    "a chunk longer than said": HEAD + b"Transfer-Encoding: chunked\r\n\r\n1\r\n{}\r\n0\r\n\r\n",
    "a chunk without its line end": HEAD + b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}0\r\n\r\n",
    "chunked not last": HEAD + b"Transfer-Encoding: chunked, gzip\r\n\r\n0\r\n\r\n",
    "unknown coding": HEAD + b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
    "a folded field": HEAD + b"X-A: 1\r\n folded\r\nContent-Length: 2\r\n\r\n{}",
    "bare line feeds": b"POST /v1/chat/completions HTTP/1.1\nHost: x\nContent-Length: 2\n\n{}",
    "a bare carriage return": HEAD + b"X-A: 1\rX-B: 2\r\nContent-Length: 2\r\n\r\n{}",
    "a space before the colon": HEAD + b"Content-Length : 2\r\n\r\n{}",
    "a NUL in a value": HEAD + b"X-A: \x00\r\nContent-Length: 2\r\n\r\n{}",
    "a field without a name": HEAD + b": 1\r\nContent-Length: 2\r\n\r\n{}",
    "no host": b"GET /healthz HTTP/1.1\r\n\r\n",
    "two hosts": b"GET /healthz HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n",
    "HTTP/0.9": b"GET /healthz\r\n\r\n",
    "HTTP/0.9 said": b"GET /healthz HTTP/0.9\r\nHost: x\r\n\r\n",
    "HTTP/2.0": b"GET /healthz HTTP/2.0\r\nHost: x\r\n\r\n",
    "HTTP/2 preface": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "a TLS hello": bytes.fromhex("16030100c8010000c40303") + b"\x00" * 100,
    "garbage": b"\x00\x01\x02\x03 garbage\r\n\r\n",
    "an unknown method": b"BREW /healthz HTTP/1.1\r\nHost: x\r\n\r\n",
    "a tunnel": b"CONNECT example.test:443 HTTP/1.1\r\nHost: x\r\n\r\n",
    "a target beyond ASCII": b"GET /h\xe9 HTTP/1.1\r\nHost: x\r\n\r\n",
}


@pytest.mark.parametrize("case", MALFORMED)
def test_malformed_bytes_are_refused_and_the_connection_closed(serve, case):
    async def scenario(rig):
        caller = await rig.connect()
        caller.send(MALFORMED[case] + NEXT)
        answer = await caller.answer()
        assert answer.status == 400
        assert answer.code == "malformed_request"
        assert answer.headers["connection"] == "close"
        with contextlib.suppress(ConnectionResetError):
            assert await caller.rest() == b""
        assert rig.engine.calls == []
        assert rig.crashes == []

    serve(scenario)


def test_http_1_0_without_host_is_served_and_closed(serve):
    async def scenario(rig):
        caller = await rig.connect()
        caller.send(b"GET /healthz HTTP/1.0\r\n\r\n")
        assert (await caller.answer()).status == 200
        assert await caller.rest() == b""

    serve(scenario)


def test_an_upgrade_is_ignored_and_the_connection_closed_after_the_answer(serve, get, post):
    async def scenario(rig):
        for data in [
            get("/healthz", "Connection: Upgrade", "Upgrade: websocket"),
            post(b"{}", "Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c"),
        ]:
            caller = await rig.connect()
            caller.send(data + NEXT)
            assert (await caller.answer()).status == 200
            assert await caller.rest() == b""

    serve(scenario)


def test_malformed_bytes_behind_a_running_request_leave_its_answer_whole(serve, post):
    async def scenario(rig):
        go = asyncio.Event()

        async def wait(call, responder):
            await responder.start(200, [])
            await responder.write(b"first,")
            await go.wait()
            await responder.write(b"last")
            await responder.end()

        rig.engine.behaviour = wait
        caller = await rig.connect()
        caller.send(post())
        assert b"200" in await caller.reader.readuntil(b"\r\n\r\n")
        caller.send(b"\x00garbage\r\n\r\n")
        await caller.reader.readuntil(b"first,\r\n")
        go.set()
        assert await caller.rest() == b"4\r\nlast\r\n0\r\n\r\n"

    serve(scenario)

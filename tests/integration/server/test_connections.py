"""Keep-alive, pipelining, callers that leave or stop reading, and the drain."""

import asyncio
import socket
from typing import Any

import pytest

from outlast.errors import StartError
from outlast.server.limits import Limits
from outlast.server.listen import Listener
from outlast.server.routes import DRAINING

LOOPS = pytest.mark.parametrize("loop", ["uvloop", "asyncio"])
NOTICED_S = 0.1


class Held:
    """An engine's behaviour that waits until told to go on, and hears its caller leave."""

    def __init__(self, chunk: bytes | None = None, *, forever: bool = False) -> None:
        self.chunk = chunk
        self.forever = forever
        self.running = asyncio.Event()
        self.go = asyncio.Event()
        self.gone = asyncio.Event()
        self.gone_count = 0
        self.ended = asyncio.Event()
        self.responder: Any = None

    def _leave(self) -> None:
        self.gone_count += 1
        self.gone.set()

    async def __call__(self, call, responder) -> None:
        self.responder = responder
        responder.on_gone(self._leave)
        try:
            if self.chunk is not None:
                await responder.start(200, [])
                await responder.write(self.chunk)
            self.running.set()
            while self.forever and not responder.gone:
                await responder.write(self.chunk)
            go = asyncio.get_running_loop().create_task(self.go.wait())
            left = asyncio.get_running_loop().create_task(self.gone.wait())
            _, pending = await asyncio.wait([go, left], return_when=asyncio.FIRST_COMPLETED)
            for task in pending:
                task.cancel()
            if self.chunk is None:
                await responder.whole(200, [], call.body)
            else:
                await responder.end()
        finally:
            self.ended.set()


async def leaves_in_time(caller, held) -> None:
    """The caller leaves; the engine hears it in time, once."""
    began = asyncio.get_running_loop().time()
    caller.leave()
    async with asyncio.timeout(2):
        await held.gone.wait()
    assert asyncio.get_running_loop().time() - began < NOTICED_S
    assert held.responder.gone
    async with asyncio.timeout(2):
        await held.ended.wait()
    assert held.gone_count == 1


def test_a_connection_serves_many_requests(serve, post, get):
    async def scenario(rig):
        caller = await rig.connect()
        for size in [1, 70_000, 1_000_000, 0]:
            caller.send(post(b"x" * size))
            assert (await caller.answer()).body == b'{"bytes":%d}' % size
            caller.send(get("/healthz"))
            assert (await caller.answer()).status == 200

    serve(scenario)


def test_pipelined_requests_are_answered_in_order(serve, post, get):
    async def scenario(rig):
        caller = await rig.connect()
        caller.send(b"".join(post(b"x" * size) for size in range(20)) + get("/healthz"))
        for size in range(20):
            assert (await caller.answer()).body == b'{"bytes":%d}' % size
        assert (await caller.answer()).body == b'{"status":"ok"}'

    serve(scenario)


def test_connection_close_is_obeyed(serve, post):
    async def scenario(rig):
        caller = await rig.connect()
        caller.send(post(b"{}", "Connection: close"))
        answer = await caller.answer()
        assert answer.headers["connection"] == "close"
        assert await caller.rest() == b""

    serve(scenario)


@LOOPS
@pytest.mark.parametrize("size", [2, 60_000, 1_000_000])
def test_a_caller_that_leaves_while_the_engine_waits_is_noticed(serve, post, loop, size):
    async def scenario(rig):
        held = rig.engine.behaviour = Held()
        caller = await rig.connect()
        caller.send(post(b"x" * size))
        await held.running.wait()
        await leaves_in_time(caller, held)
        assert rig.crashes == []

    serve(scenario, loop=loop)


@LOOPS
def test_a_caller_that_leaves_mid_stream_is_noticed(serve, post, loop):
    async def scenario(rig):
        held = rig.engine.behaviour = Held(b"data: x\n\n")
        caller = await rig.connect()
        caller.send(post())
        await caller.reader.readuntil(b"data: x")
        await leaves_in_time(caller, held)

    serve(scenario, loop=loop)


@LOOPS
def test_a_caller_that_leaves_while_writes_wait_is_noticed(serve, post, loop):
    async def scenario(rig):
        held = rig.engine.behaviour = Held(b"x" * 60_000, forever=True)
        caller = await rig.connect(read_limit=1000)
        caller.send(post())
        await held.running.wait()
        async with asyncio.timeout(2):
            while not _blocked(rig):
                await _turn()
        await leaves_in_time(caller, held)

    serve(scenario, loop=loop)


def _blocked(rig) -> bool:
    return any(c.flow.write_paused for c in rig.listener.server_state.connections)


async def _turn() -> None:
    turned = asyncio.Event()
    asyncio.get_running_loop().call_soon(turned.set)
    await turned.wait()


@LOOPS
def test_a_caller_that_leaves_while_sending_never_reaches_the_engine(serve, post, loop):
    async def scenario(rig):
        caller = await rig.connect()
        caller.send(post(b"x" * 1000)[:-1])
        async with asyncio.timeout(2):
            while not rig.listener.server_state.tasks:
                await _turn()
            caller.leave()
            while rig.listener.server_state.tasks:
                await _turn()
        assert rig.engine.calls == []
        assert rig.crashes == []

    serve(scenario, loop=loop)


def test_leaving_after_the_answer_reaches_no_earlier_request(serve, post):
    async def scenario(rig):
        first = rig.engine.behaviour = Held()
        caller = await rig.connect()
        caller.send(post())
        await first.running.wait()
        first.go.set()
        await caller.answer()
        second = rig.engine.behaviour = Held()
        caller.send(post())
        await second.running.wait()
        await leaves_in_time(caller, second)
        assert first.gone_count == 0
        assert not first.responder.gone

    serve(scenario)


def test_an_abort_after_the_answer_harms_no_later_request(serve, post):
    async def scenario(rig):
        first = rig.engine.behaviour = Held()
        caller = await rig.connect()
        caller.send(post())
        await first.running.wait()
        first.go.set()
        await caller.answer()
        second = rig.engine.behaviour = Held()
        caller.send(post())
        await second.running.wait()
        first.responder.abort()
        second.go.set()
        assert (await caller.answer()).status == 200

    serve(scenario)


@pytest.mark.slow
def test_a_pipelined_body_that_we_hold_back_is_not_called_slow(serve, post, fast_limits):
    async def scenario(rig):
        first = rig.engine.behaviour = Held()
        caller = await rig.connect()
        caller.send(post(b"x") + post(b"y" * 12_000_000))
        await first.running.wait()
        rig.engine.behaviour = rig.engine.echo
        asyncio.get_running_loop().call_later(3 * fast_limits.body_progress_s, first.go.set)
        assert (await caller.answer()).body == b"x"
        assert (await caller.answer()).body == b'{"bytes":12000000}'

    serve(scenario, limits=fast_limits)


def test_a_pipelined_request_whose_caller_left_is_not_begun(serve, post):
    async def scenario(rig):
        held = rig.engine.behaviour = Held(b"x")
        caller = await rig.connect()
        caller.send(post() + post())
        await held.running.wait()
        caller.leave()
        held.go.set()
        await held.ended.wait()
        async with asyncio.timeout(2):
            while rig.listener.server_state.connections:
                held.responder.abort()
                await _turn()
        assert len(rig.engine.calls) == 1

    serve(scenario)


@pytest.mark.slow
@LOOPS
def test_a_caller_that_stops_reading_is_cut_and_counts_as_gone(serve, post, fast_limits, loop):
    async def scenario(rig):
        held = rig.engine.behaviour = Held(b"x" * 60_000, forever=True)
        caller = await rig.connect(read_limit=1000)
        caller.send(post())
        await held.running.wait()
        began = asyncio.get_running_loop().time()
        async with asyncio.timeout(5):
            await held.gone.wait()
            await held.ended.wait()
        assert asyncio.get_running_loop().time() - began >= fast_limits.write_stall_s * 0.9

    serve(scenario, limits=fast_limits, loop=loop)


@pytest.mark.slow
def test_a_caller_that_reads_slowly_is_served(serve, post, fast_limits):
    async def scenario(rig):
        body = b"x" * 12_000_000

        async def large(call, responder):
            await responder.whole(200, [], body)

        rig.engine.behaviour = large
        caller = await rig.connect(read_limit=1000)
        caller.send(post())
        await caller.reader.readuntil(b"\r\n\r\n")
        loop, got = asyncio.get_running_loop(), 0
        began = loop.time()
        while got < len(body):
            got += len(await caller.reader.readexactly(min(800_000, len(body) - got)))
            pause = asyncio.Event()
            loop.call_later(0.08, pause.set)
            await pause.wait()
        assert loop.time() - began > 2 * fast_limits.write_stall_s

    serve(scenario, limits=fast_limits)


@pytest.mark.slow
def test_an_answer_that_nobody_reads_does_not_hold_its_connection(serve, post, fast_limits):
    async def scenario(rig):
        async def large(call, responder):
            await responder.whole(200, [], b"x" * 12_000_000)

        rig.engine.behaviour = large
        caller = await rig.connect(read_limit=1000)
        caller.send(post(b"{}", "Connection: close"))
        async with asyncio.timeout(5):
            while not rig.engine.calls:
                await _turn()
            while rig.listener.server_state.connections:
                await _turn()

    serve(scenario, limits=fast_limits)


@LOOPS
def test_an_aborted_answer_never_looks_whole(serve, post, loop):
    async def scenario(rig):
        async def cut(call, responder):
            await responder.start(200, [])
            await responder.write(b"half")
            responder.abort()

        rig.engine.behaviour = cut
        caller = await rig.connect()
        caller.send(post())
        try:
            got = await caller.rest()
        except ConnectionResetError:
            got = b""
        assert b"0\r\n\r\n" not in got
        assert rig.crashes == []

    serve(scenario, loop=loop)


def test_while_draining_new_calls_are_sent_away_and_pages_still_answer(serve, post, get):
    async def scenario(rig):
        rig.pages.reason = DRAINING
        caller = await rig.connect()
        caller.send(get("/healthz"))
        assert (await caller.answer()).status == 200
        caller.send(post(b"x" * 500_000))
        answer = await caller.answer()
        assert (answer.status, answer.code) == (503, "gateway_draining")
        assert answer.headers["retry-after"] == "1"
        assert answer.headers["connection"] == "close"
        assert rig.engine.calls == []

    serve(scenario)


def test_stop_lets_running_requests_end_and_closes_idle_connections(serve, post, get):
    async def scenario(rig):
        held = rig.engine.behaviour = Held()
        idle, busy = await rig.connect(), await rig.connect()
        idle.send(get("/healthz"))
        await idle.answer()
        busy.send(post(b"abc"))
        await held.running.wait()
        rig.listener.stop()
        assert await idle.rest() == b""
        with pytest.raises(ConnectionRefusedError):
            await rig.connect()
        held.go.set()
        answer = await busy.answer()
        assert (answer.status, answer.body) == (200, b"abc")
        assert answer.headers["connection"] == "close"

    serve(scenario, drain_s=10.0)


@LOOPS
def test_the_drain_cuts_what_outlasts_it(serve, post, loop):
    async def scenario(rig):
        held = rig.engine.behaviour = Held(b"x")
        caller = await rig.connect()
        caller.send(post())
        await held.running.wait()
        rig.listener.stop()
        async with asyncio.timeout(2):
            await held.gone.wait()
            await held.ended.wait()

    serve(scenario, drain_s=0.1, loop=loop)


@pytest.mark.slow
def test_the_drain_ends_even_an_engine_that_hears_nothing(serve, post, caplog):
    cancelled = []

    async def scenario(rig):
        running = asyncio.Event()

        async def deaf(call, responder):
            running.set()
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                cancelled.append(True)
                raise

        rig.engine.behaviour = deaf
        caller = await rig.connect()
        caller.send(post())
        await running.wait()

    serve(scenario, drain_s=0.05)
    assert cancelled == [True]
    assert "Exception in ASGI" not in caplog.text


def test_no_timer_runs_without_connections(serve, get):
    async def scenario(rig):
        state = rig.listener.server_state
        assert state._timer is None
        caller = await rig.connect()
        caller.send(get("/healthz"))
        await caller.answer()
        assert state._timer is not None
        caller.leave()
        async with asyncio.timeout(2):
            await state.quiet.wait()
        assert state._timer is None
        assert state.served == 0

    serve(scenario)


def test_a_taken_port_is_a_start_error_that_names_it():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        listener = Listener(None, port=port)
        with pytest.raises(StartError, match=rf"127\.0\.0\.1:{port}.*server\.listen"):
            asyncio.run(listener.serve())


def test_a_bound_socket_can_be_handed_in(get):
    async def main():
        ports = []
        bound = asyncio.Event()
        with socket.create_server(("127.0.0.1", 0)) as sock:
            listener = Listener(_plain, sock=sock, limits=Limits())

            def on_bound(port):
                ports.append(port)
                bound.set()

            async with asyncio.timeout(5), asyncio.TaskGroup() as group:
                group.create_task(listener.serve(on_bound))
                await bound.wait()
                assert ports == [sock.getsockname()[1]]
                reader, writer = await asyncio.open_connection("127.0.0.1", ports[0])
                writer.write(get("/x"))
                assert (await reader.readline()).startswith(b"HTTP/1.1 204")
                writer.transport.abort()
                listener.stop()

    asyncio.run(main())


async def _plain(scope, receive, send):
    await send({"type": "http.response.start", "status": 204, "headers": []})
    await send({"type": "http.response.body"})

"""A listener, a fake engine and raw sockets in one event loop."""

import asyncio
import json
from collections.abc import Awaitable, Callable

import pytest
import uvloop

from outlast.engine.call import Call
from outlast.ports import Responder
from outlast.protocols.table import DIALECTS
from outlast.server.app import App
from outlast.server.limits import Limits
from outlast.server.listen import Listener
from outlast.server.routes import ServerSettings

SCENARIO_S = 15.0
OPEN = ServerSettings()
USUAL = Limits(sweep_s=0.02)
FAST = Limits(
    head_s=0.3,
    body_progress_s=0.3,
    keep_alive_s=0.4,
    write_stall_s=0.4,
    linger_s=0.3,
    sweep_s=0.02,
)


class FakeEngine:
    """Answers with what `behaviour` does; keeps what it was asked."""

    def __init__(self) -> None:
        self.calls: list[Call] = []
        self.behaviour: Callable[[Call, Responder], Awaitable[None]] = self.echo
        self.names = ["fast", "acme/large"]

    async def echo(self, call: Call, responder: Responder) -> None:
        body = b'{"bytes":%d}' % len(call.body)
        await responder.whole(200, [(b"content-type", b"application/json")], body)

    async def answer(self, call: Call, responder: Responder) -> None:
        self.calls.append(call)
        await self.behaviour(call, responder)

    def models(self) -> list[str]:
        return self.names


class FakePages:
    def __init__(self) -> None:
        self.reason: str | None = None

    def ready(self) -> str | None:
        return self.reason

    def stats(self) -> bytes:
        return b'{"requests":0}'

    def metrics(self) -> bytes:
        return b"outlast_build_info 1\n"


class Answer:
    def __init__(self, status: int, headers: list[tuple[str, str]], body: bytes) -> None:
        self.status = status
        self.fields = headers
        self.headers = dict(headers)
        self.body = body

    @property
    def code(self):
        return json.loads(self.body)["error"]["metadata"]["gateway_code"]


class Caller:
    """One raw connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    def send(self, data: bytes) -> None:
        self.writer.write(data)

    async def answer(self, *, bodiless: bool = False) -> Answer:
        head = await self.reader.readuntil(b"\r\n\r\n")
        first, *lines = head.decode("latin-1").rstrip("\r\n").split("\r\n")
        fields = [(k.lower(), v) for k, v in (line.split(": ", 1) for line in lines)]
        headers = dict(fields)
        body = b""
        if bodiless:
            pass
        elif "content-length" in headers:
            body = await self.reader.readexactly(int(headers["content-length"]))
        elif headers.get("transfer-encoding") == "chunked":
            while size := int(await self.reader.readline(), 16):
                body += await self.reader.readexactly(size)
                await self.reader.readexactly(2)
            await self.reader.readexactly(2)
        return Answer(int(first.split(" ")[1]), fields, body)

    async def rest(self) -> bytes:
        """Everything until the server closes; raises ConnectionResetError when it resets."""
        return await self.reader.read()

    def leave(self) -> None:
        self.writer.transport.abort()


class Rig:
    def __init__(self, settings: ServerSettings, limits: Limits, drain_s: float) -> None:
        self.engine = FakeEngine()
        self.pages = FakePages()
        self.crashes: list[tuple[str, Exception]] = []
        self.app = App(
            self.engine,
            self.pages,
            settings,
            DIALECTS,
            lambda request_id, error: self.crashes.append((request_id, error)),
        )
        self.listener = Listener(self.app, limits=limits, drain_s=drain_s)
        self.callers: list[Caller] = []
        self.port = 0

    async def connect(self, *, read_limit: int = 2**16) -> Caller:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port, limit=read_limit)
        caller = Caller(reader, writer)
        self.callers.append(caller)
        return caller

    async def ask(self, data: bytes) -> Answer:
        caller = await self.connect()
        caller.send(data)
        return await caller.answer()

    async def serve(self, scenario: Callable[["Rig"], Awaitable[None]]) -> None:
        bound = asyncio.Event()

        def on_bound(port: int) -> None:
            self.port = port
            bound.set()

        async with asyncio.timeout(SCENARIO_S), asyncio.TaskGroup() as group:
            group.create_task(self.listener.serve(on_bound))
            await bound.wait()
            try:
                await scenario(self)
            finally:
                for caller in self.callers:
                    caller.leave()
                self.listener.stop()


@pytest.fixture
def serve():
    """serve(scenario, limits=..., ...): run `await scenario(rig)` against a live listener."""

    def run(
        scenario,
        *,
        limits=USUAL,
        settings=OPEN,
        drain_s=0.3,
        loop="uvloop",
    ) -> Rig:
        factory = uvloop.new_event_loop if loop == "uvloop" else asyncio.new_event_loop
        with asyncio.Runner(loop_factory=factory) as runner:

            async def main() -> Rig:
                rig = Rig(settings, limits, drain_s)
                await rig.serve(scenario)
                return rig

            return runner.run(main())

    return run


@pytest.fixture
def fast_limits() -> Limits:
    """Times divided by 30 and more."""
    return FAST


@pytest.fixture
def post():
    """post(body, *extra field lines): the bytes of one call."""

    def build(body: bytes = b"{}", *fields: str, path: str = "/v1/chat/completions") -> bytes:
        lines = [f"POST {path} HTTP/1.1", "Host: x", f"Content-Length: {len(body)}", *fields]
        return "\r\n".join(lines).encode() + b"\r\n\r\n" + body

    return build


@pytest.fixture
def get():
    """get(path, *extra field lines): the bytes of one GET."""

    def build(path: str, *fields: str, method: str = "GET") -> bytes:
        return "\r\n".join([f"{method} {path} HTTP/1.1", "Host: x", *fields, "", ""]).encode()

    return build

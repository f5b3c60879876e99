"""The application on an ASGI server that knows nothing of our link."""

import asyncio
import json
from types import SimpleNamespace
from typing import Any

import pytest

from outlast.errors import GatewayError
from outlast.server.app import App
from outlast.server.routes import ServerSettings


class Server:
    """An ASGI server of one request: `parts` of a body, then a disconnect when told."""

    def __init__(self, *parts: bytes, headers=()) -> None:
        self.parts = list(parts)
        self.sent: list[dict[str, Any]] = []
        self.left = asyncio.Event()
        self.scope: dict[str, Any] = {
            "type": "http",
            "method": "POST",
            "path": "/v1/chat/completions",
            "headers": list(headers),
        }

    async def receive(self):
        if self.parts:
            part = self.parts.pop(0)
            return {"type": "http.request", "body": part, "more_body": bool(self.parts)}
        await self.left.wait()
        return {"type": "http.disconnect"}

    async def send(self, message) -> None:
        self.sent.append(message)

    @property
    def status(self):
        return self.sent[0]["status"]

    @property
    def headers(self) -> dict[bytes, bytes]:
        return dict(self.sent[0]["headers"])


def run(server: Server, behaviour=None, *, bytes_max=100, crashes=None) -> None:
    async def echo(call, responder):
        await responder.whole(200, [], call.body)

    async def answer(call, responder):
        await (behaviour or echo)(call, responder)

    def error_body(error, request_id, routing):
        return json.dumps({"code": error.gateway_code, "id": request_id}).encode()

    dialects: Any = {"openai": SimpleNamespace(error_body=error_body)}
    app = App(
        SimpleNamespace(answer=answer, models=list),
        SimpleNamespace(ready=lambda: None, stats=bytes, metrics=bytes),
        ServerSettings(request_body_max_bytes=bytes_max),
        dialects,
        lambda request_id, error: (crashes if crashes is not None else []).append(error),
    )

    async def main():
        async with asyncio.timeout(5):
            await app(server.scope, server.receive, server.send)

    asyncio.run(main())


def test_a_body_in_parts_is_joined():
    server = Server(b"ab", b"", b"c")
    run(server)
    assert server.status == 200
    assert server.sent[1]["body"] == b"abc"
    assert server.headers[b"content-length"] == b"3"


def test_the_watcher_tells_the_engine_that_the_caller_left():
    server = Server(b"{}")
    heard = []

    async def wait(call, responder):
        gone = asyncio.Event()
        responder.on_gone(gone.set)
        server.left.set()
        await gone.wait()
        heard.append(responder.gone)
        await responder.whole(200, [], b"dropped")
        await responder.start(200, [])
        await responder.write(b"dropped")
        await responder.end()

    run(server, wait)
    assert heard == [True]
    assert server.sent == []


def test_a_callback_for_a_caller_that_is_gone_comes_at_the_next_turn():
    server = Server(b"{}")
    order = []

    async def wait(call, responder):
        gone, again = asyncio.Event(), asyncio.Event()
        responder.on_gone(gone.set)
        server.left.set()
        await gone.wait()

        def called():
            order.append("called")
            again.set()

        responder.on_gone(called)
        order.append("registered")
        await again.wait()

    run(server, wait)
    assert order == ["registered", "called"]


def test_a_caller_that_leaves_while_sending_gets_no_answer():
    server = Server()
    server.left.set()
    run(server)
    assert server.sent == []


@pytest.mark.parametrize("headers", [[(b"content-length", b"101")], []])
def test_a_body_above_the_limit_is_413_and_closes(headers):
    server = Server(b"x" * 60, b"x" * 41, b"x", headers=headers)
    run(server)
    assert server.status == 413
    assert server.headers[b"connection"] == b"close"
    assert json.loads(server.sent[1]["body"])["code"] == "request_too_large"


def test_a_body_at_the_limit_is_read():
    server = Server(b"x" * 60, b"x" * 40, headers=[(b"content-length", b"100")])
    run(server)
    assert server.status == 200


def test_an_abort_leaves_the_body_without_its_end():
    async def cut(call, responder):
        await responder.start(200, [])
        await responder.write(b"half")
        responder.abort()

    server = Server(b"{}")
    crashes: list[Exception] = []
    run(server, cut, crashes=crashes)
    assert server.sent[-1]["more_body"] is True
    assert crashes == []


def test_an_error_after_the_head_is_a_defect_and_no_second_head():
    async def late(call, responder):
        await responder.start(200, [])
        raise GatewayError(502, "all_routes_failed", "m", error_type="provider_unavailable")

    server = Server(b"{}")
    crashes: list[Exception] = []
    run(server, late, crashes=crashes)
    assert [m["type"] for m in server.sent] == ["http.response.start"]
    assert len(crashes) == 1


def test_a_request_id_of_the_engine_is_not_doubled():
    async def answer(call, responder):
        await responder.whole(200, [(b"x-request-id", call.request_id.encode())], b"")

    server = Server(b"{}", headers=[(b"x-request-id", b"r1")])
    run(server, answer)
    assert [h for h in server.sent[0]["headers"] if h[0] == b"x-request-id"] == [
        (b"x-request-id", b"r1")
    ]


def test_other_kinds_of_scope_are_refused():
    server = Server()
    server.scope = {"type": "lifespan"}
    with pytest.raises(RuntimeError, match="HTTP, not lifespan"):
        run(server)


def test_settings_do_not_show_the_token():
    assert "s3cret" not in repr(ServerSettings(metrics_token="s3cret"))

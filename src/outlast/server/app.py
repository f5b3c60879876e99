"""The ASGI application of the data plane: one request in, one answer out.

Owns the way of a request from its head to the engine and of every error back to the caller. It
decides nothing about providers. Surprising cases:

- An error raised before the body was read closes the connection (`AsgiResponder.refuse`).
- A body above its limit gets 413 at its head if that tells the length, else at the limit.
- Nothing escapes: an engine's defect is the caller's 500 and one call of `on_crash`.
"""

import asyncio
import re
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from outlast.engine.call import Call
from outlast.errors import GatewayError
from outlast.model.ids import RequestId
from outlast.ports import Headers, Responder
from outlast.protocols.dialect import Dialect
from outlast.server import routes
from outlast.server.body import read_body, refuse_unread
from outlast.server.errors import draining, internal_error, render, unknown_path, wrong_method
from outlast.server.link import EXTENSION
from outlast.server.refusal import new_request_id
from outlast.server.responder import AsgiResponder, Receive, Send
from outlast.server.routes import Page, Pages, ServerSettings

Scope = Mapping[str, Any]
Fields = Mapping[bytes, bytes]

_REQUEST_ID = re.compile(rb"[A-Za-z0-9._-]{1,128}")
_CLOSE = (b"connection", b"close")


class Engine(Protocol):
    """What answers calls."""

    async def answer(self, call: Call, responder: Responder) -> None:
        """Answer one call.

        Raises:
            GatewayError: a final error, only before anything was written.
        """
        ...

    def models(self) -> list[str]: ...


class UnansweredError(RuntimeError):
    """The engine returned without an answer, or without the end of one."""


class App:
    """`on_crash(request_id, exception)` hears of defects; it must not raise.

    `dialects` is `protocols.table.DIALECTS`; routes without a dialect of their own speak `openai`.
    """

    def __init__(
        self,
        engine: Engine,
        pages: Pages,
        settings: ServerSettings,
        dialects: Mapping[str, Dialect],
        on_crash: Callable[[str, Exception], None],
    ) -> None:
        self._engine = engine
        self._pages = pages
        self._settings = settings
        self._dialects = dialects
        self._on_crash = on_crash

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one ASGI `http` scope.

        Raises:
            RuntimeError: another kind of scope (ASGI's way to say: not supported).
        """
        if scope["type"] != "http":
            raise RuntimeError(f"this application serves HTTP, not {scope['type']}")
        headers: Headers = scope["headers"]
        fields = dict(headers)  # of a repeated field the last; one pass at the speed of C
        request_id = _request_id(fields)
        link = scope.get("extensions", {}).get(EXTENSION)
        responder = AsgiResponder(send, link, request_id)
        found = routes.find_route(scope["path"])
        if found is None:
            await self._fail(responder, unknown_path(), request_id)
            return
        route, name = found
        if scope["method"] not in route.methods:
            allow = (b"allow", route.allow)
            await self._fail(responder, wrong_method(route.allow), request_id, (allow,))
        elif route.page is Page.CHAT:
            await self._chat(headers, fields, receive, responder, request_id)
        else:
            await self._show(route.page, name, fields, responder, request_id)

    async def _chat(
        self,
        headers: Headers,
        fields: Fields,
        receive: Receive,
        responder: AsgiResponder,
        request_id: str,
    ) -> None:
        bytes_max = self._settings.request_body_max_bytes
        body: bytes | GatewayError | None
        try:
            if self._pages.ready() == routes.DRAINING:
                raise draining()
            refuse_unread(fields.get(b"content-length"), fields.get(b"content-encoding"), bytes_max)
            body = await read_body(receive, bytes_max)
        except GatewayError as error:
            body = error
        if body is None:
            return  # the caller left while it was still sending
        if isinstance(body, GatewayError):
            await self._fail(responder, body, request_id, (_CLOSE,))
            return
        call = Call(RequestId(request_id), "openai", body, headers)
        if responder.linked:
            await self._answer(call, responder)
            return
        async with asyncio.TaskGroup() as group:
            watcher = group.create_task(responder.watch(receive))
            await self._answer(call, responder)
            watcher.cancel()

    async def _answer(self, call: Call, responder: AsgiResponder) -> None:
        try:
            await self._answer_or_refuse(call, responder)
        except asyncio.CancelledError:
            # The drain is over. The task ends here, and uvicorn would log a traceback if it saw it.
            responder.abort()
        except Exception as error:  # noqa: BLE001 - the top-level loop: a defect costs one request
            await self._crash(call.request_id, error, responder)
        else:
            if not (responder.ended or responder.gone or responder.aborted):
                await self._crash(call.request_id, UnansweredError(), responder)

    async def _answer_or_refuse(self, call: Call, responder: AsgiResponder) -> None:
        """The engine's answer, or its error in the caller's dialect. Raises what is a defect."""
        try:
            await self._engine.answer(call, responder)
        except GatewayError as error:
            if responder.started:
                raise
            await self._fail(responder, error, call.request_id, dialect=call.dialect)

    async def _crash(self, request_id: str, error: Exception, responder: AsgiResponder) -> None:
        self._on_crash(request_id, error)
        if responder.started:
            responder.abort()
        else:
            await self._fail(responder, internal_error(), request_id)

    async def _fail(
        self,
        responder: AsgiResponder,
        error: GatewayError,
        request_id: str,
        more: tuple[tuple[bytes, bytes], ...] = (),
        dialect: str = "openai",
    ) -> None:
        status, headers, body = render(error, request_id, dialect, self._dialects)
        if _CLOSE in more and responder.refuse(status, headers, body):
            return
        headers.extend(more)
        await responder.whole(status, headers, body)

    async def _show(
        self, page: Page, name: str, fields: Fields, responder: AsgiResponder, request_id: str
    ) -> None:
        """Answer everything that is not a call to a model."""
        try:
            status, head, body = self._page(page, name, fields)
        except GatewayError as error:
            challenge = ((b"www-authenticate", b"Bearer"),) if error.status == 401 else ()
            await self._fail(responder, error, request_id, challenge)
        except Exception as error:  # noqa: BLE001 - likewise: a defect of a page costs that page
            await self._crash(request_id, error, responder)
        else:
            await responder.whole(status, head, body)

    def _page(self, page: Page, name: str, fields: Fields) -> tuple[int, Headers, bytes]:
        match page:
            case Page.ROOT:
                return 200, routes.TEXT, routes.ROOT_TEXT
            case Page.LIVE:
                return 200, routes.JSON, b'{"status":"ok"}'
            case Page.READY:
                status, body = routes.ready_answer(self._pages.ready())
                return status, routes.JSON, body
            case Page.MODELS | Page.CHAT:
                return 200, routes.JSON, routes.models_body(self._engine.models())
            case Page.MODEL:
                return 200, routes.JSON, routes.model_body(name, self._engine.models())
            case Page.STATS | Page.METRICS:
                refusal = routes.check_operator(self._settings, fields.get(b"authorization"))
                if refusal is not None:
                    raise refusal
                if page is Page.STATS:
                    return 200, routes.JSON, self._pages.stats()
                return 200, routes.PROMETHEUS, self._pages.metrics()


def _request_id(fields: Fields) -> str:
    """The caller's id where it is harmless to log and echo, else a new one."""
    given = fields.get(b"x-request-id")
    if given is not None and _REQUEST_ID.fullmatch(given):
        return given.decode("ascii")
    return new_request_id()

"""uvicorn's HTTP/1.1 protocol with the limits it lacks, and a cheap word when the caller leaves.

Parsing, the ASGI cycle and the writing of answers stay uvicorn's; this class owns when a
connection is refused, cut or closed. Surprising cases:

- A body above 64 KiB leaves uvicorn's socket paused after its last byte, and a paused socket never
  tells that its peer is gone. Reading is resumed as soon as the body is complete.
- uvicorn marks only the newest request of a connection as disconnected; with pipelining that is
  not the running one. `_running` is.
- While pipelined requests wait, the socket stays paused: their caller's leaving is noticed when
  the running answer ends or a write fails.
- Trailer fields arrive through the same callback as header fields; they are dropped.
- The parser has no callback for chunk extensions. Framing is what remains of the bytes of a body
  after its data, less a size line per chunk; extensions of all chunks count together. Bytes that
  share a slice with the end of the head are not counted.
"""

import asyncio
from enum import Enum
from typing import Any

import httptools
from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import ServerState

from outlast.server.link import EXTENSION, CallerLink, Headers
from outlast.server.refusal import (
    BAD_HOST,
    BAD_REQUEST,
    BAD_VERSION,
    BODY_TOO_SLOW,
    FRAMING_TOO_LARGE,
    HEAD_TOO_LARGE,
    HEAD_TOO_SLOW,
    TARGET_TOO_LONG,
    TOO_MANY_CONNECTIONS,
    TOO_MANY_FIELDS,
    Refusal,
    answer_head,
    refusal_bytes,
    response_bytes,
)
from outlast.server.sweeper import DataPlaneState

SLICE_BYTES = 8 * 1024
"""Heads and chunked bodies are parsed in slices: what is uncounted is at most one of them."""

SIZE_LINE_BYTES = 20
"""A chunk's own framing: 16 hex digits and two line ends."""


class Phase(Enum):
    """What is awaited from the caller."""

    IDLE = 1  # the first byte of a request
    HEAD = 2
    BODY = 3
    LINGER = 4  # nothing: bytes are dropped until the caller closes


class _Refused(Exception):  # noqa: N818 - leaves the parser, is no error
    """Carries a refusal out of a parser callback."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal.gateway_code)
        self.refusal = refusal


class DataPlaneProtocol(HttpToolsProtocol):
    """One connection of a caller."""

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        assert isinstance(server_state, DataPlaneState)
        self._shared = server_state
        self._limits = server_state.limits
        self._phase = Phase.IDLE
        self._since = 0.0  # when the phase's time limit began to run
        self._deaf = False  # bytes are dropped unread
        self._served = False
        self._running: RequestResponseCycle | None = None
        self._link: CallerLink | None = None
        self._head_bytes = 0  # received, whether parsed or not
        self._parsed_bytes = 0  # of the head, as far as fields are complete
        self._hosts = 0
        self._chunked = False
        self._chunks = 0
        self._framing_bytes = 0
        self._part_bytes = 0  # of the slice that is being parsed
        self._part_body_bytes = 0
        self._discarded_bytes = 0
        self._unsent_bytes = 0
        self._unsent_since = 0.0

    # -- life cycle --

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._since = self.loop.time()
        self._shared.enter(self, self.loop)
        if self._shared.served >= self._limits.connections_max:
            self._refuse(TOO_MANY_CONNECTIONS)
            return
        self._served = True
        self._shared.served += 1

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._deaf = True
        if self._served:
            self._served = False
            self._shared.served -= 1
        self._lose_caller()
        self._shared.leave(self)

    def shutdown(self) -> None:
        """Close once the running answer is out; at once if there is none."""
        if self._phase is Phase.LINGER:
            self.transport.abort()
        elif self._running is None:
            self.transport.close()
        else:
            self._running.keep_alive = False

    def cut(self) -> None:
        """Reset the connection."""
        self.transport.abort()

    def answer(self, status: int, headers: Headers, body: bytes) -> bool:
        """Write a whole answer in one go: uvicorn's `send` writes its head and its body apart.

        False: nothing was written, because `send` knows better (HEAD, a closing connection, a
        caller that does not read, a field that is none).
        """
        cycle = self._running
        if cycle is None or cycle.response_started or cycle.disconnected or not cycle.keep_alive:
            return False
        if cycle.scope["method"] == "HEAD" or self.flow.write_paused:
            return False
        head = answer_head(status, cycle.default_headers + headers)
        if head is None:
            return False
        cycle.response_started = cycle.response_complete = True
        cycle.waiting_for_100_continue = False
        self.transport.writelines((head, body))
        cycle.message_event.set()
        cycle.on_response()
        return True

    def close_with(self, status: int, headers: Headers, body: bytes) -> None:
        """Answer the running request beside its cycle, then linger and close."""
        running = self._running
        if running is None or running.response_started or self.transport.is_closing():
            return
        self._lose_caller()
        self.transport.write(response_bytes(status, headers, body))
        self._linger()

    # -- bytes --

    def data_received(self, data: bytes) -> None:
        if self._deaf:
            return
        if self._phase is Phase.IDLE:
            self._phase = Phase.HEAD
            self._since = self.loop.time()
            self._head_bytes = 0
        elif self._phase is Phase.BODY:
            self._since = self.loop.time()
        if len(data) <= SLICE_BYTES:
            self._parse(data)
            return
        view = memoryview(data)
        while view and not self._deaf:
            whole = self._phase is Phase.BODY and not self._chunked
            size = len(view) if whole else SLICE_BYTES
            self._parse(bytes(view[:size]))
            view = view[size:]

    def _parse(self, part: bytes) -> None:
        was = self._phase
        self._part_bytes = len(part)
        self._part_body_bytes = 0
        try:
            self.parser.feed_data(part)
        except httptools.HttpParserUpgrade:
            # RFC 9110 section 7.8 lets a server ignore an upgrade. What follows is in doubt.
            self._deaf = True
            self.cycle.keep_alive = False
            return
        except httptools.HttpParserError as error:
            cause = error.__context__
            self._refuse(cause.refusal if isinstance(cause, _Refused) else BAD_REQUEST)
            return
        if self._phase is Phase.HEAD:
            self._head_bytes += len(part)
            if self._head_bytes > self._limits.head_bytes_max:
                self._refuse(HEAD_TOO_LARGE)
        elif self._chunked and was is Phase.BODY:
            self._framing_bytes += len(part) - self._part_body_bytes
            allowed = self._limits.chunk_framing_bytes_max + SIZE_LINE_BYTES * (self._chunks + 1)
            if self._framing_bytes > allowed:
                self._refuse(FRAMING_TOO_LARGE)

    # -- parser callbacks --

    def on_message_begin(self) -> None:
        super().on_message_begin()
        if self._phase is Phase.IDLE:  # pipelined: its bytes began inside the slice
            self._phase = Phase.HEAD
            self._since = self.loop.time()
            self._head_bytes = -self._part_bytes
        self._parsed_bytes = self._hosts = self._chunks = self._framing_bytes = 0
        self._discarded_bytes = 0
        self._chunked = False
        self.scope["extensions"] = {EXTENSION: CallerLink(self)}  # type: ignore[dict-item]

    def on_url(self, url: bytes) -> None:
        super().on_url(url)
        if len(self.url) > self._limits.target_bytes_max:
            raise _Refused(TARGET_TOO_LONG)
        self._parsed_bytes += len(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._phase is Phase.BODY:
            return  # a trailer
        self._parsed_bytes += len(name) + len(value) + 4
        if self._parsed_bytes > self._limits.head_bytes_max:
            raise _Refused(HEAD_TOO_LARGE)
        if len(self.headers) >= self._limits.fields_max:
            raise _Refused(TOO_MANY_FIELDS)
        super().on_header(name, value)
        lowered = self.headers[-1][0]
        if lowered == b"host":
            self._hosts += 1
        elif lowered == b"transfer-encoding":
            self._chunked = True

    def on_headers_complete(self) -> None:
        version = self.parser.get_http_version()
        if version not in {"1.1", "1.0"}:
            raise _Refused(BAD_VERSION)
        if self._hosts > 1 or (self._hosts == 0 and version == "1.1"):
            raise _Refused(BAD_HOST)
        if self._deaf:
            raise _Refused(BAD_REQUEST)  # pipelined behind a body that was too large to drop
        super().on_headers_complete()
        self._phase = Phase.BODY
        self._since = self.loop.time()

    def on_chunk_header(self) -> None:
        """A chunk's size line was read."""
        self._chunks += 1

    def on_body(self, body: bytes) -> None:
        self._part_body_bytes += len(body)
        if self.cycle.response_complete:
            self._discarded_bytes += len(body)
            if self._discarded_bytes > self._limits.discard_bytes_max:
                self._linger()
            return
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._phase = Phase.LINGER if self._deaf else Phase.IDLE
        self._since = self.loop.time()
        super().on_message_complete()
        if not self.pipeline:
            self.flow.resume_reading()

    # -- one answer after the other --

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        self._running = cycle
        self._link = cycle.scope["extensions"][EXTENSION]  # type: ignore[assignment]
        super()._start_asgi_task(cycle, app)

    def on_response_complete(self) -> None:
        """As uvicorn's, but the sweeper keeps the keep-alive time."""
        self._shared.total_requests += 1
        self._running = None
        if self._link is not None:
            self._link.release()
            self._link = None
        if self.transport.is_closing():
            return
        self.flow.resume_reading()
        if self.pipeline:
            cycle, app = self.pipeline.pop()
            self._start_asgi_task(cycle, app)
        elif self._phase is Phase.IDLE:
            self._since = self.loop.time()

    # -- refusing, cutting, closing --

    def sweep(self, now: float) -> None:
        """Look whether a time limit has passed (four times a second)."""
        self._sweep_writes(now)
        if self.transport.is_closing():
            return
        if self.flow.read_paused:
            self._since = now  # we are the slow side
            return
        spent_s = now - self._since
        match self._phase:
            case Phase.IDLE:
                fresh = self.cycle is None
                limit_s = self._limits.head_s if fresh else self._limits.keep_alive_s
                if self._running is None and spent_s > limit_s:
                    self.transport.close()
            case Phase.HEAD:
                if spent_s > self._limits.head_s:
                    self._refuse(HEAD_TOO_SLOW)
            case Phase.BODY:
                if spent_s > self._limits.body_progress_s:
                    self._refuse(BODY_TOO_SLOW)
            case Phase.LINGER:
                if spent_s > self._limits.linger_s:
                    self.transport.abort()

    def _sweep_writes(self, now: float) -> None:
        """Abort when bytes wait and none was taken for `write_stall_s`, also after a close."""
        unsent = self.transport.get_write_buffer_size()
        if unsent == 0 or self._unsent_bytes == 0 or unsent < self._unsent_bytes:
            self._unsent_since = now
        elif now - self._unsent_since > self._limits.write_stall_s:
            self.transport.abort()
        self._unsent_bytes = unsent

    def _refuse(self, refusal: Refusal) -> None:
        """Answer what is no request and close; a running answer to an earlier one ends first."""
        self._deaf = True
        if self.transport.is_closing() or self._phase is Phase.LINGER:
            return
        running, in_body = self._running, self._phase is Phase.BODY
        if running is not None and not (in_body and running is self.cycle):
            running.keep_alive = False
            return
        if running is None and in_body:
            self.transport.close()  # answered while its body was on its way: nothing more to say
            return
        if running is not None:
            self._lose_caller()
            if running.response_started:
                self.transport.abort()
                return
        self.transport.write(refusal_bytes(refusal))
        self._linger()

    def _lose_caller(self) -> None:
        """Tell the running request, once, that nobody listens any more."""
        running, link = self._running, self._link
        self._running = self._link = None
        if running is not None:
            running.disconnected = True
            running.message_event.set()
        if link is not None:
            link.lose()

    def _linger(self) -> None:
        self._deaf = True
        self._phase = Phase.LINGER
        self._since = self.loop.time()
        self.pipeline.clear()
        if self.transport.is_closing():
            return
        self.flow.resume_reading()
        if self.transport.can_write_eof():
            self.transport.write_eof()
        else:
            self.transport.close()

"""One attempt: a dispatched call whose bytes are read as its dialect until it has an outcome.

An attempt is no task. It is the sink of one exchange: transport callbacks read the bytes, hold
what may not be released yet, and put a word in the request's mailbox when something happened.
What it means is decided elsewhere (`resilience.failover`).

Before commit every failure is reported as what it is; after commit any failure is a broken
stream. After its outcome the attempt is deaf: late bytes and callbacks do nothing.
"""

from collections.abc import Callable

from outlast.engine.health import Hold
from outlast.engine.mailbox import Item, Mailbox, Word
from outlast.engine.snapshot import Route
from outlast.model.clock import Instant
from outlast.model.fault import Break, Fault, FaultKind, Timer, TransportFailure
from outlast.model.plan import Candidate
from outlast.ports import Clock, Exchange, Handle, Headers
from outlast.protocols.dialect import StreamReader, WholeAnswer
from outlast.resilience.release import IdleClock

PREAMBLE_BYTES_MAX = 256 * 1024
"""What may be held back before the first semantic event (a role chunk is 200 bytes)."""

BUFFER_BYTES_MAX = 256 * 1024
"""Released bytes that wait for a slow caller; then the upstream is paused."""

ERROR_BODY_BYTES_MAX = 1024 * 1024
"""What is read of an error body; a longer one is cut there and not relayed."""

TAIL_S = 1.0
"""How long a finished stream's connection may take to end its body, to be used again."""


class Attempt:
    """The sink of one exchange."""

    __slots__ = (
        "_answer_bytes_max",
        "_clock",
        "_data",
        "_first_event_commits",
        "_held",
        "_held_bytes",
        "_mailbox",
        "_notify_head",
        "_parts",
        "_posted",
        "_size",
        "_stream_asked",
        "_tail",
        "answer",
        "body",
        "candidate",
        "committed",
        "ended",
        "exchange",
        "first_token_at",
        "headers",
        "hold",
        "idle",
        "number",
        "overlong",
        "reader",
        "route",
        "started",
        "status",
    )

    def __init__(
        self,
        number: int,
        candidate: Candidate,
        route: Route,
        hold: Hold,
        reader: StreamReader | None,
        mailbox: Mailbox,
        clock: Clock,
        *,
        answer_bytes_max: int,
    ) -> None:
        timeouts = candidate.policy.timeouts
        self.number = number
        self.candidate = candidate
        self.route = route
        self.hold = hold
        self.reader = reader  # None: a whole answer is expected
        self.started: Instant = clock.now()
        self.first_token_at: Instant | None = None
        self.exchange: Exchange | None = None
        self.status: int | None = None
        self.headers: Headers = []
        self.body = b""
        self.answer: WholeAnswer | None = None
        self.overlong = False
        self.committed = False
        self.ended = False  # the outcome is known (or nobody asks any more)
        self.idle: IdleClock | None = None
        self._mailbox = mailbox
        self._clock = clock
        self._notify_head = timeouts.response_headers_s is not None
        self._first_event_commits = timeouts.first_token_s is None
        self._answer_bytes_max = answer_bytes_max
        self._parts: list[bytes] = []  # of a whole answer or an error body
        self._size = 0
        self._held: list[bytes] = []  # frames that the caller may see
        self._held_bytes = 0
        self._tail: Handle | None = None
        self._stream_asked = reader is not None
        self._data = Item(Word.DATA, number)
        self._posted = False  # that word is in the mailbox

    def on_head(self, status: int, headers: Headers) -> None:
        if self.ended:
            return
        self.status = status
        self.headers = headers
        if self._notify_head:
            self._mailbox.put(Item(Word.HEAD, self.number))
        if self.reader is not None and status == 200 and _content_type(headers).endswith(b"json"):
            self.reader = None  # no stream, though one was asked for: an error object, or nonsense

    def on_data(self, data: bytes) -> None:
        reader = self.reader
        if self.ended:
            return
        if reader is None or self.status != 200:
            self._collect(data)
            return
        if not self.committed:
            self._hold(reader, data)
            return
        # After commit: the one path that every event of every stream takes.
        seen = reader.progressed
        frames = reader.feed(data)
        idle = self.idle
        assert idle is not None
        if reader.progressed != seen:
            idle.data(self._clock.now())
        else:
            idle.comment(self._clock.now())
        if frames:
            self._held.append(frames)
            self._held_bytes += len(frames)
            if not self._posted:
                self._posted = True
                self._mailbox.put(self._data)
            if self._held_bytes > BUFFER_BYTES_MAX and self.exchange is not None:
                self.exchange.pause()
        if reader.fault is not None:
            self.fail(_broken("the provider sent an error after its answer had begun"))
        elif reader.done:
            self._finish()

    def on_end(self) -> None:
        if self._tail is not None:
            self._tail.cancel()
        if self.ended:
            return
        if self.status != 200:
            self._end(self._end_error)
        elif self.reader is None:
            self._end(self._end_whole)
        else:
            self._end(self._end_stream)

    def on_failure(self, failure: TransportFailure) -> None:
        if self._tail is not None:
            self._tail.cancel()
        if self.ended:
            return
        if self.status is not None and self.status != 200:
            # The status is known: that says more than how the body was cut.
            self._end(self._end_error)
        elif self.committed and self.reader is not None and self.reader.finished:
            self._end(self._end_stream)  # all that counts came before the cut
        else:
            fault = _transport_fault(failure)
            self.fail(_broken(fault.detail) if self.committed else fault)

    def take(self) -> bytes:
        """The frames that the caller may see now; empties the buffer."""
        self._posted = False
        held = self._held
        if not held:
            return b""
        data = held[0] if len(held) == 1 else b"".join(held)
        held.clear()
        if self._held_bytes > BUFFER_BYTES_MAX and self.exchange is not None:
            self.exchange.resume()
        self._held_bytes = 0
        return data

    def fail(self, fault: Fault) -> None:
        """The attempt failed on its own side; its connection is closed."""
        self.ended = True
        self.close()
        self._mailbox.put(Item(Word.FAILED, self.number, fault))

    def close(self) -> None:
        """Close the connection and hear nothing more."""
        self.ended = True
        if self.exchange is not None:
            self.exchange.cancel()

    def _collect(self, data: bytes) -> None:
        self._size += len(data)
        if self.status == 200 and self._size > self._answer_bytes_max:
            self.fail(Fault(FaultKind.OUTPUT_TOO_LARGE, status=self.status))
            return
        self._parts.append(data)
        if self.status != 200 and self._size > ERROR_BODY_BYTES_MAX:
            self.overlong = True
            self._end_error()

    def _commit(self) -> None:
        self.committed = True
        now = self._clock.now()
        self.first_token_at = now
        self.idle = IdleClock(self.candidate.policy.timeouts.idle_stream_s, now)
        self._mailbox.put(Item(Word.COMMITTED, self.number))
        if self.reader is not None and self.reader.done:
            self._finish()

    def _end(self, read: Callable[[], None]) -> None:
        """Read what came to its outcome. A reader's defect is one too: nobody may wait for it.

        The connection is done by now, so no loss of it would tell. The defect itself goes on, to
        whoever called.
        """
        try:
            read()
        finally:
            if not self.ended:
                detail = "what it answered could not be read"
                self.fail(_broken(detail) if self.committed else _malformed(detail))

    def _hold(self, reader: StreamReader, data: bytes) -> None:
        """Bytes came before commit: they wait for the event that commits."""
        frames = reader.feed(data)
        if frames:
            self._held.append(frames)
            self._held_bytes += len(frames)
        if reader.fault is not None:
            self.fail(reader.fault)
        elif reader.committed or (self._first_event_commits and reader.data_seen):
            self._commit()
        elif self._held_bytes > PREAMBLE_BYTES_MAX:
            self.fail(_malformed("nothing semantic in the first 256 KiB of the stream"))

    def _finish(self) -> None:
        """The terminal event came: the answer is whole, whatever the connection does next."""
        self.ended = True
        self._mailbox.put(Item(Word.ENDED, self.number))
        self._let_body_end()

    def _let_body_end(self) -> None:
        exchange = self.exchange
        if exchange is not None:
            exchange.resume()
            self._tail = self._clock.call_at(self._clock.now() + TAIL_S, exchange.cancel)

    def _end_stream(self) -> None:
        reader = self.reader
        assert reader is not None
        added = reader.close()
        if reader.fault is not None:
            if self.committed:
                self.fail(_broken("the stream ended without its terminal event"))
            else:
                self.fail(reader.fault)
            return
        if added:
            self._held.append(added)
        if not self.committed:
            # A stream whose last frame lacked its blank line: the close itself completed it.
            self._commit()
        if not self.ended:
            self.ended = True
            self._mailbox.put(Item(Word.ENDED, self.number))

    def _end_whole(self) -> None:
        body = b"".join(self._parts)
        found = self.route.dialect.read_whole(self.headers, body)
        if isinstance(found, Fault):
            self.body = body
            self.fail(found)
            return
        if self._stream_asked:
            self.fail(_malformed("a whole answer came where a stream was asked for"))
            return
        self.ended = True
        self.committed = True
        self.first_token_at = self._clock.now()
        self.answer = found
        self._mailbox.put(Item(Word.COMMITTED, self.number))

    def _end_error(self) -> None:
        assert self.status is not None
        self.body = b"".join(self._parts)
        read_error = self.route.dialect.read_error
        self.fail(read_error(self.status, self.headers, self.body, self._clock.wall()))


def _content_type(headers: Headers) -> bytes:
    for name, value in headers:
        if name == b"content-type":
            return value.partition(b";")[0].strip().lower()
    return b""


def _malformed(detail: str) -> Fault:
    return Fault(FaultKind.MALFORMED_RESPONSE, status=200, detail=detail)


def _broken(detail: str) -> Fault:
    return Fault(FaultKind.STREAM_BROKEN, status=200, detail=detail)


def _transport_fault(failure: TransportFailure) -> Fault:
    """Rows 1, 2 and 30 of the decision table; garbage is row 24, our own limits row 36."""
    detail = f"{failure.how.value} ({failure.phase.value})"
    if failure.detail:
        detail = f"{detail}: {failure.detail}"
    match failure.how:
        case Break.EXHAUSTED:
            return Fault(FaultKind.GATEWAY_FAULT, detail=detail)
        case Break.GARBAGE | Break.TOO_LARGE:
            return Fault(FaultKind.MALFORMED_RESPONSE, detail=detail, phase=failure.phase)
        case Break.REFUSED | Break.RESET | Break.EOF | Break.TIMEOUT:
            timer = Timer.CONNECT if failure.how is Break.TIMEOUT else None
            return Fault(
                FaultKind.CONNECTION_ERROR, detail=detail, phase=failure.phase, timer=timer
            )

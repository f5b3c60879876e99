"""Reads a stream of chat completion chunks: what the caller may see, and what it means.

Decides what commits, what is usage, what is an error and what is a legitimate end. Every event is
parsed, because parsing one costs less than the searches that would be needed to know that it can
be left alone; but a chunk of bytes that holds only complete, plainly spelled and uneventful frames
is returned as the object that came in.

Surprising cases: an event after commit is parsed only as deep as errors, usage and finish reasons
stand, so what a delta holds is not checked there; `"error"` inside text means nothing, whatever
it looks like; the chunk that only carries usage is withheld from a caller who did not ask for it,
because we did; frames after `[DONE]` are ignored.
"""

from typing import Any

import msgspec
from msgspec import Struct

from outlast.model.fault import Fault, FaultKind, Phase
from outlast.model.request import NeutralRequest
from outlast.model.usage import Usage
from outlast.protocols.framing import EVENT_BYTES_MAX, Frame, SseFramer
from outlast.protocols.openai.answer import Output, read_usage, splice_routing
from outlast.protocols.openai.faults import embedded_fault, fault_inside

DONE = b"data: [DONE]\n\n"
"""The terminal event of this dialect."""


class _Ending(Struct, frozen=True):
    finish_reason: Any = None


class _Glance(Struct, frozen=True):
    """An event as deep as one after commit needs it."""

    choices: list[_Ending] | None = None
    usage: Any = None
    error: Any = None


class _Choice(Struct, frozen=True):
    delta: Output | None = None
    finish_reason: Any = None


class _Chunk(Struct, frozen=True):
    """An event as deep as one before commit needs it."""

    choices: list[_Choice] | None = None
    usage: Any = None
    error: Any = None
    id: Any = None
    model: Any = None
    created: Any = None


_glance_decoder = msgspec.json.Decoder(_Glance)
_glance = _glance_decoder.decode
_glances = _glance_decoder.decode_lines
_chunk = msgspec.json.Decoder(_Chunk).decode
_object = msgspec.json.Decoder(dict[str, Any]).decode


class ChatStream:
    """One answer stream (see `dialect.StreamReader` for what the attributes mean).

    `answer_id`, `model`, `created`: the stream's own, from its first event that has them; an error
    after commit carries them on.
    """

    __slots__ = (
        "_framer",
        "_usage_asked",
        "answer_id",
        "committed",
        "created",
        "data_seen",
        "done",
        "fault",
        "finished",
        "malformed",
        "model",
        "progressed",
        "refused",
        "routing",
        "usage",
    )

    def __init__(self, request: NeutralRequest) -> None:
        self.committed = False
        self.data_seen = False
        self.finished = False
        self.done = False
        self.refused = False
        self.progressed = 0
        self.malformed = 0
        self.fault: Fault | None = None
        self.usage: Usage | None = None
        self.routing: bytes | None = None
        self.answer_id: str | None = None
        self.model: str | None = None
        self.created: int | None = None
        self._usage_asked = request.usage_asked
        self._framer = SseFramer()

    def feed(self, data: bytes) -> bytes:
        if self._over:
            return b""
        if not self.committed:
            return self._read(data)
        if self._framer.idle and (events := _uneventful(data)):
            self.progressed += events
            return data
        return self._in_parts(data)

    def close(self) -> bytes:
        added = b"" if self._over else self._sift(self._framer.close())
        if self.fault is None:
            self.fault = self._missing()
        return added if self._over else added + DONE

    @property
    def _over(self) -> bool:
        return self.done or self.fault is not None

    def _missing(self) -> Fault | None:
        """Say what a clean end of the bytes lacks to be the end of an answer."""
        if self.committed:
            if self.done or self.finished:
                return None
            return Fault(
                FaultKind.CONNECTION_ERROR,
                phase=Phase.BODY,
                detail="the stream ended without a finish reason",
            )
        if self.data_seen or self.done:
            return Fault(FaultKind.EMPTY_RESPONSE, status=200, detail="no output, no finish reason")
        return Fault(
            FaultKind.MALFORMED_RESPONSE, status=200, detail="nothing in the stream is an event"
        )

    def _in_parts(self, data: bytes) -> bytes:
        """Read the ends of a chunk that cut through frames; what is whole between may pass."""
        first = 0 if self._framer.idle else data.find(b"\n\n") + 2
        last = data.rfind(b"\n\n") + 2
        if last < 2 or last <= first:
            return self._read(data)
        head = self._read(data[:first])
        middle = data[first:last]
        if not self._over and (events := _uneventful(middle)):
            self.progressed += events
        else:
            middle = self._read(middle)
        return head + middle + self._read(data[last:])

    def _read(self, data: bytes) -> bytes:
        if self._over:
            return b""
        passed = self._sift(self._framer.feed(data))
        if self._framer.overflow and not self._over:
            self.fault = Fault(
                FaultKind.MALFORMED_RESPONSE, status=200, detail="an event is over 4 MiB"
            )
        return passed

    def _sift(self, frames: list[Frame]) -> bytes:
        """Look at each frame and spell those that the caller may see."""
        passed: list[bytes] = []
        for frame in frames:
            kept = frame if frame.data is None else self._look(frame, frame.data.strip())
            if kept is not None:
                passed.append(kept.wire())
            if self._over:
                break
        return b"".join(passed)

    def _look(self, frame: Frame, payload: bytes) -> Frame | None:
        """Take in one data event. Returns the frame to pass on, None: it is dropped."""
        if not payload or payload.startswith(b":"):
            return None  # a keep-alive that some proxies dress as data
        if payload == b"[DONE]":
            self.done = True
            self.progressed += 1
            return frame
        try:
            event = _glance(payload) if self.committed else _chunk(payload)
        except (msgspec.DecodeError, RecursionError):
            self._look_again(payload)
            return None
        if event.error:
            self.fault = fault_inside(payload, event.error)
            return None
        self.progressed += 1
        self.data_seen = True
        if isinstance(event, _Chunk):
            self._begin(event)
        self._finish(event.choices or [])
        if event.usage:
            self.usage = read_usage(event.usage) or self.usage
            if not event.choices:
                return self._usage_frame(frame, payload)
        return frame

    def _look_again(self, payload: bytes) -> None:
        """An event of no known shape: dropped and counted, unless it is an error."""
        try:
            event = _object(payload)
        except (msgspec.DecodeError, RecursionError):
            event = {}
        if event.get("error"):
            self.fault = embedded_fault(event)
        else:
            self.malformed += 1

    def _begin(self, chunk: _Chunk) -> None:
        if self.answer_id is None and isinstance(chunk.id, str):
            self.answer_id = chunk.id
        if self.model is None and isinstance(chunk.model, str):
            self.model = chunk.model
        if self.created is None and isinstance(chunk.created, int):
            self.created = chunk.created
        for choice in chunk.choices or ():
            if choice.finish_reason or (choice.delta is not None and choice.delta.spoken()):
                self.committed = True

    def _finish(self, choices: list[_Ending] | list[_Choice]) -> None:
        for choice in choices:
            if choice.finish_reason:
                self.finished = True
                self.refused = self.refused or choice.finish_reason == "content_filter"

    def _usage_frame(self, frame: Frame, payload: bytes) -> Frame | None:
        if not self._usage_asked:
            return None
        if self.routing is None:
            return frame
        return Frame(frame.head, splice_routing(payload, self.routing))


def _uneventful(data: bytes) -> int:
    """Count the events of a chunk that may pass as it is; 0: it must be looked into.

    Every LF must belong to a separator `LF LF "data: {"` or to the end, and every line must be an
    object: then the framing is exactly our own, and the frames are what `_look` would pass.
    """
    if not data.startswith(b"data: {") or not data.endswith(b"}\n\n"):
        return 0
    line_ends = data.count(b"\n")
    if b"\r" in data or len(data) > EVENT_BYTES_MAX:
        return 0
    try:
        if line_ends == 2:
            return 0 if _eventful(_glance(data[6:-2])) else 1
        events = _glances(data[6:-2].replace(b"\n\ndata: {", b"\n{"))
    except (msgspec.DecodeError, RecursionError):
        return 0
    count = len(events)
    if line_ends != 2 * count or data.count(b"\n\ndata: {") != count - 1:
        return 0
    return 0 if any(map(_eventful, events)) else count


def _eventful(event: _Glance) -> bool:
    if event.error or event.usage:
        return True
    for choice in event.choices or ():  # noqa: SIM110 - a generator takes a fifth of the whole
        if choice.finish_reason:
            return True
    return False

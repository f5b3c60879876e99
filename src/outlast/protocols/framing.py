"""Server-sent events on bytes: any chunking of the same bytes gives the same frames.

Owns where a line and a frame end (WHATWG HTML, 9.2.6 "Interpreting an event stream") and how a
frame is written again. It does not know what the data means.

Surprising cases: lines end at LF, CR or CRLF and at nothing else, so U+2028 inside JSON is plain
text; a CR ends its line at once, and the LF that may follow it, even in the next chunk, is part
of the same line end; `id:` and `retry:` lines are stripped, because they would promise a caller
that it may resume; a last frame without its blank line is accepted at the end of the stream,
because several servers forget it. A frame over `EVENT_BYTES_MAX` ends the reading for good.
"""

import re

from msgspec import Struct

EVENT_BYTES_MAX = 4 * 1024 * 1024
"""The largest frame that is held; a larger one is no answer but a way to fill memory."""

_BOM = b"\xef\xbb\xbf"
_LINE_END = re.compile(rb"[\r\n]")


class Frame(Struct, frozen=True):
    """One frame. `head` holds its other lines (comments, `event:`), each ended by LF.

    `data` is the payload, its lines joined by LF; None: the frame has no `data` line.
    """

    head: bytes
    data: bytes | None

    def wire(self) -> bytes:
        """Spell the frame as we send it: LF, `data: ` with its space. Empty: nothing is left."""
        if self.data is not None:
            return self.head + b"data: " + self.data.replace(b"\n", b"\ndata: ") + b"\n\n"
        return self.head + b"\n" if self.head else b""


class SseFramer:
    """Cuts a stream of bytes into frames.

    idle: nothing is pending: a whole frame could be passed by without being noticed.
    overflow: a frame passed `EVENT_BYTES_MAX`; nothing more is read.
    """

    __slots__ = (
        "_at_start",
        "_data",
        "_frame_bytes",
        "_head",
        "_line",
        "_skip_lf",
        "idle",
        "overflow",
    )

    def __init__(self) -> None:
        self.idle = False
        self.overflow = False
        self._at_start = True  # a BOM may still come
        self._skip_lf = False  # the last byte was a CR
        self._line = bytearray()
        self._head: list[bytes] = []
        self._data: list[bytes] | None = None
        self._frame_bytes = 0

    def feed(self, data: bytes) -> list[Frame]:
        """Return the frames that these bytes complete."""
        if self._at_start:
            data = self._without_bom(data)
        frames: list[Frame] = []
        if data and not self.overflow:
            self._cut(data, frames)
            self.idle = not (self._skip_lf or self._line or self._frame_bytes)
        return frames

    def _cut(self, data: bytes, frames: list[Frame]) -> None:
        start = 1 if self._skip_lf and data[0] == 0x0A else 0
        self._skip_lf = False
        for end in _LINE_END.finditer(data, start):
            at = end.start()
            if at < start:
                continue  # the LF of a CRLF
            self._line += data[start:at]
            start = at + 1
            if data[at] == 0x0D:
                if start == len(data):
                    self._skip_lf = True
                elif data[start] == 0x0A:
                    start += 1
            self._end_line(frames)
            if self.overflow:
                return
        self._line += data[start:]
        self._weigh()

    def close(self) -> list[Frame]:
        """The bytes ended. Return the last frame if only its line ends are missing."""
        frames: list[Frame] = []
        if self._at_start:
            self._at_start = False  # what was held back was no BOM
        for _ in range(2):
            if not self.overflow:
                self._end_line(frames)
        return frames

    def _without_bom(self, data: bytes) -> bytes:
        """Hold up to two bytes back until they are known to be a BOM or not."""
        held = bytes(self._line) + data
        self._line.clear()
        if len(held) < len(_BOM) and _BOM.startswith(held):
            self._line += held
            return b""
        self._at_start = False
        return held.removeprefix(_BOM)

    def _weigh(self) -> bool:
        self.overflow = bool(self._line) and self._frame_bytes + len(self._line) > EVENT_BYTES_MAX
        return self.overflow

    def _end_line(self, frames: list[Frame]) -> None:
        if self._weigh():
            return
        line = bytes(self._line)
        self._line.clear()
        if line:
            self._frame_bytes += len(line) + 1
            self._take(line)
        elif self._frame_bytes:
            data = None if self._data is None else b"\n".join(self._data)
            frames.append(Frame(b"".join(self._head), data))
            self._head.clear()
            self._data = None
            self._frame_bytes = 0

    def _take(self, line: bytes) -> None:
        name, _, value = line.partition(b":")
        if name == b"data":
            if self._data is None:
                self._data = []
            self._data.append(value.removeprefix(b" "))
        elif name in {b"", b"event"}:
            self._head.append(line + b"\n")

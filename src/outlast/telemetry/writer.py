"""Where log lines go: a bounded buffer, and a thread that alone touches the stream.

A full pipe or a slow disk blocks whoever writes to it. That must not be the event loop, so lines
are gathered here, handed over after `FLUSH_AFTER_S` or at `FLUSH_BYTES`, and written by a thread.
When the stream cannot keep up, or is gone, lines are dropped and counted; nothing ever raises
into the caller. Order is kept.
"""

import queue
import sys
import threading
from collections.abc import Callable
from typing import Protocol

from outlast.ports import Handle

FLUSH_BYTES = 64 * 1024
FLUSH_AFTER_S = 0.2
SPELLED_BYTES = 1024
"""What a line that is not spelled yet counts for: 64 of them are spelled in one go (0.3 ms)."""

CHUNKS_MAX = 64
"""Chunks that may wait for the thread: some 4 MiB."""

CLOSE_WAIT_S = 2.0
"""How long `close` waits for the stream to take what is left."""

CallLater = Callable[[float, Callable[[], None]], Handle]
"""`loop.call_later`: seconds, callback -> a timer that can be cancelled."""


class Stream(Protocol):
    """An unbuffered binary stream. `write` may take less than it is given (None: nothing)."""

    def write(self, data: memoryview, /) -> int | None: ...


def standard_error() -> Stream:
    """The process's own stderr, unbuffered: a broken pipe shows at the write, not at exit."""
    return open(sys.stderr.fileno(), "wb", buffering=0, closefd=False)


class LineWriter:
    """Gathers lines and has them written. Used from one thread; close it at the end.

    Without `call_later` each line is handed over at once (before a loop runs).
    """

    def __init__(self, stream: Stream, call_later: CallLater | None = None) -> None:
        self._stream = stream
        self._call_later = call_later
        self._lines: list[bytes | Callable[[], bytes]] = []
        self._size_bytes = 0
        self._timer: Handle | None = None
        self._closed = False
        self._dropped_full = 0  # counted by the caller's thread
        self._dropped_broken = 0  # counted by the writing thread
        self._chunks: queue.Queue[bytes | None] = queue.Queue(CHUNKS_MAX)
        self._thread = threading.Thread(target=self._write_chunks, name="outlast-log", daemon=True)
        self._thread.start()

    @property
    def dropped(self) -> int:
        """Lines that nobody will read."""
        return self._dropped_full + self._dropped_broken

    def write(self, line: bytes) -> None:
        """Take one line, its line end included."""
        if self._closed:
            self._dropped_full += 1
            return
        self._take(line, len(line))

    def write_later(self, spell: Callable[[], bytes]) -> None:
        """Take one line that is spelled when it is handed over.

        Between two requests the processor forgets how to spell; many lines in one go cost less
        than half of what they cost one by one.
        """
        if self._closed:
            self._dropped_full += 1
            return
        self._take(spell, SPELLED_BYTES)

    def _take(self, line: bytes | Callable[[], bytes], size_bytes: int) -> None:
        self._lines.append(line)
        self._size_bytes += size_bytes
        if self._call_later is None or self._size_bytes >= FLUSH_BYTES:
            self.flush()
        elif self._timer is None:
            self._timer = self._call_later(FLUSH_AFTER_S, self.flush)

    def flush(self) -> None:
        """Hand over what was gathered. Does not wait for the stream."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if not self._lines:
            return
        chunk = b"".join([line if isinstance(line, bytes) else line() for line in self._lines])
        lines = len(self._lines)
        self._lines, self._size_bytes = [], 0
        try:
            self._chunks.put_nowait(chunk)
        except queue.Full:
            self._dropped_full += lines

    def close(self, wait_s: float = CLOSE_WAIT_S) -> None:
        """Hand over the rest and wait, at most `wait_s`, until it is written. Safe to repeat."""
        if self._closed:
            return
        self.flush()
        self._closed = True
        try:
            self._chunks.put(None, timeout=wait_s)
        except queue.Full:
            return
        self._thread.join(wait_s)

    def _write_chunks(self) -> None:
        while (chunk := self._chunks.get()) is not None:
            try:
                self._write_whole(chunk)
            except (OSError, ValueError):  # the pipe broke, the disk is full, or it was closed
                self._dropped_broken += chunk.count(b"\n")

    def _write_whole(self, chunk: bytes) -> None:
        rest = memoryview(chunk)
        while rest:
            taken = self._stream.write(rest)
            if taken is None:
                raise BlockingIOError
            rest = rest[taken:]

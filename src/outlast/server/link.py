"""The application's hold on its caller's connection, for the span of one request.

The protocol puts one into `scope["extensions"]["outlast.connection"]`. It costs nothing while
nothing happens: no task, no timer, one slot for one callback. Once the answer is out the link is
released and does nothing any more, so that a later request's loss never reaches an earlier one.
"""

from collections.abc import Callable
from typing import Protocol

EXTENSION = "outlast.connection"

Headers = list[tuple[bytes, bytes]]


class Line(Protocol):
    """What a link asks of the connection below it."""

    def cut(self) -> None: ...

    def answer(self, status: int, headers: Headers, body: bytes) -> bool: ...

    def close_with(self, status: int, headers: Headers, body: bytes) -> None: ...


class CallerLink:
    """One request's view of its connection. `lost` turns True when the caller is gone."""

    __slots__ = ("_callback", "_line", "lost")

    def __init__(self, line: Line) -> None:
        self._line: Line | None = line
        self._callback: Callable[[], None] | None = None
        self.lost = False

    def on_lost(self, callback: Callable[[], None]) -> None:
        """Call back once, from the loop, when the connection is gone before the answer's end.

        Never calls at once: who registers looks at `lost` first.
        """
        self._callback = callback

    def answer(self, status: int, headers: Headers, body: bytes) -> bool:
        """Send a complete answer in one write. False: nothing was sent, the server must."""
        return self._line is not None and self._line.answer(status, headers, body)

    def abort(self) -> None:
        """Reset the connection; what was not sent yet is dropped."""
        if self._line is not None:
            self._line.cut()

    def close_with(self, status: int, headers: Headers, body: bytes) -> None:
        """Answer before the request's body was read, and close.

        The rest of the body is taken and dropped for a while, because closing a socket with unread
        bytes resets it and the caller may then never see the answer (RFC 9112 section 9.6).
        """
        if self._line is not None:
            self._line.close_with(status, headers, body)

    def lose(self) -> None:
        """The connection says: the caller is gone."""
        callback, self._callback, self._line = self._callback, None, None
        self.lost = True
        if callback is not None:
            callback()

    def release(self) -> None:
        """The connection says: this request is answered."""
        self._callback = self._line = None

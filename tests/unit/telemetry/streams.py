"""Streams that a log may be given, and a loop's timer that the test turns."""

import threading
from collections.abc import Callable

WAIT_S = 10.0


class Kept:
    """Keeps what is written."""

    def __init__(self) -> None:
        self.data = b""

    def write(self, data: memoryview, /) -> int:
        self.data += bytes(data)
        return len(data)

    @property
    def lines(self) -> list[bytes]:
        return self.data.splitlines()


class Reluctant(Kept):
    """Takes three bytes at a time."""

    def write(self, data: memoryview, /) -> int:
        return super().write(data[:3])


class Broken:
    """A pipe whose reader is gone."""

    def write(self, data: memoryview, /) -> int:
        raise BrokenPipeError


class Stuck(Kept):
    """Blocks like a full pipe, until it is let go."""

    def __init__(self) -> None:
        super().__init__()
        self.entered = threading.Event()
        self.let_go = threading.Event()

    def write(self, data: memoryview, /) -> int:
        self.entered.set()
        assert self.let_go.wait(WAIT_S)
        return super().write(data)


class Timer:
    def __init__(self, callback: Callable[[], None]) -> None:
        self.callback = callback
        self.cancelled = False

    def cancel(self) -> None:
        self.cancelled = True


class Timers:
    """`loop.call_later`, fired by hand."""

    def __init__(self) -> None:
        self.armed: list[Timer] = []

    def __call__(self, _delay_s: float, callback: Callable[[], None]) -> Timer:
        timer = Timer(callback)
        self.armed.append(timer)
        return timer

    def fire(self) -> None:
        due = [timer for timer in self.armed if not timer.cancelled]
        self.armed = []
        for timer in due:
            timer.callback()

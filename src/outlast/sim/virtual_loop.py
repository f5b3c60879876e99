"""An event loop whose time is a number: it jumps to the next timer when nothing is ready.

Owns virtual time. A simulated hour costs only the work done in it, and the same program takes the
same steps every time: nothing here asks the system's clock, a thread or a socket.

Surprising cases: "nothing ready and no timer" is a `DeadlockError`, because no outside event can
ever come, so a program that waits for ever fails at once instead of hanging, and so does one that
turns for ever at one instant (`LivelockError`). Threads and sockets
raise `VirtualTimeError`: their answers would arrive at a moment that virtual time cannot know.
"""

import asyncio
from collections.abc import Coroutine
from typing import Any, Never, TypeVar

from outlast.engine.clock import LoopClock
from outlast.model.clock import Instant, WallTime

T = TypeVar("T")

WALL_AT_START: WallTime = 1_800_000_000.0
"""The calendar's reading at the loop's zero: fixed, so that runs are equal."""


class DeadlockError(RuntimeError):
    """Everything waits and nothing can wake it: no callback is ready and no timer is set."""


class LivelockError(RuntimeError):
    """The loop turns and turns while time stands still: callbacks keep each other busy."""


class VirtualTimeError(RuntimeError):
    """Something that needs the outside world was asked for under virtual time."""


TURNS_AT_ONE_INSTANT_MAX = 200_000
"""A thousand callers that all act at one instant take some thousand turns."""


class _Jump:
    """Stands where the loop expects its selector: waiting means moving the clock."""

    def __init__(self, loop: "VirtualLoop") -> None:
        self._loop = loop
        self._turns = 0

    def select(self, timeout: float | None) -> list[object]:
        if timeout is None:
            raise DeadlockError("nothing is ready and no timer is set: every task waits for ever")
        self._turns += 1
        if timeout > 0:
            self._turns = 0
            self._loop.jump(timeout)
        elif self._turns > TURNS_AT_ONE_INSTANT_MAX:
            self._turns = 0  # the loop must be able to clean up
            raise LivelockError("callbacks keep each other busy while time stands still")
        return []

    def close(self) -> None:
        return None


class VirtualLoop(asyncio.BaseEventLoop):
    """See the module header. Time starts at 0."""

    _scheduled: list[asyncio.TimerHandle]  # the base class's heap of timers, soonest first

    def __init__(self) -> None:
        super().__init__()
        self._virtual_now: Instant = 0.0
        self._selector = _Jump(self)

    def time(self) -> Instant:
        return self._virtual_now

    def jump(self, timeout_s: float) -> None:
        """Move to the next timer. Exactly to it, or rounding would leave `now` just before it."""
        soonest = self._scheduled[0].when()
        target = self._virtual_now + timeout_s
        self._virtual_now = soonest if abs(soonest - target) < 1e-6 else target

    def timers(self) -> int:
        """How many timers are set; cancelled ones do not count."""
        return sum(not timer.cancelled() for timer in self._scheduled)

    def _process_events(self, event_list: list[object]) -> None:
        """There are no file descriptors, so there are no events."""

    def _write_to_self(self) -> None:
        """Nobody sleeps in a selector, so nobody needs waking."""

    def run_in_executor(self, *_: object, **__: object) -> Never:
        _refuse("a thread")

    async def getaddrinfo(self, *_: object, **__: object) -> Never:
        _refuse("a name lookup")

    async def create_connection(self, *_: object, **__: object) -> Never:
        _refuse("a connection")

    async def create_server(self, *_: object, **__: object) -> Never:
        _refuse("a listener")

    async def create_datagram_endpoint(self, *_: object, **__: object) -> Never:
        _refuse("a datagram socket")

    async def subprocess_exec(self, *_: object, **__: object) -> Never:
        _refuse("a process")

    async def subprocess_shell(self, *_: object, **__: object) -> Never:
        _refuse("a process")

    def add_reader(self, *_: object, **__: object) -> Never:
        _refuse("a file descriptor")

    def add_writer(self, *_: object, **__: object) -> Never:
        _refuse("a file descriptor")

    async def sock_connect(self, *_: object, **__: object) -> Never:
        _refuse("a socket")

    async def sock_recv(self, *_: object, **__: object) -> Never:
        _refuse("a socket")

    async def sock_sendall(self, *_: object, **__: object) -> Never:
        _refuse("a socket")


def _refuse(what: str) -> Never:
    raise VirtualTimeError(f"{what} was asked for under virtual time; use the in-memory adapters")


def running_clock() -> LoopClock:
    """The running loop's time; the calendar reads `WALL_AT_START` where the loop reads 0."""
    return LoopClock(asyncio.get_running_loop(), WALL_AT_START)


def run(main: Coroutine[Any, Any, T]) -> T:
    """Run `main` to its end in virtual time.

    Raises:
        DeadlockError: everything waits and nothing can wake it.
        LivelockError: callbacks keep each other busy and time stands still.
        VirtualTimeError: a thread or a socket was asked for.
    """
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(main)
